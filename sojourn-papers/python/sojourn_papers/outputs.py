"""The shape of the output of `sojourn reproduce --json`."""

from __future__ import annotations

from typing_extensions import TypedDict

from sojourn.numbers import Known
from sojourn.outputs.output_shapes import FailedRun


class Estimate(TypedDict):
    """Our value of a published number."""

    mean: Known
    ci95: Known
    seeds: int


class PaperNumber(TypedDict):
    """A published number beside ours."""

    id: str
    where: str
    what: str
    unit: str
    relation: str
    published: Known
    role: str | None
    role_because: str
    ours: Estimate
    simulator: Estimate | None
    """The simulator's value in the same scenario if another engine ran; else null."""
    difference: Known
    relative_difference: Known
    tolerance: str | None
    tolerance_because: str | None
    verdict: str
    reason: str
    variants: int
    """From how many of the paper's variants ours was computed."""
    variants_left_out: int
    """How many more the full version has for it."""
    study: str
    variant: str


class PaperThreshold(TypedDict):
    """A quantity that decides a claim, and its threshold."""

    what: str
    threshold: str
    ours: float | None
    """Null: its Runs were not run here."""
    met: bool
    needed: str
    """The part of the claim that requires it: "all", the whole claim; "direction", its direction only."""


class PaperClaim(TypedDict):
    """A claim, judged."""

    id: str
    where: str
    says: str
    verdict: str
    role: str
    role_because: str
    judged: list[PaperThreshold]
    because: str
    variants: int
    """On how many of the paper's variants it was judged."""
    variants_left_out: int
    """On how many more the full version judges it."""
    must_hold: bool


class PaperReading(TypedDict):
    """The reading of a parameter that a paper leaves open."""

    parameter: str
    source: str
    chosen: str
    why: str
    others: str
    under: list[str]
    """The other readings, by their names in the matrix of the page."""
    searched: bool


class PaperOutput(TypedDict):
    """A paper, reproduced."""

    paper: str
    title: str
    source: str
    quick: bool
    engine: list[str]
    version: list[str]
    invalid: list[str]
    claims: list[PaperClaim]
    numbers: list[PaperNumber]
    numbers_left_out: int
    readings: list[PaperReading]


class ReproduceOutput(TypedDict):
    """`sojourn reproduce`."""

    schema: str
    engine: str
    quick: bool | None
    papers: list[PaperOutput]
    failed: list[FailedRun]
