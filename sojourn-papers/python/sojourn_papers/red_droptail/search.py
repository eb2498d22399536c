"""Two searches. STARTS varies the start times of the flows and the length of the run. REDS looks
for a RED with the source's lead over Drop-Tail; it varies thresholds, weight, probability, limit
and length of the run. All other parameters are those of the main reading.

sojourn reproduce --search red-droptail > searched.csv

All 22 cells of RED and of Drop-Tail are run under each setting. No verdict uses the seeds of these
searches. The main reading has the starts that fit Drop-Tail's 22 cells best. RED's cells have no
part in this choice, so RED's leads can contradict it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, cast

from sojourn import engine
from sojourn.scenario import load
from sojourn_papers import published, searched
from sojourn_papers.evidence import Seed
from sojourn_papers.red_droptail import measures as m
from sojourn_papers.red_droptail import studies as s

STARTS, REDS = "starts", "reds"
SEEDS = range(101, 141)
"""The seed draws the start times of flows, so STARTS uses all of these."""
FEW = SEEDS[:2]
"""Seeds of REDS, which keeps the main reading's range of start times."""
STARTS_MS = (0, 1, 2, 3, 5, 7, 10, 20)
STARTS_LENGTHS_S = (3.0, 3.25, 3.5, 3.75, 4.0)
LENGTHS_S = (2.5, 3.0, 3.5)
PLACES = (30, 50)
THRESHOLDS = ((1, 2), (1, 3), (2, 6), (3, 9), (5, 15))
WEIGHTS = (0.05, 0.2, 0.5, 1.0)
PROBABILITIES = (0.02, 0.1, 0.5)
AUTOMATIC = "packets"

Cell = tuple[str, int, int]
"""("throughput", Tp, N) or ("fairness", Tp, D)."""
CELLS: tuple[Cell, ...] = (
    *(("throughput", tp, n) for tp in s.TP_THROUGHPUT for n in s.N),
    *(("fairness", tp, d) for tp in s.TP_FAIRNESS for d in s.D),
)
CASES = {
    1: [cell for cell in CELLS if cell[:2] == ("throughput", 80)],
    2: [cell for cell in CELLS if cell[:2] == ("throughput", 250)],
    3: [cell for cell in CELLS if cell[:2] == ("fairness", 75)],
    4: [cell for cell in CELLS if cell[:2] == ("fairness", 250)],
}
"""The source's four cases."""


def reds() -> Iterator[str]:
    """The settings of ns-2's RED that the search tries, as discipline words; the automatic one
    first."""
    yield AUTOMATIC
    for (low, high), weight, probability in product(THRESHOLDS, WEIGHTS, PROBABILITIES):
        yield f"{AUTOMATIC} min {low} max {high} weight {weight:g} probability {probability:g}"


def rows() -> Iterator[dict[str, object]]:
    """A line for each setting."""
    for length, spread in product(STARTS_LENGTHS_S, STARTS_MS):
        yield row_of(STARTS, replace(s.MAIN, length_s=length, spread_ms=spread))
    for length, places, red in product(LENGTHS_S, PLACES, reds()):
        yield row_of(REDS, replace(s.MAIN, length_s=length, places=places, red=red))


def row_of(search: str, setting: s.Setting) -> dict[str, object]:
    """One line of the file. It has the distance of the setting's throughputs and indices from the
    source's, and the number of cells within their tolerance. For each case it has the mean of RED's
    leads, and how many of them are within their tolerance."""
    # If all flows start at one instant, all seeds are the same run.
    seeds = FEW if search == REDS else SEEDS[: None if setting.spread_ms else 1]
    ours = {cell: measured(setting, s.RED, cell, seeds) for cell in CELLS}
    tails = {cell: measured(replace(setting, red=""), s.DROP_TAIL, cell, seeds) for cell in CELLS}
    return {
        "search": search,
        "length_s": setting.length_s,
        "spread_ms": setting.spread_ms,
        "places": setting.places,
        "red": setting.red,
        "throughput_off": f"{off(ours, 'throughput'):.3g}",
        "fairness_off": f"{off(ours, 'fairness'):.3g}",
        "tail_throughput_off": f"{off(tails, 'throughput', s.DROP_TAIL):.3g}",
        "tail_fairness_off": f"{off(tails, 'fairness', s.DROP_TAIL):.3g}",
        "tail_off": f"{off(tails, '', s.DROP_TAIL):.4g}",
        "cells": within(ours, s.RED),
        "tail_cells": within(tails, s.DROP_TAIL),
        **{f"lead{case}": f"{mean_lead(ours, tails, case):.3g}" for case in CASES},
        **{f"leads{case}": leads(ours, tails, case) for case in CASES},
    }


@cache
def measured(setting: s.Setting, queue: str, cell: Cell, seeds: range) -> float:
    """One cell of a table, mean over the seeds."""
    kind, tp, at = cell
    n, d = (at, 0) if kind == "throughput" else (16, at)
    base = load(Path(__file__).with_name("short.toml"))
    run = engine.simulate(base.with_(setting.variant(tp, n, queue, d)), seeds=list(seeds), jobs=1)
    measure = m.throughput_mbps if kind == "throughput" else m.fairness
    # A simulation in memory has a Run's meta and tables, which is all that a measure reads.
    values = [measure(Seed(cast(Any, run), number)) for number in run.seeds]
    return math.fsum(values) / len(values)


def off(ours: Mapping[Cell, float], kind: str, queue: str = s.RED) -> float:
    """Root mean square of ln(ours / published) over the tables of this kind, or of both."""
    said = _said()
    squares = [
        math.log(value / said[_cell_id(cell, queue)]) ** 2
        for cell, value in ours.items()
        if kind in ("", cell[0])
    ]
    return math.sqrt(math.fsum(squares) / len(squares))


def within(ours: Mapping[Cell, float], queue: str) -> int:
    """The number of cells within their tolerance."""
    targets = published.targets(__file__)
    return sum(targets[_cell_id(cell, queue)].met(value) for cell, value in ours.items())


def _cell_id(cell: Cell, queue: str) -> str:
    """The name of a cell among the published numbers: "throughput/80/12/RED"."""
    return "/".join(map(str, (*cell, queue)))


def mean_lead(ours: Mapping[Cell, float], tails: Mapping[Cell, float], case: int) -> float:
    """RED's lead in one case, mean over its rows."""
    found = [m.lead(cell[0], ours[cell], tails[cell]) for cell in CASES[case]]
    return math.fsum(found) / len(found)


def leads(ours: Mapping[Cell, float], tails: Mapping[Cell, float], case: int) -> int:
    """The number of RED's leads in one case within their tolerance."""
    targets = published.targets(__file__)
    return sum(
        targets[lead_id(cell)].met(m.lead(cell[0], ours[cell], tails[cell])) for cell in CASES[case]
    )


def lead_id(cell: Cell) -> str:
    """The name of a lead among the published numbers: "lead/throughput/80/12"."""
    return "lead/" + "/".join(map(str, cell))


def _said() -> Mapping[str, Any]:
    return published.beside(__file__)


# ---------------------------------------------------------------------------------- what was found


@dataclass(frozen=True)
class LeadAndPrice:
    """RED's largest lead in one case, and its price in throughput."""

    settings: int
    source: float
    """The source's mean lead; for throughputs, the share by which RED's is larger."""
    chosen_off: float
    """Distance of the chosen reading's throughputs from the source's."""
    best: float
    """The largest mean lead of the settings whose throughputs are at most this far from the
    source's."""
    price: float
    """The smallest distance of throughputs among the settings with at least half the source's lead;
    NaN if there is none."""


def trade(case: int) -> LeadAndPrice:
    """The result of the search for one case."""
    found = _found(REDS)
    chosen = float(_chosen(REDS)["throughput_off"])
    source = math.fsum(_said()[lead_id(cell)] for cell in CASES[case]) / len(CASES[case])
    none = 1 if CASES[case][0][0] == "throughput" else 0
    points = [(float(one["throughput_off"]), float(one[f"lead{case}"]) - none) for one in found]
    leading = [off for off, lead in points if lead >= (source - none) / 2]
    return LeadAndPrice(
        len(found),
        source - none,
        chosen,
        max(lead for off, lead in points if off <= chosen),
        min(leading, default=math.nan),
    )


def points(case: int) -> list[tuple[float, float]]:
    """Throughput off and mean lead of each setting, the chosen one first."""
    chosen = _chosen(REDS)
    rest = [one for one in _found(REDS) if one is not chosen]
    return [(float(one["throughput_off"]), float(one[f"lead{case}"])) for one in (chosen, *rest)]


@dataclass(frozen=True)
class Starts:
    """A setting of STARTS: flows start within a time, in runs of a length."""

    length_s: float
    spread_ms: float
    tail_off: float
    """Distance of Drop-Tail's 22 cells from the source, root mean square."""
    tail_cells: int
    """The number of these cells within their tolerance."""
    leads: int
    """The number of RED's 22 leads within their tolerance."""


def starts() -> list[Starts]:
    """All start times that the search tried, the nearest to Drop-Tail's cells first."""
    found = [
        Starts(
            float(one["length_s"]),
            float(one["spread_ms"]),
            float(one["tail_off"]),
            int(one["tail_cells"]),
            sum(int(one[f"leads{case}"]) for case in CASES),
        )
        for one in _found(STARTS)
    ]
    return sorted(found, key=lambda one: one.tail_off)


def _found(search: str) -> list[searched.Row]:
    return [one for one in searched.beside(__file__).rows if one["search"] == search]


def _chosen(search: str) -> searched.Row:
    wanted = {
        "length_s": s.MAIN.length_s,
        "spread_ms": s.MAIN.spread_ms,
        "places": s.MAIN.places,
        "red": s.MAIN.red,
    }
    [found] = [
        one
        for one in _found(search)
        if all(one[key] == str(value) for key, value in wanted.items())
    ]
    return found
