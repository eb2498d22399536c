"""Metrics from tables: each formula against a number worked by hand, and the whole Summary against
a Run small enough to add up."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_run import MBIT, MS, small_run

from sojourn import _core, metrics
from sojourn.records import TABLES
from sojourn.records.schema import ON_REQUEST


def test_utilisation_is_bits_on_the_wire_over_the_link_s_capacity() -> None:
    assert metrics.utilisation(wire_bytes=1_250_000, capacity_bits=20_000_000) == 0.5


def test_a_link_without_a_limit_has_no_utilisation() -> None:
    assert math.isnan(metrics.utilisation(wire_bytes=1, capacity_bits=None))


def test_jain_is_one_when_all_are_equal_and_one_over_n_when_one_has_everything() -> None:
    assert metrics.jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert metrics.jain([8.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    # (1 + 2 + 3)^2 / (3 (1 + 4 + 9))
    assert metrics.jain([1.0, 2.0, 3.0]) == pytest.approx(36 / 42)
    assert math.isnan(metrics.jain([]))
    assert math.isnan(metrics.jain([0.0, 0.0]))


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=30))
def test_jain_lies_between_one_over_n_and_one(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= metrics.jain(shares) <= 1 + 1e-9


def test_students_t_is_the_published_table() -> None:
    published = {
        1: 12.706,
        2: 4.303,
        3: 3.182,
        4: 2.776,
        5: 2.571,
        9: 2.262,
        10: 2.228,
        29: 2.045,
        120: 1.980,
    }
    for degrees, quantile in published.items():
        assert metrics.student_t975(degrees) == pytest.approx(quantile, abs=5e-4), degrees


def test_the_interval_of_three_seeds_is_the_worked_example() -> None:
    found = metrics.mean_ci95([3.0, 4.0, 5.0])
    assert found["mean"] == 4.0
    assert found["ci95"] == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)


def test_one_seed_has_a_mean_and_no_interval() -> None:
    found = metrics.mean_ci95([7.0])
    assert found["mean"] == 7.0
    assert math.isnan(found["ci95"])


def test_seeds_without_a_value_are_left_out_of_the_mean() -> None:
    assert metrics.mean_ci95([math.nan, 2.0, 4.0])["mean"] == 3.0
    assert math.isnan(metrics.mean_ci95([math.nan])["mean"])


def test_the_interval_covers_the_true_mean_in_95_of_100_samples() -> None:
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        found = metrics.mean_ci95(rng.normal(10.0, 3.0, 5))
        inside += abs(found["mean"] - 10.0) <= found["ci95"]
    # The binomial's standard deviation is 0.5 %.
    assert 0.935 <= inside / 2000 <= 0.965


def _histogram(bins: list[tuple[int, int, int]]) -> pl.DataFrame:
    return pl.DataFrame(bins, schema=["lower_ns", "upper_ns", "packets"], orient="row")


def test_a_quantile_is_interpolated_inside_its_bin() -> None:
    histogram = _histogram([(0, 10, 3), (10, 30, 1)])
    assert metrics.histogram_quantile(histogram, "packets", 0.5) == pytest.approx(20 / 3)
    assert metrics.histogram_quantile(histogram, "packets", 0.75) == pytest.approx(10)
    assert metrics.histogram_quantile(histogram, "packets", 0.875) == pytest.approx(20)
    assert metrics.histogram_quantile(histogram, "packets", 1.0) == pytest.approx(30)


def test_empty_bins_and_the_order_of_bins_change_no_quantile() -> None:
    shuffled = _histogram([(10, 30, 1), (30, 40, 0), (0, 10, 3)])
    assert metrics.histogram_quantile(shuffled, "packets", 0.5) == pytest.approx(20 / 3)


def test_an_empty_histogram_has_no_quantile() -> None:
    assert math.isnan(metrics.histogram_quantile(_histogram([(0, 1, 0)]), "packets", 0.5))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300), st.floats(0, 1))
def test_a_histograms_quantile_is_within_a_bin_of_the_samples_quantile(
    values: list[int], q: float
) -> None:
    width = 1000
    counts = Counter(value // width for value in values)
    histogram = _histogram(
        [(number * width, (number + 1) * width, count) for number, count in counts.items()]
    )
    found = metrics.histogram_quantile(histogram, "packets", q)
    # The sample at rank ceil(q n) lies in the same bin.
    exact = sorted(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)]
    assert exact // width * width - 1e-6 <= found <= (exact // width + 1) * width + 1e-6


def test_the_core_takes_an_array_of_one_type_in_one_row_however_it_lies() -> None:
    times = np.arange(0, 10**9, 10**7, dtype=np.int64)
    wanted = [_core.bins_of(times[i : i + 1])[0] for i in range(0, len(times), 2)]
    frozen = times.copy()
    frozen.setflags(write=False)
    assert _core.bins_of(times[::2]).tolist() == wanted
    assert _core.bins_of(frozen[::2]).tolist() == wanted
    assert _core.bins_of(times[::-2]).tolist() == _core.bins_of(times[::-2].copy()).tolist()
    assert _core.bins_of(times[:0]).tolist() == []
    assert _core.bins_of(times).dtype == np.int64
    wrong = (times.astype(float), times.astype(np.int32), times.astype(np.uint64),
             times.astype(">i8"), times.reshape(2, -1), times.tolist(), None)  # fmt: skip
    for each in wrong:
        with pytest.raises(TypeError):
            _core.bins_of(each)  # type: ignore[arg-type]


def test_the_summary_of_a_small_run_adds_up(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", seeds=(1,))
    [numbers] = metrics.summary(run).runs
    [queue] = numbers["queues"]
    # 5 MB are 40 of the 80 Mbit that 10 Mbit/s carry in the 8 s after the warm-up.
    assert queue["utilisation"] == pytest.approx(0.5)
    assert queue["drop_rate"] == pytest.approx(4 / 1000)
    # After the warm-up there is one drop of each of these causes. The early drop before it is not
    # counted.
    assert queue["drops"] == {"early": 1, "limit": 3}
    assert queue["marks"] == {"target": 2}
    assert queue["sojourn_ms"]["mean"] == pytest.approx(12.0)
    assert queue["sojourn_ms"]["max"] == pytest.approx(30.0)
    assert queue["sojourn_ms"]["p50"] == pytest.approx(10.0)
    assert queue["sojourn_ms"]["p99"] <= queue["sojourn_ms"]["max"]
    assert queue["backlog_packets"] == {"mean": 5.5, "max": 40}
    assert queue["ring"] == {
        "sojourn_ms": {"mean": 3, "max": 4},
        "packets": {"mean": 2.5, "max": 3},
        "bql_limit_bytes": 3000,
    }
    first, second, ping = numbers["flows"]
    assert first["goodput_mbps"] == pytest.approx(3.0)
    assert second["goodput_mbps"] == pytest.approx(1.0)
    assert numbers["goodput_mbps"] == pytest.approx(4.0), "a ping's bytes are not goodput"
    assert numbers["jain"] == pytest.approx(16 / (2 * 10))
    assert first["loss_rate"] == pytest.approx(0.01)
    assert first["rtt_ms"]["mean"] == pytest.approx(50.0)
    assert math.isnan(ping["rtt_ms"]["mean"])
    [probe] = numbers["probes"]
    # Six requests, one of them in the warm-up, one lost.
    assert (probe["sent"], probe["received"]) == (5, 4)
    assert probe["loss_rate"] == pytest.approx(0.2)
    assert probe["base_rtt_ms"] == pytest.approx(20.0)
    assert probe["rtt_ms"]["mean"] == pytest.approx((30 + 40 + 50 + 60) / 4)
    assert probe["rtt_ms"]["max"] == pytest.approx(60.0)
    assert numbers["cpu_s"] == pytest.approx(0.25)
    assert numbers["packets"] == 996


def test_the_summary_over_seeds_has_the_shape_of_a_seed(tmp_path: Path) -> None:
    found = metrics.summary(small_run(tmp_path / "run", seeds=(1, 2, 3)))
    assert set(found.summary) == set(found.runs[0]) - {"seed"}
    queue = found.summary["queues"][0]
    assert queue["link"] == "bottleneck"
    assert set(queue) == set(found.runs[0]["queues"][0])
    assert queue["sojourn_ms"]["mean"] == {
        "mean": pytest.approx(12.0),
        "ci95": pytest.approx(0.0, abs=1e-12),
    }
    each = [run["flows"][0]["goodput_mbps"] for run in found.runs]
    assert found.summary["flows"][0]["goodput_mbps"] == metrics.mean_ci95(each)


def test_a_cause_that_one_seed_lacks_counts_as_zero_there() -> None:
    runs = [{"drops": {"limit": 2}}, {"drops": {"limit": 4, "early": 2}}]
    merged = metrics.over_seeds(runs)["drops"]
    assert merged["limit"]["mean"] == 3.0
    assert merged["early"]["mean"] == 1.0


def test_json_has_null_for_unknown_values(tmp_path: Path) -> None:
    found = json.loads(metrics.summary(small_run(tmp_path / "run", seeds=(1,))).to_json())
    assert found["runs"][0]["flows"][2]["rtt_ms"]["mean"] is None
    assert found["summary"]["jain"]["ci95"] is None


def test_json_has_the_keys_that_other_programs_rely_on(tmp_path: Path) -> None:
    found = metrics.summary(small_run(tmp_path / "run")).to_dict()
    assert {
        "engine",
        "version",
        "engine_build",
        "title",
        "duration_s",
        "warmup_s",
        "seeds",
        "fingerprint",
        "runs",
        "summary",
    } <= set(found)
    for run in found["runs"]:
        assert {"queues", "flows", "probes", "jain", "goodput_mbps", "cpu_s", "packets"} <= set(run)
        for queue in run["queues"]:
            assert {
                "link",
                "qdisc",
                "utilisation",
                "arrived_packets",
                "dropped_packets",
                "marked_packets",
            } <= set(queue)
            assert set(queue["sojourn_ms"]) == {"mean", "p50", "p95", "p99", "max"}
            assert set(queue["backlog_packets"]) == {"mean", "max"}
        for flow in run["flows"]:
            assert {
                "name",
                "kind",
                "congestion",
                "goodput_mbps",
                "delivered_bytes",
                "loss_rate",
            } <= set(flow)
            assert {"retransmits", "rtt_ms"} <= set(flow)
        for probe in run["probes"]:
            assert {"name", "sent", "received", "loss_rate"} <= set(probe)
            assert set(probe["rtt_ms"]) == {"min", "mean", "p50", "p95", "p99", "max"}


def test_transfers_count_when_they_began_after_the_warm_up(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", kind="transfers", seeds=(1,))
    first = metrics.summary(run).runs[0]["flows"][0]
    # Three transfers: one from the warm-up, then one of 200 ms and one of 400 ms.
    assert first["transfers"]["completed"] == 2
    assert first["transfers"]["completion_ms"]["mean"] == pytest.approx(300.0)
    assert metrics.summary(run).runs[0]["jain"] == pytest.approx(1.0), (
        "only the second flow is endless"
    )


def test_the_small_run_is_as_described(tmp_path: Path) -> None:
    links = small_run(tmp_path / "run").table("links", seed=1)
    assert links["capacity_bits"].item() == 10 * MBIT * 8
    assert links["sojourn_max_ns"].item() == 30 * MS


def test_flows_whose_congestion_control_is_unknown_are_no_part_of_jain(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    first, *others = run.meta.flows
    tables = {name: run.table(name, 1) for name in TABLES if name not in ON_REQUEST}
    alone = replace(run.meta, flows=(replace(first, congestion=None), *others))
    assert metrics.seed_summary(run.meta, 1, tables)["jain"] < 1
    assert metrics.seed_summary(alone, 1, tables)["jain"] == 1
