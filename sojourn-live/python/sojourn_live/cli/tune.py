"""`sojourn tune`: finds the rate for a shaper on a live interface by measuring, and reports how
good the simulator's prediction was."""

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
@click.option(
    "--up",
    "directions",
    flag_value="up",
    multiple=True,
    help="Tune the direction in which IFACE sends.",
)
@click.option(
    "--down",
    "directions",
    flag_value="down",
    multiple=True,
    help="Tune the direction in which IFACE receives. [default: both, in turn]",
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
    length={"default": "8 s", "help": "Length of each load."},
    repeats={
        "default": 3,
        "type": click.IntRange(1, 100),
        "help": "Tries of each rate; the rates are tried in turn.",
    },
)
@options.block(line_options.ServerOptions)
@options.block(
    options.OutputOptions,
    out="Folder of Runs and figures. [default: runs/tune-<host>]",
    force="Write into the output folder even if it exists.",
)
@options.block(ApplyOptions, act="Apply the chosen rates as sojourn shape --apply does.")
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

    Measures the line to HOST, where `sojourn serve` runs, without a shaper. Predicts delay and
    goodput at each rate in the simulator. Tries the rates around the best one in turn, chooses one,
    and reports how good the prediction was. Needs root. Restores IFACE at the end.
    """
    from sojourn.engine import folder_names
    from sojourn.units import parse_duration
    from sojourn_live.shape import search
    from sojourn_live.shape.picture import drawn

    which = tuple(dict.fromkeys(directions)) or ("up", "down")
    if rates and len(which) > 1:
        raise click.UsageError("--rate is for one direction: add --up or --down")
    target_ms = parse_duration(target_p95, what="a delay", zero=False) / 1e6
    load_ns = parse_duration(load.length, what="the length of a load", example="8 s", zero=False)
    wanted = wanted_of(shaper)
    folder = output.out or work.unused(Path("runs") / f"tune-{folder_names([host])[0]}")
    if folder.exists() and not output.force:
        raise UserError(f"{folder} exists already", "choose another folder with -o, or add --force")
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
    with work.progress(talk.quiet, lambda step: step) as show:
        answers = search.tune(settings, folder, lambda words, done: show(work.Step(words, done)))
    if talk.as_json:
        results = [answer.to_dict() for answer in answers]
        work.show(text.as_json({"interface": interface, "host": host, "results": results}, "tune"))
    else:
        for answer in answers:
            work.show(_table(answer))
            work.show("\n".join(_sentences(answer)))
    for answer in answers:
        work.say(f"wrote {drawn(answer, host, folder)}", talk.quiet)
    if any(answer.interrupted for answer in answers):
        raise click.exceptions.Exit(130)
    found = search.together(answers)
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


# --------------------------------------------------------------------------------------- the text


def _table(answer: RateAnswer) -> str:
    from sojourn.scenario.qdisc import write_rate

    predicted = {point.bps: point for point in answer.predicted[1:]}
    rows = [_row("no shaper", answer.unshaped, answer.predicted[0])]
    rows += [_row(write_rate(point.bps), point, predicted.get(point.bps)) for point in answer.tried]
    header = [
        answer.asked.direction,
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


def _sentences(answer: RateAnswer) -> list[str]:
    from sojourn.scenario.qdisc import write_rate

    choice, target, way = answer.choice, f"{answer.asked.target_ms:g} ms", answer.asked.direction
    if choice.point is None:
        sentences = [f"No rate for {way}: {choice.why} of {target}."]
    else:
        share = choice.point.bps / answer.line_bps
        sentences = [
            f"{write_rate(choice.point.bps)} {way}, {share:.0%} of the line's {text.rate(answer.round_line_bps)}: {choice.why} of {target}."
        ]
        lost = 1 - choice.point.goodput_mbps.value / answer.unshaped.goodput_mbps.value
        before, after = answer.unshaped.added_ms.value, choice.point.added_ms.value
        sentences.append(
            f"The delay that the load adds falls from {text.number(before)} ms to {text.number(after)} ms, at the cost of {lost:.0%} of the goodput."
        )
    if answer.tried:
        sentences += _prediction(answer)
    return [*sentences, *(f"Note: {caveat}." for caveat in answer.caveats)]


def _prediction(answer: RateAnswer) -> list[str]:
    import statistics

    from sojourn.scenario.qdisc import write_rate

    quality = answer.quality
    off_ms, off_goodput = quality.off_ms, quality.off_goodput
    worst = max(off_ms, key=abs)
    accuracy = (
        f"The simulator predicted the delay within 5 ms or 30 % at {quality.good} of {len(quality.pairs)} rates"
        f" (median error {text.number(statistics.median(map(abs, off_ms)))} ms, worst {worst:+.3g} ms),"
        f" the goodput within {max(map(abs, off_goodput)):.1%}."
    )
    predicted, chosen = answer.predicted_choice.point, answer.choice.point
    if predicted is None and chosen is None:
        return [accuracy, "It predicted that no rate meets the target."]
    if predicted is None:
        return [
            accuracy,
            "It predicted that no rate meets the target: the line is better than its model.",
        ]
    if chosen is not None and predicted.bps == chosen.bps:
        return [accuracy, "From its prediction the same rate would have been chosen."]
    return [accuracy, f"From its prediction {write_rate(predicted.bps)} would have been chosen."]
