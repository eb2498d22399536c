"""`sojourn replay`: compares the kernel's queue with the simulator's, packet by packet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.cli.agree import KERNEL
from sojourn.defaults import QUEUE_RECORDING

if TYPE_CHECKING:
    from sojourn.agreement.decisions import Compared

DIFFER = 1


@click.command()
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SCENARIO|RECORDING]..."
)
@options.block(
    options.ExecutionOptions,
    engine=KERNEL,
)
@options.one(
    options.VariationOptions,
    "seeds",
    "Run N seeds, counted up from the scenario's. [default: the scenario's]",
)
@click.option(
    "--qdisc",
    metavar="WORDS",
    help="Use this discipline instead of the simulator's, for example your own: mine.py:Mine.",
)
@options.block(
    options.OutputOptions,
    out="Write the recordings, and replay.json, to this folder. [default: nothing is written]",
    force="Write into DIR even if it is not empty.",
)
@options.block(options.TalkOptions)
def replay(
    paths: tuple[Path, ...],
    execution: options.ExecutionOptions,
    seeds: int | None,
    qdisc: str | None,
    output: options.OutputOptions,
    talk: options.TalkOptions,
) -> None:
    """Compare each decision of a queue with the kernel's.

    Records what the kernel's queue does to each packet of SCENARIO, and sends the same packets at
    the same times through the simulator's queue. Every arrival, departure, drop and mark is
    compared. RECORDING is a file that -o wrote. Without arguments, the standing set runs. Exit
    status 1 if a decision differs.
    """
    for path in paths:
        if path.suffix == QUEUE_RECORDING:
            work.check_there(path, "give a file that `sojourn replay SCENARIO -o DIR` wrote")
    what = [
        path if path.suffix == QUEUE_RECORDING else work.scenario(path, quiet=talk.quiet)
        for path in paths
    ]
    from sojourn.own.compiled import given

    instead = None if qdisc is None else given(qdisc)
    from sojourn.agreement.replaying import ReplayInterrupted, ReplaySettings, carry_out

    missing = 0
    with work.Stages(talk.quiet) as stages:
        how = ReplaySettings(
            engine=execution.engine,
            seeds=seeds,
            qdisc=instead,
            out=output.out,
            force=output.force,
            jobs=execution.jobs,
            progress=stages.show,
            say=stages.say,
        )
        try:
            found = carry_out(what or None, how)
        except ReplayInterrupted as stop:
            found, missing = stop.found, stop.missing
    for one in found.left_out:
        click.echo(f"note: {one.name} is left out: {one.why}; {one.hint}", err=True)
    if talk.as_json:
        work.show(found.to_json())
    elif found.queues:
        work.show(_table(found.queues))
        work.show(_closing(found.queues))
    if found.out is not None:
        found.write()
        work.say(f"wrote {found.out}", talk.quiet)
    failed = work.failed(found.stops)
    if missing:
        click.echo(f"\ninterrupted: {missing} guests had not finished and are left out", err=True)
        raise click.exceptions.Exit(130)
    if failed or not found.agrees:
        raise click.exceptions.Exit(DIFFER)


# -------------------------------------------------------------------------------------- the words


def _table(outcomes: Sequence[Compared]) -> str:
    header = (
        *("scenario", "link", "qdisc", "arrivals", "sent", "refused", "dropped", "marked"),
        *("agreeing", "late", "by luck", "expected"),
    )
    return text.table(header, [_cells(one) for one in outcomes], left=3)


def _cells(one: Compared) -> tuple[str, ...]:
    kernel = one.kernel
    numbers = (one.arrivals, kernel.sent, kernel.refused, kernel.dropped, kernel.marked)
    agreeing = "all" if one.agrees else str(one.agreeing)
    late = f"{one.late}, {one.latest_ns} ns" if one.late else "0"
    draws = ("-", "-")
    if one.draws is not None:
        draws = (str(one.draws.drawn), f"{one.draws.expected:.0f} ±{one.draws.ci95:.0f}")
    return (one.name, one.link, one.qdisc, *map(str, numbers), agreeing, late, *draws)


def _closing(outcomes: Sequence[Compared]) -> str:
    lines = [""]
    for one in outcomes:
        if one.first is not None:
            lines.append(f"{one.name}, link {one.link}: the first difference is {one.first.words}")
    decisions = sum(one.arrivals for one in outcomes)
    agreeing = sum(one.agreeing for one in outcomes)
    wrong = sum(not one.agrees for one in outcomes)
    lines.append(
        f"{agreeing} of {decisions} packets agree, in {len(outcomes)} queues; {wrong or 'none'} of the queues"
        f" {'differs' if wrong == 1 else 'differ'}"
    )
    return "\n".join(lines)
