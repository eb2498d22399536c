"""Runs scenarios on both sides: on the kernel, then in the simulator with the seeds that the kernel
has finished. Cases with undecided numbers get more seeds, twice as many each round."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sojourn import metrics
from sojourn.agreement import standing
from sojourn.agreement.mechanisms import Sides, sides
from sojourn.agreement.side_by_side import (
    TOLERANCE,
    Comparison,
    Digest,
    NumberVerdict,
    compare,
    digest,
    verdicts,
)
from sojourn.arrays import Json
from sojourn.defaults import ENGINES, SEEDS_END, STANDING_MOST_SEEDS
from sojourn.engine.protocol import Engine
from sojourn.engine.registry import find_awake, profile_of
from sojourn.engine.request import ClusterAt, Progress, loaded, seeds_of
from sojourn.engine.runs import (
    Failure,
    Interrupted,
    UnfinishedError,
    check,
    folder_names,
    run_all,
    run_more,
)
from sojourn.errors import UserError
from sojourn.outputs import as_json
from sojourn.records import Run, check_vacant, write_named
from sojourn.scenario import Scenario

REPORT = "agreement.json"
AWAKE = "-awake"
"""Suffix of the side whose kernel's RED was made to adapt (`Sides.awake`)."""

ScenarioSource: TypeAlias = "Scenario | str | os.PathLike[str]"


@dataclass(frozen=True)
class AgreeSettings:
    """Options for running and comparing both sides: see `agree`."""

    engine: str
    seeds: int | None
    most_seeds: int | None
    tolerance: float
    out: Path | None
    jobs: int | None
    cluster: ClusterAt | None
    force: bool
    fresh: bool
    progress: Callable[[Progress], None] | None
    say: Callable[[str], None]

    def where(self, side: str) -> ClusterAt | None:
        """Where a side runs: on the cluster, except a kernel that needs the library of awake.py,
        because no worker has that library."""
        return None if side.endswith(AWAKE) else self.cluster


@dataclass(frozen=True)
class Agreement:
    """The results of the cases that have run on both sides."""

    engine: str
    """The kernel's."""
    tolerance: float
    """As a share of the kernel's number."""
    comparisons: tuple[Comparison, ...]
    """A row with a verdict for each number, of each case."""
    simulated: tuple[Run, ...]
    """The simulator's Run of each case."""
    kernels: tuple[Run, ...]
    """The kernel's."""
    not_finished: int
    """Cases that are not compared because a side has no seed of them."""
    stops: tuple[UnfinishedError, ...] = ()
    """Errors of engines that did not finish."""
    out: Path | None = None
    """The folder of the Runs."""

    @property
    def agrees(self) -> bool:
        """Whether no number of these cases is beyond the tolerance."""
        return all(one.agrees for one in self.comparisons)

    @property
    def failed(self) -> tuple[Failure, ...]:
        """Seeds that an engine could not finish."""
        return tuple(each for stop in self.stops for each in stop.failed)

    @property
    def invalid(self) -> list[str]:
        """Why some Runs of the kernel are invalid."""
        return [reason for run in self.kernels for reason in run.meta.invalid]

    @property
    def verdicts(self) -> dict[NumberVerdict, int]:
        """The count of each verdict."""
        return verdicts(self.comparisons)

    @property
    def digest(self) -> list[Digest]:
        """Agreement by queue discipline and number."""
        return digest(self.comparisons)

    @property
    def cpu_s(self) -> dict[str, float]:
        """CPU time of each side, s."""
        both = (("sim", self.simulated), (self.engine, self.kernels))
        return {name: sum(sum(run.meta.cpu_s.values()) for run in runs) for name, runs in both}

    def to_dict(self) -> Json:
        """As plain values."""
        return {
            "engine": self.engine,
            "version": self.kernels[0].meta.version if self.kernels else "",
            "tolerance": self.tolerance,
            "agrees": self.agrees,
            "not_finished": self.not_finished,
            "invalid": self.invalid,
            "failed": [each.to_dict() for each in self.failed],
            "verdicts": self.verdicts,
            "cpu_s": self.cpu_s,
            "comparisons": [one.to_dict() for one in self.comparisons],
            "digest": [one.to_dict() for one in self.digest],
        }

    def to_json(self) -> str:
        """The output of `sojourn agree --json`."""
        return as_json("agree", self.to_dict())

    def write(self) -> None:
        """Writes agreement.json, if the Runs are kept and something was compared.

        Raises:
            UserError: the disk is full, or permission is denied.
        """
        if self.out is not None and self.comparisons:
            write_named(self.out / REPORT, f"{self.to_json()}\n")


class AgreeInterrupted(KeyboardInterrupt):
    """Ctrl-C. `found` has the finished cases, `stop` the missing seeds."""

    def __init__(self, found: Agreement, stop: Interrupted) -> None:
        super().__init__()
        self.found = found
        self.stop = stop


def agree(
    scenarios: ScenarioSource | Sequence[ScenarioSource] | None = None,
    *,
    engine: str = standing.KERNEL,
    seeds: int | None = None,
    most_seeds: int | None = None,
    tolerance: float = TOLERANCE,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    cluster: ClusterAt | None = None,
    force: bool = False,
    fresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Agreement:
    """Compares the simulator's numbers with the real kernel's.

    Args:
        scenarios: Scenarios, paths of their files, names of examples; all variants of each. None:
            the standing set.
        engine: the kernel: see `ENGINES`.
        seeds: the number of seeds of each, counted up from its first. None: its own seeds.
        most_seeds: the most seeds of a case with undecided numbers. None: 12 for
            the standing set, else no further ones.
        tolerance: how far apart two numbers may be, as a share of the kernel's.
        out: a folder for the Runs of both sides and agreement.json. None: nothing is kept.
        progress: called with a `Progress` about ten times a second; starts again in each stage.
        say: called with a description of each stage, and with what is left out.

    `jobs`, `cluster`, `force` and `fresh` are those of `sojourn.run`.

    Raises:
        UserError: a side can't run one of the scenarios, or `out` has other Runs.
        UnfinishedError: the engine could finish no case. If it finished some, the failures are in
            the result's `failed`.
        AgreeInterrupted: on Ctrl-C, with the finished cases.
    """
    how = AgreeSettings(
        engine=engine,
        seeds=seeds,
        most_seeds=most_seeds,
        tolerance=tolerance,
        out=None if out is None else Path(out),
        jobs=jobs,
        cluster=cluster,
        force=force,
        fresh=fresh,
        progress=progress,
        say=say or _silent,
    )
    try:
        found = carry_out(scenarios, how)
    except AgreeInterrupted as stop:
        stop.found.write()
        raise
    found.write()
    return found


def carry_out(
    scenarios: ScenarioSource | Sequence[ScenarioSource] | None, how: AgreeSettings
) -> Agreement:
    """Does the same as `agree`, but does not write agreement.json: the caller writes it after
    showing the result."""
    kernels = [name for name in ENGINES if name != "sim"]
    if how.engine not in kernels:
        raise UserError(f"{how.engine} is not a kernel", f"kernels: {', '.join(kernels)}")
    most_seeds = how.most_seeds
    if most_seeds is None:
        most_seeds = STANDING_MOST_SEEDS if scenarios is None else 0
    variants = _variants(scenarios, how.engine)
    # A refusal by the simulator must come before the kernel has run.
    check(variants, "sim")
    cases = [_Case(each) for each in _sides(variants, how)]
    stops: list[UnfinishedError] = []
    try:
        _first(cases, how, stops)
        _judge(cases, how.tolerance)
        while unsettled := [one for one in cases if one.further(most_seeds)]:
            _further(unsettled, most_seeds, how, stops)
            _judge(unsettled, how.tolerance)
    except Interrupted as stop:
        _judge([one for one in cases if one.found is None and one.complete], how.tolerance)
        raise AgreeInterrupted(_found(cases, how, stops), stop) from None
    found = _found(cases, how, stops)
    if stops and not found.comparisons:
        raise stops[0]
    return found


# --------------------------------------------------------------------------------------- the work


@dataclass
class _Case:
    """One scenario on both sides, and its state."""

    sides: Sides
    kernels: Run | None = None
    """The kernel's Run, once it has begun."""
    simulators: Run | None = None
    """The simulator's Run of the seeds that the kernel has finished."""
    found: Comparison | None = None

    @property
    def ours(self) -> Run:
        """The simulator's Run."""
        assert self.simulators is not None, "it was run"
        return self.simulators

    @property
    def theirs(self) -> Run:
        """The kernel's."""
        assert self.kernels is not None, "it was run"
        return self.kernels

    @property
    def begun(self) -> bool:
        """Whether the kernel has finished a seed of it."""
        return self.kernels is not None and bool(self.kernels.seeds)

    @property
    def complete(self) -> bool:
        """Whether both sides have every requested seed."""
        runs = (self.kernels, self.simulators)
        return all(
            run is not None and set(run.seeds) == set(self.theirs.meta.seeds_asked) for run in runs
        )

    def further(self, most: int) -> bool:
        """Whether more seeds may decide more numbers. They can't if all seeds give the same, or if
        the kernel's Run is invalid."""
        if self.found is None:
            return False
        open_ = not self.found.decided and self.found.scatters and not self.theirs.meta.invalid
        return open_ and bool(self.next_seeds(most))

    def next_seeds(self, most: int) -> list[int]:
        """The next seeds: as many as the case has already, up to `most` in all."""
        seeds = self.theirs.meta.seeds_asked
        first = max(seeds) + 1
        return list(range(first, min(first + min(len(seeds), most - len(seeds)), SEEDS_END)))


def _silent(_words: str) -> None:
    """Does nothing."""


def _variants(
    scenarios: ScenarioSource | Sequence[ScenarioSource] | None, engine: str
) -> list[Scenario]:
    if scenarios is None:
        return standing.standing(engine)
    if isinstance(scenarios, (Scenario, str, os.PathLike)):
        scenarios = [scenarios]
    return standing.named([loaded(each) for each in scenarios])


def _sides(variants: Sequence[Scenario], how: AgreeSettings) -> list[Sides]:
    """The comparisons of each variant with the kernel. A comparison that is impossible here is left
    out, and reported."""
    profile = profile_of(how.engine)
    found = [each for variant in variants for each in sides(variant, profile)]
    if any(each.awake for each in found):
        try:
            find_awake(how.engine)
        except UserError as error:
            how.say(f"left out: red adaptive, awake: {error.problem}")
            return [each for each in found if not each.awake]
    return found


def _first(cases: Sequence[_Case], how: AgreeSettings, stops: list[UnfinishedError]) -> None:
    """Runs every case on the kernel, then in the simulator with the seeds that the kernel has
    finished. Appends failures to `stops`."""
    _check_vacant(cases, how)
    interrupted: Interrupted | None = None
    try:
        for awake in (False, True):
            chosen = [case for case in cases if case.sides.awake is awake]
            runs = _run_all(
                [case.sides.theirs for case in chosen], _side(how.engine, awake), how, stops
            )
            for case, run in zip(chosen, runs, strict=True):
                case.kernels = run
    except Interrupted as stop:
        interrupted = stop
        by_name = {run.name: run for run in stop.runs}
        for case in cases:
            case.kernels = case.kernels or by_name.get(case.sides.theirs.label)
    # The simulator takes a hundredth of the kernel's time. So after an interruption it still runs
    # the seeds that the kernel has finished, and these can be judged.
    wanted = [case for case in cases if case.begun]
    if interrupted is not None:
        wanted = [
            case for case in wanted if set(case.theirs.seeds) == set(case.theirs.meta.seeds_asked)
        ]
    ours = [case.sides.ours.with_(seeds=list(case.theirs.seeds)) for case in wanted]
    try:
        for case, run in zip(
            wanted, _run_all(ours, "sim", dataclasses.replace(how, seeds=None), stops), strict=True
        ):
            case.simulators = run
    except Interrupted as stop:
        by_name = {run.name: run for run in stop.runs}
        for case in wanted:
            case.simulators = by_name.get(case.sides.ours.label)
        raise
    if interrupted is not None:
        raise interrupted


def _check_vacant(cases: Sequence[_Case], how: AgreeSettings) -> None:
    """Refuses, before anything runs, a folder of any side that has Runs already."""
    if how.out is None:
        return
    of_side: dict[str, list[Scenario]] = {}
    for case in cases:
        seeds = seeds_of(case.sides.theirs, how.seeds)
        of_side.setdefault("sim", []).append(case.sides.ours.with_(seeds=list(seeds)))
        of_side.setdefault(_side(how.engine, case.sides.awake), []).append(case.sides.theirs)
    for name, scenarios in of_side.items():
        folders = folder_names([scenario.label for scenario in scenarios])
        for folder, scenario in zip(folders, scenarios, strict=True):
            check_vacant(how.out / name / folder, scenario.to_toml(), force=how.force)


def _side(engine: str, awake: bool) -> str:
    """The name of the kernel's side on disk and in messages."""
    return f"{engine}{AWAKE}" if awake else engine


def _engine(name: str) -> str | Engine:
    """The engine of a side."""
    plain = name.removesuffix(AWAKE)
    return name if plain == name else find_awake(plain)


def _run_all(
    scenarios: Sequence[Scenario], side: str, how: AgreeSettings, stops: list[UnfinishedError]
) -> Sequence[Run]:
    """Runs these scenarios on one side. Appends failures to `stops`."""
    if not scenarios:
        return []
    how.say(f"{counted(scenarios)} on {side}")
    try:
        return run_all(
            scenarios,
            seeds=how.seeds,
            out=None if how.out is None else how.out / side,
            engine=_engine(side),
            jobs=how.jobs,
            cluster=how.where(side),
            force=how.force,
            fresh=how.fresh,
            progress=how.progress,
        )
    except UnfinishedError as stop:
        stops.append(stop)
        return stop.runs


def _further(
    cases: Sequence[_Case], most: int, how: AgreeSettings, stops: list[UnfinishedError]
) -> None:
    """Runs more seeds of undecided cases on the kernel, then in the simulator with those that the
    kernel has finished."""
    seeds = [case.next_seeds(most) for case in cases]
    how.say(f"{counted(cases)} with undecided numbers: {sum(map(len, seeds))} more seeds")
    for awake in (False, True):
        chosen = [
            (case.theirs, case.sides.theirs, more)
            for case, more in zip(cases, seeds, strict=True)
            if case.sides.awake is awake
        ]
        _run_more(chosen, _side(how.engine, awake), how, stops)
    ours = [(case.ours, case.sides.ours, list(case.theirs.seeds)) for case in cases]
    _run_more(ours, "sim", how, stops)


def _run_more(
    chosen: Sequence[tuple[Run, Scenario, list[int]]],
    side: str,
    how: AgreeSettings,
    stops: list[UnfinishedError],
) -> None:
    """Adds seeds to Runs of one side. Appends failures to `stops`."""
    if not chosen:
        return
    runs, scenarios, seeds = zip(*chosen, strict=True)
    how.say(f"{counted(runs)} on {side}")
    try:
        run_more(
            runs,
            scenarios,
            seeds,
            engine=_engine(side),
            jobs=how.jobs,
            cluster=how.where(side),
            fresh=how.fresh,
            progress=how.progress,
        )
    except UnfinishedError as stop:
        stops.append(stop)


def counted(them: Sequence[object]) -> str:
    """`3 scenarios`."""
    return f"{len(them)} scenario{'' if len(them) == 1 else 's'}"


def _judge(cases: Sequence[_Case], tolerance: float) -> None:
    """Compares both sides of each case over all its seeds."""
    for case in cases:
        if not case.begun or not case.ours.seeds:
            continue
        case.found = compare(
            metrics.summary(case.ours),
            metrics.summary(case.theirs),
            {link.name: link.rate_bps for link in case.theirs.meta.links},
            tolerance=tolerance,
            setting=case.sides.setting,
        )


def _found(
    cases: Sequence[_Case], how: AgreeSettings, stops: Sequence[UnfinishedError]
) -> Agreement:
    judged = [(case, case.found) for case in cases if case.found is not None]
    return Agreement(
        engine=how.engine,
        tolerance=how.tolerance,
        comparisons=tuple(found for _, found in judged),
        simulated=tuple(case.ours for case, _ in judged),
        kernels=tuple(case.theirs for case, _ in judged),
        not_finished=len(cases) - len(judged),
        stops=tuple(stops),
        out=how.out,
    )
