"""The compiled core: scenario in, columns out. Private: the public face is `sojourn` itself."""

from collections.abc import Callable

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

def draw(seed: int, name: str, n: int) -> NDArray[np.uint64]:
    """The first n numbers of the random stream called `name` in a run with this seed (uniform over 64 bits)."""

def parse_toml(text: str) -> tuple[dict[str, object], dict[str, tuple[int, int]]]:
    """A TOML document as plain values, and (line, column), both from 1, of every key path ("flow.0.rtt").

    Raises ValueError with args (message, line, column) on a syntax error.
    """
