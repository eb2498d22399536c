"""`sojourn tune`: finds the rate for a shaper on a live interface, by measuring, and says how well
the simulator had foretold it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.errors import UserError
from sojourn_live.cli import line_options
from sojourn_live.cli.shape import ApplyOptions, apply_shaper, wanted_of

if TYPE_CHECKING:
    from sojourn.figures.tuning import Tried
    from sojourn.linux.operations import WantedShape
    from sojourn_live.outputs import TunedDirection, TunePoint
    from sojourn_live.shape.prediction import Point
    from sojourn_live.shape.search import RateAnswer, RateQuestion

IDLE_NS = 2 * 10**9
PROBE_NS = 20 * 10**6
"""Fine enough for a 95th percentile of a few seconds."""


@click.command()
@click.argument("interface", metavar="IFACE")
@click.argument("host", metavar="HOST")
@click.option("--up", "directions", flag_value="up", multiple=True, help="Tune what IFACE sends.")
@click.option(
    "--down",
    "directions",
    flag_value="down",
    multiple=True,
    help="Tune what IFACE receives. [default: both, in turn]",
)
@click.option(
    "--target-p95",
    default="30ms",
    show_default=True,
    metavar="TIME",
    help="The most that the load may add to the idle RTT, at the 95th percentile.",
)
@options.block(options.ShaperOptions)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="RATE",
    callback=options.placed(options.rate),
    help="Try this rate. May be repeated. [default: five around the predicted one]",
)
@options.block(
    line_options.LoadOptions,
    length={"default": "8 s", "help": "Of each load."},
    repeats={
        "default": 3,
        "type": click.IntRange(1, 100),
        "help": "How often each rate is tried, in turns.",
    },
)
@options.block(line_options.ServerOptions)
@options.block(
    options.OutputOptions,
    out="Folder of Runs and figures. [default: runs/tune-<host>]",
    force="Write into the output folder though it exists.",
)
@options.block(ApplyOptions, act="Apply what was found, with a way back, as sojourn shape does.")
@options.block(options.TalkOptions)
def tune(
    interface: str,
    host: str,
    directions: tuple[str, ...],
    target_p95: str,
    shaper: options.ShaperOptions,
    rates: tuple[int, ...],
    load: line_options.LoadOptions,
    server: line_options.ServerOptions,
    output: options.OutputOptions,
    apply: ApplyOptions,
    talk: options.TalkOptions,
) -> int:
    """Find the fastest shaper that keeps delay under load low.

    Measures the line to HOST, where `sojourn serve` runs, without a shaper; predicts in the
    simulator what a shaper at each rate will do; tries rates around the best in turns; chooses; and
    says how good the prediction was. Needs root. Leaves IFACE as it found it.
    """
    from sojourn.engine import folder_names
    from sojourn.units import parse_duration
    from sojourn_live.measure import session
    from sojourn_live.shape import search

    which = tuple(dict.fromkeys(directions)) or ("up", "down")
    if rates and len(which) > 1:
        raise click.UsageError("--rate is of one direction: say --up or --down")
    target_ms = parse_duration(target_p95, what="a delay", zero=False) / 1e6
    load_ns = parse_duration(load.length, what="the length of a load", example="8 s", zero=False)
    wanted = wanted_of(shaper)
    tried = tuple(sorted(set(rates)))
    folder = output.out or work.unused(Path("runs") / f"tune-{folder_names([host])[0]}")
    if folder.exists() and not output.force:
        raise UserError(
            f"{folder} is there already", "choose another folder with -o, or say --force"
        )
    name, port = server.of(host)
    asked = []
    for direction in which:
        plan = session.SessionPlan(
            name,
            port,
            server.secret,
            streams=load.streams,
            congestion=load.cc,
            phases=search.phases(direction, IDLE_NS, load_ns),
            targets=(session.ProbeTarget("udp"),),
            probe_interval_ns=PROBE_NS,
            interface=interface,
        )
        asked.append(
            search.RateQuestion(interface, direction, wanted, plan, target_ms, load.repeats, tried)
        )
    for question in asked:
        search.check(question)
    results = _all(asked, folder, talk.quiet)
    if talk.as_json:
        found_json = [_as_json(one) for one in results]
        work.show(
            text.as_json({"interface": interface, "host": host, "results": found_json}, "tune")
        )
    else:
        for one in results:
            work.show(_table(one))
            work.show("\n".join(_sentences(one)))
    for one in results:
        work.say(f"wrote {_draw(one, host, folder)}", talk.quiet)
    if any(one.interrupted for one in results):
        raise click.exceptions.Exit(130)
    found = search.together(results)
    if found is None:
        return 1
    if apply.act:
        apply_shaper(interface, found, apply.confirm_within, as_json=False)
    else:
        work.say(f"to apply it: {_command(interface, found)}", talk.quiet)
    return 0


def _all(asked: Sequence[RateQuestion], folder: Path, quiet: bool) -> list[RateAnswer]:
    """One direction after the other; Ctrl-C ends with what there is."""
    from sojourn_live.shape import search

    results: list[RateAnswer] = []
    with work.progress(quiet, lambda step: step) as tell:
        for number, one in enumerate(asked):

            def update(
                words: str, done: float, number: int = number, direction: str = one.direction
            ) -> None:
                tell(work.Step(f"{direction}: {words}", (number + min(done, 1.0)) / len(asked)))

            results.append(search.carry_out(one, folder, update))
            if results[-1].interrupted:
                break
    return results


def _command(interface: str, found: WantedShape) -> str:
    from sojourn.scenario.qdisc import write_rate

    words = ["sojourn shape", interface]
    words += [
        f"--{name} {write_rate(bps)}"
        for name, bps in (("up", found.up_bps), ("down", found.down_bps))
        if bps
    ]
    if found.qdisc != "fq_codel":
        words.append(f"--qdisc '{found.qdisc}'")
    if found.link is not None:
        words.append(f"--link '{found.link.text}'")
    return " ".join([*words, "--apply"])


# ------------------------------------------------------------------------------------------- said


def _table(one: RateAnswer) -> str:
    from sojourn.scenario.qdisc import write_rate

    foretold = {point.bps: point for point in one.predicted[1:]}
    rows = [_row("no shaper", one.unshaped, one.predicted[0])]
    rows += [_row(write_rate(point.bps), point, foretold.get(point.bps)) for point in one.tried]
    header = [
        one.asked.direction,
        "added, p95, ms",
        "95 % interval",
        "predicted",
        "goodput, Mbit/s",
        "predicted",
    ]
    return text.table(header, rows)


def _row(name: str, measured: Point, predicted: Point | None) -> list[str]:
    interval = measured.added_ms
    known = not math.isnan(interval.low + interval.high)
    return [
        name,
        text.number(interval.value),
        f"{text.number(interval.low)} to {text.number(interval.high)}" if known else "-",
        text.number(predicted.added_ms.value) if predicted else "-",
        text.number(measured.goodput_mbps.value),
        text.number(predicted.goodput_mbps.value) if predicted else "-",
    ]


def _sentences(one: RateAnswer) -> list[str]:
    from sojourn.scenario.qdisc import write_rate

    choice, target = one.choice, f"{one.asked.target_ms:g} ms"
    if choice.point is None:
        said = [f"No rate for {one.asked.direction}: {choice.why} of {target}."]
    else:
        share = choice.point.bps / one.line_bps
        said = [
            f"{write_rate(choice.point.bps)} {one.asked.direction}, {share:.0%} of the line's {_line_rate(one)}: {choice.why} of {target}."
        ]
        lost = 1 - choice.point.goodput_mbps.value / one.unshaped.goodput_mbps.value
        before, after = one.unshaped.added_ms.value, choice.point.added_ms.value
        said.append(
            f"It takes what the load adds from {text.number(before)} ms to {text.number(after)} ms, for {lost:.0%} of the goodput."
        )
    if one.tried:
        said += [*_prediction(one)]
    said += [f"Note: {caveat}." for caveat in one.caveats]
    return said


def _line_rate(one: RateAnswer) -> str:
    from sojourn_live.shape.prediction import round_bps

    return text.rate(round_bps(one.line_bps))


def _prediction(one: RateAnswer) -> list[str]:
    import statistics

    from sojourn.scenario.qdisc import write_rate

    quality = one.quality
    off_ms, off_goodput = quality.off_ms, quality.off_goodput
    worst = max(off_ms, key=abs)
    line = (
        f"The simulator foretold the delay within 5 ms or 30 % at {quality.good} of {len(quality.pairs)} rates"
        f" (median error {text.number(statistics.median(map(abs, off_ms)))} ms, worst {worst:+.3g} ms),"
        f" the goodput within {max(map(abs, off_goodput)):.1%}."
    )
    foretold, chosen = one.foretold.point, one.choice.point
    if foretold is None and chosen is None:
        return [line, "It had foretold that none of them would do."]
    if foretold is None:
        return [
            line,
            "It had foretold that none of them would do: the line is better than its model.",
        ]
    if chosen is not None and foretold.bps == chosen.bps:
        return [line, "It would have chosen the same."]
    return [line, f"It would have chosen {write_rate(foretold.bps)}."]


def _as_json(one: RateAnswer) -> TunedDirection:
    choice, quality = one.choice, one.quality
    return {
        "direction": one.asked.direction,
        "target_ms": one.asked.target_ms,
        "line": {
            "bps": round(one.line_bps),
            "goodput_bps": round(one.line.goodput_bps),
            "base_rtt_ms": one.line.base_rtt_ns / 1e6,
            "buffer_bytes": round(one.line.buffer_bytes),
        },
        "no_shaper": {"measured": _point(one.unshaped), "predicted": _point(one.predicted[0])},
        "measured": [_point(point) for point in one.tried],
        "predicted": [
            _point(point) for point in sorted(one.predicted[1:], key=lambda point: point.bps)
        ],
        "chosen_bps": choice.point.bps if choice.point else None,
        "sure": choice.sure,
        "why": choice.why,
        "foretold_bps": one.foretold.point.bps if one.foretold.point else None,
        "prediction": {
            "off_ms": [_known(value) for value in quality.off_ms],
            "off_goodput": [_known(value) for value in quality.off_goodput],
            "good": quality.good,
            "of": len(quality.pairs),
        },
        "notes": one.caveats,
        "interrupted": one.interrupted,
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _point(point: Point) -> TunePoint:
    delay, goodput = point.added_ms, point.goodput_mbps
    return {
        "bps": point.bps,
        "added_p95_ms": _known(delay.value),
        "added_p95_ms_ci95": [_known(delay.low), _known(delay.high)],
        "goodput_mbps": _known(goodput.value),
    }


# ------------------------------------------------------------------------------------------ drawn


def _draw(one: RateAnswer, host: str, folder: Path) -> Path:
    from sojourn import figures
    from sojourn.figures.tuning import Tuning, tuning
    from sojourn.scenario.qdisc import write_rate

    choice = one.choice.point
    predicted = sorted(one.predicted[1:], key=lambda point: point.bps)
    what = Tuning(
        f"A shaper with {one.asked.wanted.qdisc} on {one.asked.interface}, {one.asked.direction}, measured to {host}",
        f"line {_line_rate(one)}, base RTT {one.line.base_rtt_ns / 1e6:.3g} ms, queue {one.line.buffer_bytes / 1e3:.3g} kB ·"
        f" {one.asked.plan.streams} streams, {one.asked.repeats} repeats in turns",
        one.asked.target_ms,
        [_tried(point, write_rate(point.bps)) for point in one.tried],
        [_tried(point, write_rate(point.bps)) for point in predicted],
        (_tried(one.unshaped, "no shaper"), _tried(one.predicted[0], "no shaper")),
        write_rate(choice.bps) if choice else None,
    )
    file = folder / f"tune-{one.asked.direction}.svg"
    try:
        figures.save(tuning(what), file)
    except OSError as error:
        raise UserError(
            f"can't draw {file}: {error.strerror or error}", "the Runs are kept"
        ) from None
    return file


def _tried(point: Point, label: str) -> Tried:
    from sojourn.figures.tuning import Tried

    delay, goodput = point.added_ms, point.goodput_mbps
    return Tried(
        label, (delay.value, delay.low, delay.high), (goodput.value, goodput.low, goodput.high)
    )
