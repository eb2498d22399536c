"""Responsiveness on the command line: what `--rpm` makes of `sojourn serve` and `sojourn measure`.

Both verbs stay what they are: `serving` and `measuring` wrap them, add the options that go with --rpm, and take over where it is given.
What the one way of serving or measuring has and the other has not is refused, not ignored.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli import text, work
from sojourn.cli.options import Option, Verb, together

if TYPE_CHECKING:
    from sojourn.live.measure.measurement import MeasurementOptions
    from sojourn.live.measure.responsiveness import RpmResult
    from sojourn.live.rpm import RpmParameters, RpmPlan, RpmProgress, RpmService
    from sojourn.records import Run

CONNECTIONS = 256
"""As `sojourn.live.rpm.Service`."""
CONNECTION_S = 300
"""How long a connection lives, as `sojourn.live.rpm.Service`."""
INCOMPLETE = 1
"""Exit status of a measurement that the server broke off."""
NS = 10**9

_SERVING = (
    click.option(
        "--rpm",
        is_flag=True,
        help="Serve RPM clients instead (HTTP/2 over TLS, /.well-known/nq): measure --rpm, networkQuality, goresponsiveness.",
    ),
    click.option(
        "--cert",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --rpm: the server's certificate chain, PEM. [default: one made at start, signed by itself]",
    ),
    click.option(
        "--key", type=click.Path(path_type=Path), metavar="FILE", help="With --cert: its private key, PEM."
    ),
    click.option(
        "--name",
        "names",
        multiple=True,
        metavar="HOST",
        help="With --rpm: also a name or address that the certificate made at start is for. May be repeated.",
    ),
    click.option(
        "--cert-out",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --rpm: write the certificate made at start here, for clients' --ca.",
    ),
    click.option(
        "--connections",
        type=click.IntRange(1, 65_535),
        default=CONNECTIONS,
        show_default=True,
        metavar="N",
        help="With --rpm: connections that a client may have at once; one more takes the place of its longest idle one.",
    ),
)

_MEASURING = (
    click.option(
        "--rpm",
        is_flag=True,
        help="Measure responsiveness (round trips per minute) instead; HOST is an RPM server or its URL.",
    ),
    click.option("--both", is_flag=True, help="With --rpm: load both directions at once, for one score."),
    click.option(
        "--rpm-interval",
        metavar="TIME",
        default="5 s",
        show_default=True,
        help="With --rpm: from connection to connection that is added; a direction takes 8 to 16 of them.",
    ),
    click.option("--insecure", is_flag=True, help="With --rpm: take any certificate, as of serve --rpm."),
    click.option(
        "--ca",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --rpm: trust this certificate, PEM: the server's or its signer's.",
    ),
)


def serving(verb: Verb) -> Verb:
    """`sojourn serve` with --rpm."""

    @functools.wraps(verb)
    def either(**given: Any) -> Any:
        own, rest = _parted(_SERVING, given)
        if not own["rpm"]:
            return verb(**rest)
        _refuse(rest, also=("bind", "port", "span", "seconds", "size", "quiet"), what="serve --rpm")
        return serve_rpm(
            _service(own, rest),
            cert_out=own["cert_out"],
            span_ns=rest["span"],
            quiet=rest["quiet"],
        )

    return together(_SERVING)(either)


def measuring(verb: Verb) -> Verb:
    """`sojourn measure` with --rpm."""

    @functools.wraps(verb)
    def either(**given: Any) -> Any:
        own, rest = _parted(_MEASURING, given)
        if not own["rpm"]:
            return verb(**rest)
        also = ("host", "repeats", "title", "out", "force", "as_json", "quiet")
        _refuse(rest, also, what="measure --rpm")
        return measure_rpm(_plan(rest["host"], own), _how(rest), as_json=rest["as_json"], quiet=rest["quiet"])

    return together(_MEASURING)(either)


def _names(options: Sequence[Option]) -> set[str]:
    """What click calls the values of these options."""
    probe = click.command()(together(options)(lambda: None))
    return {str(parameter.name) for parameter in probe.params}


def _parted(options: Sequence[Option], given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what belongs to --rpm, what is the verb's). What belongs to it is refused without it."""
    names = _names(options)
    own = {name: value for name, value in given.items() if name in names}
    if not own["rpm"]:
        for name in names:
            if _typed(name):
                raise click.UsageError(f"{_written(name)} goes with --rpm only")
    return own, {name: value for name, value in given.items() if name not in names}


def _refuse(rest: Mapping[str, Any], also: Sequence[str], what: str) -> None:
    for name in rest:
        if name not in also and _typed(name):
            raise click.UsageError(f"{_written(name)} does not go with {what}")


def _typed(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _written(name: str) -> str:
    parameters = click.get_current_context().command.params
    return next((parameter.opts[-1] for parameter in parameters if parameter.name == name), name)


# -------------------------------------------------------------------------------------------------------------- serving


def _service(own: Mapping[str, Any], rest: Mapping[str, Any]) -> RpmService:
    from sojourn.live.rpm import PORT, RpmService

    if (own["cert"] is None) != (own["key"] is None):
        raise click.UsageError("--cert and --key go together")
    if own["cert"] is not None and (own["cert_out"] is not None or own["names"]):
        raise click.UsageError("--cert-out and --name are for a certificate made at start, not for --cert")
    if own["cert_out"] is not None:
        work.check_parent(own["cert_out"])
    return RpmService(
        at=rest["bind"] or ("127.0.0.1",),
        port=rest["port"] if _typed("port") else PORT,
        names=own["names"],
        identity=None if own["cert"] is None else (own["cert"], own["key"]),
        seconds=rest["seconds"] if _typed("seconds") else CONNECTION_S,
        bytes=rest["size"],
        connections=own["connections"],
    )


def serve_rpm(
    service: RpmService, *, cert_out: Path | None = None, span_ns: int | None = None, quiet: bool = False
) -> None:
    """Serves RPM clients until told to stop, or for so long."""
    from sojourn.live import rpm

    server = rpm.server(service)
    try:
        if cert_out is not None:
            work.write(cert_out, server.certificate or "")
        # Data: whoever started it with --port 0 reads the port here.
        for address, port in server.addresses:
            work.show(f"serving RPM at {rpm.url(address, port)}")
        if all(rpm.is_loopback(address) for address, _ in server.addresses):
            work.say("only this host can reach it; for others: --bind ADDRESS, 0.0.0.0 for all", quiet)
        if server.certificate is not None:
            trusted = "--insecure" if cert_out is None else f"--ca {cert_out}"
            work.say(f"its certificate is its own: measure --rpm URL {trusted}", quiet)
        tell = functools.partial(work.say, quiet=quiet)
        server.run(None if span_ns is None else span_ns / NS, tell)
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


# ------------------------------------------------------------------------------------------------------------ measuring


def _plan(host: str, own: Mapping[str, Any]) -> RpmPlan:
    from sojourn.live.rpm import BOTH, SERIAL, RpmParameters, RpmPlan
    from sojourn.units import parse_duration

    if own["insecure"] and own["ca"] is not None:
        raise click.UsageError("--insecure takes any certificate, --ca just one: give one of them")
    interval_ns = parse_duration(own["rpm_interval"], what="the interval", example="5 s", zero=False)
    return RpmPlan(
        url=host,
        insecure=own["insecure"],
        ca=own["ca"],
        parameters=RpmParameters(id_ns=interval_ns),
        stages=BOTH if own["both"] else SERIAL,
    )


def _how(rest: Mapping[str, Any]) -> MeasurementOptions:
    from sojourn.figures import slug
    from sojourn.live.measure.measurement import MeasurementOptions

    out = rest["out"]
    if out is None and not rest["as_json"]:
        out = work.unused(Path("runs") / f"rpm-{slug(rest['host'].removeprefix('https://'))}")
    return MeasurementOptions(repeats=rest["repeats"], out=out, force=rest["force"], label=rest["title"])


def measure_rpm(plan: RpmPlan, how: MeasurementOptions, *, as_json: bool = False, quiet: bool = False) -> int:
    """Measures, prints the scores, and gives the exit status."""
    from sojourn.live import rpm

    least, most = plan.least_ns / NS, plan.most_ns / NS
    work.say(
        f"measuring the responsiveness of {plan.url}: {how.repeats} × {least:.0f} to {most:.0f} s", quiet
    )
    with work.progress(quiet, lambda step: step) as tell:
        outcome = rpm.measure(plan, how, _told(tell, plan))
    run = outcome.run
    if run is None:
        work.say("interrupted: nothing was measured, nothing is kept")
        raise click.exceptions.Exit(130)
    if as_json:
        work.show(text.as_json(_plain(run, plan.parameters)))
    else:
        work.show(described(run, plan.parameters))
    if how.out is not None:
        work.say(f"wrote {how.out}; as a page: sojourn report {how.out}", quiet)
    if outcome.interrupted:
        work.say("interrupted: the above is what was measured")
        raise click.exceptions.Exit(130)
    if outcome.why:
        work.say(f"ended early: {outcome.why}")
        return INCOMPLETE
    return 0


def _told(tell: work.Tell, plan: RpmPlan) -> RpmProgress:
    stages = ["idle", *(" and ".join(stage) for stage in plan.stages)]
    per_stage = 2 * plan.parameters.stage_intervals

    def reached(_now_ns: int, phase: int, waits_for: str, intervals: int, bps: float) -> bool:
        words = stages[phase]
        if phase > 0:
            words += f", {text.number(bps / 1e6)} Mbit/s, until {waits_for} is stable"
        # Stages end when they are stable, mostly sooner: the share is that of the longest it may take.
        done = max(phase - 1, 0) + min(intervals / per_stage, 1.0) * (phase > 0)
        tell(work.Step(words, done / len(plan.stages)))
        return True

    return reached


def _plain(run: Run, parameters: RpmParameters) -> dict[str, Any]:
    import dataclasses

    from sojourn.live.measure import responsiveness, scores

    last = run.meta.facts[str(run.seeds[-1])]
    idle = {kind: None if math.isnan(ms) else ms for kind, ms in responsiveness.idle_ms(run).items()}
    return {
        "title": run.meta.title,
        "draft": scores.DRAFT,
        "server": last["server"],
        "outcome": last["outcome"],
        "why": last["why"],
        "parameters": dataclasses.asdict(parameters),
        "idle_ms": idle,
        "results": [result.to_dict() for result in responsiveness.results(run)],
    }


def described(run: Run, parameters: RpmParameters) -> str:
    """A measurement of responsiveness in words and two tables."""
    from sojourn.live.measure import responsiveness, scores

    results = responsiveness.results(run)
    told = run.meta.facts[str(run.seeds[-1])]["server"]
    return "\n".join(
        [
            run.meta.title,
            f"{told['address']} port {told['port']}; intervals of {parameters.id_ns / NS:g} s, the last {parameters.mad} count",
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
    from sojourn.live.measure.responsiveness import FOREIGN, SELF

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
    said = [f"{result.lost} probes failed"] if result.lost else []
    if not result.complete:
        said.append(f"broken off after {result.intervals} intervals")
    return f"{result.phase}: {', '.join(said)}"
