"""`sojourn advise`: what stands for choice, what is chosen, what is to be typed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sojourn import advice, engine, offered
from sojourn.advice import AccessLine
from sojourn.cli import status
from sojourn.errors import UserError
from sojourn.scenario import Scenario, loads
from sojourn.scenario.qdisc import LinkLayer

LINE = AccessLine(10_000_000, rtt_ns=(40_000_000, 40_000_000), link=LinkLayer.parse("docsis"))
SHORT = {"duration": "6 s", "warmup": "1 s", "seeds": 3}


def words(longest_ms: float) -> list[str]:
    return [each.words for each in advice.candidates(round(longest_ms * 1e6))]


def test_every_goal_that_is_offered_is_there() -> None:
    assert tuple(advice.GOALS) == offered.GOALS


def test_an_rtt_far_from_the_internets_asks_for_its_own_interval() -> None:
    usual = ["codel", "pie", "fq_codel", "fq_pie", "cake"]
    assert words(100) == words(150) == words(67) == usual
    assert words(600)[len(usual) :] == [
        "codel target 30ms interval 600ms",
        "fq_codel target 30ms interval 600ms",
        "cake rtt 600ms",
    ]
    assert words(12.34)[-1] == "cake rtt 13ms"
    assert words(0.001)[-1] == "cake rtt 20us"


def test_a_line_stands_as_it_is_and_below_shapers_at_its_share() -> None:
    plain, *shaped = LINE.variants(LINE.scenario())
    assert plain.label == "as it is"
    assert [each.label for each in shaped][:5] == ["codel", "pie", "fq_codel", "fq_pie", "cake"]
    up = {each.label: each.realise(1).links for each in (plain, *shaped)}

    def link(label: str):
        return next(each for each in up[label] if each.name == "up")

    assert link("as it is").shaper is None
    assert "rate 9500kbit" in link("fq_codel").shaper.text
    assert "bandwidth 9500kbit" in link("cake").qdisc.text
    assert "overhead 18 mpu 64" in link("cake").qdisc.text
    # What is not asked to be shaped is not.
    assert {each.name: each.shaper for each in up["fq_codel"]}["down"] is None


def test_both_ways_are_shaped_where_both_rates_are_given() -> None:
    both = replace(LINE, down_bps=50_000_000)
    [fq] = [each for each in both.variants(both.scenario()) if each.label == "fq_codel"]
    shapers = {each.name: each.shaper for each in fq.realise(1).links}
    assert "rate 9500kbit" in shapers["up"].text
    assert "rate 47500kbit" in shapers["down"].text
    assert both.commands("fq_codel")[-1].startswith("tc filter add dev eth0 parent ffff:")


@pytest.fixture(scope="module")
def runs() -> list:
    return engine.run_all(LINE.variants(LINE.scenario().with_(SHORT)))


def test_a_flow_queue_wins_where_delay_is_wanted(runs: list) -> None:
    found = advice.choose(runs, advice.GOALS["delay"], "up")
    chosen = {found.chosen, *found.as_good}
    of_flows = {"fq_codel", "fq_codel target 2ms interval 40ms", "fq_pie", "cake", "cake rtt 40ms"}
    assert chosen <= of_flows
    assert found.contest.baseline == "as it is"
    assert "as it is" not in chosen
    ping = next(each for each in found.gains if each.key == "ping_p95")
    assert ping.verdict == "better"
    assert ping.value < ping.reference / 5


def test_who_bloats_does_not_stand_for_goodput_though_it_has_most(runs: list) -> None:
    found = advice.choose(runs, advice.GOALS["goodput"], "up")
    row = found.contest.row("goodput")
    assert row is not None
    by = dict(zip(found.contest.runs, row.means, strict=True))
    assert max(by, key=lambda name: by[name]) == "as it is"
    assert found.too_dear == ("as it is",)
    assert found.chosen != "as it is"


def test_where_all_are_too_dear_all_stand_for_choice(runs: list) -> None:
    nobody = replace(advice.GOALS["delay"], affordable=lambda one, every: False)
    found = advice.choose(runs, nobody, "up")
    assert found.too_dear == ()
    assert found.chosen == advice.choose(runs, advice.GOALS["delay"], "up").chosen


def test_the_queue_decides_where_nothing_is_felt() -> None:
    plain = loads("""
duration = "5 s"
warmup = "1 s"
seeds = 3
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
kind = "bulk"
start = "uniform 0 s .. 1 s"
""")
    found = advice.choose(engine.run_all(advice.in_scenario(plain), seeds=3), advice.GOALS["delay"])
    assert found.decided[0].key == "sojourn_p95"
    assert found.chosen != "pfifo limit 1000"


def test_a_scenario_without_tcp_is_refused() -> None:
    plain = loads("""
duration = "5 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
kind = "ping"
""")
    with pytest.raises(UserError, match="no flow of this scenario is TCP"):
        advice.in_scenario(plain)


def test_the_discipline_that_is_there_stands_once() -> None:
    labels = [each.label for each in advice.in_scenario(_with("fq_codel"))]
    assert len(labels) == len(set(labels)) == 8
    assert "fq_codel" not in labels[1:]


def test_dualpi2_stands_for_choice_where_a_sender_is_l4s_s() -> None:
    labels = [each.label for each in advice.in_scenario(_with("fq_codel"))]
    assert "dualpi2" not in labels
    prague = _with("fq_codel").with_({"flow.bulk.congestion": "prague", "flow.bulk.ecn": "accecn"})
    assert "dualpi2" in [each.label for each in advice.in_scenario(prague)]


def _with(qdisc: str) -> Scenario:
    return loads(f"""
duration = "5 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
qdisc = "{qdisc}"
[[flow]]
kind = "bulk"
rtt = "45 ms"
""")


def test_sqm_says_rates_layer_and_words() -> None:
    section = advice.sqm(replace(LINE, down_bps=50_000_000), "cake rtt 40ms")
    assert section is not None
    options = {line.split()[1]: line.partition("'")[2].rstrip("'") for line in section[1:]}
    assert (options["download"], options["upload"]) == ("47500", "9500")
    assert (options["qdisc"], options["script"]) == ("cake", "layer_cake.qos")
    assert (options["overhead"], options["tcMPU"]) == ("18", "64")
    assert options["eqdisc_opts"] == "rtt 40ms"
    assert advice.sqm(LINE, "fq_pie") is None


def test_the_verb_writes_runs_a_page_and_an_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--set", "duration=3 s", "--set", "warmup=1 s", "--seeds", "2", "-q"]
    asked = ["advise", "--rate", "10mbit", "--rtt", "90ms", *few]
    assert status([*asked, "-o", str(tmp_path / "a"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["goal"] == "delay"
    assert told["commands"][0].startswith("tc qdisc add dev eth0 root")
    assert (tmp_path / "a" / "report.html").exists()
    assert (tmp_path / "a" / "cake" / "meta.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what it is about"),
        (["home-uplink", "--rate", "10mbit"], "say what it is about"),
        (["home-uplink", "--rtt", "10ms"], "a SCENARIO has its own"),
        (["--rate", "10mbit", "--rtt", "9ms..3ms"], "the shortest and the longest"),
        (["--rate", "10"], "10bit"),
        (["--rate", "10mbit", "--link-layer", "x"], "unknown link layer"),
    ],
)
def test_wrong_input_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["advise", *arguments]) == 2
    assert said in capsys.readouterr().err
