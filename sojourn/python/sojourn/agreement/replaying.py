"""Replays queues of a kernel, recorded in a guest or read from files, and compares each decision
with the simulator's (`decisions`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sojourn.agreement import standing
from sojourn.agreement.decisions import Compared, compare, lacking, never_recorded
from sojourn.agreement.recorder import RecordingStopped, RecordingUnfinishedError, record
from sojourn.arrays import Json
from sojourn.defaults import QUEUE_RECORDING
from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.recording import Recording
from sojourn.engine.request import Progress, loaded
from sojourn.engine.runs import Failure, UnfinishedError, folder_names
from sojourn.errors import UserError
from sojourn.outputs import as_json
from sojourn.own.compiled import given
from sojourn.records import write_named
from sojourn.scenario import Scenario
from sojourn.scenario.qdisc import Qdisc

REPORT = "replay.json"

ReplaySource: TypeAlias = "Scenario | Recording | str | os.PathLike[str]"


@dataclass(frozen=True)
class NotCompared:
    """A recording that can't be compared."""

    name: str
    why: str
    hint: str


@dataclass(frozen=True)
class Replays:
    """Each recorded queue compared with ours."""

    queues: tuple[Compared, ...]
    recordings: tuple[Recording, ...]
    """All recordings, in the order of the request: those from files first."""
    left_out: tuple[NotCompared, ...] = ()
    stops: tuple[UnfinishedError, ...] = ()
    """Errors of guests that did not finish."""
    out: Path | None = None
    """The folder of the recordings."""

    @property
    def agrees(self) -> bool:
        """Whether no decision of these queues differs."""
        return all(one.agrees for one in self.queues)

    @property
    def failed(self) -> tuple[Failure, ...]:
        """Seeds that a guest could not finish."""
        return tuple(each for stop in self.stops for each in stop.failed)

    def to_dict(self) -> Json:
        """As plain values."""
        return {
            "version": next((each.version for each in self.recordings), None),
            "agrees": self.agrees,
            "failed": [each.to_dict() for each in self.failed],
            "replays": [one.to_dict() for one in self.queues],
        }

    def to_json(self) -> str:
        """The output of `sojourn replay --json`."""
        return as_json("replay", self.to_dict())

    def write(self) -> None:
        """Writes replay.json, if the recordings are kept.

        Raises:
            UserError: the disk is full, or permission is denied.
        """
        if self.out is not None:
            write_named(self.out / REPORT, f"{self.to_json()}\n")


class ReplayInterrupted(KeyboardInterrupt):
    """Ctrl-C. `found` has the finished recordings, `missing` the number of unfinished guests."""

    def __init__(self, found: Replays, missing: int) -> None:
        super().__init__()
        self.found = found
        self.missing = missing


@dataclass(frozen=True)
class ReplaySettings:
    """Options for recording and comparing queues: see `replay`."""

    engine: str
    seeds: int | None
    qdisc: Qdisc | None
    out: Path | None
    force: bool
    jobs: int | None
    progress: Callable[[Progress], None] | None
    say: Callable[[str], None] | None


def replay(
    what: ReplaySource | Sequence[ReplaySource] | None = None,
    *,
    engine: str = standing.KERNEL,
    seeds: int | None = None,
    qdisc: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Replays:
    """Compares each decision of a queue with the kernel's: enqueued, dropped, sent or marked, in
    which order and when (ns).

    Args:
        what: Scenarios, paths of their files, names of examples; all variants of each are recorded
            first. Recordings, and paths that end with .parquet. None: the standing set.
        engine: the kernel that records: see `ENGINES`.
        seeds: the number of seeds of each scenario, counted up from its first. None: its own.
        qdisc: a discipline of the simulator to compare in place of the recorded one. It may be
            user-defined: "mine.py:Mine".
        out: a folder for the new recordings and replay.json. None: nothing is kept.
        force: write into `out` though it is not empty.
        jobs: threads. None: one per core.
        progress: called with a `Progress` about ten times a second while guests record.
        say: called with a description of each stage.

    Raises:
        UserError: there is no such guest; a scenario needs features that it lacks; no recording can
            be compared; `out` is not empty.
        UnfinishedError: no guest finished. If some did, the failures are in the result's `failed`.
        ReplayInterrupted: on Ctrl-C, with the finished recordings.
    """
    how = ReplaySettings(
        engine=engine,
        seeds=seeds,
        qdisc=None if qdisc is None else given(qdisc),
        out=None if out is None else Path(out),
        force=force,
        jobs=jobs,
        progress=progress,
        say=say,
    )
    try:
        found = carry_out(what, how)
    except ReplayInterrupted as stop:
        stop.found.write()
        raise
    found.write()
    return found


def carry_out(what: ReplaySource | Sequence[ReplaySource] | None, how: ReplaySettings) -> Replays:
    """Does the same as `replay`, but does not write replay.json: the caller writes it after showing
    the result."""
    sources, scenarios = _read(standing.replays(how.engine) if what is None else what)
    recordings = [each if isinstance(each, Recording) else Recording.load(each) for each in sources]
    if how.out is not None:
        _check_vacant(how.out, how.force)
    missing = 0
    stops: list[UnfinishedError] = []
    try:
        new = _recorded(scenarios, how)
    except RecordingStopped as stop:
        new, missing = list(stop.recordings), stop.missing
    except RecordingUnfinishedError as stop:
        if not stop.recordings and not recordings:
            raise
        new, stops = list(stop.recordings), [stop]
    if how.out is not None:
        _keep(new, how.out)
    recordings += new
    comparable, left_out = _comparable(recordings, how.qdisc)
    found = Replays(
        queues=tuple(compare(each) for each in comparable),
        recordings=tuple(recordings),
        left_out=tuple(left_out),
        stops=tuple(stops),
        out=how.out,
    )
    if missing:
        raise ReplayInterrupted(found, missing)
    return found


# --------------------------------------------------------------------------------------- the work


def _read(
    what: ReplaySource | Sequence[ReplaySource],
) -> tuple[list[Recording | Path], list[Scenario]]:
    """Returns recordings, or their files, and the variants of all scenarios."""
    if isinstance(what, (Scenario, Recording, str, os.PathLike)):
        what = [what]
    recordings: list[Recording | Path] = []
    variants: list[Scenario] = []
    for each in what:
        if isinstance(each, Recording):
            recordings.append(each)
        elif not isinstance(each, Scenario) and Path(each).suffix == QUEUE_RECORDING:
            recordings.append(Path(each))
        else:
            variants += loaded(each).variants()
    return recordings, variants


def _comparable(
    recordings: Sequence[Recording], instead: Qdisc | None
) -> tuple[list[Recording], list[NotCompared]]:
    """Separates the recordings that have all inputs of their discipline, or of `instead`, from the
    others.

    Raises:
        UserError: no recording has them.
    """
    found = [each if instead is None else each.by(instead) for each in recordings]
    comparable: list[Recording] = []
    left_out: list[NotCompared] = []
    for each in found:
        if (why := lacking(each)) is None:
            comparable.append(each)
        else:
            left_out.append(NotCompared(each.name, *why))
    if left_out and not comparable:
        raise UserError(f"{left_out[0].name}: {left_out[0].why}", left_out[0].hint)
    return comparable, left_out


def _check_decided(variant: Scenario) -> None:
    """Raises UserError where no recording of the scenario's queues could be compared."""
    links = variant.realise(variant.seeds[0]).links
    whys = [never_recorded(link.qdisc) for link in links if has_queue(link) and link.sampled]
    if whys and whys[0] is not None and None not in whys:
        problem, hint = whys[0]
        raise UserError(f"{variant.label or variant.title}: {problem}", hint)


def _recorded(variants: Sequence[Scenario], how: ReplaySettings) -> list[Recording]:
    if not variants:
        return []
    if how.qdisc is None:
        for variant in variants:
            _check_decided(variant)
    if how.say is not None:
        how.say(f"{len(variants)} scenario{'s' if len(variants) > 1 else ''} on {how.engine}")
    return record(
        variants, engine=how.engine, seeds=how.seeds, jobs=how.jobs, progress=how.progress
    )


def _check_vacant(folder: Path, force: bool) -> None:
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise UserError(
            f"{folder} is not empty", "choose another folder with -o, or replace it with --force"
        )


def _keep(recordings: Sequence[Recording], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"can't make {folder}: {error.strerror or error}", "choose another -o"
        ) from None
    names = folder_names([each.name for each in recordings])
    for recording, name in zip(recordings, names, strict=True):
        recording.save(folder / f"{name}{QUEUE_RECORDING}")
