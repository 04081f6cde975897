"""Images shifted by a pixel, as additional training rows."""

import numpy as np

from tinybayes.errors import error
from tinybayes.model import Dataset, Variable

DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0))


def with_moved(data: Dataset, image: tuple[int, int]) -> Dataset:
    """Return the rows, followed by their images shifted by one pixel in each of four directions.

    Each pixel has its own cut points: a shifted pixel takes the middle of its interval, encoded with the cut points of
    its new position. Pixels from outside the image are dark.

    Parameters
    ----------
    data
        Rows whose features are the pixels of an image, line by line (or column by column), with cut points.
    image
        Rows and columns.
    """
    if image[0] * image[1] != len(data.variables) or not all(v.has_intervals for v in data.variables):
        raise error(f"{image[0]} x {image[1]} pixels with cut points", len(data.variables), where="images to move")
    values = np.column_stack([_numbers(v)[data.X[:, i]] for i, v in enumerate(data.variables)])
    values[data.X < 0] = np.nan
    values = values.reshape(-1, *image)
    padded = np.pad(values, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    parts = [data.X]
    for down, right in DIRECTIONS:
        seen = padded[:, 1 - down : 1 - down + image[0], 1 - right : 1 - right + image[1]].reshape(len(values), -1)
        codes = [v.encoding.codes(seen[:, i]) for i, v in enumerate(data.variables)]
        parts.append(np.column_stack(codes).astype(data.X.dtype))
    y, weight = (None if part is None else np.tile(part, len(parts)) for part in (data.y, data.weight))
    return Dataset(data.variables, data.target, np.concatenate(parts), y, weight)


def _numbers(variable: Variable) -> np.ndarray:
    """Return a number inside each interval: its middle, and for the outer ones as far as the next is wide."""
    edges = variable.encoding.cuts
    if len(edges) < 2:
        return np.array([-np.inf, *edges])
    return np.concatenate([[-np.inf], (edges[1:] + edges[:-1]) / 2, [edges[-1] + (edges[-1] - edges[-2]) / 2]])
