"""`sojourn.simulate`: the content of a Run, in memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import sojourn
from sojourn import Cancelled, Run, UserError, run, simulate, summary
from sojourn.engine import Progress
from sojourn.records import TABLES
from sojourn.scenario import Scenario, loads

SHORT = """
title = "Two downloads and a ping"
duration = "3 s"
warmup = "1 s"

[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "codel"

[[flow]]
kind = "bulk"
count = 2
start = "uniform 0 s .. 500 ms"

[[flow]]
kind = "ping"
"""
LONG = SHORT.replace('"3 s"', '"2000 s"').replace("5 Mbit/s", "100 Mbit/s")


def scenario(text: str = SHORT) -> Scenario:
    return loads(text)


def test_the_tables_and_the_summary_are_those_of_a_run(tmp_path: Path) -> None:
    kept = run(scenario(), seeds=3, out=tmp_path / "run")
    made = simulate(scenario(), seeds=3)
    assert made.seeds == kept.seeds == (1, 2, 3)
    assert made.tables() == kept.tables()
    for name in made.tables():
        assert made.table(name).equals(kept.table(name)), name
        assert made.table(name).schema == kept.table(name).schema, name
    for known in (kept, Run.open(tmp_path / "run")):
        ours, theirs = made.summary.to_dict(), summary(known).to_dict()
        for each in (*ours["runs"], *theirs["runs"], ours["summary"], theirs["summary"]):
            del each["cpu_s"]
        assert ours == theirs


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert simulate(scenario(), seeds=2).summary.samples == 2
    assert os.listdir(tmp_path) == []


def test_the_number_of_threads_changes_nothing() -> None:
    one, two = simulate(scenario(), seeds=4, jobs=1), simulate(scenario(), seeds=4, jobs=2)
    for name in one.tables():
        assert one.table(name).equals(two.table(name)), name


def test_arrays_are_as_the_core_wrote_them() -> None:
    made = simulate(scenario(), seeds=[7])
    probe = made.arrays("probe", 7)
    assert list(probe) == [column.name for column in TABLES["probe"].columns]
    named = made.table("probe", 7)
    assert np.array_equal(probe["t_ns"], named["t_ns"].to_numpy())
    assert set(probe["probe"].tolist()) == {2}
    assert set(named["probe"].to_list()) == {made.meta.flows[2].name}


def test_seeds_without_random_draws_count_as_one_sample() -> None:
    made = simulate(scenario(SHORT.replace('start = "uniform 0 s .. 500 ms"', "")), seeds=3)
    assert made.summary.samples == 1
    assert made.summary.seeds == (1, 2, 3)


def test_a_change_of_one_number_changes_the_answer() -> None:
    one = scenario()
    before, after = (
        simulate(each, seeds=1).summary.runs[0]["goodput_mbps"]
        for each in (one, one.with_({"bottleneck.rate": "10 Mbit/s"}))
    )
    assert after > 1.5 * before


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_reported_and_false_cancels(jobs: int) -> None:
    updates: list[Progress] = []

    def enough(progress: Progress) -> bool:
        updates.append(progress)
        return len(updates) < 3

    with pytest.raises(Cancelled):
        simulate(scenario(LONG), seeds=2, jobs=jobs, progress=enough)
    assert len(updates) == 3
    fractions = [each.fraction for each in updates]
    assert fractions == sorted(fractions)
    assert 0 < fractions[-1] < 1
    assert {each.runs for each in updates} == {2}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_of_progress_ends_the_simulation(jobs: int) -> None:
    def broken(_: Progress) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        simulate(scenario(LONG), seeds=2, jobs=jobs, progress=broken)


def test_scenarios_that_can_not_be_simulated_are_refused() -> None:
    with pytest.raises(ValueError, match="sweeps over 2 variants"):
        simulate(scenario(SHORT + '[sweep]\n"bottleneck.qdisc" = ["pfifo", "codel"]\n'))
    with pytest.raises(UserError, match="Linux has"):
        simulate(scenario(SHORT.replace('"codel"', '"fq orphan_mask 131071"')))
    with pytest.raises(ValueError, match="at least one"):
        simulate(scenario(), seeds=[])


def test_a_missing_table_or_seed_is_reported() -> None:
    made = simulate(scenario(), seeds=1)
    for name, seed, problem in (
        ("packets", 1, "packets were not recorded"),
        ("links", 2, "seed 2 was not simulated"),
        ("nonsense", 1, "there is no table"),
    ):
        with pytest.raises(UserError, match=problem):
            made.table(name, seed)


def test_simulate_is_public() -> None:
    assert {"simulate", "Simulated", "Cancelled"} <= set(sojourn.__all__)
