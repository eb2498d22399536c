"""The judgement of Runs. Only Runs of the same link and traffic are compared, the interval of a
difference decides, and the verdict also names what got worse."""

from __future__ import annotations

import dataclasses
import json
import math
from inspect import get_annotations
from pathlib import Path
from typing import Any

import pytest
import synthetic
from synthetic import Shape

import sojourn
from sojourn import metrics
from sojourn.arrays import Json
from sojourn.judgement import Contest, Difference, compare, judge, likeness, quantities, words
from sojourn.judgement.quantities import Measured
from sojourn.metrics import Interval, Summary
from sojourn.numbers import GroupNumbers
from sojourn.records import Run

LINE = """
title = "A line"
duration = "8 s"
warmup = "2 s"
seeds = 3
[bottleneck]
delay = "5 ms"
up.rate = "4 Mbit/s"
down.rate = "20 Mbit/s"
"""
UPLOADS = """
[[flow]]
kind = "bulk"
count = 2
direction = "up"
rtt = "uniform 25 ms .. 45 ms"
start = "uniform 0 s .. 1 s"
"""
PAGES = """
[[flow]]
name = "page"
kind = "transfers"
count = 3
size = "30 kB"
pause = "exp 300 ms"
direction = "up"
"""
DOWNLOAD = """
[[flow]]
name = "download"
kind = "bulk"
direction = "down"
"""
PING = """
[[flow]]
kind = "ping"
"""
CALL = """
[[flow]]
name = "phone"
kind = "call"
direction = "up"
"""


def runs(text: str, qdiscs: tuple[str, ...] = ("pfifo", "fq_codel")) -> list[Run]:
    return sojourn.run_all(sojourn.variants(sojourn.loads(text), qdiscs))


def only(judgement: sojourn.Judgement) -> Contest:
    [contest] = judgement.contests
    return contest


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return synthetic.pair(tmp_path_factory.mktemp("pair"))


# --------------------------------------------------------------------------------- like with like


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('up.rate = "4 Mbit/s"', 'up.rate = "5 Mbit/s"'),
        ("25 ms .. 45 ms", "25 ms .. 50 ms"),
        ("count = 2", "count = 3"),
        ('duration = "8 s"', 'duration = "9 s"'),
        ('delay = "5 ms"', 'delay = "6 ms"'),
    ],
)
def test_runs_with_another_rate_rtt_traffic_or_length_do_not_compete(old: str, new: str) -> None:
    text = LINE + UPLOADS
    assert old in text
    mine, other = runs(text, ("pfifo",)), runs(text.replace(old, new), ("fq_codel",))
    judgement = compare([*mine, *other])
    assert [len(contest.runs) for contest in judgement.contests] == [1, 1]
    assert all(contest.winner is None and not contest.differences for contest in judgement.contests)
    assert all(contest.conditions for contest in judgement.contests)
    assert "No two of these Runs have the same link and traffic" in judgement.sentences()[0]


@pytest.mark.parametrize("more", ['title = "B"', 'congestion = "reno"', "ecn = true"])
def test_runs_that_differ_only_in_choices_compete_whatever_their_titles(more: str) -> None:
    text = LINE + UPLOADS
    changed = text.replace('title = "A line"', more) if "title" in more else f"{text}{more}\n"
    assert len(compare([*runs(text, ("pfifo",)), *runs(changed, ("codel",))]).contests) == 1


BULK = '[[flow]]\nkind = "bulk"\nrtt = "30 ms"\n'


@pytest.mark.parametrize("name", ["tcp", "qdisc", "ring", "ecn"])
def test_a_flow_named_like_a_choice_is_still_traffic(name: str) -> None:
    text = LINE + BULK + f'name = "{name}"\n'
    compared = [*runs(text, ("pfifo",)), *runs(text.replace("30 ms", "300 ms"), ("codel",))]
    assert [len(contest.runs) for contest in compare(compared).contests] == [1, 1]


def test_a_link_named_like_a_choice_is_still_the_line() -> None:
    text = LINE.partition("[bottleneck]")[0] + (
        '[[link]]\nname = "shaper"\nfrom = "a"\nto = "b"\nrate = "4 Mbit/s"\ndelay = "5 ms"\nqdisc = "fq_codel"\n'
        '[[flow]]\nkind = "bulk"\nfrom = "a"\nto = "b"\n'
    )
    compared = [
        sojourn.run(sojourn.loads(each)) for each in (text, text.replace("4 Mbit/s", "5 Mbit/s"))
    ]
    judgement = compare(compared)
    assert [contest.conditions for contest in judgement.contests] == [
        "rate 4 Mbit/s",
        "rate 5 Mbit/s",
    ]


def test_each_of_two_unnamed_flows_of_a_kind_counts() -> None:
    text = LINE + BULK + BULK.replace("30 ms", "40 ms")
    compared = [*runs(text, ("pfifo",)), *runs(text.replace("30 ms", "300 ms"), ("codel",))]
    judgement = compare(compared)
    assert [contest.conditions for contest in judgement.contests] == ["rtt 30 ms", "rtt 300 ms"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('delay = "5 ms"', 'delay = "5 ms"\nlink_layer = "none"'),
        ('delay = "5 ms"', 'delay = "0.005 s"\nloss = "0 %"\nbql = false'),
        (
            'up.rate = "4 Mbit/s"\ndown.rate = "20 Mbit/s"',
            'rate = "20 Mbit/s"\nup.rate = "4000 kbit/s"',
        ),
        ('rtt = "30 ms"', 'rtt = "uniform 30 ms .. 30 ms"\ncount = 1\ndirection = "down"'),
    ],
)
def test_runs_of_the_same_meaning_compete_however_it_is_written(old: str, new: str) -> None:
    text = LINE + BULK
    assert old in text
    judgement = compare([*runs(text, ("pfifo",)), *runs(text.replace(old, new), ("codel",))])
    assert sorted(only(judgement).runs) == ["codel", "pfifo"]


def test_runs_of_different_traffic_are_distinguished_by_their_titles() -> None:
    other = (LINE + PING + PAGES).replace("A line", "Pages").replace("4 Mbit/s", "5 Mbit/s")
    compared = [sojourn.run(sojourn.loads(each)) for each in (LINE + UPLOADS, other)]
    judgement = compare(compared)
    assert [contest.conditions for contest in judgement.contests] == ["A line", "Pages"]
    assert judgement.sentences()[0].endswith("so nothing is compared: A line and Pages.")
    # With equal titles the conditions are listed, without flows that the Run lacks.
    [_, pages] = compare(
        [compared[0], sojourn.run(sojourn.loads(other.replace('"Pages"', '"A line"')))]
    ).contests
    assert "rate 5 Mbit/s" in pages.conditions
    assert "bulk" not in pages.conditions
    assert "default" not in pages.conditions


def test_lines_of_two_rates_are_distinguished_once() -> None:
    text = LINE + UPLOADS
    judgement = compare(
        [sojourn.run(sojourn.loads(each)) for each in (text, text.replace("4 Mbit/s", "5 Mbit/s"))]
    )
    assert judgement.sentences()[0].endswith(": rate 4 Mbit/s and rate 5 Mbit/s.")
    assert [list(contest.called.values()) for contest in judgement.contests] == [
        ["rate 4 Mbit/s"],
        ["rate 5 Mbit/s"],
    ]


def test_a_sweep_is_judged_line_by_line() -> None:
    text = LINE + UPLOADS + PING + '[sweep]\n"bottleneck.qdisc" = ["pfifo", "fq_codel"]\n'
    judgement = compare(
        sojourn.run_all(sojourn.loads(text + '"bottleneck.up.rate" = ["2 Mbit/s", "6 Mbit/s"]\n'))
    )
    assert [contest.conditions for contest in judgement.contests] == [
        "rate 2 Mbit/s",
        "rate 6 Mbit/s",
    ]
    assert [(contest.winner or "").split(",")[0] for contest in judgement.contests] == [
        "fq_codel",
        "fq_codel",
    ]
    assert (
        judgement.sentences()[0]
        == "fq_codel wins 2 of 2 comparisons between Runs of the same link and traffic."
    )
    assert judgement.sentences()[1].startswith(
        "rate 2 Mbit/s: fq_codel wins. Against pfifo limit 1000: ping RTT p95 from"
    )


# ----------------------------------------------------------------------------------------- labels


def test_runs_are_named_by_their_differences() -> None:
    text = LINE + UPLOADS
    other = text.replace("4 Mbit/s", "2 Mbit/s")
    plain = [sojourn.run(sojourn.loads(each)) for each in (text, other)]
    assert likeness.labels(plain) == ["rate 4 Mbit/s", "rate 2 Mbit/s"]
    cured = sojourn.run(sojourn.loads(text).with_({"bottleneck.qdisc": "fq_codel"}))
    assert likeness.labels([plain[0], cured]) == ["pfifo limit 1000", "fq_codel"]


def test_reruns_of_the_same_scenario_are_named_by_their_folders(tmp_path: Path) -> None:
    compared = [synthetic.run(tmp_path / name, Shape()) for name in ("monday", "tuesday")]
    assert likeness.labels(compared) == ["pfifo, monday", "pfifo, tuesday"]
    assert likeness.labels([compared[0], compared[0]]) == ["pfifo", "pfifo, again"]
    deep = [synthetic.run(tmp_path / name / "run", Shape()) for name in ("a", "b")]
    assert likeness.labels(deep) == ["pfifo, a/run", "pfifo, b/run"]


def test_a_value_of_more_than_forty_characters_is_cut() -> None:
    longest = "fq_codel limit 10240 target 5ms ecn 4567"
    assert len(longest) == 40
    for text, expected in (
        (longest, longest),
        (f"{longest}8", "fq_codel limit 10240 target 5ms ecn 456…"),
    ):
        assert likeness.words({("qdisc",): text}, [("qdisc",)]) == expected


# -------------------------------------------------------------------------------------- intervals


def test_simulations_of_the_same_seeds_are_compared_seed_by_seed(pair: list[Run]) -> None:
    contest = only(compare(pair))
    slow, fast = quantities.measure(pair)
    assert contest.by == "paired"
    for one in contest.differences:
        by_hand = metrics.paired(slow.per_seed(one.key), fast.per_seed(one.key))
        assert (one.run, one.against) == ("fq_codel", "pfifo")
        assert dataclasses.astuple(one.difference) == pytest.approx(
            dataclasses.astuple(by_hand), nan_ok=True
        )


def test_other_seeds_are_compared_as_independent(tmp_path: Path) -> None:
    shapes = [Shape(), Shape(qdisc="fq_codel", seeds=(4, 5, 6))]
    compared = [synthetic.run(tmp_path / str(i), shape) for i, shape in enumerate(shapes)]
    slow, fast = quantities.measure(compared)
    contest = only(compare(compared))
    assert contest.by == "Welch"
    one = next(each for each in contest.differences if each.key == "ping_p95")
    assert one.difference == metrics.welch(slow.per_seed("ping_p95"), fast.per_seed("ping_p95"))


def test_one_seed_has_no_winner() -> None:
    judgement = compare(runs(LINE.replace("seeds = 3", "seed = 1") + UPLOADS + PING))
    contest = only(judgement)
    assert (contest.by, contest.winner, contest.samples) == ("one sample", None, 1)
    assert {each.verdict for each in contest.differences} <= {"unknown", "neither"}
    assert not any(row.best for row in contest.rows)
    assert "run again with --seeds 5" in judgement.sentences()[-1]


@pytest.mark.parametrize("seeds", [1, 3])
def test_runs_with_equal_tables_are_reported_as_equal(seeds: int, tmp_path: Path) -> None:
    shape = Shape(seeds=tuple(range(1, seeds + 1)))
    compared = [synthetic.run(tmp_path / name, shape) for name in ("monday", "tuesday")]
    for pair, names in (
        (compared, "pfifo, monday and pfifo, tuesday"),
        (compared[:1] * 2, "pfifo and pfifo, again"),
    ):
        judgement = compare(pair)
        assert only(judgement).same
        assert judgement.sentences() == [f"No winner: {names} gave equal tables."]
    other = synthetic.run(tmp_path / "other", dataclasses.replace(shape, qdisc="fq_codel"))
    assert not only(compare([compared[0], other])).same


def test_seeds_without_random_draws_are_one_sample() -> None:
    fixed = UPLOADS.replace("uniform 25 ms .. 45 ms", "40 ms").replace("uniform 0 s .. 1 s", "0 s")
    compared = runs(LINE + fixed + PING)
    for summary in sojourn.summary(compared):
        assert (len(summary.runs), summary.samples) == (3, 1)
        assert math.isnan(summary.summary["goodput_mbps"]["ci95"])
    judgement = compare(compared)
    assert only(judgement).winner is None
    assert metrics.RANDOM_START in judgement.sentences()[-1]
    lucky = runs(LINE + fixed.replace('start = "0 s"', metrics.RANDOM_START) + PING)
    assert [summary.samples for summary in sojourn.summary(lucky)] == [3, 3]


# ------------------------------------------------------------------- synthetic Runs, seed by seed


def made_up(
    path: Path, label: str, seeds: list[dict[str, float]], qdisc: str = "pfifo limit 1000"
) -> Measured:
    """Builds a Run with these numbers: ping (p95), mean, p50 and p95 (sojourn), up and down
    (goodput)."""
    # Different tables, because Runs with equal tables count as the same.
    own = Shape(qdisc, seeds=(1,), label=label, ping_ms=50 + sum(label.encode()) % 97)
    run = synthetic.run(path / label, own)
    each = []
    for seed in seeds:
        queue: Json = {
            "link": "bottleneck",
            "sojourn_ms": {name: seed.get(name, math.nan) for name in ("mean", "p50", "p95")},
            "goodput_mbps": seed["up"],
            "jain": 1.0,
        }
        ping = {
            "loss_rate": seed.get("loss", 0.0),
            "base_rtt_ms": 20.0,
            "rtt_ms": {"p95": seed.get("ping", math.nan)},
        }
        total = seed["up"] + seed["down"]
        probes = [ping] if "ping" in seed else []
        each.append(
            {"queues": [queue], "flows": [], "groups": [], "probes": probes, "goodput_mbps": total}
        )
    numbers = tuple(range(1, len(seeds) + 1))
    summary = Summary("sim", "", "", label, 10, 2, numbers, "", each, {}, len(seeds))
    return Measured(run.meta, "bottleneck", summary, run)


def three(**values: float) -> list[dict[str, float]]:
    """Three seeds: all numbers are 10 % lower in the first and 10 % higher in the third."""
    return [{key: value * scale for key, value in values.items()} for scale in (0.9, 1.0, 1.1)]


def test_runs_without_checksums_are_not_reported_as_equal(tmp_path: Path) -> None:
    slow = made_up(tmp_path, "slow", three(ping=800, up=10, down=30))
    fast = made_up(tmp_path, "fast", three(ping=20, up=10, down=30))
    for one in (slow, fast):
        # A Run of format 1 has no checksums.
        one.run.meta = dataclasses.replace(one.run.meta, format=1, checksums={})
    contest = only(judge([slow, fast]))
    assert (contest.same, contest.winner) == (False, "fast")
    # A folder equals itself even without checksums.
    assert only(judge([slow, slow])).same


def test_random_draws_that_both_share_hide_no_difference(tmp_path: Path) -> None:
    # The seeds differ by 50 each, the Runs by 5: Welch's interval covers 0, that of the pairs does
    # not.
    fast = [{"ping": 50.0 * seed, "up": 5, "down": 5} for seed in (1, 2, 3)]
    slow = [{"ping": 50.0 * seed + 5 + 0.1 * seed, "up": 5, "down": 5} for seed in (1, 2, 3)]
    contest = only(judge([made_up(tmp_path, "fast", fast), made_up(tmp_path, "slow", slow)]))
    assert contest.winner == "fast"
    assert not metrics.welch([s["ping"] for s in slow], [f["ping"] for f in fast]).excludes_zero


def test_an_interval_that_covers_zero_gives_no_winner_and_no_mark(tmp_path: Path) -> None:
    one = [{"ping": ping, "up": 5, "down": 5} for ping in (100.0, 20.0, 150.0)]
    other = [{"ping": ping, "up": 5, "down": 5} for ping in (30.0, 110.0, 100.0)]
    judgement = judge([made_up(tmp_path, "one", one), made_up(tmp_path, "other", other)])
    contest = only(judgement)
    assert contest.winner is None
    assert not any(row.best for row in contest.rows)
    assert "can't be told apart" in judgement.sentences()[0]


def test_fair_queueing_is_not_lost_by_the_p95_of_all_packets(tmp_path: Path) -> None:
    fifo = made_up(tmp_path, "pfifo", three(mean=59, p50=59, p95=60, up=0, down=190))
    fair = made_up(tmp_path, "fq", three(mean=20, p50=0.4, p95=75, up=0, down=190))
    judgement = judge([fifo, fair])
    contest = only(judgement)
    assert contest.winner is None
    assert contest.strengths == {
        "fq": ("sojourn mean", "sojourn median"),
        "pfifo": ("sojourn p95",),
    }
    assert judgement.sentences()[0] == (
        "No winner: fq is better for sojourn mean and sojourn median; pfifo is better for sojourn p95."
    )


def test_without_a_winner_the_verdict_lists_which_run_is_better_than_which(tmp_path: Path) -> None:
    fast = made_up(tmp_path, "fast", three(ping=20, up=4, down=30))
    middle = made_up(tmp_path, "middle", three(ping=100, up=7, down=30))
    slow = made_up(tmp_path, "slow", three(ping=800, up=10, down=30))
    bad = made_up(tmp_path, "bad", three(ping=900, up=10, down=30))
    judgement = judge([fast, middle, slow, bad])
    contest = only(judgement)
    assert set(contest.beaten) == set(contest.runs) - set(contest.front)
    assert contest.beaten["bad"] == ("slow",)
    assert judgement.sentences()[0] == (
        "No winner among fast, middle and slow. fast is best for ping RTT p95."
        " slow is best for goodput at bottleneck. bad does worse than slow."
    )


def test_the_price_is_named_with_the_winner(tmp_path: Path) -> None:
    slow = made_up(tmp_path, "slow", three(ping=800, up=10, down=30))
    fast = made_up(tmp_path, "fast", three(ping=20, up=9, down=45))
    judgement = judge([slow, fast])
    assert only(judgement).winner == "fast"
    price = judgement.sentences()[1]
    assert price.startswith("Worse: goodput at")
    assert "10.0 to 9.00 Mbit/s (-10 %" in price
    assert "Better too: goodput elsewhere from 30.0 to 45.0 Mbit/s (+50 %" in price


def test_a_short_delay_at_half_the_goodput_does_not_win(tmp_path: Path) -> None:
    slow = made_up(tmp_path, "slow", three(ping=800, up=10, down=30))
    starved = made_up(tmp_path, "starved", three(ping=20, up=5, down=30))
    contest = only(judge([slow, starved]))
    assert contest.winner is None
    assert contest.strengths == {"starved": ("ping RTT p95",), "slow": ("goodput at bottleneck",)}


def test_a_fifo_can_win(tmp_path: Path) -> None:
    fifo = made_up(tmp_path, "pfifo", three(ping=20, up=10, down=30))
    other = made_up(tmp_path, "other", three(ping=80, up=10, down=30), "codel")
    judgement = judge([fifo, other])
    assert only(judgement).baseline == "pfifo"
    assert only(judgement).winner == "pfifo"
    assert "Against other: ping RTT p95 from 80.0 to 20.0 ms" in judgement.sentences()[0]


def test_of_several_fifos_the_worst_is_the_baseline(tmp_path: Path) -> None:
    short = made_up(tmp_path, "short", three(ping=40, up=10, down=30))
    long = made_up(tmp_path, "long", three(ping=800, up=10, down=30))
    # The worst of all is not a FIFO.
    other = made_up(tmp_path, "other", three(ping=900, up=10, down=30), "codel")
    contest = only(judge([long, other, short]))
    assert contest.runs == ("short", "long", "other")
    assert contest.baseline == "long"


def test_a_run_is_called_better_only_if_the_interval_excludes_zero(pair: list[Run]) -> None:
    decided = [
        each for each in only(compare(pair)).differences if each.verdict in ("better", "worse")
    ]
    assert decided
    assert all(each.difference.excludes_zero for each in decided)
    turned = decided[0].turned()
    assert {decided[0].verdict, turned.verdict} == {"better", "worse"}
    assert turned.turned() == decided[0]


def test_a_contest_has_the_seeds_of_the_run_that_has_fewest(tmp_path: Path) -> None:
    short = made_up(tmp_path, "short", three(ping=20, up=10, down=30))
    long = made_up(tmp_path, "long", [*three(ping=80, up=10, down=30)] * 2)
    contest = only(judge([long, short]))
    assert (contest.seeds, contest.samples) == (3, 3)


def test_a_run_whose_pings_were_all_lost_is_the_last(tmp_path: Path) -> None:
    mute = made_up(tmp_path, "mute", three(up=10, down=30))
    slow = made_up(tmp_path, "slow", three(ping=800, up=10, down=30))
    assert only(judge([mute, slow])).runs == ("slow", "mute")


@pytest.mark.parametrize(("ping", "verdict"), [(98.02, "alike"), (97.98, "better")])
def test_a_difference_below_two_percent_of_the_larger_is_ignored(
    tmp_path: Path, ping: float, verdict: str
) -> None:
    # 100 - 98.02 is 1.98 % of 100, and 2.02 % of 98.02.
    slow = made_up(tmp_path, "slow", three(ping=100, up=10, down=30))
    fast = made_up(tmp_path, "fast", three(ping=ping, up=10, down=30))
    contest = only(judge([slow, fast]))
    assert [each.verdict for each in contest.differences if each.key == "ping_p95"] == [verdict]


def test_each_run_is_compared_with_the_baseline_of_its_own_contest(tmp_path: Path) -> None:
    compared = [
        synthetic.run(tmp_path / f"{rate} {qdisc}", Shape(qdisc, rate_bps=rate * 10**6))
        for rate in (10, 20)
        for qdisc in ("pfifo limit 1000", "codel", "fq_codel")
    ]
    one, other = compare(compared, baseline=compared[4]).contests
    # In the other contest the baseline is the FIFO.
    assert (one.called[one.baseline], other.called[other.baseline]) == ("pfifo limit 1000", "codel")


def test_a_difference_the_other_way_round_has_its_interval_the_other_way_round() -> None:
    one = Difference(
        "ping_p95", "ping RTT p95", "ms", "ping", "felt", "a", "b", 2.0, 3.0, Interval(-1.0, -1.5, -0.25), "better"
    )  # fmt: skip
    assert one.turned().difference == Interval(1.0, 0.25, 1.5)


# --------------------------------------------------------------------------------------- quantities


def test_transfers_are_judged_by_their_completion() -> None:
    judgement = compare(runs(LINE + UPLOADS + PAGES))
    contest = only(judgement)
    assert contest.winner == "fq_codel"
    assert contest.row("completion_p95:page") is not None
    assert "page completion mean from" in judgement.sentences()[0]
    # All better numbers that a user feels are listed, with the number of transfers.
    completed = contest.row("completed:page")
    assert completed is not None
    assert max(completed.means) > 2 * min(completed.means)
    assert ", page completed from" in judgement.sentences()[0]
    assert "Better too: page completion p95 from" in judgement.sentences()[1]


def felt() -> list[quantities.Quantity]:
    """Returns all quantities that are declared as felt: those of a whole Run, and those of a
    [[flow]] entry for which every number is known."""
    group: Any = {key: {} for key in get_annotations(GroupNumbers)} | {
        "name": "phone",
        "kind": "requests",
    }
    every = [*quantities.QUANTITY.values(), *quantities._of_group(group)]
    return [each for each in every if each.role == "felt"]


@pytest.mark.parametrize("one", felt(), ids=lambda one: one.key)
def test_each_quantity_that_users_feel_can_decide(
    one: quantities.Quantity, pair: list[Run]
) -> None:
    contest = only(compare(pair))
    won = Difference(
        one.key, one.name, one.unit, one.of, one.role, "fq_codel", "pfifo", 2.0, 3.0, Interval(-1.0, -1.5, -0.5), "better"
    )  # fmt: skip
    lines = words.sentences([dataclasses.replace(contest, differences=(won,))])
    assert lines[0].startswith(f"fq_codel wins. Against pfifo: {one.name} from 3.00 to 2.00")


def test_the_quality_of_calls_decides_and_is_named_first_even_with_one_seed() -> None:
    text = LINE + UPLOADS + CALL
    judgement = compare(runs(text))
    assert only(judgement).winner == "fq_codel"
    assert "Against pfifo: phone MOS from" in judgement.sentences()[0]
    one = compare(runs(text.replace("seeds = 3", "seed = 1")))
    assert "Its numbers: phone MOS " in one.sentences()[0]


def test_the_lab_s_opening_scenario_has_a_verdict() -> None:
    start = sojourn.load(Path(sojourn.__file__).parent / "lab" / "start.toml")
    compared = sojourn.run_all(sojourn.variants(start, ("pfifo", "fq_codel")), seeds=2)
    assert compare(compared).sentences()[0].startswith("fq_codel wins")


def test_percent_differ_by_points_and_by_no_more_than_a_hundred() -> None:
    one = Difference(
        "late:call", "call late", "%", "call", "felt", "a", "b", 1.0, 97.0, Interval(-96.0, -104.0, -88.0), "better"
    )  # fmt: skip
    assert (
        words._with_interval(one)
        == "call late from 97.0 to 1.00 % (-96.0 points, 95 % interval -100.0 to -88.0)"
    )


def test_fewer_lost_pings_are_reported(tmp_path: Path) -> None:
    slow = made_up(tmp_path, "slow", three(ping=800, loss=0.025, up=10, down=30))
    fast = made_up(tmp_path, "fast", three(ping=20, loss=0, up=10, down=30))
    price = judge([slow, fast]).sentences()[1]
    assert price == (
        "Nothing that users notice got worse, and no goodput fell. Better too: pings lost from 2.50 to 0 %."
    )


def test_goodput_of_up_and_down_are_not_added() -> None:
    contest = only(compare(runs(LINE + UPLOADS + DOWNLOAD + PING)))
    assert contest.link == "up"
    up, down = contest.row("goodput"), contest.row("goodput_other")
    assert up is not None
    assert down is not None
    assert (up.quantity.name, down.quantity.name) == ("goodput up", "goodput down")
    assert max(up.means) < 4.0, "Mbit/s, as the line"
    assert min(down.means) > 4.0


def test_a_rounding_error_does_not_count_as_goodput_in_the_other_direction() -> None:
    def rest(total: float, here: float) -> float:
        seed, queue = {"goodput_mbps": total}, {"goodput_mbps": here}
        return quantities.QUANTITY["goodput_other"].read(seed, queue)

    # 0.1 + 0.2 is 0.3 + 5.6e-17.
    assert 0.1 + 0.2 > 0.3
    assert math.isnan(rest(0.1 + 0.2, 0.3))
    # A flow of 10 bit/s beside one of 1 Gbit/s.
    assert rest(1000.00001, 1000) == pytest.approx(1e-5)


def test_of_several_probes_the_worst_counts() -> None:
    probes = [{"rtt_ms": {"p95": value}} for value in (20.0, 80.0, math.nan, 50.0)]
    assert quantities.QUANTITY["ping_p95"].read({"probes": probes}, None) == 80


@pytest.mark.parametrize(
    ("congestions", "jain"), [(("cubic", "reno"), 0.8), (("cubic", None), math.nan)]
)
def test_fairness_is_among_flows_with_a_congestion_control(
    congestions: tuple[str | None, ...], jain: float
) -> None:
    flows = [{"kind": "bulk", "congestion": each} for each in congestions]
    value = quantities.QUANTITY["jain"].read({"flows": flows}, {"jain": 0.8})
    assert value == pytest.approx(jain, nan_ok=True)


@pytest.mark.parametrize(
    ("completed", "expected"), [(97.0, ", page completed from 100 to 97"), (98.0, "")]
)
def test_the_count_of_transfers_is_named_if_it_differs_by_more_than_two_percent(
    completed: float, expected: str, pair: list[Run]
) -> None:
    times = Difference(
        "completion_mean:page", "page completion mean", "ms", "page", "felt", "fq_codel", "pfifo", 200.0, 300.0,
        Interval(-100.0, -150.0, -50.0), "better",
    )  # fmt: skip
    count = Difference(
        "completed:page", "page completed", "", "page", "context", "fq_codel", "pfifo", completed, 100.0,
        Interval(completed - 100, math.nan, math.nan), "unknown", count=True,
    )  # fmt: skip
    won = dataclasses.replace(only(compare(pair)), differences=(times, count))
    assert words.sentences([won])[0] == (
        "fq_codel wins. Against pfifo: page completion mean from 300 to 200 ms"
        f" (-100, 95 % interval -150 to -50){expected}."
    )


def test_late_packets_by_hand() -> None:
    import polars as pl

    histogram = pl.DataFrame(
        {"lower_ns": [100_000_000], "upper_ns": [200_000_000], "samples": [90]}
    )
    assert metrics.late_rate(histogram, 10) == pytest.approx(0.55)
    assert metrics.late_rate(histogram, 0, bound_ms=250) == 0
    assert metrics.late_rate(None, 3) == 1
    assert math.isnan(metrics.late_rate(None, 0))


# ----------------------------------------------------------------------------------------- output


def test_a_judgement_as_plain_values_has_no_nan(pair: list[Run]) -> None:
    plain = json.loads(json.dumps(compare(pair).to_dict(), allow_nan=False))
    [contest] = plain["contests"]
    assert contest["winner"] == "fq_codel"
    assert {each["verdict"] for each in contest["differences"]} >= {"better"}
    one = contest["differences"][0]
    assert set(one["difference"]) == {"value", "low", "high"}
    assert one["run"] == "fq_codel"


def test_a_judgement_is_a_frame_and_a_table_in_a_notebook(pair: list[Run]) -> None:
    judgement = compare(pair)
    frame = judgement.to_frame()
    assert set(frame["run"]) == {"pfifo", "fq_codel"}
    assert frame.filter(frame["best"] & (frame["key"] == "ping_p95"))["run"].to_list() == [
        "fq_codel"
    ]
    shown = judgement._repr_html_()
    assert judgement.sentences()[0] in shown
    assert "<strong>" in shown
    assert repr(judgement) == "<Judgement of pfifo, fq_codel>"
    assert str(judgement) == "\n".join(judgement.sentences())


def test_a_run_without_a_finished_seed_is_refused(tmp_path: Path) -> None:
    empty = synthetic.run(tmp_path / "empty", Shape(seeds=()))
    with pytest.raises(sojourn.RunError, match="no seed has finished"):
        compare([empty])


def test_the_verdict_on_many_contests_counts_the_wins(pair: list[Run]) -> None:
    one = only(compare(pair))
    many = [
        dataclasses.replace(one, conditions=f"rate {i}") for i in range(words.MOST_CONTESTS + 1)
    ]
    assert len(words.sentences(many[1:])) == 1 + words.MOST_CONTESTS
    texts = words.sentences(many)
    assert texts == [
        "fq_codel wins 13 of 13 comparisons between Runs of the same link and traffic."
    ]


def test_the_winners_of_several_contests_are_counted(pair: list[Run]) -> None:
    one = only(compare(pair))
    none, other = (dataclasses.replace(one, winner=winner) for winner in (None, "pfifo"))
    between = "between Runs of the same link and traffic"
    for contests, expected in (
        ([one, one, other, none], f"fq_codel wins 2 of 4 comparisons {between}; pfifo wins 1; 1 has no winner."),
        ([one, none, none], f"fq_codel wins 1 of 3 comparisons {between}; 2 have no winner."),
        ([none, none], f"Nobody wins any of 2 comparisons {between}."),
    ):  # fmt: skip
        assert words.sentences(contests)[0] == expected


def test_without_a_winner_each_sentence_has_one_fact(tmp_path: Path) -> None:
    shapes = {"fast": (20, 4), "slow": (800, 10), "middle": (100, 7)}
    one = only(
        judge(
            [
                made_up(tmp_path, name, three(ping=ping, up=up, down=30))
                for name, (ping, up) in shapes.items()
            ]
        )
    )
    strengths = {"fast": tuple(f"q{i}" for i in range(7)), "slow": ("q7",) * 5}
    first, *others = words.of_contest(dataclasses.replace(one, strengths=strengths))
    assert first == (
        "No winner among fast, middle and slow. fast is best for q0, q1, q2, q3 and 3 more."
        " slow is best for q7, q7, q7, q7 and q7."
    )
    assert [each.partition(". Better: ")[0] for each in others] == [
        "fast against slow",
        "middle against slow",
    ]
    assert all(" Mbit/s (" in each.partition(". Worse: ")[2] for each in others)
    nothing = words.of_contest(dataclasses.replace(one, strengths={}))[0]
    assert nothing == "No winner among fast, middle and slow: none of them is best for anything."
    alone = dataclasses.replace(one, strengths={}, front=("fast",), beaten={"slow": ("middle",)})
    assert words.of_contest(alone)[0] == (
        "No winner: no other Run beats fast, but fast does not beat every other Run."
        " slow does worse than middle."
    )


def test_an_interval_knows_whether_it_excludes_zero() -> None:
    assert Interval(1, 0.5, 1.5).excludes_zero
    assert not Interval(1, -0.5, 2.5).excludes_zero
    assert not Interval(1, math.nan, math.nan).excludes_zero


def test_a_policing_link_is_under_study_if_almost_no_packet_waits(tmp_path: Path) -> None:
    text = """
    duration = "4 s"
    warmup = "1 s"
    [bottleneck]
    rate = "100 Mbit/s"
    delay = "10 ms"
    down.police = "rate 10mbit burst 20000"
    [[flow]]
    kind = "bulk"
    """
    policed = sojourn.run(sojourn.scenario.loads(text), seeds=1, out=tmp_path / "policed")
    assert quantities.bottleneck(policed) == "down"
    links = [link.name for link in policed.meta.links]
    for waits, expected in (({"up": 0.9, "down": 0.1}, "down"), ({"up": 1, "down": 0.1}, "up")):
        assert sorted(waits) == sorted(links)
        assert quantities.under_study([policed.meta], [waits]) == [expected]
