"""Middleboxes that change ECN fields (`ecn` of a link). The tests check which queue Prague's
packets then enter, which queue marks them, and that the transfer continues."""

import sojourn
from sojourn.scenario import loads

SCENARIO = """
duration = "8 s"
warmup = "3 s"

[[link]]
name = "before"
from = "a"
to = "b"
delay = "1 ms"
rate = "unlimited"

[[link]]
name = "narrow"
from = "b"
to = "c"
rate = "20 Mbit/s"
delay = "9 ms"
qdisc = "dualpi2"

[[flow]]
name = "prague"
kind = "bulk"
from = "a"
to = "c"
congestion = "prague"
ecn = "accecn"
"""


def narrow(remark: str) -> dict[str, float]:
    """Returns the narrow link's marks and drops, its mean sojourn in ms and the share of its rate
    in use."""
    scenario = loads(
        SCENARIO.replace('rate = "unlimited"', f'rate = "unlimited"\necn = "{remark}"')
    )
    table = sojourn.simulate(scenario).table("links")
    row = next(row for row in table.iter_rows(named=True) if row["link"] == "narrow")
    return {
        "marks": row["marked_packets"],
        "drops": row["dropped_packets"],
        "sojourn_ms": row["sojourn_sum_ns"] / row["sent_packets"] / 1e6,
        "use": row["wire_bytes"] * 8 / row["capacity_bits"],
    }


def test_ect1_is_marked_in_the_short_queue() -> None:
    found = narrow("none")
    assert found["marks"] > 100
    assert found["drops"] == 0
    assert found["sojourn_ms"] < 1.5


def test_bleached_prague_is_dropped_as_classic_tcp_is() -> None:
    """The SYN arrives as Not-ECT, so the sender stops using ECT. Not-ECT packets never enter the
    short queue."""
    found = narrow("bleach")
    assert found["marks"] == 0
    assert found["drops"] > 1
    assert 2 < found["sojourn_ms"] < 40
    assert found["use"] > 0.7


def test_packets_changed_to_ect0_are_marked_like_classic_ecn() -> None:
    """Linux accepts the change of the SYN's field and continues with ECT(1)."""
    found = narrow("ect1 to ect0")
    assert found["marks"] > 10
    assert found["drops"] == 0
    assert found["sojourn_ms"] > 2


def test_with_ce_on_every_packet_prague_continues_at_its_least_rate() -> None:
    # 100 kbit/s of payload in packets of 202 bytes, 64 of them headers, are at most 146 kbit/s of
    # 20 Mbit/s. The share is smaller while a window of two packets waits for its ACK.
    assert 0.005 < narrow("ce")["use"] < 0.0075
