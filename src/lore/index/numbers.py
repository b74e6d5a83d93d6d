"""Sets of item numbers as sorted arrays.

`np.unique` and `np.isin` import `numpy.ma` when they are first used: 7 MB and 40 ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


def unique(values: NDArray[np.integer]) -> Int64s:
    """Return the numbers in order, each once."""
    ordered: Int64s = np.sort(values).astype(np.int64, copy=False)
    single: Int64s = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return single


def is_among(values: NDArray[np.integer], wanted: Sequence[int] | Int64s) -> NDArray[np.bool_]:
    """Return which of the values are among the wanted numbers."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    ordered = np.sort(np.asarray(wanted, np.int64))
    mask: NDArray[np.bool_] = ordered[np.searchsorted(ordered[:-1], values)] == values
    return mask
