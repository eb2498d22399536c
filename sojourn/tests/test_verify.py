"""A Run's fingerprint names everything that decides its tables. A Run can be run again and
compared, table by table."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from small_run import small_run
from tree import ROOT

import sojourn
from sojourn import _core
from sojourn.cli import status
from sojourn.engine import find, fingerprint, run, run_all, variants
from sojourn.engine.verify import CellDifference, first_difference, verify
from sojourn.records import META, SUMS, Run
from sojourn.scenario import Scenario, loads

SHORT = """
title = "An upload and a ping"
duration = "2 s"
[bottleneck]
rate = "2 Mbit/s"
delay = "5 ms"
qdisc = "codel"
[[flow]]
kind = "bulk"
direction = "up"
rtt = "uniform 30 ms .. 50 ms"
start = "uniform 0 s .. 500 ms"
[[flow]]
kind = "ping"
"""


def short() -> Scenario:
    return loads(SHORT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Run with two seeds."""
    return run(short(), seeds=[3, 1], out=tmp_path_factory.mktemp("verify") / "run").path


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of the Run, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def change_meta(folder: Path, **values: object) -> None:
    file = folder / META
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def change_table(folder: Path, seed: int, name: str, table: pl.DataFrame) -> None:
    """Replaces a table, with checksums as if it had been written so."""
    run = Run.open(folder)
    rewritten = Run(folder, run.meta)
    place = folder / f"seed-{seed}"
    table.write_parquet(place / f"{name}.parquet")
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(place.glob("*.parquet"))
    ]
    (place / SUMS).write_text("".join(lines))
    sums = {
        **rewritten.meta.checksums,
        str(seed): hashlib.sha256("".join(lines).encode()).hexdigest(),
    }
    change_meta(folder, checksums=sums)


# -------------------------------------------------------------------------------- the fingerprint


def test_the_fingerprint_names_the_seeds_that_are_run_in_any_order() -> None:
    named = {
        seeds: short().fingerprint(seeds)
        for seeds in ((1,), (7,), (1, 7), (7, 1), (1, 2, 7), (1, 1))
    }
    assert named[1, 7] == named[7, 1]
    assert named[1,] == named[1, 1] == short().fingerprint()
    assert len({named[seeds] for seeds in ((1,), (7,), (1, 7), (1, 2, 7))}) == 4


def test_the_fingerprint_of_a_run_changes_with_the_build_and_with_what_is_run() -> None:
    what = short().fingerprint()
    assert fingerprint(what, "a") != fingerprint(what, "b")
    other = short().with_({"flow.0.rtt": "uniform 30 ms .. 51 ms"}).fingerprint()
    assert fingerprint(what, "a") != fingerprint(other, "a")
    assert find("sim").build == _core.ENGINE


def test_runs_of_other_seeds_have_other_fingerprints() -> None:
    one, two = run(short(), seeds=[1]), run(short(), seeds=[7, 8])
    assert one.meta.fingerprint != two.meta.fingerprint
    assert one.meta.fingerprint == fingerprint(short().fingerprint([1]), _core.ENGINE)
    assert one.meta.engine_build == two.meta.engine_build == _core.ENGINE


def test_the_numbers_name_the_engine_s_build(whole: Path) -> None:
    assert sojourn.summary(Run.open(whole)).to_dict()["engine_build"] == _core.ENGINE


# -------------------------------------------------------------------------------------- run again


def test_a_run_equals_its_repetition(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()}
    assert status(["verify", "-q", str(whole)]) == 0
    output = capsys.readouterr().out
    assert "every table is equal" in output
    assert "the same" in output
    assert "seed 1: 10 of 10" in output
    assert "seed 3: 10 of 10" in output
    assert {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()} == before


def test_every_variant_of_a_comparison_or_sweep_equals_its_repetition(tmp_path: Path) -> None:
    # `red` is completed for the link's rate; a label does not change the run.
    run_all(variants(short(), ["pfifo limit 50", "red", "fq_codel"]), out=tmp_path / "compared")
    swept = short().with_({"sweep.bottleneck.rate": ["1 Mbit/s", "2 Mbit/s"]})
    run_all(swept, out=tmp_path / "swept", seeds=2)
    runs = [*Run.find(tmp_path / "compared"), *Run.find(tmp_path / "swept")]
    found = verify(runs)
    assert [one.run.path for one in found] == [run.path for run in runs]
    assert all(one.equal and one.same_build and one.same_scenario for one in found)


def test_the_first_differing_cell_is_reported(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = Run.open(copy).table("flows", 3)
    changed = flows.with_columns(
        sent_bytes=pl.when(pl.col("flow") == "bulk")
        .then(pl.col("sent_bytes") + 1)
        .otherwise("sent_bytes"),
        base_rtt_ns=pl.lit(None, dtype=pl.Int64),
    )
    change_table(copy, 3, "flows", changed)
    assert status(["verify", "-q", "--json", str(copy)]) == 1
    document = json.loads(capsys.readouterr().out)
    apart = [table for table in document["runs"][0]["tables"] if not table["equal"]]
    assert [(table["seed"], table["table"]) for table in apart] == [(3, "flows")]
    sent = int(flows["sent_bytes"][0])
    assert apart[0]["difference"] == {
        "row": 0,
        "column": "sent_bytes",
        "recorded": sent + 1,
        "now": sent,
    }
    assert status(["verify", "-q", str(copy)]) == 1
    shown = capsys.readouterr().out
    assert f"flows: row 0, sent_bytes: recorded {sent + 1}, now {sent}" in shown
    assert "seed 1: 10 of 10" in shown
    assert "seed 3: 9 of 10" in shown


def test_a_null_is_not_equal_to_a_number_but_to_a_null() -> None:
    one = pl.DataFrame({"a": [None, 1, 2], "b": ["x", None, None]})
    assert first_difference(one, one) is None
    other = pl.DataFrame({"a": [None, 1, None], "b": ["x", "y", None]})
    assert first_difference(one, other) == CellDifference(1, "b", None, "y")


def test_a_table_with_fewer_rows_differs(copy: Path) -> None:
    queue = Run.open(copy).table("queue", 1)
    change_table(copy, 1, "queue", queue.head(5))
    (found,) = verify([Run.open(copy)])
    (apart,) = [table for table in found.tables if not table.equal]
    assert apart.why == f"recorded 5 rows, now {queue.height}"


def test_a_damaged_table_and_a_lost_one_differ(copy: Path) -> None:
    file = copy / "seed-1" / "probe.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    (copy / "seed-1" / "drops.parquet").unlink()
    (found,) = verify([Run.open(copy)])
    why = {table.table: table.why for table in found.tables if not table.equal}
    assert set(why) == {"probe", "drops"}
    assert "SHA-256" in why["probe"]
    assert why["drops"] == "missing in the Run"


def test_a_link_that_the_scenario_lacks_is_reported(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = json.loads((copy / META).read_text())["links"]
    links[0]["rate_bps"] += 1
    change_meta(copy, links=links)
    assert status(["verify", "-q", str(copy)]) == 1
    output = capsys.readouterr().out
    assert "DIFFERS" in output
    assert "meta.json differs in: links" in output


def test_a_changed_scenario_is_distinguished_from_a_changed_engine(copy: Path) -> None:
    file = copy / "scenario.toml"
    file.write_text(file.read_text().replace('"codel"', '"codel target 6ms"'))
    (found,) = verify([Run.open(copy)])
    assert (found.same_scenario, found.same_build) == (False, True)


def test_the_cause_is_printed_first_and_a_seed_takes_few_lines(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = copy / "scenario.toml"
    file.write_text(
        file.read_text()
        .replace('"codel"', '"codel target 6ms"')
        .replace("rtt = ", "rtt = 'uniform 31 ms .. 50 ms' #")
    )
    for name in ("drops", "marks", "events"):
        (copy / "seed-1" / f"{name}.parquet").unlink(missing_ok=True)
    assert status(["verify", "-q", str(copy)]) == 1
    head, cause, *rest = capsys.readouterr().out.splitlines()
    assert head.endswith("DIFFERS")
    assert "scenario.toml differs from the scenario of this Run" in cause
    at = [number for number, line in enumerate(rest) if line.startswith("  seed ")]
    for begin, end in zip(at, [*at[1:], len(rest)], strict=True):
        differences = [line for line in rest[begin + 1 : end] if line.startswith("    ")]
        assert len(differences) <= 4
        assert sum("missing in the Run" in line for line in differences) <= 1
    assert any(re.fullmatch(r"    and \d+ more: .*", line) for line in rest)


def test_another_build_is_reported(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = Run.open(copy).meta.seeds_asked
    change_meta(
        copy, engine_build="0" * 16, fingerprint=fingerprint(short().fingerprint(seeds), "0" * 16)
    )
    (found,) = verify([Run.open(copy)])
    assert (found.equal, found.same_scenario, found.same_build) == (True, True, False)
    assert status(["verify", "-q", str(copy)]) == 0
    assert f"but {'0' * 16} made the Run" in capsys.readouterr().out


def test_an_interrupted_run_is_verified_as_far_as_it_got(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = Run.open(copy).meta
    change_meta(copy, seeds=[1])
    assert status(["verify", "-q", str(copy)]) == 0
    assert "not finished, so not run again: seed 3" in capsys.readouterr().out
    assert Run.open(copy).meta.seeds_asked == meta.seeds_asked


# ------------------------------------------------------------------------ what can't be run again


def test_a_measurement_can_t_be_run_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = ROOT / "docs" / "site" / "recorded" / "before"
    assert status(["verify", "-q", str(made)]) == 2
    output = capsys.readouterr().err
    assert "can't be made again" in output
    assert "10 tables are intact" in output
    assert "sojourn compare" in output


def test_real_time_and_no_seed_can_t_be_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_run(tmp_path / "netns")
    change_meta(tmp_path / "netns", engine="netns")
    assert status(["verify", "-q", str(tmp_path / "netns")]) == 2
    assert "no two runs of it are alike" in capsys.readouterr().err
    small_run(tmp_path / "none", seeds=())
    assert status(["verify", "-q", str(tmp_path / "none")]) == 2
    assert "no seed has finished" in capsys.readouterr().err


def test_no_run_starts_if_one_of_them_can_t_be_run(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "run", lambda *_: pytest.fail("it was run"))
    small_run(tmp_path / "none", seeds=())
    assert status(["verify", "-q", str(whole), str(tmp_path / "none")]) == 2


def test_a_run_without_a_valid_scenario_is_reported(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / "scenario.toml").write_text("duration = 3")
    assert status(["verify", "-q", str(copy)]) == 2
    (copy / "scenario.toml").unlink()
    assert status(["verify", "-q", str(copy)]) == 2
    assert "scenario.toml is missing" in capsys.readouterr().err
