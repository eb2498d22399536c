"""Reads a file of `sojourn-probe measure -o` as a Run: the plan, facts and tables of a session as
JSON (crates/standalone/src/session_file.rs).

The file may come from anywhere, so it is checked before a Run is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sojourn import sanitize
from sojourn.arrays import Json, Tables
from sojourn.errors import UserError
from sojourn.facts import SessionFacts
from sojourn.records import NONE, TABLES, Run
from sojourn.shapes import read as shaped
from sojourn_live.measure import measurement
from sojourn_live.measure.planned import SessionPlan

FORMAT = "sojourn-probe 1"
SUFFIX = ".json"
TABLES_OF_A_SESSION = ("probe", "flow", "flows", "queue", "links", "engine", *measurement.EMPTY)
LARGEST_FILE = 100_000_000
"""Bytes. A measurement of forty seconds with four streams has 0.5 MB."""
MOST_VALUES = 10_000_000


def is_one(path: Path) -> bool:
    """Whether the file is sojourn-probe's, by its name, and not flent's."""
    return path.name.endswith(SUFFIX)


def read(path: Path, how: measurement.MeasurementSettings | None = None) -> Run:
    """The Run of a file of sojourn-probe, with one repeat."""
    raw = _load(path)
    try:
        facts = shaped(SessionFacts, raw["facts"])
        plan = shaped(SessionPlan, {**raw["plan"], "secret": ""})
        tables = _tables(raw["tables"], facts)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None
    run = measurement.start(plan, facts, how or measurement.MeasurementSettings())
    measurement.add(run, 1, tables, facts)
    return run


def _damaged(path: Path, why: str) -> UserError:
    return UserError(
        f"{path} is not what sojourn-probe writes, or it is damaged: {why}",
        "give a file of sojourn-probe measure -o FILE",
    )


def _load(path: Path) -> Json:
    text = sanitize.content_of(path, LARGEST_FILE, "give a file of sojourn-probe")
    try:
        sanitize.check_json(text, LARGEST_FILE, MOST_VALUES)
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(raw, dict) or not isinstance(found := raw.get("format"), str):
        raise _damaged(path, "it has no key format")
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
