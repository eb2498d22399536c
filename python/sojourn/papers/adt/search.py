"""The search for a reading of section III-A: the table's four rows under each reading of `studies`.

sojourn reproduce --search adt > searched.csv

It runs on seeds that judge nothing. The reading is chosen by the row of Drop-Tail alone, so that the
rows of ADT and of Adaptive RED can contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sojourn import engine, remains
from sojourn.papers import published, searched
from sojourn.papers.adt import measures as m
from sojourn.papers.adt.studies import CHOSEN, READINGS, Reading
from sojourn.papers.evidence import Estimate, Seed, estimated
from sojourn.papers.readings import ON_OTHER_SEEDS
from sojourn.scenario import load

SEEDS = range(101, 106)
SHORTER = {False: ("60 s", "140 s"), True: ("120 s", "200 s")}
"""Warm-up and length, one way and both: what settles is there, in half of the time."""
COLUMNS = {
    "utilisation": m.utilisation,
    "loss": m.loss,
    "delay": m.backlog_ms,
    "fairness": m.fairness,
    "goodput": m.goodput,
}
"""Of the table, in its order."""
BESIDE = {"sojourn": m.delay_ms, "limit": m.limit}


def rows(names: tuple[str, ...] = tuple(READINGS)) -> Iterator[dict[str, object]]:
    """A line for each reading, row of the table and seed."""
    for name in names:
        for row in READINGS[name].rows:
            for seed, cells in measured(READINGS[name], row, SEEDS).items():
                yield {"reading": name, "row": row, "seed": seed, **cells}


def measured(reading: Reading, row: str, seeds: range) -> dict[int, dict[str, str]]:
    """The columns of one row of the table under one reading, by seed."""
    warmup, duration = SHORTER[row == "ADT(R)"]
    changes = {**reading.changes(row), "warmup": warmup, "duration": duration}
    base = load(Path(__file__).with_name(reading.scenario(row)))
    folder = remains.make_folder()
    try:
        [run] = engine.run_each(
            [base.with_(changes, seeds=list(seeds), label=row)], [folder / "run"], jobs=1
        )
        return {number: _cells(Seed(run, number), reading) for number in run.seeds}
    finally:
        remains.remove_folder(folder)


def _cells(seed: Seed, reading: Reading) -> dict[str, str]:
    # The mean backlog in bytes is what packets wait.
    counted = {"delay": m.delay_ms} if reading.in_bytes else {}
    columns = {**COLUMNS, **counted, **BESIDE}
    return {name: f"{measure(seed):.5g}" for name, measure in columns.items()}


# ---------------------------------------------------------------------------------- what was found


def by_number() -> dict[str, dict[str, Estimate]]:
    """What each reading gives for the table's numbers, by their id, the chosen one too, which is judged
    on other seeds. And what ns-2 and ns-3 themselves answered."""
    values: dict[str, dict[str, list[float]]] = {}
    for one in searched.beside(__file__).rows:
        for column in COLUMNS:
            at = f"table/{one['row']}/{column}"
            values.setdefault(one["reading"], {}).setdefault(at, []).append(float(one[column]))
    ours = {
        ON_OTHER_SEEDS if reading == CHOSEN else reading: {
            id_: estimated(each) for id_, each in own.items()
        }
        for reading, own in values.items()
    }
    peers = {
        asked: {
            f"table/{row}/{column}": estimated([answer])
            for row, cells in answers.items()
            for column, answer in zip(COLUMNS, cells, strict=True)
        }
        for asked, answers in published.beside(__file__)["peers"].items()
    }
    return ours | peers
