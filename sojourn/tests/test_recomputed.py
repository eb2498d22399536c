"""One law for all totals: a run's summary equals the sums of its time lines, drops, pings and
packets.

The tables of a run have the same facts in several forms: a total of the engine, a row for every
packet, a row for every interval. This test adds them up anew, with other code, over random small
scenarios: losses, outages, shapers, rings, warm-ups, datagrams, pings, transfers.
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn import metrics
from sojourn.engine import run
from sojourn.records import Run
from sojourn.scenario import Scenario

MS = 1_000_000
QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
NARROW = 1 / 128
"""The ratio of a histogram bin's width to its lower bound."""

# --------------------------------------------------------------------------------------- scenarios

disciplines = st.sampled_from(
    [
        "pfifo limit 20",
        "bfifo limit 30000",
        "pfifo_head_drop limit 8",
        "codel",
        "fq_codel limit 40 ecn",
        "red limit 60000 min 5000 max 20000 avpkt 1000 ecn",
        "adt rate 2mbit",
    ]
)
losses = st.sampled_from(["0 %", "0 %", "3 %", "gemodel 1% 30% 50% 1%"])
schedules = st.sampled_from(
    [
        None,
        None,
        [["0 s", "0 bit/s"], ["300 ms", "3 Mbit/s"]],
        [["0 s", "4 Mbit/s"], ["500 ms", "0 bit/s"], ["700 ms", "1 Mbit/s"]],
        [["0 s", "2 Mbit/s"], ["900 ms", "0 bit/s"]],
        [["0 s", "1 Mbit/s"], ["1 ns", "0 bit/s"], ["2 ns", "8 Mbit/s"]],
    ]
)


@st.composite
def wires(draw: st.DrawFn) -> dict[str, Any]:
    """Random parameters of one direction of the bottleneck."""
    # 1.2 Mbit/s: a packet of 1500 bytes takes 10 ms, so that packets leave exactly at the ends of
    # intervals.
    wire: dict[str, Any] = {
        "rate": draw(st.sampled_from(["1.2 Mbit/s", "700 kbit/s", "5 Mbit/s"])),
        "delay": draw(st.sampled_from(["0 s", "1 ms", "20 ms"])),
        "qdisc": draw(disciplines),
        "loss": draw(losses),
    }
    schedule = draw(schedules)
    if schedule is not None:
        wire["schedule"] = schedule
        del wire["rate"]
    if draw(st.integers(0, 3)) == 0:
        wire["shaper"] = "htb rate 1mbit"
    if draw(st.integers(0, 3)) == 0:
        wire |= {
            "ring": draw(st.sampled_from([1, 4, 256])),
            "bql": draw(st.booleans()),
            "coalesce": "100 us",
        }
    return wire


@st.composite
def flows(draw: st.DrawFn) -> dict[str, Any]:
    own: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"kind": "bulk"},
                {"kind": "bulk", "congestion": "reno", "ecn": True},
                {"kind": "bulk", "size": "60 kB"},
                {"kind": "transfers", "size": "exp 6 kB", "pause": "exp 50 ms"},
                {"kind": "udp", "rate": "1.2 Mbit/s"},
                {"kind": "udp", "rate": "400 kbit/s", "packet": "100 B"},
                {"kind": "onoff", "rate": "3 Mbit/s", "on": "exp 100 ms", "off": "exp 100 ms"},
                {"kind": "ping", "interval": "10 ms"},
                {"kind": "ping", "interval": "100 ms", "packet": "1500 B"},
                {"kind": "video", "rate": "500 kbit/s"},
            ]
        )
    )
    more = {
        "direction": draw(st.sampled_from(["up", "down"])),
        "start": draw(st.sampled_from(["0 s", "130 ms"])),
    }
    return own | more


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    return Scenario.from_document(
        {
            "duration": "1.5 s",
            "warmup": draw(st.sampled_from(["0 s", "500 ms"])),
            "bottleneck": {"delay": "1 ms", "up": draw(wires()), "down": draw(wires())},
            "flow": draw(st.lists(flows(), min_size=1, max_size=4)),
            "record": {
                "queue": draw(st.sampled_from(["10 ms", "70 ms", "100 ms"])),
                "flow": "50 ms",
                "packets": True,
            },
            "seeds": [draw(st.integers(0, 1000))],
        }
    )


# -------------------------------------------------------------------------------------- adding up


class Added:
    """The tables of one seed after the warm-up, and sums over them."""

    def __init__(self, made: Run) -> None:
        (seed,) = made.seeds
        self.warmup, self.end = made.meta.warmup_ns, made.meta.duration_ns
        self.tables = {
            name: made.table(name, seed)
            for name in ("packets", "drops", "probe", "queue", "flow", "flows", "transfers")
        }

    def rows(self, table: str, key: str, name: str) -> pl.DataFrame:
        """The rows of a table for `name` at the end of the warm-up or later."""
        whole = self.tables[table].filter(pl.col(key) == name)
        return whole.filter(pl.col("start_ns" if table == "transfers" else "t_ns") >= self.warmup)

    def intervals(self, link: str) -> pl.DataFrame:
        """The rows of `queue` that end after the warm-up."""
        return self.tables["queue"].filter(
            (pl.col("link") == link) & (pl.col("t_ns") > self.warmup)
        )

    def whole_intervals(self, table: str) -> bool:
        """Whether the warm-up ends at the end of an interval."""
        return self.warmup == 0 or self.warmup in self.tables[table]["t_ns"]

    def grown(self, flow: str, column: str) -> int:
        """Returns the increase of a total in a flow's time line."""
        line = self.tables["flow"].filter(pl.col("flow") == flow)
        before = line.filter(pl.col("t_ns") == self.warmup)[column]
        return int(line[column][-1]) - (int(before.item()) if len(before) else 0)


def queue_adds_up(queue: Mapping[str, Any], added: Added) -> None:
    packets, drops = (
        added.rows("packets", "link", queue["link"]),
        added.rows("drops", "link", queue["link"]),
    )
    waited = np.sort(packets["sojourn_ns"].to_numpy())
    sojourn_ms = queue["sojourn_ms"]
    if len(waited):
        assert sojourn_ms["mean"] == int(waited.sum()) / len(waited) / 1e6
        assert sojourn_ms["max"] == waited[-1] / 1e6
        quantiles_lie_in_their_bins(sojourn_ms, waited)
    else:
        assert all(math.isnan(value) for value in sojourn_ms.values())
    causes = {
        marked: Counter(drops.filter(pl.col("marked") == marked)["cause"].to_list())
        for marked in (0, 1)
    }
    assert (queue["drops"], queue["marks"]) == (causes[0], causes[1])
    assert queue["marked_packets"] == causes[1].total()
    assert queue["lost_packets"] == causes[0]["wire"]
    assert queue["dropped_packets"] == causes[0].total() - causes[0]["wire"]
    times = added.tables["queue"].filter(pl.col("link") == queue["link"])["t_ns"].to_list()
    assert times == [*range(times[0], added.end, times[0]), added.end]
    if added.whole_intervals("queue"):
        lines = added.intervals(queue["link"])
        assert lines["t_ns"][-1] == added.end
        assert lines["sent_packets"].sum() == len(waited)
        assert lines["sent_bytes"].sum() == packets["bytes"].sum()
        assert lines["dropped_packets"].sum() == queue["dropped_packets"]
        assert lines["marked_packets"].sum() == queue["marked_packets"]
        assert lines["sojourn_max_ns"].max() == max(waited, default=0)
        seen = lines.filter(pl.col("sent_packets") > 0)
        total = math.fsum((seen["sojourn_mean_ns"] * seen["sent_packets"]).to_list())
        assert total == pytest.approx(int(waited.sum()), rel=1e-12)
        assert lines["backlog_packets"].max() <= queue["backlog_packets"]["max"]
    assert math.isnan(queue["utilisation"]) or 0 <= queue["utilisation"] <= 1


def quantiles_lie_in_their_bins(times: Mapping[str, float], samples: np.ndarray[Any, Any]) -> None:
    for name, q in QUANTILES.items():
        sample = samples[max(0, math.ceil(q * len(samples)) - 1)]
        assert abs(times[name] * 1e6 - sample) <= 1 + NARROW * sample
    assert times.get("min", 0) <= times["p50"] <= times["p95"] <= times["p99"] <= times["max"]


def flow_adds_up(flow: Mapping[str, Any], added: Added) -> None:
    assert math.isnan(flow["loss_rate"]) or 0 <= flow["loss_rate"] <= 1
    if flow["kind"] in ("udp", "onoff", "video"):
        # The flow has no replies, so each drop is one of its own packets.
        lost = added.rows("drops", "flow", flow["name"]).filter(pl.col("marked") == 0).height
        received = (
            added.tables["flows"].filter(pl.col("flow") == flow["name"])["received_packets"].item()
        )
        if lost + received:
            assert flow["loss_rate"] == lost / (lost + received)
    if flow["kind"] != "ping" and added.whole_intervals("flow"):
        assert flow["delivered_bytes"] == added.grown(flow["name"], "delivered_bytes")
        assert flow["retransmits"] == added.grown(flow["name"], "retransmits")
        assert flow["goodput_mbps"] == flow["delivered_bytes"] * 8 / 1e6 / (
            (added.end - added.warmup) / 1e9
        )
    rtt = flow["rtt_ms"]
    if flow["kind"] in ("udp", "onoff", "video") and added.whole_intervals("flow"):
        longest = (
            added.tables["flow"]
            .filter((pl.col("flow") == flow["name"]) & (pl.col("t_ns") > added.warmup))[
                "delay_max_ns"
            ]
            .max()
        )
        if longest is None:
            assert math.isnan(rtt["max"])
        else:
            assert rtt["max"] == longest / MS
    if not math.isnan(rtt["min"]):
        assert rtt["min"] <= rtt["p50"] <= rtt["p95"] <= rtt["p99"] <= rtt["max"]
        assert rtt["min"] <= rtt["mean"] <= rtt["max"]
        assert flow["base_rtt_ms"] <= rtt["min"]
    if "transfers" in flow:
        rows = added.rows("transfers", "flow", flow["name"])
        assert flow["transfers"]["completed"] == rows.height


def probe_adds_up(probe: Mapping[str, Any], added: Added) -> None:
    rows = added.rows("probe", "probe", probe["name"])
    samples = np.sort(rows["rtt_ns"].drop_nulls().to_numpy())
    assert (probe["sent"], probe["received"]) == (rows.height, len(samples))
    if rows.height:
        assert probe["loss_rate"] == 1 - len(samples) / rows.height or probe[
            "loss_rate"
        ] == pytest.approx((rows.height - len(samples)) / rows.height)
    if len(samples):
        rtt = probe["rtt_ms"]
        assert (rtt["min"], rtt["max"]) == (samples[0] / 1e6, samples[-1] / 1e6)
        assert rtt["mean"] == pytest.approx(int(samples.sum()) / len(samples) / 1e6, rel=1e-12)
        # All packets of a ping have the same size, so no round trip is shorter than through empty
        # queues.
        assert probe["base_rtt_ms"] <= rtt["min"]


def run_adds_up(made: Run) -> Mapping[str, Any]:
    """Checks all queues, flows and probes of a Run of one seed; returns its summary."""
    added = Added(made)
    (one,) = metrics.summary(made).runs
    for queue in one["queues"]:
        queue_adds_up(queue, added)
    for flow in one["flows"]:
        flow_adds_up(flow, added)
    for probe in one["probes"]:
        probe_adds_up(probe, added)
    return one


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_the_summary_is_what_the_tables_add_up_to(scenario: Scenario) -> None:
    one = run_adds_up(run(scenario))
    goodputs = [flow["goodput_mbps"] for flow in one["flows"] if flow["kind"] != "ping"]
    assert one["goodput_mbps"] == sum(goodputs)
    shares = [flow["goodput_mbps"] for flow in one["flows"] if flow["kind"] == "bulk"]
    if any(shares):
        assert one["jain"] == pytest.approx(
            sum(shares) ** 2 / (len(shares) * sum(x * x for x in shares))
        )
