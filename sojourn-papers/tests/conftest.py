"""Fixtures of the papers' tests. Each module tests one paper, its PAPER."""

import pytest

import sojourn_papers as papers
from sojourn_papers import Reproduction

pytest.register_assert_rewrite("laws")

LONG = {"adt", "buffer-sizing", "codel", "queue-anatomy", "red-droptail"}
"""Papers whose quick version is too long for `make test`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that need the Runs of these papers as long."""
    for item in items:
        paper = getattr(getattr(item, "module", None), "PAPER", None)
        if paper is not None and paper.id in LONG and "quick" in getattr(item, "fixturenames", ()):
            item.add_marker("long")


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """The paper, reproduced in its quick version."""
    paper = request.module.PAPER
    [found] = papers.reproduce([paper], quick=True, out=tmp_path_factory.mktemp(paper.id), jobs=1)
    return found
