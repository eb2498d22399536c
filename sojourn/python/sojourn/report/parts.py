"""Shared parts of the pages: pictures in the page's colours, safe data. Pages are made from
templates (`sojourn.hypertext`), which share frame.html and parts.html.

Text from a scenario is data. Templates insert a `Markup` unescaped. All of them are made here:
pictures, `safe_json`, which can't end a script, and sojourn's own styles and scripts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.text import Text

from sojourn import guest_programs, hypertext, lab
from sojourn.figures import series, style
from sojourn.records import Run, write_whole
from sojourn.report import data

__all__ = [
    "Picture",
    "Stroke",
    "beside",
    "changing",
    "colours",
    "file_and_svg",
    "page",
    "refused",
    "safe_json",
    "simulated",
    "stroke",
    "svg",
    "themed",
]

_THEMED = {
    style.INK: "var(--ink)",
    style.MUTED: "var(--muted)",
    style.GRID: "var(--grid)",
    "#ffffff": "var(--paper)",
    "#000000": "var(--ink)",
}


_GROUP = re.compile(r'<g id="heading-\d+">.*?</g>\s*', re.DOTALL)
_SIZE = re.compile(r'height="[0-9.]+pt" viewBox="[^"]*"')
_HEX = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Picture:
    """A drawn figure and its description."""

    svg: Markup
    says: str


@dataclass(frozen=True)
class Stroke:
    """The look of a line: a CSS colour and the lengths of its dashes."""

    colour: str
    pattern: str


def stroke(colour: str, dash: style.Dash) -> Stroke:
    """A line of this look, in the page's colours."""
    return Stroke(themed(colour), " ".join(map(str, data.dash(dash))))


def svg(figure: Figure, says: str) -> Markup:
    """A figure as SVG for the page, in the page's colours, without heading (the page has one),
    prologue and metadata."""
    for heading in list(figure.texts):
        heading.remove()
    return _for_page(style.render(figure, "svg", cropped=True).decode("utf-8"), says)


def file_and_svg(figure: Figure, says: str) -> tuple[bytes, Markup]:
    """A figure as the bytes of an SVG file and as SVG for the page, drawn once.

    The page's version begins below the heading and has the figure's own margins. (To crop it,
    matplotlib would draw the figure twice more.)
    """
    for number, heading in enumerate(figure.texts):
        heading.set_gid(f"heading-{number}")
    file = style.render(figure, "svg")
    drawn = _GROUP.sub("", file.decode("utf-8"))
    width, height = (72 * inches for inches in figure.get_size_inches())
    top = height * max((1 - _bottom(one, height) for one in figure.texts), default=0.0)
    size = f'height="{height - top:.6g}pt" viewBox="0 {top:.6g} {width:.6g} {height - top:.6g}"'
    return file, _for_page(_SIZE.sub(size, drawn, count=1), says)


def _bottom(heading: Text, height: float) -> float:
    """The lower end of a heading's line, as a share of the figure's height from below."""
    return float(heading.get_position()[1] - float(heading.get_fontsize()) * 1.5 / height)


def _for_page(drawn: str, says: str) -> Markup:
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    # Only in style attributes, because a title may contain the name of a colour.
    drawn = re.sub(r'style="[^"]*"', lambda style_: themed(style_[0]), drawn)
    named = Markup('<svg role="img" aria-label="{}" ').format(says)
    return Markup(drawn.replace("<svg ", named, 1))


def themed(css: str) -> str:
    """CSS whose colours follow the page's light or dark theme."""
    return _HEX.sub(_variable, css)


def _variable(colour: re.Match[str]) -> str:
    plain = colour[0].lower()
    return _THEMED.get(plain, f"var(--c-{plain[1:]}, {plain})")


def colours(page: str) -> Markup:
    """CSS rules that lighten the colours of the page's SVGs in the dark theme."""
    used = sorted(set(re.findall(r"var\(--c-([0-9a-f]{6}),", page)))
    rules = " ".join(f"--c-{colour}: {data.both('#' + colour)[1]};" for colour in used)
    return Markup(
        f"@media (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {rules} }} }}\n"
        if used
        else ""
    )


def simulated(runs: Sequence[Run]) -> bool:
    """Whether these Runs have scenarios that a simulator can run; measurements do not."""
    return not any(map(series.is_measured, runs))


def beside(folder: Path, page_in: Path) -> str | None:
    """Writes the lab's page into a folder, and returns its address relative to a page in another
    folder. None: this sojourn was built without the lab."""
    if not lab.is_there():
        return None
    there = folder / lab.FILE
    page = lab.render().encode()
    if not there.is_file() or there.read_bytes() != page:
        write_whole(there, page)
    return quote(os.path.relpath(there, page_in or ".").replace(os.sep, "/"))


def changing(runs: Sequence[Run], address: str | None) -> str:
    """The lab's address with the Runs' scenario, and the disciplines side by side; empty: there is
    none, or the scenario has programs, which the lab refuses."""
    text = runs[0].scenario_text
    if address is None or len(text) > lab.MOST_TEXT:
        return ""
    if any(guest_programs.read(run, seed) is not None for run in runs for seed in run.seeds[:1]):
        return ""
    qdiscs = {
        str(run.meta.settings[key])
        for run in runs
        for key in run.meta.settings
        if key.split(".")[-1] == "qdisc" and len(run.meta.settings) == 1
    }
    chosen = tuple(sorted(qdiscs))[: lab.MOST_QDISCS] if len(qdiscs) == len(runs) > 1 else ()
    link = lab.to_link(lab.Shown(text, chosen))
    return f"{address}#{link}"


def refused(runs: Sequence[Run], labels: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """The invalid Runs, by label or name, each with the reasons."""
    named = [run.name for run in runs] if labels is None else labels
    return [
        (name, "; ".join(run.meta.invalid))
        for run, name in zip(runs, named, strict=True)
        if run.meta.invalid
    ]


def safe_json(value: object) -> Markup:
    """JSON that can't end the script that contains it."""
    packed = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def page(template: str, css: Sequence[str], **values: object) -> str:
    """A page from a template that extends frame.html, with these styles."""
    return str(hypertext.filled(template, css=hypertext.text(*css), colours=colours, **values))
