"""The look of sojourn's figures: colours, line styles, titles, and files with the same bytes on
every rerun.

Each queue discipline has one colour and one dash everywhere. The palette of Okabe and Ito (Color
Universal Design, 2008) is distinct for any colour vision; the dash is distinct on a grey printer.
Several Runs of one discipline (a sweep of its limit, for example) share its hue, from dark to
light, and differ in dash.

Nothing here touches pyplot or its global state. A figure is a `matplotlib.figure.Figure`, drawn
under `sheet()`. A `Paper` has the settings for a paper. Each drawing function takes a paper, and
`ax`, the axes of another figure to draw in.
"""

from __future__ import annotations

import colorsys
import functools
import io
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, ParamSpec

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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
BROWN = "#7f5539"
TEAL = "#1b7f8c"
INDIGO = "#4b3f9e"

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
    "blue": (SKY, LONG),
    "avq": (SKY, SOLID),
    "fred": (PURPLE, DOTTED),
    "gred": (PURPLE, DASH_DOT_DOT),
    "choke": (PURPLE, LONG),
    "prio": (VERMILLION, DASH_DOT),
    "ets": (VERMILLION, SHORT),
    "drr": (VERMILLION, DASH_DOT_DOT),
    "hhf": (OLIVE, LONG),
    "tbf": (ORANGE, DASH_DOT),
    "mq": (BLACK, DASH_DOT),
    "dualpi2": (PURPLE, SHORT),
    "cake": (GREEN, SOLID),
    "cake_mq": (GREEN, DASH_DOT),
    "cobalt": (GREEN, SHORT),
    "own": (BLACK, SOLID),
}
"""A discipline's colour and dash."""

FLOWS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, OLIVE)
"""Colours of flows within one Run. Yellow is left out because it vanishes on white."""

TWO_QUEUES = {"queue L": GREEN, "queue C": OLIVE}
"""Colours of a short queue and a classic one beside it (`series.two_queues`)."""

CAUSES = {
    "limit": VERMILLION,
    "target": BLUE,
    "ce_threshold": SKY,
    "early": PURPLE,
    "forced": ORANGE,
    "overmemory": OLIVE,
    "wire": MUTED,
    "blue": GREEN,
    "own": BLACK,
    "ack_filter": BROWN,
    "police": TEAL,
    "replay": INDIGO,
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
def sheet(paper: Paper | None = None) -> Iterator[None]:
    """The style sheet of sojourn, over matplotlib's defaults, without the user's own settings; with
    a paper's sizes and font."""
    with matplotlib.style.context({**_SHEET, **_of_paper(paper)}, after_reset=True):
        yield


def _of_paper(paper: Paper | None) -> dict[str, Any]:
    if paper is None:
        return {}
    family = {} if paper.font is None else {"font.family": paper.font}
    text = dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), paper.size)
    ticks = dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), paper.size - 1)
    return {**family, **text, **ticks, "lines.linewidth": 1.0}


@dataclass(frozen=True)
class Paper:
    """The settings of a figure for a paper. The figure is drawn at its printed width, so that text
    of 8 points is 8 points high on the page. It has no heading, because the paper has a caption. It
    has a key in each panel."""

    width: float
    """The width, inches."""
    height: float | None = None
    """The height, inches; None: as the panels need."""
    size: float = 8.0
    """The size of the text, points."""
    font: str | None = None
    """A family that matplotlib knows, such as "serif"; None: sojourn's font."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The name of a Run, by its label."""
    colours: Mapping[str, str] = field(default_factory=dict)
    """The colour of a Run, by its label."""
    order: Sequence[str] = ()
    """The labels of the Runs to draw, in order; empty: all, in the given order."""

    def with_(self, **changes: Any) -> Paper:
        """A copy with these settings changed."""
        return replace(self, **changes)


ONE_COLUMN = Paper(width=3.5)
"""The width of one column of IEEE's two-column page."""
TWO_COLUMNS = Paper(width=7.16)
"""The width of both columns of IEEE's two-column page."""
BASE_SIZE = 9.0
"""Points of sojourn's own text; all other sizes are in proportion to it."""
LEAST_SIZE = 5.0


@dataclass(frozen=True)
class _Drawing:
    """The settings of the figure that is being drawn."""

    paper: Paper | None = None
    ax: Axes | None = None
    scale: float = 1.0
    """The figure's width divided by its width on sojourn's own page."""


_OUR_PAGE = _Drawing()
_DRAWING: ContextVar[_Drawing] = ContextVar("_DRAWING", default=_OUR_PAGE)

_P = ParamSpec("_P")


def drawn(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Wraps a function that draws a figure: it draws under sojourn's style sheet, and takes the
    arguments `ax` and `paper`."""

    @functools.wraps(draw)
    def under_sheet(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        ax, paper = kwargs.get("ax"), kwargs.get("paper")
        assert ax is None or isinstance(ax, Axes)
        assert paper is None or isinstance(paper, Paper)
        token = _DRAWING.set(_Drawing(paper, ax))
        try:
            # Another figure's axes keep that figure's style.
            with nullcontext() if ax is not None else sheet(paper):
                return draw(*args, **kwargs)
        finally:
            _DRAWING.reset(token)

    return under_sheet


def compact() -> bool:
    """Whether the figure is for a paper or inside another one. Such a figure has no heading. It
    has a key in each panel."""
    drawing = _DRAWING.get()
    return drawing.paper is not None or drawing.ax is not None


def points(size: float) -> float:
    """A size of text on sojourn's own page, scaled to the text size of the paper."""
    paper = _DRAWING.get().paper
    return size if paper is None else max(size * paper.size / BASE_SIZE, LEAST_SIZE)


def narrow() -> bool:
    """Whether the figure is as wide as a column of text."""
    paper = _DRAWING.get().paper
    return paper is not None and paper.width < 5


def ordered(runs: Sequence[Run]) -> Sequence[Run]:
    """The Runs that the paper shows, in its order.

    Raises:
        UserError: it names a Run that does not exist.
    """
    paper = _DRAWING.get().paper
    if paper is None or not paper.order:
        return runs
    by_label = dict(zip(likeness.labels(runs), runs, strict=True))
    _check_labels(paper.order, by_label)
    return [by_label[label] for label in paper.order]


def _check_labels(asked: Iterable[str], known: Iterable[str]) -> None:
    there = list(known)
    for label in asked:
        if label not in there:
            raise UserError(f"no Run is labelled {label!r}", f"labels: {', '.join(there)}")


def key(axes: Axes, entries: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """A key in a panel: each text with the look of its line. Existing entries stay."""
    there = axes.get_legend()
    handles = [] if there is None else list(there.legend_handles)
    handles += [Line2D([], [], label=text, **look) for text, look in entries]
    if handles:
        axes.legend(
            handles=[handle for handle in handles if handle is not None],
            fontsize=points(7.5),
            frameon=False,
            handlelength=1.6,
            borderaxespad=0.2,
            labelspacing=0.25,
        )


# ------------------------------------------------------------------------------------- who is who


@dataclass(frozen=True)
class Look:
    """The look of one Run in every figure."""

    label: str
    colour: str
    dash: Dash
    marker: str


MARKERS = "osD^vPX<>*"


def looks(runs: Sequence[Run], links: Sequence[str | None]) -> list[Look]:
    """The look of each Run, from the qdisc of the link it is shown for. Labels are made unique."""
    return [_for_paper(look) for look in _looks(runs, links)]


def _for_paper(look: Look) -> Look:
    """The look with the paper's label and colour."""
    paper = _DRAWING.get().paper
    if paper is None:
        return look
    colour = paper.colours.get(look.label, look.colour)
    return replace(look, label=paper.labels.get(look.label, look.label), colour=colour)


def _looks(runs: Sequence[Run], links: Sequence[str | None]) -> list[Look]:
    labels = likeness.labels(runs)
    if (paper := _DRAWING.get().paper) is not None:
        _check_labels([*paper.labels, *paper.colours], labels)
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
    """The first word of the link's qdisc: "fq_codel"; "own" for a user-defined discipline."""
    words = run.meta.link(link).qdisc.split() if link is not None else []
    if words and ".py:" in words[0]:
        return "own"
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
    if compact():
        return 0.08
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


class NotebookFigure(Figure):
    """A figure that a notebook shows as a picture when it is the last line of a cell. It needs
    neither pyplot nor an inline backend."""

    def _repr_png_(self) -> bytes:
        return render(self, "png")


def blank(width: float, height: float) -> Figure:
    """An empty figure, inches. `panels` places panels in inches, too, so that labels beside lines
    have room. A paper sets the width."""
    drawing = _DRAWING.get()
    if drawing.ax is not None:
        found = drawing.ax.get_figure(root=True)
        assert found is not None
        return found
    if drawing.paper is None:
        return NotebookFigure(figsize=(width, height), dpi=110)
    wide = drawing.paper.width
    _DRAWING.set(replace(drawing, scale=wide / width))
    return NotebookFigure(figsize=(wide, height), dpi=110)


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
    drawing = _DRAWING.get()
    if drawing.ax is not None:
        return _within(drawing.ax, heights, columns)
    if drawing.paper is not None:
        margins = _paper_margins(drawing.paper, margins)
        _set_height(figure, drawing, margins, len(heights), gap)
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


def _paper_margins(paper: Paper, margins: Margins) -> Margins:
    """Smaller margins than on sojourn's own page: the key is in the panels, and the text is
    smaller."""
    text = paper.size / BASE_SIZE
    return Margins(
        top=max(margins.top - 0.1, 0.05) if margins.top > 0.3 else 0.16,
        left=max(margins.left, 0.7) * text,
        right=0.2,
        bottom=max(margins.bottom - 0.1, 0.47) * text,
    )


def _set_height(figure: Figure, drawing: _Drawing, margins: Margins, rows: int, gap: float) -> None:
    """Sets the paper's height. Without one, a single panel has the golden ratio, several keep the
    ratio of sojourn's own page."""
    assert drawing.paper is not None
    width, height = figure.get_size_inches()
    if drawing.paper.height is not None:
        height = drawing.paper.height
    elif rows == 1:
        height = (width - margins.left - margins.right) * 0.62 + margins.top + margins.bottom
    else:
        inner = (height - 1.2) * max(drawing.scale, 0.6)
        height = inner + gap * (rows - 1) + margins.top + margins.bottom
    figure.set_size_inches(width, height)


def _within(ax: Axes, heights: Sequence[float], columns: int) -> list[list[Axes]]:
    """Panels in the place of these axes; the axes themselves if one panel is enough."""
    if len(heights) == 1 and columns == 1:
        return [[ax]]
    ax.set_axis_off()
    between, total = 0.12, sum(heights)
    high = (1 - between * (len(heights) - 1)) / total
    wide = (1 - between * (columns - 1)) / columns
    rows: list[list[Axes]] = []
    top = 1.0
    for height in heights:
        low = top - height * high
        rows.append(
            [
                ax.inset_axes((column * (wide + between), low, wide, height * high))
                for column in range(columns)
            ]
        )
        top = low - between
    return rows


def note(axes: Axes, text: str) -> None:
    """Writes into an empty panel why it is empty."""
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
    """A short remark above a panel's upper right corner, away from the lines."""
    axes.annotate(
        text, (1, 1), xycoords="axes fraction", xytext=(0, 2), textcoords="offset points",
        ha="right", va="bottom", size=points(7.5), color=colour, parse_math=False,
    )  # fmt: skip


def direct_labels(axes: Axes, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Writes each (text, x, y, colour) beside its line's end, moved apart vertically if they would
    overlap."""
    if compact():
        key(axes, [(text, {"color": colour}) for text, _, _, colour in ends])
        return
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
            ha="left", va="center", size=points(7.5), color=colour, annotation_clip=False, parse_math=False,
        )  # fmt: skip


def shade_warmup(axes: Sequence[Axes], warmup: float, end: float) -> None:
    """Shades the warm-up (seconds) in every panel and names it in the first, or above it."""
    if warmup <= 0:
        return
    for panel in axes:
        panel.axvspan(
            0, min(warmup, end), color="#000000", alpha=0.06, linewidth=0, zorder=0, gid="warm-up"
        )
    wide = min(warmup, end) / end * axes[0].bbox.width / axes[0].figure.dpi > 0.5
    # Below the title of a panel that has one.
    over, side = (-3, "top") if axes[0].get_title() else (3, "bottom")
    axes[0].annotate(
        "warm-up", (min(warmup, end) / 2 if wide else 0, 1), xycoords=("data", "axes fraction"), xytext=(0, over),
        textcoords="offset points", ha="center" if wide else "left", va=side, size=points(7), color=MUTED,
    )  # fmt: skip


PHASES = {"idle": "#ffffff", "download": BLUE, "upload": VERMILLION, "both": PURPLE}
"""Tints of a measurement's phases, by kind."""


def phase_colour(name: str) -> str:
    """The colour of a phase: that of its kind, which is the beginning of its name."""
    return next((colour for kind, colour in PHASES.items() if name.startswith(kind)), MUTED)


def shade_phases(axes: Sequence[Axes], spans: Sequence[tuple[str, float, float]]) -> None:
    """Shades a measurement's loaded phases in every panel, and names all phases along the top of
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
            textcoords="offset points", ha="center", va="top", size=points(7.5), color=MUTED, parse_math=False,
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1.0}, annotation_clip=False,
        )  # fmt: skip


def shorten(text: str, most: int) -> str:
    """The text, cut to this many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), width, max_lines=3, placeholder=" …") or [""]


# ------------------------------------------------------------------------------------------ files


FORMATS = ("svg", "png", "pdf")
PGF = "pgf"
"""The format for LaTeX, which typesets the text. Writing it needs xelatex."""
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class FormatError(UserError, ValueError):
    """The file's ending is not one of the supported formats."""


def save(figure: Figure, path: str | Path) -> Path:
    """Writes the figure as PNG, SVG, PDF or PGF, by the file's ending. The same figure gives the
    same bytes."""
    file = Path(path)
    kind = file.suffix.lower().lstrip(".")
    if kind == PGF:
        return _save_pgf(figure, file)
    if kind not in FORMATS:
        raise FormatError(
            f"{file}: can't write a figure as {file.suffix or 'a file without an ending'!s}; use .svg, .png, .pdf or .pgf"
        )
    file.write_bytes(render(figure, kind))
    return file


def _save_pgf(figure: Figure, file: Path) -> Path:
    if shutil.which("xelatex") is None:
        raise UserError(
            f"{file}: writing pgf needs xelatex, which is not installed",
            "install it (Debian: apt-get install texlive-xetex), or write .pdf",
        )
    with matplotlib.style.context({"pgf.rcfonts": False, "pgf.texsystem": "xelatex"}):
        figure.savefig(file, format=PGF)
    return file


def render(figure: Figure, kind: str, *, cropped: bool = False) -> bytes:
    """The figure as a file's bytes ("svg", "png" or "pdf"), cropped to its drawing on request."""
    buffer = io.BytesIO()
    with sheet():
        figure.savefig(
            buffer, format=kind, metadata=_METADATA[kind], dpi=160 if kind == "png" else 110,
            bbox_inches="tight" if cropped else None,
        )  # fmt: skip
    return buffer.getvalue()
