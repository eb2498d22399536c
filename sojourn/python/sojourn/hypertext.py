"""HTML from templates, which lie beside the code that fills them.

    hypertext.filled("sojourn.report/page.html", title=run.meta.title)

A template is named by its package and its file, so that one may use another's macros. It is handed
plain values, and jinja2 escapes every one of them: whatever comes from a scenario or a network is
text. HTML that is made already, such as a drawn figure, is handed over as a `Markup`.

`table` and `lines` are what notebooks show (`_repr_html_`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@cache
def _templates() -> Environment:
    # Most commands write no HTML, and the import takes as long as a short one of them.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(lambda name: (source(name), name, lambda: True)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def source(name: str) -> str:
    """The text of the file `PACKAGE/FILE`."""
    package, _, file = name.partition("/")
    # By its folder: nothing of a room is imported for its files.
    top, *rooms = package.split(".")
    return files(top).joinpath(*rooms, file).read_text(encoding="utf-8")


def text(*names: str) -> Markup:
    """These files of our own, styles or scripts, as they are."""
    from markupsafe import Markup

    return Markup("".join(map(source, names)))


def filled(template: str, /, **values: object) -> Markup:
    """A page: the template `PACKAGE/FILE` with these values."""
    from markupsafe import Markup

    return Markup(_templates().get_template(template).render(values))


def part(template: str, macro: str, /, *values: object) -> Markup:
    """A part of a page: what a macro of a template makes of these values."""
    made: Markup = getattr(_templates().get_template(template).module, macro)(*values)
    return made


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Markup:
    """A table whose first column names its rows."""
    return part("sojourn/notebook.html", "table", header, rows, caption)


def lines(title: str, *facts: str) -> Markup:
    """A title, and a line for each fact that is not empty."""
    return part("sojourn/notebook.html", "lines", title, facts)


def paragraphs(sentences: Sequence[str]) -> Markup:
    """A paragraph for each sentence."""
    return part("sojourn/notebook.html", "paragraphs", sentences)


def strong(text: str) -> Markup:
    """A text that stands out."""
    return part("sojourn/notebook.html", "strong", text)
