"""`sojourn tune`: finds the rate for a shaper on a live interface, by measuring, and says how well
the simulator had foretold it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.errors import UserError
from sojourn_live.cli import line_options
from sojourn_live.cli.shape import ApplyOptions, apply_shaper, wanted_of

if TYPE_CHECKING:
    from sojourn.linux.operations import WantedShape
    from sojourn_live.shape.prediction import Point
    from sojourn_live.shape.search import RateAnswer


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
    from sojourn_live.shape import search
    from sojourn_live.shape.picture import drawn

    which = tuple(dict.fromkeys(directions)) or ("up", "down")
    if rates and len(which) > 1:
        raise click.UsageError("--rate is of one direction: say --up or --down")
    target_ms = parse_duration(target_p95, what="a delay", zero=False) / 1e6
    load_ns = parse_duration(load.length, what="the length of a load", example="8 s", zero=False)
    wanted = wanted_of(shaper)
    folder = output.out or work.unused(Path("runs") / f"tune-{folder_names([host])[0]}")
    if folder.exists() and not output.force:
        raise UserError(
            f"{folder} is there already", "choose another folder with -o, or say --force"
        )
    name, port = server.of(host)
    settings = search.SearchSettings(
        interface=interface,
        directions=which,
        wanted=wanted,
        host=name,
        port=port,
        secret=server.secret,
        streams=load.streams,
        congestion=load.cc,
        load_ns=load_ns,
        target_ms=target_ms,
        repeats=load.repeats,
        rates=rates,
    )
    with work.progress(talk.quiet, lambda step: step) as tell:
        results = search.tune(settings, folder, lambda words, done: tell(work.Step(words, done)))
    if talk.as_json:
        found_json = [one.to_dict() for one in results]
        work.show(
            text.as_json({"interface": interface, "host": host, "results": found_json}, "tune")
        )
    else:
        for one in results:
            work.show(_table(one))
            work.show("\n".join(_sentences(one)))
    for one in results:
        work.say(f"wrote {drawn(one, host, folder)}", talk.quiet)
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
            f"{write_rate(choice.point.bps)} {one.asked.direction}, {share:.0%} of the line's {text.rate(one.round_line_bps)}: {choice.why} of {target}."
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
