"""Parts of every page of ours: pictures in the page's colours, safe data, the text files beside
this one.

Whatever comes from a scenario is data. `safe_json` can't end a script, and `svg` recolours style
attributes only.
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from string import Template

from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn.report import data

__all__ = ["colours", "safe_json", "svg", "template", "text", "themed"]

_THEMED = {
    style.INK: "var(--ink)",
    style.MUTED: "var(--muted)",
    style.GRID: "var(--grid)",
    "#ffffff": "var(--paper)",
    "#000000": "var(--ink)",
}


_HEX = re.compile(r"#[0-9a-fA-F]{6}")


def svg(figure: Figure, says: str) -> str:
    """A figure as SVG for the page, in the page's colours. Heading (the page has one), prologue and
    metadata are removed."""
    for heading in list(figure.texts):
        heading.remove()
    drawn = style.render(figure, "svg", cropped=True).decode("utf-8")
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
