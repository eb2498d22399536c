"""Tuning without a line: the scenario of a prediction and the laws that it must obey, the tried
rates, the choice, and the quality of a prediction."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.figures.tuning import Tried, Tuning, tuning
from sojourn.linux.operations import LEAST_BPS, WantedShape
from sojourn.linux.rtnl import Interface
from sojourn.scenario.qdisc import LINK_LAYERS
from sojourn_live.measure.intervals import Interval
from sojourn_live.shape.prediction import (
    STEPS,
    LineModel,
    Load,
    Point,
    around,
    caveats,
    choose,
    close,
    grid,
    order,
    predict,
    quality,
    rate_of,
    round_bps,
    scenario,
    wire_share,
    with_rate,
)

S, MS = 10**9, 10**6
ETH0 = Interface("eth0", 2, "ethernet", 1500, 14, 1, 1000, True, 10**9, ())
LINE = LineModel("up", 4_800_000, 20 * MS, 60_000, Interval(100, 90, 110))
"""5 Mbit/s on the wire, with a queue of 96 ms."""
LOAD = Load(2, "cubic", 6 * S, 50 * MS)
BFIFO = WantedShape(None, None, "bfifo limit 12000")
DIRECTIONS = ("up", "down")


def point(
    bps: int, delay: float, low: float = math.nan, high: float = math.nan, goodput: float = 1.0
) -> Point:
    return Point(bps, Interval(goodput, goodput, goodput), Interval(delay, low, high))


# ------------------------------------------------------------------------------------- prediction


@pytest.mark.parametrize(
    ("host", "simulated", "ecn"),
    [
        ("bbr", "bbr", False),
        ("dctcp", "dctcp", True),
        ("prague", "prague", "accecn"),
        ("illinois", "cubic", False),
        ("", "cubic", False),
    ],
)
def test_the_simulated_load_has_the_host_s_congestion_control_and_its_ecn(
    host: str, simulated: str, ecn: bool | str
) -> None:
    made = scenario(
        LINE, WantedShape(None, None, "fq_codel"), ETH0, replace(LOAD, congestion=host), 4_000_000
    )
    tcp = made.realise(1).flows[0].tcp
    assert tcp is not None
    assert (tcp.congestion, tcp.ecn, tcp.accecn) == (simulated, bool(ecn), ecn == "accecn")
    notes = caveats(WantedShape(None, None, "fq_codel"), host)
    assert bool(notes) == (simulated != host)


@pytest.mark.parametrize("link", [None, *LINK_LAYERS])
@pytest.mark.parametrize("qdisc", ["fq_codel", "codel", "cake", "bfifo", "pfifo limit 20"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_shaper_has_a_scenario(direction: str, qdisc: str, link: str | None) -> None:
    wanted = WantedShape(None, None, qdisc, LINK_LAYERS[link] if link else None)
    for bps in (None, 4_000_000):
        made = scenario(replace(LINE, direction=direction), wanted, ETH0, LOAD, bps)
        shaped = {one.name: one for one in made.realise(1).links}["shaper"]
        if qdisc == "cake":
            # cake shapes by itself, and counts the line's cells.
            assert (shaped.shaper, shaped.qdisc.params.get("bandwidth")) == (None, bps)
            continue
        assert (shaped.shaper is None) == (bps is None)
        if shaped.shaper:
            # PTM takes 65 bytes for each 64.
            assert shaped.shaper.bps == (
                4_000_000 * 64 // 65 if link and "ptm" in link else 4_000_000
            )


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_without_a_shaper_the_load_adds_the_whole_queue(direction: str) -> None:
    (found,) = predict(replace(LINE, direction=direction), BFIFO, ETH0, LOAD, [None])
    assert found.added_ms.value == pytest.approx(60_000 * 8e3 / rate_of(LINE, BFIFO, 1500), rel=0.1)
    assert found.goodput_mbps.value == pytest.approx(4.8, rel=0.05)


def test_packets_wait_in_the_shaper_if_it_is_slower_than_the_line_and_otherwise_at_the_line() -> (
    None
):
    line_bps = rate_of(LINE, BFIFO, 1500)
    below, above = predict(LINE, BFIFO, ETH0, LOAD, [round(line_bps * 0.9), round(line_bps * 1.1)])
    assert below.added_ms.value < 12_000 * 8e3 / (line_bps * 0.9) + 2
    assert above.added_ms.value > 60
    assert below.goodput_mbps.value == pytest.approx(0.9 * 4.8, rel=0.05)


def test_the_shaper_is_before_the_line_for_uploads_and_behind_it_for_downloads() -> None:
    for direction, ways in (
        ("up", [("home", "modem", "shaper"), ("modem", "net", "line")]),
        ("down", [("net", "modem", "line"), ("modem", "home", "shaper")]),
    ):
        made = scenario(replace(LINE, direction=direction), BFIFO, ETH0, LOAD, 4_000_000).realise(1)
        path = next(flow.path for flow in made.flows if flow.kind == "bulk")
        assert [made.links[number].name for number in path] == [name for _, _, name in ways]


def test_features_that_the_simulator_lacks_are_reported() -> None:
    assert caveats(BFIFO, "cubic") == []
    assert caveats(WantedShape(None, None, "cake nat"), "cubic") == []
    [doubt] = caveats(WantedShape(None, None, "codel target 5"), "cubic")
    assert doubt.startswith("target 5 is 5 us")
    filtered = caveats(WantedShape(None, None, "cake ack-filter"), "bic")
    assert filtered == ["the simulator has no bic: predicted with cubic"]


def test_a_line_s_rate_is_counted_as_its_shaper_counts() -> None:
    # 1500 bytes of IP contain 1448 of data; Linux counts 1514, DSL counts 33 cells of 53 bytes.
    assert wire_share(None, 1500) == pytest.approx(1514 / 1448)
    assert wire_share(LINK_LAYERS["pppoe-llcsnap"], 1500) == pytest.approx(33 * 53 / 1448)
    assert wire_share(LINK_LAYERS["pppoe-ptm"], 1500) == pytest.approx(1554 / 1448)


# ---------------------------------------------------------------------------------- what is tried


@given(st.floats(10 * LEAST_BPS, 10**10), st.integers(0, 13))
def test_the_rates_tried_lie_around_the_predicted_one_and_hardly_above_the_line(
    line_bps: float, last_good: int
) -> None:
    rates = grid(line_bps)
    tried = around(
        line_bps, [point(bps, 10 if i <= last_good else 100) for i, bps in enumerate(rates)], 30
    )
    assert tried == sorted(set(tried))
    assert len(tried) == len(STEPS)
    assert tried[-1] <= 1.06 * line_bps
    assert tried[0] <= rates[last_good] * 1.01
    assert tried[-1] >= min(rates[last_good], line_bps)


def test_slow_rates_are_tried_if_no_rate_is_predicted_to_meet_the_target() -> None:
    tried = around(10e6, [point(bps, 100) for bps in grid(10e6)], 30)
    assert tried[0] < 5_000_000 < tried[-1] < 7_000_000


def test_repeats_take_turns_forth_and_back() -> None:
    assert order([1, 2, 3], 3) == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 3),
        (1, 2),
        (1, 1),
        (2, 1),
        (2, 2),
        (2, 3),
    ]


@given(st.floats(LEAST_BPS, 10**11))
def test_a_rate_is_rounded_to_three_digits(bps: float) -> None:
    rounded = round_bps(bps)
    assert abs(rounded - bps) <= 0.005 * bps + 1
    assert len(str(rounded).rstrip("0")) <= 3


def test_only_one_direction_is_shaped_at_a_time() -> None:
    assert (with_rate(BFIFO, "up", 5).up_bps, with_rate(BFIFO, "up", 5).down_bps) == (5, None)
    assert (with_rate(BFIFO, "down", 5).up_bps, with_rate(BFIFO, "down", 5).down_bps) == (None, 5)


# --------------------------------------------------------------------------------- what is chosen


def test_the_fastest_whose_whole_interval_is_below_the_target_is_chosen() -> None:
    found = choose([point(3, 40, 35, 45), point(1, 10, 9, 11), point(2, 20, 15, 29)], 30)
    assert found.point is not None
    assert (found.point.bps, found.sure) == (2, True)


def test_a_rate_whose_interval_reaches_above_the_target_is_not_preferred_to_a_certain_one() -> None:
    found = choose([point(1, 10, 9, 11), point(2, 20, 5, 35)], 30)
    assert found.point is not None
    assert (found.point.bps, found.sure) == (1, True)


@pytest.mark.parametrize("high", [35.0, math.nan])
def test_if_no_rate_is_certain_the_mean_decides_and_this_is_reported(high: float) -> None:
    found = choose([point(1, 10, 0, high), point(2, 20, 5, high), point(3, 31, 5, high)], 30)
    assert found.point is not None
    assert (found.point.bps, found.sure) == (2, False)
    assert "--repeats" in found.why


def test_a_good_rate_above_a_bad_one_is_not_chosen() -> None:
    found = choose([point(1, 10, 9, 11), point(2, 90, 80, 99), point(3, 12, 11, 13)], 30)
    assert found.point is not None
    assert found.point.bps == 1


@pytest.mark.parametrize("points", [[], [point(1, 50, 40, 60)], [point(1, math.nan)]])
def test_possibly_no_rate_meets_the_target(points: list[Point]) -> None:
    assert choose(points, 30).point is None


# -------------------------------------------------------------------------------- how good it was


def test_a_prediction_is_judged_at_the_rates_that_have_both() -> None:
    judged = quality(
        [point(1, 10, goodput=0.9), point(2, 20, goodput=2), point(9, 1)],
        [point(1, 12, goodput=1), point(2, 60, goodput=2), point(3, 1)],
    )
    assert judged.off_ms == [-2, -40]
    assert judged.off_goodput == pytest.approx([-0.1, 0])
    assert judged.good == 1


@pytest.mark.parametrize(
    ("predicted", "measured", "is_close"),
    [(6, 10, True), (4, 10, False), (140, 100.1, False), (130, 100, True), (math.nan, 5, False)],
)
def test_close_is_5_ms_or_30_percent(predicted: float, measured: float, is_close: bool) -> None:
    assert close(predicted, measured) == is_close


# ----------------------------------------------------------------------------------------- figure


def test_the_figure_shows_what_was_measured_predicted_wanted_and_chosen() -> None:
    def tried(label: str, delay: float, goodput: float) -> Tried:
        return Tried(label, (delay, delay - 1, delay + 1), (goodput, math.nan, math.nan))

    what = Tuning(
        "title",
        "subtitle",
        30.0,
        [tried("7mbit", 12, 6.7), tried("8mbit", 140, 7.6)],
        [tried("4mbit", 15, 3.8), tried("7mbit", 15, 6.7), tried("8mbit", 143, 7.6)],
        (tried("no shaper", 197, 7.6), tried("no shaper", 206, 7.57)),
        "7mbit",
    )
    axes = tuning(what).axes[0]
    lines = {line.get_gid(): line for line in axes.lines if line.get_gid()}
    assert set(lines) == {"target", "predicted", "predicted unshaped", "unshaped", "chosen"}
    assert list(lines["predicted"].get_xdata()) == [15, 15, 143]
    assert (lines["chosen"].get_xdata()[0], lines["chosen"].get_ydata()[0]) == (12, 6.7)
    assert {text.get_text() for text in axes.texts} >= {"7mbit (chosen)", "8mbit"}
    low, high = axes.get_xlim()
    assert low < 12
    assert high > 206
