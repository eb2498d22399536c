"""The compiled core: scenario in, columns out. Private: the public face is `sojourn` itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.uint32] | NDArray[np.uint8] | NDArray[np.float64]
Columns = dict[str, Column]

VERSION: str
"""Version of the engine, as recorded in every Run."""

CAUSES: list[str]
"""Words of the drop and mark causes, in the order of their number in the `drops` table."""

class Cancelled(Exception):  # noqa: N818  (a request, not an error)
    """The run was stopped by its progress callback or by Ctrl-C."""

def run(scenario_json: str, progress: Callable[[int], bool] | None = None) -> dict[str, Columns]:
    """Runs one scenario (the JSON form of crates/sim/src/scenario.rs) to its end, the GIL released.

    `progress` is called about every 50 ms of wall time with the simulated time reached in ns; returning False
    stops the run. Returns tables by name: each a dict of equally long columns. Raises ValueError when the JSON is not a
    scenario, Cancelled when stopped, KeyboardInterrupt on Ctrl-C in the main thread.
    """

def replay(
    link_json: str,
    seed: int,
    t_ns: NDArray[np.int64],
    flow: NDArray[np.int64],
    bytes: NDArray[np.int64],
    ds: NDArray[np.int64],
    after: NDArray[np.int64] | None = None,
    early: NDArray[np.bool_] | None = None,
) -> dict[str, NDArray[Any]]:
    """Sends recorded arrivals through one link (the JSON form of LinkSpec in crates/sim/src/scenario.rs), the GIL released.

    One packet per place of the columns, in order of time: when it comes (from 0), its flow (equal for one direction of a five-tuple),
    bytes of the IP packet, DS field. Of another queue, whose decisions are to be compared (crates/sim/src/replay.rs): `after`, how many it had
    sent before the packet came, which orders what happens at one instant (-1: not known), and `early`, what a RED's draws decided;
    without it ours are drawn from `seed`.

    Returns equally long columns of int64, but for `state` and `chance` (float64, NaN for none): `t_ns` and `order` (when it left the
    queue, sent or dropped, and its place among those that left; -1: never), `refused` (1: dropped as it came), `dropped` and
    `marked` (the cause, in the order of CAUSES; -1: it was not), `backlog_packets` and `backlog_bytes` (queued when it came), `state`
    (RED's average in bytes when it came, CoDel's count when it left), `chance` (with `early`: how likely RED was to drop or mark it,
    given what became of all before it). Raises ValueError when the JSON is no link or the columns are no arrivals.
    """

def draw(seed: int, name: str, n: int) -> NDArray[np.uint64]:
    """The first n numbers of the random stream called `name` in a run with this seed (uniform over 64 bits)."""

def parse_toml(text: str) -> tuple[dict[str, object], dict[str, tuple[int, int]]]:
    """A TOML document as plain values, and (line, column), both from 1, of every key path ("flow.0.rtt").

    Raises ValueError with args (message, line, column) on a syntax error.
    """
