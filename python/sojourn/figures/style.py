"""The look of our figures, in one place: colours, line styles, titles, and files that are the same
on every rerun.

Each queue discipline has one colour and one dash everywhere. The palette of Okabe and Ito (Color
Universal Design, 2008) is distinct for any colour vision; the dash is distinct on a grey printer.
Several Runs of one discipline (a sweep of its limit, for example) share its hue, from dark to
light, and differ in dash.

Nothing here touches pyplot or its global state. A figure is a `matplotlib.figure.Figure`, drawn
under `sheet()`.
"""

from __future__ import annotations

import colorsys
import functools
import io
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, ParamSpec

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.errors import UserError
from sojourn.judgement import likeness
from sojourn.records import Run

INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#dddddd"
LOST = "#c0392b"
"""Lost probes and drops."""

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"
OLIVE = "#8a7a00"

Dash = Literal["-"] | tuple[float, tuple[float, ...]]

SOLID: Dash = "-"
LONG: Dash = (0, (7, 2))
SHORT: Dash = (0, (3.5, 1.5))
DOTTED: Dash = (0, (1.2, 1.4))
DASH_DOT: Dash = (0, (6, 1.6, 1.2, 1.6))
DASH_DOT_DOT: Dash = (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5))
DASHES = (SOLID, LONG, SHORT, DASH_DOT, DOTTED, DASH_DOT_DOT)

QDISCS: dict[str, tuple[str, Dash]] = {
    "pfifo": (VERMILLION, SOLID),
    "pfifo_fast": (VERMILLION, LONG),
    "bfifo": (ORANGE, LONG),
    "pfifo_head_drop": (ORANGE, DOTTED),
    "red": (PURPLE, DASH_DOT),
    "codel": (SKY, SHORT),
    "fq_codel": (BLUE, SOLID),
    "fq": (BLUE, DASH_DOT),
    "adt": (GREEN, DASH_DOT_DOT),
    "pie": (OLIVE, SHORT),
    "fq_pie": (OLIVE, SOLID),
    "sfq": (GREEN, LONG),
    "sfb": (SKY, DASH_DOT),
    "choke": (PURPLE, LONG),
    "prio": (VERMILLION, DASH_DOT),
    "ets": (VERMILLION, SHORT),
    "hhf": (OLIVE, LONG),
    "tbf": (ORANGE, DASH_DOT),
    "cake": (GREEN, SOLID),
    "cobalt": (GREEN, SHORT),
}
"""A discipline's colour and dash."""

FLOWS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, OLIVE)
"""Colours of flows within one Run. Yellow is left out because it vanishes on white."""

CAUSES = {
    "limit": VERMILLION,
    "target": BLUE,
    "ce_threshold": SKY,
    "early": PURPLE,
    "forced": ORANGE,
    "overmemory": OLIVE,
    "wire": MUTED,
    "blue": GREEN,
    "ack_filter": BLACK,
}
"""Colours of the causes of drops and marks."""

_SHEET: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # For the same bytes on every rerun: ids in an SVG are salted hashes, text stays text, fonts are
    # embedded as TrueType.
    "svg.hashsalt": "sojourn",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "path.simplify": True,
}


@contextmanager
def sheet() -> Iterator[None]:
    """Our style sheet, over matplotlib's defaults and not over the user's own settings."""
    with matplotlib.style.context(_SHEET, after_reset=True):
        yield


_P = ParamSpec("_P")


def drawn(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """A function that draws a figure, wrapped so that it draws under our style sheet."""

    @functools.wraps(draw)
    def under_sheet(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with sheet():
            return draw(*args, **kwargs)

    return under_sheet


# ------------------------------------------------------------------------------------- who is who


@dataclass(frozen=True)
class Look:
    """How one Run is drawn wherever it appears."""

    label: str
    colour: str
    dash: Dash
    marker: str


MARKERS = "osD^vPX<>*"


def looks(runs: Sequence[Run], links: Sequence[str | None]) -> list[Look]:
    """The look of each Run, from the qdisc of the link it is shown for. Labels are made unique."""
    labels = likeness.labels(runs)
    if all(run.meta.phases for run in runs):
        # Measurements don't differ by their local qdisc, so it chooses no colour.
        return [
            Look(label, *flow_look(i), MARKERS[i % len(MARKERS)]) for i, label in enumerate(labels)
        ]
    kinds = [qdisc_kind(run, link) for run, link in zip(runs, links, strict=True)]
    found = []
    for i, (label, kind) in enumerate(zip(labels, kinds, strict=True)):
        nth, of = kinds[:i].count(kind), kinds.count(kind)
        colour, dash = QDISCS.get(kind, (MUTED, SOLID))
        if of > 1:
            colour = _shade(colour, nth / (of - 1))
            start = DASHES.index(dash)
            dash = DASHES[(start + nth) % len(DASHES)]
        found.append(Look(label, colour, dash, MARKERS[i % len(MARKERS)]))
    return found


def qdisc_kind(run: Run, link: str | None) -> str:
    """The first of the tc words of the link's qdisc: "fq_codel"."""
    words = run.meta.link(link).qdisc.split() if link is not None else []
    return words[0] if words else ""


def _shade(colour: str, position: float) -> str:
    """The same hue from dark (0) to light (1)."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, _, saturation = colorsys.rgb_to_hls(red, green, blue)
    rgb = colorsys.hls_to_rgb(hue, 0.27 + 0.36 * position, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)


def flow_look(i: int) -> tuple[str, Dash]:
    """Colour and dash of the i-th flow of a Run."""
    return FLOWS[i % len(FLOWS)], DASHES[i % len(DASHES)]


# -------------------------------------------------------------------------------- figure and axes


def heading(figure: Figure, title: str, subtitle: str) -> float:
    """Draws the title, a sentence that states the scenario, and the line under it: engine, seeds,
    warm-up.

    Both are wrapped to the figure's width. Returns their height in inches.
    """
    width, height = figure.get_size_inches()
    # A bold character of DejaVu Sans at 11 points is 0.09 inches wide on average, a normal one at 8
    # points 0.058.
    lines = _wrap(title, int((width - 0.3) / 0.096))
    subtitles = _wrap(subtitle, int((width - 0.3) / 0.0605))
    top = 0.12
    for text, size, colour, weight in [
        *((line, 11.0, INK, "bold") for line in lines),
        *((line, 8.0, MUTED, "normal") for line in subtitles),
    ]:
        # A title is plain text: a dollar sign does not begin a formula.
        figure.text(
            0.15 / width, 1 - top / height, text,
            size=size, color=colour, weight=weight, va="top", ha="left", parse_math=False,
        )  # fmt: skip
        top += size * 1.5 / 72
    return top + 0.1


def blank(width: float, height: float) -> Figure:
    """An empty figure, inches. `panels` places panels in inches, too, so that labels beside lines
    have room."""
    return Figure(figsize=(width, height), dpi=110)


@dataclass(frozen=True)
class Margins:
    """Room around the panels, inches."""

    top: float
    left: float = 0.75
    right: float = 0.25
    bottom: float = 0.5


def panels(
    figure: Figure,
    margins: Margins,
    heights: Sequence[float] = (1,),
    columns: int = 1,
    gap: float = 0.2,
) -> list[list[Axes]]:
    """Rows of axes inside the margins, `gap` inches between rows."""
    width, height = figure.get_size_inches()
    inner = height - margins.top - margins.bottom
    mean = max((inner - gap * (len(heights) - 1)) / len(heights), 0.1)
    grid = figure.add_gridspec(
        len(heights), columns, height_ratios=list(heights), hspace=gap / mean, wspace=0.12,
        left=margins.left / width, right=1 - margins.right / width,
        top=1 - margins.top / height, bottom=margins.bottom / height,
    )  # fmt: skip
    return [
        [figure.add_subplot(grid[row, column]) for column in range(columns)]
        for row in range(len(heights))
    ]


def note(axes: Axes, text: str) -> None:
    """Writes in an empty panel why it is empty."""
    axes.text(
        0.5,
        0.5,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=MUTED,
        style="italic",
        gid="note",
    )


def corner(axes: Axes, text: str, colour: str = MUTED) -> None:
    """A short remark above a panel's upper right corner, clear of the lines."""
    axes.annotate(
        text, (1, 1), xycoords="axes fraction", xytext=(0, 2), textcoords="offset points",
        ha="right", va="bottom", size=7.5, color=colour, parse_math=False,
    )  # fmt: skip


def direct_labels(axes: Axes, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Writes each (text, x, y, colour) beside its line's end, moved apart vertically where they
    would overlap."""
    step = 0.145  # inches between baselines of 7.5 point text
    inch = axes.figure.dpi
    panel = axes.bbox
    height = panel.height / inch
    axes.autoscale_view()
    wanted = []
    for text, x, y, colour in ends:
        at = axes.transData.transform((x, y))[1] / inch - panel.y0 / inch
        wanted.append((min(max(at, 0.05), height), text, x, y, colour))
    wanted.sort(key=lambda entry: entry[0])
    placed: list[float] = []
    for at, *_ in wanted:
        placed.append(max(at, placed[-1] + step) if placed else at)
    # If labels were pushed above the panel's edge, the whole stack moves down.
    excess = max(0.0, placed[-1] - height) if placed else 0.0
    for at, (own, text, x, y, colour) in zip(placed, wanted, strict=True):
        axes.annotate(
            text, (x, y), xytext=(4, (at - excess - own) * 72), textcoords="offset points",
            ha="left", va="center", size=7.5, color=colour, annotation_clip=False, parse_math=False,
        )  # fmt: skip


def shade_warmup(axes: Sequence[Axes], warmup: float, end: float) -> None:
    """Shades the warm-up (seconds) in every panel and names it above the first."""
    if warmup <= 0:
        return
    for panel in axes:
        panel.axvspan(
            0, min(warmup, end), color="#000000", alpha=0.06, linewidth=0, zorder=0, gid="warm-up"
        )
    wide = warmup > 0.08 * end
    axes[0].annotate(
        "warm-up", (min(warmup, end) / 2 if wide else 0, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
        textcoords="offset points", ha="center" if wide else "left", va="bottom", size=7, color=MUTED,
    )  # fmt: skip


PHASES = {"idle": "#ffffff", "download": BLUE, "upload": VERMILLION, "both": PURPLE}
"""Tints of a measurement's phases, by kind."""


def phase_colour(name: str) -> str:
    """The colour of a phase: that of its kind, with which its name begins."""
    return next((colour for kind, colour in PHASES.items() if name.startswith(kind)), MUTED)


def shade_phases(axes: Sequence[Axes], spans: Sequence[tuple[str, float, float]]) -> None:
    """Shades a measurement's loaded phases in every panel, and names all of them along the top of
    the first."""
    for name, start, end in spans:
        for panel in axes:
            if not name.startswith("idle"):
                panel.axvspan(
                    start,
                    end,
                    color=phase_colour(name),
                    alpha=0.08,
                    linewidth=0,
                    zorder=0,
                    gid=f"phase {name}",
                )
        axes[0].annotate(
            name, ((start + end) / 2, 1), xycoords=("data", "axes fraction"), xytext=(0, -2),
            textcoords="offset points", ha="center", va="top", size=7.5, color=MUTED, parse_math=False,
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1.0}, annotation_clip=False,
        )  # fmt: skip


def shorten(text: str, most: int) -> str:
    """At most this many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), width, max_lines=3, placeholder=" …") or [""]


# ------------------------------------------------------------------------------------------ files


FORMATS = ("svg", "png", "pdf")
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class FormatError(UserError, ValueError):
    """The file's ending is not one of the formats that we write."""


def save(figure: Figure, path: str | Path) -> Path:
    """Writes the figure as PNG, SVG or PDF, by the file's ending. The same figure gives the same
    bytes."""
    file = Path(path)
    kind = file.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise FormatError(
            f"{file}: can't write a figure as {file.suffix or 'a file without an ending'!s}; use .svg, .png or .pdf"
        )
    file.write_bytes(render(figure, kind))
    return file


def render(figure: Figure, kind: str, *, cropped: bool = False) -> bytes:
    """The figure as a file's bytes ("svg", "png" or "pdf"), cropped to what is drawn if asked."""
    buffer = io.BytesIO()
    with sheet():
        figure.savefig(
            buffer, format=kind, metadata=_METADATA[kind], dpi=160 if kind == "png" else 110,
            bbox_inches="tight" if cropped else None,
        )  # fmt: skip
    return buffer.getvalue()
