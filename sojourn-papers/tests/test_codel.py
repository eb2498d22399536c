"""CoDel's article, reproduced in its quick version."""

from __future__ import annotations

import math
from typing import Any, cast

import polars as pl
import pytest
from laws import *  # noqa: F403

import sojourn_papers as papers
from sojourn.scenario import load
from sojourn_papers import Reproduction, readings
from sojourn_papers.codel import measures as m
from sojourn_papers.codel import studies as s
from sojourn_papers.codel.claims import SAYS
from sojourn_papers.evidence import Estimate, Evidence, Measure, estimated
from sojourn_papers.study import Variant

PAPER = papers.load("codel")
PAPER_TARGETS = {one.id: one.target for one in PAPER.numbers if one.published is not None}

MUST_HOLD = 3
# At 3 Mbit/s the median is twice the target, at 45 and 100 half of it.
IN_PART: set[str] = {"static"}
REPRODUCED = {
    "steps/worst",
    "steps/worst-small",
    "steps/fewer/CoDel",
    "steps/fewer/Tail Drop",
    "table/512/down/CoDel/median",
    "table/512/up/CoDel/volume",
    "table/1500/up/CoDel/median",
}
UNEXPLAINED: set[str] = set()


def test_the_published_numbers_agree_with_each_other() -> None:
    stated = [number for number in PAPER.numbers if number.published is not None]
    assert (len(PAPER.numbers), len(stated)) == (54, 46)
    # 830 packets of 1500 B are 100 ms of 100 Mbit/s and 10 s of 1 Mbit/s.
    assert s.product(100) == 833
    assert pytest.approx(833, rel=0.005) == s.LARGE
    assert pytest.approx(s.LARGE * 12e3 / 1e6, rel=0.01) == SAYS["steps/worst"]
    assert SAYS["steps/worst-small"] == s.SMALL * 12
    assert SAYS["steps/tail-of-codel"] == 100 - SAYS["steps/fewer/Tail Drop"]
    # The table's columns C/T in the source are these ratios.
    assert (
        round(100 * SAYS["table/512/down/CoDel/median"] / SAYS["table/512/down/Tail Drop/median"])
        == 25
    )


def test_the_home_line_s_buffers_fit_most_of_tail_drop_s_numbers() -> None:
    stored = Evidence(False, {}, searched=PAPER.searched(False))
    columns = {"drops": "loss", "median": "median", "volume": "volume", "fairness": "fairness"}

    def fitting(products: int) -> int:
        """The number of Tail Drop's numbers in the table that fit with these buffers."""
        return sum(
            PAPER_TARGETS[f"table/{kbps}/{way}/{s.TAIL}/{column}"].met(
                stored.mean(s.HOMES[s.home(products, s.TAIL, kbps)], getattr(m, f"{way}_{name}"))
            )
            for kbps in s.EDGE_KBPS
            for way in ("down", "up")
            for column, name in columns.items()
        )

    fits = {one: fitting(one) for one in s.SEARCHED_PRODUCTS}
    assert max(fits, key=fits.__getitem__) == s.HOME_PRODUCTS


def test_the_link_steps_as_in_the_article() -> None:
    link = load(PAPER.folder / "degraded.toml").realise(1).links[0]
    assert [step.at_ns / 1e9 for step in link.rate][1:] == list(s.STEPS_S)
    assert [step.bps / 1e6 for step in link.rate] == [100, 10, 1, 50, 1, 100]


@pytest.mark.parametrize("name", s.QUEUES)
def test_every_byte_that_is_counted_went_through_the_link(quick: Reproduction, name: str) -> None:
    evidence = quick.evidence
    one = s.STEPPED[name, s.LARGE]
    parts = [(0, 50), (50, 100), (100, 150), (150, 200), (200, 250), (250, 300)]
    whole = sum(evidence.mean(one, m.carried_mb(*part)) for part in parts)
    assert whole == pytest.approx(evidence.mean(one, m.down_volume), rel=1e-6)
    # 50 s each of 100, 10, 1, 50, 1 and 100 Mbit/s.
    for part, mbps in zip(parts, (100, 10, 1, 50, 1, 100), strict=True):
        assert evidence.mean(one, m.carried_mb(*part)) <= 50 * mbps / 8 + 0.01


def test_no_packet_waits_longer_than_a_full_buffer(quick: Reproduction) -> None:
    for packets, most in ((s.LARGE, 9.96), (s.SMALL, 0.12)):
        for name in s.QUEUES:
            assert quick.evidence.mean(s.STEPPED[name, packets], m.longest_s) <= most + 1e-6


def test_the_quartile_is_above_the_median(quick: Reproduction) -> None:
    for one in s.STEPPED.values():
        assert quick.evidence.mean(one, m.median_ms) <= quick.evidence.mean(one, m.quartile_ms)


def test_the_index_of_equal_shares_is_one_and_of_one_source_s_drops_a_share() -> None:
    assert m.of_shares({"a": 2, "b": 4}, {"a": 100, "b": 200}) == pytest.approx(1)
    assert m.of_shares({"a": 2}, {"a": 100, "b": 200, "c": 50}) == pytest.approx(1 / 3)
    assert math.isnan(m.of_shares({}, {"a": 100}))


def test_the_first_drop_after_a_step_is_waited_for() -> None:
    times = pl.Series([10.0, 40.0, 90.0])
    assert m.first_after(times, 30.0) == 10
    assert m.first_after(times, 100.0) == math.inf


def test_tail_drop_in_codel_s_place_is_counted_beside_the_predictions(quick: Reproduction) -> None:
    # CoDel's 16 cells of the table, its three of the link that steps, two of ten packets (Tail
    # Drop's own changes nothing), four of static links, and RED's of slow links.
    fit, same, of = readings.no_difference(PAPER, quick.evidence, quick.rows)
    assert of == 16 + 3 + 2 + 4 + 1
    assert 0 < same < of
    assert fit > 0


def test_a_median_over_runs_is_of_the_seeds_that_all_have() -> None:
    class Fewer:
        def estimate(self, variant: Variant, _: Measure) -> Estimate:
            return estimated([4.0, 5.0] if variant.name == "5 seeds" else [6.0])

    runs = [Variant("static", name) for name in ("5 seeds", "2 seeds")]
    assert m.median_of(cast(Any, Fewer()), runs).values == (5.0,)
