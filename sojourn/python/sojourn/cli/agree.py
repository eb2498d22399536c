"""`sojourn agree`: runs scenarios in the simulator and on the real kernel, and compares the
numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.defaults import ENGINES, STANDING_MOST_SEEDS
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.agreement import Comparison, Digest, NumberRow
    from sojourn.agreement.running import Agreement
    from sojourn.engine import Interrupted
    from sojourn.scenario import Scenario

BEYOND = 1
TOLERANCE = "5 %"
KERNELS = tuple(name for name in ENGINES if name != "sim")
KERNEL = {
    "type": click.Choice(KERNELS),
    "default": KERNELS[0],
    "help": "The engine to compare the simulator with: sojourn list engines.",
}
"""The option -e of verbs that compare the simulator with a kernel."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SCENARIO]...")
@options.block(options.ExecutionOptions, engine=KERNEL)
@options.block(options.ClusterOptions)
@options.block(options.StoreOptions)
@click.option("--quick", is_flag=True, help="Run 24 cases of the standing set: some minutes.")
@options.one(
    options.VariationOptions,
    "seeds",
    "Run N seeds, counted up from the scenario's. [default: the scenario's; the standing set has 3]",
)
@click.option(
    "--most-seeds",
    type=click.IntRange(1, work.MOST_SEEDS),
    metavar="N",
    help="Double the seeds each round, up to N, of every scenario with a number that is beyond the tolerance, or whose"
    f" interval reaches beyond it. [default: {STANDING_MOST_SEEDS} for the standing set, otherwise none]",
)
@click.option(
    "--tolerance",
    default=TOLERANCE,
    show_default=True,
    metavar="SHARE",
    help="The greatest difference between two numbers, as a share of the kernel's.",
)
@options.block(
    options.OutputOptions,
    out="Write the Runs of both sides, and agreement.json, to this folder. [default: nothing is written]",
)
@click.option(
    "--all", "everything", is_flag=True, help="Show every number of the standing set, too."
)
@options.block(options.TalkOptions)
def agree(
    paths: tuple[Path, ...],
    execution: options.ExecutionOptions,
    cluster: options.ClusterOptions,
    store: options.StoreOptions,
    quick: bool,
    seeds: int | None,
    most_seeds: int | None,
    tolerance: str,
    output: options.OutputOptions,
    everything: bool,
    talk: options.TalkOptions,
) -> None:
    """Compare the simulator's numbers with the real kernel's.

    Each SCENARIO, with all variants of its sweep, runs on both. Without a SCENARIO, the standing
    set runs: eight queue disciplines, Reno and CUBIC, 1, 10 and 50 Mbit/s, base RTTs of 10 and 80
    ms, 1, 4 and 16 flows; cake, pie, fq_pie, sfq, sfb and choke; ECN, Vegas, UDP, video, losses,
    rings, shapers and more. Exit status 1 if a number differs by more than the tolerance.

    A scenario with Linux's `red adaptive` is compared twice: as tc configures it (red then does not
    adapt), and with red's timer started. `sojourn replay` compares each decision of a queue
    instead.
    """
    if quick and paths:
        raise click.UsageError("--quick is for the standing set: give either --quick or scenarios")
    share = _share(tolerance)
    where = cluster.wanted(execution)
    scenarios: list[Scenario] | None = [work.scenario(path, quiet=talk.quiet) for path in paths]
    from sojourn.agreement import standing
    from sojourn.agreement.running import AgreeInterrupted, AgreeSettings, carry_out

    if not paths:
        scenarios = standing.quick() if quick else None
        most_seeds = STANDING_MOST_SEEDS if most_seeds is None else most_seeds
    stop: Interrupted | None = None
    with work.Stages(talk.quiet) as stages:
        how = AgreeSettings(
            engine=execution.engine,
            seeds=seeds,
            most_seeds=most_seeds,
            tolerance=share,
            out=output.out,
            jobs=execution.jobs,
            cluster=where,
            force=output.force,
            fresh=store.fresh,
            progress=stages.show,
            say=stages.say,
        )
        try:
            found = carry_out(scenarios, how)
        except AgreeInterrupted as interrupted:
            found, stop = interrupted.found, interrupted.stop
    if found.comparisons:
        _show(found, talk, everything=everything or bool(paths))
    if stop is not None:
        work.failed(found.stops)
        work.interrupted(stop, kept=output.out is not None)
    # Both calls print their findings, so both must run.
    refused = [work.invalid(found.kernels), bool(work.failed(found.stops))]
    if any(refused) or not found.agrees:
        raise click.exceptions.Exit(BEYOND)


def _share(written: str) -> float:
    from sojourn.units import parse_probability

    try:
        return parse_probability(written)
    except UserError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.BadParameter(f"{error.problem}{hint}", param_hint="--tolerance") from None


def _show(found: Agreement, talk: options.TalkOptions, *, everything: bool) -> None:
    """Prints the results, and writes them if there is an output folder."""
    if talk.as_json:
        work.show(found.to_json())
    else:
        for one in found.comparisons:
            work.show(_table(one, everything=everything))
        if len(found.comparisons) > 1:
            work.show(_digest(found.digest))
        work.show(_closing(found))
    work.say(_cost(found), talk.quiet)
    if found.out is not None:
        found.write()
        work.say(f"wrote {found.out}", talk.quiet)


# -------------------------------------------------------------------------------------- the words

_MARKS = {"within": "yes", "step": "a step", "noise": "noise", "beyond": "NO"}


def _table(one: Comparison, everything: bool) -> str:
    agreeing = sum(row.verdict == "within" for row in one.rows)
    title = one.label if one.label.startswith(one.title) else f"{one.title} [{one.label}]"
    heading = f"{title}\n{agreeing} of {len(one.rows)} numbers within the tolerance; {_seeds(one)}"
    shown = [row for row in one.rows if everything or row.verdict == "beyond"]
    if not shown:
        return f"{heading}\n"
    header = ("number", "sim", "kernel", "difference", "within")
    return "\n".join([heading, text.table(header, [_cells(row) for row in shown]), ""])


def _seeds(one: Comparison) -> str:
    return "1 seed" if one.seeds == 1 else f"{one.seeds} seeds, mean ±95 % interval"


def _cells(row: NumberRow) -> tuple[str, ...]:
    unit = f" {row.unit}" if row.unit else ""
    place = f"{row.place}: " if row.place else ""
    return (
        f"{place}{row.metric}{unit}",
        text.with_interval({"mean": row.sim, "ci95": row.sim_ci95}),
        text.with_interval({"mean": row.kernel, "ci95": row.kernel_ci95}),
        _percent(row.difference, row.ci95),
        _MARKS[row.verdict],
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


def _closing(whole: Agreement) -> str:
    from sojourn import agreement
    from sojourn.agreement.running import counted
    from sojourn.metrics import RANDOM_START

    found, counts, lines = whole.comparisons, whole.verdicts, []
    if any(one.case.setting for one in found):
        lines.append(f"{agreement.ASLEEP.name}: {agreement.ASLEEP.says}")
    if alike := [one for one in found if one.seeds > 1 and not one.scatters]:
        lines.append(
            f"{counted(alike)} gave the same with every seed: one sample, without an interval;"
            f" with {RANDOM_START} on a flow the seeds differ"
        )
    total = sum(counts.values())
    lines.append(
        f"{total} numbers of {counted(found)}: {counts['within']} within the tolerance, {counts['step']} a queue's step"
        f" apart, {counts['noise']} that need more seeds, {counts['beyond']} beyond it"
    )
    return "\n".join(lines)


def _cost(found: Agreement) -> str:
    sim, kernel = found.cpu_s.values()
    return f"CPU: sim {sim:.1f} s, {found.kernels[0].meta.engine} {kernel:.1f} s"
