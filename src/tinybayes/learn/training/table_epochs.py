"""Epochs of tables on a CPU: the draws and steps of `engine.run_epochs` with `TableSteps`, as loops of Numba.

XLA's code for a CPU takes several times as long, and seconds to compile for every new shape. What is drawn for a
mini-batch comes from JAX, by the same keys, so that both give the same parameters up to rounding. Structures drawn for
every row, and moves of codes among many states, are left to XLA (`suits`).

The arrays of a configuration are kept between two calls, so that where an epoch ends a call changes nothing; what is
returned are copies.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from tinybayes._kernels import table_state as arrays
from tinybayes._kernels.single import LANES
from tinybayes._kernels.table_adam import fade, find_idle
from tinybayes._kernels.table_rows import see
from tinybayes._kernels.table_training import train_batches
from tinybayes._kernels.threads import for_blocks
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.compiling import compiled
from tinybayes.learn.training.engine import DRAWN, Rows
from tinybayes.learn.training.input_noise import Moves
from tinybayes.learn.training.optimizer import Moments
from tinybayes.learn.training.table_layout import Layout
from tinybayes.learn.training.table_steps import LABELS, MOVES, Space, State, Tables, TableSteps

Array = jax.Array
FEW, MANY = 128, 1024  # numbers of a unit for each state, where there is no choice and all tables move at every step
NUMBERS = 2**22  # that are drawn at once, about; at least those of a mini-batch
EPOCHS = 64  # that are drawn at once, at most
LITTLE = 2**21  # numbers read by all rows: less is not worth a thread


def suits(fixed: Tables, steps: TableSteps) -> bool:
    """Tell whether these loops can take the steps."""
    return not steps.per_row and not isinstance(fixed.moves, Moves)


class Loops:
    """Configurations that share the rows, from one epoch on."""

    def __init__(
        self, states: State, fixed: Tables, data: Rows, shuffle: Array, *, steps: TableSteps, batch: int, first: int
    ) -> None:
        self.states, self.fixed, self.steps = states, fixed, steps
        self.runs = [_Run(b, states, fixed, steps, batch) for b in range(len(states.step))]
        self.X, self.weight = np.asarray(data.X), np.asarray(data.weight)
        self.draws = _Draws(states, fixed, data, shuffle, batch, first)

    def go_on(self, states: State, fixed: Tables) -> bool:
        """Tell whether these are the states that were returned last, and nothing else has changed."""
        return states is self.states and fixed is self.fixed

    def advance(self, epochs: tuple[int, int, int]) -> State:
        """Train for some epochs, as `engine.run_epochs` does."""
        first, last, total = epochs
        batches = self.draws.batches
        for t, taken, drawn in self.draws.parts(first * batches, last * batches):
            progress = (t // batches).astype(np.float32) / np.float32(max(total - 1, 1))
            schedule = self.steps.schedule(cast(Any, progress))  # arithmetic that arrays of NumPy know, too
            now = np.asarray(schedule.decay), np.asarray(schedule.tau)
            part = _Part(self.X, self.weight[drawn.order], drawn, *now, progress, taken)
            read = drawn.order.size * self.X.shape[1] * self.runs[0].tables.theta.value.shape[1]
            if read * len(self.runs) < LITTLE:
                _train(self.runs, part, 0, len(self.runs))
            else:
                for_blocks(partial(_train, self.runs, part), len(self.runs), 1)
        self.states = self._copies()
        return self.states

    def _copies(self) -> State:
        """Return the states as they are now."""

        def copied(name: str) -> Moments:
            moments = [getattr(run.tables, name) for run in self.runs]
            shape = getattr(self.states, name).value.shape
            return Moments(*(np.stack(part).reshape(shape) for part in zip(*moments, strict=True)))

        theta, prior, logits, common = map(copied, ("theta", "prior", "logits", "common"))
        for run, first, second in zip(self.runs, theta.first, theta.second, strict=True):
            shape = run.tables.theta.value.shape
            fade(first.reshape(shape), second.reshape(shape), run.layout, run.idle)
        return State(theta, prior, logits, common, self.draws.keys, jnp.asarray(self.draws.taken))


class _Drawn(NamedTuple):
    """What is drawn for mini-batches; the first axis of `gumbel` and `lost` is that of configurations."""

    order: np.ndarray
    y: np.ndarray
    moving: np.ndarray
    gumbel: np.ndarray
    lost: np.ndarray


class _Part(NamedTuple):
    """What mini-batches are trained on."""

    X: np.ndarray
    weight: np.ndarray
    drawn: _Drawn
    decay: np.ndarray
    tau: np.ndarray
    progress: np.ndarray
    taken: np.ndarray  # steps before these, of each configuration


def _train(runs: Sequence["_Run"], part: _Part, start: int, stop: int) -> None:
    """Take the steps of some configurations."""
    single = np.float32
    for b in range(start, stop):
        run, drawn = runs[b], part.drawn
        share = single(1) - (single(1) - run.hyper["noise_end"]) * part.progress
        batches = arrays.Batches(
            part.X,
            drawn.order,
            drawn.y,
            part.weight,
            run.hyper["learning_rate"] * part.decay,
            part.tau,
            run.hyper["input_noise"] * share,
            drawn.moving,
            run.moves,
            drawn.gumbel[b],
            drawn.lost[b],
        )
        hyper = run.numbers._replace(steps=int(part.taken[b]))
        train_batches(run.tables, run.layout, batches, hyper, run.idle, run.work)


class _Run:
    """One configuration."""

    def __init__(self, b: int, states: State, fixed: Tables, steps: TableSteps, batch: int) -> None:
        self.hyper = {name: np.float32(np.asarray(value)[b]) for name, value in fixed.hyper._asdict().items()}
        own = {name: self.hyper[name] for name in arrays.Hyper._fields if name in self.hyper}
        self.numbers = arrays.Hyper(**own, quantized=steps.quantized, steps=0)
        classes = states.prior.value.shape[1]
        theta, prior, logits, common = (
            arrays.Moments(*(_owned(np.asarray(part)[b]) for part in moments))
            for moments in (states.theta, states.prior, states.logits, states.common)
        )
        entries, room = theta.value.reshape(-1), theta.value.base
        seen = room if room is not None else entries  # as they are, with LANES numbers behind them
        if steps.quantized:
            seen = np.zeros(len(entries) + LANES, dtype=np.float32)
            see(entries, seen, self.numbers)
        theta = arrays.Moments(*(part.reshape(-1, classes) for part in theta))
        space, allowed = Space(*(np.asarray(part)[b] for part in fixed.space)), np.asarray(fixed.mask)[b]
        self.layout = _layout(space, allowed, classes, steps.layout, tables=common.value.size > 0)
        self.tables = arrays.Tables(theta, prior, logits, common, seen, np.zeros_like(entries))
        self.moves = np.asarray(_nothing(0, 0, 0) if fixed.moves is None else fixed.moves[b])
        self.work = arrays.work_space(self.layout, batch, common.value)
        self.idle = np.empty(len(self.layout.first), dtype=np.int64)
        find_idle(self.tables, self.layout, self.idle)


def _owned(part: np.ndarray) -> np.ndarray:
    """Return a copy, with LANES numbers behind it."""
    room = np.zeros(part.size + LANES, dtype=np.float32)
    own = room[: part.size].reshape(part.shape)
    own[...] = part
    return own


def _nothing(*shape: int) -> np.ndarray:
    """Return an empty array that cannot be written to, as those of JAX: for other types kernels are compiled again."""
    array = np.zeros(shape, dtype=np.float32)
    array.setflags(write=False)
    return array


class _Draws:
    """What is drawn for the mini-batches from an epoch on, many at once: calls take longer than small draws."""

    def __init__(self, states: State, fixed: Tables, data: Rows, shuffle: Array, batch: int, first: int) -> None:
        self.data, self.shuffle, self.batch, self.moving = data, shuffle, batch, fixed.moves is not None
        self.batches, self.keys, self.taken = len(data.y) // batch, states.key, np.array(states.step)
        self.shape = fixed.mask.shape[1:] if fixed.mask.shape[2] > 1 else None
        count, features, candidates = fixed.mask.shape
        numbers = batch * (1 + 2 * features * self.moving) + count * features * (candidates + 1) * (candidates > 1)
        self.size = int(np.clip(NUMBERS // numbers, 1, EPOCHS * self.batches))
        self.begin, self.end = first * self.batches, 0  # mini-batches that have been drawn, if the end is not zero
        self.ahead = self.keys
        self.drawn: _Drawn
        self.later: Array | None = None

    def parts(self, first: int, last: int) -> Iterator[tuple[np.ndarray, np.ndarray, _Drawn]]:
        """Return numbers of mini-batches, the steps of each configuration before them, and what is drawn for them."""
        while first < last:
            if first >= self.end:
                self._draw()
            stop = min(last, self.end)
            a, b = first - self.begin, stop - self.begin
            order, y, moving, gumbel, lost = self.drawn
            part = _Drawn(order[a:b], y[a:b], moving[a:b], gumbel[:, a:b], lost[:, a:b])
            yield np.arange(first, stop), self.taken, part
            self.taken = self.taken + (stop - first)
            if self.later is not None:
                self.keys = self.later[:, b - 1]
            first = stop

    def _draw(self) -> None:
        self.begin = self.end or self.begin
        self.end = self.begin + self.size
        order, y, moving = _rows(self.shuffle, np.int32(self.begin), self.data, self.batch, self.size, self.moving)
        gumbel, lost = (_nothing(len(self.taken), *[0] * axes) for axes in (3, 2))
        if self.shape:
            self.later, *noise = _structures(self.ahead, self.size, self.shape)
            self.ahead = self.later[:, -1]
            gumbel, lost = map(np.asarray, noise)
        self.drawn = _Drawn(np.asarray(order), np.asarray(y), np.asarray(moving), gumbel, lost)


@compiled(static_argnames=("batch", "size", "moving"))
def _rows(
    shuffle: Array, first: Array | np.int32, data: Rows, batch: int, size: int, moving: bool
) -> tuple[Array, Array, Array]:
    """Draw what all configurations share in mini-batches: their rows, the classes of these, and moves of codes."""
    count, features = data.X.shape
    batches = count // batch
    t = first + jnp.arange(size)

    def epoch(e: Array) -> tuple[Array, Array]:
        key = jax.random.fold_in(shuffle, e)
        order = jax.random.permutation(key, count)[: batches * batch]
        return order.reshape(batches, batch), jax.random.split(jax.random.fold_in(key, DRAWN), batches)

    touched = 1 - (1 - size) // batches  # epochs, at most
    orders, all_keys = jax.lax.map(epoch, first // batches + jnp.arange(touched))
    at = t // batches - first // batches, t % batches
    order, keys = orders[at], all_keys[at]
    y, levels = data.y[order], jnp.zeros((size, 0, batch, features), jnp.float32)
    if data.soft is not None:
        y = jax.vmap(lambda own, soft: jax.random.categorical(jax.random.fold_in(own, LABELS), jnp.log(soft + 1e-9)))(
            keys, data.soft[order]
        )
    if moving:
        levels = jax.vmap(lambda own: jax.random.uniform(jax.random.fold_in(own, MOVES), (2, batch, features)))(keys)
    return order, y.astype(jnp.int32), levels


@compiled(static_argnames=("batches", "shape"))
def _structures(keys: Array, batches: int, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Draw the noise of structures, for each configuration by its own key; return the keys after every mini-batch."""

    def draw(key: Array, _: None) -> tuple[Array, tuple[Array, Array, Array]]:
        key, gumbel, loss = jax.random.split(key, 3)
        noise = jax.random.gumbel(gumbel, (1, *shape))[0], jax.random.uniform(loss, (1, shape[0]))[0]
        return key, (key, *noise)

    return jax.vmap(lambda key: jax.lax.scan(draw, key, length=batches))(keys)[1]


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
