"""papers.bib: the papers of a reproduction and sojourn itself, as BibTeX.

What stands in it comes from `[paper.cite]` of each published.toml: `kind` and `key` of the entry, the
rest its fields. The title is the paper's, unless `title` has another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version

from sojourn_papers.paper import Paper

OURSELVES = "sojourn: a bufferbloat laboratory"


def whole(papers: Iterable[Paper]) -> str:
    """The file: the papers in their order, then sojourn."""
    entries = [entry(paper) for paper in papers]
    return "\n".join([*entries, _entry("software", "sojourn", _ourselves())])


def entry(paper: Paper) -> str:
    """One paper. Where nobody has said how to cite it, its title and source."""
    said = dict(paper.cite)
    kind, key = said.pop("kind", "misc"), said.pop("key", paper.id)
    plain = {"howpublished": paper.source} if not paper.cite else {}
    return _entry(kind, key, {"title": paper.title, **plain, **said})


def _ourselves() -> Mapping[str, str]:
    return {
        "title": OURSELVES,
        "author": "{The sojourn authors}",
        "version": version("sojourn"),
    }


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = "".join(
        f"  {name} = {{{' '.join(value.split())}}},\n" for name, value in fields.items()
    )
    return f"@{kind}{{{key},\n{lines}}}\n"
