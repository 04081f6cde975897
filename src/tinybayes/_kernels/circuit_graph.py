"""The nodes of a circuit as arrays, and the numbers of their kinds; nothing here needs Numba."""

from typing import NamedTuple

import numpy as np

PARAMETER, INDICATOR, SUM, PRODUCT = 0, 1, 2, 3


class CircuitGraph(NamedTuple):
    """The nodes of a circuit: children come before their parents, the last node is the root."""

    kind: np.ndarray  # (nodes,)
    offsets: np.ndarray  # (nodes + 1,) into children
    children: np.ndarray
    leaf: np.ndarray  # (nodes,) of a parameter its entry in the table, of an indicator its state, else -1
