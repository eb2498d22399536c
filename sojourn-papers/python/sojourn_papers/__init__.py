"""Reproduces papers on queues: every table, figure and claim, with the published number beside ours
and a verdict.

    import sojourn_papers as papers

    [adt] = papers.reproduce([papers.load("adt")], quick=True)
    for row in adt.rows:
        print(row.number.what, row.number.published, row.ours.mean, row.verdict)

Each paper has a folder with the same files; `folder` lists them. `paper` has the parts of a paper,
`verdict` judges them, `page` shows them. Names are imported when first used, so that listing the
papers does not import the modules that run or draw them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import lazy

if TYPE_CHECKING:
    from sojourn_papers.evidence import Evidence, Seed
    from sojourn_papers.paper import Paper
    from sojourn_papers.reproduction import Reproduction, reproduce
    from sojourn_papers.verdict import Verdict

_HOME = {
    "Evidence": "evidence",
    "Paper": "paper",
    "Reproduction": "reproduction",
    "Seed": "evidence",
    "Verdict": "verdict",
    "reproduce": "reproduction",
}

__all__ = [
    "NAMES",
    "Evidence",
    "Paper",
    "Reproduction",
    "Seed",
    "Verdict",
    "about",
    "load",
    "reproduce",
]

NAMES = (
    "home-upload",
    "codel",
    "queue-anatomy",
    "video-testbed",
    "buffer-sizing",
    "adt",
    "red-droptail",
    "l4s-tests",
    "bbr-shares",
)
"""The papers in the order of the overview: from a laggy home line to simulations of queue
disciplines."""


@cache
def load(name: str) -> Paper:
    """The paper with this name; see `NAMES`."""
    if name not in NAMES:
        raise KeyError(f"no paper {name!r}; there are {', '.join(NAMES)}")
    from sojourn_papers import folder

    return folder.read(f"{__name__}.{_folder(name)}")


def about(name: str) -> dict[str, Any]:
    """`title`, `source` and `about` of the paper with this name. Only [paper], the first table of
    published.toml, is read. This is faster than `load`: the whole file is a hundred times as long,
    and `load` imports the modules that run and draw the paper."""
    import re
    import tomllib

    text = (Path(__file__).parent / _folder(name) / "published.toml").read_text(encoding="utf-8")
    head = re.split(r"^\[+(?!paper\b)", text, maxsplit=1, flags=re.MULTILINE)[0]
    said: dict[str, Any] = tomllib.loads(head)["paper"]
    return said


def _folder(name: str) -> str:
    return name.replace("-", "_")


def __getattr__(name: str) -> object:
    return lazy.attribute(__name__, _HOME, name)
