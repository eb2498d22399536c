"""Runs on disk: written completely or not at all, never over a user's files, and readable while
they grow."""

import dataclasses
import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small_run import CAUSES, MS, small_meta, small_run, small_tables

from sojourn import metrics, records
from sojourn.records import META, TABLES, Run, RunError, disk, dtype
from sojourn.records import run as records_run
from sojourn.records.run import TableCache
from sojourn.records.schema import ON_REQUEST


def test_a_run_reads_back_as_it_was_written(tmp_path: Path) -> None:
    written = small_run(tmp_path / "run")
    read = Run.open(tmp_path / "run")
    assert read.meta == written.meta
    assert read.seeds == (1, 2)
    assert read.scenario_text == 'title = "Two flows and a ping"\n'


def test_every_table_has_exactly_the_columns_it_promises(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", kind="transfers")
    for name in run.tables():
        promised = {column.name: dtype(column) for column in TABLES[name].columns}
        assert dict(run.table(name, seed=1).schema) == promised, name
    assert set(run.tables()) == set(TABLES) - set(ON_REQUEST)


def test_numbers_of_links_flows_and_causes_become_names(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    assert run.table("drops", seed=1)["link"].unique().to_list() == ["bottleneck"]
    assert run.table("drops", seed=1)["flow"].to_list()[:3] == ["first", "first", "second"]
    assert run.table("drops", seed=1)["cause"].to_list()[:2] == ["early", "limit"]
    assert run.table("probe", seed=1)["probe"].unique().to_list() == ["ping"]


def test_without_a_seed_a_table_has_all_seeds(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", seeds=(1, 5))
    both = run.table("flows")
    assert both.columns[0] == "seed"
    assert both["seed"].to_list() == [1, 1, 1, 5, 5, 5]
    assert both.filter(pl.col("seed") == 5).drop("seed").equals(run.table("flows", seed=5))


def test_the_same_tables_are_the_same_bytes(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    small_run(tmp_path / "two")
    for file in sorted((tmp_path / "one").rglob("*.parquet")):
        assert (
            file.read_bytes()
            == (tmp_path / "two" / file.relative_to(tmp_path / "one")).read_bytes()
        ), file.name


def test_a_column_that_is_missing_or_new_is_refused(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", small_meta(), "")
    tables = small_tables()
    tables["links"]["surprise"] = np.zeros(1)
    with pytest.raises(ValueError, match="surprise"):
        run.add_seed(1, tables, CAUSES)
    del tables["links"]["surprise"], tables["links"]["busy_ns"]
    with pytest.raises(ValueError, match="busy_ns"):
        run.add_seed(1, tables, CAUSES)
    assert not [path for path in (tmp_path / "run").iterdir() if "seed" in path.name]


def test_the_name_of_a_column_has_its_unit() -> None:
    units = {column.name: column.unit for table in TABLES.values() for column in table.columns}
    assert units["t_ns"] == units["sojourn_mean_ns"] == "ns"
    assert units["cwnd_bytes"] == "bytes"
    assert units["capacity_bits"] == "bits"
    assert units["link"] == units["seq"] == ""


# ---------------------------------------------------------------------------- whole or not at all


def test_a_seed_that_can_not_be_written_leaves_nothing_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run(tmp_path / "run", seeds=(1,))
    real = Path.write_bytes

    def full(self: Path, data: Any) -> int:
        if self.name == "links.parquet":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunError, match="No space left"):
        run.add_seed(2, small_tables(), CAUSES)
    monkeypatch.undo()
    read = Run.open(tmp_path / "run")
    assert read.seeds == (1,)
    assert read.table("links").height == 1
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "meta.json",
        "scenario.toml",
        "seed-1",
    ]


def test_meta_names_a_seed_only_when_its_tables_are_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run(tmp_path / "run", seeds=(1,))
    seen: list[tuple[set[str], list[int]]] = []
    real: Callable[..., None] = os.replace

    def watched(source: Any, target: Any) -> None:
        real(source, target)
        folder = tmp_path / "run"
        there = {path.name for path in folder.iterdir() if path.name.startswith("seed-")}
        seen.append((there, json.loads((folder / META).read_text())["seeds"]))

    monkeypatch.setattr(os, "replace", watched)
    run.add_seed(2, small_tables(), CAUSES)
    assert seen == [({"seed-1", "seed-2"}, [1]), ({"seed-1", "seed-2"}, [1, 2])]


def test_remains_of_a_killed_process_do_not_count_as_a_seed(tmp_path: Path) -> None:
    small_run(tmp_path / "run", seeds=(1,))
    (tmp_path / "run" / ".seed-2.4242").mkdir()
    (tmp_path / "run" / "seed-3").mkdir()  # renamed, but without its entry in meta.json
    assert Run.open(tmp_path / "run").seeds == (1,)
    assert Run.open(tmp_path / "run").table("links")["seed"].to_list() == [1]


# ------------------------------------------------------------------------------ never over others


def test_a_folder_with_other_files_is_refused_even_by_force(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for force in (False, True):
        with pytest.raises(RunError, match="not a Run"):
            Run.create(tmp_path, small_meta(), "", force=force)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("left", ["", "title = ", "title = 'mine'\n"])
def test_files_of_a_run_killed_before_meta_json_do_not_block_the_folder(
    tmp_path: Path, left: str
) -> None:
    text = "title = 'mine'\n"
    (tmp_path / "scenario.toml").write_text(left)
    (tmp_path / ".meta.json.d0a7c9bec349f010").write_text("{")
    assert Run.create(tmp_path, small_meta(), text).scenario_text == text


def test_another_scenario_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("title = 'another'\n")
    with pytest.raises(RunError, match="not a Run"):
        Run.create(tmp_path, small_meta(), "title = 'mine'\n", force=True)
    assert (tmp_path / "scenario.toml").read_text() == "title = 'another'\n"


def test_a_run_is_replaced_only_by_force(tmp_path: Path) -> None:
    small_run(tmp_path / "run", seeds=(1, 2))
    with pytest.raises(RunError, match="already holds a Run") as error:
        Run.create(tmp_path / "run", small_meta(), "")
    assert "--force" in error.value.hint
    assert Run.open(tmp_path / "run").seeds == (1, 2)
    Run.create(tmp_path / "run", small_meta(), "", force=True)
    assert Run.open(tmp_path / "run").seeds == ()


def test_of_two_runs_that_start_at_once_in_one_folder_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_run, "check_vacant", lambda *_, **__: None)
    monkeypatch.setattr(records_run, "remove_run", lambda _: None)
    first = Run.create(tmp_path / "run", small_meta(), "first")
    with pytest.raises(RunError, match="already holds a Run"):
        Run.create(tmp_path / "run", small_meta(), "second")
    assert first.scenario_text == "first"


def test_a_run_that_was_replaced_meanwhile_is_not_written_into(tmp_path: Path) -> None:
    first = Run.create(tmp_path / "run", small_meta(), "first")
    other = dataclasses.replace(small_meta(), fingerprint="another")
    Run.create(tmp_path / "run", other, "second", force=True)
    with pytest.raises(RunError, match="was replaced by another Run"):
        first.add_seed(1, small_tables(), CAUSES)
    assert Run.open(tmp_path / "run").seeds == ()


def test_replacing_a_run_leaves_what_lies_beside_it(tmp_path: Path) -> None:
    small_run(tmp_path / "run")
    (tmp_path / "run" / "notes.md").write_text("mine")
    Run.create(tmp_path / "run", small_meta(), "", force=True)
    assert (tmp_path / "run" / "notes.md").read_text() == "mine"
    assert not (tmp_path / "run" / "seed-1").exists()


def test_another_program_s_meta_json_does_not_make_a_folder_a_run(tmp_path: Path) -> None:
    (tmp_path / META).write_text('{"name": "something else"}')
    with pytest.raises(RunError, match="damaged or not a Run's"):
        Run.create(tmp_path, small_meta(), "", force=True)
    assert (tmp_path / META).read_text() == '{"name": "something else"}'


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file"):
        Run.create(tmp_path / "file", small_meta(), "")


def test_room_is_checked_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.check_room(tmp_path / "not" / "there" / "yet", 1000)
    assert not (tmp_path / "not").exists()
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5_000_000))
    with pytest.raises(RunError, match="5 MB free, and the tables may take 80 MB"):
        records.check_room(tmp_path, 80_000_000)


def test_a_path_below_a_file_has_no_room(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="can't write"):
        records.check_room(tmp_path / "file" / "run", 0)


# ---------------------------------------------------------------------------------- wrong folders


def test_a_folder_that_is_not_a_run_gives_an_error_with_a_hint(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "nothing", "not a folder"), (tmp_path, "not a Run")):
        with pytest.raises(RunError, match=words) as error:
            Run.open(path)
        assert error.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"format": 1}', '{"format": "1"}', '{"format": 1, "title": 3, "x": 1}'],
)
def test_a_damaged_meta_gives_an_error_with_a_hint(tmp_path: Path, text: str) -> None:
    (tmp_path / META).write_text(text)
    with pytest.raises(RunError, match="damaged"):
        Run.open(tmp_path)


def test_a_run_of_a_newer_sojourn_gives_an_error_with_a_hint(tmp_path: Path) -> None:
    small_run(tmp_path / "run")
    file = tmp_path / "run" / META
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 99}))
    with pytest.raises(RunError, match="newer sojourn"):
        Run.open(tmp_path / "run")


def test_a_damaged_or_missing_table_gives_an_error_with_a_hint(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    file = tmp_path / "run" / "seed-1" / "links.parquet"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RunError, match="can't be read"):
        run.table("links")
    file.unlink()
    with pytest.raises(RunError, match="missing"):
        run.table("links")


def test_the_error_for_unrecorded_packets_says_how_to_record_them(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not recorded") as error:
        small_run(tmp_path / "run").table("packets")
    assert "[record]" in error.value.hint


def test_an_unknown_table_or_seed_gives_an_error_with_a_hint(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", seeds=(1,))
    with pytest.raises(RunError, match="no table 'qeue'"):
        run.table("qeue")
    with pytest.raises(RunError, match="seed 7 has not finished"):
        run.table("queue", seed=7)


# ------------------------------------------------------------------------------------ read again


def test_while_tables_are_held_each_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run(tmp_path / "run")
    read: list[str] = []
    real = disk.content_of
    monkeypatch.setattr(
        "sojourn.records.run.content_of",
        lambda file, *most: (read.append(file.name), real(file, *most))[1],
    )
    with records.holding([run]), records.holding([run]):
        tables = [run.table("links"), run.table("links"), run.table("flows", 1)]
        assert read.count("links.parquet") == 2, "one file per seed"
    assert tables[0].equals(tables[1])
    run.table("links", 1)
    assert read.count("links.parquet") == 3, "read again after the block"


def test_no_more_is_held_than_there_is_room_for(tmp_path: Path) -> None:
    table = small_run(tmp_path / "run").table("links")
    cache = TableCache(int(2.5 * table.estimated_size()))
    keys = [(tmp_path, seed, "links") for seed in (1, 2, 3)]
    for key in keys[:2]:
        cache.add(key, table)
    assert cache.get(keys[0]) is not None
    cache.add(keys[2], table)
    assert [cache.get(key) is not None for key in keys] == [True, False, True]


def test_a_second_summary_detects_damage_since_the_first(tmp_path: Path) -> None:
    small_run(tmp_path / "run")
    run = Run.open(tmp_path / "run")
    assert metrics.summary(run).to_json() == metrics.summary(run).to_json()
    file = tmp_path / "run" / "seed-2" / "rtt.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RunError, match=r"rtt\.parquet"):
        metrics.summary(run)


# ------------------------------------------------------------------------------ several and short


def test_a_folder_of_runs_is_found_in_its_order(tmp_path: Path) -> None:
    for label in ("red", "codel", "adt"):
        small_run(tmp_path / label, label=label)
    records.write_index(tmp_path, ["red", "codel", "adt"])
    assert [run.name for run in Run.find(tmp_path)] == ["red", "codel", "adt"]
    assert [run.name for run in Run.find(tmp_path / "codel")] == ["codel"]


def test_a_temporary_run_lives_as_long_as_the_object() -> None:
    run = Run.create_temporary(small_meta(), "")
    run.add_seed(1, small_tables(), CAUSES)
    folder = run.path
    assert run.table("links")["sojourn_max_ns"].to_list() == [30 * MS]
    del run
    assert not folder.exists()
