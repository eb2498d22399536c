"""A sender learns of exactly the marks that queues made, packet by packet and byte by byte. The
tests compare the marks of the links, the receiver's counters and the receiver's last ACK."""

from __future__ import annotations

import polars as pl
import pytest

import sojourn
from sojourn.scenario import loads

SCENARIO = """
duration = "30 s"

[[link]]
name = "first"
from = "a"
to = "b"
rate = "30 Mbit/s"
delay = "4 ms"
qdisc = "fq_codel ce_threshold 2ms"

[[link]]
name = "narrow"
from = "b"
to = "c"
rate = "20 Mbit/s"
delay = "6 ms"
qdisc = "dualpi2"

[[flow]]
name = "told"
kind = "bulk"
from = "a"
to = "c"
size = "8 MB"
congestion = "prague"
ecn = "accecn"

[record]
headers = true
"""
CE = 0b11
WRAPS = 1 << 24


def run(settings: dict[str, object]) -> sojourn.Simulated:
    return sojourn.simulate(loads(SCENARIO).with_(settings))


@pytest.mark.parametrize(
    ("congestion", "qdisc"),
    [
        ("prague", "dualpi2"),
        ("prague", "dualpi2 variant=rfc"),
        ("prague", "dualpi2 variant=docsis"),
        ("dctcp", "codel target 100ms ce_threshold 1ms ecn"),
        ("cubic", "codel ecn"),
        ("cubic", "pie ecn"),
        ("reno", "cake"),
    ],
)
def test_the_last_ack_reports_every_mark_that_a_queue_made(congestion: str, qdisc: str) -> None:
    made = run({"flow.told.congestion": congestion, "link.narrow.qdisc": qdisc})
    assert made.table("transfers").height == 1
    drops = made.table("drops")
    packets = made.table("headers")
    data = packets.filter((pl.col("reply") == 0) & (pl.col("payload_bytes") > 0))
    # A packet that the first queue marked arrives marked at the second, which does not mark it
    # again.
    arrived = data.filter(pl.col("link") == "narrow")
    marked = arrived.filter(pl.col("ds") & CE == CE)
    on_links = drops.filter((pl.col("marked") == 1) & pl.col("link").is_in(["first", "narrow"]))
    lost = drops.filter((pl.col("marked") == 0) & pl.col("link").is_in(["first", "narrow"]))
    if lost.height == 0:
        assert marked.height == on_links.height
    assert marked.height > 1
    last = packets.filter((pl.col("reply") == 1) & pl.col("accecn_ceb").is_not_null()).tail(1)
    assert last["accecn_ceb"][0] == marked["payload_bytes"].sum() % WRAPS


def test_without_a_marking_queue_no_ack_reports_marks() -> None:
    made = run({"link.first.qdisc": "pfifo", "link.narrow.qdisc": "pfifo limit 1000"})
    counters = made.table("headers").filter(pl.col("reply") == 1)["accecn_ceb"]
    assert set(counters.drop_nulls().to_list()) == {0}
