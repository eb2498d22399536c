"""Reads a file of `sojourn-probe measure -o` as a Run: the plan, facts and tables of a session as
JSON (crates/standalone/src/session_file.rs).

The file may come from anywhere, so it is checked before a Run is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.arrays import Json, Tables
from sojourn.errors import UserError
from sojourn.facts import SessionFacts
from sojourn.formats import Content, open_file
from sojourn.records import NONE, TABLES, Run
from sojourn.records.measurement import EMPTY, MeasurementSettings, add
from sojourn.shapes import read as shaped
from sojourn_live.measure.measurement import start
from sojourn_live.measure.planned import SessionPlan

FORMAT = "sojourn-probe 1"
SUFFIX = ".json"
TABLES_OF_A_SESSION = ("probe", "flow", "flows", "queue", "links", "engine", *EMPTY)


def is_one(path: Path) -> bool:
    """Whether the file's name ends as sojourn-probe's files do."""
    return path.name.endswith(SUFFIX)


@dataclass(frozen=True)
class ProbeMeasurement:
    """The measurement of a file of sojourn-probe."""

    plan: SessionPlan
    tables: Tables
    facts: SessionFacts

    def run(self, _content: Content, settings: MeasurementSettings | None = None) -> Run:
        """The Run of the measurement, with one repeat."""
        run = start(self.plan, self.facts, settings or MeasurementSettings())
        add(run, 1, self.tables, self.facts)
        return run


def read(path: Path, how: MeasurementSettings | None = None) -> Run:
    """The Run of a file of sojourn-probe, with one repeat."""
    content = open_file(path)
    return measurement(content).run(content, how)


def measurement(content: Content) -> ProbeMeasurement:
    """The measurement of a file of sojourn-probe.

    Raises:
        UserError: it is damaged, or has another version.
    """
    raw = _load(content)
    try:
        facts = shaped(SessionFacts, raw["facts"])
        plan = shaped(SessionPlan, {**raw["plan"], "secret": ""})
        return ProbeMeasurement(plan, _tables(raw["tables"], facts), facts)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(content.path, f"{type(error).__name__}: {error}") from None


def _damaged(path: Path, why: str) -> UserError:
    return UserError(
        f"{path} was not written by sojourn-probe, or it is damaged: {why}",
        "give a file of sojourn-probe measure -o FILE",
    )


def _load(content: Content) -> Json:
    path = content.path
    raw = content.json
    if raw is None:
        raise _damaged(path, content.not_json)
    if not isinstance(raw, dict) or not isinstance(found := raw.get("format"), str):
        raise _damaged(path, "it has no key 'format'")
    if found != FORMAT:
        raise UserError(
            f"{path} has format {found!r}; this sojourn reads {FORMAT!r}",
            "use the same release of sojourn-probe and sojourn",
        )
    return raw


def _tables(raw: Mapping[str, Mapping[str, list[Any]]], facts: SessionFacts) -> Tables:
    """The tables in the form that engines return."""
    if set(raw) != set(TABLES_OF_A_SESSION):
        differing = sorted(set(raw) ^ set(TABLES_OF_A_SESSION))
        raise ValueError(f"missing or unknown tables: {', '.join(differing)}")
    counts = {"flow": len(facts["flows"]), "link": len(facts["links"]), "cause": 0}
    return {name: _table(name, raw[name], counts) for name in TABLES_OF_A_SESSION}


def _table(
    name: str, raw: Mapping[str, list[Any]], counts: Mapping[str, int]
) -> dict[str, np.ndarray[Any, Any]]:
    declared = TABLES[name].columns
    if set(raw) != {column.name for column in declared}:
        raise ValueError(f"table {name} has missing or unknown columns")
    if len({len(values) for values in raw.values()}) > 1:
        raise ValueError(f"the columns of table {name} differ in length")
    found = {}
    for column in declared:
        values = raw[column.name]
        if column.kind == "real":
            plain = [np.nan if value is None else value for value in values]
            found[column.name] = np.array(plain, dtype=np.float64)
            continue
        if not all(type(value) is int and NONE <= value < 2**63 for value in values):
            raise ValueError(f"{name}.{column.name}: not whole numbers")
        found[column.name] = np.array(values, dtype=np.int64)
        most = counts.get(column.kind)
        if most is not None and not all(0 <= value < most for value in values):
            raise ValueError(f"{name}.{column.name}: there is no such {column.kind}")
    return found
