"""Before the first epoch of `nets.py`: checks, the parts that are trained at once, hyper-parameters as arrays."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.errors import error
from tinybayes.learn.training import net_gradient as gradient
from tinybayes.model import Dataset

if TYPE_CHECKING:
    from tinybayes.learn.training.nets import NetConfiguration

NARROW = {"dense": 16, "conv": 4}  # layers are padded to this times a power of two, so that few shapes are compiled


def hypers(configurations: "Sequence[NetConfiguration]") -> gradient.Hyper:
    """Turn what each configuration chooses into arrays with a leading axis of configurations."""
    levels = [0.0 if c.bits is None else 2.0**c.bits - 1 for c in configurations]
    rates = [c.learning_rate for c in configurations]
    smoothing = [c.label_smoothing for c in configurations]
    widths = np.array([c.hidden for c in configurations], dtype=np.float32).reshape(len(configurations), -1)
    return gradient.Hyper(*(jnp.asarray(part, dtype=jnp.float32) for part in (levels, rates, smoothing, widths)))


def ladder(kind: str, units: int) -> int:
    """Return the width to which layers of so many units are padded."""
    width = NARROW[kind]
    while width < units:
        width *= 2 if kind == "conv" or jax.default_backend() == "cpu" else 4  # on a GPU compiling costs more
    return width


def parts(
    data: Dataset, configurations: "Sequence[NetConfiguration]", batch: int, memory: int
) -> list[tuple[int, ...]]:
    """Group configurations that can be trained at once, and cut groups that would not fit in memory."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, c in enumerate(configurations):
        widths = tuple(ladder(c.kind, units) for units in c.hidden)
        key = c.kind, widths, c.activation, c.batch_norm, c.input_kind, c.image_shape
        groups.setdefault(key, []).append(i)
    found = []
    for indices in groups.values():
        each = floats(data, configurations[indices[0]], batch)
        most = max(1, memory // (4 * each))
        for part in np.array_split(np.array(indices), -(-len(indices) // most)):
            found.append(tuple(part.tolist()))
    return found


def floats(data: Dataset, c: "NetConfiguration", batch: int) -> int:
    """Estimate the numbers that one configuration keeps in memory while it is trained."""
    assert data.target is not None
    classes = data.target.cardinality
    widths = [ladder(c.kind, units) for units in c.hidden]
    if c.kind == "dense":
        inputs = sum(v.cardinality for v in data.variables) if c.input_kind == "one-hot" else len(data.variables)
        sizes = [inputs, *widths, classes]
        weights = sum(a * b for a, b in pairwise(sizes))
        return 8 * weights + 6 * batch * sum(sizes[1:])
    pixels, channels, weights, values = len(data.variables), 1, 0, 0
    for units in widths:
        weights += 9 * channels * units
        values += pixels * (9 * channels + 6 * units)
        pixels, channels = max(1, pixels // 4), units
    return 8 * (weights + pixels * channels * classes) + 2 * batch * values


def check(data: Dataset, configurations: "Sequence[NetConfiguration]") -> None:
    """Refuse what cannot be trained, before any work is done."""
    if data.target is None or data.y is None or not (data.y >= 0).any():
        raise error("rows with a class", "none", where="data", remedy="name the target column")
    if not configurations:
        raise error("at least one configuration", "none", where="configurations")
