"""The page's data: every line in several levels of detail, as base64 of little-endian float32.

A line of a million points is not drawn as a million points. It is thinned to the minimum and the
maximum of every few points, from coarse to fine (`LEVELS`). The page shows the coarsest level that
fills the window's columns, and a finer one when the user zooms in. Every level keeps the peaks.
Even the finest level of a long line may be thinned (`LEVELS[-1]`); the tables in the Run folder
have all points.
"""

from __future__ import annotations

import base64
import colorsys
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from sojourn.arrays import Floats, Json
from sojourn.digits import on_page
from sojourn.extras import Clock
from sojourn.figures import distribution, pings, series, style
from sojourn.figures.series import Line
from sojourn.records import Run
from sojourn.report import alignment

LEVELS = (700, 6_000, 50_000)
"""Buckets of each level of detail; a bucket has two points."""

COLUMNS = 400
"""Columns of the time lines over all seeds; a column has a mean of each seed."""

FEW = 12
"""Up to this many flows are drawn one by one. More are drawn as their median and a band of 80 %."""

MOST_IDLE = 2
"""The largest number of lines for idle RTTs, in addition to the pings."""

ROOM = 12_000_000
"""Limit for a page's time lines, bytes of base64. Seeds beyond it are left out."""

EVENTS = 50_000
"""The largest number of ticks of one cause; with more events, several share a tick."""


@dataclass
class Buffers:
    """Arrays of float32. Each is embedded once, even if several lines share it (mostly times)."""

    texts: list[str] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)
    size: int = 0

    def add(self, values: Floats) -> int:
        """Adds an array and returns its number for the page."""
        raw = np.ascontiguousarray(values, dtype="<f4").tobytes()
        if raw not in self._known:
            self._known[raw] = len(self.texts)
            self.texts.append(base64.b64encode(raw).decode("ascii"))
            self.size += len(self.texts[-1])
        return self._known[raw]

    def line(self, line: Line) -> list[list[int]]:
        """The levels of a line, coarse to fine, each (times, values)."""
        levels = []
        for buckets in LEVELS:
            thinned = series.thin(line, buckets)
            levels.append([self.add(thinned.t), self.add(thinned.y)])
            if thinned.t.size == line.t.size:
                break
        return levels


def payload(runs: Sequence[Run], watching: Mapping[int, Clock] = MappingProxyType({})) -> Json:
    """The data of the page's script. `watching`: the Runs of peers that watched the first Run, by
    number; their lines are drawn on the first Run's time axis."""
    buffers = Buffers()
    links = series.bottlenecks(runs)
    looks = style.looks(runs, links)
    views: list[Json] = []
    compared = [run for i, run in enumerate(runs) if i not in watching]
    common = alignment.common(compared)
    end_s = alignment.end_s(compared, common)
    left_out = 0

    @functools.cache
    def lines(i: int, seed: int) -> dict[str, Line]:
        return _lines(runs[i], seed, links[i])

    # Seed by seed over all Runs, so that a seed is left out of all Runs or of none.
    for nth in range(max(len(run.seeds) for run in runs)):
        if nth > 0 and buffers.size > ROOM:
            left_out = max(len(run.seeds) for run in runs) - nth
            break
        for i, run in enumerate(runs):
            if nth < len(run.seeds):
                seed = run.seeds[nth]
                shown = lines(i, seed)
                if i in watching:
                    views.append({"run": i, **_watched(seed, shown, watching[i], end_s, buffers)})
                    continue
                views.append({"run": i, **_view(run, seed, links[i], shown, buffers, common)})
    first = [lines(i, run.seeds[0]) for i, run in enumerate(runs) if run.seeds]
    means = [
        {"run": i, **found}
        for i, run in enumerate(runs)
        if (found := _means(run, [lines(i, seed) for seed in run.seeds], buffers)) is not None
    ]
    kept = {(view["run"], view["seed"]) for view in views}
    shown_lines = {
        name for key in kept for name, line in lines(*key).items() if _has_values(name, line)
    }
    for one in (*views, *means):
        one["lines"] = {name: found for name, found in one["lines"].items() if name in shown_lines}
    return {
        "duration": end_s,
        "warmup": max(run.meta.warmup_ns for run in runs) / 1e9,
        "runs": [
            {"name": look.label, "colour": both(look.colour), "dash": dash(look.dash)}
            for look in looks
        ],
        "views": views,
        "means": means,
        "above_rate": dict.fromkeys(
            sorted(
                way
                for run, link in zip(runs, links, strict=True)
                for way in series.above_rate(run, run.seeds[0], link)
            ),
            series.ABOVE_RATE,
        ),
        "ways": list(series.ways(runs, links)),
        "measured": all(map(series.is_measured, runs)),
        "repeats": "repeat" if all(map(series.is_measured, runs)) else "seed",
        "phases": _spans(common),
        "log": {
            key: spans_decades([found[line].y for found in first if line in found])
            for key, line in (("ping", "ping"), ("one_way", "one_way"), ("sojourn", "mean"))
        },
        "idle": _idle(compared, end_s, buffers),
        "left_out": left_out,
        "cdfs": _cdfs(runs, links, buffers),
        "shades": list(pings.SHADES),
        "buffers": buffers.texts,
    }


def _lines(run: Run, seed: int, link: str | None) -> dict[str, Line]:
    """The lines by which Runs are compared over time."""
    goodputs = series.goodputs(run, seed)
    probes = series.answered(run)
    shown: dict[str, Line] = {}
    if series.is_measured(run):
        shown = series.by_direction(run, goodputs)
    elif goodputs:
        here, elsewhere = series.by_way(run, goodputs, link)
        both_ways = here.t.size and elsewhere.t.size
        shown |= {"there": here, "back": elsewhere} if both_ways else {}
        shown |= {} if both_ways else {"goodput": series.total(list(goodputs.values()))}
    if probes:
        shown["ping"] = series.pings(run, seed, probes[0])
    if late := series.one_way_lines(run, seed):
        shown["one_way"] = series.largest(list(late.values()))
    if link is not None:
        table = series.queue(run, seed, link)
        shown["mean"] = series.column(table, "sojourn_mean_ns", 1e-6)
        shown["largest"] = series.column(table, "sojourn_max_ns", 1e-6)
        shown["backlog"] = series.column(table, "backlog_packets")
    return shown


def _has_values(name: str, line: Line) -> bool:
    """Whether a line shows anything: a value, for a backlog a value other than 0."""
    known = line.y[np.isfinite(line.y)]
    return bool(known.any() if name == "backlog" else known.size)


def _idle(runs: Sequence[Run], end_s: float, buffers: Buffers) -> list[Json]:
    """The RTTs of pings without a queue: a flat line for each value; none if there are too many
    values to distinguish."""
    found = {
        float(f"{rtt:.3g}")
        for run in runs
        if run.seeds and (probes := series.answered(run))
        if (rtt := series.idle_rtt(run, run.seeds[0], probes[0])) is not None
    }
    if len(found) > MOST_IDLE:
        return []
    return [_level(f"idle, {on_page(rtt)} ms", rtt, end_s, buffers) for rtt in sorted(found)]


def _level(label: str, value: float, end_s: float, buffers: Buffers) -> Json:
    """A flat line for a constant value."""
    flat = Line(np.array([0.0, end_s]), np.array([value, value]))
    return {**entry(label, flat, buffers, style.MUTED, dash_=style.SHORT), "level": True}


def _means(run: Run, of_seeds: list[dict[str, Line]], buffers: Buffers) -> Json | None:
    """The time lines over all seeds: the mean in each column, with the lowest and the highest seed.

    None for a single seed, and for measurements, whose phases are not synchronous.
    """
    if series.is_measured(run) or len(run.seeds) < 2:
        return None
    end = run.meta.duration_ns / 1e9
    lines: Json = {}
    edges = np.linspace(0, end, _columns(of_seeds) + 1)
    tops: dict[str, float] = {}
    for name in of_seeds[0]:
        if name == "largest":
            continue  # The band around the mean shows the same.
        values = np.ma.masked_invalid(
            [_binned(one[name], edges) for one in of_seeds if name in one]
        )
        low, mean, high = (
            np.asarray(row.filled(np.nan))
            for row in (values.min(axis=0), values.mean(axis=0), values.max(axis=0))
        )
        lines[name] = [buffers.add(row) for row in (low, mean, high)]
        tops |= _tops({name: Line(edges[1:], mean)})
    return {"t": buffers.add((edges[:-1] + edges[1:]) / 2), "lines": lines, "tops": tops}


def _tops(lines: dict[str, Line]) -> dict[str, float]:
    """The ends of the goodput axes. Segments delivered after a loss was repaired make peaks that
    must not set the scale."""
    return {
        name: series.ceiling(line) or float(np.nanmax(line.y, initial=0.0))
        for name, line in lines.items()
        if name in ("goodput", "there", "back")
    }


def _columns(of_seeds: Sequence[dict[str, Line]]) -> int:
    """The number of columns: few enough that every line has a value in each."""
    fewest = min((line.t.size for one in of_seeds for line in one.values()), default=COLUMNS)
    return max(min(COLUMNS, fewest), 1)


def _binned(line: Line, edges: Floats) -> Floats:
    """The mean of a line's values in each column; NaN without values. A value at an edge belongs to
    the column that ends there, since a sample is of the time before it."""
    known = np.isfinite(line.y)
    t = line.t[known] - 1e-6 * (edges[1] - edges[0])
    counts, _ = np.histogram(t, edges)
    sums, _ = np.histogram(t, edges, weights=line.y[known])
    return np.asarray(np.divide(sums, counts, out=np.full(counts.size, np.nan), where=counts > 0))


# ---------------------------------------------------------------------------------- one time line


def _view(
    run: Run,
    seed: int,
    link: str | None,
    shown: dict[str, Line],
    buffers: Buffers,
    common: alignment.Spans,
) -> Json:
    own = series.spans(run, seed)
    lines: Json = {
        name: buffers.line(alignment.aligned(line, own, common))
        for name, line in shown.items()
        if np.isfinite(line.y).any() or not series.is_measured(run)
    }
    return {
        "seed": seed,
        "lines": lines,
        "tops": _tops(shown),
        "phases": _spans(own),
        "panels": _panels(run, seed, link, buffers),
        "density": [_density(run, seed, probe, buffers) for probe in series.answered(run)[:4]],
    }


def _watched(
    seed: int, shown: dict[str, Line], time: Clock, until_s: float, buffers: Buffers
) -> Json:
    """The lines of a peer that are compared, on the first Run's time."""
    lines: Json = {
        name: buffers.line(moved)
        for name, line in shown.items()
        if np.isfinite((moved := alignment.watched(line, time, until_s)).y).any()
    }
    return {
        "seed": seed,
        "lines": lines,
        "tops": _tops(shown),
        "phases": [],
        "panels": [],
        "density": [],
    }


def _spans(spans: alignment.Spans) -> list[Json]:
    """The phases that the page shades."""
    return [
        {
            "name": name,
            "start": start,
            "end": end,
            "colour": None if name.startswith("idle") else both(style.phase_colour(name)),
        }
        for name, start, end in spans
    ]


def _panels(run: Run, seed: int, link: str | None, buffers: Buffers) -> list[Json]:
    """The panels of one Run, from top to bottom, as in `figures.timeline`."""
    looks = {flow.name: style.flow_look(i) for i, flow in enumerate(series.carriers(run))}
    table = series.queue(run, seed, link)
    panels: list[Json] = []

    def add(title: str, unit: str, entries: list[Json], **more: Any) -> None:
        if entries:
            panels.append({"title": title, "unit": unit, "log": False, "series": entries} | more)

    goodputs, cwnds = series.goodputs(run, seed), series.cwnds(run, seed)
    measured = series.is_measured(run)
    if measured:
        # Connections begin and end with the phases, so each direction's sum is shown.
        goodputs, cwnds = series.by_direction(run, goodputs), series.by_direction(run, cwnds)
        looks = {word: (style.phase_colour(word), style.SOLID) for word in series.WAYS.values()}
    together = series.total(list(goodputs.values()))
    top = series.ceiling(together)
    capped = (
        {"top": top, "hint": f"peaks above the axis: {series.PEAKS}"} if top is not None else {}
    )
    total = []
    if len(goodputs) > 1 and not measured:
        # Dashed, because the seventh flow's line is black and solid.
        total = [entry("all flows", together, buffers, INK, width=1.8, dash_=style.LONG)]
    if len(goodputs) > FEW:
        add("Goodput", "Mbit/s", total, **capped)
        add(f"Goodput of each of the {len(goodputs)} flows", "Mbit/s", _spread(goodputs, buffers))
    else:
        add("Goodput", "Mbit/s", [*_flows(goodputs, looks, buffers), *total], **capped)

    waits = _waits(run, seed, None if link is None else table)
    drawn = [entry(label, line, buffers, colour, **more) for label, line, colour, more in waits]
    logarithmic = spans_decades([line.y for _, line, _, _ in waits])
    add("RTT of each target" if measured else "Sojourn and ping", "ms", drawn, log=logarithmic)

    late = series.one_way_lines(run, seed)
    add(
        distribution.WORDS["one_way"].capitalize(),
        "ms",
        _spread(late, buffers) if len(late) > FEW else _flows(late, looks, buffers),
        log=spans_decades([line.y for line in late.values()]),
        hint="the largest of each sample",
    )

    if link is not None:
        _queue_panels(run, link, table, buffers, add)
        if ticks := _losses(run, seed, link, buffers):
            panels.append({"title": "Drops and marks", "unit": "", "ticks": ticks})

    add(
        "cwnd of each direction's connections together" if measured else "cwnd",
        "kB",
        _spread(cwnds, buffers) if len(cwnds) > FEW else _flows(cwnds, looks, buffers),
    )
    return panels


def _waits(run: Run, seed: int, table: Any) -> list[tuple[str, Line, str, dict[str, Any]]]:
    """The sojourn times, if there is a queue, and the RTTs: label, line, colour, and other
    properties."""
    waits: list[tuple[str, Line, str, dict[str, Any]]] = []
    for name, label, colour, width in (
        ("sojourn_max_ns", "sojourn, largest", style.SKY, 1.0),
        ("sojourn_mean_ns", "sojourn, mean", style.BLUE, 1.6),
    ):
        line = None if table is None else series.column(table, name, 1e-6)
        if line is not None and (np.isfinite(line.y).any() or not series.is_measured(run)):
            waits.append((label, line, colour, {"width": width}))
    for name, line in series.two_queues(table).items() if table is not None else ():
        waits.append((name, line, style.TWO_QUEUES[name], {"width": 1.0}))
    colours = (style.VERMILLION, style.PURPLE, style.ORANGE, "#8a7a00")
    for probe, colour in zip(series.answered(run), colours, strict=False):
        waits.append((f"{probe}, RTT", series.pings(run, seed, probe), colour, {"dots": True}))
    return waits


def _losses(run: Run, seed: int, link: str, buffers: Buffers) -> list[Json]:
    return [
        {
            "label": f"{one.name} ({one.t.size})",
            "name": one.name,
            "colour": both(style.CAUSES.get(one.cause, style.MUTED)),
            "t": buffers.add(_ticks(one.t, run.meta.duration_ns / 1e9)),
        }
        for one in series.losses(run, seed, link)
    ]


def _queue_panels(run: Run, link: str, table: Any, buffers: Buffers, add: Any) -> None:
    state = series.state(table, run.meta.link(link))
    backlog = (
        series.column(table, "backlog_bytes", 1e-3)
        if state.in_bytes
        else series.column(table, "backlog_packets")
    )
    unit = "kB" if state.in_bytes else "packets"
    entries = [entry("backlog", backlog, buffers, style.BLUE, fill=True)]
    for i, (name, line) in enumerate(state.same_unit.items()):
        entries.append(
            entry(name, line, buffers, (style.VERMILLION, style.GREEN)[i % 2], width=1.6)
        )
    most = float(np.nanmax(backlog.y)) if np.isfinite(backlog.y).any() else 0.0
    remark = ""
    for name, level in state.levels.items():
        # A limit far above the backlog would flatten the curve, so it is written in the heading
        # instead.
        if level <= 1.6 * max(most, 1.0):
            label = f"{name} {on_page(level)} {unit}"
            entries.append(_level(label, level, run.meta.duration_ns / 1e9, buffers))
        else:
            remark += f"; {name} {on_page(level)} {unit}, off the scale"
    if most > 0:
        add(f"Backlog of {link}{remark}", unit, entries)
    if state.own is not None:
        name, line = state.own
        title = {
            "count": "CoDel's count of drops in this dropping state",
            "flows": "Flows with packets in the queue",
        }
        add(title.get(name, name.capitalize()), "", [entry(name, line, buffers, style.VERMILLION)])


def _flows(
    lines: dict[str, Line], looks: dict[str, tuple[str, style.Dash]], buffers: Buffers
) -> list[Json]:
    return [
        {**entry(name, line, buffers, looks[name][0], dash_=looks[name][1]), "flow": name}
        for name, line in lines.items()
    ]


def _spread(lines: dict[str, Line], buffers: Buffers) -> list[Json]:
    t, (low, median, high) = series.quantiles(list(lines.values()), (0.1, 0.5, 0.9))
    return [
        entry("90 % are below", Line(t, high), buffers, style.SKY, width=0.8),
        entry("10 % are below", Line(t, low), buffers, style.SKY, width=0.8, dash_=style.SHORT),
        entry("median", Line(t, median), buffers, style.BLUE, width=1.6),
    ]


def _ticks(t: Floats, end: float) -> Floats:
    if t.size <= EVENTS:
        return t
    return np.asarray(np.unique((t / end * EVENTS).astype(np.int64)) * (end / EVENTS))


def _density(run: Run, seed: int, probe: str, buffers: Buffers) -> Json:
    columns = series.density(series.pings(run, seed, probe), run.meta.duration_ns / 1e9)
    return {
        "probe": probe,
        "column": columns.column_s,
        "t": buffers.add(columns.t),
        "rows": [buffers.add(row) for row in columns.rtt_ms],
        "sent": buffers.add(columns.sent.astype(np.float64)),
        "lost": buffers.add(columns.lost.astype(np.float64)),
    }


def spans_decades(values: Sequence[Floats]) -> bool:
    """Whether these need a logarithmic axis: most of them span more than a factor of 30."""
    together = np.concatenate(values) if values else np.empty(0)
    together = together[np.isfinite(together) & (together > 0)]
    return bool(together.size and together.max() / np.quantile(together, 0.02) > 30)


# ---------------------------------------------------------------------------------- distributions


def _cdfs(runs: Sequence[Run], links: Sequence[str | None], buffers: Buffers) -> list[Json]:
    if all(map(series.is_measured, runs)):
        return _cdfs_of_phases(runs, buffers)
    found = []
    for what in ("ping", "completion", "one_way", "sojourn", "rtt"):
        curves = [
            distribution.distribution(run, what, link)
            for run, link in zip(runs, links, strict=True)
        ]
        found += _cdf(
            f"CDF of the {distribution.WORDS[what]}",
            curves,
            [{"run": i} for i in range(len(runs))],
            buffers,
        )
    return found


def _cdfs_of_phases(runs: Sequence[Run], buffers: Buffers) -> list[Json]:
    """For one measurement a chart with a curve for each phase; for several measurements a chart for
    each phase."""
    names = series.phase_names(runs)
    if len(runs) == 1:
        target = next(iter(series.answered(runs[0])), "")
        looks = [
            {
                "label": look.label,
                "colour": both(look.colour) if look.colour != style.INK else INK,
                "dash": dash(look.dash),
            }
            for look in distribution.phase_looks(names)
        ]
        curves = [series.ping_rtts(runs[0], target, name) for name in names]
        return _cdf(f"CDF of the RTT to {target}, phase by phase", curves, looks, buffers)
    found = []
    for name in names:
        curves = [series.ping_rtts(run, phase=name) for run in runs]
        found += _cdf(
            f"CDF of the ping RTT, {name}", curves, [{"run": i} for i in range(len(runs))], buffers
        )
    return found


def _cdf(
    title: str, curves: Sequence[series.Distribution], who: Sequence[Json], buffers: Buffers
) -> list[Json]:
    """A list with one chart; empty without samples. `who`: the Run of each curve, or its own
    look."""
    seen = [curve for curve in curves if curve.samples]
    if not seen:
        return []
    positive = np.concatenate([curve.x[curve.x > 0] for curve in seen])
    least = min(max(curve.quantile(0.01), 1e-6) for curve in seen)
    log = bool(positive.size and positive.max() / least > 8)
    entries = []
    for own, curve in zip(who, curves, strict=True):
        if curve.samples:
            x, fraction = curve.drawn(max(least / 1.5, float(positive.max()) / 1e5) if log else 0.0)
            x, fraction = _ascending(x, fraction * 100)
            entries.append({**own, "x": buffers.add(x), "y": buffers.add(fraction)})
    return [{"title": title, "unit": "ms", "log": log, "series": entries}]


def _ascending(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """At most 1000 points of a curve, one for each x. Of several points with one x the last is
    kept, because the curve ends there."""
    if x.size > 1000:
        at = np.unique(np.linspace(0, x.size - 1, 1000).astype(np.int64))
        x, y = x[at], y[at]
    x = x.astype(np.float32).astype(np.float64)
    last = np.append(np.diff(x) > 0, True)
    # A curve that jumps at its first x starts at 0 there.
    keep_x, keep_y = x[last], y[last]
    return np.insert(keep_x, 0, np.nextafter(np.float32(keep_x[0]), np.float32(-1))), np.insert(
        keep_y, 0, 0.0
    )


# -------------------------------------------------------------------------------- colours, dashes

INK = "ink"


def entry(
    label: str, line: Line, buffers: Buffers, colour: str, *, width: float = 1.2, dash_: style.Dash = style.SOLID,
    dots: bool = False, fill: bool = False,
) -> Json:  # fmt: skip
    """A series of a panel."""
    properties: Json = {
        "label": label,
        "colour": colour if colour == INK else both(colour),
        "dash": dash(dash_),
        "width": width,
        "line": buffers.line(line),
    }
    return properties | ({"dots": True} if dots else {}) | ({"fill": True} if fill else {})


def both(colour: str) -> list[str]:
    """A colour for a light page, and its lighter version for a dark one. All colours are lightened
    alike, so they stay distinct."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    lifted = colorsys.hls_to_rgb(hue, 0.45 + 0.5 * lightness, saturation)
    return [colour, "#" + "".join(f"{round(255 * part):02x}" for part in lifted)]


def dash(pattern: style.Dash) -> list[float]:
    """A matplotlib dash pattern for a canvas; empty: solid."""
    return [] if isinstance(pattern, str) else [round(2 * part, 1) for part in pattern[1]]
