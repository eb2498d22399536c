"""Sphinx's settings. `build.py` writes the pages that it reads."""

import tomllib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import GoogleDocstring

ROOT = Path(__file__).parent.parent.parent

project = "sojourn"
author = "sojourn's authors"
version = release = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"][
    "package"
]["version"]
copyright = "sojourn's authors, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
root_doc = "index"
myst_heading_anchors = 4
# A page's title is its first heading; a type of one name may be documented in two rooms.
suppress_warnings = ["myst.header", "ref.python"]
default_role = "code"
# Code keeps its quotes.
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = f"sojourn {version}"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}
pygments_style = "tango"
pygments_dark_style = "monokai"
# `sojourn` prints tables and other texts of no language.
highlight_language = "none"


def _sections(
    _app: Sphinx, what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Args and Raises of functions. Docstrings of attributes are sentences: a colon in them means
    nothing."""
    if what in ("function", "method", "class"):
        lines[:] = str(GoogleDocstring(lines, what="function")).splitlines()


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _sections)
