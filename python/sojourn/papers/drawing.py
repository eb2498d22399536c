"""What the papers' figures have in common: ours as a line with its 95 % interval, the published values as hollow marks.

figure, [[axes]] = sheet("Figure 2: delay over users", evidence, "users")
curve(axes, "RED", x, estimates, look("red"), published=values)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Estimate

Look = tuple[str, style.Dash]
"""Colour and dash."""


def look(qdisc: str) -> Look:
    """How a queue discipline looks in every figure: `look("codel")`."""
    return style.QDISCS[qdisc]


def sheet(
    title: str,
    evidence: Evidence,
    study: str,
    *,
    rows: Sequence[float] = (1,),
    columns: int = 1,
    size: tuple[float, float] = (10, 4.2),
    says: str = "",
    margins: style.Margins | None = None,
    spread: str = "95 % interval",
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with its title, a line that says what was run, and rows of axes. To be called under `style.drawn`.

    `rows`: relative heights. `size`: inches. `says`: what to add to the line under the title.
    `spread`: what the bars around a mean are; empty: there are none.
    """
    figure = style.blank(*size)
    said = " · ".join(filter(None, (what_was_run(evidence, study, spread), says)))
    top = style.heading(figure, title, said)
    around = margins or style.Margins(top=top + 0.2, left=0.85, right=0.35, bottom=0.55)
    return figure, style.panels(figure, around, rows, columns, gap=0.35)


def what_was_run(evidence: Evidence, study: str, spread: str = "95 % interval") -> str:
    """`engine sim · 5 seeds, mean ± 95 % interval · 100 s, the first 30 s left out`."""
    runs = [evidence.run(study, variant) for variant in evidence.variants(study)]
    meta = runs[0].meta
    seeds = len(runs[0].seeds)
    bars = f", mean ± {spread}" if spread else ""
    over = f"{seeds} seeds{bars}" if seeds > 1 else "one seed"
    quick = " · quick version" if evidence.quick else ""
    lengths = {(run.meta.duration_ns, run.meta.warmup_ns) for run in runs}
    length = f" · {meta.duration_ns / 1e9:g} s" if len(lengths) == 1 else ""
    if length and meta.warmup_ns:
        length += f", the first {meta.warmup_ns / 1e9:g} s left out"
    return f"engine {meta.engine} · {over}{length}{quick}"


def curve(
    axes: Axes,
    label: str,
    x: Sequence[float],
    ours: Sequence[Estimate],
    drawn: Look,
    *,
    published: Sequence[float | None] | None = None,
    marker: str = "o",
) -> None:
    """Our means joined by a line with their 95 % intervals; published values as hollow marks joined by dots."""
    colour, dash = drawn
    mean = np.array([one.mean for one in ours])
    half = np.array([0.0 if math.isnan(one.ci95) else one.ci95 for one in ours])
    axes.plot(x, mean, color=colour, linestyle=dash, marker=marker, markersize=3.5, label=f"{label}, ours")
    axes.errorbar(x, mean, yerr=half, fmt="none", ecolor=colour, elinewidth=0.9, capsize=2)
    if published is not None:
        known = [(at, value) for at, value in zip(x, published, strict=True) if value is not None]
        axes.plot(
            [at for at, _ in known],
            [value for _, value in known],
            color=colour,
            linestyle=":",
            linewidth=0.8,
            marker=marker,
            markersize=6,
            markerfacecolor="none",
            label=f"{label}, published",
        )


def legend(axes: Axes, columns: int = 1) -> None:
    """A legend where the lines leave room."""
    axes.legend(loc="best", ncols=columns)
