"""A damaged or forged Run is read or refused with a message. There is never a traceback, and no
damage is ignored."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from damage import CASES, refused_or_read
from small_run import small_run

from sojourn import meta as metas
from sojourn import sanitize
from sojourn.cli import status
from sojourn.records import INDEX, META, SCENARIO, SUMS, Run, RunError, write_index
from sojourn.scenario import load

OLD = Path(__file__).parent / "recordings" / "format-1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A simulation, and the same as sojourn 0.1 wrote it."""
    folder = tmp_path_factory.mktemp("whole")
    small_run(folder / "sim", seeds=(1, 2))
    return {"sim": folder / "sim", "old sim": OLD / "compared" / "fq-codel"}


@pytest.mark.parametrize("which", ["sim", "old sim"])
@pytest.mark.parametrize("case", CASES)
def test_a_damaged_run_is_either_refused_or_read_without_a_crash(
    which: str, case: int, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused_or_read(runs[which], case, tmp_path, capsys)


def test_a_flipped_bit_anywhere_in_a_table_is_detected(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", seeds=(1,))
    file = tmp_path / "run" / "seed-1" / "links.parquet"
    content = file.read_bytes()
    for at in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        file.write_bytes(flipped)
        with pytest.raises(RunError, match="SHA-256 is not the one in SHA256SUMS"):
            run.table("links", 1)
    file.write_bytes(content)
    assert run.table("links", 1).height == 1


def test_the_sums_are_those_of_sha256sum_and_meta_names_them(tmp_path: Path) -> None:
    from hashlib import sha256

    run = small_run(tmp_path / "run")
    for seed in run.seeds:
        listed = (tmp_path / "run" / f"seed-{seed}" / SUMS).read_bytes()
        assert run.meta.checksums[str(seed)] == sha256(listed).hexdigest()
        names = {}
        for line in listed.decode().splitlines():
            digest, name = line.split("  ")
            names[name] = digest
        folder = tmp_path / "run" / f"seed-{seed}"
        assert names == {
            file.name: sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.parquet")
        }


def test_a_seed_s_folder_in_another_s_place_is_detected(tmp_path: Path) -> None:
    small_run(tmp_path / "run", seeds=(1, 2))
    shutil.rmtree(tmp_path / "run" / "seed-1")
    shutil.copytree(tmp_path / "run" / "seed-2", tmp_path / "run" / "seed-1")
    run = Run.open(tmp_path / "run")
    assert run.table("flows", 2).height == 3
    with pytest.raises(RunError, match=r"not the one that meta\.json names"):
        run.table("flows", 1)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"links": [{"name": "x", "qdisc": "pfifo", "rate_bps": "x"}]}, "links.0.rate_bps"),
        ({"seeds": ["../x"]}, "seeds.0"),
        ({"seeds": [True]}, "seeds.0"),
        ({"seeds": [2, 1]}, "seeds: not ascending"),
        ({"label": None}, "label"),
        ({"cpu_s": {"1": "much"}}, "cpu_s.1"),
        ({"cpu_s": {}}, "cpu_s: a seed is missing"),
        ({"checksums": {}}, "checksums: a seed is missing"),
        ({"facts": {"1": {"notes": "none"}}}, "1.notes"),
        ({"phases": [{"name": "idle", "kind": "idle", "start_ns": 2, "end_ns": 1}]}, "ends before it begins"),
        ({"duration_ns": 2**63}, "duration_ns"),
        ({"duration_ns": 1}, "shorter than the warm-up"),
        ({"title": "\ud800"}, "Invalid JSON"),
        ({"duration_ns": float("nan")}, "NaN is not a number"),
        ({"cpu_s": {"1": 10**400}}, "cpu_s.1: number out of range"),
        ({"flows": {}}, "flows: expected `array`, got `object`"),
        ({"flows": [7]}, "flows.0: expected `object`, got `int`"),
        ({"links": [{"name": "x", "rate_bps": 1}]}, "links.0: object missing required field `qdisc`"),
        ({"phases": [{"name": "idle", "kind": "idle", "start_ns": 0, "end_ns": 1, "complete": 1}]}, "phases.0.complete: expected `bool`, got `int`"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_named(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    small_run(tmp_path / "run")
    file = tmp_path / "run" / META
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(RunError, match="damaged or not a Run's") as error:
        Run.open(tmp_path / "run")
    assert says in error.value.problem


def test_a_table_of_another_run_is_refused_even_without_sums(tmp_path: Path) -> None:
    spoilt = Path(shutil.copytree(OLD / "compared" / "fq-codel", tmp_path / "old"))
    swap = {"queue": "flow", "rtt": "sojourn", "probe": "flows"}
    for name, other in swap.items():
        shutil.copy(spoilt / "seed-1" / f"{other}.parquet", spoilt / "seed-1" / f"{name}.parquet")
        with pytest.raises(RunError, match=f"it is not a table '{name}'"):
            Run.open(spoilt).table(name, 1)
    flows = pl.read_parquet(spoilt / "seed-1" / "flows.parquet")
    flows.head(2).write_parquet(spoilt / "seed-1" / "flows.parquet")
    with pytest.raises(RunError, match="does not have one row for each flow"):
        Run.open(spoilt).table("flows", 1)
    flows.with_columns(flow=pl.lit("stranger")).write_parquet(spoilt / "seed-1" / "flows.parquet")
    with pytest.raises(RunError, match="a flow that the Run does not have"):
        Run.open(spoilt).table("flows", 1)
    flows.with_columns(sent_packets=pl.lit("many")).write_parquet(
        spoilt / "seed-1" / "flows.parquet"
    )
    with pytest.raises(RunError, match="its column sent_packets holds String"):
        Run.open(spoilt).table("flows", 1)


def test_a_table_of_few_bytes_and_many_rows_is_refused(tmp_path: Path) -> None:
    # Equal rows take almost no space in Parquet: 40 million of them took 5 GB in memory.
    run = Path(small_run(tmp_path / "run").path)
    seed = run / "seed-1"
    row = pl.read_parquet(seed / "queue.parquet").head(1)
    many = pl.concat([row] * 1000)
    many = pl.concat([many] * 1000)
    many.write_parquet(seed / "queue.parquet", compression="zstd")
    size = (seed / "queue.parquet").stat().st_size
    assert size < 200_000
    lines = [line.partition("  ")[2] for line in (seed / SUMS).read_text().splitlines()]
    sums = "".join(
        f"{hashlib.sha256((seed / name).read_bytes()).hexdigest()}  {name}\n" for name in lines
    )
    (seed / SUMS).write_text(sums)
    meta = json.loads((run / META).read_text())
    meta["checksums"]["1"] = hashlib.sha256(sums.encode()).hexdigest()
    (run / META).write_text(json.dumps(meta))
    with pytest.raises(
        RunError, match=f"1000000 rows in {size} bytes are more than sojourn writes"
    ):
        Run.open(run).table("queue", 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b" " * (sanitize.MOST_JSON_BYTES + 1), "bytes, but at most"),
        (b'{"x": [' + b"[]," * sanitize.MOST_JSON_VALUES + b"0]}", "more than 1500000 values"),
    ],
    ids=["long", "many"],
)
def test_a_meta_that_would_fill_the_memory_is_refused(
    tmp_path: Path, text: bytes, says: str
) -> None:
    run = Path(small_run(tmp_path / "run").path)
    (run / META).write_bytes(text)
    with pytest.raises(RunError, match=says):
        Run.open(run)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"runs": "run"}', '{"runs": []}', '{"runs": [1]}', '{"runs": ["../run"]}',
             '{"runs": [".."]}', '{"runs": ["/etc"]}', "[" * 100_000]
)  # fmt: skip
def test_an_invalid_list_of_runs_is_refused(tmp_path: Path, text: str) -> None:
    small_run(tmp_path / "all" / "run")
    write_index(tmp_path / "all", ["run"])
    assert len(Run.find(tmp_path / "all")) == 1
    (tmp_path / "all" / INDEX).write_text(text)
    with pytest.raises(RunError, match="not a list of Runs"):
        Run.find(tmp_path / "all")


def test_control_characters_in_a_stranger_s_run_reach_no_terminal_and_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_run(tmp_path / "run")
    file = tmp_path / "run" / META
    nasty = "a\x1b]0;pwn\x07b\x9b31m"
    changes = {
        "title": nasty,
        "label": nasty,
        "version": nasty,
        "invalid": [f"seed 1: {nasty}"],
        "host": {nasty: nasty},
    }
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    (tmp_path / "run" / SCENARIO).write_bytes(f'title = "{nasty}"\r\n'.encode())
    page = tmp_path / "page.html"
    assert status(["report", str(tmp_path / "run"), "-o", str(page)]) == 0
    captured = capsys.readouterr()
    assert "INVALID" in captured.err
    assert "a\ufffd]0;pwn\ufffdb" in captured.err
    for text in (captured.out, captured.err, page.read_text()):
        assert not set("\x1b\x07\x9b") & set(text)
    # Tables refer to flows and links by their names.
    raw = json.loads(file.read_text())
    raw["flows"][0]["name"] = nasty
    file.write_text(json.dumps(raw))
    with pytest.raises(RunError, match="a name is empty or has control characters"):
        Run.open(tmp_path / "run")


def test_written_tables_are_read_back_unchanged(tmp_path: Path) -> None:
    run = small_run(tmp_path / "sim", kind="transfers")
    assert metas.read((run.path / META).read_bytes()) == run.meta


# --------------------------------------------------------------------------- damage during a read


def test_a_replaced_run_is_not_read_as_the_former_one(tmp_path: Path) -> None:
    import dataclasses

    from small_run import small_meta

    first = small_run(tmp_path / "run", seeds=(1,))
    second = Run.create(
        tmp_path / "run",
        dataclasses.replace(small_meta(), fingerprint="another"),
        "second",
        force=True,
    )
    with pytest.raises(RunError, match="was replaced by another Run"):
        first.table("links")
    assert second.seeds == ()


def test_a_folder_that_is_removed_during_a_read_is_not_made_again(tmp_path: Path) -> None:
    from small_run import CAUSES, small_tables

    run = small_run(tmp_path / "run", seeds=(1,))
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(RunError, match="moved or removed"):
        run.add_seed(2, small_tables(), CAUSES)
    assert not (tmp_path / "run").exists()


def test_a_scenario_s_name_need_not_be_utf_8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/o\xff"))
    folder.mkdir()
    file = folder / os.fsdecode(b"\xfe.toml")
    sound = 'duration = "1 s"\n[bottleneck]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'
    file.write_text(f'{sound}[[flow]]\nkind = "bulk"\n')
    # The file's name is not valid UTF-8, so it can't be the title.
    assert load(file).title == "untitled"
    for data, reason in ((b"duration = 60", "needs a unit"), (b"\xff", "not UTF-8")):
        file.write_bytes(data)
        assert status(["check", str(file)]) == 2
        stderr = capsys.readouterr().err
        assert "o\ufffd/\ufffd.toml:1:" in stderr
        assert reason in stderr
    for wrong, reason in (
        (folder, "folder"),
        (folder / "\udcfe", "write"),
        (folder / "x", "No such file"),
    ):
        assert status(["check", str(wrong)]) == 2
        stderr = capsys.readouterr().err
        assert "o\ufffd" in stderr
        assert reason in stderr


def test_a_folder_s_name_need_not_be_utf_8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/o\xff")
    scenario = tmp_path / "one.toml"
    scenario.write_text(
        'duration = "1 s"\n[bottleneck]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n[[flow]]\nkind = "bulk"\n'
    )
    assert status(["run", str(scenario), "-o", folder, "-q"]) == 0
    assert status(["run", str(scenario), "-o", folder, "-q", "--seeds", "2"]) == 2
    assert "o\ufffd already holds a Run" in capsys.readouterr().err
    assert status(["report", folder, "-o", f"{folder}.html"]) == 0
    assert status(["verify", "-q", folder]) == 0
