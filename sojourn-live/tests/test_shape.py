"""A shaper's plan: the words for each discipline and link layer, the choices for a rate, and
refusals. And the journal: which shaper an interface's entry belongs to."""

from __future__ import annotations

import json
import os
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from sojourn.cli import cli
from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.linux.encoding import options
from sojourn.linux.operations import (
    WantedShape,
    again,
    ifb_name,
    one_packet,
    parse_shaped_rate,
    plan,
)
from sojourn.linux.rtnl import Former, Interface, TcObject
from sojourn.scenario.qdisc import LINK_LAYERS, LinkLayer, Qdisc
from sojourn_live.shape import apply, journal, watchdog

ETH0 = Interface("eth0", 2, "ethernet", 1500, 14, 1, 1000, True, 10**9, ())
PPP0 = replace(ETH0, name="ppp0", kind="ppp", mtu=1492, header_bytes=0, speed_bps=None)
EMPTY = Former("eth0", 2, 1, 1000, (), "")
ROOT, INGRESS = 0xFFFFFFFF, 0xFFFFFFF1
KINDS = ("fq_codel", "codel", "cake", "bfifo", "pfifo", "pfifo_head_drop")


def wanted(
    up: str | None = "18mbit",
    down: str | None = None,
    qdisc: str = "fq_codel",
    link: str | None = None,
) -> WantedShape:
    return WantedShape(
        parse_shaped_rate(up) if up else None,
        parse_shaped_rate(down) if down else None,
        qdisc,
        LinkLayer.parse(link) if link else None,
    )


def commands(asked: WantedShape, interface: Interface = ETH0, former: Former = EMPTY) -> list[str]:
    return plan(asked, interface, former).commands


def test_fq_codel_s_selector_is_two_bytes_to_netlink() -> None:
    message = tcmsg()
    qdisc = Qdisc.parse("fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3")
    message["attrs"] = [["TCA_KIND", "fq_codel"], ["TCA_OPTIONS", options(qdisc)]]
    message.encode()
    # Length, attribute (TCA_FQ_CODEL_CE_THRESHOLD_SELECTOR, _MASK), value.
    for attribute, value in ((10, 1), (11, 3)):
        assert struct.pack("=HHB", 5, attribute, value) in bytes(message.data)


@pytest.mark.parametrize(
    "words", ["pie ecn", "fq_pie flows 64", "sfq perturb 10", "dualpi2 any_ect"]
)
def test_attributes_that_pyroute2_lacks_are_encoded_directly(words: str) -> None:
    message, qdisc = tcmsg(), Qdisc.parse(words)
    packed = qdisc.packed_options()
    assert packed is not None
    message["attrs"] = [["TCA_KIND", qdisc.kind], ["TCA_OPTIONS", options(qdisc)]]
    message.encode()
    # TCA_OPTIONS is 2.
    assert struct.pack("=HH", 4 + len(packed), 2) + packed in bytes(message.data)


def test_disciplines_with_pie_have_pie_s_target_or_a_packet_s_time() -> None:
    assert "target 15ms tupdate 15ms" in commands(wanted(qdisc="pie"))[-1]
    assert "target 55968us" in commands(wanted("250kbit", qdisc="fq_pie"))[-1]
    assert "quantum 300" in commands(wanted(qdisc="fq_pie"))[-1]
    assert commands(wanted(qdisc="dualpi2"))[-1].endswith("dualpi2 limit 1001 target 15ms")
    # target follows from the RTTs.
    said = commands(wanted(qdisc="dualpi2 max_rtt 50ms typical_rtt 10ms"))[-1]
    assert " target 10ms " in said
    assert commands(wanted(qdisc="sfq perturb 10"))[-1].endswith("10: sfq perturb 10")


def test_fq_codel_at_a_home_rate() -> None:
    assert commands(wanted(link="docsis")) == [
        "tc qdisc add dev eth0 root handle 1: htb default 1",
        # 1 ms of 18 Mbit/s is 2250 bytes; a cable modem counts 18 - 14 = 4 bytes more than Linux
        # does.
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 18000000bit ceil 18000000bit burst 2250b cburst 2250b"
        " quantum 2250 overhead 4 mpu 64",
        "tc qdisc add dev eth0 parent 1:1 handle 10: fq_codel limit 1001 flows 1024 memory_limit 33554432"
        " target 5ms interval 100ms quantum 300 drop_batch 64 ecn",
    ]


def test_arriving_packets_are_redirected_only_when_their_shaper_is_ready() -> None:
    done = commands(wanted(up=None, down="90mbit", qdisc="bfifo limit 100000"))
    assert [line.split(" dev ")[0].split(" name ")[0] for line in done] == [
        "ip link add",
        "tc qdisc add",
        "tc class add",
        "tc qdisc add",
        "ip link set",
        "tc qdisc add",
        "tc filter add",
    ]
    assert done[0] == "ip link add name sj-eth0 type ifb"
    assert done[-2] == "tc qdisc add dev eth0 handle ffff: ingress"
    assert done[-1].endswith(
        "u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev sj-eth0"
    )


def test_cake_shapes_by_itself_and_washes_arriving_packets() -> None:
    up, _, down, *_ = commands(wanted("18mbit", "90mbit", "cake", "pppoe-ptm"))
    assert up == (
        "tc qdisc add dev eth0 root handle 1: cake bandwidth 18mbit rtt 100ms diffserv3"
        " triple-isolate nowash split-gso no-ack-filter egress nat ptm overhead 30 mpu 0"
    )
    assert "bandwidth 90mbit rtt 100ms besteffort triple-isolate wash" in down
    assert down.endswith(" ingress nat ptm overhead 30 mpu 0")


def test_the_given_words_of_cake_are_kept() -> None:
    (line,) = commands(wanted(qdisc="cake diffserv4 nonat ack-filter rtt 30ms memlimit 4mb"))
    assert (
        "rtt 30ms memlimit 4194304 diffserv4 triple-isolate nowash split-gso ack-filter egress raw"
        in line
    )
    assert "nat" not in line.split()


@pytest.mark.parametrize(
    ("link", "interface", "rate", "charge", "stab"),
    [
        ("ethernet", ETH0, 18_000_000, " overhead 24 mpu 84", None),
        # 40 bytes in ATM cells; Linux already counts 14 of them.
        ("pppoe-llcsnap", ETH0, 18_000_000, " overhead 26 linklayer atm", None),
        # 8 bytes are less than the Ethernet header that Linux counts.
        ("ipoa-vcmux", ETH0, 18_000_000, " linklayer atm", -6),
        # At the ppp device itself Linux counts no header.
        ("pppoe-llcsnap", PPP0, 18_000_000, " overhead 40 linklayer atm", None),
        # 65 bytes for each 64.
        ("pppoe-ptm", ETH0, 18_000_000 * 64 // 65, " overhead 16", None),
        ("docsis", ETH0, 18_000_000, " overhead 4 mpu 64", None),
    ],
)
def test_a_link_layer_is_charged(
    link: str, interface: Interface, rate: int, charge: str, stab: int | None
) -> None:
    root, class_, _ = commands(wanted(link=link), interface)
    assert f"rate {rate}bit " in class_
    assert class_.partition("quantum ")[2].partition(" ")[2] == charge.strip()
    assert (f"stab overhead {stab} htb" in root) == (stab is not None)


@pytest.mark.parametrize("link", LINK_LAYERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_discipline_works_with_every_link_layer(kind: str, link: str) -> None:
    for interface in (ETH0, PPP0):
        done = plan(WantedShape(5 * 10**6, 20 * 10**6, kind, LINK_LAYERS[link]), interface, EMPTY)
        for operation in done.operations:
            if isinstance(operation, tc.SetClass):
                # The kernel has 16 bits for it.
                assert 0 <= operation.overhead_bytes < 2**16
                assert operation.cells in ("none", "atm")
        assert all(" -" not in line.replace("stab overhead -", "") for line in done.commands)


@given(st.integers(64_000, 40 * 10**9), st.sampled_from(KINDS), st.integers(576, 9000))
def test_a_full_packet_fits_the_burst_and_the_target_at_every_rate(
    bps: int, kind: str, mtu: int
) -> None:
    interface = replace(ETH0, mtu=mtu, speed_bps=None)
    for operation in plan(WantedShape(bps, None, kind), interface, EMPTY).operations:
        match operation:
            case tc.SetClass():
                assert operation.burst_bytes >= mtu + 14
                assert operation.burst_bytes * 8 * 1000 >= operation.bps - 8 * 1000
                assert mtu + 14 <= operation.quantum <= max(200_000, mtu)
            case tc.AddQdisc(_, _, _, Qdisc(params={"target_ns": target, "interval_ns": interval})):
                assert target >= 5 * 10**6
                # CoDel never drops while at most one packet waits, by its target as well.
                assert target + 1000 >= (mtu + 14) * 8 * 10**9 // bps
                assert interval == target + 95 * 10**6
            case tc.AddQdisc(_, _, _, Qdisc(params={"target_ns": target})):
                # PIE's own target, and at least a full packet's time.
                assert target >= 15 * 10**6
                assert target + 1000 >= (mtu + 14) * 8 * 10**9 // bps
            case tc.AddQdisc(_, _, _, Qdisc(params={"kind": "bfifo", "limit": limit})):
                assert limit >= 4 * (mtu + 14)
                # 20 ms.
                assert (limit + 1) * 8 * 50 > bps


def test_one_packet_in_atm_cells_is_the_known_number() -> None:
    assert one_packet(ETH0) == 1749


def test_at_1_mbit_the_target_is_one_packet_s_time() -> None:
    assert "target 13992us interval 108992us" in commands(wanted("1mbit"))[-1]


@pytest.mark.parametrize(
    ("rate", "quantum"), [("1mbit", 300), ("99999kbit", 300), ("100mbit", 1514), ("1gbit", 1514)]
)
def test_small_packets_go_first_below_100_mbit(rate: str, quantum: int) -> None:
    last = commands(wanted(rate), replace(ETH0, speed_bps=None))[-1]
    assert f" quantum {quantum} " in last


def test_a_given_parameter_is_not_replaced_by_a_default() -> None:
    last = commands(wanted("1mbit", qdisc="fq_codel target 20ms limit 500 quantum 1514 noecn"))[-1]
    assert last.endswith(
        "limit 500 flows 1024 memory_limit 33554432 target 20ms interval 100ms quantum 1514 drop_batch 64 noecn"
    )


def test_another_rate_makes_the_same_tree_anew() -> None:
    first, other = (
        wanted(up, down, link="pppoe-ptm")
        for up, down in (("18mbit", "90mbit"), ("1mbit", "2mbit"))
    )
    trees = [
        line
        for line in commands(other)
        if line.startswith(("tc qdisc add dev eth0 root", "tc class", "tc qdisc add dev sj-eth0"))
        or " parent 1:1 " in line
    ]
    changed = [tc.command(one) for one in again(other, ETH0, plan(first, ETH0, EMPTY).ifb)]
    assert changed.pop(0) == "tc qdisc del dev eth0 root"
    assert changed.pop(3) == "tc qdisc del dev sj-eth0 root"
    assert changed == trees


def test_an_existing_shaper_of_another_program_is_removed_first_and_reported() -> None:
    own = TcObject("qdisc", 0, 0x80010000, ROOT, 0, ((1, 0, b"fq\0"),))
    arriving = TcObject("qdisc", 0, 0xFFFF0000, INGRESS, 0, ((1, 0, b"ingress\0"),))
    default = replace(own, handle=0)
    former = replace(EMPTY, things=(own, arriving))
    done = plan(wanted("18mbit", "90mbit"), ETH0, former)
    assert done.commands[0] == "tc qdisc del dev eth0 root"
    assert "tc qdisc del dev eth0 ingress" in done.commands
    assert sum("--undo" in note for note in done.notes) == 2
    assert not any(
        " del " in line
        for line in commands(wanted("18mbit", "90mbit"), former=replace(EMPTY, things=(default,)))
    )
    # A direction that is not shaped keeps its qdisc.
    assert not any("ingress" in line for line in commands(wanted("18mbit"), former=former))


@pytest.mark.parametrize("name", ["eth0", "enp0s31f6", "a-very-long-one", "wlx001122334455"])
def test_linux_accepts_the_ifb_s_name(name: str) -> None:
    made = ifb_name(replace(ETH0, name=name))
    assert len(made) <= 15
    assert made.startswith("sj-")


# ---------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"up": "18mbit", "qdisc": "red limit 400000 avpkt 1000"}, "a shaper can't use red"),
        ({"qdisc": "fq_codell"}, "unknown queue discipline"),
        ({"qdisc": "codel variant rfc"}, "variant rfc"),
        ({"qdisc": "adt"}, "a shaper can't use adt"),
        ({"qdisc": "sfq ecn"}, "needs redflowlimit, which switches RED on"),
        ({"qdisc": "pie variant rfc"}, "variant rfc"),
        ({"qdisc": "pfifo_fast"}, "a shaper can't use pfifo_fast"),
        ({"qdisc": "cake bandwidth 20mbit"}, "bandwidth is not allowed here"),
        ({"qdisc": "cake docsis"}, "docsis is not allowed here"),
        ({"qdisc": "cake pppoe-ptm"}, "pppoe-ptm is not allowed here"),
        ({"qdisc": "cake unlimited"}, "unlimited is not allowed here"),
        ({"qdisc": "cake rtt 50ms lan"}, "exclude each other"),
        ({"qdisc": "cake besteffort diffserv4"}, "sets a parameter again"),
        ({"qdisc": "cake rtt"}, "rtt needs a value"),
        ({"qdisc": "cake rtt soon"}, "cake rtt"),
        ({"qdisc": "cake natt"}, "no word 'natt'"),
        ({"up": "1gbit"}, "is not below the 1gbit of eth0"),
        ({"up": None, "down": None}, "neither --up nor --down"),
    ],
)
def test_an_impossible_request_is_refused_with_an_alternative(
    asked: dict[str, str | None], said: str
) -> None:
    with pytest.raises(UserError) as error:
        plan(wanted(**asked), ETH0, EMPTY)
    assert said in error.value.problem
    assert error.value.hint


@pytest.mark.parametrize(
    "text", ["0bit", "50kbit", "41gbit", "fast", "18mb", "", "100%", "1e6bit", "18 Mbit Mbit"]
)
def test_an_invalid_rate_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_shaped_rate(text)


def test_the_least_and_the_most_rate_are_taken() -> None:
    assert parse_shaped_rate("64kbit") == 64_000
    assert parse_shaped_rate("40gbit") == 40 * 10**9
    for text in ("63999bit", "40000000001bit"):
        with pytest.raises(UserError, match="out of range"):
            parse_shaped_rate(text)


def test_a_rate_is_written_as_tc_or_as_we_do() -> None:
    for text in ("18mbit", "18 Mbit/s", "18Mbit", "18 mbit", "18000kbit"):
        assert parse_shaped_rate(text) == 18_000_000


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("18Mbps", "'Mbps' is not a unit of rate", "write 18mbit"),
        ("18 Mbps", "'Mbps' is not a unit of rate", "write 18mbit"),
        ("18mbps", "'mbps' is not a unit of rate", "write 18mbit"),
        ("2250kbps", "'kbps' is not a unit of rate", "write 2250kbit"),
        ("1gbps", "'gbps' is not a unit of rate", "write 1gbit"),
        ("64000bps", "'bps' is not a unit of rate", "write 64000bit"),
        ("18MBps", "'MBps' is not a unit of rate", "that is bytes a second: write 144mbit"),
        ("18 MB/s", "'MB/s' is not a unit of rate", "that is bytes a second: write 144mbit"),
        ("18", "a rate needs a unit; '18' has none", "write 18mbit"),
    ],
)
def test_a_rate_that_tc_and_a_provider_read_differently_is_refused(
    text: str, problem: str, hint: str
) -> None:
    with pytest.raises(UserError) as error:
        parse_shaped_rate(text)
    assert error.value.problem == problem
    assert error.value.hint == hint


def test_the_loopback_interface_is_refused() -> None:
    with pytest.raises(UserError, match="loopback"):
        plan(wanted(), replace(ETH0, name="lo", kind="loopback"), EMPTY)


# ------------------------------------------------------------------------------------------ notes


@pytest.mark.parametrize(
    ("interface", "asked", "said"),
    [
        (replace(ETH0, kind="wireless"), wanted(), "Wi-Fi"),
        (replace(ETH0, kind="wireguard"), wanted(), "tunnel"),
        (replace(ETH0, up=False), wanted(), "is down"),
        (ETH0, wanted(), "no --link"),
        (
            replace(ETH0, offloads=("gro", "tso", "gso")),
            wanted("5mbit"),
            "tso, gso of eth0: up to 64 kB pass the queue as one packet, 105 ms",
        ),
        (replace(ETH0, offloads=("gro", "tso")), wanted(None, "5mbit"), "ethtool -K eth0 gro off"),
        (ETH0, wanted("800mbit"), "processor"),
        (ETH0, wanted(link="ptm"), "64/65"),
        (ETH0, wanted(qdisc="codel target 5"), "target 5 is 5 us"),
        (ETH0, wanted(qdisc="cake rtt 50"), "rtt 50 is 50 us"),
    ],
)
def test_notes_report_risks_of_the_shaper(
    interface: Interface, asked: WantedShape, said: str
) -> None:
    assert any(said in note for note in plan(asked, interface, EMPTY).notes)


def test_without_risks_there_are_no_notes() -> None:
    assert plan(wanted("18mbit", "90mbit", "fq_codel", "docsis"), ETH0, EMPTY).notes == ()
    # cake splits large packets itself, and knows PTM.
    offloaded = replace(ETH0, offloads=("gro", "tso", "gso"))
    assert plan(wanted("1mbit", "9mbit", "cake", "pppoe-ptm"), offloaded, EMPTY).notes == ()


def test_a_discipline_s_words_equal_those_of_a_scenario() -> None:
    # The prediction simulates the same options that are applied.
    last = commands(wanted("5mbit", qdisc="fq_codel target 8ms"))[-1]
    applied = Qdisc.parse(re.sub(r".* handle 10: ", "", last))
    assert applied.params["target_ns"] == 8 * 10**6


# ------------------------------------------------------------------------------------- the journal

ENTRY = journal.ShaperEntry("eth0", {}, (), None, EMPTY, 0.0, 60.0, state="applied")


def test_a_later_process_with_the_watchdogs_number_is_not_the_watchdog() -> None:
    pid, started = journal.process(os.getpid())
    assert replace(ENTRY, watchdog=(pid, started)).watched
    # The same process id, started a tick (10 ms) later.
    assert not replace(ENTRY, watchdog=(pid, str(int(started) + 1))).watched
    assert not ENTRY.watched


@pytest.mark.parametrize("later", [0, 1])
def test_a_watchdog_restores_only_the_shaper_that_it_watches(
    later: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone: list[str] = []

    def put_back(entry: journal.ShaperEntry) -> str:
        undone.append(entry.interface)
        return ""

    monkeypatch.setattr(journal, "FOLDER", tmp_path)
    monkeypatch.setattr(apply, "put_back", put_back)
    pid, started = journal.process(os.getpid())
    with journal.locked():
        # A later start time: the interface was undone and shaped again, with another watchdog.
        journal.save(replace(ENTRY, watchdog=(pid, str(int(started) + later))))
    watchdog._roll_back("eth0", "it was not confirmed in time")
    entry = journal.load("eth0")
    assert entry is not None
    left = ([], "applied", "")
    rolled_back = (["eth0"], "rolled back", "it was not confirmed in time")
    assert (undone, entry.state, entry.why) == (left if later else rolled_back)


def test_a_shaper_for_another_router_is_printed_without_a_look_at_this_host() -> None:
    words = ["shape", "ether1", "--up", "18mbit", "--down", "90mbit", "--qdisc", "fq_codel"]
    done = CliRunner().invoke(cli, [*words, "--for", "mikrotik"])
    assert done.output.splitlines() == [
        "/queue type add name=sojourn-down kind=fq-codel",
        "/queue type add name=sojourn-up kind=fq-codel",
        "/queue simple add name=sojourn target=ether1 max-limit=90000000/18000000 queue=sojourn-down/sojourn-up",
    ]
    done = CliRunner().invoke(cli, [*words, "--for", "sqm", "--json"])
    shaped = json.loads(done.output)
    assert "\toption upload '18000'" in shaped["commands"]
    assert (shaped["up_bps"], shaped["state"]) == (18_000_000, "planned")
    with pytest.raises(UserError, match="mikrotik has no fq_pie"):
        CliRunner().invoke(
            cli,
            ["shape", "e", "--up", "1mbit", "--qdisc", "fq_pie", "--for", "mikrotik"],
            catch_exceptions=False,
        )
    assert CliRunner().invoke(cli, [*words, "--for", "sqm", "--apply"]).exit_code == 2
