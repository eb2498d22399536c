"""`sojourn agree`: the same scenarios in the simulator and on the real kernel, number by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli import options, replays, text, work

if TYPE_CHECKING:
    from sojourn.agreement import Comparison, Digest, Explanation, Row
    from sojourn.engine import UnfinishedError
    from sojourn.records import Run
    from sojourn.scenario import Scenario

BEYOND = 1
STANDING = ("1-mbit", "10-mbit", "50-mbit")
QUICK = ("quick",)
"""In the folder `standing` of the installed package."""
REPLAY = ("replay", "replay-mixed", "replay-pauses", "replay-100-mbit")
TOLERANCE = "5 %"
KERNELS = tuple(name for name in work.ENGINES if name != "sim")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SCENARIO]...")
@options.engine("What the simulator is held against: sojourn list engines.", KERNELS)
@click.option("--quick", is_flag=True, help="Of the standing set 16 of the 288 cases: a minute or two.")
@click.option(
    "--replay",
    "decisions",
    is_flag=True,
    help="Compare decision by decision: record what the kernel's queue does to each packet, and send the same packets through"
    " ours. SCENARIO may be a recording, too.",
)
@options.seeds(
    "Run N seeds, counted up from the scenario's. [default: the scenario's; the standing set has 3]"
)
@click.option(
    "--tolerance",
    default=TOLERANCE,
    show_default=True,
    metavar="SHARE",
    help="How far apart two numbers may be, of the kernel's.",
)
@options.out("Keep the Runs of both sides, and agreement.json, in this folder. [default: nothing is kept]")
@click.option("--all", "everything", is_flag=True, help="Of the standing set, too, show every number.")
@options.jobs()
@options.force("Replace Runs that are already in DIR.")
@options.as_json("Print one JSON object instead of tables.")
@options.quiet()
def agree(
    paths: tuple[Path, ...],
    engine: str,
    quick: bool,
    decisions: bool,
    seeds: int | None,
    tolerance: str,
    out: Path | None,
    everything: bool,
    jobs: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Hold the simulator against the real kernel.

    Each SCENARIO, with all variants that it sweeps over, runs on both; without any, the standing set: eight queue disciplines, Reno and CUBIC,
    1, 10 and 50 Mbit/s, base RTTs of 10 and 80 ms, 1, 4 and 16 flows. Ends with 1 if a number differs by more than the tolerance
    and no known mechanism explains it.

    With --replay nothing is simulated but the queue: every arrival, departure, drop and mark of the kernel's is held against ours. Ends with 1 if one
    of them differs.
    """
    from sojourn import agreement, metrics
    from sojourn.engine import check

    if quick and paths:
        raise click.UsageError("--quick is for the standing set: leave it out, or the scenarios")
    if decisions:
        if quick or everything or tolerance != TOLERANCE:
            raise click.UsageError("--replay compares one by one: leave out --quick, --all and --tolerance")
        replays.replay_all(
            paths or tuple(_standing_file(f"{name}.toml") for name in REPLAY),
            replays.How(engine, seeds, out, jobs, force, as_json, quiet),
        )
        return
    share = _share(tolerance)
    known = agreement.explanations(_standing_file("explained.toml").read_text(encoding="utf-8"))
    variants = _variants(paths or tuple(standing(quick)), quiet)
    # What the simulator refuses is not to be told after the kernel has run.
    check(variants, "sim")
    how: dict[str, Any] = {"jobs": jobs, "force": force}
    theirs, stops = _runs(variants, engine, seeds, out, quiet, how)
    if stops:
        # Of what the kernel could not finish the simulator has no counterpart to run.
        variants = [
            variant.with_(seeds=list(run.seeds))
            for variant, run in zip(variants, theirs, strict=True)
            if run.seeds
        ]
        theirs, seeds = [run for run in theirs if run.seeds], None
    ours, more = _runs(variants, "sim", seeds, out, quiet, how)
    stops += more
    pairs = [pair for pair in zip(ours, theirs, strict=True) if pair[0].seeds]
    ours, theirs = [one for one, _ in pairs], [other for _, other in pairs]
    found = [
        agreement.compare(
            metrics.summary(one),
            metrics.summary(other),
            {link.name: link.rate_bps for link in one.meta.links},
            tolerance=share,
            known=known,
        )
        for one, other in pairs
    ]
    digests = agreement.digest(found)
    whole = {
        "engine": engine,
        "version": theirs[0].meta.version,
        "tolerance": share,
        "agrees": all(one.agrees for one in found),
        "invalid": [reason for run in theirs for reason in run.meta.invalid],
        "failed": [one.to_dict() for stop in stops for one in stop.failed],
        "verdicts": agreement.verdicts(found),
        "cpu_s": {name: _cpu_s(runs) for name, runs in (("sim", ours), (engine, theirs))},
        "comparisons": [one.to_dict() for one in found],
        "digest": [one.to_dict() for one in digests],
    }
    written = text.as_json(whole)
    if as_json:
        work.show(written)
    else:
        for one in found:
            work.show(_table(one, everything=everything or bool(paths)))
        if len(found) > 1:
            work.show(_digest(digests))
        work.show(_closing(found, known))
    work.say(_cost(ours, theirs), quiet)
    if out is not None:
        work.write(out / "agreement.json", written + "\n")
        work.say(f"wrote {out}", quiet)
    failed = work.failed(stops)
    if work.invalid(theirs) or failed or not whole["agrees"]:
        raise click.exceptions.Exit(BEYOND)


# ------------------------------------------------------------------------------------------------------ the work


def _share(written: str) -> float:
    from sojourn.units import UnitError, parse_probability

    try:
        return parse_probability(written)
    except UnitError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.BadParameter(f"{error.message}{hint}", param_hint="--tolerance") from None


def standing(quick: bool) -> Iterator[Path]:
    """The files of the standing set."""
    for name in QUICK if quick else STANDING:
        yield _standing_file(f"{name}.toml")


def _standing_file(name: str) -> Path:
    return Path(str(files("sojourn").joinpath("standing", name)))


def _variants(paths: Sequence[Path], quiet: bool) -> list[Scenario]:
    """Every variant of every file; of several files each says which it is of."""
    loaded = [work.scenario(path, quiet=quiet) for path in paths]
    variants = []
    for scenario in loaded:
        for variant in scenario.variants():
            words = (scenario.title,) if len(loaded) > 1 else ()
            label = ": ".join((*words, variant.label)) if variant.label else scenario.title
            variants.append(variant.with_(label=label))
    return variants


def _runs(
    variants: Sequence[Scenario],
    engine: str,
    seeds: int | None,
    out: Path | None,
    quiet: bool,
    how: Mapping[str, Any],
) -> tuple[list[Run], list[UnfinishedError]]:
    """The Runs of one side, a Run for each variant; and what failed, if something did."""
    from sojourn.engine import Interrupted, UnfinishedError, run_all

    folder = None if out is None else out / engine
    work.say(f"{_scenarios(variants)} on {engine}", quiet)
    try:
        with work.progress(quiet) as progress:
            return run_all(variants, seeds=seeds, out=folder, engine=engine, **how, progress=progress), []
    except Interrupted as stop:
        work.interrupted(stop, kept=folder is not None)
    except UnfinishedError as stop:
        work.finished(stop)
        return list(stop.runs), [stop]


# ------------------------------------------------------------------------------------------------------ the words

_MARKS = {"within": "yes", "step": "a step", "noise": "noise", "explained": "explained", "beyond": "NO"}


def _table(one: Comparison, everything: bool) -> str:
    agreeing = sum(row.verdict == "within" for row in one.rows)
    title = one.label if one.label.startswith(one.title) else f"{one.title} [{one.label}]"
    heading = f"{title}\n{agreeing} of {len(one.rows)} numbers within the tolerance; {_seeds(one)}"
    shown = [row for row in one.rows if everything or row.verdict in ("explained", "beyond")]
    if not shown:
        return f"{heading}\n"
    header = ("number", "sim", "kernel", "difference", "within")
    return "\n".join([heading, text.table(header, [_cells(row) for row in shown]), ""])


def _seeds(one: Comparison) -> str:
    return "1 seed" if one.seeds == 1 else f"{one.seeds} seeds, mean ±95 % interval"


def _cells(row: Row) -> tuple[str, ...]:
    unit = f" {row.unit}" if row.unit else ""
    within = _MARKS[row.verdict] + (f": {row.explanation}" if row.explanation else "")
    place = f"{row.place}: " if row.place else ""
    return (
        f"{place}{row.metric}{unit}",
        text.with_interval({"mean": row.sim, "ci95": row.sim_ci95}),
        text.with_interval({"mean": row.kernel, "ci95": row.kernel_ci95}),
        _percent(row.difference, row.ci95),
        within,
    )


def _percent(difference: float, ci95: float) -> str:
    if difference != difference:
        return "-"
    if abs(difference) == float("inf"):
        return "only in sim"
    half = "" if ci95 != ci95 else f" ±{100 * ci95:.1f}"
    return f"{100 * difference:+.1f}{half} %"


def _digest(digests: Sequence[Digest]) -> str:
    """A line for each queue discipline and number."""
    from sojourn.agreement import VERDICTS

    header = ("qdisc", "number", *VERDICTS, "median", "worst", "where")
    rows = [
        (
            one.group,
            one.metric,
            *(str(one.verdicts[verdict]) for verdict in VERDICTS),
            _size(one.median),
            _percent(one.worst, float("nan")),
            one.worst_case,
        )
        for one in digests
    ]
    return f"{text.table(header, rows, left=2)}\n"


def _size(share: float) -> str:
    return f"{100 * share:.1f} %"


def _scenarios(them: Sequence[object]) -> str:
    return f"{len(them)} scenario{'' if len(them) == 1 else 's'}"


def _closing(found: Sequence[Comparison], known: Sequence[Explanation]) -> str:
    from sojourn import agreement
    from sojourn.metrics import RANDOM_START

    counts = agreement.verdicts(found)
    named = {row.explanation for one in found for row in one.rows if row.explanation}
    lines = [f"{each.name}: {each.mechanism}" for each in known if each.name in named]
    if alike := [one for one in found if one.seeds > 1 and not one.scatters]:
        lines.append(
            f"{_scenarios(alike)} gave the same with every seed: one sample, without an interval;"
            f" with {RANDOM_START} on a flow the seeds differ"
        )
    total = sum(counts.values())
    lines.append(
        f"{total} numbers of {_scenarios(found)}: {counts['within']} within the tolerance, {counts['step']} a queue's step"
        f" apart, {counts['noise']} that more seeds would tell, {counts['explained']} explained, {counts['beyond']} beyond it"
    )
    return "\n".join(lines)


def _cost(ours: Sequence[Run], theirs: Sequence[Run]) -> str:
    return f"CPU: sim {_cpu_s(ours):.1f} s, {theirs[0].meta.engine} {_cpu_s(theirs):.1f} s"


def _cpu_s(runs: Sequence[Run]) -> float:
    return sum(sum(run.meta.cpu_s.values()) for run in runs)
