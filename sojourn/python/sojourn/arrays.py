"""Arrays and plain values, by the names that signatures use. Tables of an engine are as
`records.schema` declares them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Columns = dict[str, np.ndarray[Any, Any]]
"""Equally long arrays by the name of the column."""
Tables = dict[str, Columns]
Json = dict[str, Any]
"""An object as JSON has it."""
