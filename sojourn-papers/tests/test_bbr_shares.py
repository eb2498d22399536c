"""BBR's shares beside CUBIC, reproduced in their quick version."""

from __future__ import annotations

import pytest
from laws import *  # noqa: F403

import sojourn_papers as papers
from sojourn_papers import Reproduction, page
from sojourn_papers.bbr_shares import measures as m
from sojourn_papers.bbr_shares import model
from sojourn_papers.bbr_shares import studies as s

PAPER = papers.load("bbr-shares")

MUST_HOLD = 1
IN_PART: set[str] = set()
REPRODUCED: set[str] = set()
UNEXPLAINED: set[str] = set()


def test_flows_with_a_queue_each_have_equal_shares(quick: Reproduction) -> None:
    """The discipline alone determines this number; the others depend on the control."""
    share = quick.evidence.mean(s.LAW[s.law("BBR", "fq_codel")], m.share_percent)
    assert share == pytest.approx(50, abs=10)


def test_a_claim_about_missing_runs_is_not_run_here(
    quick: Reproduction,
) -> None:
    # The quick version has no cake, the model's shares of several flows at one depth only, and no
    # four flows of CUBIC.
    verdicts = {row.claim.id: row.verdict for row in quick.claims}
    assert {verdicts[one] for one in ("flows-apart", "as-many", "whoever")} == {"not run here"}
    assert "Claims not run here: 3." in page.sentence([quick])


def test_the_published_curve_equals_the_model() -> None:
    for number in PAPER.numbers:
        _, _, depth = number.id.split("/")
        wanted = 100 * model.share(float(depth), s.BDP, s.RTT_S)
        assert number.published == pytest.approx(wanted, abs=0.05)


def test_the_model_s_limits_are_those_that_its_authors_derive() -> None:
    # With a very deep queue, no propagation and no pause one flow has half of the link.
    assert model.share(1e4, 1e6, 0.0) == pytest.approx(
        0.5 * (1 - model.PAUSE_S / model.PROBE_S), rel=0.01
    )
    # In a shallow queue its cap exceeds path and queue.
    assert model.share(1, 100, 0.0) == pytest.approx(1 - model.PAUSE_S / model.PROBE_S)
    assert model.share(8, 33, 0.04, flows=8) > model.share(8, 33, 0.04)


def test_the_buffer_is_a_multiple_of_the_bandwidth_delay_product() -> None:
    assert round(s.BDP) == 33
    assert s.fifo(0.5) == "pfifo limit 17"
    assert s.fifo(32) == "pfifo limit 1067"


def test_the_model_with_measured_inputs_is_nearer_to_our_result(quick: Reproduction) -> None:
    found = {
        depth: one for depth in s.DEEP if (one := m.assumed(quick.evidence, 1, depth)) is not None
    }
    assert set(found) == {2, 8}
    for depth, one in found.items():
        assert one.full < 1
        assert one.seen < 1
        off, left = (
            abs(m.modelled(depth, one, measured) - 100 * one.share)
            for measured in ((), ("full", "seen", "kept"))
        )
        assert left < 0.7 * off
