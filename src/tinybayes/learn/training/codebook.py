"""Training a classifier's codebook: the levels of its tied parameters, and which entry has which level.

Every entry of the tables has a log-parameter of its own in training, and is read as the nearest level (training through
a quantiser, whose derivative is taken to be one). Entries follow the gradient of the hybrid loss. Levels follow that of
its discriminative part only: the likelihood of tables that need not be normalised has no maximum.

Fixed point is a codebook whose levels do not move, so this loop trains through both.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.errors import error
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.training.losses import conditional_loss, hybrid, large_margin
from tinybayes.learn.training.options import CodebookOptions
from tinybayes.model import BayesNet, Codebook, Dataset

Array = jax.Array
_FAR = 1e6  # levels that pad the codebook lie above this, out of the way of all log-parameters
_LEAST = 256  # levels of a padded codebook: one compiled program serves all smaller ones
_EPOCHS = 10  # of a compiled call, between two looks at an interrupt


class Settings(NamedTuple):
    """Of the loss and of the steps."""

    lam: Array
    gamma: Array
    eta: Array
    conditional: Array
    rate: Array
    level_rate: Array


class _State(NamedTuple):
    """Log-parameters and levels, each with two Adam moments, and the number of steps."""

    theta: tuple[Array, Array, Array]
    levels: tuple[Array, Array, Array]
    step: Array


def learn_codebook(
    net: BayesNet,
    book: Codebook,
    data: Dataset,
    options: CodebookOptions | None = None,
) -> BayesNet:
    """Train a classifier whose tables are stored in a codebook; an interrupt (Ctrl-C) ends the training early.

    Parameters
    ----------
    net
        The classifier to begin with, in any format: tables without decision trees.
    book
        The levels to begin with, all finite, such as `tie` returns. Those of a fixed-point format make this training
        through fixed point.
    data
        Rows of its variables with a class; rows without one are left out, missing values skipped.
    options
        Of the loss and of the steps.

    Returns
    -------
    BayesNet
        All tables in one codebook of at most as many levels.
    """
    options = options or CodebookOptions()
    _check(net, book, data)
    reassign, epochs = options.reassign, options.epochs
    layout, where, rows = _layout(net), *_rows(net, data)
    levels = np.array(book.values)
    logs = np.concatenate([cpd.log_parameters.reshape(-1) for cpd in net.cpds])
    codes = book.encode(logs).astype(np.int32)
    padding = _FAR * (2.0 + np.arange(max(_LEAST - len(levels), 0)))
    start = [np.clip(logs, levels[0] - 1.0, levels[-1] + 1.0), np.concatenate([levels, padding])]
    moments = [tuple(jnp.asarray(v, jnp.float32) for v in (part, part * 0, part * 0)) for part in start]
    state = _State(moments[0], moments[1], jnp.zeros((), jnp.int32))  # type: ignore[arg-type]
    rates = options.learning_rate * reassign, options.learning_rate * options.move_levels
    loss = options.lam, options.gamma, options.eta, options.conditional
    settings = Settings(*(jnp.asarray(v, jnp.float32) for v in (*loss, *rates)))
    with interruptible() as interrupted:
        for first in range(0, epochs, _EPOCHS):
            span = jnp.array([first, min(first + _EPOCHS, epochs), epochs])
            state = _run(
                state, jnp.asarray(codes), layout, where, *rows, settings, span, jax.random.key(options.seed),
                batch=min(options.batch_size, len(rows[0])), reassign=reassign,
            )  # fmt: skip
            jax.block_until_ready(state)
            if interrupted.is_set():
                break
    found = np.asarray(state.levels[0], dtype=np.float64)
    values = np.sort(found[: len(levels)]) if reassign else found[: len(levels)]
    new = Codebook(tuple(np.unique(values).tolist()))
    theta = np.asarray(state.theta[0], dtype=np.float64)
    return _stored(net, new, new.encode(theta) if reassign else new.encode(values[codes]))


def _check(net: BayesNet, book: Codebook, data: Dataset) -> None:
    if net.target is None or data.y is None:
        raise error("a classifier, and rows with a class", "none", where="learn_codebook")
    if data.variables != net.variables or data.target != net.target:
        raise error("the variables of the classifier, with the same states", "others", where="data")
    if any(cpd.tree is not None for cpd in net.cpds):
        raise error("tables without decision trees", "trees", where="learn_codebook")
    if not np.isfinite(book.values).all():
        remedy = "smooth the network before it is tied: zeros=1e-4"
        raise error("finite levels", "minus infinity", where="codebook", remedy=remedy)
    if not (data.y >= 0).any():
        raise error("rows with a class", "none", where="data")


def _layout(net: BayesNet) -> Array:
    """Return for each context and value of each table (the class left out), and for each class, the entry it has.

    The class runs fastest, so that the entries of a row of data for all classes lie side by side.
    """
    assert net.target is not None
    classes, last, start, found = net.target.cardinality, len(net.variables), 0, []
    for node, cpd in enumerate(net.cpds):
        family = (*cpd.parents, node)
        axes = [net.nodes[v].cardinality for v in family]
        entries = start + np.arange(cpd.table.size).reshape(axes)
        start += cpd.table.size
        if last in family:
            entries = np.moveaxis(entries, family.index(last), -1).reshape(-1, classes)
        else:
            entries = np.repeat(entries.reshape(-1, 1), classes, axis=1)
        found.append(entries)
    return jnp.asarray(np.concatenate(found), dtype=jnp.int32)


def _rows(net: BayesNet, data: Dataset) -> tuple[Array, tuple[Array, Array]]:
    """Return for each row and table the line of the layout, past the end where a value is missing; classes, weights."""
    assert data.y is not None
    data = data.rows(data.y >= 0)
    last, start, found = len(net.variables), 0, []
    for node, cpd in enumerate(net.cpds):
        place, known, size = np.zeros(len(data), dtype=np.int64), np.ones(len(data), dtype=bool), 1
        for v in (*cpd.parents, node):
            if v != last:
                place = place * net.nodes[v].cardinality + data.X[:, v]
                known &= data.X[:, v] >= 0
                size *= net.nodes[v].cardinality
        found.append(np.where(known, start + place, 2**30))
        start += size
    weight = np.ones(len(data)) if data.weight is None else data.weight / data.weight.mean()
    where = jnp.asarray(np.stack(found, axis=1), dtype=jnp.int32)
    return where, (jnp.asarray(data.y, dtype=jnp.int32), jnp.asarray(weight, dtype=jnp.float32))


@partial(jax.jit, static_argnames=("batch", "reassign"), donate_argnums=0)
def _run(
    state: _State,
    codes: Array,
    layout: Array,
    where: Array,
    y: Array,
    weight: Array,
    settings: Settings,
    span: Array,
    key: Array,
    *,
    batch: int,
    reassign: bool,
) -> _State:
    """Train from epoch ``span[0]`` up to ``span[1]`` of ``span[2]``, in one compiled call."""
    count = len(y)
    steps = count // batch

    def loss(theta: Array, levels: Array, index: Array) -> Array:
        code = codes
        if reassign:
            ordered = jnp.sort(levels)
            code = jnp.searchsorted((ordered[1:] + ordered[:-1]) / 2, theta)
            levels = ordered
        read = levels[code]
        fixed = jax.lax.stop_gradient(read)
        through = fixed + theta - jax.lax.stop_gradient(theta)
        parts = []
        for values in (through, read):
            lines = values[layout].at[where[index]].get(mode="fill", fill_value=0.0)
            parts.append(lines.sum(axis=1))
        rows = y[index], weight[index]
        margin = large_margin(parts[1], rows[0], settings.gamma, settings.eta, rows[1])
        own = settings.lam * margin + settings.conditional * conditional_loss(parts[1], *rows)
        return own + hybrid(
            parts[0], rows[0], settings.lam, settings.gamma, settings.eta, settings.conditional, rows[1]
        )

    def step(state: _State, index: Array, decay: Array) -> _State:
        slopes = jax.grad(loss, argnums=(0, 1))(state.theta[0], state.levels[0], index)
        number = state.step + 1
        theta = _adam(state.theta, slopes[0], settings.rate * decay, number)
        levels = _adam(state.levels, slopes[1], settings.level_rate * decay, number)
        return _State(theta, levels, number)

    def epoch(e: Array, state: _State) -> _State:
        decay = 10.0 ** (-3.0 * e / jnp.maximum(span[2] - 1, 1))
        order = jax.random.permutation(jax.random.fold_in(key, e), count)[: steps * batch]
        return jax.lax.scan(lambda s, i: (step(s, i, decay), None), state, order.reshape(steps, batch))[0]

    return jax.lax.fori_loop(span[0], span[1], epoch, state)


def _adam(moments: tuple[Array, Array, Array], slope: Array, rate: Array, number: Array) -> tuple[Array, Array, Array]:
    value, first, second = moments
    first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
    t = number.astype(jnp.float32)
    corrected = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return value - corrected * first / (jnp.sqrt(second) + 1e-7), first, second


def _stored(net: BayesNet, book: Codebook, codes: np.ndarray) -> BayesNet:
    parts: Sequence[np.ndarray] = np.split(codes, np.cumsum([cpd.table.size for cpd in net.cpds])[:-1])
    cpds = [
        replace(cpd, table=part.reshape(cpd.table.shape), format=book)
        for cpd, part in zip(net.cpds, parts, strict=True)
    ]
    return BayesNet(net.variables, net.target, tuple(cpds))
