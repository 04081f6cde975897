"""Epochs of tables on a CPU: the draws and steps of `engine.run_epochs` with `TableSteps`, as loops of Numba.

XLA's code for a CPU takes several times as long, and seconds to compile for every new shape. What is drawn for a
mini-batch comes from JAX, by the same keys, so that both give the same parameters up to rounding. Structures drawn for
every row, and moves of codes among very many states, are left to XLA (`suits`).
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from tinybayes._kernels import table_state as arrays
from tinybayes._kernels.single import LANES
from tinybayes._kernels.table_adam import begin, end
from tinybayes._kernels.table_rows import see
from tinybayes._kernels.table_training import train_epoch
from tinybayes._kernels.threads import for_blocks
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.compiling import compiled
from tinybayes.learn.training.engine import DRAWN, Rows
from tinybayes.learn.training.input_noise import Moves
from tinybayes.learn.training.optimizer import Moments
from tinybayes.learn.training.table_layout import Layout
from tinybayes.learn.training.table_steps import LABELS, MOVES, Schedule, Space, State, Tables, TableSteps

Array = jax.Array
FEW, MANY = 128, 1024  # numbers of a unit for each state, where there is no choice and all tables move at every step


def suits(fixed: Tables, steps: TableSteps) -> bool:
    """Tell whether these loops can take the steps."""
    return not steps.per_row and not isinstance(fixed.moves, Moves)


def run_epochs(
    states: State,
    fixed: Tables,
    data: Rows,
    epochs: tuple[int, int, int],
    shuffle: Array,
    *,
    steps: TableSteps,
    batch: int,
) -> State:
    """Train all configurations for some epochs, as `engine.run_epochs` does; the arrays of `states` are taken over."""
    first, last, total = epochs
    parts = jax.tree.map(_owned, (states.theta, states.prior, states.logits, states.common))
    runs = [_Run(b, parts, fixed, steps, batch) for b in range(len(states.step))]
    X, weight, moving = np.asarray(data.X), np.asarray(data.weight), fixed.moves is not None
    keys, taken, batches, search = states.key, np.array(states.step), len(data.y) // batch, fixed.mask.shape[2] > 1
    structures = [_nothing(len(runs), *[0] * axes) for axes in (3, 2)]
    ahead = _rows(shuffle, np.int32(first), data, batch, moving)
    for e in range(first, last):
        if search:
            keys, *structures = _structures(keys, batches, fixed.mask.shape[1:])
        order, y, levels = map(np.asarray, ahead)
        if e + 1 < last:  # JAX draws what comes next while the kernels run
            ahead = _rows(shuffle, np.int32(e + 1), data, batch, moving)
        gumbel, lost = map(np.asarray, structures)
        drawn = _Drawn(X, weight[order], order, y, levels, gumbel, lost, _schedule(steps, e, total), taken)
        for_blocks(partial(_train, runs, drawn), len(runs), 1)
        taken += batches
    for run in runs:
        end(run.tables, run.layout, run.idle)
    theta, prior, logits, common = parts
    return State(theta, prior, logits, common, keys, jnp.asarray(taken))


class _Drawn(NamedTuple):
    """What an epoch is made of; `gumbel`, `lost` and `taken` have an axis of configurations."""

    X: np.ndarray
    weight: np.ndarray
    order: np.ndarray
    y: np.ndarray
    moving: np.ndarray
    gumbel: np.ndarray
    lost: np.ndarray
    schedule: Schedule
    taken: np.ndarray  # steps before it


def _train(runs: Sequence["_Run"], drawn: _Drawn, start: int, stop: int) -> None:
    """Run an epoch of some configurations."""
    for b in range(start, stop):
        run = runs[b]
        rows = drawn.X, drawn.order, drawn.y, drawn.weight, drawn.moving
        epoch = arrays.Epoch(*rows, run.moves, drawn.gumbel[b], drawn.lost[b])
        hyper = run.hyper_at(drawn.schedule, int(drawn.taken[b]))
        train_epoch(run.tables, run.layout, epoch, hyper, run.idle, run.work)


class _Run:
    """One configuration."""

    def __init__(self, b: int, parts: tuple[Moments, ...], fixed: Tables, steps: TableSteps, batch: int) -> None:
        self.quantized = steps.quantized
        self.hyper = {name: np.asarray(value)[b] for name, value in fixed.hyper._asdict().items()}
        space = Space(*(np.asarray(part)[b] for part in fixed.space))
        theta, prior, logits, common = (arrays.Moments(*(array[b] for array in part)) for part in parts)
        classes, entries = len(prior.value), theta.value.reshape(-1)
        theta = arrays.Moments(*(array.reshape(-1, classes) for array in theta))
        self.layout = _layout(space, np.asarray(fixed.mask)[b], classes, steps.layout, tables=common.value.size > 0)
        if self.quantized:
            seen = np.zeros(len(entries) + LANES, dtype=np.float32)
            see(entries, seen, self.hyper_at(_schedule(steps, 0, 1), 0))
        else:  # with what lies behind the last entry, which is read and ignored
            seen = np.lib.stride_tricks.as_strided(entries, (len(entries) + LANES,))
        self.tables = arrays.Tables(theta, prior, logits, common, seen, np.zeros_like(entries))
        self.moves = _nothing(0, 0, 0) if fixed.moves is None else np.asarray(fixed.moves)[b]
        self.work = arrays.work_space(self.layout, batch, common.value)
        self.idle = np.empty(len(self.layout.first), dtype=np.int64)
        begin(self.tables, self.layout, self.idle)

    def hyper_at(self, schedule: Schedule, taken: int) -> arrays.Hyper:
        """Return the hyper-parameters of an epoch, after so many steps."""
        own, single = dict(self.hyper), np.float32
        share = single(1) - (single(1) - own.pop("noise_end")) * schedule.progress
        own["rate"] = own.pop("learning_rate") * schedule.decay
        own["input_noise"] = own["input_noise"] * share
        numbers = {name: single(value) for name, value in own.items()}
        return arrays.Hyper(**numbers, tau=single(schedule.tau), quantized=self.quantized, steps=taken)


def _nothing(*shape: int) -> np.ndarray:
    """Return an empty array that cannot be written to, as those of JAX: for other types kernels are compiled again."""
    array = np.zeros(shape, dtype=np.float32)
    array.setflags(write=False)
    return array


def _schedule(steps: TableSteps, e: int, total: int) -> Schedule:
    """Return the schedule of epoch e."""
    progress = np.float32(e) / np.float32(max(total - 1, 1))
    return steps.schedule(cast(Any, progress))  # the arithmetic of NumPy's numbers is that of JAX's arrays


def _owned(part: Any) -> np.ndarray:
    """Return an array that may be written to, with LANES numbers behind it: a copy, unless it is of an earlier call."""
    if isinstance(part, np.ndarray):
        return part
    own = np.zeros(part.size + LANES, dtype=part.dtype)[: part.size].reshape(part.shape)
    own[...] = part
    return own


@compiled(static_argnames=("batch", "moving"))
def _rows(shuffle: Array, e: Array | np.int32, data: Rows, batch: int, moving: bool) -> tuple[Array, Array, Array]:
    """Draw what all configurations share in an epoch: the rows of the mini-batches, their classes, moves of codes."""
    count, features = data.X.shape
    batches = count // batch
    key = jax.random.fold_in(shuffle, e)
    order = jax.random.permutation(key, count)[: batches * batch].reshape(batches, batch)
    keys = jax.random.split(jax.random.fold_in(key, DRAWN), batches)
    y, levels = data.y[order], jnp.zeros((0, 2, batch, features), jnp.float32)
    if data.soft is not None:
        y = jax.vmap(lambda own, soft: jax.random.categorical(jax.random.fold_in(own, LABELS), jnp.log(soft + 1e-9)))(
            keys, data.soft[order]
        )
    if moving:
        levels = jax.vmap(lambda own: jax.random.uniform(jax.random.fold_in(own, MOVES), (2, batch, features)))(keys)
    return order, y.astype(jnp.int32), levels


@compiled(static_argnames=("batches", "shape"))
def _structures(keys: Array, batches: int, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Draw the noise of the structures in an epoch, for each configuration by its own key."""

    def draw(key: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        key, gumbel, loss = jax.random.split(key, 3)
        return key, (jax.random.gumbel(gumbel, (1, *shape))[0], jax.random.uniform(loss, (1, shape[0]))[0])

    keys, (gumbel, lost) = jax.vmap(lambda key: jax.lax.scan(draw, key, length=batches))(keys)
    return keys, gumbel, lost


def _layout(space: Space, allowed: np.ndarray, classes: int, layout: Layout, *, tables: bool) -> arrays.Layout:
    """Cut the tables into units: in a search, or if asked for, single tables; otherwise neighbouring groups."""
    parent, offset, size, stride, shift, all_states, owner = map(np.asarray, space)
    unit, feature, cut = np.full(allowed.shape, -1), np.zeros(0, dtype=np.int64), []
    if allowed.shape[1] > 1 or tables:
        feature = np.nonzero(allowed)[0]
        states = all_states[offset[allowed] - shift[feature]]
        groups = np.rint(size[allowed] / (states * classes)).astype(np.int64)
        unit[allowed] = np.arange(len(feature))
        cut = list(zip(offset[allowed], groups, states, stride[feature], strict=True))
    else:
        for (_, count), entry, group in zip(layout.buckets, *layout.starts, strict=True):
            states = all_states[group : group + count][owner[group : group + count] >= 0]
            cut += [(entry + a, b - a, states[a:b].max(), count) for a, b in _alike(states, classes)]
    first, groups, of_states, step = np.array(cut, dtype=np.int64).reshape(-1, 4).T.copy()
    return arrays.Layout(
        np.array(parent, dtype=np.int64),
        np.array(offset, dtype=np.int64),
        np.array(stride, dtype=np.int64),
        np.array(size, dtype=np.float32),
        allowed.copy(),
        first,
        groups,
        of_states,
        step,
        feature,
        unit,
    )


def _alike(states: np.ndarray, classes: int) -> list[tuple[int, int]]:
    """Cut groups into ranges of as many states each; a range of few numbers goes on to groups with other states."""
    ends = [0]
    for g in range(1, len(states)):
        numbers = (g - ends[-1]) * classes
        if numbers >= MANY or (numbers >= FEW and states[g] != states[g - 1]):
            ends.append(g)
    return list(pairwise([*ends, len(states)])) if len(states) else []
