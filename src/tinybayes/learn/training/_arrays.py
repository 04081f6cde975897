"""Small pieces of `hybrid.py`: data and hyper-parameters as arrays, memory, the compiler's cache."""

import os
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.errors import error
from tinybayes.learn.training import gradient, net_gradient
from tinybayes.model import Dataset

BLOCK = 512  # rows of a block when errors are measured
Blocks = TypeVar("Blocks", gradient.Rows, net_gradient.Rows)
MEMORY = 4 * 2**30  # bytes that the configurations trained at once may take on a CPU


def to_rows(data: Dataset) -> gradient.Rows:
    """Put the rows with a known class on the device, weights scaled to a mean of one."""
    assert data.y is not None
    known = data.rows(usable(data))
    weight = np.ones(len(known)) if known.weight is None else known.weight / known.weight.mean()
    return gradient.Rows(
        jnp.asarray(known.X, dtype=jnp.int32),
        jnp.asarray(known.y, dtype=jnp.int32),
        jnp.asarray(weight, dtype=jnp.float32),
    )


def usable(data: Dataset) -> np.ndarray:
    """Tell which rows have a class and a weight."""
    assert data.y is not None
    return np.asarray((data.y >= 0) & ((data.weight if data.weight is not None else 1) > 0))


def to_blocks(rows: Blocks) -> Blocks:
    """Cut rows into blocks; what fills the last one weighs nothing."""
    count = rows.y.shape[0]
    missing = -count % BLOCK
    padded = [jnp.pad(part, [(0, missing)] + [(0, 0)] * (part.ndim - 1)) for part in rows]
    return type(rows)(*(part.reshape(-1, BLOCK, *part.shape[1:]) for part in padded))


def padded(space: gradient.Space, groups: int) -> gradient.Space:
    """Add groups that belong to no feature."""
    more = (0, groups - len(space.states))
    states = jnp.pad(space.states, more, constant_values=1)
    return space._replace(states=states, owner=jnp.pad(space.owner, more, constant_values=-1))


def find_device(name: str | None) -> jax.Device:
    """Return the device of that name, or the one that JAX finds best."""
    try:
        return jax.devices(name)[0]
    except RuntimeError as problem:
        found = sorted({device.platform for device in jax.devices()})
        remedy = "install the extra 'cuda' for an NVIDIA GPU"
        raise error(f"one of {', '.join(found)}", repr(name), where="device", remedy=remedy) from problem


def device_memory(device: jax.Device) -> int:
    """Return the bytes that training may take: most of what a GPU has free, or a fixed share on a CPU."""
    if device.platform == "cpu":
        return MEMORY
    figures = device.memory_stats() or {}
    return int(0.6 * (figures.get("bytes_limit", 2 * MEMORY) - figures.get("bytes_in_use", 0)))


Best = tuple[jax.Array, Any]  # errors, and the parameters that have them


@jax.jit
def better(best: Best, found: Best) -> Best:
    """Take over the parameters of the configurations whose error fell."""
    improved = found[0] < best[0]

    def pick(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(improved.reshape(-1, *([1] * (old.ndim - 1))), new, old)

    return jax.tree.map(pick, found, best)


def keep_compiled_code() -> None:
    """Let JAX keep compiled code on disk between processes, unless the user has decided about it."""
    if jax.config.values.get("jax_compilation_cache_dir") is None:
        base = os.environ.get("TINYBAYES_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        place = Path(base).expanduser() / "tinybayes-jax"
        jax.config.update("jax_compilation_cache_dir", str(place))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
