"""dualpi2 in the simulator against its controller's aims: the target of the classic queue, the
coupling of both queues, and the shares by the senders' laws (RFC 9332, Appendix C)."""

import math

import polars as pl
import pytest

import sojourn
from sojourn.scenario import loads

MS = 1e6
SCENARIO = """
duration = "30 s"
warmup = "10 s"
[bottleneck]
rate = "40 Mbit/s"
delay = "2.5 ms"
down.qdisc = "dualpi2 any_ect"
"""
SCALABLE = """
[[flow]]
name = "scalable"
kind = "bulk"
congestion = "dctcp"
ecn = true
start = "uniform 0 s .. 1 s"
"""
CLASSIC = """
[[flow]]
name = "classic"
kind = "bulk"
start = "uniform 0 s .. 1 s"
"""


def down(simulated: sojourn.Simulated, table: str) -> pl.DataFrame:
    return simulated.table(table).filter(pl.col("link") == "down")


def by_flow(simulated: sojourn.Simulated, column: str) -> dict[str, float]:
    table = simulated.table("flows").group_by("flow").agg(pl.col(column).sum())
    return dict(zip(table["flow"].cast(pl.String), table[column], strict=True))


@pytest.mark.parametrize(
    ("words", "target_ms"),
    [
        ("dualpi2", 15),
        ("dualpi2 target 5ms", 5),
        ("dualpi2 variant rfc", 15),
        ("dualpi2 variant docsis", 10),
    ],
)
def test_without_l4s_flows_the_classic_queue_is_at_its_target(words: str, target_ms: int) -> None:
    text = (SCENARIO + CLASSIC + "count = 4\n").replace("dualpi2 any_ect", words)
    run = sojourn.simulate(loads(text.replace("40 Mbit/s", "10 Mbit/s")), seeds=[1])
    link = down(run, "links").row(0, named=True)
    assert link["sojourn_sum_ns"] / link["sent_packets"] == pytest.approx(target_ms * MS, rel=0.15)
    assert link["wire_bytes"] * 8 > 0.99 * link["capacity_bits"]
    queue = down(run, "queue")
    assert queue["l4s_delay_ns"].to_list() == [0.0] * len(queue)


def test_the_scalable_flow_has_a_short_queue_and_both_queues_share_p() -> None:
    run = sojourn.simulate(loads(SCENARIO + SCALABLE + CLASSIC), seeds=[1, 2])
    queue = down(run, "queue").filter(pl.col("t_ns") > 10 * 10**9)
    delays = queue.select(pl.col("classic_delay_ns", "l4s_delay_ns").mean()).row(0)
    assert 11 * MS < delays[0] < 17 * MS
    assert delays[1] < 0.6 * MS
    # L marks with probability k p, C drops with p squared: each follows from the other.
    drops = down(run, "drops").filter(pl.col("t_ns") > 10 * 10**9)
    sent = by_flow(run, "sent_packets")
    of_c = drops.filter((pl.col("flow") == "classic") & (pl.col("marked") == 0))
    of_l = drops.filter((pl.col("flow") == "scalable") & (pl.col("marked") == 1))
    assert set(of_l["cause"]) == {"early", "ce_threshold"}
    assert set(of_c["cause"]) == {"early"}
    p_c = len(of_c) / sent["classic"]
    p_cl = len(of_l.filter(pl.col("cause") == "early")) / sent["scalable"]
    assert p_cl == pytest.approx(2 * math.sqrt(p_c), rel=0.25)


@pytest.mark.parametrize(("rtt_ms", "share"), [(5, 2.79), (10, 1.74), (20, 1.22)])
def test_shares_follow_from_the_senders_laws(rtt_ms: int, share: float) -> None:
    """Compares the ratio of DCTCP's rate, 2/(R k p), and CUBIC's, 1.22/(0.85 (R + target) p), at k
    = 2. CUBIC is as slow as Reno here."""
    expected = 0.85 * (rtt_ms + 15) / (1.22 * rtt_ms)
    assert expected == pytest.approx(share, rel=0.01)
    text = (SCENARIO + SCALABLE + CLASSIC).replace("2.5 ms", f"{rtt_ms / 2} ms")
    run = sojourn.simulate(loads(text), seeds=[1, 2, 3])
    delivered = by_flow(run, "delivered_bytes")
    assert delivered["scalable"] / delivered["classic"] == pytest.approx(share, rel=0.2)
