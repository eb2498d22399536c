"""`sojourn compare`: several queue disciplines at the bottleneck of one scenario, and which of them wins; or Runs, before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import comparison, options, text, verdict, work

if TYPE_CHECKING:
    from sojourn.records import Run

USUAL = ("pfifo", "red", "codel", "fq_codel")


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="SCENARIO|RUN")
@click.argument("qdiscs", nargs=-1, metavar="[QDISC|RUN]...")
@click.option(
    "--qdisc", "more", multiple=True, metavar="QDISC", help='One more, e.g. --qdisc "codel target 20ms".'
)
@click.option(
    "--link", metavar="NAME", help="At this link only; a scenario made of [[link]] tables needs it."
)
@options.out(
    "Folder of Runs, figures and page. [default: runs/<scenario>-compare; with --json nothing is kept]"
)
@click.option(
    "--figures",
    "suffixes",
    multiple=True,
    metavar="SUFFIX",
    help="Figures' formats: svg, pdf or png. [default: svg]",
)
@options.running
def compare(
    path: Path,
    qdiscs: tuple[str, ...],
    more: tuple[str, ...],
    link: str | None,
    out: Path | None,
    suffixes: tuple[str, ...],
    seed: int | None,
    seeds: int | None,
    changes: tuple[str, ...],
    engine: str,
    jobs: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare queue disciplines at the bottleneck of one scenario, or Runs that are there.

    QDISC is in tc(8)'s words, quoted when it has parameters: pfifo "fq_codel target 5ms". A red without parameters gets
    those that tc-red(8) recommends for the link. Without any: pfifo red codel fq_codel.

    RUN is a folder that `sojourn measure` or `sojourn run` wrote: the first is BEFORE, each other one AFTER it.
    """
    if path.is_dir():
        if more or link or seed is not None or seeds is not None or changes:
            raise click.UsageError(
                "Runs are compared as they are: --qdisc, --link, --seed, --seeds and --set are for a scenario"
            )
        _before_and_after([path, *map(Path, qdiscs)], out, suffixes, as_json, quiet)
        return
    from sojourn import metrics
    from sojourn.engine import Interrupted, run_all, variants

    work.check_suffixes(suffixes)
    work.check_words((path, *map(Path, qdiscs)), changes)
    # What is doubtful about the discipline that gives way to the contenders is not.
    scenario = work.scenario(path, changes, quiet=True)
    contending = variants(scenario, (*qdiscs, *more) or USUAL, link)
    work.tell_notes(contending, quiet)
    folder = out if out is not None or as_json else work.unused(Path("runs") / f"{work.stem(path)}-compare")
    wanted = work.seeds_wanted(scenario, seed, seeds)
    try:
        with work.progress(quiet) as progress:
            runs = run_all(
                contending,
                seeds=wanted,
                out=folder,
                engine=engine,
                jobs=jobs,
                force=force,
                progress=progress,
            )
    except Interrupted as stop:
        work.interrupted(stop.runs, stop.missing, kept=folder is not None)

    rows = [comparison.Contender(run.name, metrics.summary(run)) for run in runs]
    queue = comparison.busiest_link(rows) if link is None or len(rows) > 1 else link
    fifo = next((run.name for run in runs if run.meta.link(queue).qdisc.startswith(("pfifo", "bfifo"))), None)
    verdict = comparison.verdict(rows, queue, baseline=fifo)
    if as_json:
        whole = {"link": queue, "verdict": verdict, "variants": [row.summary.to_dict() for row in rows]}
        work.show(text.as_json(whole))
    else:
        for refused in filter(None, map(work.refusal, runs)):
            work.show(refused)
        _print(scenario.title, rows, queue, verdict, [(run.name, run.meta.link(queue).qdisc) for run in runs])
    if folder is not None:
        _write(runs, folder, suffixes or ("svg",), quiet)
    if work.invalid(runs):
        raise click.exceptions.Exit(work.INVALID)


def _before_and_after(
    paths: list[Path], out: Path | None, suffixes: tuple[str, ...], as_json: bool, quiet: bool
) -> None:
    """Runs as they lie on disk. Without -o nothing is written: they are kept already."""
    from sojourn.figures import series, style
    from sojourn.live import change
    from sojourn.records import Run, RunError

    work.check_suffixes(suffixes)
    runs = [run for path in paths for run in Run.find(path)]
    if len(runs) < 2:
        raise RunError(
            f"{paths[0]} is one Run", "name another one to compare it with: sojourn compare BEFORE AFTER"
        )
    series.check(runs)
    names = [look.label for look in style.looks(runs, series.bottlenecks(runs))]
    found = [
        change.compare(runs[0], run, (names[0], name)) for run, name in zip(runs[1:], names[1:], strict=True)
    ]
    if as_json:
        whole = {"comparisons": [one.to_dict() for one in found]}
        work.show(text.as_json(whole))
    else:
        work.show("\n\n".join(verdict.changes(one) for one in found))
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"can't write to {out}: {error.strerror or error}", "choose another folder with -o"
            ) from None
        _write(runs, out, suffixes or ("svg",), quiet, "")
    elif suffixes:
        raise click.UsageError("--figures of Runs needs -o DIR: where to draw them")


def _print(
    title: str, rows: list[comparison.Contender], link: str, verdict: str, qdiscs: list[tuple[str, str]]
) -> None:
    first = rows[0].summary
    seeds = (
        f"seed {first.seeds[0]}"
        if len(first.seeds) == 1
        else f"{len(first.seeds)} seeds, mean ±95 % interval"
    )
    work.show(
        f"{title}\nqueue at {link}; {first.duration_s:g} s, {first.warmup_s:g} s warm-up left out; {seeds}\n"
    )
    work.show(comparison.table(comparison.ranked(rows, link), link))
    work.show("\n* best of its column; shortest delay first; ping: idle against under load")
    for name, qdisc in qdiscs:
        if name != qdisc:
            work.show(f"{name}: {qdisc}")
    work.show(f"\n{verdict}")


def _write(
    runs: list[Run],
    folder: Path,
    suffixes: tuple[str, ...],
    quiet: bool,
    beside: str = ", and a Run per discipline beside it",
) -> None:
    from sojourn import report

    drawn = work.draw(runs, folder / "figures", suffixes)
    page = report.write(runs, folder / "report.html")
    work.say(
        f"wrote {page}\n      {folder / 'figures'} ({drawn} figures){beside}",
        quiet,
    )
