"""A damaged Run of a measurement is read or refused with a clear error, like that of a simulation
(sojourn/tests/test_damaged.py)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import synthetic_live
from damage import CASES, refused_or_read
from synthetic_live import Line
from tree import ROOT

from sojourn import meta as metas
from sojourn.cli import status
from sojourn.records import META

OLD = ROOT / "sojourn" / "tests" / "recordings" / "format-1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A measurement, and one in the format of 0.1."""
    folder = tmp_path_factory.mktemp("whole")
    line = Line(phases=(("idle", 1), ("download", 2), ("upload", 2)), probe_ms=200, streams=1)
    synthetic_live.run(folder / "line", line)
    return {"line": folder / "line", "old line": OLD / "measured"}


@pytest.mark.parametrize("which", ["line", "old line"])
@pytest.mark.parametrize("case", CASES)
def test_a_damaged_measurement_is_either_refused_or_read_without_a_crash(
    which: str, case: int, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused_or_read(runs[which], case, tmp_path, capsys)


def test_written_tables_are_read_back_unchanged(tmp_path: Path) -> None:
    run = synthetic_live.run(tmp_path / "line", Line())
    assert metas.read((run.path / META).read_bytes()) == run.meta


def test_a_folder_s_name_need_not_be_utf_8(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/o\xff")
    line = Line(phases=(("idle", 1), ("upload", 2)), probe_ms=200, streams=1)
    made = synthetic_live.run(Path(f"{folder}-line"), line)
    assert made.meta.label == "o\ufffd-line"
    assert status(["export", str(made.path), "-o", f"{folder}.csv", "-q"]) == 0
    assert status(["compare", str(made.path), str(made.path)]) == 0
