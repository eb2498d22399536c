"""A line over time: the measurements and the failures of one folder.

`sojourn measure --every` writes each measurement as a Run named after its time (UTC), so every verb
that takes Runs takes the folder. A failed measurement is a line of JSON in `failed.jsonl`:
{"t_ns": since 1970, "why": words}.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.records import META, Run, RunError, write_index

if TYPE_CHECKING:
    from sojourn_live.outputs import HistoryEntry

FAILED = "failed.jsonl"
LOADS = ("download", "upload", "both")


@dataclass(frozen=True)
class MeasurementEntry:
    """One measurement of the series, or its failure. NaN: not known."""

    t_ns: int
    """When it began, since 1970."""
    run: str = ""
    """The name of the Run's folder; "": there is none."""
    why: str = ""
    """Why nothing was measured, or why the measurement ended early; "": neither."""
    idle_ms: float = math.nan
    """Median RTT of the idle line."""
    added_ms: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """95th percentile of the RTT under a load less the idle median, by the load's kind."""
    mbps: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Goodput by direction, "down" and "up". It is that of a phase that loads only this direction,
    or else of one that loads both."""
    grade: str = ""
    """DSLReports's grade; "": there is none."""

    def to_dict(self) -> HistoryEntry:
        """Plain values; NaN becomes None."""

        def known(value: float) -> float | None:
            return None if math.isnan(value) else value

        return {
            "t_ns": self.t_ns,
            "run": self.run,
            "why": self.why,
            "idle_ms": known(self.idle_ms),
            "added_ms": {load: known(value) for load, value in self.added_ms.items()},
            "mbps": {way: known(value) for way, value in self.mbps.items()},
            "grade": self.grade,
        }


def entry(run: Run) -> MeasurementEntry:
    """A measurement in one line. The Run has a seed."""
    from sojourn_live.measure import findings

    found = findings.find(run)
    idle = next((row.spread.median for row in found.rows if row.kind == "idle"), math.nan)
    added: dict[str, float] = {}
    mbps: dict[str, float] = {}
    for load in LOADS:
        row = next((row for row in found.rows if row.kind == load), None)
        if row is None:
            continue
        if row.induced is not None:
            added[load] = row.induced.p95.value
        for way in ("down", "up"):
            if not math.isnan(row.mbps[way]):
                mbps.setdefault(way, row.mbps[way])
    broken = (fact for fact in found.facts if fact["outcome"] != "complete")
    cut = next((fact["why"] or fact["outcome"] for fact in broken), "")
    began = found.facts[0]["zero_ns"] if found.facts else 0
    score = next(
        (
            score.overall.word
            for score in found.scores
            if score.name == "DSLReports" and score.overall
        ),
        "",
    )
    return MeasurementEntry(began, run.path.name, cut, idle, added, mbps, "" if cut else score)


def read(folder: Path) -> list[MeasurementEntry]:
    """A folder's measurements and failures in order of time.

    Raises:
        RunError: the folder has neither, or a line of its failures can't be read.
    """
    runs = [Run.open(path) for path in _folders(folder)]
    entries = _failures(folder / FAILED)
    if runs:
        from sojourn.records.measurement import ENGINE

        entries += [entry(run) for run in runs if run.seeds and run.meta.engine == ENGINE]
    if not entries:
        raise RunError(
            f"{folder} contains no measurements",
            "give the output folder of `sojourn measure --every`",
        )
    return sorted(entries, key=lambda each: each.t_ns)


def index(folder: Path) -> None:
    """Writes the list of the folder's Runs, so that verbs that take the folder of a comparison read
    it."""
    write_index(folder, (path.name for path in _folders(folder)))


def _folders(folder: Path) -> list[Path]:
    """The folders of Runs. Their names are times, so they sort by time."""
    return sorted(path.parent for path in folder.glob(f"*/{META}"))


def _failures(file: Path) -> list[MeasurementEntry]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        failures = [json.loads(line) for line in lines]
        return [MeasurementEntry(int(each["t_ns"]), why=str(each["why"])) for each in failures]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{file} can't be read: {error}", "remove it, or the line that is not JSON"
        ) from None


def failed(folder: Path, t_ns: int, why: str) -> MeasurementEntry:
    """Appends a failed measurement to the folder's failures."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / FAILED).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"t_ns": t_ns, "why": why}, ensure_ascii=False) + "\n")
    except OSError as error:
        raise RunError(
            f"can't write to {folder}: {error.strerror or error}", "choose another folder with -o"
        ) from None
    return MeasurementEntry(t_ns, why=why)


def name(t_ns: int) -> str:
    """The name of this time's Run: 2026-11-22T093000Z."""
    return f"{datetime.fromtimestamp(t_ns // 10**9, UTC):%Y-%m-%dT%H%M%SZ}"


def next_slot(begun_s: float, every_s: float, now_s: float) -> float:
    """The first time of the schedule after now: `begun_s` and whole multiples of `every_s` after
    it. Times that have passed are skipped."""
    return begun_s + every_s * (math.floor(max(now_s - begun_s, 0.0) / every_s) + 1)
