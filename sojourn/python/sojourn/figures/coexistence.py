"""The ratio of the goodputs of two kinds of flows that share a link, as a map over the link's rate
and the flows' RTT."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from sojourn.digits import on_page
from sojourn.errors import UserError
from sojourn.figures import series, style
from sojourn.judgement import likeness
from sojourn.records import Run
from sojourn.traffic import is_greedy

MOST = 8
"""A cell whose ratio is this or more, or at most the inverse, has the full colour."""


class NoCoexistenceError(UserError):
    """These Runs lack two kinds of flows to compare."""


@style.drawn
def coexistence(
    runs: Sequence[Run],
    first: str | None = None,
    second: str | None = None,
    *,
    ax: Axes | None = None,
    paper: style.Paper | None = None,
) -> Figure:
    """The goodput of one [[flow]] entry divided by that of another, as a map with a cell for each
    Run. The link's rate is on the vertical axis, the RTT on the horizontal one. The default entries
    are the first two of TCP."""
    series.check(runs)
    mine, other = _pair(runs, first, second)
    cells = [
        _Cell(run, link, mine, other)
        for run, link in zip(runs, series.bottlenecks(runs), strict=True)
    ]
    rates = sorted({cell.bps for cell in cells})
    rtts = sorted(
        {cell.rtt for cell in cells}, key=lambda rtt: min(c.rtt_ms for c in cells if c.rtt == rtt)
    )
    figure = style.blank(max(4.6, 1.6 + 0.85 * len(rtts)), max(2.6, 1.5 + 0.42 * len(rates)))
    said = "1 is an equal share; means over seeds"
    top = style.heading(figure, f"Goodput of {mine} over that of {other}", said)
    margins = style.Margins(top=top + 0.2, left=1.15, right=0.25, bottom=0.55)
    [[axes]] = style.panels(figure, margins, [1.0], 1)
    field = np.full((len(rates), len(rtts)), np.nan)
    for cell in cells:
        field[rates.index(cell.bps), rtts.index(cell.rtt)] = cell.ratio
    axes.imshow(
        np.log(field), origin="lower", aspect="auto", cmap=_COLOURS, vmin=-math.log(MOST), vmax=math.log(MOST)
    )  # fmt: skip
    axes.grid(visible=False)
    for (row, column), ratio in np.ndenumerate(field):
        if math.isfinite(ratio):
            axes.text(
                column, row, on_page(float(ratio)), ha="center", va="center", size=style.points(8.5), color=style.INK
            )  # fmt: skip
    axes.set_xticks(range(len(rtts)), rtts)
    axes.set_yticks(range(len(rates)), [f"{bps / 1e6:g} Mbit/s" for bps in rates])
    axes.set_xlabel("RTT by propagation")
    return figure


_COLOURS = LinearSegmentedColormap.from_list("shares", [style.ORANGE, "#ffffff", style.SKY])
"""The colours of the second flow, of an equal share, and of the first flow."""


def can_map(runs: Sequence[Run]) -> bool:
    """Whether there are several Runs that differ in rate or RTT and have two entries of TCP."""
    if len(runs) < 4:
        return False
    try:
        mine, _ = _pair(runs, None, None)
    except NoCoexistenceError:
        return False
    links = series.bottlenecks(runs)
    places = {
        (_bps(run, link), _rtt(run, mine, link)) for run, link in zip(runs, links, strict=True)
    }
    return len(places) == len(runs)


def _entries(run: Run) -> dict[int, str]:
    """The [[flow]] entries of endless TCP: the name of each, by number."""
    found: dict[int, str] = {}
    for flow in run.meta.flows:
        if flow.congestion is not None and is_greedy(flow.kind) and not flow.finite:
            found.setdefault(flow.group, flow.name.removesuffix(".1"))
    return found


def _pair(runs: Sequence[Run], first: str | None, second: str | None) -> tuple[str, str]:
    names = list(_entries(runs[0]).values())
    for asked in (first, second):
        if asked is not None and asked not in names:
            raise NoCoexistenceError(
                f"no [[flow]] entry {asked!r} that sends without end",
                f"there are: {', '.join(names) or 'none'}",
            )
    others = [name for name in names if name not in (first, second)]
    mine = first or (others.pop(0) if others else "")
    other = second or (others.pop(0) if others else "")
    if not mine or not other or any(set(_entries(run).values()) < {mine, other} for run in runs):
        raise NoCoexistenceError(
            "a map of coexistence needs two [[flow]] entries of TCP that send without end",
            "write a second one",
        )
    return mine, other


def _bps(run: Run, link: str | None) -> int:
    if link is None:
        return 0
    return run.meta.link(link).rate_bps or 0


def _rtt(run: Run, flow: str, link: str | None) -> tuple[str, float]:
    """The propagation RTT as a text and as a number to sort by, ms. The text is as written in the
    scenario; without one there, it is twice the sum of the links' delays."""
    written = likeness.facts(run).get(("flow", flow, "rtt"))
    info = next(one for one in run.meta.flows if one.name.removesuffix(".1") == flow)
    takes = 2 * sum(run.meta.link(name).delay_ns for name in info.path) / 1e6
    text = f"{takes:g} ms" if written is None else str(written)
    base = run.table("flows").filter(pl.col("flow") == info.name)["base_rtt_ns"].mean()
    return text, float(base) / 1e6 if isinstance(base, int | float) else takes


class _Cell:
    """A Run and its place in the map."""

    def __init__(self, run: Run, link: str | None, mine: str, other: str) -> None:
        self.bps = _bps(run, link)
        self.rtt, self.rtt_ms = _rtt(run, mine, link)
        groups = {name: group for group, name in _entries(run).items()}
        members = {
            name: [flow.name for flow in run.meta.flows if flow.group == groups[name]]
            for name in (mine, other)
        }
        flows = run.table("flows")
        delivered = {
            name: float(flows.filter(pl.col("flow").is_in(names))["delivered_bytes"].sum())
            for name, names in members.items()
        }
        self.ratio = delivered[mine] / delivered[other] if delivered[other] else math.nan
