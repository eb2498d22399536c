"""Laws of every paper's quick version. A module of tests imports them for one paper, and defines

PAPER        the paper
MUST_HOLD    the number of its claims that must hold
IN_PART      claims that may hold in part, depending on the seeds
REPRODUCED   numbers that physics determines, whatever the source leaves open
UNEXPLAINED  numbers that may miss their tolerance without a reason
"""

from __future__ import annotations

import pytest
from matplotlib.container import BarContainer

from sojourn_papers import Reproduction, Verdict, readings
from sojourn_papers.verdict import NO_REASON

__all__ = [
    "test_a_claim_that_is_not_run_here_has_no_verdict",
    "test_every_figure_is_drawn_with_something_in_each_panel",
    "test_every_miss_has_a_reason",
    "test_every_reading_that_fits_more_has_a_reason_why_it_is_not_chosen",
    "test_flows_with_a_queue_each_have_equal_shares",
    "test_the_claims_that_must_hold_hold",
]


def test_the_claims_that_must_hold_hold(
    quick: Reproduction, request: pytest.FixtureRequest
) -> None:
    must = {row.claim.id: row.verdict for row in quick.claims if row.claim.must_hold}
    assert len(must) == request.module.MUST_HOLD
    held = (Verdict.REPRODUCED, Verdict.NOT_RUN)
    assert {one for one in must if must[one] not in held} <= request.module.IN_PART
    assert quick.broken == []


def test_a_claim_that_is_not_run_here_has_no_verdict(quick: Reproduction) -> None:
    for row in quick.claims:
        gaps = [one.what for one in row.judged if one.ours is None]
        assert bool(gaps) == (row.verdict is Verdict.NOT_RUN), row.claim.id
        assert len(row.found) > 5


def test_flows_with_a_queue_each_have_equal_shares(
    quick: Reproduction, request: pytest.FixtureRequest
) -> None:
    verdicts = {row.number.id: row.verdict for row in quick.rows}
    wanted = request.module.REPRODUCED
    assert wanted
    assert {one for one in wanted if verdicts[one] is not Verdict.REPRODUCED} == set()


def test_every_miss_has_a_reason(quick: Reproduction, request: pytest.FixtureRequest) -> None:
    assert {
        row.number.id for row in quick.rows if row.reason == NO_REASON
    } <= request.module.UNEXPLAINED


def test_every_reading_that_fits_more_has_a_reason_why_it_is_not_chosen(
    quick: Reproduction,
) -> None:
    found = readings.matrix(quick.paper, quick.evidence, quick.rows, quick.claims)
    assert set(found.better()) <= set(found.refused)


def test_every_figure_is_drawn_with_something_in_each_panel(quick: Reproduction) -> None:
    for picture in quick.paper.pictures:
        figure = picture.draw(quick.evidence)
        panels = figure.axes
        assert panels, picture.id
        assert all(axes.has_data() for axes in panels), picture.id
        # A logarithmic axis has no bars, because it has no zero.
        logarithmic = [one for one in panels if "log" in (one.get_xscale(), one.get_yscale())]
        bars = [each for one in logarithmic for each in one.containers]
        assert not [each for each in bars if isinstance(each, BarContainer)], picture.id
