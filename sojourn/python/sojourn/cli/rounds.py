"""Rounds of more seeds, until a number is precise enough (--until) or a choice is clear
(advise)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.cli import options, work

if TYPE_CHECKING:
    from sojourn.engine import ClusterAddress, UnfinishedError
    from sojourn.records import Run
    from sojourn.scenario import Scenario
    from sojourn.sweeps.until import Lacking, Precision


@dataclass(frozen=True)
class Rounds:
    """The wanted precision, and how to run the rounds."""

    wanted: Precision
    execution: options.ExecutionOptions
    cluster: ClusterAddress | None
    store: options.StoreOptions
    quiet: bool
    link: str | None = None
    """The link where the number is measured; None: where most packets waited."""

    def run(self, runs: Sequence[Run], variants: Sequence[Scenario]) -> list[UnfinishedError]:
        """Adds seeds to these Runs until each number is precise enough or has the most seeds.
        Returns the engine's failure, which ends the rounds.

        Raises:
            Interrupted: on Ctrl-C.
        """
        from sojourn.engine import UnfinishedError
        from sojourn.sweeps.until import lacking

        of = dict(zip(runs, variants, strict=True))
        while found := lacking(runs, self.wanted, self.link):
            more = [one for one in found if one.seeds]
            if not more:
                most = f"{self.wanted.most} seeds are the limit (--at-most)"
                work.say(f"{_widest(found, self.wanted)}: {most}", self.quiet)
                break
            count = sum(len(one.seeds) for one in more)
            runs_more = f"{count} more {'run' if count == 1 else 'runs'}"
            work.say(f"{_widest(more, self.wanted)}: {runs_more}", self.quiet)
            try:
                self._round(more, of)
            except UnfinishedError as stop:
                return [stop]
        return []

    def _round(self, more: Sequence[Lacking], of: Mapping[Run, Scenario]) -> None:
        further = [Further(one.run, of[one.run], one.seeds) for one in more]
        add(further, self.execution, self.cluster, self.store, self.quiet)


@dataclass(frozen=True)
class Further:
    """Seeds to add to a Run of this scenario."""

    run: Run
    scenario: Scenario
    seeds: Sequence[int]


def add(
    further: Sequence[Further],
    execution: options.ExecutionOptions,
    cluster: ClusterAddress | None,
    store: options.StoreOptions,
    quiet: bool,
) -> None:
    """Runs these seeds.

    Raises:
        UnfinishedError: the engine could not finish some of them.
        Interrupted: on Ctrl-C.
    """
    from sojourn.engine import run_more

    with work.progress(quiet) as progress:
        run_more(
            [one.run for one in further],
            [one.scenario for one in further],
            [one.seeds for one in further],
            engine=execution.engine,
            jobs=execution.jobs,
            cluster=cluster,
            fresh=store.fresh,
            progress=progress,
        )


def _widest(found: Sequence[Lacking], wanted: Precision) -> str:
    """The precision of the least precise number."""
    worst = max(found, key=lambda one: one.widest)
    if math.isinf(worst.widest):
        return f"{wanted.key} of one seed has no interval"
    return f"{wanted.key} is known to ±{100 * worst.widest:.2g} % in {worst.run.name}"
