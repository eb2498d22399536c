"""`sojourn measure`: what a line does under load, against a `sojourn serve` at the other end."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, rpm, series, text, verdict, work
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.live.measure.measurement import MeasurementOptions, MeasurementOutcome, MeasurementProgress
    from sojourn.live.measure.session import PlannedPhase, ProbeTarget, SessionPlan
    from sojourn.records import Run

KINDS = ("idle", "download", "upload", "both")
USUAL = ("idle", "download", "upload", "both", "idle")
PINGS = ("udp", "icmp", "gateway", "hop 2")
CHECK_FAILED = 1
"""Exit status where --fail-above says so, or where the server went away."""


@click.command()
@click.argument("host", metavar="HOST")
@options.port
@options.secret("The server's, if it has one.")
@click.option("-4", "family", flag_value="4", help="IPv4 only.")
@click.option("-6", "family", flag_value="6", help="IPv6 only.")
@options.streams("TCP connections in each loaded direction.")
@options.congestion("both senders")
@options.length("10 s", "Of each loaded phase.")
@click.option("--idle", default="5 s", show_default=True, metavar="TIME", help="Of each idle phase.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(KINDS),
    metavar="KIND",
    help="idle, download, upload or both; in this order, may be repeated. [default: idle download upload both idle]",
)
@options.repeats(most=1000, default=1)
@click.option(
    "--ping",
    "pings",
    multiple=True,
    metavar="TARGET",
    help='Who is probed: udp (our echo at the server), icmp (the server), gateway, "hop 2", or any host. The first is what the '
    'verdict is about. May be repeated. [default: udp icmp gateway "hop 2"]',
)
@click.option(
    "--interval", default="50 ms", show_default=True, metavar="TIME", help="From probe to probe of a target."
)
@click.option(
    "--iface",
    metavar="IFACE",
    help="Whose qdisc is watched; none: none. [default: the one towards the server]",
)
@click.option(
    "-t", "--title", default="", metavar="TEXT", help="What to call this measurement in comparisons."
)
@options.out("Folder of the Run. [default: runs/measure-<host>; with --json nothing is kept]")
@options.force("Replace a Run that is already in the output folder.")
@click.option(
    "--flent",
    "flent_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a phase as .flent.gz.",
)
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write all samples as CSV.",
)
@click.option(
    "--fail-above",
    metavar="TIME",
    help="Exit with 1 if a load adds more than this to the idle RTT at the 95th percentile, or that can't be said: 100ms.",
)
@click.option(
    "--every",
    metavar="TIME",
    help="Measure again and again, at times this far apart, until Ctrl-C; each is a Run in the folder -o, and a line here: 1h, 1d.",
)
@click.option("--times", type=click.IntRange(1), metavar="N", help="With --every: so often.")
@options.as_json("Print one JSON object instead of text.")
@options.quiet()
@rpm.measuring
def measure(
    host: str,
    port: int | None,
    secret: str,
    family: str | None,
    streams: int,
    cc: str | None,
    length: str,
    idle: str,
    phases: tuple[str, ...],
    repeats: int,
    pings: tuple[str, ...],
    interval: str,
    iface: str | None,
    title: str,
    out: Path | None,
    force: bool,
    flent_file: Path | None,
    csv_file: Path | None,
    fail_above: str | None,
    every: str | None,
    times: int | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Measure a line: its delay idle and under load, its goodput, where its queues are and how deep.

    HOST runs `sojourn serve`: a name, an address, HOST:PORT or [ADDRESS]:PORT. Phases: idle, download, upload, both, idle, while
    HOST and the routers on the way to it are pinged. With --every a line over days: `sojourn history` prints its table again.
    """
    from sojourn.figures import slug
    from sojourn.live import flent
    from sojourn.live.measure import measurement
    from sojourn.live.measure.session import SessionPlan
    from sojourn.units import parse_duration

    most_ns = None
    if fail_above is not None:
        most_ns = parse_duration(fail_above, what="the delay of --fail-above", example="100 ms")
    if flent_file is not None:
        flent.check_name(flent_file)
    for file in (flent_file, csv_file):
        work.check_parent(file)
    spans = {
        "idle": parse_duration(idle, what="the length of an idle phase", example="5 s", zero=False),
        "load": parse_duration(length, what="the length of a phase", example="10 s", zero=False),
    }
    order = phases or USUAL
    server, at = options.server(host, port)
    asked = SessionPlan(
        host=server,
        port=at,
        secret=secret,
        family=int(family) if family is not None else None,
        streams=streams,
        congestion=cc,
        probe_interval_ns=parse_duration(interval, what="an interval", zero=False),
        interface="" if iface == "none" else iface,
    )
    asked = _with(
        asked, [(kind, spans["idle" if kind == "idle" else "load"]) for kind in order], pings or PINGS
    )
    if every is not None:
        for written, given in (
            ("--flent", flent_file),
            ("--csv", csv_file),
            ("--fail-above", fail_above),
            ("--json", as_json),
        ):
            if given:
                raise click.UsageError(f"{written} does not go with --every")
        return _series(
            asked, (every, times), (repeats, title), out or Path("runs") / f"every-{slug(server)}", quiet
        )
    if times is not None:
        raise click.UsageError("--times goes with --every only")
    folder = out if out is not None or as_json else work.unused(Path("runs") / f"measure-{slug(server)}")
    how = measurement.MeasurementOptions(repeats=repeats, out=folder, force=force, label=title)
    outcome = _measured(asked, how, quiet)
    run = outcome.run
    if run is None:
        work.say("interrupted: no phase was finished, nothing is kept")
        raise click.exceptions.Exit(130)
    added_ms = _show(run, as_json)
    if flent_file is not None:
        work.say(f"wrote {flent.export(run, flent_file)}", quiet)
    if csv_file is not None:
        work.say(f"wrote {work.write(csv_file, _csv(run))}", quiet)
    if folder is not None:
        work.say(f"wrote {folder}; as a page: sojourn report {folder}", quiet)
    if outcome.interrupted:
        kept = f", kept in {folder}" if folder is not None else ""
        work.say(f"interrupted: the above is what was finished{kept}")
        raise click.exceptions.Exit(130)
    if outcome.why:
        work.say(f"ended early: {outcome.why}")
        return CHECK_FAILED
    if most_ns is not None and not added_ms <= most_ns / 1e6:
        work.say(verdict.too_much(added_ms, most_ns / 1e6), quiet)
        return CHECK_FAILED
    return 0


def _series(
    plan: SessionPlan, schedule: tuple[str, int | None], each: tuple[int, str], folder: Path, quiet: bool
) -> int:
    """`--every`: (how far apart, how often), (repeats, title) of each."""
    from sojourn.live.measure import measurement
    from sojourn.units import parse_duration

    every_ns = parse_duration(schedule[0], what="the time of --every", example="1 h", zero=False, days=True)
    repeats, title = each
    whole_ns = repeats * sum(phase.duration_ns for phase in plan.phases)
    if every_ns <= whole_ns:
        raise UserError(
            f"--every: {schedule[0]!r} is no longer than a measurement takes, {whole_ns / 1e9:.0f} s",
            "write a longer time, or measure less: --length, --phase, --repeats",
        )

    def measured(into: Path) -> MeasurementOutcome:
        how = measurement.MeasurementOptions(repeats=repeats, out=into, label=title)
        with work.progress(quiet, lambda step: step) as tell:
            return measurement.measure(plan, how, _told(tell, repeats))

    return series.measure(folder, every_ns / 1e9, schedule[1], measured, quiet)


def _with(plan: SessionPlan, phases: list[tuple[str, int]], pings: tuple[str, ...]) -> SessionPlan:
    import dataclasses

    from sojourn.live.measure.session import PlannedPhase

    told: tuple[PlannedPhase, ...] = tuple(PlannedPhase(kind, length_ns) for kind, length_ns in phases)
    return dataclasses.replace(plan, phases=told, targets=tuple(_target(words) for words in pings))


def _target(words: str) -> ProbeTarget:
    from sojourn.live.measure.session import ProbeTarget

    if words in ("udp", "icmp"):
        return ProbeTarget(words)
    return ProbeTarget("icmp", words)


def _measured(plan: SessionPlan, how: MeasurementOptions, quiet: bool) -> MeasurementOutcome:
    from sojourn.live.measure import measurement

    whole = sum(phase.duration_ns for phase in plan.phases) / 1e9
    began = False
    with work.progress(quiet, lambda step: step) as tell:
        told = _told(tell, how.repeats)

        def reached(repeat: int, now_ns: int, whole_ns: int, phase: str) -> bool:
            # At 0 it is still being asked for.
            nonlocal began
            if now_ns > 0 and not began:
                work.say(f"measuring the way to {plan.host}: {how.repeats} × about {whole:.0f} s", quiet)
                began = True
            return told(repeat, now_ns, whole_ns, phase)

        return measurement.measure(plan, how, reached)


def _told(tell: work.Tell, repeats: int) -> MeasurementProgress:
    def reached(repeat: int, now_ns: int, whole_ns: int, phase: str) -> bool:
        share = min(now_ns / whole_ns, 1.0) if whole_ns else 0.0
        which = f"repeat {repeat + 1} of {repeats}, " if repeats > 1 else ""
        tell(work.Step(f"{which}{phase or 'the queue drains'}", (repeat + share) / repeats))
        return True

    return reached


def _show(run: Run, as_json: bool) -> float:
    """Prints the findings; what the worst load adds at the 95th percentile, ms."""
    from sojourn.live.measure import findings

    found = findings.find(run)
    if as_json:
        work.show(text.as_json(found.to_dict()))
    else:
        work.show(verdict.text_of(found))
    return found.induced_p95_ms if not math.isnan(found.induced_p95_ms) else math.inf


def _csv(run: Run) -> str:
    from sojourn.live.measure import sample_files

    return sample_files.csv(run)
