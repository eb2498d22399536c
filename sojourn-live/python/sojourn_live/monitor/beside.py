"""The probes of measurements as a monitor's database, so that a graph and the page show them beside the
monitor's own.

A measurement is a Run: one of `sojourn measure`, or a file of another program that `sojourn import`
read. Each of its targets has the name of its program behind it: `SmokePing (smokeping)`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sojourn import cleanup
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn_live import _live
from sojourn_live.monitor.store import ProbeSamples, Store

OWN = {"live": "sojourn measure", "rpm": "sojourn rpm"}
"""What our own measurements are called."""
_NO_REPLY = _live.LOSSES.index("no reply")


@contextlib.contextmanager
def database(runs: Sequence[Path]) -> Iterator[Path]:
    """A database of these measurements' probes, until the end of the context.

    Raises:
        UserError: one of them is not a measurement, or has no probe.
    """
    with cleanup.temporary_folder() as folder:
        path = folder / "beside.db"
        with Store.open(path) as store:
            for run in runs:
                _add(store, run)
        yield path


def _add(store: Store, path: Path) -> None:
    run = Run.open(path)
    if not run.meta.facts:
        raise UserError(
            f"{path} is not a measurement",
            "give a Run of sojourn measure, or one that sojourn import wrote",
        )
    program = OWN.get(run.meta.engine, run.meta.engine)
    probes = 0
    for seed in run.seeds:
        zero_ns = run.meta.facts[str(seed)]["zero_ns"]
        table = run.table("probe", seed)
        for name in table["probe"].unique(maintain_order=True).to_list():
            own = table.filter(table["probe"] == name).sort("t_ns")
            probes += own.height
            t_ns = own["t_ns"].to_numpy() + zero_ns
            apart = np.diff(t_ns)
            interval_ns = int(np.median(apart)) if apart.size else 0
            number = store.target(f"{name} ({program})", "", max(interval_ns, 1))
            rtt_ns = own["rtt_ns"].fill_null(-1).to_numpy()
            store.add(
                ProbeSamples(
                    target=np.full(t_ns.size, number),
                    t_ns=t_ns,
                    sequence=own["seq"].fill_null(0).to_numpy(),
                    rtt_ns=rtt_ns,
                    loss=np.where(rtt_ns < 0, _NO_REPLY, -1),
                    lateness_ns=np.zeros(t_ns.size, np.int64),
                )
            )
    if not probes:
        raise UserError(f"{path} has no probe", "give a measurement that has sent probes")
