"""From a scenario to a plan. The tests parse the plan's commands again and route packets through
the network. Scenarios that can't be planned are refused with a reason."""

import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tree import ROOT

from sojourn.engine.kernel.plan.fits import PlanError
from sojourn.engine.kernel.plan.guest_plan import Machine, Planned, plan
from sojourn.engine.kernel.program import program
from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.scenario import Scenario, load, loads
from sojourn.scenario.qdisc import Qdisc, Shaper
from sojourn.scenario.realised import Realised

SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))
SIMNIC = Machine("simnic", own=True, ipv6=False)
VETH = Machine("veth", own=True, ipv6=True)
HOST = Machine("veth", own=False, ipv6=True)
MACHINES = {"simnic": SIMNIC, "veth": VETH}

DUMBBELL = """
title = "dumbbell"
duration = "4 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
link_layer = "ethernet"
qdisc = "codel"

[[flow]]
kind = "bulk"
count = 2
rtt = ["40 ms", "60 ms"]

[[flow]]
kind = "ping"

[[flow]]
kind = "udp"
rate = "1 Mbit/s"
direction = "up"
"""


def with_(text: str = DUMBBELL, /, **changes: Any) -> Scenario:
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    return loads(text).with_(keys)


def planned(scenario: Scenario, machine: Machine = SIMNIC) -> tuple[Realised, dict[str, Any]]:
    """Returns the realised scenario and its plan, after a round trip through JSON."""
    realised = scenario.realise(1)
    return realised, json.loads(json.dumps(plan(realised, machine).plan))


def refused(scenario: Scenario, machine: Machine = SIMNIC) -> PlanError:
    with pytest.raises(PlanError) as caught:
        plan(scenario.realise(1), machine)
    return caught.value


# ------------------------------------------------------------------------- a network made of text


@dataclass
class Network:
    """The network that the plan's commands make, parsed from their text alone."""

    addresses: dict[str, set[str]] = field(default_factory=dict)
    """By namespace."""
    routes: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    """By namespace: destination -> (gateway, device)."""
    neighbours: dict[tuple[str, str], str] = field(default_factory=dict)
    """(namespace, address) -> lladdr."""
    owner: dict[str, tuple[str, str]] = field(default_factory=dict)
    """lladdr -> (namespace, device)."""
    qdiscs: dict[str, list[str]] = field(default_factory=dict)
    """The lines for tc, by device."""
    files: dict[tuple[str | None, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, made: dict[str, Any]) -> "Network":
        network = cls()
        for step in made["setup"]:
            namespace = step["namespace"]
            assert namespace is None or namespace in made["namespaces"]
            if step["do"] == "write":
                network.files[namespace, step["path"]] = step["text"]
                continue
            for line in step["stdin"].splitlines():
                if step["argv"][0] == "ip":
                    network.ip(namespace, line.split())
                else:
                    device = re.search(r"\bdev (\S+)", line)
                    assert device is not None
                    network.qdiscs.setdefault(device[1], []).append(line)
        return network

    def ip(self, namespace: str | None, words: list[str]) -> None:
        match words:
            case ["link", "set", "dev", device, "netns", target]:
                number, end = re.fullmatch(r"nic(\d+)([ab])", device).groups()  # type: ignore[union-attr]
                # The driver's own prefix: only simnic.c has it.
                mac = (
                    f"02:73:6a:{int(number) >> 8:02x}:{int(number) & 255:02x}:{'ab'.index(end):02x}"
                )
                self.owner[mac] = (target, device)
            case [
                "link",
                "add",
                "name",
                a,
                "address",
                mac_a,
                *_,
                "type",
                "veth",
                "peer",
                "name",
                b,
                "address",
                mac_b,
                _,
                _,
                "netns",
                peer,
            ]:
                assert namespace is not None
                self.owner |= {mac_a: (namespace, a), mac_b: (peer, b)}
            case ["address", "add", address, "dev", _]:
                assert namespace is not None
                self.addresses.setdefault(namespace, set()).add(address.split("/")[0])
            case ["neighbour", "replace", address, "lladdr", mac, "dev", _, "nud", "permanent"]:
                assert namespace is not None
                self.neighbours[namespace, address] = mac
            case ["route", "add", target, "via", gateway, "dev", device, *_]:
                assert namespace is not None
                table = self.routes.setdefault(namespace, {})
                assert target not in table, f"{namespace} has two routes to {target}"
                table[target] = (gateway, device)
            case ["link", *_]:
                pass
            case _:
                raise AssertionError(f"not understood: {words}")

    def walk(self, namespace: str, target: str) -> tuple[list[tuple[str, str]], str]:
        """Returns the devices through which a packet leaves on its path, and the end of the
        path."""
        left = []
        while target not in self.addresses.get(namespace, ()):
            table = self.routes[namespace]
            gateway, device = table.get(f"{target}/32") or table["default"]
            left.append((namespace, device))
            namespace, arrived = self.owner[self.neighbours[namespace, gateway]]
            assert gateway in self.addresses[namespace], f"{arrived} has no address {gateway}"
            assert len(left) < 300, "a loop"
        return left, namespace


def queue_devices(made: dict[str, Any]) -> dict[tuple[str, str], int]:
    """The link of each queue's device, from the plan's taps."""
    devices = {}
    for device in made["devices"]:
        devices.setdefault((device["namespace"], device["name"]), device["link"])
    owners = {device: namespace for namespace, device in Network.of(made).owner.values()}
    for tap in made["taps"]:
        if tap["card"] is not None:
            device = card_of(tap)
            devices.setdefault((owners[device], device), tap["link"])
        else:
            after = next(stage for stage in tap["seen"]["stages"] if stage["name"] == "after")
            devices.setdefault(
                (after["points"][0]["namespace"], after["points"][0]["device"]), tap["link"]
            )
    return devices


def card_of(tap: dict[str, Any]) -> str:
    """The card with this number in the log."""
    pair, end = divmod(tap["card"] - 1, 2)
    return f"nic{pair}{'ab'[end]}"


def assert_flows_keep_to_their_paths(realised: Realised, made: dict[str, Any]) -> None:
    network, devices = Network.of(made), queue_devices(made)
    for flow, spec in zip(made["flows"], realised.flows, strict=True):
        for near, far, path in (("from", "to", spec.path), ("to", "from", spec.back)):
            assert flow[near]["address"] in network.addresses[flow[near]["namespace"]]
            left, end = network.walk(flow[near]["namespace"], flow[far]["address"])
            # netem behind a link's queue is the same link.
            links = [devices[place] for place in left if place in devices]
            assert list(dict.fromkeys(links)) == list(path), flow["name"]
            assert end == flow[far]["namespace"]


# ----------------------------------------------------------------------------------------- routes


@pytest.mark.parametrize("wiring", MACHINES)
@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_every_example_is_planned_with_its_flows_on_their_paths_or_refused_with_a_reason(
    file: Path, wiring: str
) -> None:
    for variant in load(file).variants():
        if file.stem == "many-flows":
            variant = variant.with_({"flow.0.count": 50})
        try:
            realised, made = planned(variant, MACHINES[wiring])
        except PlanError as error:
            assert all(each.where and each.why and each.hint for each in error.problems)
            continue
        assert_flows_keep_to_their_paths(realised, made)


def test_the_examples_that_linux_can_do_are_not_refused() -> None:
    done = {
        file.stem
        for file in SCENARIOS
        for variant in load(file).variants()
        if file.stem
        not in (
            "many-flows",
            "red-ns2",
            "bbr-depth",
            "card-queues",
            "card-siblings",
            "card-skew",
            "coexistence",
            "l4s",
            "policed",
            "time-limit",
        )
        and planned(variant)
    }
    assert {"downloads", "driver-ring", "parking-lot", "shaped-modem", "web"} <= done


def test_flows_between_the_same_nodes_may_take_different_paths() -> None:
    text = """
    duration = "1 s"
    [[link]]
    name = "first"
    from = "home"
    to = "a"
    rate = "1 Mbit/s"
    delay = "1 ms"
    [[link]]
    name = "upper"
    from = "a"
    to = "b"
    rate = "1 Mbit/s"
    delay = "1 ms"
    [[link]]
    name = "lower"
    from = "a"
    to = "b"
    rate = "2 Mbit/s"
    delay = "2 ms"
    [[flow]]
    name = "high"
    kind = "bulk"
    from = "home"
    to = "b"
    via = ["first", "upper"]
    [[flow]]
    name = "low"
    kind = "bulk"
    from = "home"
    to = "b"
    via = ["first", "lower"]
    """
    for machine in MACHINES.values():
        realised, made = planned(loads(text), machine)
        assert realised.flows[0].path != realised.flows[1].path
        assert_flows_keep_to_their_paths(realised, made)
        # The same host, under two addresses.
        high, low = (flow["from"] for flow in made["flows"])
        assert high["namespace"] == low["namespace"]
        assert high["address"] != low["address"]


def test_a_link_and_the_one_back_are_the_two_ends_of_a_pair_of_cards() -> None:
    _, made = planned(with_())
    assert [device["name"] for device in made["devices"]] == ["nic0a", "nic0b"]


def test_no_packet_needs_address_resolution() -> None:
    for machine in MACHINES.values():
        _, made = planned(with_(), machine)
        network = Network.of(made)
        for namespace, table in network.routes.items():
            for gateway, _ in table.values():
                assert (namespace, gateway) in network.neighbours


def test_routers_forward_and_check_no_paths() -> None:
    _, made = planned(with_(), VETH)
    files = Network.of(made).files
    assert files["n0", "/proc/sys/net/ipv4/ip_forward"] == "1"
    assert ("h0", "/proc/sys/net/ipv4/ip_forward") not in files
    for namespace in made["namespaces"]:
        assert files[namespace, "/proc/sys/net/ipv4/conf/all/rp_filter"] == "0"
        assert files[namespace, "/proc/sys/net/ipv6/conf/all/disable_ipv6"] == "1"


# ------------------------------------------------------------------------------------------ hosts


def test_a_hundred_flows_of_ten_rtts_share_twenty_hosts() -> None:
    text = DUMBBELL.replace("count = 2", "count = 100").replace(
        'rtt = ["40 ms", "60 ms"]', f"rtt = {[f'{40 + 5 * (n % 10)} ms' for n in range(100)]}"
    )
    realised, made = planned(loads(text))
    assert_flows_keep_to_their_paths(realised, made)
    bulk = made["flows"][:100]
    assert len({flow["to"]["namespace"] for flow in bulk}) == 10
    assert len({flow["from"]["namespace"] for flow in bulk}) == 10


def test_the_rest_of_the_rtt_is_behind_the_last_link_of_each_direction() -> None:
    realised, made = planned(with_())
    network, devices = Network.of(made), queue_devices(made)
    for flow, spec in zip(made["flows"], realised.flows, strict=True):
        for near, far, way, extra in (
            ("from", "to", "path", "path_extra_ns"),
            ("to", "from", "back", "back_extra_ns"),
        ):
            left, _ = network.walk(flow[near]["namespace"], flow[far]["address"])
            delays = [
                int(network.files[None, f"/sys/kernel/simnic/{device}/delay_ns"])
                for _, device in left
            ]
            behind = 1 + max(at for at, place in enumerate(left) if place in devices)
            assert sum(delays[:behind]) == sum(
                realised.links[link].delay_ns for link in getattr(spec, way)
            )
            assert sum(delays[behind:]) == getattr(spec, extra)
    assert realised.flows[0].path_extra_ns > 0 < realised.flows[0].back_extra_ns


def test_flows_with_different_tcp_have_different_hosts() -> None:
    text = DUMBBELL + '\n[[flow]]\nname = "plain"\nkind = "bulk"\nrtt = "40 ms"\n'
    _, made = planned(with_(text, flow__0__ecn=True))
    files = Network.of(made).files
    marked, plain = made["flows"][0]["from"]["namespace"], made["flows"][-1]["from"]["namespace"]
    assert files[marked, "/proc/sys/net/ipv4/tcp_ecn"] == "1"
    assert files[plain, "/proc/sys/net/ipv4/tcp_ecn"] == "0"


HOUSE = (
    DUMBBELL.split("[[flow]]")[0]
    + """
[[flow]]
name = "many"
kind = "bulk"
count = 4
rtt = "spread 30 ms .. 90 ms"
hosts = ["laptop", "phone"]

[[flow]]
name = "backup"
kind = "bulk"
direction = "up"
hosts = "laptop"

[[flow]]
kind = "ping"
hosts = "phone"

[[flow]]
name = "stranger"
kind = "bulk"
"""
)


@pytest.mark.parametrize("wiring", MACHINES)
def test_a_named_host_is_one_machine_with_one_address_at_any_rtt(wiring: str) -> None:
    realised, made = planned(loads(HOUSE), MACHINES[wiring])
    assert_flows_keep_to_their_paths(realised, made)
    found: dict[str | None, set[tuple[str, str]]] = {}
    for flow, spec in zip(made["flows"], realised.flows, strict=True):
        at_home = 1 if spec.hosts[0] is None else 0
        if spec.name == "stranger":
            assert spec.hosts == (None, None)
        end = flow[("from", "to")[at_home]]
        found.setdefault(spec.hosts[at_home], set()).add((end["namespace"], end["address"]))
    assert set(found) == {"home/laptop", "home/phone", None}
    assert all(len(ends) == 1 for ends in found.values())
    assert len({address for ends in found.values() for _, address in ends}) == 3


def test_the_delay_before_a_named_host_is_at_the_other_end() -> None:
    realised, made = planned(loads(HOUSE))
    network = Network.of(made)
    for flow, spec in zip(made["flows"], realised.flows, strict=True):
        ways = (
            ("from", "to", spec.path, spec.path_extra_ns),
            ("to", "from", spec.back, spec.back_extra_ns),
        )
        for near, far, path, extra in ways:
            left, _ = network.walk(flow[near]["namespace"], flow[far]["address"])
            delays = [
                int(network.files[None, f"/sys/kernel/simnic/{device}/delay_ns"])
                for _, device in left
            ]
            assert sum(delays) == extra + sum(realised.links[link].delay_ns for link in path)


def test_an_access_link_may_lead_to_a_named_host() -> None:
    realised, made = planned(loads(HOUSE).with_({"flow.many.access": "1 Gbit/s"}))
    assert_flows_keep_to_their_paths(realised, made)
    assert len({flow["to"]["address"] for flow in made["flows"][:4]}) == 2


@pytest.mark.parametrize("kind", ['kind = "web"\nsize = "9 kB"', 'kind = "stream"'])
def test_traffic_that_only_the_simulator_can_send_is_refused_with_an_alternative(kind: str) -> None:
    error = refused(loads(f'{DUMBBELL}\n[[flow]]\nname = "page"\n{kind}'))
    assert [each.where for each in error.problems] == ["flow 'page'"]
    assert "the simulator's alone" in error.problem
    assert "engine sim" in error.hint


def test_a_host_can_t_have_two_kinds_of_tcp_or_two_paths_to_it() -> None:
    marked = refused(loads(HOUSE).with_({"flow.backup.ecn": True}))
    assert [each.where for each in marked.problems] == ["flow 'backup': tcp"]
    assert "'home/laptop'" in marked.problems[0].why
    assert marked.problems[0].why.endswith("TCP's ecn")
    shaken = refused(loads(HOUSE).with_({"flow.ping.jitter": "1 ms"}))
    assert [each.where for each in shaken.problems] == ["flow 'ping': jitter"]
    ring = """
    duration = "1 s"
    [[link]]
    from = "a"
    to = "b"
    rate = "1 Mbit/s"
    delay = "1 ms"
    [[link]]
    name = "second"
    from = "a"
    to = "b"
    rate = "1 Mbit/s"
    delay = "2 ms"
    [[flow]]
    kind = "bulk"
    from = "a"
    to = "b"
    hosts = 1
    hosts_at = "b"
    [[flow]]
    kind = "ping"
    from = "a"
    to = "b"
    via = ["second"]
    hosts = 1
    hosts_at = "b"
    """
    assert [each.where for each in refused(loads(ring)).problems] == ["flow 'ping': via"]


def test_ports_belong_to_one_flow_of_a_protocol() -> None:
    _, made = planned(with_())
    kinds = {"bulk": "tcp", "ping": "icmp", "udp": "udp"}
    ports = [(kinds[flow["traffic"]["kind"]], flow["port"]) for flow in made["flows"]]
    assert len(set(ports)) == len(ports)


# ------------------------------------------------------------------------------------------ links


def card(made: dict[str, Any], device: str) -> dict[str, str]:
    prefix = f"/sys/kernel/simnic/{device}/"
    return {
        path.removeprefix(prefix): text
        for (_, path), text in Network.of(made).files.items()
        if path.startswith(prefix)
    }


def test_a_card_gets_the_settings_of_its_link() -> None:
    scenario = with_(
        bottleneck__ring=64,
        bottleneck__bql=True,
        bottleneck__coalesce="1 ms",
        bottleneck__down={"loss": "1 %"},
    )
    _, made = planned(scenario)
    down = card(made, "nic0a")
    assert int(down.pop("loss_key")) > 0
    assert down == {
        "header": "14",
        "overhead": "38",
        "minimum": "84",
        "cells": "none",
        "log": "1",
        "log_out": "1",
        "delay_ns": "10000000",
        "rate_bps": "10000000",
        "stopped": "0",
        "ring": "64",
        "bql": "1",
        "coalesce_ns": "1000000",
        "loss_good": str(math.ceil(0.01 * 2**53)),
    }
    assert "loss_good" not in card(made, "nic0b")


def test_a_card_s_wire_gets_the_settings_of_the_link() -> None:
    scenario = with_(
        bottleneck__jitter="4 ms 25 % distribution normal",
        bottleneck__overtake=True,
        bottleneck__down={"reorder": "50 % gap 3", "duplicate": "25 %"},
        bottleneck__delay_schedule=[["0 s", "10 ms"], ["1 s", "5 ms"]],
        bottleneck__loss="state 1%",
    )
    _, made = planned(scenario)
    down = card(made, "nic0a")
    expected = {
        "delay_ns": 10**7,
        "jitter_ns": 4 * 10**6,
        "jitter_rho": round(0.25 * (2**32 - 1)),
        "overtake": 1,
        "reorder": 2**31,
        "reorder_gap": 3,
        "duplicate": 2**30,
        "loss_p13": math.ceil(0.01 * 2**53),
        "loss_p23": 2**53,
    }
    assert {name: int(down[name]) for name in expected} == expected
    assert down["jitter_table"].startswith("3584 ")
    assert len(down["jitter_table"]) == 5 + 4 * 512
    keys = [down[f"{kind}_key"] for kind in ("loss", "jitter", "reorder", "duplicate")]
    assert len(set(keys)) == 4
    (event,) = [each for each in made["events"] if "nic0a" in each["step"]["path"]]
    assert (event["at_ns"], event["step"]["text"]) == (10**9, str(5 * 10**6))
    with pytest.raises(PlanError, match="simulated cards"):
        planned(scenario, VETH)


def test_steps_of_a_discipline_are_changes_by_tc_and_those_of_a_loss_are_the_card_s() -> None:
    changes = [["1 s", "cake bandwidth 3mbit"], ["2 s", "cake rtt 20ms"], ["9 h", "cake wash"]]
    scenario = with_(
        bottleneck__down={
            "qdisc": "cake bandwidth 9mbit besteffort atm overhead 8",
            "qdisc_schedule": changes,
            "loss_schedule": [["0 s", "1 %"], ["1500 ms", "50 %"]],
        },
    )
    _, made = planned(scenario)
    events = [(each["at_ns"], each["step"]) for each in made["events"]]
    assert [at for at, _ in events] == [10**9, 15 * 10**8, 2 * 10**9]
    lines = [" ".join(step["argv"]) for _, step in events if step["do"] == "run"]
    # The line's words can't be changed, so they are not repeated.
    assert lines == [
        "tc qdisc change dev nic0a root handle 10: cake bandwidth 3mbit besteffort",
        "tc qdisc change dev nic0a root handle 10: cake bandwidth 3mbit rtt 20ms besteffort",
    ]
    loss = events[1][1]
    assert loss["path"] == "/sys/kernel/simnic/nic0a/loss_good"
    assert int(loss["text"]) == 2**52
    assert int(card(made, "nic0a")["loss_good"]) == math.ceil(0.01 * 2**53)
    problems = str(refused(scenario, VETH))
    assert "which packets a change drops" in problems
    assert "a loss that changes over time" in problems


def test_large_packets_are_built_only_with_offloads() -> None:
    for offloads in (False, True):
        _, made = planned(with_(offloads=offloads))
        network = Network.of(made)
        offloading = {
            path.split("/")[4]: text
            for (_, path), text in network.files.items()
            if path.endswith("/offload")
        }
        lines = [
            line
            for step in made["setup"]
            if step["do"] == "run"
            for line in step["stdin"].splitlines()
        ]
        asked = [line for line in lines if "gso_max_segs" in line]
        assert set(offloading.values()) == ({"1"} if offloads else set())
        assert len(asked) == (2 * len({name[:-1] for name in offloading}) if offloads else 0)
        made = plan(with_(offloads=offloads).realise(1), VETH).plan
        pairs = [
            line
            for step in made["setup"]
            if step["do"] == "run"
            for line in step["stdin"].splitlines()
            if " type veth " in line
        ]
        assert pairs
        assert all(line.count("gso_max_segs 1 ") == (0 if offloads else 2) for line in pairs)


def test_the_discipline_counts_the_bytes_of_the_link_layer() -> None:
    for layer, stab in (("none", "stab overhead -14 "), ("ethernet", ""), ("linux", "")):
        _, made = planned(with_(bottleneck__link_layer=layer))
        assert (
            Network.of(made)
            .qdiscs["nic0a"][0]
            .startswith(f"qdisc add dev nic0a root handle 10: {stab}codel")
        )


@pytest.mark.parametrize("machine", [SIMNIC, VETH])
def test_cake_s_overhead_is_relative_to_the_ip_packet_on_each_link_layer(machine: Machine) -> None:
    # Where tc-stab(8) has removed Ethernet's header, cake must not remove it again.
    options = {
        ("none", "overhead 10"): "raw noatm overhead 10",
        ("ppp", "atm overhead 10"): "raw atm overhead 10",
        ("pppoa-vcmux", "pppoe-ptm ether-vlan mpu 64"): "raw ptm overhead 34 mpu 64",
        ("ethernet header 18", "docsis"): "raw noatm overhead 0 mpu 64",
        ("linux", "atm overhead 10"): "atm overhead 10",
        ("docsis", "docsis"): "docsis",
        ("none", "raw atm overhead 10"): "raw atm overhead 10",
        ("none", "mpu 64"): "mpu 64",
        ("none", ""): "",
    }
    for (layer, line), words in options.items():
        scenario = with_(
            bottleneck__link_layer=layer, bottleneck__qdisc=f"cake bandwidth 9mbit {line}"
        )
        _, made = planned(scenario, machine)
        device = "nic0a" if machine is SIMNIC else "v0a"
        cake = Network.of(made).qdiscs[device][-1]
        assert " ".join(cake.partition(" cake ")[2].split()) == f"bandwidth 9mbit {words}".strip()
    beyond = with_(
        bottleneck__link_layer="ethernet header 18", bottleneck__qdisc="cake overhead -47"
    )
    error = refused(beyond, SIMNIC)
    assert "overhead -47 is -65 after a header of 18 is subtracted" in str(error)
    assert "write an overhead of at least -46" in error.hint


def test_large_packets_that_cake_would_count_differently_are_refused() -> None:
    def with_cake(layer: str) -> Scenario:
        return with_(
            bottleneck__link_layer=layer, bottleneck__qdisc="cake bandwidth 9mbit", offloads=True
        )

    error = refused(with_cake("none"))
    assert (
        "cake counts 14 bytes of Ethernet in each piece of a large packet, but this link's link_layer counts 0"
        in str(error)
    )
    planned(with_cake("linux"))


def test_htb_charges_what_the_wire_carries() -> None:
    # The discipline counts an IP packet and the header; htb adds the rest of the overhead.
    charges = {
        "none": "stab overhead -14 htb",
        "ppp": "overhead 2",
        "ethernet": "overhead 24 mpu 84",
        "docsis": "overhead 4 mpu 64",
        "pppoe-vcmux": "overhead 18 linklayer atm",
    }
    for layer, words in charges.items():
        _, made = planned(with_(bottleneck__link_layer=layer), VETH)
        lines = "\n".join(Network.of(made).qdiscs["v0a"])
        assert words in lines
        assert "htb rate 10000000bit ceil 10000000bit" in lines


def test_netem_is_behind_the_queue_in_a_separate_namespace() -> None:
    _, made = planned(with_(bottleneck__down={"loss": "gemodel 1 % 10 %"}), VETH)
    network = Network.of(made)
    left, _ = network.walk(made["flows"][0]["from"]["namespace"], made["flows"][0]["to"]["address"])
    queue = next(
        i for i, (_, device) in enumerate(left) if "codel" in str(network.qdiscs.get(device))
    )
    namespace, device = left[queue + 1]
    assert namespace == "m0"
    (line,) = network.qdiscs[device]
    assert "netem limit 10000000 delay 10000.000us loss gemodel 1% 10% 100% 0%" in line
    assert not any("netem" in line for line in network.qdiscs[left[queue][1]])


def test_a_shaper_is_the_parent_of_the_discipline_and_has_no_other_parent() -> None:
    scenario = next(
        v for v in load(ROOT / "scenarios" / "shaped-modem.toml").variants() if "htb" in v.label
    )
    _, made = planned(scenario)
    router, modem = (Network.of(made).qdiscs[made["devices"][index]["name"]] for index in (0, 1))
    assert router[:3] == [
        "qdisc add dev nic0a root handle 1: stab overhead -14 htb default 1",
        "class add dev nic0a parent 1: classid 1:1 htb rate 900000bit ceil 900000bit burst 1600b cburst 1600b quantum 1514",
        "qdisc add dev nic0a parent 1:1 handle 10: fq_codel limit 10240 flows 1024 memory_limit 33554432"
        " target 20ms interval 100ms quantum 1514 drop_batch 64 ecn",
    ]
    assert modem[0] == "qdisc add dev nic1a root handle 10: stab overhead -14 bfifo limit 64000"


def test_a_policer_is_at_the_egress_and_counts_the_discipline_s_bytes() -> None:
    police = "rate 10mbit burst 64k overhead 24"
    overheads = {
        "none": "mtu 2054b overhead 10",
        "linux": "mtu 2040b overhead 24",
    }
    for layer, words in overheads.items():
        scenario = with_(bottleneck__link_layer=layer, bottleneck__down={"police": police})
        _, made = planned(scenario)
        assert Network.of(made).qdiscs["nic0a"][1:] == [
            "qdisc add dev nic0a clsact",
            "filter add dev nic0a egress matchall action police rate 10000000bit burst 65536b"
            f" {words} conform-exceed drop",
        ]


def test_a_policer_that_linux_lacks_is_refused() -> None:
    bare = with_(bottleneck__link_layer="none", bottleneck__police="rate 1mbit burst 3k overhead 4")
    with pytest.raises(PlanError, match="counts at least 14 bytes of Ethernet") as caught:
        planned(bare)
    assert "overhead 14" in caught.value.hint
    full = with_(bottleneck__link_layer="linux", bottleneck__police="rate 1mbit burst 3k")
    with pytest.raises(PlanError, match="can't be distinguished from the discipline's"):
        planned(full, VETH)


def test_a_shaper_over_a_transmitter_is_a_class_within_a_class() -> None:
    lines = tc.queue(
        "v0a",
        Qdisc.parse("pfifo limit 9"),
        header_bytes=14,
        shaper=Shaper(10**6, 1600),
        transmitter=tc.Transmitter(2 * 10**6, 14),
    )
    parents = [re.search(r"(root|parent \S+)", line)[1] for line in lines]  # type: ignore[index]
    assert parents == ["root", "parent 1:", "parent 1:1", "parent 1:2"]
    with pytest.raises(UserError, match="never act"):
        tc.queue(
            "v0a",
            Qdisc.parse("pfifo limit 9"),
            header_bytes=14,
            shaper=Shaper(3 * 10**6, 1600),
            transmitter=tc.Transmitter(2 * 10**6, 14),
        )


def test_a_rate_that_changes_is_an_event_each_time_and_an_outage_keeps_some_rate() -> None:
    schedule = 'schedule = [["0 s", "10 Mbit/s"], ["1 s", "0 Mbit/s"]]\nrepeat = "2 s"'
    _, made = planned(loads(DUMBBELL.replace('rate = "10 Mbit/s"', schedule)))
    changes: dict[str, list[tuple[int, str]]] = {"rate_bps": [], "stopped": []}
    for event in made["events"]:
        device, name = event["step"]["path"].split("/")[-2:]
        if device == "nic0a":
            changes[name].append((event["at_ns"] // 10**9, event["step"]["text"]))
    assert changes["stopped"] == [(1, "1"), (2, "0"), (3, "1")]
    # To the card a rate of 0 is no limit.
    assert changes["rate_bps"] == [(1, str(10**12)), (2, str(10**7)), (3, str(10**12))]
    refused(loads(DUMBBELL.replace('rate = "10 Mbit/s"', schedule)), VETH)


ROWS = {"record.packets": True}


def memory_of(**changes: Any) -> int:
    return plan(with_(**changes).realise(1), SIMNIC).memory_mb


CHAIN = """
title = "chain"
duration = "400 s"

[[link]]
name = "wide"
from = "x"
to = "y"
rate = "100 Mbit/s"
delay = "1 ms"
qdisc = "pfifo limit 1000"

[[link]]
name = "narrow"
from = "y"
to = "z"
rate = "1 Mbit/s"
delay = "1 ms"
qdisc = "codel"

[[flow]]
from = "x"
to = "z"
rtt = "6 ms"
"""


def memory_for(flow: str) -> int:
    return plan(loads(CHAIN + flow).with_(ROWS).realise(1), SIMNIC).memory_mb


def test_memory_does_not_grow_with_the_run() -> None:
    short = memory_of(bottleneck__rate="1 Gbit/s")
    assert memory_of(bottleneck__rate="1 Gbit/s", duration="1 h") == short < 300


def test_memory_for_rows_depends_on_possible_packets_not_on_the_link_s_capacity() -> None:
    # At 10 Mbit/s at most 100 MB pass in 80 s: 66 000 packets and as many acknowledgements,
    # whatever the way back could carry.
    narrow = memory_of(**ROWS, duration="80 s", bottleneck__up={"rate": "10 Gbit/s"})
    assert narrow < 400
    # A stream of datagrams sends more than the link carries: in 80 s 400 000 packets, each a row of
    # 160 bytes.
    flooded = memory_of(
        **ROWS, **{"duration": "80 s", "flow.2.rate": "60 Mbit/s", "flow.2.direction": "down"}
    )
    assert flooded > narrow + 60
    # Smaller packets are more packets.
    assert memory_of(**ROWS, **{"duration": "800 s", "flow.0.tcp.mss": 100}) > 2 * memory_of(
        **ROWS, duration="800 s"
    )


def test_memory_is_estimated_for_all_packets_of_a_stream_before_a_narrow_link() -> None:
    bulk = memory_for('kind = "bulk"')
    # 1.04 million packets of 1448 bytes, recorded twice.
    video = memory_for('kind = "video"\nrate = "30 Mbit/s"')
    assert video > bulk + 2 * 1.04e6 * 160 / 2**20
    trace = 'kind = "video"\nframes = [["0 s", "125 kB"]]\nrepeat = "33 ms"'
    assert memory_for(trace) == pytest.approx(video, rel=0.1)


def test_short_transfers_are_small_packets() -> None:
    bulk, short = (
        memory_for('kind = "bulk"'),
        memory_for('kind = "transfers"\nsize = "100 B"\npause = "1 ms"\ncount = 60'),
    )
    assert short > 4 * (bulk - 192)


def test_every_queue_is_in_the_log_and_a_ring_s_far_end_too() -> None:
    _, made = planned(with_(bottleneck__down={"ring": 16}))
    assert [(card_of(tap), tap["out"], tap["rows"]) for tap in made["taps"]] == [
        ("nic0a", True, False),
        ("nic0b", False, False),
    ]
    files = Network.of(made).files
    for tap in made["taps"]:
        folder = f"/sys/kernel/simnic/{card_of(tap)}"
        assert files[None, f"{folder}/log"] == str(tap["card"])
        assert files[None, f"{folder}/log_out"] == str(int(tap["out"]))
    # Taps record rows for the table of packets, and for the self-check.
    assert all(tap["rows"] for tap in made["check"]["taps"])
    assert all(tap["rows"] for tap in planned(with_(**ROWS))[1]["taps"])


def test_without_a_log_taps_observe_all_entries_of_a_queue_and_only_its_packets() -> None:
    realised, made = planned(with_(), VETH)
    down = made["taps"][0]["seen"]
    assert [stage["name"] for stage in down["stages"]] == ["before", "after"]
    assert all(point["direction"] == "in" for point in down["stages"][0]["points"])
    crossing = {(i, False) for i, flow in enumerate(realised.flows) if 0 in flow.path}
    crossing |= {(i, True) for i, flow in enumerate(realised.flows) if 0 in flow.back}
    assert {tuple(each) for each in down["only"]} == crossing


@pytest.mark.parametrize(
    ("qdisc", "drops"),
    [
        ("pfifo limit 20", {"in_order": True, "how": "arrival", "limit": None}),
        ("pfifo_head_drop limit 20", {"in_order": True, "how": "head", "limit": 20}),
        ("codel limit 30", {"in_order": True, "how": "departure", "limit": 30}),
        ("fq_codel", {"in_order": False, "how": "departure", "limit": None}),
        ("sfq", {"in_order": False, "how": "arrival", "limit": None}),
    ],
)
def test_values_that_taps_can_not_observe_follow_from_the_discipline(
    qdisc: str, drops: dict[str, Any]
) -> None:
    _, made = planned(with_(bottleneck__qdisc=qdisc), VETH)
    assert made["taps"][0]["seen"]["drops"] == drops


def test_a_link_without_a_rate_has_no_queue_and_no_tap() -> None:
    variant = load(ROOT / "scenarios" / "shaped-modem.toml").variants()[0]
    _, made = planned(variant)
    assert {tap["link"] for tap in made["taps"]} == {1, 2}


# ------------------------------------------------------------------------------------ tc's syntax


@pytest.mark.parametrize(
    "words",
    [
        "pfifo limit 50",
        "bfifo limit 64000",
        "pfifo_head_drop limit 7",
        "codel limit 100 target 10ms interval 200ms ecn ce_threshold 1ms",
        "fq_codel limit 99 flows 16 quantum 300 memory_limit 1m drop_batch 1 noecn",
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.1 bandwidth 10mbit adaptive ecn harddrop",
    ],
)
def test_tc_gets_every_parameter(words: str) -> None:
    qdisc = Qdisc.parse(words)
    assert Qdisc.parse(qdisc.command()) == qdisc


def test_pfifo_fast_has_the_device_s_queue_length() -> None:
    _, made = planned(with_(bottleneck__qdisc="pfifo_fast limit 33"))
    lines = [
        line for step in made["setup"] if step["do"] == "run" for line in step["stdin"].splitlines()
    ]
    assert "link set dev nic0a txqueuelen 33" in lines
    assert "qdisc add dev nic0a root handle 10: pfifo_fast" in lines


def test_jitter_keeps_the_order_and_is_at_both_ends() -> None:
    _, made = planned(with_(flow__0__jitter="60 us"))
    lines = [
        line for lines in Network.of(made).qdiscs.values() for line in lines if "netem" in line
    ]
    # Two senders and two receivers at different distances: replies get jitter as well.
    assert len(lines) == 4
    assert all("delay 30.000us 30.000us rate 1tbit" in line for line in lines)


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "machine", "where", "why"),
    [
        (
            {"bottleneck.qdisc": "adt limit 100"},
            SIMNIC,
            "link 'down': qdisc",
            "no queue discipline 'adt'",
        ),
        ({"bottleneck.qdisc": "codel variant rfc"}, SIMNIC, "link 'down': qdisc", "variant rfc"),
        ({"bottleneck.qdisc": "codel target 5500ns"}, SIMNIC, "link 'down': qdisc", "microseconds"),
        ({"bottleneck.ring": 64}, VETH, "link 'down': ring", "no driver's ring"),
        ({"bottleneck.link_layer": "pppoe-ptm"}, VETH, "link 'down'", "PTM"),
        ({"flow.0.congestion": "ledbat"}, SIMNIC, "flow 'bulk.1': congestion", "no LEDBAT"),
        ({"flow.0.profile": "ns2"}, SIMNIC, "flow 'bulk.1': profile", "no kernel has"),
        ({"flow.0.tcp.pacing": True}, SIMNIC, "flow 'bulk.1': tcp.pacing", "paces only"),
        (
            {"flow.0.tcp.prague_variant": "draft"},
            SIMNIC,
            "flow 'bulk.1': tcp.prague_variant",
            "our module prague, which is the variant linux",
        ),
        (
            {"flow.0.tcp.delayed_ack": "100 ms"},
            SIMNIC,
            "flow 'bulk.1': tcp.delayed_ack",
            "decides itself",
        ),
        (
            {"flow.0.tcp.hystart": False},
            HOST,
            "flow 'bulk.1': tcp.hystart",
            "sojourn does not change it",
        ),
    ],
)
def test_features_that_this_kernel_lacks_are_refused_with_their_place(
    changes: dict[str, Any], machine: Machine, where: str, why: str
) -> None:
    error = refused(loads(DUMBBELL).with_(changes), machine)
    found = [each for each in error.problems if each.where == where]
    assert found, error.problem
    assert why in found[0].why
    assert found[0].hint


def test_everything_is_refused_at_once() -> None:
    error = refused(with_(bottleneck__qdisc="adt limit 9", flow__0__profile="ns2"))
    assert {each.where for each in error.problems} == {
        "link 'down': qdisc",
        "link 'up': qdisc",
        "flow 'bulk.1': profile",
    }


def test_the_tcp_settings_that_linux_allows_are_set() -> None:
    settings = {
        "initial_window": 4,
        "sack": False,
        "timestamps": False,
        "max_window": 20,
        "min_rto": "1 s",
    }
    _, made = planned(
        with_(flow__0__tcp={**settings, "hystart": False, "receive_buffer_max": "1 MB"})
    )
    network, flow = Network.of(made), made["flows"][0]
    host = flow["from"]["namespace"]
    sysctls = {
        path.rsplit("/", 1)[1]: text for (name, path), text in network.files.items() if name == host
    }
    assert (sysctls["tcp_sack"], sysctls["tcp_timestamps"]) == ("0", "0")
    assert sysctls["tcp_rmem"].endswith(" 1000000")
    # 40 bytes of headers leave 1460 of 1500.
    assert flow["traffic"]["tcp"] == {
        "congestion": "cubic",
        "mss": None,
        "window_bytes": 20 * 1460,
    }
    batch = "".join(
        step["stdin"] for step in made["setup"] if step["do"] == "run" and step["namespace"] == host
    )
    assert "initcwnd 4 rto_min 1000ms" in batch
    assert network.files[None, "/sys/module/tcp_cubic/parameters/hystart"] == "0"


# ------------------------------------------------------------------- the guest's program reads it


@pytest.mark.skipif(sys.platform != "linux", reason="the guest's program runs on Linux")
@pytest.mark.parametrize("wiring", MACHINES)
def test_the_guest_s_program_understands_the_plan(wiring: str, tmp_path: Path) -> None:
    guest = program()
    text = (
        DUMBBELL
        + '\n[[flow]]\nkind = "video"\nrate = "1 Mbit/s"\n\n[[flow]]\nkind = "transfers"\nsize = "exp 10 kB"\n'
    )
    made: Planned = plan(loads(text).realise(1), MACHINES[wiring])
    # The program stops before it changes anything: at a missing module, or without root.
    stopped = {**made.plan, "modules": [str(tmp_path / "none.ko")]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(stopped))
    done = subprocess.run(
        [str(guest), "--plan", str(file), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"@FAIL (module |network namespaces need root)", done.stdout), done.stdout
    file.write_text(json.dumps({**stopped, "taps": [{"link": 0}]}))
    done = subprocess.run(
        [str(guest), "--plan", str(file), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "@FAIL" in done.stdout
    assert "missing field" in done.stdout
