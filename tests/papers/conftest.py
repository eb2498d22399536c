"""Each module of tests is of one paper, its PAPER."""

import pytest

from sojourn import papers
from sojourn.papers import Reproduction

pytest.register_assert_rewrite("laws")


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """The paper, reproduced in its quick version."""
    paper = request.module.PAPER
    [found] = papers.reproduce([paper], quick=True, out=tmp_path_factory.mktemp(paper.id), jobs=1)
    return found
