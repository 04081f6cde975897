"""The cheapest way to store given numbers."""

from collections.abc import Sequence

import numpy as np

from tinybayes.model import Codebook, Float, NumberFormat


def cheapest_format(tables: Sequence[np.ndarray]) -> NumberFormat:
    """Return a codebook of all values of log-parameters, or 32-bit floats where those take no more bits.

    Parameters
    ----------
    tables
        Numbers that 32-bit floats hold; a codebook is shared by all tables and paid once.
    """
    values = np.concatenate([np.asarray(table).reshape(-1) for table in tables])
    book = Codebook(tuple(np.unique(values).tolist()))
    return book if book.bits * values.size + book.shared_bits < 32 * values.size else Float()
