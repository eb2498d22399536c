"""`sojourn compare`: queue disciplines on one scenario, with a verdict; or Runs, before and
after."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn import extras
from sojourn.cli import contest_text, grids, options, rounds, text, work
from sojourn.digits import counted
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.engine import UnfinishedError
    from sojourn.judgement import Judgement
    from sojourn.records import Run

USUAL = ("pfifo", "red", "codel", "pie", "fq_codel", "cake")


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="SCENARIO|RUN")
@click.argument("qdiscs", nargs=-1, metavar="[QDISC|RUN]...")
@click.option(
    "--qdisc",
    "more",
    multiple=True,
    metavar="QDISC",
    help='One more discipline, such as --qdisc "codel target 20ms".',
)
@click.option(
    "--link",
    metavar="NAME",
    help="Compare at this link only; a scenario with [[link]] tables needs it.",
)
@options.block(
    options.OutputOptions,
    out="Folder of Runs, figures and page. [default: runs/<scenario>-compare; with --json nothing is kept]",
)
@options.one(
    options.FigureOptions, "suffixes", "Formats of the figures: svg, pdf or png. [default: svg]"
)
@options.block(options.VariationOptions)
@options.block(options.TableOptions)
@options.block(options.UntilOptions)
@options.block(options.ExecutionOptions)
@options.block(options.ProgramOptions)
@options.block(options.ClusterOptions)
@options.block(options.StoreOptions)
@options.block(options.TalkOptions)
def compare(
    path: Path,
    qdiscs: tuple[str, ...],
    more: tuple[str, ...],
    link: str | None,
    output: options.OutputOptions,
    suffixes: tuple[str, ...],
    variation: options.VariationOptions,
    table: options.TableOptions,
    until: options.UntilOptions,
    execution: options.ExecutionOptions,
    program: options.ProgramOptions,
    cluster: options.ClusterOptions,
    store: options.StoreOptions,
    talk: options.TalkOptions,
) -> None:
    """Compare queue disciplines on one scenario, or existing Runs.

    Each discipline takes its turn at the scenario's bottleneck. If the scenario has a sweep, or
    with --vary, this happens at each point of the sweep, and one table shows all of them.

    QDISC is in tc(8)'s words, in quotes if it has parameters: pfifo "fq_codel target 5ms". A red
    without parameters gets those that tc-red(8) recommends for the link. The default is pfifo red
    codel pie fq_codel cake.

    RUN is a folder that `sojourn run`, `sojourn compare` or `sojourn measure` wrote. Runs with the
    same link and traffic compete. Measurements are compared with the first one: it is BEFORE, the
    others are AFTER.
    """
    grids.check(table, 1, talk.as_json)
    precision = until.wanted
    where = cluster.wanted(execution)
    if path.is_dir():
        if more or link or variation.given or precision:
            raise click.UsageError(
                "two Runs are compared as they are: --qdisc, --link, --seed, --seeds, --set, --vary and --until are for a scenario"
            )
        _check_folders(path, qdiscs)
        _runs([path, *map(Path, qdiscs)], output.out, suffixes, table, talk)
        return
    from sojourn import judgement
    from sojourn.engine import Interrupted, UnfinishedError, contenders, run_all

    work.check_suffixes(suffixes)
    work.check_words((path, *map(Path, qdiscs)), variation.changes)
    _check_disciplines(path, qdiscs)
    # No notes are printed yet: a note may be about the discipline that the contenders replace.
    scenario = work.scenario(path, variation.changes, quiet=True, vary=variation.sweep)
    contending = contenders(scenario, (*qdiscs, *more) or USUAL, link)
    work.print_notes(contending.variants(), talk.quiet)
    work.permit([contending], execution.engine, program.allowed)
    folder = output.out
    if folder is None and not talk.as_json:
        folder = work.unused(Path("runs") / f"{work.stem(path)}-compare")
    wanted = variation.wanted(scenario)
    stops: list[UnfinishedError] = []
    try:
        with work.progress(talk.quiet) as progress:
            runs = run_all(
                contending,
                seeds=wanted,
                out=folder,
                engine=execution.engine,
                jobs=execution.jobs,
                cluster=where,
                force=output.force,
                fresh=store.fresh,
                progress=progress,
            )
        if precision is not None:
            further = rounds.Rounds(precision, execution, where, store, talk.quiet, link)
            stops += further.run(runs, contending.variants())
    except Interrupted as stop:
        work.interrupted(stop, kept=folder is not None)
    except UnfinishedError as stop:
        runs = work.finished(stop)
        stops.append(stop)

    if not talk.as_json and (table.given or len(contending.sweep) > 1):
        _show_grid(runs, table, talk.quiet, link, stops)
    else:
        found = judgement.compare(runs, link=link)
        _show(
            runs,
            found,
            talk.as_json,
            dict(zip(found.runs, (run.name for run in runs), strict=True)),
            stops,
        )
    if folder is not None:
        _write(runs, folder, suffixes or _usual(runs), talk.quiet)
    failed = work.failed(stops)
    if work.invalid(runs) or failed:
        raise click.exceptions.Exit(work.INVALID)


def _check_disciplines(path: Path, words: Sequence[str]) -> None:
    """Refuses a word that is not a discipline: a file, a folder, or a parameter that is not in
    quotes together with its discipline."""
    from sojourn.scenario import Problem, ScenarioError
    from sojourn.scenario.qdisc import QDISCS, WORDS

    for number, word in enumerate(words):
        if not word or word in QDISCS:
            continue
        if word.endswith(".toml") or Path(word).exists():
            raise ScenarioError(
                [
                    Problem(
                        f"{word} is not a queue discipline: {path} is a scenario, so the other arguments must be queue disciplines",
                        "to compare two scenarios, run each and compare the folders of their Runs: sojourn compare RUN RUN",
                    )
                ]
            )
        if number and (word in WORDS or _VALUE.fullmatch(word)):
            begin = max(
                (i for i in range(number) if words[i].partition(" ")[0] in QDISCS),
                default=number - 1,
            )
            ends = (i for i in range(number, len(words)) if words[i].partition(" ")[0] in QDISCS)
            quoted = " ".join(words[begin : next(ends, len(words))])
            raise ScenarioError(
                [
                    Problem(
                        f"{word!r} is not a queue discipline",
                        f'quote a discipline with its parameters: "{quoted}"',
                    )
                ]
            )


_VALUE = re.compile(r"[0-9.]+[a-z]*")
"""A number as tc writes it."""


def _check_folders(path: Path, others: Sequence[str]) -> None:
    """Refuses an argument that should be a Run and is not a folder."""

    for other in others:
        if not Path(other).is_dir():
            raise UserError(
                f"{other} is not the folder of a Run: {path} is one, so the other arguments must be Runs too",
                "name another Run; queue disciplines are compared on a scenario: sojourn compare SCENARIO QDISC...",
            )


def _runs(
    paths: list[Path],
    out: Path | None,
    suffixes: tuple[str, ...],
    table: options.TableOptions,
    talk: options.TalkOptions,
) -> None:
    """Compares Runs on disk. Without -o it writes nothing."""
    from sojourn import judgement
    from sojourn.figures import series
    from sojourn.records import Run

    work.check_suffixes(suffixes)
    runs = [run for path in paths for run in Run.find(path)]
    if len(runs) < 2:
        raise UserError(
            f"{paths[0]} is one Run",
            "name another Run to compare it with: sojourn compare BEFORE AFTER",
        )
    for run in runs:
        # The comparison does not read every table, so this check also finds damage in the others.
        run.check_sums()
    series.check(runs)
    if any(map(series.is_measured, runs)):
        if table.given:
            raise click.UsageError("--format and --columns are for simulations and kernels")
        _before_and_after(runs, talk.as_json)
    elif table.given or (not talk.as_json and _swept(runs)):
        _show_grid(runs, table, talk.quiet)
    else:
        # Two Runs are before and after, even if they differ in more than the discipline.
        _show(
            runs,
            judgement.compare(runs, baseline=runs[0] if len(runs) == 2 else None),
            talk.as_json,
            {},
        )
    if out is not None:
        work.make_folder(out)
        _write(runs, out, suffixes or _usual(runs), talk.quiet, "")
    elif suffixes:
        raise click.UsageError("--figures of Runs needs -o DIR, the folder for the figures")
    if work.invalid(runs):
        raise click.exceptions.Exit(work.INVALID)


def _swept(runs: Sequence[Run]) -> bool:
    """Whether these Runs are the cells of a sweep over more than one key."""
    return len(runs) > 2 and all(len(run.meta.settings) > 1 for run in runs)


def _show_grid(
    runs: Sequence[Run],
    table: options.TableOptions,
    quiet: bool,
    link: str | None = None,
    stops: Sequence[UnfinishedError] = (),
) -> None:
    """Prints the table of a sweep; in the text format also the winners."""
    found = grids.show(runs, table, quiet, link)
    if table.form in (None, "table"):
        work.show("\n" + "\n".join(map(_filled, [*found.sentences(), *_missing(stops)])))


def _missing(stops: Sequence[UnfinishedError]) -> list[str]:
    """A sentence for each variant without a finished run."""
    names = [one.name for stop in stops for one in stop.runs if not one.seeds]
    return [f"{name} is missing: every run of it failed." for name in names]


def _before_and_after(runs: Sequence[Run], as_json: bool) -> None:
    """Compares each measurement with the first one."""
    from sojourn.figures import series
    from sojourn.judgement import likeness

    measured = [run for run in runs if series.is_measured(run)]
    found = extras.read_measurements(measured).changes(runs, likeness.labels(runs))
    if as_json:
        whole = {"comparisons": [one.to_dict() for one in found]}
        work.show(text.as_json(whole, "changes"))
    else:
        work.show("\n\n".join(one.text() for one in found))


def _show(
    runs: Sequence[Run],
    found: Judgement,
    as_json: bool,
    written: dict[str, str],
    stops: Sequence[UnfinishedError] = (),
) -> None:
    """Prints the tables of each contest and the verdict.

    `written`: each Run's name on the command line. `stops`: the failures.
    """
    from sojourn import metrics
    from sojourn.judgement.own_names import as_written
    from sojourn.scenario.qdisc import is_own

    sentences = [*found.sentences(), *_missing(stops)]
    if as_json:
        links = {contest.link for contest in found.contests}
        whole = {
            "link": links.pop() if len(links) == 1 else None,
            "verdict": " ".join(sentences),
            "judgement": found.to_dict(),
            "variants": [one.to_dict() for one in metrics.summary(runs)],
            "failed": [one.to_dict() for stop in stops for one in stop.failed],
        }
        work.show(text.as_json(whole, "compare"))
        return
    for refused in filter(None, map(work.refusal, runs)):
        work.show(refused)
    titles = list(dict.fromkeys(run.meta.title for run in runs))
    first = runs[0].meta
    same = len({(run.meta.duration_ns, run.meta.warmup_ns) for run in runs}) == 1
    length = (
        f"{first.duration_ns / 1e9:g} s, {first.warmup_ns / 1e9:g} s warm-up left out; "
        if same
        else ""
    )
    work.show("; ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else ""))
    work.show(f"{length}{_seeds(found)}\n")
    tables = [contest_text.tables(contest) for contest in found.contests]
    for contest, table in zip(found.contests, tables, strict=True):
        if contest.conditions:
            work.show(f"{_filled(contest.conditions)}\n")
        work.show(f"{table}\n", bold=contest_text.BEST)
    if any(row.best for contest in found.contests for row in contest.rows):
        stars = "* better than every other in its column, by the 95 % interval of the difference"
        work.show(_filled(f"{stars}; shortest delay first"))
    if any(sign in table for table in tables for sign in "≤≥"):
        work.show(_filled(text.RANGES))
    for run, name in zip(runs, found.runs, strict=True):
        at = next(contest.link for contest in found.contests if name in contest.runs)
        if at is None or name not in written:
            continue
        qdisc = run.meta.link(at).qdisc
        words = as_written(run, qdisc) if is_own(qdisc) else qdisc
        if name != words:
            work.show(f"{name}: {words}")
    work.show("\n" + "\n".join(map(_filled, sentences)))


def _filled(sentence: str) -> str:
    """Wraps a sentence. Text to copy into a scenario stays on one line."""
    from sojourn.metrics import RANDOM_START

    held = RANDOM_START.replace(" ", "\N{NO-BREAK SPACE}")
    lines = textwrap.fill(sentence.replace(RANDOM_START, held), contest_text.width())
    return lines.replace(held, RANDOM_START)


def _seeds(found: Judgement) -> str:
    counts = sorted({contest.seeds for contest in found.contests})
    word = counted(counts, "seed")
    samples = max(contest.samples for contest in found.contests)
    if counts[-1] > 1 and samples == 1:
        return f"{word} with the same result: one sample"
    pairs = {contest.by for contest in found.contests if len(contest.runs) > 1} - {"one sample"}
    how = {"paired": ", compared seed by seed", "Welch": ", compared by Welch's interval"}
    return (
        f"{word}, mean ±95 % interval{how.get(pairs.pop(), '') if len(pairs) == 1 else ''}"
        if samples > 1
        else word
    )


def _write(
    runs: list[Run],
    folder: Path,
    suffixes: tuple[str, ...],
    quiet: bool,
    beside: str = ", and the folder of each Run beside it",
) -> None:
    from sojourn import report

    drawn = work.draw(runs, folder / "figures", suffixes) if suffixes else 0
    page = report.write(runs, folder / "report.html")
    figures = f"\n      {folder / 'figures'} ({drawn} figures)" if drawn else ""
    work.say(f"wrote {page}{figures}{beside}", quiet)


def _usual(runs: Sequence[Run]) -> tuple[str, ...]:
    """The formats without --figures. A sweep gets no figures, because each would show too many
    Runs."""
    from sojourn.report.swept import is_sweep

    return () if is_sweep(runs) else ("svg",)
