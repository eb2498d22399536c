"""`sojourn run`: runs scenarios, writes Runs and prints a table of numbers."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from sojourn.cli import bars, grids, options, rounds, text, watched, work

if TYPE_CHECKING:
    from sojourn.arrays import Json
    from sojourn.metrics import Summary
    from sojourn.numbers import (
        FlowNumbers,
        GroupNumbers,
        MeanAndInterval,
        ProbeNumbers,
        QueueNumbers,
    )
    from sojourn.records import Run


@click.command()
@click.argument(
    "scenarios", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SCENARIO..."
)
@options.block(
    options.OutputOptions,
    out="Folder of the Run. [default: runs/<scenario>; with --json nothing is kept]",
)
@options.one(options.FigureOptions, "suffixes", "Also draw figures: svg, pdf or png.")
@click.option(
    "--qdisc",
    metavar="WORDS",
    help="The queue discipline at the bottleneck: --qdisc fq_codel, or your own: mine.py:Mine.",
)
@options.block(options.VariationOptions)
@options.block(options.TableOptions)
@click.option(
    "--pcap",
    is_flag=True,
    help="Also record packet headers, and write each seed as a capture: pcap/seed-1.pcapng.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="First draw queues and congestion windows on the terminal while the first seed is simulated.",
)
@click.option(
    "--takes",
    "takes_s",
    type=click.FloatRange(min=0, max=86_400),
    metavar="SECONDS",
    help="The time that --watch takes. [default: 15]",
)
@click.option("--details", is_flag=True, help="For a sweep: also print each variant's own tables.")
@options.block(options.UntilOptions)
@options.block(options.ExecutionOptions)
@options.block(options.ProgramOptions)
@options.block(options.ClusterOptions)
@options.block(options.StoreOptions)
@options.block(options.TalkOptions)
def run(
    scenarios: tuple[Path, ...],
    output: options.OutputOptions,
    suffixes: tuple[str, ...],
    qdisc: str | None,
    variation: options.VariationOptions,
    table: options.TableOptions,
    pcap: bool,
    watch: bool,
    takes_s: float | None,
    details: bool,
    until: options.UntilOptions,
    execution: options.ExecutionOptions,
    program: options.ProgramOptions,
    cluster: options.ClusterOptions,
    store: options.StoreOptions,
    talk: options.TalkOptions,
) -> None:
    """Run scenarios and print their numbers.

    All variants of a scenario with a sweep are run, each into a folder of its own. One table is
    printed: a row for each variant, with its swept values and numbers, the most important first.
    """
    from sojourn import engine as engines
    from sojourn import metrics
    from sojourn.engine.compare import with_discipline

    work.check_suffixes(suffixes)
    precision = until.wanted
    where = cluster.wanted(execution)
    grids.check(table, len(scenarios), talk.as_json)
    if output.out is None and talk.as_json and suffixes:
        raise click.UsageError("--figures with --json needs -o DIR, the folder for the figures")
    work.check_words(scenarios, variation.changes)
    loaded = [
        work.scenario(path, variation.changes, talk.quiet, variation.sweep) for path in scenarios
    ]
    if qdisc is not None:
        loaded = [with_discipline(scenario, qdisc) for scenario in loaded]
    if pcap:
        if output.out is None and talk.as_json:
            raise click.UsageError("--pcap with --json needs -o DIR, the folder for the captures")
        loaded = [scenario.with_(**{"record.headers": True}) for scenario in loaded]
    if watch:
        watched.check(loaded, execution.engine)
    elif takes_s is not None:
        raise click.UsageError("--takes is the time that --watch takes: add --watch")
    work.permit(loaded, execution.engine, program.allowed)
    if len(loaded) > 1:
        # A refused scenario must be reported before any other scenario runs.
        engines.check(loaded, execution.engine)
    keep = output.out is not None or not talk.as_json
    outputs: list[Json] = []
    stops: list[engines.UnfinishedError] = []
    trusted = True
    for path, scenario in zip(scenarios, loaded, strict=True):
        folder = _folder(path, output.out, len(scenarios)) if keep else None
        wanted = variation.wanted(scenario)
        if watch:
            watched.watch(scenario, (wanted or scenario.seeds)[0], takes_s)
        how: dict[str, Any] = {
            "seeds": wanted,
            "out": folder,
            "engine": execution.engine,
            "jobs": execution.jobs,
            "cluster": where,
            "force": output.force,
            "fresh": store.fresh,
        }
        try:
            with work.progress(talk.quiet) as progress:
                if scenario.sweep:
                    runs = engines.run_all(scenario, **how, progress=progress)
                else:
                    runs = [engines.run(scenario, **how, progress=progress)]
            if precision is not None:
                further = rounds.Rounds(precision, execution, where, store, talk.quiet)
                stops += further.run(runs, scenario.variants())
        except engines.UnfinishedError as stop:
            stops.append(stop)
            runs = [one for one in stop.runs if one.seeds]
        except engines.Interrupted as stop:
            work.failed(stops)
            work.interrupted(stop, kept=keep)
        summaries = [metrics.summary(one) for one in runs]
        outputs += [summary.to_dict() for summary in summaries]
        trusted = not work.invalid(runs) and trusted
        if not talk.as_json and runs:
            swept = bool(scenario.sweep)
            if details or not (swept or table.given):
                for one, summary in zip(runs, summaries, strict=True):
                    work.show(_described(one, summary))
            if swept or table.given:
                grids.show(runs, table, talk.quiet)
        if folder is not None and runs:
            work.say(f"wrote {folder}", talk.quiet)
            if suffixes:
                drawn = work.draw(runs, folder / "figures", suffixes)
                work.say(f"drew {drawn} figures in {folder / 'figures'}", talk.quiet)
            if pcap:
                written = work.capture(runs, folder / "pcap")
                work.say(f"wrote {written} captures into {folder / 'pcap'}", talk.quiet)
    if not outputs:
        raise engines.UnfinishedError(
            [one for stop in stops for one in stop.failed], sum(stop.asked for stop in stops)
        )
    failed = work.failed(stops)
    if talk.as_json:
        several = sum(len(scenario.variants()) for scenario in loaded) > 1
        whole = {**({"variants": outputs} if several else outputs[0]), "failed": failed}
        work.show(text.as_json(whole, "sweep" if several else "run"))
    if failed or not trusted:
        raise click.exceptions.Exit(work.INVALID)


def _folder(path: Path, out: Path | None, scenarios: int) -> Path:
    if out is None:
        return work.unused(Path("runs") / work.stem(path))
    return out if scenarios == 1 else out / work.stem(path)


# -------------------------------------------------------------------------------------- the table


def _described(run: Run, summary: Summary) -> str:
    """A Run's numbers as text: over its seeds, without the warm-up."""
    from sojourn.judgement import words

    meta, numbers = run.meta, summary.summary
    seeds = f"seed {run.seeds[0]}"
    alike = summary.samples < len(run.seeds)
    if len(run.seeds) > 1:
        seeds = f"{len(run.seeds)} seeds" + (", one sample" if alike else ", mean ±95 % interval")
    title = (
        f"{meta.title} [{meta.label}]" if meta.label and meta.label != meta.title else meta.title
    )
    parts = [
        title,
        f"{summary.duration_s:g} s, the first {summary.warmup_s:g} s left out as warm-up; {seeds}",
        _queues(run, numbers["queues"]),
    ]
    if any(not flow.probe for flow in meta.flows):
        parts.append(_flows(run, numbers["flows"], numbers["groups"]))
    if numbers["probes"]:
        parts.append(_probes(numbers["probes"]))
    if alike:
        parts.append(words.alike_seeds(len(run.seeds)))
    parts += _programs(run)
    heading = [*filter(None, (work.refusal(run),)), *parts[:2]]
    return "\n".join([*heading, "", "\n\n".join(parts[2:]), ""])


_Time = Literal["mean", "p50", "p95", "p99", "max"]


def _queues(run: Run, queues: Sequence[QueueNumbers[MeanAndInterval[float]]]) -> str:
    # Links without a rate limit never queue.
    limited = [
        queue for queue in queues if run.meta.link(queue["link"]).rate_bps is not None
    ] or list(queues)
    # Hosts' own access links never drop, and there may be thousands. The tables and --json have
    # them.
    limited = [queue for queue in limited if run.meta.link(queue["link"]).sampled] or limited
    times: tuple[_Time, ...] = ("mean", "p50", "p95", "p99", "max")
    means = _mean_rates(run)
    header = ["link", "rate", "qdisc", "util %", "goodput Mbit/s", "dropped", "marked"]
    header += [f"sojourn {name} ms" if name == "mean" else f"{name} ms" for name in times]
    rows = [
        [
            queue["link"],
            _rate(run.meta.link(queue["link"]).rate_bps, means.get(queue["link"])),
            queue["qdisc"],
            text.percent(queue["utilisation"]),
            text.with_interval(queue["goodput_mbps"]),
            text.count(queue["dropped_packets"]),
            text.count(queue["marked_packets"]),
            *(text.with_interval(queue["sojourn_ms"][name]) for name in times),
        ]
        for queue in limited
    ]
    unmarked = ["marked"] if not any(queue["marked_packets"]["mean"] for queue in limited) else []
    spared = [*unmarked, "max ms", "p50 ms", "p99 ms", "marked", "goodput Mbit/s", "rate"]
    shown = text.fitted(header, rows, [*spared, "dropped", "util %"], left=3)
    if bars.drawable():
        courses = _courses(run)
        drawn = [
            "mean, over time",
            "",
            *(bars.sparkline(courses.get(queue["link"], ())) for queue in limited),
        ]
        beside = [
            f"{line}  {course}" for line, course in zip(shown.splitlines(), drawn, strict=False)
        ]
        if max(map(len, beside)) <= shutil.get_terminal_size().columns:
            shown = "\n".join([*beside, *shown.splitlines()[len(drawn) :]])
    return shown


def _mean_rates(run: Run) -> dict[str, float]:
    """The mean rate of each link (`metrics.mean_rates`), bit/s; empty if no link's rate varies. In
    that case no table is read and polars is not imported: its import takes longer than a short
    run."""
    from sojourn.metrics import mean_rates
    from sojourn.scenario import loads

    links = loads(run.scenario_text, folder=run.path).realise(run.seeds[0]).links
    return mean_rates(run) if any(len(link.rate) > 1 for link in links) else {}


def _rate(first: int | None, mean: float | None) -> str:
    """A link's rate; the mean if it varies: `mean 4.56 Mbit/s`."""
    return text.rate(first) if mean is None else f"mean {text.about_rate(mean)}"


COURSE_WIDE = 16


def _courses(run: Run) -> dict[str, list[float]]:
    """The mean sojourn time of each link over time, of all seeds and with the warm-up.

    Each list has `COURSE_WIDE` spans of equal length; NaN: no packet left in this span.
    """
    import polars as pl

    span = max(run.meta.duration_ns // COURSE_WIDE, 1)
    rows = (
        run.table("queue")
        .filter(pl.col("sojourn_mean_ns").is_not_null())
        .group_by(
            pl.col("link").cast(pl.String),
            # A row's time is the end of its interval.
            ((pl.col("t_ns") - 1) // span).clip(0, COURSE_WIDE - 1).alias("span"),
        )
        .agg(
            (pl.col("sojourn_mean_ns") * pl.col("sent_packets")).sum()
            / pl.col("sent_packets").sum()
        )
    )
    courses: dict[str, list[float]] = {}
    for link, at, mean in rows.iter_rows():
        courses.setdefault(link, [math.nan] * COURSE_WIDE)[int(at)] = mean
    return courses


def _flows(
    run: Run,
    flows: Sequence[FlowNumbers[MeanAndInterval[float]]],
    groups: Sequence[GroupNumbers[MeanAndInterval[float]]],
) -> str:
    """A row for all flows of an entry of the scenario: the sum of their goodput, the mean of their
    RTTs, and the waiting times of their users."""
    members: dict[int, list[FlowNumbers[MeanAndInterval[float]]]] = {}
    one_way = {info.group for info in run.meta.flows if info.one_way}
    for info, flow in zip(run.meta.flows, flows, strict=True):
        if not info.probe:
            members.setdefault(info.group, []).append(flow)
    from sojourn.metrics import LATE_MS
    from sojourn.traffic import is_kept

    shown: list[str] = []
    if any("transfers" in group for group in groups):
        asks = any(is_kept(group["kind"]) for group in groups)
        shown += ["done", "in mean ms", *(["p50 ms", "p95 ms", "p99 ms"] if asks else ["p95 ms"])]
    if any("mos" in group for group in groups):
        shown.append("MOS")
    if any("late_rate" in group for group in groups):
        shown.append(f"later than {LATE_MS:.0f} ms %")
    header = [
        "flows",
        "n",
        "kind",
        "goodput Mbit/s",
        "each",
        "loss %",
        "retransmits",
        "RTT mean ms",
        "idle",
        *shown,
    ]
    rows = []
    for (number, each), group in zip(members.items(), groups, strict=True):
        first, count = each[0], len(each)
        rtt = text.number(_mean([flow["rtt_ms"]["mean"]["mean"] for flow in each]))
        rows.append(
            [
                first["name"] if count == 1 else f"{first['name']} .. {each[-1]['name']}",
                str(count),
                f"{first['kind']} {first['congestion'] or ''}".rstrip(),
                text.with_interval(group["goodput_mbps"]),
                text.number(group["goodput_mbps"]["mean"] / count),
                text.number(100 * _mean([flow["loss_rate"]["mean"] for flow in each])),
                text.number(math.fsum(flow["retransmits"]["mean"] for flow in each), 0),
                # A flow without replies has no round trip: its delay is one way.
                f"one way {rtt}" if number in one_way else rtt,
                text.number(_mean([flow["base_rtt_ms"]["mean"] for flow in each])),
                *_waits(group, shown),
            ]
        )
    spared = ["retransmits", "each", "idle", "done", "n", "kind", "loss %", "RTT mean ms", "p50 ms"]
    return text.fitted(header, rows, spared, left=3)


def _waits(group: GroupNumbers[MeanAndInterval[float]], shown: Sequence[str]) -> list[str]:
    """The waiting times of an entry's users, in these columns."""
    from sojourn.traffic import is_kept

    cells = dict.fromkeys(shown, "")
    if "transfers" in group:
        took = group["transfers"]["completion_ms"]
        cells |= {
            "done": text.count(group["transfers"]["completed"]),
            "in mean ms": text.with_interval(took["mean"]),
            "p95 ms": text.with_interval(took["p95"]),
        }
        if is_kept(group["kind"]):
            cells |= {f"{key} ms": text.with_interval(took[key]) for key in ("p50", "p99")}
    if "mos" in group:
        cells["MOS"] = text.with_interval(group["mos"])
    if "late_rate" in group:
        cells[shown[-1]] = text.percent(group["late_rate"])
    return list(cells.values())


def _programs(run: Run) -> list[str]:
    """How the programs of each seed ended, and where their output is."""
    from sojourn import guest_programs

    rows = []
    for seed in run.seeds:
        record = guest_programs.read(run, seed)
        for one in record.programs if record else ():
            output = f"{run.path / f'seed-{seed}' / one.output} ({one.output_bytes} B)"
            rows.append([one.name, one.node, str(seed), one.how, output])
    header = ["program", "node", "seed", "ended", "output"]
    return [text.table(header, rows, left=5)] if rows else []


def _probes(probes: Sequence[ProbeNumbers[MeanAndInterval[float]]]) -> str:
    times: tuple[_Time, ...] = ("mean", "p50", "p95", "p99", "max")
    header = ["ping", "sent", "loss %", "idle ms", *(f"{name} ms" for name in times)]
    rows = [
        [
            probe["name"],
            text.number(probe["sent"]["mean"], 0),
            text.percent(probe["loss_rate"]),
            text.number(probe["base_rtt_ms"]["mean"]),
            *(text.with_interval(probe["rtt_ms"][name]) for name in times),
        ]
        for probe in probes
    ]
    return text.fitted(header, rows, ["sent", "max ms", "p50 ms", "p99 ms"])


def _mean(values: Sequence[Any]) -> float:
    known = [float(value) for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
