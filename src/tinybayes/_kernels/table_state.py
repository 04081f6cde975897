"""The arrays of `table_training.train_batches`, which trains the tables of a network by gradient."""

from functools import partial
from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.single import LANES

WIDTH = 1024  # numbers that are worked on at once; they stay in the nearest cache
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
KEEP1, MOVE1 = np.float32(0.9), np.float32(1 - 0.9)  # of Adam
KEEP2, MOVE2 = np.float32(0.999), np.float32(1 - 0.999)
EPSILON = np.float32(1e-7)
# Nothing is allocated, so that references need no counting, and divisions are not tested for zero.
lean = partial(jit, _nrt=False, error_model="numpy", fastmath={"contract"})


class Moments(NamedTuple):
    """Parameters with their two Adam moments, changed in place."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Tables(NamedTuple):
    """The tables of a configuration: moments of shape (entries, classes), and what training reads of them."""

    theta: Moments
    prior: Moments
    logits: Moments  # (features, candidates)
    common: Moments  # (states, features, classes) the sum of the steps of common parts; no features without sharing
    # The entries through the fixed-point format, or as they are if there is none. Classes are read LANES at a time, and
    # what lies behind those of an entry is ignored: it is flat, with LANES numbers behind the last entry.
    seen: np.ndarray
    gradient: np.ndarray  # of the entries, zero between two mini-batches


class Layout(NamedTuple):
    """Where tables lie, as in `table_steps.Space`, and the units."""

    parent: np.ndarray  # (features, candidates)
    offset: np.ndarray  # (features, candidates)
    stride: np.ndarray  # (features,)
    size: np.ndarray  # (features, candidates) parameters of a table
    allowed: np.ndarray  # (features, candidates)
    first: np.ndarray  # (units,) the first entry
    groups: np.ndarray  # (units,)
    states: np.ndarray  # (units,)
    step: np.ndarray  # (units,) entries from one state to the next
    owner: np.ndarray  # (units,) the feature of a table, where a unit is one
    unit: np.ndarray  # (features, candidates) the unit of a table, likewise


class Batches(NamedTuple):
    """Mini-batches: their rows, the schedule at each, and what was drawn for it; empty where nothing is drawn."""

    X: np.ndarray  # (rows, features), in the order of the file
    order: np.ndarray  # (batches, batch) rows
    y: np.ndarray  # (batches, batch)
    weight: np.ndarray  # (batches, batch)
    rate: np.ndarray  # (batches,) learning rate of the tables
    tau: np.ndarray  # (batches,) temperature of the structure's softmax
    noise: np.ndarray  # (batches,) probability that a code moves
    moving: np.ndarray  # (batches, 2, batch, features) uniform numbers: whether a code moves, and where to
    moves: np.ndarray  # (features, states, states) cumulative probabilities
    gumbel: np.ndarray  # (batches, features, candidates)
    lost: np.ndarray  # (batches, features) uniform numbers: whether a feature loses its parent


class Work(NamedTuple):
    """What is worked on in a mini-batch; see `work_space`."""

    codes: np.ndarray  # (batch, features)
    cells: np.ndarray  # (batch, features) the entry of a row in the chosen table, -1 where something is missing
    column: np.ndarray  # (batch,) the same for one table
    choice: np.ndarray  # (features,)
    soft: np.ndarray  # (features, candidates)
    prior: np.ndarray  # (classes,) as it is seen
    g: np.ndarray  # (batch, classes filled up to LANES) scores, and then their gradients
    powers: np.ndarray  # (classes filled up,)
    sums: np.ndarray  # (LANES or classes,) the more of them
    chosen: np.ndarray  # (units,)
    slope: np.ndarray  # (candidates,)
    pulled: np.ndarray  # as common: gradients added up over the groups of each feature
    moved: np.ndarray  # (states, features, classes filled up) steps of the common parts
    wide: np.ndarray  # (2, WIDTH)


def work_space(layout: Layout, batch: int, common: np.ndarray) -> Work:
    """Return the memory that `train_batches` works in."""
    (features, candidates), units, classes = layout.parent.shape, len(layout.first), common.shape[2]
    codes, cells = np.empty((batch, features), np.int32), np.empty((batch, features), np.int64)
    choice, soft = np.empty(features, np.int64), np.zeros((features, candidates), np.float32)
    filled = -(-classes // LANES) * LANES
    prior, g, powers = (np.zeros(shape, np.float32) for shape in (classes, (batch, filled), filled))
    pulled, moved = np.zeros_like(common), np.zeros((*common.shape[:2], filled), np.float32)
    return Work(
        codes,
        cells,
        np.empty(batch, np.int64),
        choice,
        soft,
        prior,
        g,
        powers,
        np.zeros(max(LANES, classes), np.float32),
        np.empty(units, np.bool_),
        np.empty(candidates, np.float32),
        pulled,
        moved,
        np.empty((2, WIDTH), np.float32),
    )


class Hyper(NamedTuple):
    """The fields of `table_steps.Hyper` that do not change in training, and the number of steps so far."""

    lam: np.float32
    gamma: np.float32
    eta: np.float32
    conditional: np.float32
    structure_rate: np.float32
    size_penalty: np.float32
    structure_noise: np.float32
    sharing: np.float32
    scale: np.float32
    limit: np.float32
    quantized: bool
    steps: int
