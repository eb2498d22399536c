"""Parts of every page of ours: pictures in the page's colours, safe data, the text files beside
this one.

Whatever comes from a scenario is data. `safe_json` can't end a script, and `svg` recolours style
attributes only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from urllib.parse import quote

from matplotlib.figure import Figure
from matplotlib.text import Text

from sojourn import lab
from sojourn.figures import series, style
from sojourn.records import Run, write_whole
from sojourn.report import data

__all__ = [
    "beside",
    "changing",
    "colours",
    "facts",
    "file_and_svg",
    "refusals",
    "safe_json",
    "section",
    "simulated",
    "svg",
    "template",
    "text",
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


def svg(figure: Figure, says: str) -> str:
    """A figure as SVG for the page, in the page's colours. Heading (the page has one), prologue and
    metadata are removed."""
    for heading in list(figure.texts):
        heading.remove()
    return _for_page(style.render(figure, "svg", cropped=True).decode("utf-8"), says)


def file_and_svg(figure: Figure, says: str) -> tuple[bytes, str]:
    """A figure as the bytes of an SVG file and as SVG for the page, drawn once.

    The page's ends below the heading; elsewhere it has the figure's own margins. (Matplotlib draws a
    figure twice more to crop it.)
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
    """Where a line of the heading ends, as a share of the figure's height from below."""
    return float(heading.get_position()[1] - float(heading.get_fontsize()) * 1.5 / height)


def _for_page(drawn: str, says: str) -> str:
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    # Only in style attributes, because a title may contain a colour's name.
    drawn = re.sub(r'style="[^"]*"', lambda style_: themed(style_[0]), drawn)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(says)}" ', 1)


def themed(css: str) -> str:
    """CSS whose colours follow the page's, light or dark."""
    return _HEX.sub(_variable, css)


def _variable(colour: re.Match[str]) -> str:
    plain = colour[0].lower()
    return _THEMED.get(plain, f"var(--c-{plain[1:]}, {plain})")


def colours(page: str) -> str:
    """Rules that lift the colours of the page's SVGs on a dark page."""
    used = sorted(set(re.findall(r"var\(--c-([0-9a-f]{6}),", page)))
    rules = " ".join(f"--c-{colour}: {data.both('#' + colour)[1]};" for colour in used)
    return (
        f"@media (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {rules} }} }}\n"
        if used
        else ""
    )


def section(name: str, heading: str, body: str) -> str:
    """A section of a page; none where there is nothing in it."""
    if not body:
        return ""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(heading)}</h2>\n{body}\n</section>'


def simulated(runs: Sequence[Run]) -> bool:
    """Whether they are of scenarios, which a simulator can run; measurements are not."""
    return not any(map(series.is_measured, runs))


def beside(folder: Path, page_in: Path) -> str | None:
    """Lays the lab's page into a folder; its address, seen from a page in another. None: this sojourn
    was built without it."""
    if not lab.is_there():
        return None
    there = folder / lab.FILE
    page = lab.render().encode()
    if not there.is_file() or there.read_bytes() != page:
        write_whole(there, page)
    return quote(os.path.relpath(there, page_in or ".").replace(os.sep, "/"))


def changing(runs: Sequence[Run], address: str | None) -> str:
    """`Change it yourself`: the lab with what was run, the disciplines side by side."""
    text = runs[0].scenario_text
    if address is None or len(text) > lab.MOST_TEXT:
        return ""
    qdiscs = {
        str(run.meta.settings[key])
        for run in runs
        for key in run.meta.settings
        if key.split(".")[-1] == "qdisc" and len(run.meta.settings) == 1
    }
    chosen = tuple(sorted(qdiscs))[: lab.MOST_QDISCS] if len(qdiscs) == len(runs) > 1 else ()
    link = lab.to_link(lab.Shown(text, chosen))
    return (
        f'<p><a href="{escape(address)}#{link}">Change it yourself</a>: the lab, a page beside this '
        "one, runs this scenario in the browser. Or in a terminal, with the scenario below: "
        "<code>sojourn lab scenario.toml</code></p>"
    )


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of what was run: names and values."""
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table class="runs-facts"><tbody>{lines}</tbody></table>'


def refusals(runs: Iterable[Run]) -> str:
    """Of each Run whose numbers are not to be used: that they are not, and why."""
    return "".join(
        f'<p class="invalid"><strong>Invalid: the numbers of {escape(run.name)} are not to be used.'
        f"</strong> {escape('; '.join(run.meta.invalid))}</p>"
        for run in runs
        if run.meta.invalid
    )


def safe_json(value: object) -> str:
    """JSON that can't end the script that contains it."""
    packed = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def text(name: str, room: str = "sojourn.report") -> str:
    """The text of a file beside the code of a room."""
    return files(room).joinpath(name).read_text(encoding="utf-8")


def template(name: str, room: str = "sojourn.report") -> Template:
    """The same as a template."""
    return Template(text(name, room))
