"""Papers on queues, rerun: every table, figure and claim, the published number beside ours,
with a verdict.

    from sojourn import papers

    [adt] = papers.reproduce([papers.load("adt")], quick=True)
    for row in adt.rows:
        print(row.number.what, row.number.published, row.ours.mean, row.verdict)

One folder per paper, with the same files in each: `folder` says which. `paper` says what a paper is
made of, `verdict` how it is judged, `page` how it is shown.
"""

from __future__ import annotations

from functools import cache

from sojourn.papers import folder
from sojourn.papers.evidence import Evidence, Seed
from sojourn.papers.paper import Paper
from sojourn.papers.reproduce import Reproduction, reproduce
from sojourn.papers.verdict import Verdict

__all__ = ["NAMES", "Evidence", "Paper", "Reproduction", "Seed", "Verdict", "load", "reproduce"]

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
"""The papers, in the order in which they tell the story: from a laggy home line to the queue
disciplines' simulations."""


@cache
def load(name: str) -> Paper:
    """The paper of this name; see `NAMES`."""
    if name not in NAMES:
        raise KeyError(f"no paper {name!r}; there are {', '.join(NAMES)}")
    return folder.read(f"{__name__}.{name.replace('-', '_')}")
