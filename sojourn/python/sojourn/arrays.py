"""Names of the types of arrays and plain values. `records.schema` declares an engine's tables."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Columns = dict[str, np.ndarray[Any, Any]]
"""Arrays of equal length, by the name of the column."""
Tables = dict[str, Columns]
Json = dict[str, Any]
"""A JSON object."""
