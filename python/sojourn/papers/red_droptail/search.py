"""The search for a RED that has the source's lead over Drop-Tail: thresholds, weight, probability,
limit and length of the run together, the rest as in the main reading.

sojourn reproduce --search red-droptail > searched.csv

Each setting is asked for all 22 cells of RED and of Drop-Tail, on seeds that judge nothing.
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
from sojourn.papers import published, searched
from sojourn.papers.evidence import Seed
from sojourn.papers.paper import Tolerance
from sojourn.papers.red_droptail import measures as m
from sojourn.papers.red_droptail.studies import (
    DROP_TAIL,
    MAIN,
    RED,
    TP_FAIRNESS,
    TP_THROUGHPUT,
    D,
    N,
    Setting,
)
from sojourn.scenario import load

SEEDS = range(101, 103)
LENGTHS_S = (2.5, 3.0, 3.5)
PLACES = (30, 50)
THRESHOLDS = ((1, 2), (1, 3), (2, 6), (3, 9), (5, 15))
WEIGHTS = (0.05, 0.2, 0.5, 1.0)
PROBABILITIES = (0.02, 0.1, 0.5)
AUTOMATIC = "packets"

Cell = tuple[str, int, int]
"""("throughput", Tp, N) or ("fairness", Tp, D)."""
CELLS: tuple[Cell, ...] = (
    *(("throughput", tp, n) for tp in TP_THROUGHPUT for n in N),
    *(("fairness", tp, d) for tp in TP_FAIRNESS for d in D),
)
CASES = {
    1: [cell for cell in CELLS if cell[:2] == ("throughput", 80)],
    2: [cell for cell in CELLS if cell[:2] == ("throughput", 250)],
    3: [cell for cell in CELLS if cell[:2] == ("fairness", 75)],
    4: [cell for cell in CELLS if cell[:2] == ("fairness", 250)],
}
"""The source's four."""


def reds() -> Iterator[str]:
    """ns-2's RED as searched, in our words for it: the automatic one first."""
    yield AUTOMATIC
    for (low, high), weight, probability in product(THRESHOLDS, WEIGHTS, PROBABILITIES):
        yield f"{AUTOMATIC} min {low} max {high} weight {weight:g} probability {probability:g}"


def rows() -> Iterator[dict[str, object]]:
    """A line for each setting."""
    for length, places, red in product(LENGTHS_S, PLACES, reds()):
        yield row_of(replace(MAIN, length_s=length, places=places, red=red))


def row_of(setting: Setting) -> dict[str, object]:
    """How far its throughputs and indices lie from the source's, and of RED's leads, case by case,
    the mean and how many are within their tolerance."""
    ours = {cell: measured(setting, RED, cell) for cell in CELLS}
    tails = {cell: measured(replace(setting, red=""), DROP_TAIL, cell) for cell in CELLS}
    return {
        "length_s": setting.length_s,
        "places": setting.places,
        "red": setting.red,
        "throughput_off": f"{off(ours, 'throughput'):.3g}",
        "fairness_off": f"{off(ours, 'fairness'):.3g}",
        "tail_throughput_off": f"{off(tails, 'throughput', DROP_TAIL):.3g}",
        "tail_fairness_off": f"{off(tails, 'fairness', DROP_TAIL):.3g}",
        **{f"lead{case}": f"{mean_lead(ours, tails, case):.3g}" for case in CASES},
        **{f"leads{case}": leads(ours, tails, case) for case in CASES},
    }


@cache
def measured(setting: Setting, queue: str, cell: Cell) -> float:
    """One cell of a table, mean over the seeds."""
    kind, tp, at = cell
    n, d = (at, 0) if kind == "throughput" else (16, at)
    base = load(Path(__file__).with_name("short.toml"))
    run = engine.simulate(base.with_(setting.variant(tp, n, queue, d)), seeds=list(SEEDS), jobs=1)
    measure = m.throughput_mbps if kind == "throughput" else m.fairness
    # A simulation in memory has the meta and the tables of a Run, all that a measure reads.
    values = [measure(Seed(cast(Any, run), number)) for number in run.seeds]
    return math.fsum(values) / len(values)


def off(ours: Mapping[Cell, float], kind: str, queue: str = RED) -> float:
    """Root mean square of ln(ours / published) over the tables of this kind."""
    said = _said()
    squares = [
        math.log(value / said[f"{cell[0]}/{cell[1]}/{cell[2]}/{queue}"]) ** 2
        for cell, value in ours.items()
        if cell[0] == kind
    ]
    return math.sqrt(math.fsum(squares) / len(squares))


def mean_lead(ours: Mapping[Cell, float], tails: Mapping[Cell, float], case: int) -> float:
    """RED's lead in one case, mean over its rows."""
    found = [m.lead(cell[0], ours[cell], tails[cell]) for cell in CASES[case]]
    return math.fsum(found) / len(found)


def leads(ours: Mapping[Cell, float], tails: Mapping[Cell, float], case: int) -> int:
    """How many of RED's leads in one case are within their tolerance."""
    return sum(
        tolerance(cell).allows(m.lead(cell[0], ours[cell], tails[cell]), _said()[lead_id(cell)])
        for cell in CASES[case]
    )


def lead_id(cell: Cell) -> str:
    """The number of a lead: "lead/throughput/80/12"."""
    return "lead/" + "/".join(map(str, cell))


def tolerance(cell: Cell) -> Tolerance:
    """That of the number."""
    numbers = published.read(Path(__file__).with_name("published.toml")).numbers
    [number] = [one for one in numbers if one["id"] == lead_id(cell)]
    return Tolerance(number["tolerance"]["absolute"], "", relative=False)


def _said() -> Mapping[str, Any]:
    return published.beside(__file__)


# ---------------------------------------------------------------------------------- what was found


@dataclass(frozen=True)
class Trade:
    """Of one case: how far RED can lead, and at what price in throughput."""

    settings: int
    source: float
    """The source's mean lead; of throughputs the share by which RED's is larger."""
    chosen_off: float
    """How far the chosen reading's throughputs lie from the source's."""
    best: float
    """The largest mean lead of those that are no farther."""
    price: float
    """How far the nearest is that has half of the source's lead; NaN if none has."""


def trade(case: int) -> Trade:
    """What the search says of one case."""
    found = searched.beside(__file__).rows
    chosen = float(_chosen()["throughput_off"])
    source = math.fsum(_said()[lead_id(cell)] for cell in CASES[case]) / len(CASES[case])
    none = 1 if CASES[case][0][0] == "throughput" else 0
    points = [(float(one["throughput_off"]), float(one[f"lead{case}"]) - none) for one in found]
    leading = [off for off, lead in points if lead >= (source - none) / 2]
    return Trade(
        len(found),
        source - none,
        chosen,
        max(lead for off, lead in points if off <= chosen),
        min(leading, default=math.nan),
    )


def points(case: int) -> list[tuple[float, float]]:
    """Throughput off and mean lead of each setting, the chosen one first."""
    rest = [one for one in searched.beside(__file__).rows if one is not _chosen()]
    return [(float(one["throughput_off"]), float(one[f"lead{case}"])) for one in (_chosen(), *rest)]


def _chosen() -> searched.Row:
    wanted = {"length_s": MAIN.length_s, "places": MAIN.places, "red": MAIN.red}
    [found] = [
        one
        for one in searched.beside(__file__).rows
        if all(one[key] == str(value) for key, value in wanted.items())
    ]
    return found
