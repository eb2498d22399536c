"""papers.bib: the papers of a reproduction and sojourn itself, as BibTeX.

Its entries come from `[paper.cite]` of each published.toml: `kind` and `key` of the entry; the
other keys are its fields. The default of `title` is the paper's title."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version

from sojourn_papers.paper import Paper

OURSELVES = "sojourn: a bufferbloat laboratory"


def bibtex(papers: Iterable[Paper]) -> str:
    """The file: the papers in their order, then sojourn."""
    entries = [entry(paper) for paper in papers]
    return "\n".join([*entries, _entry("software", "sojourn", _ourselves())])


def entry(paper: Paper) -> str:
    """The entry of a paper. Without [paper.cite] it has the title and source."""
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
