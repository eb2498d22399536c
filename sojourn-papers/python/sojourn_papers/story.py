"""The overview's picture: the delay of empty, bloated and cured queues in each paper's system.

All share one logarithmic axis, because that is the point: the same cure works from a home line of
1 Mbit/s to a router of 200 Mbit/s. The cost of the cure is written beside its delay.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.digits import on_page as number
from sojourn.figures import style
from sojourn_papers.drawing import note, stated_mark
from sojourn_papers.paper import Bar
from sojourn_papers.reproduction import Reproduction

SENTENCE = "A queue that stands full adds its whole length to every packet's delay; short or controlled queues carry nearly as much with a fraction of the delay."

_COLOURS = {"idle": style.MUTED, "bloated": style.VERMILLION, "cured": style.BLUE}
_NAMES = {"idle": "empty queues", "bloated": "bloated", "cured": "cured"}
_ROW, _LABELS, _EDGE = 0.24, 2.9, 0.15
"""Height of a row, width of the labels left of the bars, and the margin, inches."""


@style.drawn
def draw(found: Sequence[Reproduction]) -> Figure:
    """The picture, from the papers' stories."""
    stories = [(one, list(one.evidence.asked(one.paper.story) or ())) for one in found]
    rows = sum(len(bars) for _, bars in stories) + 1.4 * len(stories)
    figure = style.blank(10, rows * _ROW + 1.5)
    engine = sorted({run.meta.engine for one in found for run in one.evidence.runs.values()})
    top = style.heading(
        figure,
        "Bufferbloat and its cures, in the systems of " + _named(found),
        f"engine {', '.join(engine)} · mean over seeds · beside each delay what its cure cost",
    )
    axes = style.panels(
        figure, style.Margins(top=top + 0.25, left=_LABELS, right=2.1, bottom=0.55)
    )[0][0]
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel("delay [ms], logarithmic")
    axes.grid(axis="y", visible=False)
    axes.set_yticks([])
    shown = [bar for _, bars in stories for bar in bars]
    delays = [
        delay for bar in shown for delay in (bar.delay_ms, bar.published_ms or 0.0) if delay > 0
    ] or [1.0]
    least = min(delays) / 2
    at = 0.0
    for one, bars in stories:
        name = f"{one.paper.id}: {one.paper.story_axis}"
        # The text begins at the figure's edge and crosses the panel, as its row has no bar.
        left = 72 * (_EDGE - _LABELS)
        note(axes, name, (0, at), (left, 0), of="row", size=8.5, va="center", weight="bold")
        at += 1.05
        for bar in bars:
            _bar(axes, bar, at, least)
            at += 1.0
        at += 0.35
    axes.set(ylim=(at - 0.5, -0.7), xlim=(least, max(delays) * 1.6))
    for x, (kind, name) in enumerate(_NAMES.items()):
        note(axes, f"● {name}", (0, 1), (95 * x, 5), of="panel", colour=_COLOURS[kind], va="bottom")
    if any(bar.published_ms is not None for bar in shown):
        note(axes, "◇ published", (0, 1), (95 * len(_NAMES), 5), of="panel", va="bottom")
    return figure


def _named(found: Sequence[Reproduction]) -> str:
    """The papers' names, or their number if the names would be too long."""
    return f"{len(found)} papers" if len(found) > 3 else ", ".join(one.paper.id for one in found)


def _bar(axes: Axes, bar: Bar, at: float, least: float) -> None:
    delay = max(bar.delay_ms, least)
    # A dot and not a bar, because a logarithmic axis has no zero.
    axes.plot([delay], [at], "o", markersize=7, color=_COLOURS[bar.kind], clip_on=False)
    note(axes, style.shorten(bar.label, 44), (0, at), (-6, 0), of="row", ha="right", va="center")
    said = f"{number(bar.delay_ms)} ms" + (f" · {bar.cost}" if bar.cost else "")
    end = delay
    if bar.published_ms is not None:
        stated_mark(axes, bar.published_ms, at, "published", markersize=5, clip_on=False)
        # The text would cover a mark just behind the bar's end.
        end = max(delay, bar.published_ms * 1.05) if bar.published_ms < 2 * delay else delay
    note(axes, said, (end, at), (8, 0), size=7.5, ha="left", va="center")
