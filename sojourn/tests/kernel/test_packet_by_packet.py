"""A single flow at 1 Mbit/s sends, loses and acknowledges the same packets in both engines for 30
s.

One packet more or less changes a single flow's whole cycle of losses. So the simulator's TCP must do
everything as the kernel does: windows, timers and their ticks, recovery, the receiver's ACKs. The
guest's run must also begin with a tick.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn.records import Run
from sojourn.scenario import load, loads

STANDING = Path(sojourn.__file__).parent / "agreement" / "cases" / "1-mbit.toml"
APART_NS = 110_000
"""Tolerance of times, ns. The guest's program starts flows 2 µs late. Its kernel sends packets of
one instant 256 ns apart. A delayed SACK may leave within 0.1 ms (tcp_comp_sack_slack_ns): at a tick
in the guest, at the end of that time in the simulator."""


def packets(run: Run, link: str, seed: int = 1) -> pl.DataFrame:
    """Returns arrival at a queue, bytes and departure of each packet of the flow, in order of
    arrival. Packets that arrive at one instant have the same order in both engines, and leave in
    this order."""
    table = run.table("packets", seed).filter((pl.col("link") == link) & (pl.col("flow") == "bulk"))
    return table.select(
        came=pl.col("t_ns") - pl.col("sojourn_ns"), bytes=pl.col("bytes"), left=pl.col("t_ns")
    ).sort("left")


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
@pytest.mark.parametrize("delay", ["5 ms", "40 ms"])
@pytest.mark.parametrize(
    "qdisc", ["pfifo limit 20", "pfifo_head_drop limit 20", "codel", "fq_codel"]
)
def test_a_single_flow_sends_the_kernels_packets(
    kernel_uml: str, qdisc: str, delay: str, congestion: str
) -> None:
    label = f"{qdisc}, {congestion}, delay {delay}, count 1"
    assert same_packets(kernel_uml, label, {}) > 10


@pytest.mark.parametrize(
    ("qdisc", "delay"), [("pfifo limit 20", "5 ms"), ("pfifo limit 20", "40 ms"), ("codel", "5 ms")]
)
def test_a_single_vegas_flow_sends_the_kernels_packets(
    kernel_uml: str, qdisc: str, delay: str
) -> None:
    label = f"{qdisc}, reno, delay {delay}, count 1"
    drops = same_packets(kernel_uml, label, {"flow.bulk.congestion": "vegas"})
    # A single Vegas flow does not fill a fifo of 20 packets. Over CoDel its window is a segment
    # larger than fits below 5 ms.
    assert (drops > 10) == (qdisc == "codel")


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
@pytest.mark.parametrize("delay", ["5 ms", "40 ms"])
@pytest.mark.parametrize("qdisc", ["pfifo limit 20", "codel"])
def test_a_single_flow_of_linux_7_3_sends_that_kernels_packets(
    kernel_73: str, qdisc: str, delay: str, congestion: str
) -> None:
    """The receiver of Linux 7.3 differs from that of 6.12 in the window and in the times of
    SACKs."""
    label = f"{qdisc}, {congestion}, delay {delay}, count 1"
    assert same_packets(kernel_73, label, {"flow.bulk.profile": "linux-7.3"}) > 10


def same_packets(kernel: str, label: str, settings: dict[str, object]) -> int:
    """Checks that both engines' packets of a case of the standing set are equal; returns the number
    of drops."""
    [chosen] = [variant for variant in load(STANDING).variants() if variant.label == label]
    variant = chosen.with_(**{"record.packets": True, **settings})
    ours, kernels = (
        sojourn.run_all([variant], engine=engine, seeds=1)[0] for engine in ("sim", kernel)
    )
    assert are_alike(ours, 1, kernels)
    assert len(packets(ours, "down")) > 1500
    drops: int = ours.table("drops", 1).height
    assert drops == kernels.table("drops", 1).height
    return drops


POLICED = """
duration = "9.5 s"
warmup = "1 s"

[bottleneck]
rate = "25 Mbit/s"
delay = "10 ms"
link_layer = "linux"
down.police = "rate 4mbit burst 20000"

[[flow]]
name = "bulk"
kind = "bulk"

[record]
packets = true
"""


@pytest.mark.parametrize(
    ("congestion", "delay", "drops"), [("reno", "10 ms", 222), ("cubic", "40 ms", 31)]
)
def test_a_policer_drops_the_packets_that_linuxs_drops(
    kernel_uml: str, congestion: str, delay: str, drops: int
) -> None:
    policed = loads(POLICED).with_({"flow.bulk.congestion": congestion, "bottleneck.delay": delay})
    ours, kernels = (
        sojourn.run_all([policed], engine=engine, seeds=1)[0] for engine in ("sim", kernel_uml)
    )
    assert are_alike(ours, 1, kernels)
    for run in (ours, kernels):
        assert run.table("drops", 1)["cause"].to_list() == ["police"] * drops


def test_a_policers_drops_are_distinguished_from_those_of_the_queue_behind_it(
    kernel_uml: str,
) -> None:
    """The policer drops while the sender is fast, and the queue after the sender's rate has
    fallen."""
    both = loads(POLICED).with_(
        {
            "duration": "6 s",
            "bottleneck.down.qdisc": "pfifo limit 5",
            "bottleneck.down.schedule": [["0 s", "25 Mbit/s"], ["3 s", "2 Mbit/s"]],
        }
    )
    for engine in ("sim", kernel_uml):
        drops = sojourn.run_all([both], engine=engine, seeds=1)[0].table("drops", 1)
        late = pl.col("t_ns") > 3_200_000_000
        assert set(drops.filter(late)["cause"].to_list()) == {"limit"}
        assert "police" in drops.filter(~late)["cause"].to_list()


@pytest.mark.parametrize("child", ["pfifo limit 20", "codel", "fq_codel"])
@pytest.mark.parametrize("queues", [1, 4])
def test_a_single_flow_over_a_card_with_several_queues_sends_the_kernels_packets(
    kernel_uml: str, child: str, queues: int
) -> None:
    card = {
        "bottleneck.qdisc": f"mq {child}",
        "bottleneck.queues": queues,
        "bottleneck.pinned": [queues - 1],
    }
    label = "pfifo limit 20, cubic, delay 5 ms, count 1"
    assert same_packets(kernel_uml, label, card) > 10


ALONE = """
duration = "9.5 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
link_layer = "linux"

[[flow]]
name = "bulk"
kind = "bulk"
congestion = "bbr"

[record]
packets = true
"""


@pytest.mark.parametrize(
    ("rate", "delay", "qdisc"),
    [
        ("1 Mbit/s", "5 ms", "pfifo limit 20"),
        ("1 Mbit/s", "5 ms", "codel"),
        ("10 Mbit/s", "20 ms", "pfifo limit 100"),
    ],
)
def test_a_single_bbr_flow_sends_the_kernels_packets(
    kernel_uml: str, rate: str, delay: str, qdisc: str
) -> None:
    """BBR draws one of seven phases to start ProbeBW with. Exactly one of them gives the guest's
    packets; another build of the guest may draw another. There is no further draw before 10 s."""
    alone = loads(ALONE).with_(
        {"bottleneck.rate": rate, "bottleneck.delay": delay, "bottleneck.qdisc": qdisc}
    )
    kernels = sojourn.run_all([alone], engine=kernel_uml, seeds=1)[0]
    ours = sojourn.run_all([alone], seeds=60)[0]
    phases = {tuple(packets(ours, "down", seed)["came"]): seed for seed in range(1, 61)}
    assert 5 <= len(phases) <= 7, "some phases may give the same packets"
    alike = [seed for seed in phases.values() if are_alike(ours, seed, kernels)]
    assert len(alike) == 1
    drops = kernels.table("drops", 1).height
    assert ours.table("drops", alike[0]).height == drops
    assert drops > 50 if qdisc == "codel" else drops == 0


def are_alike(ours: Run, seed: int, kernels: Run) -> bool:
    """Whether both Runs have the same packets of the flow, in both directions."""
    for link in ("down", "up"):
        left, right = packets(ours, link, seed), packets(kernels, link)
        if left["bytes"].to_list() != right["bytes"].to_list():
            return False
        for column in ("came", "left"):
            if np.abs(left[column].to_numpy() - right[column].to_numpy()).max() >= APART_NS:
                return False
    return True


MARKED = """
duration = "10 s"
warmup = "1 s"

[bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
link_layer = "linux"
qdisc = "fq_codel ce_threshold 1ms"

[[flow]]
name = "bulk"
kind = "bulk"
ecn = true

[record]
packets = true
"""


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
@pytest.mark.parametrize("rate", ["1 Mbit/s", "20 Mbit/s"])
def test_a_single_flow_that_is_marked_sends_the_kernels_packets(
    kernel_uml: str, rate: str, congestion: str
) -> None:
    """Packets are marked in every round trip, so the time and content of the receiver's answers to
    CE and CWR decide each window."""
    settings = {"bottleneck.rate": rate, "flow.0.congestion": congestion}
    assert marks_of_the_same_packets(kernel_uml, settings) > 200


def marks_of_the_same_packets(kernel: str, settings: dict[str, str]) -> int:
    """Checks that both engines' packets of `MARKED` are equal; returns the number of marks."""
    variant = loads(MARKED).with_(settings)
    ours, kernels = (
        sojourn.run_all([variant], engine=engine, seeds=1)[0] for engine in ("sim", kernel)
    )
    for link in ("down", "up"):
        left, right = packets(ours, link), packets(kernels, link)
        assert left["bytes"].to_list() == right["bytes"].to_list()
        for column in ("came", "left"):
            assert np.abs(left[column].to_numpy() - right[column].to_numpy()).max() < APART_NS
    marks: list[int] = [run.table("links", 1)["marked_packets"][0] for run in (ours, kernels)]
    assert marks[0] == marks[1]
    return marks[0]


@pytest.mark.parametrize(
    ("rate", "delay", "qdisc"),
    [
        ("1 Mbit/s", "5 ms", "codel target 100ms ce_threshold 2ms"),
        ("20 Mbit/s", "5 ms", "codel target 100ms ce_threshold 2ms"),
        ("20 Mbit/s", "20 ms", "codel target 100ms ce_threshold 2ms"),
        ("20 Mbit/s", "20 ms", "fq_codel ce_threshold 1ms"),
        ("20 Mbit/s", "10 ms", "fq_codel ce_threshold 1ms"),
    ],
)
def test_a_single_dctcp_flow_sends_the_kernels_packets(
    kernel_uml: str, rate: str, delay: str, qdisc: str
) -> None:
    """Each window follows from alpha, which follows from the number of segments that each ACK
    covers."""
    settings = {
        "bottleneck.rate": rate,
        "bottleneck.delay": delay,
        "bottleneck.qdisc": qdisc,
        "flow.0.congestion": "dctcp",
    }
    assert marks_of_the_same_packets(kernel_uml, settings) > 400


def test_a_single_cubic_flow_whose_window_opens_sends_the_kernels_packets(kernel_uml: str) -> None:
    """Over 40 ms the buffer grows as long as the flow lasts. ACKs have time stamps of whole ms.
    With this start no ACK leaves in the last 2 µs of a ms, so the guest's ACKs, which leave 2 µs
    later, have the same time stamps."""
    settings = {
        "bottleneck.delay": "40 ms",
        "bottleneck.qdisc": "codel target 100ms ce_threshold 2ms",
        "flow.0.congestion": "cubic",
        "flow.0.start": "0.002 ms",
    }
    assert marks_of_the_same_packets(kernel_uml, settings) > 20


def test_a_single_ecn_capable_flow_with_drops_sends_the_packets_of_linux_7_3(
    kernel_73: str,
) -> None:
    """A pfifo loses packets. Retransmissions are not ECN-capable, which gives quick ACKs."""
    settings = {
        "bottleneck.rate": "10 Mbit/s",
        "bottleneck.delay": "20 ms",
        "bottleneck.qdisc": "pfifo limit 50",
        "flow.0.congestion": "reno",
        "flow.0.profile": "linux-7.3",
    }
    assert marks_of_the_same_packets(kernel_73, settings) == 0


@pytest.mark.parametrize(
    ("congestion", "rate", "delay", "qdisc", "least"),
    [
        ("dctcp", "1 Mbit/s", "5 ms", "codel target 100ms ce_threshold 2ms", 400),
        ("dctcp", "20 Mbit/s", "20 ms", "codel target 100ms ce_threshold 2ms", 1000),
        ("cubic", "20 Mbit/s", "5 ms", "codel target 100ms ce_threshold 2ms", 400),
        ("prague", "5 Mbit/s", "30 ms", "codel target 100ms ce_threshold 2ms", 100),
        ("reno", "10 Mbit/s", "20 ms", "pfifo limit 50", 0),
    ],
)
def test_a_single_flow_with_accurate_feedback_sends_the_packets_of_linux_7_3(
    kernel_73: str, congestion: str, rate: str, delay: str, qdisc: str, least: int
) -> None:
    """Equal packets require that the ACKs report the same marks at the same times, and that
    AccECN's option takes the same space."""
    settings = {
        "bottleneck.rate": rate,
        "bottleneck.delay": delay,
        "bottleneck.qdisc": qdisc,
        "flow.0.congestion": congestion,
        "flow.0.ecn": "accecn",
        "flow.0.profile": "linux-7.3",
    }
    assert marks_of_the_same_packets(kernel_73, settings) >= least


TWO = """
duration = "6 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
link_layer = "linux"
qdisc = "fq_codel"

[[flow]]
name = "bulk"
kind = "bulk"
count = 2
start = "every 37 ms"

[[flow]]
kind = "ping"

[record]
packets = true
"""


def test_two_flows_and_a_ping_send_the_kernels_packets(kernel_uml: str) -> None:
    """A delayed ACK's timer expires before a program sends at the same time. The expiry also sends
    SACKs that were delayed, even if nobody needs them any more."""
    ours, kernels = (
        sojourn.run_all([loads(TWO)], engine=engine, seeds=1)[0] for engine in ("sim", kernel_uml)
    )
    for link in ("down", "up"):
        tables = [
            run.table("packets", 1)
            .filter(pl.col("link") == link)
            .select("flow", "bytes", left=pl.col("t_ns"))
            .sort("left")
            for run in (ours, kernels)
        ]
        # At the end of the run, one side may have sent one more packet.
        both = min(table.height for table in tables)
        assert all(1000 < both >= table.height - 1 for table in tables)
        left, right = (table.head(both) for table in tables)
        assert left["flow"].to_list() == right["flow"].to_list()
        assert left["bytes"].to_list() == right["bytes"].to_list()
        assert np.abs(left["left"].to_numpy() - right["left"].to_numpy()).max() < APART_NS


LOSSY = """
duration = "10 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
link_layer = "linux"

[[flow]]
name = "bulk"
kind = "udp"
rate = "2 Mbit/s"

[record]
packets = true
"""


@pytest.mark.parametrize("loss", ["10 %", "gemodel 5% 20%", "gemodel 2% 10% 70% 1%"])
def test_the_same_packets_are_lost(kernel_uml: str, loss: str) -> None:
    """The card uses the simulator's random stream."""
    variant = loads(LOSSY).with_({"bottleneck.loss": loss})
    ours, kernels = (
        sojourn.run_all([variant], engine=engine, seeds=1)[0] for engine in ("sim", kernel_uml)
    )
    left, right = (run.table("drops", 1) for run in (ours, kernels))
    assert left["cause"].to_list() == right["cause"].to_list() == ["wire"] * left.height
    assert np.abs(left["t_ns"].to_numpy() - right["t_ns"].to_numpy()).max() < APART_NS
    assert left.height > 100


def test_the_same_packets_are_lost_while_the_loss_changes(kernel_uml: str) -> None:
    """A step applies to packets whose last bit leaves at its time or later."""
    steps = [["0 s", "0 %"], ["501 ms", "10 %"], ["902 ms", "1 %"], ["1.3 s", "30 %"]]
    changing = {"bottleneck.loss_schedule": steps, "bottleneck.loss_repeat": "1.6 s"}
    variant = loads(LOSSY).with_({"bottleneck.loss": None, **changing})
    ours, kernels = (
        sojourn.run_all([variant], engine=engine, seeds=1)[0] for engine in ("sim", kernel_uml)
    )
    left, right = (run.table("drops", 1) for run in (ours, kernels))
    assert left["cause"].to_list() == right["cause"].to_list() == ["wire"] * left.height
    assert np.abs(left["t_ns"].to_numpy() - right["t_ns"].to_numpy()).max() < APART_NS
    assert left.height > 50
    assert not ((left["t_ns"] % 1_600_000_000) < 500_000_000).any()


IMPAIRED = """
duration = "4 s"

[[link]]
name = "first"
from = "a"
to = "b"
duplex = false
rate = "10 Mbit/s"
delay = "20 ms"
jitter = "4 ms 25 % distribution paretonormal"
overtake = true
duplicate = "1 %"
loss = "state 0.5% 40% 10% 50% 0.2%"

[[link]]
name = "second"
from = "b"
to = "c"
duplex = false
rate = "8 Mbit/s"
delay = "10 ms"
jitter = "1 ms"
reorder = "2 % 10 % gap 3"

[[link]]
name = "back"
from = "c"
to = "a"
duplex = false
rate = "10 Mbit/s"
delay_schedule = [["0 s", "30 ms"], ["1 s", "60 ms"], ["1.5 s", "5 ms"]]
delay_repeat = "2 s"
slot = "1 ms 9 ms packets 5"

[[flow]]
name = "bulk"
kind = "udp"
from = "a"
to = "c"
rate = "7.7 Mbit/s"
packet = "1000 B"

[[flow]]
kind = "ping"
from = "a"
to = "c"
interval = "2 ms"

[record]
packets = true
"""


def test_the_same_packets_are_delayed_reordered_and_doubled(kernel_uml: str) -> None:
    """The card uses the simulator's random streams. Every packet arrives at every queue in the same
    order, as often, and at the same time as in the simulator."""
    ours, kernels = (
        sojourn.run_all([loads(IMPAIRED)], engine=engine, seeds=1)[0]
        for engine in ("sim", kernel_uml)
    )
    for name, least in (("packets", 9000), ("drops", 50), ("probe", 1900)):
        left, right = (run.table(name, 1) for run in (ours, kernels))
        # The last packets are in flight at the end of the run.
        some = min(left.height, right.height)
        assert least < some
        assert abs(left.height - right.height) <= 3
        for column in {"link", "flow", "bytes", "seq"} & set(left.columns):
            assert left[column][:some].to_list() == right[column][:some].to_list(), column
        apart = np.abs(left["t_ns"][:some].to_numpy() - right["t_ns"][:some].to_numpy())
        assert apart.max() < APART_NS


FILTERED = """
duration = "0.42 s"

[bottleneck]
down.rate = "20 Mbit/s"
up.rate = "1 Mbit/s"
delay = "11.3 ms"
link_layer = "linux"
down.qdisc = "codel"
up.qdisc = "cake besteffort bandwidth 217kbit ack-filter"

[[flow]]
name = "bulk"
kind = "bulk"
congestion = "reno"

[record]
packets = true
"""


def test_the_same_acks_are_filtered(kernel_uml: str) -> None:
    """Packets are equal until 421 ms, when the receiver acknowledges one more segment behind a
    filled gap (docs/agreement.md)."""
    ours, kernels = (
        sojourn.run_all([loads(FILTERED)], engine=engine, seeds=1)[0]
        for engine in ("sim", kernel_uml)
    )
    left, right = (
        run.table("drops", 1).filter(pl.col("link") == "up").sort("t_ns") for run in (ours, kernels)
    )
    assert set(left["cause"].to_list()) == {"ack_filter"}
    assert left.height > 200
    some = min(left.height, right.height)
    assert abs(left.height - right.height) <= 2
    assert left["bytes"][:some].to_list() == right["bytes"][:some].to_list()
    apart = np.abs(left["t_ns"][:some].to_numpy() - right["t_ns"][:some].to_numpy())
    assert apart.max() < APART_NS


ON_A_WIRE = """
duration = "10 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "21.3 ms"
link_layer = "linux"
qdisc = "pfifo limit 100"

[[flow]]
name = "bulk"
kind = "bulk"
congestion = "reno"

[record]
packets = true
"""


@pytest.mark.parametrize(
    ("loss", "seed", "least"), [("3 %", 4, 1400), ("10 %", 4, 700), ("10 %", 6, 180)]
)
def test_a_single_flow_on_a_lossy_wire_sends_the_kernels_packets(
    kernel_uml: str, loss: str, seed: int, least: int
) -> None:
    """Both directions lose packets. `least`: the flow's segments that are equal before the first
    difference (docs/agreement.md has other seeds)."""
    variant = loads(ON_A_WIRE).with_({"bottleneck.loss": loss})
    ours, kernels = (
        packets(sojourn.run_all([variant], engine=engine, seeds=[seed])[0], "down", seed)
        for engine in ("sim", kernel_uml)
    )
    assert min(ours.height, kernels.height) >= least
    left, right = ours[:least], kernels[:least]
    assert left["bytes"].to_list() == right["bytes"].to_list()
    assert np.abs(left["left"].to_numpy() - right["left"].to_numpy()).max() < APART_NS


@pytest.mark.parametrize("reorder", ["0.3 %", "1 %", "3 % 50 %"])
def test_a_single_flow_on_a_wire_that_reorders_sends_the_kernels_packets(
    kernel_uml: str, reorder: str
) -> None:
    """An overtaken segment is retransmitted at most once: after a recovery was undone, RACK does
    not mark its segments as lost again. The ACKs differ earlier (docs/agreement.md)."""
    changes = {"duration": "9.5 s", "bottleneck.delay": "20 ms"}
    variant = loads(ON_A_WIRE).with_({**changes, "bottleneck.down.reorder": reorder})
    ours, kernels = (
        packets(sojourn.run_all([variant], engine=engine, seeds=1)[0], "down")
        for engine in ("sim", kernel_uml)
    )
    assert ours.height > 7700
    assert ours["bytes"].to_list() == kernels["bytes"].to_list()
    assert np.abs(ours["left"].to_numpy() - kernels["left"].to_numpy()).max() < APART_NS


CROWD = """
duration = "12 s"

[bottleneck]
rate = "1 Mbit/s"
delay = "15.8 ms"
link_layer = "linux"
down.qdisc = "fq_codel target 15ms"
up.qdisc = "pfifo limit 300"

[[flow]]
name = "bulk"
kind = "bulk"
count = 16
congestion = "reno"
ecn = true
start = "uniform 0 s .. 1 s"

[record]
packets = true
"""


def test_sixteen_marked_flows_that_start_on_a_narrow_link_send_the_kernels_packets(
    kernel_uml: str,
) -> None:
    """The queue is seconds long, so probes, needless timeouts and reductions for marks coincide."""
    ours, kernels = (
        sojourn.run_all([loads(CROWD)], engine=engine, seeds=1)[0]
        .table("packets", 1)
        .filter(pl.col("link") == "down")
        .sort("t_ns")
        for engine in ("sim", kernel_uml)
    )
    assert ours.height > 900
    for column in ("flow", "bytes"):
        assert ours[column].to_list() == kernels[column].to_list()
    assert np.abs(ours["t_ns"].to_numpy() - kernels["t_ns"].to_numpy()).max() < APART_NS


BEGINS_LATE_MS = 0.002024
"""A flow of the guest begins this much late, because its program reads the clock a few times. The
simulator's flow begins as late here, so that RTTs and time stamps are rounded down at the same
instants."""

UNEVEN = """
duration = "3 s"

[bottleneck]
rate = "8974 kbit/s"
delay = "52.707 ms"
link_layer = "linux"
down.qdisc = "sfq limit 42"
up.rate = "897 kbit/s"
up.qdisc = "pfifo limit 50"

[[flow]]
name = "bulk"
kind = "bulk"
congestion = "vegas"

[record]
packets = true
"""


def parts_from_the_kernels(kernel: str, settings: dict[str, object], start_ms: float) -> int | None:
    """Returns the arrival, in ns, of the first packet of the flow that differs from the kernel's.
    None: all packets are equal."""
    variant = loads(UNEVEN).with_(settings)
    kernels = variant.with_({"flow.bulk.start": f"{start_ms} ms"})
    late = variant.with_({"flow.bulk.start": f"{start_ms + BEGINS_LATE_MS:.6f} ms"})
    pairs = [
        (packets(ours, link), packets(theirs, link))
        for ours in sojourn.run_all([late], seeds=1)
        for theirs in sojourn.run_all([kernels], engine=kernel, seeds=1)
        for link in ("down", "up")
    ]
    parted = []
    for ours, theirs in pairs:
        both = min(ours.height, theirs.height)
        assert both > 300
        assert abs(ours.height - theirs.height) <= 1, "one more at the run's end"
        apart = np.abs(ours["came"][:both].to_numpy() - theirs["came"][:both].to_numpy())
        wrong = (ours["bytes"][:both] != theirs["bytes"][:both]).to_numpy() | (apart > 3000)
        parted += [int(ours["came"][int(at)]) for at in np.flatnonzero(wrong)[:1]]
    return min(parted, default=None)


def test_a_flow_whose_window_opens_by_the_receivers_own_rtt_sends_the_kernels_packets(
    kernel_uml: str,
) -> None:
    """The receiver measures its RTT by echoed time stamps and by the time for a window of data. The
    RTT shows in the times at which its window opens and segments are acknowledged: here at 1.9
    s."""
    assert parts_from_the_kernels(kernel_uml, {}, 4.573) is None


ASKED = """
duration = "10 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
link_layer = "linux"

[[flow]]
name = "bulk"
kind = "requests"
request = "400 B"
size = "60 kB"
pause = "300 ms"

[record]
packets = true
"""

ASKING = {
    "answers of a window": {"flow.0.size": "20 kB", "bottleneck.rate": "1 Mbit/s"},
    "losses": {
        "flow.0.size": "200 kB",
        "bottleneck.rate": "5 Mbit/s",
        "bottleneck.qdisc": "pfifo limit 20",
    },
    "an AQM": {
        "flow.0.size": "20 kB",
        "bottleneck.rate": "1 Mbit/s",
        "bottleneck.qdisc": "codel",
    },
    "no pause": {"flow.0.pause": "0 s"},
    "a pause of many RTOs": {"flow.0.pause": "900 ms"},
}
"""Connections of requests. With each request the guest's clients act up to 2 µs later than the
simulator's, so that a test has fewer than 50 of them, or no pause."""


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
@pytest.mark.parametrize("what", ASKING)
def test_a_connection_of_requests_sends_the_kernels_packets(
    kernel_uml: str, what: str, congestion: str
) -> None:
    """Both ends send data. Equal packets require that the same data segments carry ACKs, that the
    windows fall alike in a pause, and that the same requests are acknowledged at once."""
    variant = loads(ASKED).with_({"flow.0.congestion": congestion, **ASKING[what]})
    ours, kernels = (
        sojourn.run_all([variant], engine=engine, seeds=1)[0] for engine in ("sim", kernel_uml)
    )
    assert are_alike(ours, 1, kernels)
    times = [run.table("transfers", 1) for run in (ours, kernels)]
    assert len(times[0]) == len(times[1]) >= 8
    for column in ("start_ns", "end_ns"):
        apart = np.abs(times[0][column].to_numpy() - times[1][column].to_numpy())
        assert apart.max() < APART_NS
    assert times[0]["bytes"].to_list() == times[1]["bytes"].to_list()
    drops = [run.table("drops", 1).height for run in (ours, kernels)]
    assert drops[0] == drops[1]
    assert (drops[0] > 5) == (what in ("losses", "an AQM"))
