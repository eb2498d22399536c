"""A paper on the kernel beside the simulator."""

from pathlib import Path

import pytest

import sojourn_papers as papers
from sojourn_papers import engines
from sojourn_papers.reproduction import reproduce


@pytest.mark.long
def test_home_upload_is_the_same_in_a_guest(kernel_uml: str, tmp_path: Path) -> None:
    [found] = reproduce([papers.load("home-upload")], quick=True, engine=kernel_uml, out=tmp_path)
    assert found.broken == []
    both = engines.pairs(found)
    assert len(both) > 10
    assert [one.number.id for one in both if one.differ] == []
