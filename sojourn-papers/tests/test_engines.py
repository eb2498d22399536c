"""A kernel's numbers beside the simulator's: the differing ones, and both on a page."""

import importlib
import json
import math
import re
from dataclasses import make_dataclass, replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from tree import ROOT

import sojourn_papers as papers
from sojourn import extras
from sojourn.engine import find, runs
from sojourn.engine.sim import Simulator
from sojourn.errors import UserError
from sojourn.scenario import loads
from sojourn_papers import engines, page, reproduction
from sojourn_papers.cli.reproduce import reproduce as reproduce_command
from sojourn_papers.engines import Pair
from sojourn_papers.evidence import Estimate, Evidence, Seed
from sojourn_papers.paper import Claim, Finding, Number, Paper, Picture, Threshold
from sojourn_papers.reproduction import reproduce
from sojourn_papers.study import Study, Variant
from sojourn_papers.verdict import NO_REASON, Row, Verdict

SCENARIO = """
title = "A full queue"
duration = "2 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "5 ms"
qdisc = "pfifo limit 20"
[[flow]]
kind = "udp"
rate = "6 Mbit/s"
[[flow]]
kind = "ping"
"""
ONLY = Variant("queue", "")


def ping_ms(seed: Seed) -> float:
    return float(seed.probe()["rtt_ms"]["mean"])


def long(evidence: Evidence) -> Finding:
    return Finding({"mean RTT, ms": evidence.mean(ONLY, ping_ms)})


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "queue.toml").write_text(SCENARIO)
    (folder / "longer.toml").write_text(SCENARIO.replace("limit 20", "limit 60"))
    study = Study("queue", "a queue", "queue.toml", seeds=2, kernel_variants=None)
    number = Number("rtt", "table 1", "mean RTT", "ms", None, ONLY, ping_ms)
    asks = {"mean RTT, ms": Threshold("< 80", lambda ours: ours < 80)}
    return Paper(
        id="adt",
        title="A queue",
        source="Nobody 2026",
        about="A queue of 20 packets.",
        folder=folder,
        studies=(study,),
        numbers=(number,),
        claims=(Claim("short", "section 1", "a queue is short", long, asks),),
        readings=(),
        pictures=(Picture("none", "None", "Nothing.", lambda _: Figure(figsize=(2, 1))),),
        story=lambda _: [],
    )


class LikeAGuest(Simulator):
    """The simulator under another engine's name."""

    name = "kernel-uml"


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Simulator:
        return Simulator() if name == "sim" else LikeAGuest()

    monkeypatch.setattr(runs, "find", find)
    monkeypatch.setattr(reproduction, "find", find)


def pair(kernel: Estimate, simulator: Estimate) -> Pair:
    number = Number("n", "table 1", "a delay", "ms", None, ONLY, ping_ms)
    return Pair(*(Row(number, one, Verdict.NOT_STATED, "") for one in (kernel, simulator)))


def ours(mean: float, half: float = math.nan) -> Estimate:
    return Estimate(mean, half, (mean,))


@pytest.mark.parametrize(
    ("kernel", "simulator", "differ"),
    [
        (ours(110, 1), ours(100, 1), True),
        # The means differ by less than a twentieth, however narrow the intervals are.
        (ours(104, 0.1), ours(100, 0.1), False),
        # The intervals overlap.
        (ours(130, 20), ours(100, 11), False),
        (ours(130, 18), ours(100, 11), True),
        # One seed has no interval.
        (ours(110), ours(100), True),
        (ours(104), ours(100), False),
        (ours(1, 0), ours(0, 0), True),
        (ours(math.nan), ours(1, 0), True),
        (ours(math.nan), ours(math.nan), False),
    ],
)
def test_engines_differ_if_means_are_a_twentieth_apart_and_intervals_disjoint(
    kernel: Estimate, simulator: Estimate, differ: bool
) -> None:
    assert pair(kernel, simulator).differ is differ


def test_the_simulator_runs_what_another_engine_runs(
    paper: Paper, guest: None, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    [found] = reproduce([paper], engine="kernel-uml", out=out)
    assert found.evidence.run(ONLY).meta.engine == "kernel-uml"
    assert found.simulated is not None
    assert found.simulated.evidence.run(ONLY).meta.engine == "sim"
    [both] = engines.pairs(found)
    assert both.kernel.ours == both.simulator.ours
    page.write([found], out)
    text = (out / "adt" / "index.html").read_text()
    assert "0 of 1 numbers differ" in text
    assert "0 of 1 claims have another verdict" in text
    [row] = json.loads((out / "adt" / "rows.json").read_text())["numbers"]
    assert row["simulator"] == row["ours"]
    # The manifest has both engines' Runs, and both are judged again.
    manifest = (out / "manifest.json").read_text()
    assert all(f'"adt/{one}/queue/run"' in manifest for one in ("runs", "simulator"))
    [again] = reproduce([paper], engine="kernel-uml", out=out, redraw=True)
    assert again.to_dict() == found.to_dict()


def test_a_differing_number_and_its_claim_have_the_reason_beside_them(
    paper: Paper, tmp_path: Path
) -> None:
    [short] = reproduce([paper], out=tmp_path / "short")
    [study] = paper.studies
    other = replace(paper, studies=(replace(study, scenario="longer.toml"),))
    [longer] = reproduce([other], out=tmp_path / "longer")
    evidence = replace(longer.evidence, engine="kernel-uml")
    for reason in ("", "its queue is longer"):
        numbers = tuple(replace(one, engines=reason) for one in paper.numbers)
        rows = [replace(row, number=numbers[0]) for row in longer.rows]
        found = replace(longer, paper=replace(paper, numbers=numbers), evidence=evidence, rows=rows)
        page.write([replace(found, simulated=short)], tmp_path / "out")
        text = (tmp_path / "out" / "adt" / "index.html").read_text()
        assert "1 of 1 numbers differ" in text
        assert (reason or NO_REASON) in text
        assert "1 of 1 claims have another verdict" in text
        assert "a queue is short: kernel-uml" in text


def test_without_a_kernel_no_second_number_is_shown(paper: Paper, tmp_path: Path) -> None:
    [found] = reproduce([paper], out=tmp_path / "out")
    assert found.simulated is None
    page.write([found], tmp_path / "out")
    assert 'id="engines"' not in (tmp_path / "out" / "adt" / "index.html").read_text()
    assert not (tmp_path / "out" / "adt" / "simulator").exists()


def test_a_paper_s_runs_of_another_build_are_not_redrawn(tmp_path: Path) -> None:
    short = loads(SCENARIO)
    runs.run(short, out=tmp_path / "run")
    job = reproduction._Job(None, None, short, tmp_path / "run", tmp_path / "simulator")
    assert reproduction._reopened(job, find("sim")).seeds == (1,)
    other = make_dataclass("Other", ["name", "build"])("sim", "0" * 16)
    with pytest.raises(UserError, match="another build of the engine sim"):
        reproduction._reopened(job, other)
    with pytest.raises(UserError, match="lacks seeds, or was made"):
        reproduction._reopened(replace(job, scenario=short.with_(seeds=[1, 2])), find("sim"))


def test_the_documentation_has_the_runs_of_a_guest() -> None:
    asked = {
        paper.id: sum(
            len(scenario.seeds)
            for study in paper.studies
            for scenario in study.scenarios(paper.folder, True, "kernel").values()
        )
        for paper in map(papers.load, papers.NAMES)
    }
    runs_ = {name: count for name, count in asked.items() if count}
    text = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `([\w-]+)` \| (\d+) \| \d+ CPU s \|$", text, re.MULTILINE)
    assert {name: int(count) for name, count in table} == runs_
    [engine] = [one for one in reproduce_command.params if one.name == "engine"]
    assert all(name in engine.help for name in runs_)


def test_no_test_of_papers_can_import_live_lines() -> None:
    with pytest.raises(ModuleNotFoundError, match="sojourn_live"):
        importlib.import_module("sojourn_live")
    assert [package.name for package in extras.installed()] == ["sojourn-papers"]
