"""Measurements of sojourn 0.1 can be opened, and so can one of 0.2.0 from before columns were added
to its tables (sojourn/tests/test_format_1.py has the same tests of simulations)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tree import ROOT

from sojourn.cli import status
from sojourn.records import META, Run
from sojourn_live.measure import findings
from sojourn_live.monitor.store import FORMAT, ProbeSamples, Reader, S, Store

MEASURED = ROOT / "sojourn" / "tests" / "recordings" / "format-1" / "measured"
DATABASE = Path(__file__).parent / "recordings" / "monitor-1.db"
SINCE = ROOT / "docs" / "site" / "recorded" / "before"
BEGAN_S = 1_795_000_000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return Path(shutil.copy(DATABASE, tmp_path / "monitor.db"))


def user_version(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_the_recordings_are_of_format_1() -> None:
    assert json.loads((MEASURED / META).read_text())["format"] == 1
    assert user_version(DATABASE) == 1
    assert FORMAT == 2


def test_a_measurement_opens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.open(MEASURED)
    assert [row.phase for row in findings.find(run).rows] == ["idle", "download", "upload"]
    words = [
        "export",
        str(MEASURED),
        "-q",
        *(f"-o{tmp_path / name}" for name in ("x.csv", "x.json", "x.flent.gz")),
    ]
    assert status(words) == 0
    assert status(["report", str(MEASURED), "-o", str(tmp_path / "page.html")]) == 0
    assert status(["compare", str(MEASURED), str(MEASURED)]) == 0
    assert status(["import", str(tmp_path / "x.flent.gz"), "-o", str(tmp_path / "back"), "-q"]) == 0
    assert "upload" in capsys.readouterr().out


def test_a_measurement_without_newer_columns_has_a_page(tmp_path: Path) -> None:
    assert status(["report", str(SINCE), "-o", str(tmp_path / "page.html")]) == 0


def test_an_old_database_opens_and_is_not_changed(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    with Reader(database) as reader:
        assert [target.name for target in reader.targets()] == ["gateway", "lab.example"]
        assert reader.interfaces() == {"eth0": 1}
        _, rtt = reader.probes(2, BEGAN_S, BEGAN_S + 60)
        assert (rtt.size, int(np.isnan(rtt).sum())) == (60, 1)
        assert [event.kind for event in reader.events(0, 2 * BEGAN_S)] == ["start"]
    assert status(["graph", str(database), "--utc", "-o", str(tmp_path / "x.png")]) == 0
    assert database.read_bytes() == before


def test_a_monitor_converts_an_old_database_to_the_present_format(database: Path) -> None:
    with Store.open(database) as store:
        again = store.target("lab.example", "192.0.2.9", S)
        one = np.ones(1, np.int64)
        store.add(
            ProbeSamples(
                again * one, (BEGAN_S + 60) * S * one, 60 * one, 20_000_000 * one, -one, 0 * one
            )
        )
    assert user_version(database) == FORMAT
    with Reader(database) as reader:
        assert reader.probes(2, BEGAN_S, BEGAN_S + 61)[1].size == 61
        assert sum(row.sent for row in reader.rows(2, 60, BEGAN_S - 60, BEGAN_S + 120)) == 61


def test_a_newer_database_is_refused_with_an_error(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    assert status(["graph", str(database), "-o", str(tmp_path / "x.png")]) == 2
    assert (
        f"has format {FORMAT + 1}; this version reads formats 1 to {FORMAT}"
        in capsys.readouterr().err
    )
