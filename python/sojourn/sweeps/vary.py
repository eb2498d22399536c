"""`sojourn.sweep`: a sweep in memory, as one data frame."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sojourn.engine import Interruption, Progress, contenders, simulate_all
from sojourn.scenario import Scenario, load
from sojourn.sweeps import frames
from sojourn.sweeps.axes import Setting
from sojourn.sweeps.design import Design, points
from sojourn.sweeps.grid import check, of_simulated

if TYPE_CHECKING:
    import polars as pl

OnProgress = Callable[[Progress], bool | None]


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C in a sweep. `frame` has the seeds that had finished."""

    def __init__(self, frame: pl.DataFrame) -> None:
        super().__init__("what had finished is in this exception's `frame`")
        self.frame = frame


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    qdiscs: Sequence[str] = (),
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    between: Mapping[str, Sequence[Setting]] | None = None,
    samples: int = 50,
    design: Design = "latin",
    design_seed: int = 1,
    seeds: int | Sequence[int] | None = None,
    by: frames.RowsPer = "seed",
    columns: Sequence[str] | None = None,
    link: str | None = None,
    jobs: int | None = None,
    progress: OnProgress | bool = False,
) -> pl.DataFrame:
    """Runs every combination of the swept values on the simulator, in memory, and gives one data
    frame: a row for each cell and seed.

        sojourn.sweep("home-uplink", ["pfifo", "fq_codel"],
                      vary={"bottleneck.up.rate": ["5 Mbit/s", "20 Mbit/s"]}, seeds=5)

    The first columns are the swept keys; docs/sweeps.md names the others. `.to_pandas()` makes a
    pandas frame of it, where pandas is installed.

    Args:
        scenario: a Scenario, the path of its file, or the name of an example.
        qdiscs: disciplines that take turns at the bottleneck, in tc's words.
        vary: values by dotted key, beside those that the scenario's `[sweep]` has.
        between: the two ends of a range by dotted key. The sweep then has `samples` points in these
            ranges, each with every combination of the other values.
        samples: how many points.
        design: "latin" spreads them over each range (a Latin hypercube), "random" does not.
        design_seed: of the luck that draws them.
        seeds: how many, counted up from the scenario's own, or which. All cells have the same.
        by: "cell" gives a row for each cell, with means over seeds and 95 % intervals.
        columns: the quantities, as `sojourn run --columns` names them; None: all.
        link: where the disciplines take turns, in a scenario that needs it.
        jobs: threads; None: as many as there are cores.
        progress: True shows a bar; or a function, as `sojourn.simulate` calls it.

    Raises:
        UserError: the simulator can't run it, or there is no such column.
        Cancelled: `progress` returned False.
        SweepInterrupted: on Ctrl-C; its `frame` has what had finished.
    """
    check(columns or ())
    whole = scenario if isinstance(scenario, Scenario) else load(os.fspath(scenario))
    if vary:
        whole = whole.with_({"sweep": {**whole.sweep, **{k: list(v) for k, v in vary.items()}}})
    if qdiscs:
        whole = contenders(whole, qdiscs, link)
    several = (
        [whole] if not between else _sampled(whole, points(between, samples, design, design_seed))
    )
    try:
        with _telling(progress) as tell:
            made = simulate_all(several, seeds=seeds, jobs=jobs, progress=tell)
    except Interruption as stop:
        raise SweepInterrupted(_framed(stop.finished, by, None)) from None
    return _framed(made, by, columns)


def _sampled(whole: Scenario, drawn: Sequence[Mapping[str, Setting]]) -> list[Scenario]:
    """The scenario once for each point, as a sweep that has one value for each key of the point."""
    others = {key: values for key, values in whole.sweep.items() if key not in drawn[0]}
    return [
        whole.with_({"sweep": {**{key: [value] for key, value in point.items()}, **others}})
        for point in drawn
    ]


def _framed(made: Sequence[Any], by: frames.RowsPer, columns: Sequence[str] | None) -> pl.DataFrame:
    grid = of_simulated(made)
    return frames.frame(grid, by, None if columns is None else grid.selected(columns))


@contextlib.contextmanager
def _telling(progress: OnProgress | bool) -> Iterator[OnProgress | None]:
    """What is called with each Progress: the function, or what moves a bar."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1)

        def tell(reached: Progress) -> None:
            bar.update(task, total=reached.runs, completed=reached.fraction * reached.runs)

        yield tell
