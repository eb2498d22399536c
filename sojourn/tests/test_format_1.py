"""Files of sojourn 0.1 open. Values that it did not write are null, and reported as not
recorded."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from tree import ROOT

import sojourn
from sojourn import records
from sojourn.cli import status
from sojourn.records import META, TABLES, Run, RunError, dtype, names_of
from sojourn.records.disk import SUMS

OLD = Path(__file__).parent / "recordings" / "format-1"
SINCE = ROOT / "docs" / "site" / "recorded" / "before"
"""A measurement of 0.2.0, before columns were added to its tables."""
COMPARED = OLD / "compared"


def test_the_recordings_are_of_format_1() -> None:
    for meta in OLD.rglob(META):
        assert json.loads(meta.read_text())["format"] == 1
    assert records.FORMAT == 2


def test_an_old_simulation_opens_and_reports_missing_values() -> None:
    runs = Run.find(COMPARED)
    assert [run.name for run in runs] == ["pfifo limit 100", "fq_codel"]
    for run in runs:
        assert (run.meta.format, run.meta.engine_build, run.meta.checksums) == (1, None, {})
        for name in run.tables():
            expected = {
                "seed": pl.Int64,
                **{column.name: dtype(column) for column in TABLES[name].columns},
            }
            assert dict(run.table(name).schema) == expected, name
        document = sojourn.summary(run).to_dict()
        assert (document["engine_build"], document["seeds"]) == (None, [1, 2])
        assert document["summary"]["goodput_mbps"]["mean"] > 1


def test_its_numbers_equal_those_of_version_0_1() -> None:
    # From `sojourn run --json` of 0.1, fq_codel: over both seeds.
    numbers = sojourn.summary(Run.find(COMPARED)[1]).summary
    assert numbers["probes"][0]["rtt_ms"]["max"]["mean"] == pytest.approx(28.53326)
    assert numbers["queues"][1]["dropped_packets"]["mean"] == 7


def test_its_page_is_written_and_reports_missing_values(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert status(["report", str(COMPARED), "-o", str(page)]) == 0
    assert page.read_text().count("not recorded by sojourn 0.1") == 2


def test_an_old_simulation_can_be_compared_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["compare", str(COMPARED)]) == 0
    assert "pfifo limit 100" in capsys.readouterr().out
    # This test does not decide whether the engine still gives the same numbers.
    assert status(["verify", "-q", str(COMPARED)]) in (0, 1)
    assert "the build that made the Run is not recorded" in capsys.readouterr().out


def test_a_column_that_it_lacks_is_null_and_a_number_of_another_type_is_cast(
    tmp_path: Path,
) -> None:
    spoilt = Path(shutil.copytree(COMPARED / "fq-codel", tmp_path / "run"))
    file = spoilt / "seed-1" / "links.parquet"
    had = pl.read_parquet(file)
    had.drop("bql_limit_bytes", "wire_bytes").with_columns(
        pl.col("busy_ns").cast(pl.Float64)
    ).write_parquet(file)
    links = Run.open(spoilt).table("links", 1)
    assert links.columns == list(names_of("links"))
    assert links["wire_bytes"].null_count() == links.height
    assert links["busy_ns"].equals(had["busy_ns"])
    # A Run of today's format has sums.
    meta = spoilt / META
    raw = json.loads(meta.read_text())
    meta.write_text(json.dumps(raw | {"format": 2}))
    with pytest.raises(RunError, match="checksums: a seed is missing"):
        Run.open(spoilt)
    meta.write_text(json.dumps(raw | {"format": 2, "checksums": {"1": "", "2": ""}}))
    with pytest.raises(RunError, match="SHA256SUMS is missing"):
        Run.open(spoilt).table("links", 1)


def test_a_newer_format_is_refused_with_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = Path(shutil.copytree(COMPARED / "fq-codel", tmp_path / "run"))
    raw = json.loads((newer / META).read_text())
    (newer / META).write_text(
        json.dumps(raw | {"format": 3, "version": "0.9", "links": "of another kind"})
    )
    assert status(["report", str(newer), "-o", str(tmp_path / "x.html")]) == 2
    assert "was written by a newer sojourn (0.9)" in capsys.readouterr().err


def test_a_newer_column_is_null_and_a_missing_older_one_is_an_error(
    tmp_path: Path,
) -> None:
    spoilt = Path(shutil.copytree(SINCE, tmp_path / "run"))
    file = spoilt / "seed-1" / "queue.parquet"
    had = pl.read_parquet(file)
    added = [name for name in names_of("queue") if name not in had.columns]
    assert {"classic_delay_ns", "l4s_delay_ns"} <= set(added)
    run = Run.open(SINCE)
    assert run.meta.format == records.FORMAT
    table = run.table("queue", 1)
    assert table.columns == list(names_of("queue"))
    assert table[added].null_count().row(0) == (table.height,) * len(added)
    had.drop("t_ns").write_parquet(file)
    sums = spoilt / "seed-1" / SUMS
    new = hashlib.sha256(file.read_bytes()).hexdigest()
    lines = [
        f"{new}  queue.parquet" if line.endswith(" queue.parquet") else line
        for line in sums.read_text().splitlines()
    ]
    sums.write_text("\n".join(lines) + "\n")
    meta = json.loads((spoilt / META).read_text())
    meta["checksums"] = {"1": hashlib.sha256(sums.read_bytes()).hexdigest()}
    (spoilt / META).write_text(json.dumps(meta))
    with pytest.raises(RunError, match="it is not a table 'queue'"):
        Run.open(spoilt).table("queue", 1)
