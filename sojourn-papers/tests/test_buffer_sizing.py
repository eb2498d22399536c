"""The sizing of router buffers, reproduced in its quick version."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
from laws import *  # noqa: F403

import sojourn_papers as papers
from sojourn.scenario import load
from sojourn_papers import Reproduction
from sojourn_papers.buffer_sizing import measures as m
from sojourn_papers.buffer_sizing import model
from sojourn_papers.buffer_sizing import studies as s
from sojourn_papers.buffer_sizing.figures import SAYS
from sojourn_papers.evidence import Evidence

PAPER = papers.load("buffer-sizing")

MUST_HOLD = 5
IN_PART: set[str] = set()
REPRODUCED = {
    "single/period",
    "equation/1",
    "equation/2",
    "table/400/2/sim",
    "short/longer/40",
    "short/longer/200",
    "mix/200/utilisation",
}
UNEXPLAINED: set[str] = set()


def test_the_published_numbers_agree_with_each_other() -> None:
    stated = [number for number in PAPER.numbers if number.published is not None]
    assert (len(PAPER.numbers), len(stated)) == (73, 70)
    # 1291 packets over sqrt(n), as the table has them: to a packet or two.
    for n, share in product(s.N, s.SHARES):
        rule = share * s.PRODUCT / math.sqrt(n)
        assert s.PACKETS[n][s.SHARES.index(share)] == pytest.approx(rule, abs=2)
    # 155 Mbit/s for 100 ms are 1291 packets of 1500 B.
    assert int(155e6 * 0.1 / 12_000) == s.PRODUCT
    assert SAYS["single/period"] == pytest.approx(1.5 * 142**2 / 1000, abs=0.06)


def test_the_formula_s_mean_queues_are_the_targets() -> None:
    for packets, mbps in ((6, 40), (14, 40), (14, 200), (16, 40), (30, 40), (62, 40)):
        assert SAYS[f"short/{packets}/{mbps}"] == round(model.mean_queue(packets, s.LOAD), 2)


def test_slow_start_sends_two_four_eight_and_the_rest() -> None:
    assert model.bursts(14) == [2, 4, 8]
    assert model.bursts(16) == [2, 4, 8, 2]
    assert model.bursts(1) == [1]


def test_equation_6_is_worked_by_hand_for_one_flow() -> None:
    # n = 1 and B = 2 T C: erf(1.8371 / 2) = erf(0.91856) = 0.80609.
    assert model.utilisation(1, 1) == pytest.approx(80.61, abs=0.01)
    rising = [model.utilisation(100, share) for share in (0.25, 0.5, 1, 2)]
    assert rising == sorted(rising)


def test_single_packets_wait_as_in_m_d_1() -> None:
    # Bursts of one: E[X] = E[X^2] = 1, so rho / (2 (1 - rho)) - rho / 2.
    assert model.mean_queue(1, 0.5) == pytest.approx(0.5 - 0.25)


def test_the_pair_that_is_nearest_to_100_flows_is_chosen() -> None:
    stored = Evidence(False, {}, searched=PAPER.searched(False))

    def off(tcp: str, access: str) -> float:
        """The distance of a pair from the row of 100 flows, in squared points."""
        return sum(
            (
                stored.mean(s.SEARCH[s.searched(tcp, access, share)], m.utilisation)
                - SAYS[f"table/100/{share:g}/sim"]
            )
            ** 2
            for share in s.SEARCHED_SHARES
        )

    tcp, access = min(product(s.TCPS, s.ACCESS), key=lambda pair: off(*pair))
    assert (tcp, access) == s.CHOSEN_PAIR
    flow = load(PAPER.folder / "long.toml").document()["flow"][0]
    assert s.TCPS[tcp] == {}
    assert flow["access"] == access


def test_users_load_the_line(quick: Reproduction) -> None:
    for mbps in s.RATES:
        assert quick.evidence.mean(s.QUEUES[14, mbps], m.utilisation) == pytest.approx(80, abs=5)


def test_a_larger_buffer_never_has_a_lower_utilisation(quick: Reproduction) -> None:
    for n in (100, 400):
        use = [quick.evidence.mean(s.TABLE[n, share], m.utilisation) for share in s.SHARES]
        # Full links differ in the last packet, which the end of the run cuts.
        assert all(less < more + 0.01 for less, more in pairwise(use))


def test_a_crossing_is_interpolated_between_two_buffers() -> None:
    assert m.crossing((1, 2, 4), (90, 98, 99), 94) == pytest.approx(1.5)
    assert m.crossing((1, 2, 4), (90, 98, 99), 98.5) == pytest.approx(3)
    assert m.crossing((1, 2), (99, 100), 98) == 1
    assert math.isnan(m.crossing((1, 2), (90, 95), 98))


def test_drops_close_together_count_as_one_loss() -> None:
    assert m.mean_gap([10, 10.1, 40, 40.2, 70]) == pytest.approx(30)
    assert math.isnan(m.mean_gap([10, 10.1]))
