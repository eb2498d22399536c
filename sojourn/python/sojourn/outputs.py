"""The shapes of what `--json` prints, and their versions. Other packages add theirs (`Extra.outputs`).

What the first key `schema` of an output says is `sojourn/NAME/VERSION`. A key may be added without
a new version; one that goes, or changes its meaning, needs one. `sojourn.schemas` makes the JSON
Schema (2020-12) of each, and `python docs/generate.py` docs/json.md.

A number that could not be said is null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict

from sojourn import extras
from sojourn.numbers import Known, MeanAndInterval, Numbers

NumberOverSeeds: TypeAlias = MeanAndInterval[Known]


class FailedRun(TypedDict):
    """A run that the engine could not finish."""

    run: str
    """Its variant."""
    seed: int
    error: str
    hint: str | None


class RunNumbers(TypedDict):
    """What was run, the numbers of each seed, and the same over the seeds."""

    engine: str
    version: str
    engine_build: str | None
    """Names the engine that ran it; null: not recorded."""
    title: str
    label: str
    """The variant of a sweep."""
    settings: dict[str, Any]
    """Of a variant: each key that the sweep varies, with its value here."""
    duration_s: float
    warmup_s: float
    seeds: list[int]
    samples: int
    """How many of the seeds tell something: 1 if all gave the same tables, else all."""
    fingerprint: str
    """Equal where the tables are."""
    invalid: list[str]
    """Why the numbers must not be used, each a sentence; empty: nothing is known against them."""
    runs: list[Numbers[Known]]
    """One for each seed."""
    summary: Numbers[NumberOverSeeds]
    """Over the seeds."""


class RunOutput(RunNumbers):
    """`sojourn run` of one variant."""

    schema: str
    failed: list[FailedRun]


class SweepOutput(TypedDict):
    """`sojourn run` of several variants."""

    schema: str
    variants: list[RunNumbers]
    failed: list[FailedRun]


class TableColumn(TypedDict):
    """A quantity."""

    key: str
    name: str
    unit: str
    of: str
    """Whose it is."""
    better: Literal["less", "more", "neither"]


class TableNumber(TypedDict):
    """A quantity of a cell, over its seeds."""

    mean: Known
    ci95: Known
    """Half of the 95 % interval; null: none."""
    best: bool
    """Better than every other cell of the same link and traffic."""


class TableRow(TypedDict):
    """A cell."""

    label: str
    settings: dict[str, Any]
    """Each key that varies, with its value here."""
    seeds: list[int]
    samples: int
    """How many of the seeds tell something."""
    numbers: dict[str, TableNumber]
    """By the key of the column."""


class CellsOutput(TypedDict):
    """`--format json` of `sojourn run` and `sojourn compare`."""

    schema: str
    keys: list[str]
    """Those that vary, in the sweep's order."""
    columns: list[TableColumn]
    rows: list[TableRow]


class CheckedLink(TypedDict):
    """A link as the first seed draws it."""

    name: str
    rate_bps: int | None
    """The first of a schedule; null: no limit."""
    least_bps: int | None
    greatest_bps: int | None
    mean_bps: int | None
    """Over the run."""
    delay_ms: float
    qdisc: str
    shaper: str | None
    police: str | None
    ring: int | None
    """Descriptors."""
    loss: bool
    """Packets are lost at random."""


class CheckedFlow(TypedDict):
    """The flows of a [[flow]] entry."""

    name: str
    count: int
    kind: str
    congestion: str | None
    path: list[str]
    base_rtt_ms: list[float]
    """Least and greatest, of propagation alone."""
    start_s: list[float]
    """Least and greatest."""


class Note(TypedDict):
    """What is doubtful about a scenario's words."""

    key: str
    line: int | None
    message: str
    hint: str | None


class EngineFit(TypedDict):
    """Whether an engine can run the scenario."""

    engine: str
    can: bool
    refused: int
    """Variants."""
    problems: list[str]
    hint: str | None
    not_ready: str | None
    """Why it can't be used here yet, or what this host's kernel lacks."""


class Expected(TypedDict):
    """About what it takes."""

    runs: int
    packets: float
    cpu_s: float
    guest_cpu_s: float
    table_bytes: float
    memory_bytes: float
    """Of the largest of the runs."""


class CheckOutput(TypedDict):
    """`sojourn check`."""

    schema: str
    title: str
    duration_s: float
    warmup_s: float
    seeds: list[int]
    sweep: dict[str, list[Any]]
    """Each key with its values."""
    variants: list[str]
    links: list[CheckedLink]
    """Of the first variant; access links of hosts are left out."""
    flows: list[CheckedFlow]
    notes: list[Note]
    engines: list[EngineFit]
    expected: Expected


class Cell(TypedDict):
    """The first cell that differs."""

    row: int
    """From 0."""
    column: str
    recorded: int | float | str | None
    now: int | float | str | None


class VerifiedTable(TypedDict):
    """A table of a seed."""

    seed: int
    table: str
    equal: bool
    why: str
    """Why it is not equal; empty: it is."""
    difference: Cell | None


class Builds(TypedDict):
    """Of the engine."""

    recorded: str | None
    now: str
    same: bool | None


class VerifiedRun(TypedDict):
    """A Run that was run again."""

    run: str
    equal: bool
    engine: str
    build: Builds
    same_scenario: bool | None
    meta: list[str]
    """What differs in meta.json."""
    seeds: list[int]
    seeds_not_finished: list[int]
    tables: list[VerifiedTable]


class FileApart(TypedDict):
    """A file or a Run that is not as the manifest has it."""

    name: str
    why: str


class VerifiedManifest(TypedDict):
    """A zip, or a folder with a manifest."""

    path: str
    equal: bool
    """Its files are as the manifest has them."""
    files: int
    runs: int
    versions: dict[str, str]
    """Of what made it: sojourn, python, and packages."""
    differences: list[FileApart]


class VerifyOutput(TypedDict):
    """`sojourn verify`."""

    schema: str
    equal: bool
    manifests: list[VerifiedManifest]
    damaged: list[str]
    """With --sums: what is damaged of Runs without a manifest."""
    runs: list[VerifiedRun]
    """Those that were run again."""


class JudgedRow(TypedDict):
    """A quantity of each Run of a contest."""

    key: str
    name: str
    unit: str
    of: str
    role: Literal["felt", "queue", "cost", "context"]
    better: Literal["less", "more", "neither"]
    values: dict[str, NumberOverSeeds]
    best: str | None


class ValueAndEnds(TypedDict):
    """A number with its 95 % interval."""

    value: Known
    low: Known
    high: Known


class JudgedDifference(TypedDict):
    """A quantity of a Run against the baseline's."""

    key: str
    name: str
    unit: str
    of: str
    role: Literal["felt", "queue", "cost", "context"]
    run: str
    against: str
    value: Known
    reference: Known
    difference: ValueAndEnds
    verdict: Literal["better", "worse", "alike", "unknown", "neither"]


class JudgedContest(TypedDict):
    """Runs that compete."""

    conditions: str
    """What sets it apart from other contests."""
    link: str | None
    called: dict[str, str]
    seeds: int
    samples: int
    same: bool
    """All its Runs have the same tables."""
    by: str
    """paired, Welch, one sample"""
    baseline: str
    winner: str | None
    runs: list[str]
    """Best first."""
    front: list[str]
    """Runs that no other beats."""
    beaten: dict[str, list[str]]
    strengths: dict[str, list[str]]
    rows: list[JudgedRow]
    differences: list[JudgedDifference]


class JudgedRuns(TypedDict):
    """Of the one judge."""

    runs: list[str]
    contests: list[JudgedContest]


class CompareOutput(TypedDict):
    """`sojourn compare` of simulations or kernels."""

    schema: str
    link: str | None
    """The one under study."""
    verdict: str
    judgement: JudgedRuns
    variants: list[RunNumbers]
    failed: list[FailedRun]


class AdviceMargin(TypedDict):
    """Variants that differ by no more than this in a quantity are as good as each other."""

    key: str
    """Of the quantity."""
    name: str
    unit: str
    value: float


class Advised(TypedDict):
    """Which queue discipline to use, and what to type for it."""

    about: str
    """The line or the scenario."""
    goal: str
    chosen: str
    """The variant to use."""
    usual: bool
    """Whether it was chosen of equals because it is the usual choice."""
    as_good: list[str]
    """Variants that are shown to be as good in all that the goal asks for."""
    undecided: list[str]
    """Variants of which the seeds can't tell whether they are as good, better or worse."""
    margins: list[AdviceMargin]
    """How much may lie between equals."""
    too_dear: list[str]
    """Variants that cost too much for this goal."""
    decided_by: list[str]
    """Keys of the quantities by which variants left the field, in their order."""
    commands: list[str]
    """What to type, as root; empty: nothing is to be changed."""
    sqm: list[str] | None
    """Lines of OpenWrt's /etc/config/sqm; null: it has no such discipline, or none is asked for."""
    judgement: JudgedRuns


class AdviseOutput(Advised):
    """`sojourn advise`."""

    schema: str


class AgreeCase(TypedDict):
    """A scenario, as far as agreement goes by it."""

    name: str
    qdisc: str
    rate_bps: int | None
    congestions: list[str]
    flows: int
    base_rtt_ms: Known
    setting: str


class AgreeRow(TypedDict):
    """A number of both sides."""

    place: str
    metric: str
    unit: str
    sim: Known
    sim_ci95: Known
    kernel: Known
    kernel_ci95: Known
    difference: Known
    """(sim - kernel) / kernel."""
    ci95: Known
    verdict: str


class AgreeComparison(TypedDict):
    """A scenario on both sides."""

    title: str
    label: str
    case: AgreeCase
    seeds: int
    agrees: bool
    rows: list[AgreeRow]


class AgreeDigest(TypedDict):
    """A number over many scenarios."""

    group: str
    metric: str
    verdicts: dict[str, int]
    median: Known
    worst: Known
    worst_case: str


class AgreeOutput(TypedDict):
    """`sojourn agree`."""

    schema: str
    engine: str
    version: str
    tolerance: float
    agrees: bool
    not_finished: int
    invalid: list[str]
    failed: list[FailedRun]
    verdicts: dict[str, int]
    cpu_s: dict[str, Known]
    comparisons: list[AgreeComparison]
    digest: list[AgreeDigest]


class EvaluatedCell(TypedDict):
    """A claim on a candidate in one cell of its criterion."""

    conditions: dict[str, Any]
    """What the criterion sweeps, with its values here."""
    run: str
    """The label of the Run."""
    value: Known
    """In `unit`."""
    low: Known
    """Ends of the 95 % interval; null: none."""
    high: Known
    unit: str
    """"×": a share of the baseline's number."""
    own: Known
    """The candidate's mean, in the column's unit."""
    reference: Known
    """The baseline's; null where the threshold is not of it."""
    verdict: Literal["holds", "fails", "unclear", "reported", "unknown"]


class EvaluatedCandidate(TypedDict):
    """A claim on a candidate."""

    candidate: str
    verdict: Literal["holds", "fails", "unclear", "reported", "unknown"]
    """The worst of its cells."""
    cells: list[EvaluatedCell]


class EvaluatedClaim(TypedDict):
    """What a criterion asks of a number."""

    of: str
    """A column, as `sojourn compare` names them."""
    over: str | None
    asks: str
    """The threshold in words; empty: none."""
    source: str
    """Whose it is."""
    candidates: list[EvaluatedCandidate]


class EvaluatedCriterion(TypedDict):
    """One section of the document."""

    name: str
    section: str
    force: str
    title: str
    claims: list[EvaluatedClaim]


class MissingCriterion(TypedDict):
    """A section that can't be run."""

    section: str
    force: str
    title: str
    needs: str


class LeftOutCandidate(TypedDict):
    """One of the suite's own that the engine can't run."""

    candidate: str
    why: str


class EvaluateOutput(TypedDict):
    """`sojourn evaluate`."""

    schema: str
    suite: str
    title: str
    engine: str
    candidates: list[str]
    """The baseline first."""
    verdict: list[str]
    """A sentence on each candidate but the baseline."""
    criteria: list[EvaluatedCriterion]
    missing: list[MissingCriterion]
    left_out: list[LeftOutCandidate]
    """Where none were named."""
    failed: list[FailedRun]


class ReplayedSide(TypedDict):
    """What one queue did, packets."""

    sent: int
    """That left, unmarked or marked."""
    refused: int
    """Dropped on arrival."""
    dropped: int
    """While they waited."""
    marked: int


class ReplayedDraws(TypedDict):
    """RED's random decisions, in sum."""

    drawn: int
    """Arrivals that the recorded queue dropped or marked though the law left it to rng."""
    expected: float
    """The sum of the probabilities that ours found."""
    ci95: float


class ReplayedDifference(TypedDict):
    """A packet to which the two did not do the same."""

    packet: int
    """Its place among the arrivals, from 0."""
    words: str


class ReplayedQueue(TypedDict):
    """Two queues and one trace of arrivals."""

    name: str
    link: str
    qdisc: str
    arrivals: int
    kernel: ReplayedSide
    ours: ReplayedSide
    agreeing: int
    """Packets to which both did the same."""
    late: int
    """Departures and drops that agree but are not at the same nanosecond (of a drop:
    microsecond)."""
    latest_ns: int
    draws: ReplayedDraws | None
    """Null: it draws nothing."""
    first: ReplayedDifference | None
    """The first packet to leave, of those that don't agree."""
    agrees: bool


class ReplayOutput(TypedDict):
    """`sojourn replay`."""

    schema: str
    version: str | None
    """Of the sojourn that recorded; null: nothing was recorded."""
    agrees: bool
    failed: list[FailedRun]
    replays: list[ReplayedQueue]


class NotRemoved(TypedDict):
    """What could not be removed."""

    name: str
    why: str


class CleanOutput(TypedDict):
    """`sojourn clean`."""

    schema: str
    removed: list[str]
    """Files and folders."""
    left: list[NotRemoved]
    living: list[str]
    """What belongs to a run that lives."""
    guests: list[str]
    """That were removed."""
    freed_bytes: int
    """Of guests."""


class CacheOutput(TypedDict):
    """`sojourn cache`: the store of finished seeds, as it is now."""

    schema: str
    folder: str
    entries: int
    """Seeds."""
    bytes: int
    bound_bytes: int
    """What all seeds may take; 0: nothing is kept."""
    oldest_s: float | None
    """When the seed that was not taken for longest was last taken or put, in seconds since 1970;
    null: there is none."""
    unused: str | None
    """Why nothing is taken from it or put into it; null: it is used."""
    removed: int
    """Seeds that this call removed."""


OUTPUTS: dict[str, tuple[int, str]] = {
    "run": (1, "sojourn.outputs:RunOutput"),
    "sweep": (1, "sojourn.outputs:SweepOutput"),
    "cells": (1, "sojourn.outputs:CellsOutput"),
    "compare": (1, "sojourn.outputs:CompareOutput"),
    "advise": (1, "sojourn.outputs:AdviseOutput"),
    "evaluate": (1, "sojourn.outputs:EvaluateOutput"),
    "check": (1, "sojourn.outputs:CheckOutput"),
    "verify": (1, "sojourn.outputs:VerifyOutput"),
    "agree": (1, "sojourn.outputs:AgreeOutput"),
    "replay": (1, "sojourn.outputs:ReplayOutput"),
    "clean": (1, "sojourn.outputs:CleanOutput"),
    "cache": (1, "sojourn.outputs:CacheOutput"),
}
"""Each output of this package by its name: its version, and the place of its shape."""


def installed() -> dict[str, tuple[int, str]]:
    """The outputs of all packages that are there."""
    return OUTPUTS | {
        name: output for package in extras.installed() for name, output in package.outputs.items()
    }


def stamped(name: str, whole: Mapping[str, Any]) -> dict[str, Any]:
    """An output with its `schema` in front."""
    return {"schema": identifier(name), **whole}


def as_json(name: str, whole: Mapping[str, Any]) -> str:
    """What `--json` prints: one object with its `schema` in front, lines indented, no NaN in it."""
    return json.dumps(stamped(name, whole), indent=2, ensure_ascii=False, allow_nan=False)


def identifier(name: str) -> str:
    """What the key `schema` of this output says."""
    version, _ = OUTPUTS[name] if name in OUTPUTS else installed()[name]
    return f"sojourn/{name}/{version}"
