"""Cards with several queues on a kernel: the plan, and the guest's results."""

from dataclasses import replace

import pytest

import sojourn
from sojourn.engine.kernel.plan.fits import PlanError
from sojourn.engine.kernel.plan.guest_plan import Machine, Plan, plan
from sojourn.records import Run
from sojourn.scenario import loads

SIMNIC = Machine("simnic", own=True, ipv6=False)
CARD = """
duration = "6 s"
warmup = "1 s"
[bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
link_layer = "linux"
[bottleneck.down]
qdisc = "mq pfifo limit 30"
queues = 3
pinned = [0, 0, 0, 1, 2]
[[flow]]
kind = "bulk"
count = 4
rtt = "20 ms"
[[flow]]
kind = "ping"
"""
CAKES = CARD.replace("20 Mbit/s", "1 Gbit/s").replace(
    "mq pfifo limit 30", "cake_mq bandwidth 20mbit"
)


def lines(made: Plan) -> list[str]:
    return [
        line
        for step in made["setup"]
        if step["do"] == "run" and step["argv"][0] == "tc"
        for line in step["stdin"].splitlines()
    ]


def test_each_queue_has_its_discipline_and_each_direction_of_a_flow_its_queue() -> None:
    planned = plan(loads(CARD).realise(1), SIMNIC)
    assert planned.queues == "0a:3"
    tc_lines = lines(planned.plan)
    for line in (
        "qdisc add dev nic0a root handle 10: mq",
        "qdisc add dev nic0a parent 10:1 handle 11: pfifo limit 30",
        "qdisc add dev nic0a parent 10:3 handle 13: pfifo limit 30",
        # The filters match the fourth download by its port, and the ping's replies by their
        # identifier.
        "filter add dev nic0a egress protocol ip prio 1 u32 match ip protocol 6 0xff"
        " match u16 0x138c 0xffff at 22 action skbedit queue_mapping 1",
        "filter add dev nic0a egress protocol ip prio 1 u32 match ip protocol 1 0xff"
        " match u16 0x1389 0xffff at 24 action skbedit queue_mapping 2",
    ):
        assert line in tc_lines
    assert not any("nic0b" in line and "mq" in line for line in tc_lines)


def test_without_pinned_flows_there_are_no_filters() -> None:
    made = plan(loads(CARD.replace("pinned = [0, 0, 0, 1, 2]", "")).realise(1), SIMNIC).plan
    assert not any("clsact" in line for line in lines(made))


def test_cake_mq_is_made_by_netlink_and_by_the_kernel_that_has_it() -> None:
    realised = loads(CAKES).realise(1)
    made = plan(realised, replace(SIMNIC, linux=(7, 3))).plan
    [step] = [step for step in made["setup"] if step["do"] == "qdisc"]
    assert (step["device"], step["kind"]) == ("nic0a", "cake_mq")
    # TCA_CAKE_BASE_RATE64: 20 Mbit/s are 2.5 million bytes a second.
    assert bytes(step["options"])[:12] == b"\x0c\x00\x02\x00" + (2_500_000).to_bytes(8, "little")
    with pytest.raises(PlanError, match=r"cake_mq came with Linux 7\.3"):
        plan(realised, SIMNIC)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("20mbit", "20mbit sync_time 2ms", "sync_time is 200us"),
        ('link_layer = "linux"', "", "14 bytes of Ethernet"),
    ],
)
def test_cards_that_linux_builds_in_another_way_are_refused(old: str, new: str, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        plan(loads(CAKES.replace(old, new)).realise(1), replace(SIMNIC, linux=(7, 3)))


def test_virtual_devices_have_one_queue() -> None:
    with pytest.raises(PlanError, match="virtual devices have one queue"):
        plan(loads(CARD).realise(1), Machine("veth", own=False, ipv6=False))


def goodputs(run: Run) -> list[float]:
    flows = sojourn.summary(run).summary["flows"]
    return [flow["goodput_mbps"]["mean"] for flow in flows if flow["kind"] == "bulk"]


def agrees(text: str, engine: str) -> None:
    ours, theirs = (sojourn.run(loads(text), engine=each, seeds=1) for each in ("sim", engine))
    assert sum(goodputs(theirs)) == pytest.approx(sum(goodputs(ours)), rel=0.02)
    assert goodputs(theirs)[3] == pytest.approx(goodputs(ours)[3], rel=0.05)
    assert goodputs(theirs)[3] == pytest.approx(sum(goodputs(theirs)[:3]), rel=0.05)


def test_the_guest_s_card_sends_from_its_queues_in_turn(kernel_uml: str) -> None:
    agrees(CARD, kernel_uml)


@pytest.mark.parametrize("text", [CARD, CAKES])
def test_the_card_of_linux_7_3_sends_from_its_queues_in_turn_and_its_cakes_share_their_rate(
    kernel_73: str, text: str
) -> None:
    agrees(text, kernel_73)
