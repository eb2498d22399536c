"""Steps of a discipline's parameters in the simulator: `tc qdisc change` of a queue that stands."""

import pytest

import sojourn
from sojourn import ScenarioError, UserError, loads

SHAPED = """
duration = "6 s"

[bottleneck]
rate = "100 Mbit/s"
delay = "5 ms"

[bottleneck.down]
qdisc = "cake bandwidth 8mbit besteffort"
qdisc_schedule = [["2 s", "cake bandwidth 2mbit"], ["4 s", "cake bandwidth 4mbit rtt 20ms"]]

[[flow]]
kind = "udp"
rate = "20 Mbit/s"

[record]
queue = "100 ms"
"""


def test_cake_sends_at_the_rate_of_each_step() -> None:
    (run,) = sojourn.run_all([loads(SHAPED)], engine="sim")
    rows = run.table("queue", 1).filter(link="down")
    for first, last, bps in ((500, 2000, 8e6), (2100, 4000, 2e6), (4100, 6000, 4e6)):
        ms = rows["t_ns"] // 1_000_000
        within = rows.filter((ms > first) & (ms <= last))
        sent = float(within["sent_bytes"].sum()) * 8 / (last - first) * 1000
        assert abs(sent / bps - 1) < 0.02, (first, sent)


def test_a_step_keeps_what_it_does_not_name_and_reads_back() -> None:
    scenario = loads(SHAPED)
    steps = scenario.realise(1).links[0].qdisc_steps
    assert [(at, qdisc.text) for at, qdisc in steps] == [
        (2 * 10**9, "cake bandwidth 2mbit besteffort"),
        (4 * 10**9, "cake bandwidth 4mbit rtt 20ms besteffort"),
    ]
    assert loads(scenario.to_toml()) == scenario
    # A direction with a discipline of its own has no steps of the common table.
    common = SHAPED.replace("[bottleneck.down]", 'down.qdisc = "codel"')
    assert loads(common).realise(1).links[0].qdisc_steps == ()


@pytest.mark.parametrize(
    ("qdisc", "step", "lacks"),
    [
        ("cake bandwidth 8mbit", "cake diffserv4", "steps of cake besteffort"),
        ("cake bandwidth 8mbit", "cake unlimited", "steps of cake bandwidth"),
        ("pie", "pie tupdate 30ms", "steps of pie tupdate"),
        ("fq", "fq limit 100", "steps of fq parameters"),
    ],
)
def test_the_simulator_names_what_it_can_not_change(qdisc: str, step: str, lacks: str) -> None:
    down = {"qdisc": qdisc, "qdisc_schedule": [["1 s", step]]}
    with pytest.raises(UserError, match=lacks):
        sojourn.run_all([loads(SHAPED).with_({"bottleneck.down": down})], engine="sim")


def test_another_discipline_for_a_comparison_needs_no_steps() -> None:
    with pytest.raises(ScenarioError, match="a step can't replace codel by 'cake'"):
        loads(SHAPED).with_({"bottleneck.down.qdisc": "codel"})
