"""Disciplines and congestion controls that only Linux has, and cake, choke, ets, fq, hhf, prio,
sfb, sfq and tbf. Their options reach tc unchanged, and the kernel runs them."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_tables import MS, REFUSED, Made, S, realised, words

from sojourn import engine as engines
from sojourn.engine.kernel.observed.links import carried
from sojourn.engine.kernel.plan.fits import PlanError
from sojourn.engine.kernel.plan.guest_plan import Machine, plan
from sojourn.records import Run
from sojourn.scenario import Qdisc, linux, loads
from sojourn.scenario.qdisc import QDISCS, LinkLayer

SIMNIC = Machine("simnic", own=True, ipv6=False)

WORDS = {
    "cake": "bandwidth 8mbit rtt 50ms besteffort ethernet",
    "choke": "limit 1000 bandwidth 10mbit min 20 max 60 avpkt 1000 burst 30 probability 0.02",
    "ets": "bands 3 strict 1 quanta 3000 1500 priomap 1 1 1 1 2 2",
    "fq": "limit 500 flow_limit 200 quantum 3028 nopacing",
    "hhf": "limit 400 hh_limit 64 reset_timeout 40ms",
    "prio": "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
    "sfb": "limit 600 target 20 max 25",
    "sfq": "limit 200 perturb 10 headdrop",
    "tbf": "rate 8mbit burst 10000 limit 60000 mtu 1514 peakrate 9mbit",
}
"""The disciplines that tc supports, with valid options."""

LEAST = {
    "choke": "choke limit 100 bandwidth 8mbit",
    "ets": "ets bands 3",
    "tbf": "tbf rate 8mbit burst 5000 limit 60000",
}
"""Options that tc requires."""

SCENARIO = """
duration = "4 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
down.qdisc = "QDISC"

[[flow]]
kind = "bulk"
count = 2
ecn = true
congestion = "CONGESTION"

[[flow]]
kind = "ping"
"""


def scenario(qdisc: str, congestion: str = "cubic") -> str:
    return SCENARIO.replace("QDISC", qdisc).replace("CONGESTION", congestion)


def test_each_discipline_has_options_for_its_test() -> None:
    by_netlink = {record.kind for record in QDISCS.values() if record.since is not None}
    alone = {record.kind for record in QDISCS.values() if not record.simulated} - by_netlink
    as_said = {"cake", "choke", "ets", "fq", "hhf", "prio", "sfb", "sfq", "tbf"}
    assert set(WORDS) == alone | as_said, "the simulator has Linux's options for these, too"


@pytest.mark.parametrize("kind", WORDS)
def test_options_reach_tc_unchanged(kind: str) -> None:
    for text in (f"{kind} {WORDS[kind]}", LEAST.get(kind, kind)):
        said = Qdisc.parse(text).command()
        assert sorted(said.split()) == sorted(text.split())
        # Where packets have no header, cake's overhead is written differently (test_plan.py).
        with_header = scenario(text).replace("[bottleneck]", '[bottleneck]\nlink_layer = "linux"')
        made = plan(loads(with_header).realise(1), SIMNIC).plan
        lines = [
            line
            for step in made["setup"]
            if step["do"] == "run"
            for line in step["stdin"].splitlines()
        ]
        assert any(line.endswith(f" {said}") and "handle 10:" in line for line in lines), lines


DUALPI2 = "dualpi2 limit 300 step_thresh 2ms any_ect"


@pytest.mark.parametrize(
    ("keys", "parent", "overhead"),
    [
        ("", 0xFFFF_FFFF, -14),
        ('down.shaper = "htb rate 8mbit"', 0x10001, 0),
        ('link_layer = "linux"', 0xFFFF_FFFF, 0),
    ],
)
def test_dualpi2_is_made_by_netlink(keys: str, parent: int, overhead: int) -> None:
    text = scenario(DUALPI2).replace("[[flow]]", f"{keys}\n[[flow]]", 1)
    made = plan(loads(text).realise(1), replace(SIMNIC, linux=(7, 3))).plan
    [step] = [each for each in made["setup"] if each["do"] == "qdisc"]
    assert bytes(step.pop("options")) == Qdisc.parse(DUALPI2).packed_options()
    assert step == {
        "do": "qdisc",
        "namespace": "n0",
        "device": "nic0a",
        "kind": "dualpi2",
        "handle": 0x100000,
        "parent": parent,
        "overhead": overhead,
    }
    lines = [each["stdin"] or "" for each in made["setup"] if each["do"] == "run"]
    assert not any("dualpi2" in each for each in lines)
    assert any("htb" in each for each in lines) == ("shaper" in keys)


@pytest.mark.parametrize("machine", [SIMNIC, Machine("veth", own=False, ipv6=False, linux=(7, 3))])
def test_dualpi2_is_refused_by_other_kernels_and_by_tc(machine: Machine) -> None:
    why = r"'down': qdisc: dualpi2 came with Linux 6\.17, and only a built guest can set it up"
    with pytest.raises(PlanError, match=why) as caught:
        plan(loads(scenario(DUALPI2)).realise(1), machine)
    assert "-e kernel-7.3" in caught.value.hint


@pytest.mark.parametrize(
    ("key", "linux_", "why"),
    [
        ("tcp.rack = false", (7, 3), r"tcp\.rack: Linux finds losses by RACK alone since 6\.17"),
        (
            'profile = "linux-7.3"',
            (6, 12),
            r"it is the TCP of Linux 7\.3, and this kernel is 6\.12",
        ),
    ],
)
def test_a_tcp_profile_of_another_kernel_is_refused(
    key: str, linux_: tuple[int, int], why: str
) -> None:
    asked = loads(scenario("codel").replace('kind = "bulk"', f'kind = "bulk"\n{key}'))
    machines = [replace(SIMNIC, linux=each) for each in ((6, 12), (7, 3))]
    for machine in machines:
        if machine.linux == linux_:
            with pytest.raises(PlanError, match=why):
                plan(asked.realise(1), machine)
        else:
            plan(asked.realise(1), machine)


def test_a_discipline_of_another_kernel_is_refused() -> None:
    asked = loads(scenario("codel variant linux7.3")).realise(1)
    plan(asked, replace(SIMNIC, linux=(7, 3)))
    with pytest.raises(PlanError, match=r"the variant of Linux 7\.3, and this kernel is 6\.12"):
        plan(asked, SIMNIC)


def test_gred_and_a_policer_on_one_link_are_refused() -> None:
    gred = scenario("gred limit 60000 40000 avpkt 1000")
    plan(loads(gred).realise(1), SIMNIC)
    policed = gred.replace("[[flow]]", 'police = "rate 5mbit burst 64k"\n[[flow]]', 1)
    with pytest.raises(PlanError, match="gred's filters and the policer's need the same place"):
        plan(loads(policed.replace("delay", 'link_layer = "linux"\ndelay', 1)).realise(1), SIMNIC)


def test_words_that_the_guest_s_tc_lacks_are_refused_before_it_boots() -> None:
    asked = loads(scenario("fq weights 65536 65536 65536"))
    with pytest.raises(PlanError, match=r"'down': qdisc: the guest's tc.* has no weights"):
        plan(asked.realise(1), SIMNIC)


def test_the_default_limit_of_each_discipline_is_known() -> None:
    packets = {text: Qdisc.parse(text).packets for text in ("fq", "fq limit 50", "sfq", "cake")}
    assert packets == {"fq": 10_000, "fq limit 50": 50, "sfq": 127, "cake": 10_240}
    assert Qdisc.parse("bfifo limit 150000").packets == 101
    assert all(Qdisc.parse(f"{kind} {WORDS[kind]}").packets > 0 for kind in WORDS)


# ------------------------------------------------------------------------ disciplines' statistics


def queue_of(
    kind: str, said: str, own: Sequence[bytes], tmp_path: Path, drops: int = 0
) -> Mapping[str, Any]:
    """The tables of a run in which `drops` packets were dropped at 2.05 s. The discipline's
    statistics are these bytes at 2.0 and 2.1 s."""
    made = Made(
        realised(bottleneck__qdisc=f"{kind} {said}".strip(), record__queue="100 ms"), [kind]
    )
    made.watch(0, [(2050 + n, 0, REFUSED) for n in range(drops)])
    for at, text in zip((2000 * MS, 2100 * MS, 4 * S), (*own, own[-1]), strict=True):
        made.sample(at, 0, text)
    return made.tables(tmp_path)


def test_pie_s_probability_is_a_share_of_two_to_the_64(tmp_path: Path) -> None:
    own = [
        struct.pack("=Q8I", share, 15, 0, 0, 100, dropped, 0, 20, 0)
        for share, dropped in ((0, 0), (1 << 62, 3))
    ]
    made = queue_of("pie", "limit 77", own, tmp_path, drops=3)
    queue = made["queue"]
    at = (queue["link"] == 0) & (queue["t_ns"] == 2100 * MS)
    assert queue["probability"][at].tolist() == [0.25]
    assert queue["limit"][at].tolist() == [77.0]
    assert words(made["drops"]["cause"]) == ["early"] * 3


def test_pie_counts_a_drop_at_its_limit_twice(tmp_path: Path) -> None:
    # Recorded in the guest: `pie limit 15`, 314 drops, all at the limit.
    own = [struct.pack("=Q8I", 0, 15, 0, 0, 100, dropped, dropped, 20, 0) for dropped in (0, 3)]
    made = queue_of("pie", "limit 77", own, tmp_path, drops=3)
    assert words(made["drops"]["cause"]) == ["limit"] * 3


def test_drops_of_fq_pie_and_choke_are_classified_by_their_counters(tmp_path: Path) -> None:
    for kind, said, before, after, cause in (
        # A drop at the limit is counted twice; above memory_limit nothing is dropped.
        ("fq_pie", "", (0,) * 9, (9, 3, 3, 0, 0, 2, 1, 1, 0), "limit"),
        ("fq_pie", "", (0,) * 9, (9, 3, 0, 7, 0, 2, 1, 1, 0), "early"),
        ("choke", "limit 100 bandwidth 8mbit", (0,) * 5, (0, 0, 0, 0, 3), "early"),
        ("choke", "limit 100 bandwidth 8mbit", (0,) * 5, (0, 3, 0, 0, 0), "limit"),
        ("sfb", "", (0,) * 9, (0, 0, 2, 1, 0, 0, 9, 0, 6553), "early"),
    ):
        own = [struct.pack(f"={len(each)}I", *each) for each in (before, after)]
        made = queue_of(kind, said, own, tmp_path, drops=3)
        assert words(made["drops"]["cause"]) == [cause] * 3, kind
        at = (made["queue"]["link"] == 0) & (made["queue"]["t_ns"] == 2100 * MS)
        if kind == "fq_pie":
            assert made["queue"]["flows"][at].tolist() == [2.0]
        if kind == "sfb":
            assert made["queue"]["probability"][at][0] == pytest.approx(0.1, rel=1e-3)


# ---------------------------------------------------------------------------------- on the kernel


def conserves(run: Run, end_s: int = 4) -> None:
    """Checks that each arriving packet was sent or dropped, or still waits."""
    links, queue = run.table("links"), run.table("queue")
    down = links.filter(links["link"] == "down").row(0, named=True)
    waited = queue.filter((queue["link"] == "down") & (queue["t_ns"] == 1 * S))["backlog_packets"][
        0
    ]
    waits = queue.filter((queue["link"] == "down") & (queue["t_ns"] == end_s * S))[
        "backlog_packets"
    ][0]
    assert (
        abs(
            waited
            + down["arrived_packets"]
            - down["dropped_packets"]
            - down["sent_packets"]
            - waits
        )
        <= 2
    )


@pytest.mark.parametrize("kind", WORDS)
def test_the_kernel_runs_each_discipline(kind: str, kernel_uml: str, tmp_path: Path) -> None:
    run = engines.run(
        loads(scenario(f"{kind} {WORDS[kind]}")), engine=kernel_uml, out=tmp_path / "run"
    )
    conserves(run)
    links = run.table("links")
    down = links.filter(links["link"] == "down").row(0, named=True)
    share = down["wire_bytes"] * 8 / down["capacity_bits"]
    # The link sends no more than its rate. cake and tbf send at most 8 of its 10 Mbit/s; cake's
    # rate includes Ethernet's 38 bytes, 1500 of 1538.
    most = {"cake": 0.8 * 1500 / 1538, "tbf": 0.8}.get(kind, 1.0)
    # Blue drops at random until its probability has fallen. So sfb may leave a quarter of a short
    # run unused.
    assert (0.65 if kind == "sfb" else 0.88) * most < share < 1.005 * most


COUNTED = {
    # With link_layer = "linux" a queued IP packet of 1500 bytes counts 1514.
    'qdisc = "cake bandwidth 8mbit besteffort ethernet ether-vlan ether-vlan"': 1500 + 38 + 2 * 4,
    # One more byte for each 64 bytes or a part of them.
    'qdisc = "cake bandwidth 8mbit pppoe-ptm ether-vlan"': 1500 + 34 + 24,
    'qdisc = "cake bandwidth 8mbit overhead -4"': 1500 - 4,
    'qdisc = "cake bandwidth 8mbit raw overhead 0"': 1514,
    # 40 + 1500 bytes take 33 cells: 32.1 times 48 bytes. A cell has 53 bytes.
    'qdisc = "cake bandwidth 8mbit overhead 40 atm"': 33 * 53,
    'qdisc = "cake bandwidth 8mbit conservative nonat"': 33 * 53,
    'qdisc = "tbf rate 8mbit burst 10000 lat 50ms"': 1514,
    'qdisc = "tbf rate 8mbit buffer 10k limit 60k overhead 20 linklayer atm"': 32 * 53,
    'police = "rate 8mbit burst 10k"': 1514,
    'police = "police rate 8mbit buffer 10k minburst 2k overhead 24 conform-exceed drop/pass"': 1538,
    # Every packet is sent.
    'qdisc = "cake unlimited"': 0,
}
"""Options that set a packet's charge on a link of 10 Mbit/s, with the charge of a full packet. 0:
the option limits nothing."""


def test_the_kernel_counts_packets_as_the_words_of_cake_tbf_and_police_say(kernel_uml: str) -> None:
    """A stream of full packets above the rate passes at exactly that rate, in a guest and in the
    simulator."""
    for engine in (kernel_uml, "sim"):
        counts_what_the_words_say(engine)


def test_linux_7_3_counts_packets_as_the_words_of_cake_tbf_and_police_say(kernel_73: str) -> None:
    counts_what_the_words_say(kernel_73)


def counts_what_the_words_say(engine: str) -> None:
    parts = ['duration = "5 s"\nwarmup = "1 s"\n']
    for number, said in enumerate(COUNTED):
        parts.append(f"""
        [[link]]
        name = "link {number}"
        from = "a{number}"
        to = "b{number}"
        rate = "10 Mbit/s"
        delay = "5 ms"
        link_layer = "linux"
        duplex = false
        {said}
        [[link]]
        from = "b{number}"
        to = "a{number}"
        rate = "10 Mbit/s"
        delay = "5 ms"
        [[flow]]
        kind = "udp"
        rate = "9.9 Mbit/s"
        from = "a{number}"
        to = "b{number}"
        """)
    links = engines.run(loads("".join(parts)), engine=engine).table("links")
    of = {row["link"]: row for row in links.iter_rows(named=True)}
    for number, (said, counts) in enumerate(COUNTED.items()):
        sent, arrived = (of[f"link {number}"][f"{what}_packets"] for what in ("sent", "arrived"))
        expected = 4 * 8_000_000 / 8 / counts if counts else arrived
        assert sent == pytest.approx(expected, abs=3), (engine, said, sent, expected)


L4S = """
duration = "6 s"
warmup = "2 s"

[bottleneck]
rate = "40 Mbit/s"
delay = "5 ms"
down.qdisc = "dualpi2 any_ect"

[[flow]]
name = "scalable"
kind = "bulk"
congestion = "dctcp"
ecn = true

[[flow]]
name = "classic"
kind = "bulk"
"""


def test_dualpi2_marks_one_queue_and_drops_in_the_other(kernel_73: str, tmp_path: Path) -> None:
    """Two queues: DCTCP's packets wait some ms less than CUBIC's, and both flows have a share."""
    run = engines.run(loads(L4S), engine=kernel_73, out=tmp_path / "run")
    links, flows, drops = (run.table(name) for name in ("links", "flows", "drops"))
    down = links.filter(links["link"] == "down").row(0, named=True)
    assert down["wire_bytes"] * 8 > 0.9 * down["capacity_bits"]
    delivered = dict(zip(flows["flow"], flows["delivered_bytes"], strict=True))
    assert 0.2 < delivered["scalable"] / sum(delivered.values()) < 0.9
    rtt = dict(zip(flows["flow"], flows["rtt_sum_ns"] / flows["rtt_samples"], strict=True))
    assert rtt["scalable"] < 14 * MS < 18 * MS < rtt["classic"]
    of_the_link = drops.filter(drops["link"] == "down")
    marked = of_the_link.filter(pl.col("marked") == 1)
    assert set(marked["flow"]) == {"scalable"}
    assert set(marked["cause"]) == {"early", "ce_threshold"}
    dropped = of_the_link.filter(pl.col("marked") == 0)
    assert set(dropped["flow"]) == {"classic"}
    queue = run.table("queue").filter(pl.col("link") == "down")
    assert queue["probability"].max() > 0


def test_dualpi2_keeps_to_its_target(kernel_73: str, tmp_path: Path) -> None:
    """Without ECN all packets enter the classic queue, so only PI2 acts. Its target is 15 ms by
    default, and 5 ms in the second case."""
    for said, ms in (("dualpi2", 15), ("dualpi2 target 5ms", 5)):
        out = tmp_path / said
        text = scenario(said).replace("ecn = true", "ecn = false").replace('"4 s"', '"12 s"')
        run = engines.run(loads(text), engine=kernel_73, out=out)
        conserves(run, 12)
        links = run.table("links")
        down = links.filter(links["link"] == "down").row(0, named=True)
        assert down["sojourn_sum_ns"] / down["sent_packets"] == pytest.approx(ms * MS, rel=0.4)


@pytest.mark.parametrize(
    ("shares", "least", "most"), [("dual-srchost", 0.4, 0.6), ("flows", 0, 0.2)]
)
def test_cake_gives_each_host_half_however_many_flows_it_has(
    shares: str, least: float, most: float, kernel_uml: str, tmp_path: Path
) -> None:
    """One flow of the laptop against eight of the phone; sharing by flows would give it a ninth."""
    text = """
    duration = "8 s"
    warmup = "2 s"
    [bottleneck]
    rate = "20 Mbit/s"
    delay = "5 ms"
    up.qdisc = "cake bandwidth 10mbit besteffort SHARES"
    [[flow]]
    name = "one"
    kind = "bulk"
    direction = "up"
    rtt = "20 ms"
    hosts = "laptop"
    [[flow]]
    name = "eight"
    kind = "bulk"
    direction = "up"
    count = 8
    rtt = "20 ms"
    hosts = "phone"
    """
    run = engines.run(
        loads(text.replace("SHARES", shares)), engine=kernel_uml, out=tmp_path / "run"
    )
    flows = run.table("flows")
    delivered = dict(zip(flows["flow"], flows["delivered_bytes"], strict=True))
    assert least < delivered["one"] / sum(delivered.values()) < most


def test_dctcp_gets_every_mark(kernel_uml: str, tmp_path: Path) -> None:
    """With a DCTCP receiver the queue stays at the threshold. Without one, the flow is Reno over a
    queue without a limit."""
    run = engines.run(
        loads(scenario("codel target 100ms ce_threshold 2ms", congestion="dctcp")),
        engine=kernel_uml,
        out=tmp_path / "run",
    )
    links = run.table("links")
    down = links.filter(links["link"] == "down").row(0, named=True)
    assert down["marked_packets"] > 100
    # A full packet takes 1.2 ms, so only a few wait.
    assert down["sojourn_sum_ns"] / down["sent_packets"] < 10 * MS
    assert down["wire_bytes"] * 8 > 0.95 * down["capacity_bits"]


@pytest.mark.parametrize("offloads", [False, True])
def test_offloads_make_larger_packets_and_carry_no_more(
    offloads: bool, kernel_uml: str, tmp_path: Path
) -> None:
    text = (
        scenario("bfifo limit 500000").replace("10 Mbit/s", "100 Mbit/s")
        + "[record]\npackets = true\n"
    )
    run = engines.run(loads(text).with_(offloads=offloads), engine=kernel_uml, out=tmp_path / "run")
    assert run.meta.conditions == {"offloads": "on" if offloads else "off", "HZ": "250"}
    packets = run.table("packets")
    largest = packets.filter(packets["link"] == "down")["bytes"].max()
    assert largest > 4500 if offloads else largest == 1500
    links = run.table("links")
    down = links.filter(links["link"] == "down").row(0, named=True)
    # The headers of each full packet inside a larger one are sent, and counted.
    assert 0.9 * down["capacity_bits"] < down["wire_bytes"] * 8 < 1.001 * down["capacity_bits"]


def test_a_larger_packet_takes_the_time_of_its_parts_on_the_wire() -> None:
    framing = LinkLayer(14, 38, 84)
    sizes = np.array([40, 1500, 52 + 1448 + 1, 52 + 2 * 1448, 52 + 44 * 1448])
    parts = [84, 1538, 1538 + 91, 2 * 1538, 44 * 1538]
    assert carried(framing, sizes, offloads=True).tolist() == parts
    assert carried(framing, sizes, offloads=False).tolist() == [
        84,
        *(int(size) + 38 for size in sizes[1:]),
    ]


@pytest.mark.parametrize(
    "name", [name for name, each in linux.CONGESTION.items() if not each.simulated]
)
def test_the_kernel_runs_each_congestion_control(
    name: str, kernel_uml: str, tmp_path: Path
) -> None:
    run = engines.run(
        loads(scenario("bfifo limit 60000", congestion=name)),
        engine=kernel_uml,
        out=tmp_path / "run",
    )
    flows = run.table("flows")
    sent = flows.filter(flows["flow"].str.starts_with("bulk"))["delivered_bytes"].sum()
    # Most of the 3 s at 10 Mbit/s is used, and nothing is counted twice.
    assert 0.7 * 3.75e6 < sent < 3.75e6
    assert run.meta.flow("bulk.1").congestion == name
