"""`sojourn replay`: what the kernel's queue did to each packet, and ours to the same packets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.cli.agree import KERNEL, KernelAsked, standing_file
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.agreement.decisions import Compared
    from sojourn.engine.recording import Recording
    from sojourn.scenario import Scenario
    from sojourn.scenario.qdisc import Qdisc

DIFFER = 1
RECORDING = ".parquet"
REPORT = "replay.json"


STANDING = (
    "replay",
    "replay-mixed",
    "replay-pauses",
    "replay-100-mbit",
    "replay-pie",
    "replay-cake",
    "replay-cake-hosts",
    "replay-cake-overhead",
    "replay-drr",
    "replay-ets",
    "replay-fq",
    "replay-fq-maxrate",
    "replay-fq-pie",
    "replay-gred",
    "replay-hhf",
    "replay-mq",
    "replay-prio",
    "replay-sfb",
    "replay-sfb-ecn",
    "replay-sfq",
    "replay-sfq-red",
    "replay-tbf",
)
"""In the folder `agreement/cases` of the installed package."""
OF_LATER = {"kernel-7.3": ("replay-codel-drops", "replay-dualpi2")}
"""The same, of disciplines that only a later Linux has, by its engine."""


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
    help="This discipline instead of ours of the same words: one's own, mine.py:Mine.",
)
@options.block(
    options.OutputOptions,
    out="Keep the recordings, and replay.json, in this folder. [default: nothing is kept]",
    force="Write into DIR though it is not empty.",
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
    """Hold each decision of a queue against the kernel's.

    Records what the kernel's queue does to each packet of SCENARIO, and sends the same packets, at
    the same times, through ours: every arrival, departure, drop and mark is compared. RECORDING is
    a file that -o has kept. Without any, the standing set. Ends with 1 if a decision differs.
    """
    _replay_all(
        paths or tuple(standing_file(f"{name}.toml") for name in _standing(execution.engine)),
        KernelAsked(seeds, execution, output, talk),
        qdisc,
    )


def _standing(engine: str) -> tuple[str, ...]:
    return STANDING + OF_LATER.get(engine, ())


def _replay_all(paths: Sequence[Path], how: KernelAsked, qdisc: str | None) -> None:
    """Compares every scenario, recorded first, and every recording, by ours or by `qdisc`; exits with
    1 if a decision differs."""
    kept = [path for path in paths if path.suffix == RECORDING]
    for path in kept:
        work.check_there(path, "give a file that `sojourn replay SCENARIO -o DIR` wrote")
    variants = [
        variant
        for path in paths
        if path not in kept
        for variant in work.scenario(path, quiet=how.talk.quiet).variants()
    ]
    from sojourn.own.compiled import given

    instead = None if qdisc is None else given(qdisc)
    from sojourn.agreement.decisions import RecordingStopped, RecordingUnfinishedError, compare
    from sojourn.engine.recording import Recording

    recordings = [Recording.load(path) for path in kept]
    missing = 0
    stops: list[RecordingUnfinishedError] = []
    if how.output.out is not None:
        _check_vacant(how.output.out, how.output.force)
    try:
        new = _recorded(variants, how, instead)
    except RecordingStopped as stop:
        new, missing = list(stop.recordings), stop.missing
    except RecordingUnfinishedError as stop:
        if not stop.recordings and not recordings:
            raise
        new, stops = list(stop.recordings), [stop]
    if how.output.out is not None:
        _keep(new, how.output.out)
    outcomes = [compare(each) for each in _comparable([*recordings, *new], instead)]
    agrees = all(one.agrees for one in outcomes)
    written = text.as_json(
        {
            "version": next((each.version for each in (*recordings, *new)), None),
            "agrees": agrees,
            "failed": [one.to_dict() for stop in stops for one in stop.failed],
            "replays": [one.to_dict() for one in outcomes],
        },
        "replay",
    )
    if how.talk.as_json:
        work.show(written)
    elif outcomes:
        work.show(_table(outcomes))
        work.show(_closing(outcomes))
    if how.output.out is not None:
        work.write(how.output.out / REPORT, written + "\n")
        work.say(f"wrote {how.output.out}", how.talk.quiet)
    failed = work.failed(stops)
    if missing:
        click.echo(f"\ninterrupted: {missing} guests had not finished, and are left out", err=True)
        raise click.exceptions.Exit(130)
    if failed or not agrees:
        raise click.exceptions.Exit(DIFFER)


# --------------------------------------------------------------------------------------- the work


def _comparable(recordings: Sequence[Recording], instead: Qdisc | None) -> list[Recording]:
    """Those that have what their discipline decides by, or `instead` of it; the others are named.

    Raises:
        UserError: none has.
    """
    from sojourn.agreement.decisions import lacking

    found = [each if instead is None else each.by(instead) for each in recordings]
    whys = [(each, why) for each in found if (why := lacking(each)) is not None]
    if whys and len(whys) == len(found):
        one, (problem, hint) = whys[0]
        raise UserError(f"{one.name}: {problem}", hint)
    for one, (problem, hint) in whys:
        click.echo(f"note: {one.name} is left out: {problem}; {hint}", err=True)
    return [each for each in found if lacking(each) is None]


def _check_decided(variant: Scenario) -> None:
    """Raises UserError where no recording of the scenario's queues could be compared."""
    from sojourn.agreement.decisions import never_recorded
    from sojourn.engine.kernel.graph import has_queue

    links = variant.realise(variant.seeds[0]).links
    whys = [never_recorded(link.qdisc) for link in links if has_queue(link) and link.sampled]
    if whys and whys[0] is not None and None not in whys:
        problem, hint = whys[0]
        raise UserError(f"{variant.label or variant.title}: {problem}", hint)


def _recorded(
    variants: Sequence[Scenario], how: KernelAsked, instead: Qdisc | None
) -> list[Recording]:
    from sojourn.agreement.decisions import record

    if not variants:
        return []
    if instead is None:
        for variant in variants:
            _check_decided(variant)
    work.say(
        f"{len(variants)} scenario{'s' if len(variants) > 1 else ''} on {how.execution.engine}",
        how.talk.quiet,
    )
    with work.progress(how.talk.quiet) as progress:
        return record(
            variants,
            engine=how.execution.engine,
            seeds=how.seeds,
            jobs=how.execution.jobs,
            progress=progress,
        )


def _check_vacant(folder: Path, force: bool) -> None:

    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise UserError(
            f"{folder} is not empty", "choose another folder with -o, or replace it with --force"
        )


def _keep(recordings: Sequence[Recording], folder: Path) -> None:
    from sojourn.engine import folder_names

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"can't make {folder}: {error.strerror or error}", "choose another -o"
        ) from None
    for recording, name in zip(
        recordings, folder_names([each.name for each in recordings]), strict=True
    ):
        recording.save(folder / f"{name}{RECORDING}")


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
            lines.append(
                f"{one.name}, link {one.link}: the first that differs is {one.first.words}"
            )
    decisions = sum(one.arrivals for one in outcomes)
    agreeing = sum(one.agreeing for one in outcomes)
    wrong = sum(not one.agrees for one in outcomes)
    lines.append(
        f"{agreeing} of {decisions} packets agree, of {len(outcomes)} queues; {wrong or 'none'} of the queues"
        f" {'differs' if wrong == 1 else 'differ'}"
    )
    return "\n".join(lines)
