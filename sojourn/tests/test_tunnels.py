"""Tunnels: their appearance to queues, the replay window at their ends, and programs that send
ECT(1)."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

import sojourn
from sojourn.scenario import ScenarioError, loads

LINE = """
duration = "12 s"
warmup = "4 s"

[bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
qdisc = "fq_codel"

[[flow]]
name = "one"
kind = "bulk"
count = 3

[[flow]]
name = "other"
kind = "bulk"
start = "97 ms"
"""


def run(settings: Mapping[str, object], text: str = LINE) -> sojourn.Simulated:
    return sojourn.simulate(loads(text).with_(settings))


def most_queues(made: sojourn.Simulated) -> float:
    flows = made.table("queue").filter(pl.col("link") == "down")["flows"].max()
    assert isinstance(flows, float)
    return flows


@pytest.mark.parametrize("qdisc", ["fq_codel", "cake", "fq_pie", "sfq"])
def test_the_flows_of_a_tunnel_share_a_queue_and_others_have_their_own(qdisc: str) -> None:
    settings = {"bottleneck.qdisc": qdisc}
    assert most_queues(run(settings)) == 4
    assert most_queues(run({**settings, "flow.one.tunnel": "vpn"})) == 2
    assert most_queues(run({**settings, "flow.*.tunnel": "vpn"})) == 1


def test_two_tunnels_are_two_flows() -> None:
    assert most_queues(run({"flow.one.tunnel": "a", "flow.other.tunnel": "b"})) == 2


def test_to_cake_a_tunnel_is_one_host_beside_another() -> None:
    """Three flows in a tunnel together get as much as one flow outside of it, although cake also
    shares among flows."""
    made = run({"bottleneck.qdisc": "cake", "flow.one.tunnel": "vpn"})
    got = made.table("flows")["delivered_bytes"].to_list()
    assert sum(got[:3]) == pytest.approx(got[3], rel=0.1)


REORDERED = {
    "bottleneck.qdisc": "dualpi2",
    "flow.*.tunnel": "vpn",
    "flow.one.congestion": "prague",
    "flow.one.ecn": "accecn",
}


def refused(made: sojourn.Simulated) -> pl.DataFrame:
    return made.table("drops").filter(pl.col("cause") == "replay")


def test_a_replay_window_drops_what_waits_in_the_long_queue() -> None:
    found = refused(run({**REORDERED, "bottleneck.down.replay_window": 16}))
    assert found.height > 20
    assert set(found["flow"].to_list()) == {"other"}
    assert set(found["link"].to_list()) == {"down"}


def test_a_window_as_long_as_the_queue_drops_nothing() -> None:
    assert refused(run({**REORDERED, "bottleneck.down.replay_window": 1000})).height == 0


def test_a_queue_that_keeps_order_needs_no_window() -> None:
    for qdisc in ("pfifo limit 100", "codel"):
        settings = {**REORDERED, "bottleneck.qdisc": qdisc, "bottleneck.down.replay_window": 1}
        assert refused(run(settings)).height == 0


def test_packets_outside_of_a_tunnel_are_not_dropped() -> None:
    settings = {**REORDERED, "bottleneck.down.replay_window": 1}
    inside = run({**settings, "flow.*.tunnel": "vpn"})
    assert refused(inside).height > 0
    del settings["flow.*.tunnel"]
    beside = run({**settings, "flow.one.tunnel": "vpn"})
    assert "other" not in refused(beside)["flow"].to_list()


def test_a_tunnel_s_end_accepts_no_packet_twice() -> None:
    text = f"""{LINE}
[[flow]]
name = "datagrams"
kind = "udp"
rate = "1 Mbit/s"
"""
    settings = {"bottleneck.down.duplicate": "50 %", "flow.*.tunnel": "vpn"}
    for window in (None, 64):
        more = {} if window is None else {"bottleneck.down.replay_window": window}
        flows = run({**settings, **more}, text).table("flows")
        received, sent = (flows[column][4] for column in ("received_packets", "sent_packets"))
        assert received <= sent
    assert refused(run({**settings, "bottleneck.down.replay_window": 64}, text)).height == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bottleneck.replay_window": 64}, "replay_window without a tunnel"),
        (
            {"flow.*.tunnel": "vpn", "bottleneck.replay_window": 64, "bottleneck.reorder": "1 %"},
            "the wire reorders, too",
        ),
        ({"flow.*.tunnel": "vpn", "bottleneck.replay_window": 0}, "replay_window"),
    ],
)
def test_invalid_tunnels_are_refused(settings: Mapping[str, object], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        loads(LINE).with_(settings)


PROGRAMS = """
duration = "5 s"

[bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
qdisc = "dualpi2"

[[flow]]
name = "bulk"
kind = "bulk"

[[flow]]
name = "video"
kind = "video"
rate = "2 Mbit/s"

[[flow]]
name = "datagrams"
kind = "udp"
rate = "1 Mbit/s"

[[flow]]
name = "ping"
kind = "ping"

[record]
headers = true
"""


@pytest.mark.parametrize("program", ["video", "datagrams", "ping"])
@pytest.mark.parametrize(("ecn", "field"), [(False, 0), (True, 2), ("ect1", 1)])
def test_a_program_s_packets_have_the_field_that_is_written(
    program: str, ecn: bool | str, field: int
) -> None:
    made = run({f"flow.{program}.ecn": ecn, "flow.ping.dscp": "ef"}, PROGRAMS)
    packets = made.table("headers").filter(pl.col("flow") == program)
    fields = {ds & 0b11 for ds in packets["ds"].to_list()}
    assert fields - {3} == {field}
    assert (3 in fields) <= (field > 0), "only ECN-capable packets are marked"
    if program == "ping":
        assert {ds >> 2 for ds in packets["ds"].to_list()} == {46}


def test_packets_with_ect1_wait_in_the_short_queue() -> None:
    def p95(ecn: bool | str) -> float:
        made = run({"flow.ping.ecn": ecn, "flow.video.rate": "100 kbit/s"}, PROGRAMS)
        return float(made.summary.summary["probes"][0]["rtt_ms"]["p95"]["mean"])

    assert p95("ect1") < 13 < p95(False)
