"""Before the first epoch of `hybrid.py`: checks, the parts that are trained at once, hyper-parameters as arrays."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from tinybayes.errors import error
from tinybayes.learn.training import gradient
from tinybayes.learn.training._tables import table_space
from tinybayes.model import Dataset, Fixed, Float

if TYPE_CHECKING:
    from tinybayes.learn.training.tables import TableConfiguration


def hypers(configurations: "Sequence[TableConfiguration]") -> gradient.Hyper:
    """Turn what each configuration chooses into arrays with a leading axis of configurations."""
    formats = [c.number_format for c in configurations]
    scale = [2.0**f.fraction if isinstance(f, Fixed) else 1.0 for f in formats]
    limit = [2.0**f.integer - 2.0**-f.fraction if isinstance(f, Fixed) else 1.0 for f in formats]
    names = gradient.Hyper._fields[:-2]  # the scale and the limit of the number format come last
    columns = [[getattr(c, name) for c in configurations] for name in names]
    return gradient.Hyper(*(jnp.asarray(column, dtype=jnp.float32) for column in (*columns, scale, limit)))


def parts(
    data: Dataset, configurations: "Sequence[TableConfiguration]", batch: int, memory: int
) -> Iterator[tuple[int, ...]]:
    """Group configurations of equal shape, and cut groups that would not fit in memory into equal parts."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, c in enumerate(configurations):
        kind = isinstance(c.number_format, Fixed), c.candidates.ordered, c.per_row, c.sharing > 0
        shape = c.candidates.parent.shape[1], *kind
        groups.setdefault(shape, []).append(i)
    states = np.array([v.cardinality for v in data.variables])
    assert data.target is not None
    classes = data.target.cardinality
    for indices in groups.values():
        spaces = [table_space(configurations[i].candidates, states, classes) for i in indices]
        table = int(states.max()) * max(len(s.states) for s in spaces) * classes
        rows = batch * spaces[0].parent.size * classes
        most = max(1, memory // (4 * (6 * table + 2 * rows)))  # parameters, moments, gradient, temporaries
        count = -(-len(indices) // most)
        for part in np.array_split(np.array(indices), count):
            yield tuple(part.tolist())


def check(data: Dataset, configurations: "Sequence[TableConfiguration]") -> None:
    """Refuse what cannot be trained, before any work is done."""
    if data.target is None or data.y is None or not (data.y >= 0).any():
        raise error("rows with a class", "none", where="data", remedy="name the target column")
    if not configurations:
        raise error("at least one configuration", "none", where="configurations")
    for i, c in enumerate(configurations):
        where = f"configuration {i}"
        if len(c.candidates.parent) != len(data.variables):
            raise error(f"candidates for {len(data.variables)} features", len(c.candidates.parent), where=where)
        if not isinstance(c.number_format, Float | Fixed):
            raise error("a Float or Fixed format", str(c.number_format), where=where)
        if c.structure_noise and (c.candidates.parent[:, 0] >= 0).any():
            raise error('"no extra parent" as first choice', "another one", where=f"{where}, structure_noise")
        if c.sharing and c.per_row:
            remedy = "leave one of them out"
            raise error("one structure for a mini-batch", "one for every row", where=f"{where}, sharing", remedy=remedy)
