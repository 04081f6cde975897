"""Rows that exported code is tried on."""

import numpy as np


def rows_with_every_state(states: tuple[int, ...], count: int) -> np.ndarray:
    """Draw rows of codes, the same ones always; every state of every feature occurs."""
    rng = np.random.default_rng(0)
    count = max((count, *states))
    columns = [rng.permutation(np.arange(count) % k) for k in states]
    return np.array(columns, dtype=np.int32).T.reshape(count, len(states))
