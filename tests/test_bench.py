"""How benches/bench.py evaluates its numbers. These tests measure nothing."""

import json
import math
import subprocess
import sys
import tomllib
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tree import ROOT

import sojourn

sys.path.insert(0, str(ROOT / "benches"))

import bench
import bench_history as history
import bench_scale
import callgrind
import page

STEADY = [100.0, 101.0, 102.0, 103.0, 104.0]


def entry(commit: str, **case: Any) -> history.Entry:
    """A run of one case that lasts ten seconds."""
    return {
        "commit": commit,
        "dirty": False,
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"cpu": "one", "cores": 2, "system": "Linux"},
        "build": "release",
        "versions": {"ns-2": "ns-2.35"},
        "cases": [{"case": "ten", "title": "Ten", "duration": "10 s", "peers_run": "", **case}],
    }


def times(factor: float) -> list[float]:
    return [factor * rate for rate in STEADY]


def counted(tcp: float, long_s: int = 15) -> dict[str, Any]:
    lengths = {"warmup_s": 2, "short_s": 5, "long_s": long_s}
    return {"instructions": {"lengths": lengths, "parts": {"TCP": tcp, "links": 200.0}}}


# ------------------------------------------------------------------------------------- the test


@pytest.mark.parametrize(("m", "n"), [(5, 5), (5, 9), (7, 6)])
def test_the_interval_has_its_confidence_level(m: int, n: int) -> None:
    # All orders of m + n values. Without a change they are equally likely.
    us = []
    for firsts in combinations(range(m + n), m):
        seconds = [value for value in range(m + n) if value not in firsts]
        us.append(sum(second > first for first in firsts for second in seconds))
    k = history._left_out(m, n, 0.99)
    assert k is not None
    assert sum(u <= k for u in us) <= 0.005 * math.comb(m + n, m) < sum(u <= k + 1 for u in us)


def test_a_shift_is_the_median_ratio_and_significant_without_overlap() -> None:
    found = history.shift(STEADY, times(1.1))
    assert found is not None
    assert found.factor == pytest.approx(1.1)
    assert found.low == pytest.approx(1.1 * 100 / 104)
    assert found.high == pytest.approx(1.1 * 104 / 100)
    assert found.beyond_noise


def test_overlapping_repeats_are_noise() -> None:
    found = history.shift(STEADY, [103.5, 110, 111, 112, 113])
    assert found is not None
    assert not found.beyond_noise


def test_four_repeats_show_no_change() -> None:
    assert history.shift(STEADY[:4], times(9)[:4]) is None
    old, new = (
        entry(name, rates={"sojourn": times(factor)[:4]}) for name, factor in (("a", 1), ("b", 9))
    )
    assert "too few repeats" in next(history.changes(new, [old]))


# --------------------------------------------------------------------------------- the history


def test_a_slower_engine_is_reported_with_the_commit_of_comparison() -> None:
    old = entry("aaaaaaaaaaaaaaaa", rates={"sojourn": times(1)})
    first, note = history.changes(entry("b", rates={"sojourn": times(0.8)}), [old])
    assert first.startswith("ten: 0.800 times as fast (")
    assert first.endswith(" as aaaaaaaaaa of 2026-01-01")
    assert "without a peer" in note


def test_a_slower_machine_does_not_look_like_a_change() -> None:
    old = entry("a", rates={"sojourn": times(1), "ns-2": [50.0] * 5})
    same = entry("b", rates={"sojourn": times(0.5), "ns-2": [25.0] * 5})
    assert not list(history.changes(same, [old]))
    slower = entry("b", rates={"sojourn": times(0.5), "ns-2": [50.0] * 5})
    [change] = history.changes(slower, [old])
    assert "0.500 times as fast beside ns-2" in change


def test_instructions_change_beyond_half_a_percent() -> None:
    old = entry("a", **counted(1800))
    assert not list(history.changes(entry("b", **counted(1809)), [old]))
    [change] = history.changes(entry("b", **counted(1820)), [old])
    assert "+1.0% instructions a packet, 2000 to 2020" in change
    assert change.endswith("(TCP: +20)")


@pytest.mark.parametrize(
    "other",
    [
        entry("a", rates={"sojourn": times(1)}) | {"build": "checked"},
        entry("a", rates={"sojourn": times(1)}) | {"machine": {"cpu": "another"}},
        entry("a", rates={"sojourn": times(1)}, duration="20 s"),
        entry("a", rates={"sojourn": times(1)}, case="eleven"),
        entry("a", **counted(1)),
    ],
    ids=["build", "machine", "length", "case", "no rates"],
)
def test_only_the_same_case_build_and_machine_are_compared(other: history.Entry) -> None:
    [change] = history.changes(entry("b", rates={"sojourn": times(2)}), [other])
    assert "nothing of this machine" in change


def test_the_last_entry_counts() -> None:
    old = [entry("a", rates={"sojourn": times(1)}), entry("c", rates={"sojourn": times(2)})]
    [change] = history.changes(entry("b", rates={"sojourn": times(2)}), old)
    assert "without a peer" in change


def test_an_incomplete_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history.jsonl"
    assert history.read(file) == []
    history.append(entry("a"), file)
    with file.open("a") as out:
        out.write('{"commit": "b", "ca\n')
    history.append(entry("c"), file)
    assert [each["commit"] for each in history.read(file)] == ["a", "c"]


def test_git_ignores_the_history() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert f"/{history.FILE.relative_to(ROOT).parts[0]}/" in ignored


# -------------------------------------------------------------------------------- instructions


def test_callgrind_s_lines_are_added_by_file() -> None:
    # callgrind writes each name once. The cost of a call counts for the callee.
    text = """events: Ir
fl=(1) /tree/crates/tcp/src/sender.rs
fn=(1) send
10 100
+1 20
cfi=(2) /tree/crates/link/src/lib.rs
cfn=(2) enqueue
calls=7 30
12 5000
fi=(3) /rustc/library/core/src/mem.rs
-3 4
fe=(1)
* 6
fl=(2)
fn=(2)
30 5000
totals: 5130
"""
    found = callgrind.by_file(text)
    assert {callgrind.part(file): count for file, count in found.items()} == {
        "TCP": 126,
        "links": 5000,
        callgrind.REST: 4,
    }


def test_both_lengths_have_the_same_warm_up() -> None:
    with pytest.raises(AssertionError):
        callgrind.Lengths(warmup_s=3, short_s=5, long_s=10)


# ------------------------------------------------------------------------------------ the cases


def test_a_generated_scenario_is_as_its_name_says() -> None:
    flows = sojourn.loads(bench_scale.many_flows(1000, 30)).realise(1)
    assert len(flows.flows) == 1000
    assert flows.links[0].rate[0].bps == 1000 * 1_000_000
    chain = sojourn.loads(bench_scale.chain(7)).realise(1)
    assert len(chain.links) == 2 * 7
    assert {len(flow.path) for flow in chain.flows} == {7}
    # At full size, computing the routes takes seconds in a checked build.
    tree = sojourn.loads(bench_scale.tree(2, 3)).realise(1)
    assert len(tree.links) == 2 * (1 + 2 + 2 * 3)
    assert {tree.links[flow.path[-1]].rate[0].bps for flow in tree.flows} == {10_000_000}
    assert len({flow.path[-1] for flow in tree.flows}) == len(tree.flows) == 2 * 3


def test_no_case_is_counted_beyond_its_end() -> None:
    for case in [*bench.ALL, *bench.quick(), *bench.scale(None)]:
        text = case.scenario if isinstance(case.scenario, str) else case.scenario.read_text()
        number, unit = tomllib.loads(text)["duration"].split()
        seconds = case.duration_s or int(number) * {"s": 1, "h": 3600}[unit]
        assert case.lengths is not None, case.name
        assert case.lengths.long_s <= seconds, case.name


def test_a_limit_is_reported_with_the_program_s_error() -> None:
    [case] = bench.chosen(bench.scale("flows-100001"), "flows-100001")
    row = bench.measure(case, 1, bench.Tools())
    assert "should be less than or equal to 100000" in row["refused"]
    made = entry("a") | {"form": "scale", "load": 0.0, "rust": None, "python": "3", "cases": [row]}
    shown = bench.parts_of_the_page(made, page.as_text)
    assert "refused, see below" in str(shown["bench scale: table"])
    assert "less than or equal to 100000" in str(shown["bench scale: refused"])


def test_an_exact_name_is_one_case() -> None:
    assert [case.name for case in bench.chosen(bench.ALL, "reno-codel-10")] == ["reno-codel-10"]
    assert len(bench.chosen(bench.ALL, "reno-codel")) > 1


# ------------------------------------------------------------------------------------- the page


def test_a_table_replaces_the_former_one() -> None:
    text = f"above\n{page.begin('a')}\nold\n{page.end('a')}\nbelow\n"
    filled = page.filled(text, {"a": r"new \1"})
    assert filled == f"above\n{page.begin('a')}\nnew \\1\n{page.end('a')}\nbelow\n"
    with pytest.raises(page.NoPlaceError, match="bench: b"):
        page.filled(text, {"a": "newer", "bench: b": "x"})


def test_a_record_keeps_the_tables_that_were_not_measured(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    page.record({"a": "text", "b": [["x"], ["1"]]}, "0123456789abc", "2026-01-01T00:00", file)
    page.record({"a": "newer"}, None, "2026-01-02", file)
    assert page.recorded(file) == {"a": "newer", "b": "| x |\n| --- |\n| 1 |"}
    assert json.loads(file.read_text())["b"]["commit"] == "0123456789"


def test_the_page_has_a_place_for_each_table() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    run = {"rates": {"sojourn": STEADY}, "medians": {"sojourn": MEDIANS}, **counted(1800)}
    for form in ("speed", "scale"):
        made = entry("a", **run) | {"form": form, "load": 0.0, "rust": None, "python": "3"}
        for name in bench.parts_of_the_page(made, page.as_markdown):
            assert text.count(page.begin(name)) == text.count(page.end(name)) == 1, name
    for name in ("sweep: machine", "sweep: table"):
        assert text.count(page.begin(name)) == text.count(page.end(name)) == 1, name


MEDIANS = {
    "packets": 1e6,
    "events": 3e6,
    "cpu_s": 1.0,
    "around_s": 0.1,
    "peak_rss_mb": 30.0,
    "rss_before_mb": 25.0,
}


# ---------------------------------------------------------------------------------- a whole run


def run(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "benches/bench.py", *words],
        cwd=ROOT,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_child_prints_what_its_run_took() -> None:
    text = bench_scale.many_flows(10, 10)
    done = run("--child", "-", given=text)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    delivered = sojourn.simulate(sojourn.loads(text), seeds=1).arrays("engine", 1)["packets"][0]
    assert found["packets"] == delivered
    assert found["peak_rss_mb"] > found["rss_before_mb"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "nothing"], "no case is called `nothing`"),
        (["--repeats", "0"], "--repeats must be at least 1"),
        (["--last", "--history", "no-such-file"], "has no run of this form"),
    ],
)
def test_wrong_input_is_reported_with_an_error(words: list[str], message: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_first_minute_is_measured_in_an_empty_environment() -> None:
    script = ROOT / "benches" / "first_minute.py"
    subprocess.run([sys.executable, "-I", "-S", script, "--help"], check=True, capture_output=True)
