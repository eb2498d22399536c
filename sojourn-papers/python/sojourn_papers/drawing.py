"""Common parts of the papers' figures: our values as a line with 95 % intervals, the published
values as hollow marks.

figure, [[axes]] = sheet("Figure 2: delay over users", evidence, USERS)
curve(axes, "RED", evidence.over(variants, m.delay_ms), look("red"), published=values)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Annotation
from numpy.typing import NDArray

from sojourn.figures import style
from sojourn_papers.evidence import Estimate, Evidence
from sojourn_papers.study import Study

Look = tuple[str, style.Dash]
"""Colour and dash."""


def look(qdisc: str) -> Look:
    """A queue discipline's colour and dash in every figure: `look("codel")`."""
    return style.QDISCS[qdisc]


def sheet(
    title: str,
    evidence: Evidence,
    study: Study,
    *,
    rows: Sequence[float] = (1,),
    columns: int = 1,
    size: tuple[float, float] = (10, 4.2),
    says: str = "",
    margins: style.Margins | None = None,
    spread: str = "95 % interval",
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with its title, a line that describes the runs, and rows of axes. Call it under
    `style.drawn`.

    `rows`: relative heights. `size`: inches. `says`: text added to the line under the title.
    `spread`: the name of the bars around a mean; empty: there are none.
    """
    figure = style.blank(*size)
    said = " · ".join(filter(None, (what_was_run(evidence, study, spread), says)))
    top = style.heading(figure, title, said)
    around = margins or style.Margins(top=top + 0.2, left=0.85, right=0.35, bottom=0.55)
    return figure, style.panels(figure, around, rows, columns, gap=0.35)


def what_was_run(evidence: Evidence, study: Study, spread: str = "95 % interval") -> str:
    """`engine sim · 5 seeds, mean ± 95 % interval · 100 s, the first 30 s left out`."""
    variants = evidence.variants(study)
    runs = [evidence.run(variant) for variant in variants if variant in evidence.runs]
    if not runs:
        return f"{evidence.searched.made}, mean{f' ± {spread}' if spread else ''}"
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
    ours: Mapping[int, Estimate] | Mapping[float, Estimate],
    drawn: Look,
    *,
    published: Mapping[int, float] | Mapping[float, float] | None = None,
    marker: str = "o",
) -> None:
    """Our means over x joined by a line, with their 95 % intervals; published values as hollow
    marks joined by dots."""
    colour, dash = drawn
    x = list(ours)
    mean = np.array([one.mean for one in ours.values()])
    spread = [half(one) for one in ours.values()]
    axes.plot(
        x, mean, color=colour, linestyle=dash, marker=marker, markersize=3.5, label=f"{label}, ours"
    )
    axes.errorbar(x, mean, yerr=spread, fmt="none", ecolor=colour, elinewidth=0.9, capsize=2)
    if published is not None:
        known = [(at, value) for at, value in published.items() if at in ours]
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


@dataclass(frozen=True)
class Series:
    """The values of one look in each group of `grouped`."""

    name: str
    colour: str
    ours: Sequence[Estimate | None]
    """By group; None: not run."""
    published: Sequence[float | None] = ()


def grouped(
    axes: Axes,
    groups: Sequence[str],
    series: Sequence[Series],
    shown: Callable[[float], str],
) -> None:
    """Dots with their 95 % intervals, side by side in each group. They are not bars, because a
    logarithmic axis has no zero. Published values are hollow diamonds."""
    step = 0.8 / len(series)
    labels: list[tuple[Annotation, float]] = []
    for i, one in enumerate(series):
        places = [group + (i - (len(series) - 1) / 2) * step for group in range(len(groups))]
        known = [(at, ours) for at, ours in zip(places, one.ours, strict=True) if ours is not None]
        x, means = [at for at, _ in known], [ours.mean for _, ours in known]
        spread = [half(ours) for _, ours in known]
        axes.plot(x, means, "o", markersize=5, color=one.colour, label=one.name)
        axes.errorbar(
            x, means, yerr=spread, fmt="none", ecolor=one.colour, elinewidth=0.9, capsize=2
        )
        for at, ours in known:
            top = ours.mean + half(ours)
            centred: dict[str, Any] = {"ha": "center", "va": "bottom"}
            labels.append((note(axes, shown(ours.mean), (at, top), (0, 4), size=7, **centred), top))
        stated = [
            (at - 0.3 * step, value)
            for at, value in zip(places, one.published or (), strict=False)
            if value is not None
        ]
        if stated:
            hollow: dict[str, Any] = {"markersize": 6, "markerfacecolor": "none"}
            label = f"{one.name}, published"
            axes.plot(*zip(*stated, strict=True), "D", color=one.colour, label=label, **hollow)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.grid(axis="x", visible=False)

    def keep_in(axes: Axes) -> None:
        # An interval may end outside the panel; the number above it must stay in the figure.
        for label, top in labels:
            label.xy = (label.xy[0], min(top, axes.get_ylim()[1]))

    axes.callbacks.connect("ylim_changed", keep_in)


def half(one: Estimate) -> float:
    """Half the width of the 95 % interval, for an error bar; 0 with one seed, which has no
    interval."""
    return 0.0 if math.isnan(one.ci95) else one.ci95


Frame = Literal["data", "panel", "row", "column"]
_FRAMES: Mapping[str, Any] = {
    "data": "data",
    "panel": "axes fraction",
    "row": ("axes fraction", "data"),
    "column": ("data", "axes fraction"),
}


def note(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    by: tuple[float, float] = (0, 0),
    *,
    of: Frame = "data",
    size: float = 8,
    colour: str = style.INK,
    **more: Any,
) -> Annotation:
    """Text in a panel or beside it, `by` points from `at`.

    `of`: whether `at` is (x, y) in "data", shares of the "panel", a "row" (share of the width, y)
    or a "column" (x, share of the height). `more`: `ha`, `va`, `weight`.
    """
    return axes.annotate(
        text,
        at,
        xycoords=_FRAMES[of],
        xytext=by,
        textcoords="offset points",
        size=size,
        color=colour,
        annotation_clip=False,
        parse_math=False,
        **more,
    )


def stated_level(axes: Axes, value: float, label: str | None = None) -> None:
    """A published value of a whole panel: a dotted line."""
    axes.axhline(value, color=style.INK, linestyle=":", linewidth=0.9, label=label)


def stated_mark(axes: Axes, x: float, y: float, label: str, **more: Any) -> None:
    """A published value at one place: a hollow mark. `more`: `marker`, `color`, `clip_on`."""
    hollow: dict[str, Any] = {"markersize": 7, "markerfacecolor": "none", "linestyle": "none"}
    looks = {"marker": "D", "color": style.INK, **hollow, **more}
    axes.plot([x], [y], label=label, **looks)


def level(axes: Axes, value: float, text: str, *, right: bool = True) -> None:
    """`stated_level` with a text at one end."""
    stated_level(axes, value)
    x, by = (1, (-2, 2)) if right else (0, (4, 3))
    note(
        axes, text, (x, value), by, of="row", size=7.5, ha="right" if right else "left", va="bottom"
    )


def row_labels(axes: Axes, labels: Sequence[str]) -> None:
    """A row for each label, the first on top, and no lines between them."""
    axes.set_yticks(range(len(labels)), list(labels))
    axes.tick_params(axis="y", labelcolor=style.INK)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(len(labels) - 0.5, -0.5)


def ticks(axes: Axes, at: Sequence[float], axis: Literal["x", "y"] = "x") -> None:
    """Ticks at these values only."""
    where = axes.set_xticks if axis == "x" else axes.set_yticks
    where(list(at), [f"{one:g}" for one in at])
    axes.minorticks_off()


FIELDS: WeakKeyDictionary[AxesImage, NDArray[np.float64]] = WeakKeyDictionary()
"""The numbers of each drawn grid. Its image contains only their colours."""


def grid_of_numbers(
    axes: Axes,
    fields: NDArray[np.float64],
    shown: Callable[[float], str],
    colours: NDArray[np.float64],
    **look: Any,
) -> None:
    """A field for each row and column, the first row at the bottom. `colours`: the argument of
    `imshow`. `fields`: the numbers; `shown` formats them."""
    FIELDS[axes.imshow(colours, origin="lower", aspect="auto", **look)] = fields
    axes.grid(visible=False)
    for (row, column), value in np.ndenumerate(fields):
        axes.text(
            column, row, shown(float(value)), ha="center", va="center", size=8, color=style.INK
        )


def legend(axes: Axes, columns: int = 1) -> None:
    """A legend at the place with the fewest lines."""
    axes.legend(loc="best", ncols=columns)
