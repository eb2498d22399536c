"""Below a queue discipline: a shaper, a driver's ring and byte queue limits. Tests their words,
their tables, and Linux's own numbers.

The numbers were measured on Linux 6.12 with its own BQL over a driver with a ring: 10 Mbit/s, four
cubic flows, a ping, 15 s, and a delay of 20 ms on the way back.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tree import ROOT

import sojourn
from sojourn import metrics
from sojourn.records import Run
from sojourn.scenario import ScenarioError, loads
from sojourn.scenario.qdisc import Shaper
from sojourn.scenario.realised import Link
from sojourn.units import UnitError

LINK = """
duration = "2 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
{keys}
[[flow]]
kind = "bulk"
"""

KBPS = 8_000


def realised(keys: str) -> tuple[Link, ...]:
    return loads(LINK.format(keys=keys)).realise(1).links


# Words
# --------------------------------------------------------------------------------------------------


def test_a_link_has_nothing_below_its_queue_by_default() -> None:
    for link in realised(""):
        assert link.ring is None
        assert link.shaper is None


def test_both_directions_have_the_bottleneck_s_settings_unless_they_override_them() -> None:
    down, up = realised('ring = 512\nbql = true\ncoalesce = "1 ms"\nup.ring = 64\nup.bql = false')
    rings = [(each.ring.descriptors, each.ring.bql, each.ring.coalesce_ns) for each in (down, up)]
    assert rings == [(512, True, 1_000_000), (64, False, 1_000_000)]


def test_a_direction_may_do_without_the_common_shaper() -> None:
    down, up = realised('shaper = "htb rate 1mbit"\ndown.shaper = "none"')
    assert down.shaper is None
    assert up.shaper.bps == 1_000_000


@pytest.mark.parametrize(
    ("text", "shaper", "canonical"),
    [
        # tc's kbps is 1000 bytes/s. The default burst is 1600 bytes with a clock in nanoseconds.
        ("htb rate 125kbps burst 1600", Shaper(125 * KBPS, 1600), "htb rate 1mbit"),
        ("htb  rate 900kbit", Shaper(900_000, 1600), "htb rate 900kbit"),
        ("htb rate 40gbit", Shaper(40 * 10**9, 1605), "htb rate 40gbit"),
        ("htb rate 1mbit burst 15k", Shaper(10**6, 15_360), "htb rate 1mbit burst 15360"),
        (
            "htb rate 1mbit mpu 64 overhead 10 linklayer adsl",
            Shaper(10**6, 1600, 10, 64, "atm"),
            "htb rate 1mbit overhead 10 mpu 64 linklayer atm",
        ),
    ],
)
def test_a_shaper_means_what_it_means_to_tc(text: str, shaper: Shaper, canonical: str) -> None:
    assert Shaper.parse(text) == shaper
    assert shaper.text == canonical
    assert Shaper.parse(canonical) == shaper


@pytest.mark.parametrize(
    ("text", "offset", "hint"),
    [
        ("tbf rate 1mbit", 0, "nearest: htb"),
        ("hbt rate 1mbit", 0, "did you mean htb?"),
        ("none rate 1mbit", 5, "write none, or a shaper"),
        ("htb", 0, "like htb rate 1mbit"),
        ("htb rate", 4, "write rate RATE"),
        ("htb rate 1mbit ceil 2mbit", 20, "leave it out"),
        ("htb rate 1mbit brust 1600", 15, "did you mean burst?"),
        ("htb rate 1mbit rate 2mbit", 15, "write it once"),
        ("htb rate 0bit", 9, "10mbit"),
        ("htb rate 7bit", 9, "write 8bit or more"),
        ("htb rate 1mbit burst 0", 21, "leave burst out"),
        ("htb rate 1mbit linklayer dsl", 25, "one of ethernet, atm, adsl"),
        ("htb rate 20 Mbit/s", 12, "known words"),
    ],
)
def test_an_error_in_a_shaper_points_at_the_wrong_word(text: str, offset: int, hint: str) -> None:
    with pytest.raises(UnitError) as refused:
        Shaper.parse(text)
    assert hint in refused.value.hint
    assert refused.value.offset == offset


@pytest.mark.parametrize(
    ("keys", "place", "words"),
    [
        ("bql = true", "bottleneck.bql", "write ring = 256"),
        ("up.bql = true", "bottleneck.up.bql", "write ring = 256"),
        ('coalesce = "1 ms"', "bottleneck.coalesce", "leave coalesce out"),
        ("ring = 0", "bottleneck.ring", "leave ring out, or write ring = 1"),
        ("ring = -1", "bottleneck.ring", "from 1 to 65536"),
        ("ring = 1000000", "bottleneck.ring", "from 1 to 65536"),
        ('ring = "512"', "bottleneck.ring", "ring = 512"),
        ("ring = true", "bottleneck.ring", "ring = 512"),
        ('ring = 8\nup.rate = "unlimited"', "bottleneck.ring", "give the link a rate or a shaper"),
        (
            'up.ring = 8\nup.rate = "unlimited"',
            "bottleneck.up.ring",
            "give the link a rate or a shaper",
        ),
        ("shaper = 7", "bottleneck.shaper", "htb rate 1mbit"),
        ('ring = 8\nbql = "yes"', "bottleneck.bql", "write true or false"),
        ("tx_ring = 8", "bottleneck.tx_ring", "did you mean ring?"),
    ],
)
def test_settings_without_meaning_are_refused_with_their_place(
    keys: str, place: str, words: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(LINK.format(keys=keys))
    problems = refused.value.problems
    assert [problem.dotted for problem in problems] == [place]
    assert words in problems[0].hint
    assert problems[0].line is not None


def test_the_canonical_text_keeps_what_lies_below() -> None:
    scenario = loads(
        LINK.format(keys='ring = 8\nbql = true\ncoalesce = "50 us"\nup.shaper = "htb rate 125kbps"')
    )
    again = loads(scenario.to_toml())
    assert again == scenario
    assert 'shaper = "htb rate 1mbit"' in scenario.to_toml()


def test_a_discipline_that_computes_with_the_rate_uses_the_shaper_s() -> None:
    keys = 'up.rate = "unlimited"\nup.qdisc = "adt"\nup.shaper = "htb rate 1mbit"'
    assert loads(LINK.format(keys=keys)).realise(1).links[1].shaper.bps == 1_000_000


# Recorded tables
# --------------------------------------------------------------------------------------------------


def run(text: str, folder: Path) -> Run:
    return sojourn.run(loads(text), out=folder)


def queue_of(done: Run, name: str = "down") -> dict[str, Any]:
    return next(queue for queue in metrics.summary(done).runs[0]["queues"] if queue["link"] == name)


def test_without_a_ring_its_columns_are_null(tmp_path: Path) -> None:
    done = run(LINK.format(keys="down.ring = 16"), tmp_path / "run")
    columns = ["ring_packets", "ring_bytes", "bql_limit_bytes"]
    rows = done.table("queue").filter(pl.col("t_ns") > 10**9)
    down, up = (rows.filter(pl.col("link") == name).select(columns) for name in ("down", "up"))
    assert up.null_count().row(0) == (up.height,) * 3
    assert down.null_count().row(0) == (0, 0, down.height)
    assert down["ring_packets"].max() == 16, "the only flow saturates the link"
    totals = done.table("links").filter(pl.col("link") == "up")
    ring = [name for name in totals.columns if name.startswith(("ring_", "bql_"))]
    assert totals.select(ring).null_count().row(0) == (1,) * 6
    assert queue_of(done, "up")["ring"] is None
    output = json.loads(metrics.summary(done).to_json())
    assert output["summary"]["queues"][1]["ring"] is None
    assert output["summary"]["queues"][0]["ring"]["packets"]["max"]["mean"] == 16


def test_meta_records_ring_and_shaper(tmp_path: Path) -> None:
    keys = 'up.rate = "unlimited"\nup.shaper = "htb rate 125kbps"\nring = 256\nbql = true'
    down, up = run(LINK.format(keys=keys), tmp_path / "run").meta.links
    assert (down.rate_bps, down.below) == (10_000_000, "ring of 256, BQL")
    assert (up.rate_bps, up.below) == (1_000_000, "htb rate 1mbit, ring of 256, BQL")
    assert Run.open(tmp_path / "run").meta.links == (down, up)


def test_the_base_rtt_includes_neither_ring_nor_shaper(tmp_path: Path) -> None:
    plain = run(LINK.format(keys=""), tmp_path / "plain")
    below = run(LINK.format(keys='ring = 256\nshaper = "htb rate 5mbit"'), tmp_path / "below")
    base = [done.table("flows")["base_rtt_ns"].to_list() for done in (plain, below)]
    assert base[0] == base[1]


# Comparison with Linux
# --------------------------------------------------------------------------------------------------

LINUX = """
title = "As the kernel was measured"
duration = "15 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "0 s"
link_layer = "linux"
qdisc = "{qdisc}"
down.ring = {ring}
down.bql = {bql}
{more}
up.rate = "unlimited"
up.delay = "20 ms"
[[flow]]
kind = "bulk"
count = 4
[[flow]]
kind = "ping"
direction = "down"
start = "3 s"
"""
FULL_MS = 1514 * 8 / 10_000
"""A full packet at 10 Mbit/s."""


@pytest.mark.parametrize(
    ("qdisc", "ring", "bql", "ping_ms", "tolerance"),
    [
        ("codel", 256, False, 296.4, 0.05),
        ("codel", 256, True, 32.3, 0.05),
        ("codel", 32, False, 63.1, 0.03),
        ("codel", 4, False, 33.3, 0.05),
        ("fq_codel", 256, False, 300.9, 0.08),
        ("fq_codel", 256, True, 23.4, 0.03),
        ("fq_codel", 32, False, 57.7, 0.03),
        ("fq_codel", 4, False, 24.5, 0.03),
    ],
)
def test_the_mean_ping_over_a_ring_equals_linux_s(
    qdisc: str, ring: int, bql: bool, ping_ms: float, tolerance: float, tmp_path: Path
) -> None:
    text = LINUX.format(qdisc=qdisc, ring=ring, bql=str(bql).lower(), more="")
    done = run(text, tmp_path / "run")
    numbers = metrics.summary(done).runs[0]
    assert numbers["probes"][0]["rtt_ms"]["mean"] == pytest.approx(ping_ms, rel=tolerance)
    below = numbers["queues"][0]["ring"]
    inside = 3 if bql else ring
    # In bytes there is room for one more small packet of the handshakes, which fq_codel dequeues
    # first.
    small = 1 if bql and qdisc == "fq_codel" else 0
    assert below["packets"]["max"] == inside + small
    assert below["bql_limit_bytes"] == (2 * 1514 if bql else None)
    # The longest time is that of a ring of full packets, though some may be smaller.
    assert below["sojourn_ms"]["max"] == pytest.approx(inside * FULL_MS, rel=0.01)


def test_a_ring_adds_delay_that_no_discipline_can_remove(tmp_path: Path) -> None:
    """The fullest path has 256 packets of the ring and 1000 of the discipline."""
    longest = {}
    for bql in (True, False):
        text = LINUX.format(qdisc="pfifo limit 1000", ring=256, bql=str(bql).lower(), more="")
        done = run(text, tmp_path / str(bql))
        longest[bql] = metrics.summary(done).runs[0]["probes"][0]["rtt_ms"]["max"]
    assert longest[True] == pytest.approx(20 + 1003 * FULL_MS, rel=0.01)
    assert longest[False] == pytest.approx(20 + 1256 * FULL_MS, rel=0.01)


def test_coalesced_completions_take_the_limit_up_by_a_small_packet(tmp_path: Path) -> None:
    """Linux: 3118 bytes with a ping of 90; our ping has 98 (84 and the Ethernet header)."""
    text = LINUX.format(qdisc="fq_codel", ring=256, bql="true", more='down.coalesce = "1 ms"')
    ring = queue_of(run(text, tmp_path / "run"))["ring"]
    assert ring["bql_limit_bytes"] == 3028 + 98
    # The completion comes 1 ms after the last bit, so the three packets of the limit spend 1 ms
    # less in the ring.
    assert ring["sojourn_ms"]["mean"] == pytest.approx(3 * FULL_MS - 1, rel=0.02)


# A policer before the queue
# -------------------------------------------------------------------------------------------------


def test_a_policer_passes_its_rate_and_burst_and_delays_nothing(tmp_path: Path) -> None:
    flood = """
    duration = "20 s"
    [bottleneck]
    rate = "unlimited"
    delay = "10 ms"
    down.police = "rate 1mbit burst 30000"
    [[flow]]
    kind = "udp"
    rate = "2 Mbit/s"
    """
    done = run(flood, tmp_path / "run")
    link = queue_of(done, "down")
    # 20 s at 1 Mbit/s are 1666 packets of 1500 bytes; the burst adds 20.
    assert link["dropped_packets"] == pytest.approx(3333 - 1686, abs=2)
    assert link["sojourn_ms"]["max"] == 0
    assert set(done.table("drops", 1)["cause"].to_list()) == {"police"}


# Two queues in series
# -------------------------------------------------------------------------------------------------


def test_the_queue_is_at_the_slowest_link_of_the_path(tmp_path: Path) -> None:
    scenario = sojourn.load(ROOT / "scenarios" / "shaped-modem.toml")
    bloated, shaped = sojourn.run_all(
        scenario.with_(duration="30 s").variants(), out=tmp_path / "runs"
    )
    modem, router = queue_of(bloated, "modem"), queue_of(bloated, "router")
    assert router["backlog_packets"]["max"] == 0, "an unlimited link without a shaper never queues"
    assert router["utilisation"] != router["utilisation"], "an unlimited link has no utilisation"
    assert modem["sojourn_ms"]["max"] > 450, "64 kB at 1 Mbit/s take 512 ms"
    modem, router = queue_of(shaped, "modem"), queue_of(shaped, "router")
    assert modem["backlog_packets"]["max"] <= 2, (
        "a burst of 1600 bytes over what the shaper lets through"
    )
    assert router["dropped_packets"] > 0
    assert 0.97 < router["utilisation"] <= 1, "relative to the shaper's 900 kbit/s"
    pings = [
        metrics.summary(done).runs[0]["probes"][0]["rtt_ms"]["p50"] for done in (bloated, shaped)
    ]
    assert pings[0] > 6 * pings[1]
