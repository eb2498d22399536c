"""--until runs more seeds where a number isn't known precisely enough, and nowhere else."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sojourn import engine, metrics
from sojourn.cli import status
from sojourn.defaults import SEEDS_END
from sojourn.records import Run
from sojourn.scenario import loads
from sojourn.sweeps.until import Precision, as_many_again, lacking

TEXT = """
title = "Downloads that begin at random"
duration = "4 s"
warmup = "1 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "codel"
[[flow]]
kind = "bulk"
count = 2
rtt = "uniform 20 ms .. 80 ms"
start = "uniform 0 s .. 1 s"
[[flow]]
kind = "ping"
"""
SILENT = TEXT.replace('start = "uniform 0 s .. 1 s"', "").replace("uniform 20 ms .. 80 ms", "50 ms")
KEY = "ping_p95"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "s.toml").write_text(TEXT)
    return str(tmp_path / "s.toml")


def ran(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[Any, str]:
    """Returns a verb's JSON output and its messages."""
    assert status([*words, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out) if said.out else None, said.err


def width(one: dict[str, Any]) -> float:
    found = one["summary"]["probes"][0]["rtt_ms"]["p95"]
    return float(found["ci95"] / found["mean"])


def test_seeds_are_run_until_the_interval_is_narrow(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    three, _ = ran(capsys, "run", scenario, "--seeds", "3")
    wanted = width(three) / 2
    found, said = ran(
        capsys, "run", scenario, "--seeds", "3", "--until", f"{KEY}={100 * wanted:.3f}%"
    )
    count = len(found["seeds"])
    assert count in (6, 12, 24, 48), "each round doubles the seeds"
    assert width(found) <= wanted
    assert f"{KEY} is known to ±{100 * width(three):.2g} %" in said
    # Half as many seeds are not enough.
    before, _ = ran(capsys, "run", scenario, "--seeds", str(count // 2))
    assert width(before) > wanted
    assert found["runs"][: count // 2] == [
        {**one, "cpu_s": other["cpu_s"]}
        for one, other in zip(before["runs"], found["runs"], strict=False)
    ]


def test_it_ends_at_the_maximum_and_names_what_is_still_unknown(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    words = ("run", scenario, "--until", f"{KEY}=0.001%", "--at-most", "5", "-o", out)
    found, said = ran(capsys, *words)
    assert found["seeds"] == [1, 2, 3, 4, 5]
    assert f"{KEY} of one seed has no interval: 1 more run" in said
    assert f"{KEY} is known to ±{100 * width(found):.2g} %" in said
    assert "5 seeds are the limit (--at-most)" in said
    kept = Run.open(out)
    assert kept.meta.seeds == kept.meta.seeds_asked == (1, 2, 3, 4, 5)


def test_competing_runs_keep_the_same_seeds(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("compare", scenario, "codel", "pfifo", "--seeds", "2", "--at-most", "4")
    found, _ = ran(capsys, *words, "--until", f"{KEY}=0.01%")
    assert [one["seeds"] for one in found["variants"]] == [[1, 2, 3, 4]] * 2
    assert found["judgement"]["contests"][0]["by"] == "paired"


def test_a_decided_cell_gets_no_more_seeds() -> None:
    # Two rates are two contests: a number known in one needs no more seeds because of the other.
    swept = loads(TEXT).with_({"sweep": {"bottleneck.rate": ["1 Mbit/s", "20 Mbit/s"]}})
    runs = engine.run_all(swept, seeds=4)
    shares = [width({"summary": metrics.summary(one).to_dict()["summary"]}) for one in runs]
    between = Precision(KEY, sum(shares) / 2, 100)
    [only] = lacking(runs, between)
    assert only.run is runs[shares.index(max(shares))]
    assert only.widest == pytest.approx(max(shares))
    assert only.seeds == (5, 6, 7, 8)
    assert lacking(runs, Precision(KEY, max(shares), 100)) == []
    assert [one.seeds for one in lacking(runs, Precision(KEY, 0.0001, 6))] == [(5, 6)] * 2


def test_no_seed_above_the_largest_allowed_one_is_added() -> None:
    run: Any = SimpleNamespace(meta=SimpleNamespace(seeds_asked=(1, 2, SEEDS_END - 2)))
    assert as_many_again(run, 100) == (SEEDS_END - 1,)


def test_without_random_draws_no_more_seeds_are_run() -> None:
    [run] = engine.run_all(loads(SILENT), seeds=2)
    assert lacking([run], Precision(KEY, 0.0001, 100)) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--until", "ping_p95"], "KEY=SHARE"),
        (["--until", "ping_p96=3%"], "did you mean ping_p95"),
        (["--until", "ping_p95=much"], "much"),
        (["--until", "ping_p95=0%"], "±0 %"),
        (["--at-most", "5"], "--until"),
    ],
)
def test_an_invalid_target_is_refused_before_anything_runs(
    words: list[str],
    said: str,
    scenario: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "run", lambda *_, **__: pytest.fail("it ran"))
    _, printed = ran(capsys, "run", scenario, *words, code=2)
    assert said in printed
