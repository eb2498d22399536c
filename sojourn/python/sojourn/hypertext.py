"""HTML from templates, which are beside the code that fills them.

    hypertext.filled("sojourn.report/page.html", title=run.meta.title)

A template's name consists of its package and its file, so that templates can use macros of other
packages. The values are plain text, also those from a scenario or a network, and jinja2 escapes
each of them. Finished HTML, such as a drawn figure, is passed as a `Markup`.

`table` and `lines` are for notebooks (`_repr_html_`).
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
    # Most commands write no HTML, and this import takes as long as a short command.
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
    # The file is found by its folder, because a search by its package would import the package.
    top, *rooms = package.split(".")
    return files(top).joinpath(*rooms, file).read_text(encoding="utf-8")


def text(*names: str) -> Markup:
    """The content of these files of sojourn, styles or scripts, unchanged."""
    from markupsafe import Markup

    return Markup("".join(map(source, names)))


def filled(template: str, /, **values: object) -> Markup:
    """A page: the template `PACKAGE/FILE` with these values."""
    from markupsafe import Markup

    return Markup(_templates().get_template(template).render(values))


def part(template: str, macro: str, /, *values: object) -> Markup:
    """A part of a page: a macro of a template with these values."""
    html: Markup = getattr(_templates().get_template(template).module, macro)(*values)
    return html


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Markup:
    """A table; the first column has the names of its rows."""
    return part("sojourn/notebook.html", "table", header, rows, caption)


def lines(title: str, *facts: str) -> Markup:
    """A title, and a line for each fact that is not empty."""
    return part("sojourn/notebook.html", "lines", title, facts)


def paragraphs(sentences: Sequence[str]) -> Markup:
    """A paragraph for each sentence."""
    return part("sojourn/notebook.html", "paragraphs", sentences)


def strong(text: str) -> Markup:
    """A text in bold."""
    return part("sojourn/notebook.html", "strong", text)
