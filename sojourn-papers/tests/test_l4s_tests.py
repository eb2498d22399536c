"""The tests of L4S, reproduced in their quick version."""

from __future__ import annotations

import tomllib

import pytest
from laws import *  # noqa: F403

import sojourn_papers as papers
from sojourn_papers import Reproduction, verdict
from sojourn_papers.evidence import Estimate, Evidence, Measure, estimated
from sojourn_papers.l4s_tests import measures as m
from sojourn_papers.l4s_tests import studies as s
from sojourn_papers.l4s_tests.figures import SAYS
from sojourn_papers.study import Variant

PAPER = papers.load("l4s-tests")

MUST_HOLD = 2
IN_PART: set[str] = set()
REPRODUCED = {
    "equal/50/20/prague",
    "equal/50/20/cubic",
    "unequal/Prague, dualpi2, 160 and 10 ms/shorter",
}
UNEXPLAINED: set[str] = set()


def test_the_published_numbers_agree_with_each_other() -> None:
    assert len(PAPER.numbers) == 68
    # Both flows together are nearly all of the link.
    for mbps in s.MBPS:
        for rtt in s.RTT_MS:
            both = SAYS[f"equal/{mbps}/{rtt}/prague"] + SAYS[f"equal/{mbps}/{rtt}/cubic"]
            assert 0.9 * mbps < both < 0.97 * mbps


def test_a_ratio_is_of_both_flows_goodputs(quick: Reproduction) -> None:
    for study in (s.SHARED, s.EQUAL, s.UNEQUAL):
        for variant in quick.evidence.variants(study):
            first, second = (
                quick.evidence.estimate(variant, one) for one in (m.prague_mbps, m.other_mbps)
            )
            ratio = quick.evidence.estimate(variant, m.ratio)
            assert ratio.mean == pytest.approx(first.mean / second.mean)
            assert 40 < first.mean + second.mean < 50


def test_the_source_s_step_spares_two_and_its_prague_has_no_virtual_rtt() -> None:
    for name in ("pair", "falling", "bursty", "video"):
        said = tomllib.loads((PAPER.folder / f"{name}.toml").read_text(encoding="utf-8"))
        assert said["flow"][0]["tcp"] == {"prague_virtual_rtt": "0 s"}, name
    for variant in s.SCALED.values():
        assert "min_qlen_step 2" in s.EQUAL.variants[variant.name]["bottleneck.qdisc"]


def test_hosts_have_the_delay_that_the_search_found() -> None:
    stored = Evidence(False, {}, searched=PAPER.searched(False))
    longer = {
        at: next(one for one in PAPER.numbers if one.id == f"unequal/{at}/longer")
        for at in (f"Prague, dualpi2, {ends}" for ends in s.APART_MS)
    }
    fits = {
        late: sum(
            one.target.met(stored.mean(s.LATENESS[s.late(late, at)], m.prague_mbps))
            for at, one in longer.items()
        )
        for late in s.LATE_MS
    }
    assert max(fits, key=fits.__getitem__) == s.CHOSEN_LATE_MS
    assert list(fits.values()).count(fits[s.CHOSEN_LATE_MS]) == 1
    said = tomllib.loads((PAPER.folder / "pair.toml").read_text(encoding="utf-8"))
    assert {one["jitter"] for one in said["flow"]} == {f"{s.CHOSEN_LATE_MS} ms"}


def test_every_queue_of_finding_1_marks_both_flows_alike() -> None:
    for words in s.QUEUES.values():
        assert words.startswith("fq_codel flows 1") or words.endswith("ecn")


@pytest.mark.parametrize("most_in_the_short_queue", [True, False])
def test_the_source_s_goodputs_reproduce_its_claim_only_in_its_order(
    most_in_the_short_queue: bool,
) -> None:
    said = {one: SAYS[f"video/{one}"] for one in s.VIDEO.variants}
    if not most_in_the_short_queue:
        # Both goodputs are far below that of Prague alone, but the lower one is now with the video
        # in C.
        said |= {"Prague, video in L": 10.0, "Prague, video in C": said["Prague, video in L"]}

    class Printed(Evidence):
        def estimate(self, variant: Variant, _: Measure) -> Estimate:
            return estimated([said[variant.name]])

        def has(self, *_: Variant) -> bool:
            return True

    [claim] = [one for one in PAPER.claims if one.id == "backs_off"]
    found = verdict.checked(claim, Printed(False, {}))
    assert (found.verdict == "reproduced") is most_in_the_short_queue


def test_a_claim_that_names_rates_is_not_judged_without_them(quick: Reproduction) -> None:
    # The claim is on 10, 20 and 100 Mbit/s.
    verdicts = {row.claim.id: row.verdict for row in quick.claims}
    assert verdicts["replayed"] == "not run here"


def test_bursts_turn_the_shares_and_a_longer_step_gives_the_link_back(quick: Reproduction) -> None:
    verdicts = {row.claim.id: row.verdict for row in quick.claims}
    assert {verdicts[one] for one in ("spikes", "underuse", "turned")} == {"reproduced"}
