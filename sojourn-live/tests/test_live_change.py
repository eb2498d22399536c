"""Intervals and comparisons: worked numbers, coverage, and a verdict that can be
`no significant change`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import synthetic
import synthetic_live
from synthetic_live import Line

from sojourn.cli import status
from sojourn.records import Run
from sojourn_live.cli import measurement_text as terminal
from sojourn_live.measure import change, intervals, sentences
from sojourn_live.measure.change import BeforeAfter, Change
from sojourn_live.measure.intervals import Interval

ZERO = 1_800_000_000 * 10**9
MINUTE = 60 * 10**9


def measured(seed: int, minute: int = 0, **line: float | int) -> Line:
    return Line(seed=seed, zero_ns=ZERO + minute * MINUTE, **line)  # type: ignore[arg-type]


def run(*lines: Line) -> Run:
    return synthetic_live.run(None, *lines)


def verdict_of(found: BeforeAfter, phase: str, what: str) -> str:
    return next(each for each in found.changes if each.phase == phase and each.what == what).verdict


# ---------------------------------------------------------------------------------------- repeats


def test_welchs_interval_by_hand() -> None:
    found = intervals.welch([1, 2, 3], [11, 12, 13])
    half = 2.7764 * math.sqrt(2 / 3)
    assert found.value == 10
    assert found.low == pytest.approx(10 - half, abs=1e-3)
    assert found.high == pytest.approx(10 + half, abs=1e-3)


def test_students_interval_by_hand() -> None:
    found = intervals.over_repeats([3, 4, 5])
    assert (found.value, found.low, found.high) == pytest.approx((4, 1.516, 6.484), abs=1e-3)
    assert found.excludes_zero
    assert not intervals.over_repeats([-1, 0, 2]).excludes_zero


def test_pairs_remove_what_both_have_in_common() -> None:
    # The line becomes worse by 10 ms a repeat, but the pairs differ by 3 ms whatever the drift.
    before, after = [10.0, 20.0, 30.0, 40.0], [13.1, 22.9, 33.0, 43.0]
    assert intervals.paired(before, after).excludes_zero
    assert not intervals.welch(before, after).excludes_zero


def test_one_repeat_has_no_interval() -> None:
    assert math.isnan(intervals.welch([1], [2]).low)


@pytest.mark.parametrize(
    ("before", "after", "takes_turns"),
    [
        ([1, 3, 5], [2, 4, 6], True),
        ([2, 4], [1, 3], True),
        ([1, 2], [3, 4], False),
        ([1], [2, 3], False),
        ([], [], False),
    ],
)
def test_repeats_that_take_turns(before: list[int], after: list[int], takes_turns: bool) -> None:
    assert intervals.interleaved(before, after) is takes_turns


# ----------------------------------------------------------------------------------------- blocks


def test_independent_samples_are_not_correlated_and_a_sawtooth_is() -> None:
    independent = np.random.default_rng(1).normal(size=2000)
    assert intervals.memory(independent) < 2
    saw = np.tile(np.arange(50.0), 20)
    assert intervals.memory(saw) > 8
    assert intervals.memory(np.full(100, 7.0)) == 1
    assert intervals.block_length(saw) > 4 * intervals.block_length(independent)
    # However long the memory, a phase has at least three blocks.
    assert intervals.block_length(np.arange(90.0)) == 30


def test_the_same_samples_give_the_same_interval() -> None:
    values = [np.random.default_rng(2).normal(100, 5, 200)]
    assert intervals.over_blocks(values, [], intervals.mean) == intervals.over_blocks(
        values, [], intervals.mean
    )


def test_a_constant_has_an_interval_of_width_zero() -> None:
    found = intervals.over_blocks(
        [np.full(50, 30.0)], [np.full(50, 20.0)], intervals.percentile(95)
    )
    assert (found.value, found.low, found.high) == (10, 10, 10)


def _covered(memory: float, blocks: bool) -> float:
    """How often the interval of a mean of 200 correlated samples contains the true mean."""
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=300)
        values = np.empty(300)
        values[0] = noise[0]
        for i in range(1, 300):
            values[i] = memory * values[i - 1] + noise[i]
        piece = values[100:]
        if blocks:
            found = intervals.over_blocks([piece], [], intervals.mean)
        else:
            found = intervals.over_repeats([float(value) for value in piece])
        hits += found.low <= 0 <= found.high
    return hits / 200


def test_blocks_cover_the_mean_where_the_textbook_interval_does_not() -> None:
    # 95 % is wanted; with correlated samples the interval for independent ones covers only half.
    assert _covered(0.9, blocks=False) < 0.5
    assert _covered(0.9, blocks=True) > 0.8
    assert _covered(0.0, blocks=True) > 0.88


# ------------------------------------------------------------------------------- before and after


def test_a_cured_line_is_better_and_its_price_is_named() -> None:
    found = change.compare(
        run(measured(1)), run(measured(2, 5, up_buffer=10_000, up_mbps=9.0)), ("before", "after")
    )
    assert found.by == "blocks"
    assert verdict_of(found, "upload", change.ADDED_P95) == "better"
    assert verdict_of(found, "upload", "goodput up") == "worse"
    assert verdict_of(found, "idle", change.RTT_MEDIAN) == "same"
    said = sentences.compared(found)
    assert said[0].startswith("Better and worse: the delay that the load adds (")
    assert 'is shorter in "after" than in "before": ' in said[0]
    assert said[1].startswith("Worse: goodput up in upload from ")
    assert " Mbit/s (-1" in said[1]
    assert "block bootstrap" in said[-1]


def test_two_measurements_of_one_line_show_no_significant_change() -> None:
    found = change.compare(run(measured(1)), run(measured(2, 5)))
    assert {each.verdict for each in found.changes} == {"same"}
    assert sentences.compared(found)[0].startswith("No significant change")
    assert "no significant change" in terminal.changes(found)


def test_a_worse_line_is_worse() -> None:
    found = change.compare(run(measured(1)), run(measured(2, 5, up_buffer=500_000)))
    assert verdict_of(found, "both", change.ADDED_P95) == "worse"
    assert sentences.compared(found)[0].startswith("Worse")


def changed(phase: str, what: str, before: float, after: float, verdict: str) -> Change:
    apart = Interval(after - before, after - before - 0.1, after - before + 0.1)
    unit, better = ("Mbit/s", "more") if what.startswith("goodput") else ("ms", "less")
    return Change(phase, what, unit, better, before, after, apart, verdict)  # type: ignore[arg-type]


def sentences_on(*changes: Change) -> list[str]:
    return sentences.compared(
        BeforeAfter("before", "after", "blocks", (1, 1), ("server", "server"), changes)
    )[:-1]


LESS = changed("upload", change.ADDED_P95, 395, 21, "better")


@pytest.mark.parametrize(
    "price",
    [
        changed("upload", "goodput up", 1.88, 0.224, "worse"),
        changed("both", "goodput down", 9.5, 5.0, "worse"),
        changed("download", change.ADDED_P95, 20, 90, "worse"),
        changed("upload", change.ADDED_MEDIAN, 2, 19, "worse"),
        changed("idle", change.RTT_MEDIAN, 20, 30, "worse"),
        changed("whole", change.RTT_MEDIAN, 20, 30, "worse"),
    ],
    ids=lambda each: f"{each.phase} {each.what}",
)
def test_worse_quantities_are_named_in_the_first_words_and_the_second_sentence(
    price: Change,
) -> None:
    gain = changed("both", "goodput up", 1.0, 2.0, "better")
    said = sentences_on(changed("download", change.ADDED_MEDIAN, 5, 4, "same"), LESS, gain, price)
    assert said[0].startswith("Better and worse: ")
    assert said[1].startswith("Worse: ")
    assert price.phase in said[1]
    assert said[2].startswith("Better too: goodput up in both from 1.00 to 2.00 Mbit/s (+100 %, ")
    # If the delay did not change, the text must not say that nothing changed.
    same = changed("upload", change.ADDED_P95, 91, 91, "same")
    first, second = sentences_on(same, price)
    assert first == (
        "The delay that the load adds (upload, 95th percentile) did not change significantly:"
        " 91.0 to 91.0 ms (0, 95 % interval -0.100 to 0.100)."
    )
    assert second.startswith("Worse: ")
    worse = changed("upload", change.ADDED_P95, 21, 395, "worse")
    assert sentences_on(worse, price)[0].startswith("Worse: ")


def test_only_improvements_are_named_if_nothing_got_worse() -> None:
    as_before = changed("upload", "goodput up", 1.88, 1.87, "same")
    first, last = sentences_on(LESS, as_before)
    assert first == (
        'Better: the delay that the load adds (upload, 95th percentile) is shorter in "after" than in "before":'
        " 395 to 21.0 ms (-374, 95 % interval -374 to -374)."
    )
    assert last == "Goodput: no significant change."


def test_a_difference_too_small_to_notice_is_not_significant_however_certain() -> None:
    # 20.0 and 20.3 ms, without noise: the interval is narrow and far from zero.
    found = change.compare(
        run(measured(1, noise_ms=0.01)), run(measured(2, 5, noise_ms=0.01, base_ms=20.3))
    )
    idle = next(each for each in found.changes if each.phase == "idle")
    assert idle.difference.low > 0.2
    assert idle.verdict == "same"


def test_three_alternating_repeats_are_compared_in_pairs() -> None:
    before = run(*[measured(i, 2 * i) for i in range(3)])
    after = run(*[measured(10 + i, 2 * i + 1, up_buffer=25_000) for i in range(3)])
    found = change.compare(before, after)
    assert (found.by, found.repeats) == ("paired", (3, 3))
    assert verdict_of(found, "upload", change.ADDED_MEDIAN) == "better"
    assert "took turns" in sentences.compared(found)[-1]


def test_three_repeats_in_sequence_are_compared_unpaired() -> None:
    before = run(*[measured(i, i) for i in range(3)])
    after = run(*[measured(10 + i, 10 + i, up_buffer=25_000) for i in range(3)])
    found = change.compare(before, after)
    assert found.by == "repeats"
    assert "Welch" in sentences.compared(found)[-1]


def test_measurements_without_a_common_phase_are_not_compared() -> None:
    found = change.compare(run(Line(phases=(("upload", 3),))), run(Line(phases=(("download", 3),))))
    assert found.changes == ()
    assert "they can't be compared" in sentences.compared(found)[0]


def test_a_comparison_as_json_has_no_nan() -> None:
    found = change.compare(run(measured(1)), run(measured(2, 5)))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["intervals"] == "blocks"
    assert plain["changes"][0]["verdict"] == "no significant change"
    assert len(plain["changes"][0]["ci95"]) == 2


def test_seeds_of_the_simulator_count_as_repeats(tmp_path: Path) -> None:
    before, after = synthetic.pair(tmp_path)
    found = change.compare(before, after)
    # Three seeds each are repeats. They have no time of day.
    assert found.by == "repeats"
    assert verdict_of(found, "whole", change.RTT_P95) == "better"


def test_measurements_without_load_are_compared_by_their_idle_phases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, ms in (("before", 20.0), ("after", 30.0)):
        lines = [
            f"64 bytes from 192.0.2.1: icmp_seq={at} ttl=57 time={ms + at % 5} ms"
            for at in range(1, 61)
        ]
        text = ["PING one.example (192.0.2.1) 56(84) bytes of data.", *lines]
        (tmp_path / f"{name}.txt").write_text("\n".join(text) + "\n")
        words = ["import", str(tmp_path / f"{name}.txt"), "-o", str(tmp_path / name), "-q"]
        assert status(words) == 0
    capsys.readouterr()
    assert status(["compare", str(tmp_path / "before"), str(tmp_path / "after")]) == 0
    printed = capsys.readouterr().out
    assert '"before" and "after" have no phase under load in common: only their idle phases are compared.' in printed  # fmt: skip
    row = next(line for line in printed.splitlines() if "RTT, median" in line)
    assert row.split()[4:7] == ["22.0", "32.0", "+10.0"]
