"""Each declared kind of traffic can be written, read and described. The simulator and a kernel plan
support it or refuse it.

The declaration is in crates/traffic. A kind that is added there has to work everywhere, or a test
with the kind's name fails.
"""

import pytest
from tree import ROOT

import sojourn
from sojourn.engine import estimate
from sojourn.engine.kernel.plan.fits import PlanError
from sojourn.engine.kernel.plan.guest_plan import Machine, plan
from sojourn.engine.registry import find
from sojourn.errors import UserError
from sojourn.scenario import Scenario
from sojourn.traffic import KINDS, is_greedy, is_probe

SCENARIO = ROOT / "docs" / "scenario.md"

REQUIRED = {
    "capture": 'packets = [["0 s", "100 B"]]',
    "onoff": 'rate = "1 Mbit/s"',
    "requests": 'size = "30 kB"',
    "program": 'server = "server {address}"\nclient = "client {server}"',
    "transfers": 'size = "30 kB"',
    "udp": 'rate = "1 Mbit/s"',
    "video": 'rate = "1 Mbit/s"',
    "web": 'size = "30 kB"',
}
"""The keys that a kind requires. A kind that is missing here requires none, or `of_kind` fails."""

kinds = pytest.mark.parametrize("word", KINDS)
simulated = pytest.mark.parametrize(
    "word", [word for word, kind in KINDS.items() if kind.in_simulator]
)


def of_kind(word: str) -> Scenario:
    """Two flows of this kind, with its required keys, from home to the net."""
    return sojourn.loads(
        'duration = "4 s"\n[bottleneck]\nrate = "9 Mbit/s"\ndelay = "5 ms"\n'
        f'[[flow]]\nkind = "{word}"\ncount = 2\ndirection = "up"\n{REQUIRED.get(word, "")}\n'
    )


@kinds
def test_a_kind_is_read_and_written_as_itself(word: str) -> None:
    scenario = of_kind(word)
    assert [entry.kind for entry in scenario.flows] == [word]
    again = sojourn.loads(scenario.to_toml())
    assert [entry.kind for entry in again.flows] == [word]
    assert again.to_toml() == scenario.to_toml()
    assert set(sojourn.scenario.scenario_keys()[word]) >= {"kind", "count"}


@kinds
def test_a_realised_flow_is_what_is_declared_of_its_kind(word: str) -> None:
    kind = KINDS[word]
    for flow in of_kind(word).realise(1).flows:
        assert flow.kind == kind.listed_as
        assert (flow.tcp is not None) == kind.tcp
        answered = kind.tcp or kind.probe or word == "program"
        assert (flow.packet_bytes[1] is not None) == answered, "what is answered"
        assert kind.greedy == (kind.tcp and not flow.finite)
    assert KINDS[kind.listed_as].listed_as == kind.listed_as
    assert kind.tcp + kind.probe + (kind.headers is not None) == kind.in_simulator, (
        "programs send packets of any protocol"
    )


@kinds
def test_the_simulator_refuses_a_kind_that_it_lacks(word: str) -> None:
    scenario = of_kind(word)
    if KINDS[word].in_simulator:
        find("sim").check(scenario.realise(1))
    else:
        with pytest.raises(UserError, match="the simulator has no programs"):
            sojourn.simulate(scenario)


@simulated
def test_a_kind_is_simulated_and_described(word: str) -> None:
    kind = KINDS[word]
    scenario = of_kind(word)
    assert estimate.run_s("sim", scenario.realise(1)) > 0
    run = sojourn.simulate(scenario)
    numbers = run.summary.runs[0]
    assert (len(run.table("probe")) > 0) == kind.probe == bool(numbers["probes"])
    assert (len(run.table("flow")) > 0) != kind.probe
    assert [group["kind"] for group in numbers["groups"]] == [kind.listed_as] * (not kind.probe)
    for group in numbers["groups"]:
        assert group["goodput_mbps"] > 0
        assert ("mos" in group) == kind.speech
        assert ("transfers" in group) == (kind.tcp and not kind.greedy)
    shared = numbers["jain"]
    assert (shared == shared) == kind.greedy
    if kind.headers is not None:
        totals = run.table("flows").row(0, named=True)
        packet = totals["sent_bytes"] / totals["sent_packets"]
        payload = totals["delivered_bytes"] / totals["received_packets"]
        assert packet - payload == pytest.approx(kind.headers, abs=4), (
            "some packets are still in flight"
        )


@kinds
def test_a_kernel_s_guest_sends_a_kind_or_it_is_refused(word: str) -> None:
    realised, machine = of_kind(word).realise(1), Machine("simnic", own=True, ipv6=False)
    if KINDS[word].in_linux:
        assert len(plan(realised, machine).plan["flows"]) == 2
    else:
        with pytest.raises(PlanError, match="simulator's alone"):
            plan(realised, machine)


@kinds
def test_a_kind_has_its_row_in_the_page(word: str) -> None:
    page = SCENARIO.read_text(encoding="utf-8")
    assert f"\n| `{word}` |" in page
    [row] = [line for line in page.splitlines() if line.startswith("| `kind` |")]
    assert f"`{word}`" in row


def test_an_unknown_kind_is_neither_a_probe_nor_endless() -> None:
    assert not is_probe("quic")
    assert not is_greedy("quic")
    assert [word for word in KINDS if is_probe(word)] == ["ping"]
