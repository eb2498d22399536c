"""Runs of measurements, as `sojourn`'s report, compare and export read them
(`sojourn.extras.Measurements`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sojourn.records import Run
from sojourn_live.measured_page import Page


class _Change:
    def __init__(self, found: Any) -> None:
        self._found = found

    def to_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = self._found.to_dict()
        return values

    def text(self) -> str:
        from sojourn_live.cli import measurement_text

        return measurement_text.changes(self._found)


class _Measurements:
    def page(self, runs: Sequence[Run], labels: Sequence[str]) -> Page:
        return Page(runs, labels)

    def changes(self, runs: Sequence[Run], labels: Sequence[str]) -> list[_Change]:
        from sojourn_live.measure import change

        return [
            _Change(change.compare(runs[0], run, (labels[0], name)))
            for run, name in zip(runs[1:], labels[1:], strict=True)
        ]

    def text(self, run: Run) -> str:
        from sojourn_live.cli import measurement_text
        from sojourn_live.measure import findings

        return measurement_text.text_of(findings.find(run))

    def export(
        self, run: Run, file: Path, *, phase: str | None, repeat: int | None, test: str
    ) -> None:
        from sojourn.cli import work
        from sojourn_live import flent
        from sojourn_live.measure import sample_files

        if file.suffix == ".csv":
            work.write(file, sample_files.csv(run))
        elif file.suffix == ".json":
            work.write(file, sample_files.json_of(run))
        else:
            flent.export(run, file, flent.FlentChoice(phase, repeat, test))


MEASUREMENTS = _Measurements()
