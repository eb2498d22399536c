"""RED against Drop-Tail: one quick reproduction, and its laws."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from laws import *  # noqa: F403

import sojourn_papers as papers
from sojourn_papers import readings, searched
from sojourn_papers.evidence import Estimate, Evidence, Measure, Seed, estimated
from sojourn_papers.paper import Role
from sojourn_papers.red_droptail import claims, search
from sojourn_papers.red_droptail.claims import SAYS
from sojourn_papers.red_droptail.measures import (
    agreement,
    correlation,
    drop_share,
    dropped_early,
    fairness,
    lead,
    notified_in_proportion,
    pairs,
    sojourn_ms,
    throughput_mbps,
)
from sojourn_papers.red_droptail.studies import (
    CHECKED,
    DRAWN,
    DROP_TAIL,
    FAIRNESS,
    MAIN,
    RED,
    THROUGHPUT,
    WITH_QUEUES,
    Setting,
    cell,
)
from sojourn_papers.reproduction import Reproduction
from sojourn_papers.study import Variant

PAPER = papers.load("red-droptail")

MUST_HOLD = 6
IN_PART: set[str] = set()
REPRODUCED = {f"throughput/80/{n}/{queue}" for n in (20, 24, 32) for queue in (RED, DROP_TAIL)}
UNEXPLAINED: set[str] = set()


# ------------------------------------------------------------------------------- the reproduction


def test_all_44_cells_and_22_leads_are_judged_in_the_quick_version_too(quick: Reproduction) -> None:
    leads = [row for row in quick.rows if row.number.id.startswith("lead/")]
    assert (len(quick.rows), len(leads)) == (66, 22)
    assert quick.left_out == 0
    # Cells are not predictions: a search fitted those of Drop-Tail, and those of RED are as near.
    assert {row.number.id for row in quick.rows if row.number.role is Role.PREDICTED} == {
        row.number.id
        for row in leads
        if "/250/" not in row.number.id or "fairness" in row.number.id
    }


def test_red_drops_no_packet_early_in_the_short_runs_and_leads_by_one_packet_of_room(
    quick: Reproduction,
) -> None:
    evidence = quick.evidence
    for n in (12, 16, 20, 24, 32):
        red = evidence.estimate(THROUGHPUT[cell(250, n, RED)], throughput_mbps)
        same = evidence.estimate(WITH_QUEUES[cell(250, n, "Drop-Tail, 30 places")], throughput_mbps)
        assert evidence.mean(THROUGHPUT[cell(250, n, RED)], dropped_early) == 0
        assert red.values == same.values
        assert red.mean > evidence.mean(THROUGHPUT[cell(250, n, DROP_TAIL)], throughput_mbps)


def test_each_row_of_drop_tail_is_within_six_percent_of_ns2s(quick: Reproduction) -> None:
    count, median, most = agreement(quick.evidence, DROP_TAIL)
    assert count == 19
    assert median < 0.01
    assert most < 0.06


def test_ns2s_own_fairness_is_met_where_flows_start_at_once(quick: Reproduction) -> None:
    rows = [pair for pair in pairs(quick.evidence) if pair.reading == "F1"]
    assert len(rows) == 3
    assert all(abs(pair.ours - pair.ns2) < 0.02 for pair in rows)


def test_adaptive_red_costs_little_and_saves_nearly_all_of_the_delay(quick: Reproduction) -> None:
    bloated, cured = PAPER.story(quick.evidence)
    assert (bloated.kind, cured.kind) == ("bloated", "cured")
    assert cured.delay_ms < bloated.delay_ms / 5


# -------------------------------------------------------------------------- the published numbers


@pytest.mark.parametrize(
    ("table", "cells", "red", "tail"),
    [
        ("throughput/80", 16, 86.0, 85.9),
        ("throughput/250", 16, 11.93, 11.63),
        ("fairness/75", 6, 1.753, 1.660),
        ("fairness/250", 6, 2.250, 1.991),
    ],
)
def test_the_published_tables_are_complete(table: str, cells: int, red: float, tail: float) -> None:
    # The sums of the columns, computed by hand.
    typed = {name: value for name, value in SAYS.items() if name.startswith(f"{table}/")}
    assert len(typed) == cells
    for queue, total in ((RED, red), (DROP_TAIL, tail)):
        column = [value for name, value in typed.items() if name.endswith(f"/{queue}")]
        assert sum(column) == pytest.approx(total)


@pytest.mark.parametrize("cell", search.CELLS)
def test_a_published_lead_is_that_of_the_two_cells(cell: search.Cell) -> None:
    kind, tp, at = cell
    red, tail = (SAYS[f"{kind}/{tp}/{at}/{queue}"] for queue in (RED, DROP_TAIL))
    assert SAYS[search.lead_id(cell)] == pytest.approx(lead(kind, red, tail), abs=5e-5)


def test_the_fall_with_the_spread_is_that_of_drop_tail_s_column() -> None:
    class Printed(Evidence):
        """The source's own indices. Those of RED rise from D = 15 to D = 20 in case 3."""

        def estimate(self, variant: Variant, _: Measure) -> Estimate:
            tp, _n, d, queue = (part.removeprefix("Tp ") for part in variant.name.split(", "))
            return estimated([SAYS[f"fairness/{tp.split()[0]}/{d.split()[1]}/{queue}"]])

    assert min(claims.falls_with_spread(Printed(False, {})).measured.values()) > 0


# -------------------------------------------------------------------------------------- the search


def test_the_search_has_every_setting_on_separate_seeds() -> None:
    rows = searched.beside(search.__file__).rows
    assert [
        (one["search"], one["length_s"], one["spread_ms"], one["places"], one["red"])
        for one in rows
    ] == [
        *(
            (search.STARTS, str(length), str(spread), str(MAIN.places), MAIN.red)
            for length in search.STARTS_LENGTHS_S
            for spread in search.STARTS_MS
        ),
        *(
            (search.REDS, str(length), str(MAIN.spread_ms), str(places), red)
            for length in search.LENGTHS_S
            for places in search.PLACES
            for red in search.reds()
        ),
    ]
    for study in (THROUGHPUT, FAIRNESS, WITH_QUEUES):
        assert set(range(study.first_seed, study.first_seed + study.seeds)).isdisjoint(search.SEEDS)


def test_a_setting_of_the_search_is_reproduced() -> None:
    stored = searched.beside(search.__file__).rows[-1]
    length, places = float(stored["length_s"]), int(stored["places"])
    setting = replace(MAIN, length_s=length, places=places, red=stored["red"])
    again = search.row_of(search.REDS, setting)
    assert {key: str(value) for key, value in again.items()} == dict(stored)


def test_the_starts_that_are_nearest_to_drop_tail_s_cells_are_chosen() -> None:
    nearest = search.starts()[0]
    assert (nearest.length_s, nearest.spread_ms) == (MAIN.length_s, MAIN.spread_ms)


def test_a_red_of_few_packets_leads_in_fairness_and_pays_in_throughput() -> None:
    found = search.trade(4)
    assert found.source == pytest.approx((0.044 + 0.095 + 0.12) / 3)
    assert found.best < found.source / 2
    assert found.price > found.chosen_off


def test_ns2s_tables_have_a_value_for_every_row() -> None:
    ns2 = SAYS["ns2"]
    assert {len(row["values"]) for row in ns2["throughput"]} == {8}
    assert {len(row["values"]) for row in ns2["fairness"]} == {3}
    assert {row["reading"] for row in (*ns2["throughput"], *ns2["fairness"])} == set(CHECKED)


# -------------------------------------------------------------------------------- cases, measures


def test_a_flow_starts_one_round_trip_late_for_its_syn() -> None:
    # Tp 80 ms is the round trip, 4 ms of access; D = 10 makes the fourth flow's RTT 2 * 10 * 3 =
    # 60 ms longer.
    flow = MAIN.flow(80, 10, 3)
    assert flow["rtt"] == "144 ms"
    assert flow["start"] == "uniform 144 ms .. 151 ms"


def test_tp_one_way_doubles_the_path_and_stagger_starts_flows_in_turn() -> None:
    setting = Setting(one_way=True, stagger_ms=50, spread_ms=0)
    assert setting.flow(80, 0, 2)["start"] == "264 ms"
    assert setting.variant(80, 4, RED)["bottleneck.delay"] == "80 ms"


def test_ns2s_drop_tail_holds_one_packet_less_than_its_limit() -> None:
    assert MAIN.queue(DROP_TAIL) == "pfifo limit 29"
    assert MAIN.queue(RED) == "red variant ns2 limit 30 packets"


@pytest.fixture
def seed() -> Seed:
    """Two flows for 2 s: 100 of 110 and 50 of 50 packets of 1000 B arrived; nine of ten drops are
    of the first flow."""
    tables = {
        "flows": pl.DataFrame(
            {
                "flow": ["a", "b"],
                "sent_packets": [110, 50],
                "sent_bytes": [110_000, 50_000],
                "received_packets": [100, 50],
            }
        ),
        "links": pl.DataFrame(
            {
                "link": ["down", "up"],
                "arrived_packets": [160, 150],
                "dropped_packets": [10, 0],
                "sent_packets": [150, 150],
                "sojourn_sum_ns": [300_000_000, 0],
            }
        ),
        "drops": pl.DataFrame(
            {
                "t_ns": list(range(1, 11)),
                "link": ["down"] * 10,
                "flow": ["a"] * 9 + ["b"],
                "cause": ["limit"] * 7 + ["early"] * 3,
            }
        ),
    }
    meta = SimpleNamespace(measured_s=2.0, warmup_ns=0)
    run = SimpleNamespace(meta=meta, table=lambda name, number: tables[name])
    return Seed(cast(Any, run), 1)


def test_throughput_is_received_ip_bytes_over_the_run(seed: Seed) -> None:
    # 150 kB in 2 s.
    assert throughput_mbps(seed) == pytest.approx(0.6)


def test_fairness_is_jains_index(seed: Seed) -> None:
    # (2 + 1)^2 / (2 (4 + 1)).
    assert fairness(seed) == pytest.approx(0.9)


def test_drops_are_counted_by_link_and_cause(seed: Seed) -> None:
    assert drop_share(seed) == 10 / 160
    assert dropped_early(seed) == 3
    assert sojourn_ms(seed) == 2


def test_a_flow_s_share_of_drops_correlates_with_its_share_of_packets(seed: Seed) -> None:
    assert notified_in_proportion(seed) == pytest.approx(1)


def test_correlation_of_a_hand_worked_case() -> None:
    # Deviations -1 0 1 and 0 -1 1: 1 / 2.
    assert correlation([1, 2, 3], [2, 1, 3]) == pytest.approx(0.5)
    assert math.isnan(correlation([1, 1], [1, 2]))


def test_drawn_delays_lie_in_the_range_that_d_gives() -> None:
    for name, changes in DRAWN.variants.items():
        d = int(name.rsplit("D ", 1)[1].split(",")[0])
        tp = int(name.split("Tp ")[1].split()[0])
        rtts = [float(flow["rtt"].split()[0]) for flow in changes["flow"]]
        assert len(rtts) == 16
        assert tp + 4 <= min(rtts) < max(rtts) <= tp + 4 + 2 * d * 15
        # Each delay is drawn, so no two flows have the same.
        assert len(set(rtts)) == 16


def test_drop_tail_also_fits_the_predictions_for_red(quick: Reproduction) -> None:
    fit, same, of = readings.no_difference(PAPER, quick.evidence, quick.rows)
    assert (fit, of) == (10, 14)
    # The source has no difference in these ten cells.
    assert same == fit
