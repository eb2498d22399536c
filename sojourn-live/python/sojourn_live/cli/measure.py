"""`sojourn measure`: delay and goodput of a line under load, against a `sojourn serve`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.errors import UserError
from sojourn_live.cli import every, line_options, measurement_text
from sojourn_live.defaults import LOADS, USUAL_LOADS

if TYPE_CHECKING:
    from sojourn.records import Run
    from sojourn.records.measurement import MeasurementSettings
    from sojourn_live.measure.findings import Findings
    from sojourn_live.measure.measurement import MeasurementOutcome, MeasurementProgress
    from sojourn_live.measure.session import ProbeTarget, SessionPlan

PINGS = ("udp", "icmp", "gateway", "hop 2")
CHECK_FAILED = 1
"""Exit status if --fail-above fails, or if the measurement ended early."""


@dataclass(frozen=True)
class PhaseOptions:
    """The order of the loads, and the length of the idle phases."""

    idle: str = options.option(
        "--idle",
        default="5 s",
        show_default=True,
        metavar="TIME",
        help="Length of each idle phase.",
    )
    kinds: tuple[str, ...] = options.option(
        "--phase",
        multiple=True,
        type=click.Choice(LOADS),
        metavar="KIND",
        help="A phase: idle, download, upload or both. May be repeated; phases run in the given order. [default: idle download upload both idle]",
    )


@dataclass(frozen=True)
class ProbeOptions:
    """The targets of probes, their interval, and the queue of this host that is sampled."""

    pings: tuple[str, ...] = options.option(
        "--ping",
        multiple=True,
        metavar="TARGET",
        help='A target of probes: udp (our echo at the server), icmp (the server), gateway, "hop 2", or any host. May be repeated;'
        ' the verdict is about the first one. [default: udp icmp gateway "hop 2"]',
    )
    interval: str = options.option(
        "--interval",
        default="50 ms",
        show_default=True,
        metavar="TIME",
        help="Time between two probes of a target.",
    )
    iface: str | None = options.option(
        "--iface",
        metavar="IFACE",
        help='The interface whose qdisc is sampled, or "none". [default: the interface towards the server]',
    )


def _codepoint(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int:
    from sojourn.units import parse_dscp

    return 0 if given is None else parse_dscp(given)


@dataclass(frozen=True)
class MarkOptions:
    """The DSCP of the packets, and whether to test what the path does to DSCP and ECN."""

    dscp: int = options.option(
        "--dscp",
        metavar="NAME|N",
        callback=_codepoint,
        help="The codepoint of streams and probes, both ways: ef, cs1, af41, le, or 0 to 63. [default: cs0]",
    )
    ecn: bool = options.option(
        "--ecn",
        is_flag=True,
        help="Also test whether ECN and DSCP survive the path, and whether a queue marks under load.",
    )


@dataclass(frozen=True)
class ResultOptions:
    """Outputs of a measurement in addition to its Run, and its exit status."""

    title: str = options.option(
        "-t",
        "--title",
        default="",
        metavar="TEXT",
        help="Name of this measurement in comparisons.",
    )
    flent: Path | None = options.option(
        "--flent",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Also write a phase as .flent.gz.",
    )
    csv: Path | None = options.option(
        "--csv",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Also write all samples as CSV.",
    )
    fail_above: str | None = options.option(
        "--fail-above",
        metavar="TIME",
        help="Exit with 1 if a load adds more than this to the idle RTT at the 95th percentile, or if the added delay is not known: 100ms.",
    )


@dataclass(frozen=True)
class SeriesOptions:
    """Measurements over days."""

    every: str | None = options.option(
        "--every",
        metavar="TIME",
        help="Measure repeatedly, this far apart, until Ctrl-C: 1h, 1d. Each measurement is a Run in the folder -o, and prints"
        " a line.",
    )
    times: int | None = options.option(
        "--times",
        type=click.IntRange(1),
        metavar="N",
        help="With --every: stop after N measurements.",
    )


@click.command()
@click.argument("host", metavar="HOST")
@options.block(line_options.ServerOptions)
@click.option("-4", "family", flag_value="4", help="IPv4 only.")
@click.option("-6", "family", flag_value="6", help="IPv6 only.")
@options.block(line_options.LoadOptions)
@options.block(PhaseOptions)
@options.block(ProbeOptions)
@options.block(MarkOptions)
@options.block(ResultOptions)
@options.block(
    options.OutputOptions,
    out="Folder of the Run. [default: runs/measure-<host>; with --json nothing is kept]",
)
@options.block(SeriesOptions)
@options.block(options.TalkOptions)
def measure(
    host: str,
    family: str | None,
    server: line_options.ServerOptions,
    load: line_options.LoadOptions,
    phase: PhaseOptions,
    probe: ProbeOptions,
    mark: MarkOptions,
    result: ResultOptions,
    output: options.OutputOptions,
    series: SeriesOptions,
    talk: options.TalkOptions,
) -> int:
    """Measure a line: delay idle and under load, goodput, queues.

    HOST runs `sojourn serve`: a name, an address, HOST:PORT or [ADDRESS]:PORT. The phases are idle,
    download, upload, both and idle. Probes to HOST and to the routers before it show where the
    queues are and how deep. --every measures a line over days; `sojourn history` prints the table
    again.
    """
    from sojourn.units import parse_duration

    most_ns = None
    if result.fail_above is not None:
        most_ns = parse_duration(
            result.fail_above, what="the delay of --fail-above", example="100 ms"
        )
    if result.flent is not None:
        from sojourn_live import flent

        flent.check_name(result.flent)
    for file in (result.flent, result.csv):
        work.check_parent(file)
    plan = _plan(host, family, server, load, phase, probe, mark)
    if series.every is None:
        if series.times is not None:
            raise click.UsageError("--times needs --every")
        return _once(plan, load.repeats, most_ns, result, output, talk)
    for written, given in (
        ("--flent", result.flent),
        ("--csv", result.csv),
        ("--fail-above", result.fail_above),
        ("--json", talk.as_json),
    ):
        if given:
            raise click.UsageError(f"{written} and --every can't be combined")
    return _series(plan, series, load, result.title, output, talk.quiet)


def _plan(
    host: str,
    family: str | None,
    server: line_options.ServerOptions,
    load: line_options.LoadOptions,
    phase: PhaseOptions,
    probe: ProbeOptions,
    mark: MarkOptions,
) -> SessionPlan:
    from sojourn.units import parse_duration
    from sojourn_live.measure.session import PlannedPhase, SessionPlan

    idle_ns = parse_duration(
        phase.idle, what="the length of an idle phase", example="5 s", zero=False
    )
    load_ns = parse_duration(load.length, what="the length of a phase", example="10 s", zero=False)
    name, port = server.of(host)
    return SessionPlan(
        host=name,
        port=port,
        secret=server.secret,
        family=int(family) if family is not None else None,
        streams=load.streams,
        congestion=load.cc,
        dscp=mark.dscp,
        ecn=mark.ecn,
        phases=tuple(
            PlannedPhase(kind, idle_ns if kind == "idle" else load_ns)
            for kind in phase.kinds or USUAL_LOADS
        ),
        targets=tuple(_target(words) for words in probe.pings or PINGS),
        probe_interval_ns=parse_duration(probe.interval, what="an interval", zero=False),
        interface="" if probe.iface == "none" else probe.iface,
    )


def _target(words: str) -> ProbeTarget:
    from sojourn_live.measure.session import ProbeTarget

    if words in ("udp", "icmp"):
        return ProbeTarget(words)
    return ProbeTarget("icmp", words)


def _once(
    plan: SessionPlan,
    repeats: int,
    most_ns: int | None,
    result: ResultOptions,
    output: options.OutputOptions,
    talk: options.TalkOptions,
) -> int:
    from sojourn.figures import slug
    from sojourn.records.measurement import MeasurementSettings
    from sojourn_live import flent
    from sojourn_live.measure import findings

    default = None if talk.as_json else Path("runs") / f"measure-{slug(plan.host)}"
    how = MeasurementSettings(
        repeats=repeats,
        out=output.out or default,
        numbered=output.out is None,
        force=output.force,
        label=result.title,
    )
    outcome = _measured(plan, how, talk.quiet)
    run = outcome.run
    if run is None:
        work.say("interrupted: no phase was finished, nothing is kept")
        raise click.exceptions.Exit(130)
    found = findings.find(run)
    added_ms = _show(found, talk.as_json)
    if result.flent is not None:
        work.say(f"wrote {flent.export(run, result.flent)}", talk.quiet)
    if result.csv is not None:
        work.say(f"wrote {work.write(result.csv, _csv(run))}", talk.quiet)
    if how.out is not None:
        work.say(f"wrote {run.path}; as a page: sojourn report {run.path}", talk.quiet)
    if steps := measurement_text.next_steps(found):
        work.say(steps, talk.quiet)
    if outcome.interrupted:
        place = f", kept in {run.path}" if how.out is not None else ""
        work.say(f"interrupted: the above covers the finished phases{place}")
        raise click.exceptions.Exit(130)
    if outcome.why:
        work.say(f"ended early: {outcome.why}")
        return CHECK_FAILED
    if most_ns is not None and not added_ms <= most_ns / 1e6:
        work.say(measurement_text.too_much(added_ms, most_ns / 1e6), talk.quiet)
        return CHECK_FAILED
    return 0


def _series(
    plan: SessionPlan,
    series: SeriesOptions,
    load: line_options.LoadOptions,
    title: str,
    output: options.OutputOptions,
    quiet: bool,
) -> int:
    """Measures as `--every` and `--times` ask."""
    from sojourn.figures import slug
    from sojourn.records.measurement import MeasurementSettings
    from sojourn.units import parse_duration
    from sojourn_live.measure import measurement

    assert series.every is not None, "the caller checked --every"
    every_ns = parse_duration(
        series.every, what="the time of --every", example="1 h", zero=False, days=True
    )
    whole_ns = load.repeats * sum(phase.duration_ns for phase in plan.phases)
    if every_ns <= whole_ns:
        raise UserError(
            f"--every: {series.every!r} is too short: one measurement takes {whole_ns / 1e9:.0f} s",
            "write a longer time, or measure less: --length, --phase, --repeats",
        )

    def measured(into: Path) -> MeasurementOutcome:
        how = MeasurementSettings(repeats=load.repeats, out=into, numbered=True, label=title)
        with work.progress(quiet, lambda step: step) as show:
            return measurement.measure(plan, how, _reporter(show, load.repeats))

    folder = output.out or Path("runs") / f"every-{slug(plan.host)}"
    return every.measure(folder, every_ns / 1e9, series.times, measured, quiet)


def _measured(plan: SessionPlan, how: MeasurementSettings, quiet: bool) -> MeasurementOutcome:
    from sojourn_live.measure import measurement

    whole = sum(phase.duration_ns for phase in plan.phases) / 1e9
    began = False
    with work.progress(quiet, lambda step: step) as show:
        report = _reporter(show, how.repeats)

        def reached(repeat: int, now_ns: int, whole_ns: int, phase: str) -> bool:
            # At time 0 the server has not granted the session yet.
            nonlocal began
            if now_ns > 0 and not began:
                work.say(
                    f"measuring the way to {plan.host}: {how.repeats} × about {whole:.0f} s", quiet
                )
                began = True
            return report(repeat, now_ns, whole_ns, phase)

        return measurement.measure(plan, how, reached)


def _reporter(show: work.Show, repeats: int) -> MeasurementProgress:
    def reached(repeat: int, now_ns: int, whole_ns: int, phase: str) -> bool:
        share = min(now_ns / whole_ns, 1.0) if whole_ns else 0.0
        which = f"repeat {repeat + 1} of {repeats}, " if repeats > 1 else ""
        show(work.Step(f"{which}{phase or 'the queue drains'}", (repeat + share) / repeats))
        return True

    return reached


def _show(found: Findings, as_json: bool) -> float:
    """Prints the findings. Returns the delay that the worst load adds at the 95th percentile, ms;
    inf if it is not known."""
    if as_json:
        work.show(text.as_json(found.to_dict(), "measure"))
    else:
        work.show(measurement_text.text_of(found))
    return found.induced_p95_ms if not math.isnan(found.induced_p95_ms) else math.inf


def _csv(run: Run) -> str:
    from sojourn_live.measure import sample_files

    return sample_files.csv(run)
