"""The commands that `sojourn shape` prints, run by a real Linux that has the disciplines: the
kernel accepts each of them, and it cures the line."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sojourn import metrics
from sojourn.arrays import Tables
from sojourn.engine import runs as engines
from sojourn.engine.kernel.observed import tables as observed
from sojourn.engine.kernel.observed.archive import Archive
from sojourn.engine.kernel.observed.tables import tables
from sojourn.engine.kernel.plan import guest_plan as planning
from sojourn.linux import tc
from sojourn.linux.operations import WantedShape, plan
from sojourn.linux.rtnl import Former, Interface
from sojourn.scenario import loads
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.realised import Realised

SCENARIO = """
title    = "Two uploads behind a modem's buffer of 240 ms"
duration = "10 s"
warmup   = "4 s"

[[link]]
name = "lan"
from = "client"
to = "modem"
rate = "100 Mbit/s"
delay = "0 s"
duplex = false
qdisc = "pfifo limit 1000"
link_layer = "linux"

[[link]]
name = "line"
from = "modem"
to = "server"
rate = "10 Mbit/s"
delay = "10 ms"
duplex = false
qdisc = "pfifo limit 200"
link_layer = "linux"

[[link]]
name = "back"
from = "server"
to = "client"
rate = "100 Mbit/s"
delay = "10 ms"
duplex = false

[[flow]]
kind = "bulk"
count = 2
from = "client"
to = "server"

[[flow]]
kind = "ping"
interval = "20 ms"
from = "client"
to = "server"
"""


BRIEF = {"duration": "200 ms", "warmup": "0 s"}
"""For tests that only need the state before the traffic begins."""
pytestmark = pytest.mark.usefixtures("kernel_uml")


def printed(device: str, wanted: WantedShape) -> list[str]:
    """The commands for a card without qdiscs."""
    card = Interface(device, 2, "ethernet", 1500, 14, 1, 1000, True, 10**8, ())
    return plan(wanted, card, Former(device, 2, 1, 1000, (), "")).commands


def pings_ms(
    lines: list[str], out: Path, monkeypatch: pytest.MonkeyPatch, **changes: str
) -> dict[str, float]:
    """The ping's RTT after these commands were run at the client before the traffic; CARD is the
    name of its card."""
    unchanged = planning.plan

    def shaped(*arguments: Any) -> planning.Planned:
        planned = unchanged(*arguments)
        (card,) = [device for device in planned.plan["devices"] if device["link"] == 0]
        for line in lines:
            program, _, words = line.replace("CARD", card["name"]).partition(" ")
            step = {
                "do": "run",
                "namespace": card["namespace"],
                "argv": [program, *words.split()],
                "stdin": "",
            }
            planned.plan["setup"].append(step)
        return planned

    monkeypatch.setattr(planning, "plan", shaped)
    run = engines.run(loads(SCENARIO).with_(changes), engine="kernel-uml", out=out)
    (probe,) = metrics.summary(run).to_dict()["summary"]["probes"]
    return {name: probe["rtt_ms"][name]["mean"] for name in ("p50", "p95")}


def test_without_a_shaper_the_modem_is_bloated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 200 packets of 1514 bytes at 10 Mbit/s are 242 ms.
    assert 150 < pings_ms([], tmp_path / "run", monkeypatch)["p95"] < 242 + 20 + 5


@pytest.mark.parametrize(
    ("qdisc", "most_ms"),
    # fq_codel and cake let pings overtake, under CoDel and a short queue they wait behind it. The
    # guest has no conntrack, which nat needs.
    [
        *[("fq_codel", 5), ("cake nonat", 5), ("codel", 40), ("pfifo limit 10", 20)],
        *[("fq_pie", 5), ("pie", 60), ("sfq", 5)],
    ],
)
def test_the_commands_that_shape_prints_cure_it(
    qdisc: str, most_ms: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "tc qdisc del dev CARD root",
        *printed("CARD", WantedShape(9_000_000, None, qdisc, None)),
    ]
    assert pings_ms(lines, tmp_path / "run", monkeypatch)["p95"] < 20 + most_ms


@pytest.mark.parametrize(
    "qdisc",
    [
        "pie target 7ms limit 150",
        "fq_pie flows 64 target 8ms",
        "sfq limit 50 depth 20",
        "sfq redflowlimit 50000 min 4000 probability 1 ecn harddrop headdrop",
    ],
)
def test_netlink_makes_what_tc_makes(
    qdisc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options that the kernel reports are the same."""
    unchanged, options = planning.plan, []

    def noting(realised: Realised, measured: Archive) -> Tables:
        kind = measured.index["qdisc_kinds"].index(qdisc.split()[0])
        rows = measured.tables["qdisc"]
        row = int((rows["kind"] == kind).argmax())
        at = int(rows["options_at"][row])
        options.append(measured.blob[at : at + int(rows["options_bytes"][row])])
        return tables(realised, measured)

    def by_netlink(*arguments: Any) -> planning.Planned:
        planned = unchanged(*arguments)
        (batch,) = [step for step in planned.plan["setup"] if f" {qdisc.split()[0]} " in str(step)]
        lines = batch["stdin"].splitlines(keepends=True)
        (line,) = [line for line in lines if f" {qdisc.split()[0]} " in line]
        batch["stdin"] = "".join(each for each in lines if each != line)
        made = tc.by_netlink(line.strip(), Qdisc.parse(qdisc))
        step = {"do": "qdisc", "namespace": batch["namespace"], **asdict(made)}
        planned.plan["setup"].append({**step, "options": list(made.options)})
        return planned

    scenario = loads(SCENARIO).with_({"link.line.qdisc": qdisc, **BRIEF})
    monkeypatch.setattr(observed, "tables", noting)
    engines.run(scenario, engine="kernel-uml", out=tmp_path / "tc")
    monkeypatch.setattr(planning, "plan", by_netlink)
    engines.run(scenario, engine="kernel-uml", out=tmp_path / "netlink")
    assert options[0] == options[1]
    assert len(options[0]) > 40


@pytest.mark.parametrize("qdisc", ["fq_codel", "cake nonat", "codel"])
def test_both_directions_can_be_shaped(
    qdisc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses a separate device, because the tests' taps occupy the place of an ingress shaper on the
    cards."""
    lines = printed("shaped", WantedShape(9_000_000, 90_000_000, qdisc, None))
    assert any("mirred" in line for line in lines)
    lines = ["ip link add shaped type veth peer name other", *lines]
    pings_ms(lines, tmp_path / "run", monkeypatch, **BRIEF)
