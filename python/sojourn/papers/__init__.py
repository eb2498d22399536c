"""Five papers on queues, rerun: every table, figure and claim, the published number beside ours, with a verdict.

    from sojourn import papers

    [adt] = papers.reproduce([papers.load("adt")], quick=True)
    for row in adt.rows:
        print(row.number.what, row.number.published, row.ours.mean, row.verdict)

One folder per paper: its scenario files, its published numbers with where each stands in the source, its reading, its
claims as checks, its figures. `paper` says what they are made of, `verdict` how they are judged, `page` how they are shown.
"""

from __future__ import annotations

from importlib import import_module

from sojourn.papers.evidence import Evidence, Seed
from sojourn.papers.paper import Paper
from sojourn.papers.reproduce import Reproduction, reproduce
from sojourn.papers.verdict import Verdict

__all__ = ["NAMES", "Evidence", "Paper", "Reproduction", "Seed", "Verdict", "load", "reproduce"]

NAMES = ("home-upload", "queue-anatomy", "video-testbed", "adt", "red-droptail")
"""The papers, in the order in which they tell the story: from a laggy home line to the queue disciplines' simulations."""


def load(name: str) -> Paper:
    """The paper of this name; see `NAMES`."""
    if name not in NAMES:
        raise KeyError(f"no paper {name!r}; there are {', '.join(NAMES)}")
    paper = import_module(f"sojourn.papers.{name.replace('-', '_')}").PAPER
    assert isinstance(paper, Paper)
    return paper
