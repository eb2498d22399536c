"""`sojourn rpm`: serves and measures responsiveness by draft-ietf-ippm-responsiveness, over HTTP/2
and TLS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.cli.grouped import CommandGroup
from sojourn_live.cli import line_options
from sojourn_live.cli.measure import ResultOptions
from sojourn_live.defaults import RPM_PORT, RpmService

if TYPE_CHECKING:
    from sojourn.records import Run
    from sojourn.records.measurement import MeasurementSettings
    from sojourn_live.measure.responsiveness import RpmResult
    from sojourn_live.rpm import RpmParameters, RpmPlan, RpmProgress

INCOMPLETE = 1
"""Exit status of a measurement that ended early."""
NS = 10**9


@click.group(cls=CommandGroup)
def rpm() -> None:
    """Responsiveness in round trips per minute: serve and measure it.

    Follows draft-ietf-ippm-responsiveness, over HTTP/2 and TLS. networkQuality and goresponsiveness
    are clients of the same servers.
    """


# ---------------------------------------------------------------------------------------- serving


@dataclass(frozen=True)
class CertificateOptions:
    """The server's certificate."""

    cert: Path | None = options.option(
        "--cert",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The server's certificate chain, PEM. [default: a self-signed certificate, made at start]",
    )
    key: Path | None = options.option(
        "--key",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The private key of --cert, PEM.",
    )
    names: tuple[str, ...] = options.option(
        "--name",
        multiple=True,
        metavar="HOST",
        help="A further name or address for the certificate made at start. May be repeated.",
    )
    cert_out: Path | None = options.option(
        "--cert-out",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write the certificate made at start to this file, for clients' --ca.",
    )


@dataclass(frozen=True)
class ConnectionOptions:
    """Limits of a client's connections."""

    seconds: int = options.option(
        "--seconds",
        type=click.IntRange(1, 2**31 - 1),
        default=RpmService.seconds,
        show_default=True,
        metavar="N",
        help="The longest life of a connection, in seconds.",
    )
    connections: int = options.option(
        "--connections",
        type=click.IntRange(1, 65_535),
        default=RpmService.connections,
        show_default=True,
        metavar="N",
        help="Connections that a client may have at once; a further one replaces the one that has been idle longest.",
    )


@rpm.command("serve")
@options.block(line_options.ListenOptions, port={"default": RPM_PORT, "help": "TCP; 0: any."})
@options.block(CertificateOptions)
@options.block(ConnectionOptions)
@options.one(options.TalkOptions, "quiet")
def serve_(
    listen: line_options.ListenOptions,
    certificate: CertificateOptions,
    connection: ConnectionOptions,
    quiet: bool,
) -> None:
    """Serve clients that measure responsiveness.

    Answers at /.well-known/nq to `sojourn rpm measure`, networkQuality and goresponsiveness. Needs
    no root. Listens on loopback by default (see --bind), and stops at Ctrl-C or SIGTERM.
    """
    if (certificate.cert is None) != (certificate.key is None):
        raise click.UsageError("--cert and --key go together")
    identity = None
    if certificate.cert is not None and certificate.key is not None:
        identity = (certificate.cert, certificate.key)
        if certificate.cert_out is not None or certificate.names:
            raise click.UsageError(
                "--cert-out and --name are for a certificate made at start, not for --cert"
            )
    if certificate.cert_out is not None:
        work.check_parent(certificate.cert_out)
    service = RpmService(
        at=listen.bind or ("127.0.0.1",),
        port=listen.port,
        names=certificate.names,
        identity=identity,
        seconds=connection.seconds,
        bytes=listen.size,
        connections=connection.connections,
    )
    _serve(service, certificate.cert_out, listen.span, quiet)


def _serve(service: RpmService, cert_out: Path | None, span_ns: int | None, quiet: bool) -> None:
    """Serves RPM clients until Ctrl-C or SIGTERM, or for `span_ns`."""
    from sojourn_live import rpm as live

    server = live.server(service)
    try:
        if cert_out is not None:
            work.write(cert_out, server.certificate or "")
        # On stdout: a program that gave --port 0 reads the port here.
        for address, port in server.addresses:
            work.show(f"serving RPM at {live.url(address, port)}")
        if all(live.is_loopback(address) for address, _ in server.addresses):
            work.say(
                "only this host can reach it; for others: --bind ADDRESS, 0.0.0.0 for all", quiet
            )
        if server.certificate is not None:
            trusted = "--insecure" if cert_out is None else f"--ca {cert_out}"
            work.say(f"the certificate is self-signed: sojourn rpm measure URL {trusted}", quiet)
        report = partial(work.say, quiet=quiet)
        server.run(None if span_ns is None else span_ns / NS, report)
    except KeyboardInterrupt:
        work.say("stopped", quiet)
    finally:
        server.stop()
        served = server.served()
        work.say(
            f"{served['accepted']} connections, {served['refused']} of them refused; {served['sent_bytes'] / 1e6:.0f} MB sent, "
            f"{served['received_bytes'] / 1e6:.0f} MB received",
            quiet,
        )


# -------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class TrustOptions:
    """The certificates that the client accepts."""

    insecure: bool = options.option(
        "--insecure",
        is_flag=True,
        help="Accept any certificate, such as that of sojourn rpm serve.",
    )
    ca: Path | None = options.option(
        "--ca",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Trust this certificate, PEM: the server's own or that of its signer.",
    )


@rpm.command("measure")
@click.argument("host", metavar="HOST")
@click.option("--both", is_flag=True, help="Load both directions at once, for one score.")
@click.option(
    "--interval",
    metavar="TIME",
    default="5 s",
    show_default=True,
    help="Time between two added connections; a direction takes 8 to 16 of these intervals.",
)
@options.block(TrustOptions)
@options.one(line_options.LoadOptions, "repeats")
@options.one(ResultOptions, "title")
@options.block(
    options.OutputOptions,
    out="Folder of the Run. [default: runs/rpm-<host>; with --json nothing is kept]",
)
@options.block(options.TalkOptions)
def measure_(
    host: str,
    both: bool,
    interval: str,
    trust: TrustOptions,
    repeats: int,
    title: str,
    output: options.OutputOptions,
    talk: options.TalkOptions,
) -> int:
    """Measure responsiveness: round trips per minute under load.

    HOST is a responsiveness server, or its URL.
    """
    from sojourn.figures import slug
    from sojourn.records.measurement import MeasurementSettings
    from sojourn.units import parse_duration
    from sojourn_live.rpm import BOTH, SERIAL, RpmParameters, RpmPlan

    if trust.insecure and trust.ca is not None:
        raise click.UsageError(
            "--insecure accepts any certificate, --ca only one: give one of them"
        )
    interval_ns = parse_duration(interval, what="the interval", example="5 s", zero=False)
    plan = RpmPlan(
        url=host,
        insecure=trust.insecure,
        ca=trust.ca,
        parameters=RpmParameters(id_ns=interval_ns),
        stages=BOTH if both else SERIAL,
    )
    default = None if talk.as_json else Path("runs") / f"rpm-{slug(host.removeprefix('https://'))}"
    how = MeasurementSettings(
        repeats=repeats,
        out=output.out or default,
        numbered=output.out is None,
        force=output.force,
        label=title,
    )
    return _measure(plan, how, talk)


def _measure(plan: RpmPlan, how: MeasurementSettings, talk: options.TalkOptions) -> int:
    """Measures and prints the scores. Returns the exit status."""
    from sojourn_live import rpm as live

    least, most = plan.least_ns / NS, plan.most_ns / NS
    work.say(
        f"measuring the responsiveness of {plan.url}: {how.repeats} × {least:.0f} to {most:.0f} s",
        talk.quiet,
    )
    with work.progress(talk.quiet, lambda step: step) as show:
        outcome = live.measure(plan, how, _reporter(show, plan))
    run = outcome.run
    if run is None:
        work.say("interrupted: nothing was measured, nothing is kept")
        raise click.exceptions.Exit(130)
    if talk.as_json:
        work.show(text.as_json(live.to_dict(run, plan.parameters), "rpm"))
    else:
        work.show(described(run, plan.parameters))
    if how.out is not None:
        work.say(f"wrote {run.path}; as a page: sojourn report {run.path}", talk.quiet)
    if outcome.interrupted:
        work.say("interrupted: the above is what was measured")
        raise click.exceptions.Exit(130)
    if outcome.why:
        work.say(f"ended early: {outcome.why}")
        return INCOMPLETE
    return 0


def _reporter(show: work.Show, plan: RpmPlan) -> RpmProgress:
    stages = ["idle", *(" and ".join(stage) for stage in plan.stages)]
    per_stage = 2 * plan.parameters.stage_intervals

    def reached(_now_ns: int, phase: int, waits_for: str, intervals: int, bps: float) -> bool:
        words = stages[phase]
        if phase > 0:
            words += f", {text.number(bps / 1e6)} Mbit/s, until {waits_for} is stable"
        # The share refers to the longest possible stage. Most stages become stable and end sooner.
        done = max(phase - 1, 0) + min(intervals / per_stage, 1.0) * (phase > 0)
        show(work.Step(words, done / len(plan.stages)))
        return True

    return reached


def described(run: Run, parameters: RpmParameters) -> str:
    """A measurement of responsiveness as text with two tables."""
    from sojourn_live.measure import responsiveness, scores

    results = responsiveness.results(run)
    server = responsiveness.facts_of(run, run.seeds[-1])["server"]
    return "\n".join(
        [
            run.meta.title,
            f"{server['address']} port {server['port']}; intervals of {parameters.id_ns / NS:g} s, the last {parameters.mad} count",
            "",
            _scores(results, len(run.seeds) > 1),
            "",
            _round_trips(results, responsiveness.idle_ms(run), len(run.seeds) > 1),
            "",
            f"RPM: {scores.DRAFT}, mean of the best {parameters.tmp:.0%}; go: goresponsiveness's trimmed mean and P90 of the same samples",
            *(_remark(result) for result in results if result.lost or not result.complete),
        ]
    )


def _scores(results: Sequence[RpmResult], numbered: bool) -> str:
    header = [
        "load",
        "RPM",
        "class",
        "confidence",
        "go",
        "go P90",
        "goodput Mbit/s",
        "confidence",
        "connections",
    ]
    rows = [
        [
            _called(result, numbered),
            text.number(result.draft.rpm, 0),
            result.verdict or "-",
            result.confidence,
            text.number(result.go.rpm, 0),
            text.number(result.go_p90.rpm, 0),
            " and ".join(text.number(mbps) for mbps in result.goodput_mbps.values()),
            result.goodput_confidence,
            str(result.connections),
        ]
        for result in results
    ]
    return text.table(header, rows)


def _round_trips(results: Sequence[RpmResult], idle: Mapping[str, float], numbered: bool) -> str:
    from sojourn_live.measure.responsiveness import FOREIGN, SELF

    header = ["round trips, ms", "TCP", "TLS", "request", "on a loaded connection", "samples"]
    rows = [["idle, median", *(text.number(idle[kind]) for kind in FOREIGN), "", ""]]
    for result in results:
        samples = f"{result.samples[FOREIGN[0]]} + {result.samples[SELF]}"
        times = [text.number(result.round_trips[kind]) for kind in (*FOREIGN, SELF)]
        rows.append([_called(result, numbered), *times, samples])
    return text.table(header, rows)


def _called(result: RpmResult, numbered: bool) -> str:
    return f"{result.phase}, repeat {result.seed}" if numbered else result.phase


def _remark(result: RpmResult) -> str:
    remarks = [f"{result.lost} probes failed"] if result.lost else []
    if not result.complete:
        remarks.append(f"cut short after {result.intervals} intervals")
    return f"{result.phase}: {', '.join(remarks)}"
