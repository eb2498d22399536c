"""`sojourn advise`: the candidates, the choice among them, and the commands to type."""

import json
import math
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest
from shortened import unrendered

from sojourn import advice, defaults, engine
from sojourn.advice import AccessLine, Advice, choice
from sojourn.cli import advise, status
from sojourn.errors import UserError
from sojourn.judgement import Judgement
from sojourn.judgement.quantities import QUANTITY
from sojourn.metrics import mean_ci95, paired
from sojourn.scenario import Scenario, loads
from sojourn.scenario.qdisc import LinkLayer

LINE = AccessLine(10_000_000, rtt_ns=(40_000_000, 40_000_000), link=LinkLayer.parse("docsis"))
SHORT = {"duration": "6 s", "warmup": "1 s", "seeds": 3}


def words(longest_ms: float) -> list[str]:
    return [each.words for each in advice.candidates(round(longest_ms * 1e6))]


def test_every_documented_goal_exists() -> None:
    assert tuple(advice.GOALS) == defaults.GOALS


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


def test_a_line_is_tried_unshaped_and_with_shapers_at_a_share_of_its_rate() -> None:
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
    # A direction without a request gets no shaper.
    assert {each.name: each.shaper for each in up["fq_codel"]}["down"] is None


def test_both_ways_are_shaped_where_both_rates_are_given() -> None:
    both = replace(LINE, down_bps=50_000_000)
    [fq] = [each for each in both.variants(both.scenario()) if each.label == "fq_codel"]
    shapers = {each.name: each.shaper for each in fq.realise(1).links}
    assert "rate 9500kbit" in shapers["up"].text
    assert "rate 47500kbit" in shapers["down"].text
    assert both.commands("fq_codel")[-1].startswith("tc filter add dev eth0 parent ffff:")


def test_a_fast_line_is_run_for_a_shorter_time() -> None:
    def seconds(up: int, down: int | None = None, rtt_ms: int = 1) -> float:
        line = AccessLine(up, down, (rtt_ms * 10**6, rtt_ms * 10**6))
        plain = line.scenario().realise(1)
        assert plain.duration_ns == line.duration_ns
        assert plain.warmup_ns == line.duration_ns // 6
        return line.duration_ns / 1e9

    # A run costs at most as much as 30 s at 2 Gbit/s, but the windows need their RTTs.
    assert seconds(10**7) == seconds(10**9, 10**9) == 30
    assert seconds(10**10) == 6
    assert seconds(10**10, 10**10) == seconds(4 * 10**10) == 3
    assert seconds(10**10, rtt_ms=150) == 9
    assert seconds(10**10, rtt_ms=600) == 30


def test_shorter_runs_are_reported_with_the_option_that_makes_them_longer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sojourn.cli.advise._run", Mock(side_effect=UserError("that was all")))

    def note(*words: str) -> str:
        status(["advise", "--rtt", "1ms", *words])
        return capsys.readouterr().err

    fast = ("--up", "4gbit", "--down", "1gbit")
    assert note(*fast).startswith("a run lasts 12 s instead of 30 s")
    longer = [part for part in shlex.split(note(*fast)) if "=" in part]
    assert longer == ["duration=30 s", "warmup=5 s"]
    for words in (
        ("--up", "2gbit"),
        (*fast, *(part for change in longer for part in ("--set", change))),
        (*fast, "--quiet"),
    ):
        assert "a run is" not in note(*words), words


@pytest.fixture(scope="module")
def runs() -> list:
    return engine.run_all(LINE.variants(LINE.scenario().with_(SHORT)))


def test_a_flow_queue_wins_if_the_goal_is_delay(runs: list) -> None:
    decision = advice.choose(runs, advice.GOALS["delay"], "up")
    chosen = {decision.chosen, *decision.as_good}
    of_flows = {"fq_codel", "fq_codel target 2ms interval 40ms", "fq_pie", "cake", "cake rtt 40ms"}
    assert chosen <= of_flows
    assert decision.contest.baseline == "as it is"
    assert "as it is" not in chosen
    ping = next(each for each in decision.gains if each.key == "ping_p95")
    assert ping.verdict == "better"
    assert ping.value < ping.reference / 5


def test_the_choice_s_disadvantages_are_reported(runs: list) -> None:
    decision = advice.choose(runs, advice.GOALS["delay"], "up")
    turned = {"ping_p95": "better", "goodput": "worse", "sojourn_p95": "worse"}
    differences = [
        replace(each, verdict=turned[each.key]) for each in decision.gains if each.key in turned
    ]
    contest = replace(decision.contest, differences=tuple(differences))
    one = replace(decision, judgement=replace(decision.judgement, contests=(contest,)))
    sentences = advise._sentences(one, cast("Any", {"chosen": one.chosen}))
    better, worse = (each for each in sentences if " than as it is: " in each)
    assert better.startswith("Better than as it is: ping RTT p95 from ")
    assert "goodput" not in better
    assert worse.startswith("Worse than as it is: ")
    assert "goodput up from " in worse
    assert "sojourn p95 from " in worse


def test_three_sentences_give_the_problem_the_advice_and_its_cost(runs: list) -> None:
    decision = advice.choose(runs, advice.GOALS["delay"], "up")
    now, then, price = advice.sentences(decision, LINE)
    by = {each.key: each for each in decision.gains}
    idle = decision.contest.row("ping_idle")
    assert idle is not None
    assert now == (
        f"While the line is full, one ping in twenty takes {by['ping_p95'].reference:.0f} ms or more, "
        f"where an idle line takes {idle.means[0]:.0f} ms: web pages, calls and games wait as long."
    )
    assert then == (
        f"The queue discipline {decision.chosen} on your router, limited to 9.5 Mbit/s up, "
        f"changes that to {by['ping_p95'].value:.0f} ms."
    )
    goodput = by["goodput"]
    assert goodput.verdict == "worse"
    assert price.startswith("In 3 simulated runs its price is: ")
    assert f"goodput up goes from {goodput.reference:.3g} to {goodput.value:.3g} Mbit/s" in price
    at_the_link = advice.sentences(decision, None)[1]
    assert at_the_link.startswith(
        f"The queue discipline {decision.chosen} at the bottleneck changes"
    )


def test_if_nothing_is_better_no_change_is_advised(runs: list) -> None:
    decision = advice.choose(runs, advice.GOALS["delay"], "up")
    kept = replace(decision, chosen="as it is", undecided=("cake", "pie"))
    assert advice.sentences(kept, LINE)[1:] == [
        "Keep the line as it is: no other queue discipline is shown to be better for the shortest delay under load.",
        "This is from 3 simulated runs; they do not decide whether cake or pie would be as good.",
    ]
    free = replace(decision, judgement=replace(decision.judgement, contests=(replace(decision.contest, differences=()),)))  # fmt: skip
    assert advice.sentences(free, LINE)[2].startswith("In 3 simulated runs it makes nothing worse")


def test_a_bloated_fifo_is_not_chosen_for_goodput_though_it_has_most(runs: list) -> None:
    decision = advice.choose(runs, advice.GOALS["goodput"], "up")
    row = decision.contest.row("goodput")
    assert row is not None
    by = dict(zip(decision.contest.runs, row.means, strict=True))
    assert max(by, key=lambda name: by[name]) == "as it is"
    assert decision.too_dear == ("as it is",)
    assert decision.chosen != "as it is"


def test_a_run_lasts_as_many_rtts_as_its_longest_flow_needs() -> None:
    # 60 times 500 ms. By its cost alone the run would last 3 s.
    line = AccessLine(20 * 10**9, rtt_ns=(1_000_000, 500_000_000))
    assert line.duration_ns == 30 * 10**9
    assert replace(line, rtt_ns=(1_000_000, 1_000_000)).duration_ns == 3 * 10**9


# ------------------------------------------------------------------------------------- the choice


@dataclass(frozen=True)
class Numbers:
    """The results of a candidate's seeds, by the keys of quantities."""

    of: dict[str, list[float]]

    @property
    def quantities(self) -> dict[str, Any]:
        return {key: QUANTITY[key] for key in self.of}

    @property
    def summary(self) -> Any:
        return SimpleNamespace(seeds=tuple(range(max(len(each) for each in self.of.values()))))

    def per_seed(self, key: str) -> list[float]:
        return self.of.get(key, [])

    def over_seeds(self, key: str) -> tuple[float, float]:
        interval = mean_ci95(self.per_seed(key))
        return interval["mean"], interval["ci95"]


def chosen(numbers: dict[str, Numbers], goal: str = "delay") -> Advice:
    judgement = Judgement(tuple(numbers), ())
    return choice.by_numbers(cast("Any", list(numbers.values())), judgement, advice.GOALS[goal])


def pings(*values: float, goodput: tuple[float, ...] = ()) -> Numbers:
    return Numbers({"ping_p95": list(values), "goodput": list(goodput or [9.0] * len(values))})


def test_a_wide_interval_is_not_an_advantage() -> None:
    # 174 +- 202 ms beside 10.5: measured on a line of 35 Mbit/s with three seeds.
    decision = chosen(
        {
            "as it is": pings(85.0, 190.0, 247.0, goodput=(9.6, 9.7, 9.7)),
            "fq_codel": pings(10.5, 10.5, 10.6),
            "pie": pings(51.0, 44.0, 60.0),
        }
    )
    assert decision.chosen == "fq_codel"
    assert decision.undecided == ("as it is",)
    assert [each.key for each in decision.decided] == ["ping_p95"]


def test_among_equals_the_usual_discipline_is_chosen() -> None:
    equals = {"fq_pie": pings(10.4, 10.4), "cake": pings(10.5, 10.5), "codel": pings(20.0, 21.0)}
    there = {"pfifo": pings(99.0, 98.0)}
    assert chosen(there | equals).chosen == "cake"
    decision = chosen(there | equals | {"fq_codel": pings(10.6, 10.5)})
    assert (decision.chosen, decision.usual) == ("fq_codel", True)
    assert decision.as_good == ("fq_pie", "cake")
    # A discipline with default parameters is preferred to one with given parameters. The discipline
    # that the line already has is preferred to both.
    of_rtt = {"fq_codel target 2ms interval 40ms": pings(10.3, 10.3)}
    assert chosen(there | of_rtt | equals | {"fq_codel": pings(10.6, 10.5)}).chosen == "fq_codel"
    decision = chosen({"pie": pings(10.6, 10.6)} | equals)
    assert (decision.chosen, decision.usual) == ("pie", False)


def test_within_its_margin_a_difference_decides_nothing() -> None:
    def of(ms: float, mbps: float) -> dict[str, Numbers]:
        first = pings(100.0, 100.0, goodput=(10.0, 10.0))
        return {"pie": first, "fq_codel": pings(ms, ms, goodput=(mbps, mbps))}

    # 5 % of 100 ms and of 10 Mbit/s; below 20 ms the margin is 1 ms.
    assert chosen(of(104.9, 10.0)).as_good == ("fq_codel",)
    assert chosen(of(105.1, 10.0)).as_good == ()
    assert chosen(of(100.0, 9.51)).as_good == ("fq_codel",)
    assert chosen(of(100.0, 9.49)).as_good == ()
    assert [each.value for each in chosen(of(100.0, 9.49)).margins] == [5.0, 0.5]
    short = {"pie": pings(10.0, 10.0), "fq_codel": pings(10.9, 10.9), "cake": pings(11.1, 11.1)}
    assert chosen(short).as_good == ("fq_codel",)


def test_one_seed_decides_nothing_and_equal_seeds_decide_by_their_numbers() -> None:
    decision = chosen({"pie": pings(90.0), "fq_codel": pings(10.0), "cake": pings(10.0)})
    assert (decision.chosen, decision.undecided) == ("fq_codel", ("pie", "cake"))
    # Equal seeds are one sample. The numbers themselves decide.
    same = {"pie": 90.0, "fq_codel": 10.0, "cake": 10.2}
    decision = chosen({name: Alike(pings(ms).of) for name, ms in same.items()})
    assert (decision.chosen, decision.as_good, decision.undecided) == ("fq_codel", ("cake",), ())


class Alike(Numbers):
    """The numbers of two equal seeds."""

    @property
    def summary(self) -> Any:
        return SimpleNamespace(seeds=(1, 2))


def test_a_candidate_without_the_first_quantity_is_not_chosen() -> None:
    lost = Numbers({"ping_p95": [math.nan, math.nan], "goodput": [9.0, 9.0]})
    decision = chosen({"as it is": lost, "fq_codel": pings(10.0, 10.0)})
    assert (decision.chosen, decision.as_good, decision.undecided) == ("fq_codel", (), ())


def test_without_pings_the_goal_goodput_excludes_nothing_for_its_delay() -> None:
    most, usual = (Numbers({"goodput": [value, value]}) for value in (20.0, 10.0))
    short = Numbers({"goodput": [9.0, 9.0], "ping_p95": [25.0, 25.0], "ping_idle": [20.0, 20.0]})
    decision = chosen({"pfifo": usual, "codel": most, "pie": short}, "goodput")
    assert (decision.chosen, decision.too_dear) == ("codel", ())


@pytest.mark.parametrize("seeds", [2, 3, 5, 20])
@pytest.mark.parametrize("goal", defaults.GOALS)
def test_the_chosen_candidate_is_never_significantly_worse(goal: str, seeds: int) -> None:
    rng = np.random.default_rng([seeds, len(goal)])
    for _ in range(50):
        common = rng.normal(0, 1, seeds)
        field = {
            name: pings(
                *(
                    rng.uniform(10, 14)
                    + rng.gamma(1) * common
                    + rng.gamma(1) * rng.normal(0, 1, seeds)
                ),
                goodput=tuple(rng.uniform(8, 9) + rng.gamma(0.5) * rng.normal(0, 1, seeds)),
            )
            for name in ("as it is", "codel", "pie", "fq_pie", "cake", "fq_codel")
        }
        decision = chosen(field, goal)
        first = decision.margins[0]
        sign = 1 if first.quantity.better == "less" else -1
        of = {
            name: [sign * v for v in each.per_seed(first.quantity.key)]
            for name, each in field.items()
        }
        for other in field.keys() - decision.too_dear:
            assert paired(of[other], of[decision.chosen]).low <= first.value + 1e-9


def test_a_noisier_copy_never_wins() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        seeds = int(rng.integers(6, 12))
        base = rng.normal(0, rng.gamma(1), (3, seeds)) + rng.uniform(10, 14, (3, 1))
        # Noise with mean 0 and without correlation to any candidate's numbers.
        basis, _ = np.linalg.qr(np.vstack([np.ones(seeds), base]).T)
        noise = rng.normal(0, rng.gamma(1), seeds)
        noise -= basis @ (basis.T @ noise)
        copied = int(rng.integers(3))
        field = [("copy", base[copied] + noise), *zip("abc", base, strict=True)]
        numbers = {"as it is": pings(*rng.normal(90, 9, seeds))}
        numbers |= {name: pings(*values) for name, values in field}
        assert chosen(numbers).chosen != "copy"


def test_if_all_candidates_are_too_expensive_none_is_excluded(runs: list) -> None:
    nobody = replace(advice.GOALS["delay"], affordable=lambda one, every: False)
    decision = advice.choose(runs, nobody, "up")
    assert decision.too_dear == ()
    assert decision.chosen == advice.choose(runs, advice.GOALS["delay"], "up").chosen


def test_the_queue_decides_if_no_quantity_is_felt_by_users() -> None:
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
    decision = advice.choose(
        engine.run_all(advice.in_scenario(plain), seeds=3), advice.GOALS["delay"]
    )
    assert decision.decided[0].key == "sojourn_p95"
    assert decision.chosen != "pfifo limit 1000"


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


def test_the_present_discipline_is_a_candidate_once() -> None:
    labels = [each.label for each in advice.in_scenario(_with("fq_codel"))]
    assert len(labels) == len(set(labels)) == 8
    assert "fq_codel" not in labels[1:]


def test_dualpi2_is_a_candidate_if_a_sender_uses_l4s() -> None:
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


def test_the_section_for_sqm_has_rates_layer_and_words() -> None:
    line = replace(LINE, down_bps=50_000_000)
    section = advice.sqm(line.wanted("cake rtt 40ms"), line.interface)
    assert section is not None
    options = {line.split()[1]: line.partition("'")[2].rstrip("'") for line in section[1:]}
    assert (options["download"], options["upload"]) == ("47500", "9500")
    assert (options["qdisc"], options["script"]) == ("cake", "layer_cake.qos")
    assert (options["overhead"], options["tcMPU"]) == ("18", "64")
    assert options["eqdisc_opts"] == "rtt 40ms"
    assert advice.sqm(LINE.wanted("fq_pie"), LINE.interface) is None


def test_the_commands_for_mikrotik_have_downloads_first_and_the_layer_in_cake() -> None:
    wanted = replace(LINE, down_bps=50_000_000).wanted("cake rtt 40ms")
    lines = advice.mikrotik(wanted, "ether1")
    assert lines == [
        "/queue type add name=sojourn-down kind=cake cake-rtt=40ms cake-overhead=18 cake-mpu=64 cake-flowmode=dual-dsthost cake-nat=yes",
        "/queue type add name=sojourn-up kind=cake cake-rtt=40ms cake-overhead=18 cake-mpu=64 cake-flowmode=dual-srchost cake-nat=yes",
        "/queue simple add name=sojourn target=ether1 max-limit=47500000/9500000 queue=sojourn-down/sojourn-up",
    ]
    assert advice.mikrotik(LINE.wanted("fq_pie"), "ether1") is None


FEW = ["--set", "duration=3 s", "--set", "warmup=1 s", "--seeds", "2", "--json"]


def test_the_verb_writes_runs_a_page_and_an_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unrendered(monkeypatch)
    monkeypatch.setattr(advice, "MOST_SEEDS", 2)
    command = ["advise", "--up", "10mbit", "--rtt", "90ms", *FEW, "-q"]
    assert status([*command, "-o", str(tmp_path / "a")]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["goal"] == "delay"
    assert output["commands"][0].startswith("tc qdisc add dev eth0 root")
    assert (tmp_path / "a" / "report.html").exists()
    assert (tmp_path / "a" / "cake" / "meta.json").exists()


def test_plain_writes_a_page_with_one_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "MOST_SEEDS", 2)
    command = ["advise", "--up", "10mbit", "--rtt", "90ms", "--plain", *FEW[:-1]]
    assert status([*command, "-q", "-o", str(tmp_path / "a")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("While the line is full, one ping in twenty takes ")
    page = (tmp_path / "a" / "plain.html").read_text()
    assert page.count('<svg role="img"') == 1
    assert "Ping RTT of the first simulated run" in page
    assert said.split(". ")[0] in page
    assert not (tmp_path / "a" / "report.html").exists()


def test_more_seeds_are_run_while_they_do_not_decide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "MOST_SEEDS", 3)
    assert status(["advise", "--up", "10mbit", "--rtt", "90ms", *FEW]) == 0
    stdout, stderr = capsys.readouterr()
    assert "2 seeds do not decide among" in stderr
    assert "6 more runs" in stderr
    output = json.loads(stdout)
    [contest] = output["judgement"]["contests"]
    assert contest["seeds"] == 3
    assert output["undecided"]
    assert {each["key"]: each["unit"] for each in output["margins"]}["ping_p95"] == "ms"
    # The text for people names the undecided candidates and the next command.
    assert status(["advise", "--up", "10mbit", "--rtt", "90ms", *FEW[:-1], "-q"]) == 0
    stdout, _ = capsys.readouterr()
    among = "3 seeds do not decide among"
    assert among in stdout
    assert "--seeds 6" in stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give a SCENARIO, or a line"),
        (["home-uplink", "--up", "10mbit"], "give a SCENARIO, or a line"),
        (["home-uplink", "--rtt", "10ms"], "a SCENARIO has its own"),
        (["--up", "10mbit", "--rtt", "9ms..3ms"], "the shorter first"),
        (["--up", "10"], "write 10mbit"),
        (["--up", "10mbit", "--link", "x"], "unknown link layer"),
    ],
)
def test_wrong_input_is_reported(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["advise", *arguments]) == 2
    assert expected in capsys.readouterr().err
