"""`sojourn.sweep`: runs a sweep in memory and returns a data frame."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sojourn.engine import Interruption, Progress, contenders, simulate_all
from sojourn.errors import UserError
from sojourn.scenario import Scenario, load
from sojourn.sweeps import frames
from sojourn.sweeps.axes import Setting
from sojourn.sweeps.grid import check, of_simulated

if TYPE_CHECKING:
    import polars as pl

OnProgress = Callable[[Progress], bool | None]


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C in a sweep. `frame` has the finished seeds."""

    def __init__(self, frame: pl.DataFrame) -> None:
        super().__init__("the finished seeds are in this exception's `frame`")
        self.frame = frame


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    qdiscs: Sequence[str] = (),
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    between: Mapping[str, Sequence[Setting]] | None = None,
    samples: int = 50,
    sampling: Literal["lhs", "random"] = "lhs",
    sampling_seed: int = 1,
    seeds: int | Sequence[int] | None = None,
    by: frames.RowsPer = "seed",
    columns: Sequence[str] | None = None,
    link: str | None = None,
    jobs: int | None = None,
    progress: OnProgress | bool = False,
) -> pl.DataFrame:
    """Simulates every combination of the swept values in memory, and returns one data frame.

    The frame has a row for each cell and seed. Its first columns are the swept keys; docs/sweeps.md
    names the others. After `pip install pandas pyarrow`, `.to_pandas()` converts it to pandas.

    >>> import sojourn
    >>> short = sojourn.load("home-uplink").with_(duration="3 s", warmup="1 s")
    >>> frame = sojourn.sweep(
    ...     short,
    ...     ["pfifo", "fq_codel"],
    ...     vary={"bottleneck.up.rate": ["5 Mbit/s", "20 Mbit/s"]},
    ...     seeds=2,
    ... )
    >>> frame.height    # 2 disciplines, 2 rates, 2 seeds
    8

    Args:
        scenario: a Scenario, the path of its file, or the name of an example.
        qdiscs: disciplines, in tc's syntax, each in turn at the bottleneck.
        vary: values by dotted key, added to the scenario's own `[sweep]`.
        between: the two ends of a range by dotted key, instead of values. A scenario's `[sweep]`
            writes them "1 Mbit/s .. 100 Mbit/s". The sweep then has `samples` points in these
            ranges, each with every combination of the other values.
        samples: the number of points, with `between`.
        sampling: "lhs" spreads the points over each range (a Latin hypercube), "random" does not.
        sampling_seed: the seed of the rng that draws the points.
        seeds: the number of seeds, counted up from the scenario's, or a list of seeds. All cells
            have the same seeds.
        by: "cell" gives a row for each cell, with means over seeds and 95 % intervals.
        columns: the quantities, named as in `sojourn run --columns`; None: all.
        link: the link at which the disciplines take turns, if the scenario needs it.
        jobs: the number of threads; None: one for each core.
        progress: True shows a bar; or a function, which is called as by `sojourn.simulate`.

    Raises:
        UserError: the simulator can't run it, there is no such column, or `qdiscs` is not a list.
        Cancelled: `progress` returned False.
        SweepInterrupted: on Ctrl-C; its `frame` has the finished seeds.
    """
    check(columns or ())
    whole = scenario if isinstance(scenario, Scenario) else load(os.fspath(scenario))
    swept: dict[str, Any] = {key: list(values) for key, values in (vary or {}).items()}
    if between:
        drawn = {"samples": samples, "sampling": sampling, "sampling_seed": sampling_seed}
        swept |= {key: _range(key, ends) for key, ends in between.items()} | drawn
    if swept:
        whole = whole.with_({"sweep": {**whole.sweep, **swept}})
    if isinstance(qdiscs, (str, Mapping)):
        raise UserError(
            f"qdiscs: {qdiscs!r} is not a list of queue disciplines",
            'write ["pfifo", "fq_codel"]; give values of other keys as vary={...}',
        )
    if qdiscs:
        whole = contenders(whole, qdiscs, link)
    try:
        with _shown(progress) as show:
            simulated = simulate_all(whole, seeds=seeds, jobs=jobs, progress=show)
    except Interruption as stop:
        raise SweepInterrupted(_framed(stop.finished, by, None)) from None
    return _framed(simulated, by, columns)


def _range(key: str, ends: Sequence[Setting]) -> str:
    """A range as `[sweep]` writes it."""
    if isinstance(ends, str) or len(ends) != 2:
        raise UserError(
            f"{key}: {ends!r} is not a range",
            'write the lower and the upper end, of one quantity: ("1 Mbit/s", "100 Mbit/s")',
        )
    return " .. ".join(map(str, ends))


def _framed(
    simulated: Sequence[Any], by: frames.RowsPer, columns: Sequence[str] | None
) -> pl.DataFrame:
    grid = of_simulated(simulated)
    return frames.frame(grid, by, None if columns is None else grid.selected(columns))


@contextlib.contextmanager
def _shown(progress: OnProgress | bool) -> Iterator[OnProgress | None]:
    """Yields the function to call with each Progress: the caller's, or one that moves a bar."""
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

        def show(reached: Progress) -> None:
            bar.update(task, total=reached.runs, completed=reached.fraction * reached.runs)

        yield show
