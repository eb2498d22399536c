"""The search for a reading of section III-A. It runs the table's four rows under each reading of
`studies`, and figure 2 with its RTTs understood as in the table.

sojourn reproduce --search adt > searched.csv

No verdict uses the seeds of this search. The reading is chosen by the row of Drop-Tail alone, so
that the rows of ADT and of Adaptive RED can contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sojourn import cleanup, engine
from sojourn.scenario import load
from sojourn_papers import published, searched
from sojourn_papers.adt import measures as m
from sojourn_papers.adt.studies import BY_USERS, CHOSEN, ONE_WAY, READINGS, Reading
from sojourn_papers.evidence import Estimate, Seed, estimated
from sojourn_papers.readings import ON_OTHER_SEEDS
from sojourn_papers.study import Changes

SEEDS = range(101, 106)
FEW = SEEDS[:2]
"""Seeds of figure 2, where q_adt is a mean over 220 s."""
SHORTER = {False: ("60 s", "140 s"), True: ("120 s", "200 s")}
"""Warm-up and length of a run, by whether traffic is in both directions. They are
shorter than those of the studies, but the queues settle in them."""
COLUMNS = {
    "utilisation": m.utilisation,
    "loss": m.loss,
    "delay": m.backlog_ms,
    "fairness": m.fairness,
    "goodput": m.goodput,
}
"""The measures of the table, in its order."""
BESIDE = {"sojourn": m.delay_ms, "limit": m.limit}


def rows() -> Iterator[dict[str, object]]:
    """A line for each reading, row of the table, and seed; and for each N of figure 2."""
    for name, reading in READINGS.items():
        for row in reading.rows:
            for seed, cells in measured(reading, row, SEEDS).items():
                yield {"reading": name, "row": row, "seed": seed, **cells}
    for row in BY_USERS.variants:
        for seed, cells in one_way(row, FEW).items():
            yield {"reading": ONE_WAY, "row": row, "seed": seed, **cells}


def one_way(row: str, seeds: range) -> dict[int, dict[str, str]]:
    """The columns of one N of figure 2, its RTTs twice as long, by seed."""
    changes = {**BY_USERS.variants[row], "flow.user.rtt": "uniform 160 ms .. 200 ms"}
    return _run(BY_USERS.scenario, row, changes, seeds, Reading())


def measured(reading: Reading, row: str, seeds: range) -> dict[int, dict[str, str]]:
    """The columns of one row of the table under one reading, by seed."""
    warmup, duration = SHORTER[row == "ADT(R)"]
    changes = {**reading.changes(row), "warmup": warmup, "duration": duration}
    return _run(reading.scenario(row), row, changes, seeds, reading)


def _run(
    scenario: str, row: str, changes: Changes, seeds: range, reading: Reading
) -> dict[int, dict[str, str]]:
    base = load(Path(__file__).with_name(scenario))
    folder = cleanup.make_folder()
    try:
        [run] = engine.run_each(
            [base.with_(changes, seeds=list(seeds), label=row)], [folder / "run"], jobs=1
        )
        return {number: _cells(Seed(run, number), reading) for number in run.seeds}
    finally:
        cleanup.remove_folder(folder)


def _cells(seed: Seed, reading: Reading) -> dict[str, str]:
    # With a limit in bytes, the delay is the packets' mean waiting time.
    counted = {"delay": m.delay_ms} if reading.in_bytes else {}
    columns = {**COLUMNS, **counted, **BESIDE}
    return {name: f"{measure(seed):.5g}" for name, measure in columns.items()}


# ---------------------------------------------------------------------------------- what was found


def by_number() -> dict[str, dict[str, Estimate]]:
    """The table's numbers under each reading, by id, and the results of ns-2 and ns-3. The chosen
    reading is included; its verdict uses other seeds."""
    values: dict[str, dict[str, list[float]]] = {}
    for one in searched.beside(__file__).rows:
        if one["reading"] == ONE_WAY:
            at = f"figure2/{one['row'].removeprefix('N = ')}/limit"
            values.setdefault(ONE_WAY, {}).setdefault(at, []).append(float(one["limit"]))
            continue
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
