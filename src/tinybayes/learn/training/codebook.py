"""Training a classifier's codebook: the levels of its tied parameters, and which entry has which level.

Every entry of the tables has a log-parameter of its own in training, and is read as the nearest level (training through
a quantiser, whose derivative is taken to be one). Entries follow the gradient of the hybrid loss. Levels follow that of
its discriminative part only: the likelihood of tables that need not be normalised has no maximum.

Fixed point is a codebook whose levels do not move, so this loop trains through both.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.training import engine
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.losses import conditional_loss, hybrid, large_margin
from tinybayes.learn.training.optimizer import Moments, adam, decay, start
from tinybayes.learn.training.options import CodebookOptions, LossOptions, TrainingOptions
from tinybayes.model import BayesNet, Codebook, Dataset
from tinybayes.options import options_of

__all__ = ["CodebookOptions", "learn_codebook"]

Array = jax.Array
_FAR = 1e6  # levels that pad the codebook lie above this, out of the way of all log-parameters
_LEAST = 256  # levels of a padded codebook: one compiled program serves all smaller ones
_MISSING = 2**30  # a line past the end of the layout


class Entries(NamedTuple):
    """What training does not change: the first level of each entry, the layout of the tables, the hyper-parameters."""

    codes: Array
    layout: Array
    loss: tuple[Array, ...]  # the fields of `LossOptions`
    rate: Array
    level_rate: Array


class State(NamedTuple):
    """What training changes: log-parameters and levels."""

    theta: Moments
    levels: Moments
    step: Array

    @property
    def parameters(self) -> tuple[Array, Array]:
        """The values without their moments."""
        return self.theta.value, self.levels.value


@dataclass(frozen=True)
class CodebookSteps(engine.ClassSteps):
    """The steps that the engine takes; `reassign` lets entries move to other levels."""

    reassign: bool

    def schedule(self, progress: Array) -> Array:
        """Return the factor of both rates."""
        return decay(progress, 3.0)

    def step(self, state: State, fixed: Entries, rows: engine.Rows, schedule: Array) -> State:
        """Take one step on one mini-batch."""
        lam, gamma, eta, conditional = fixed.loss

        def loss(theta: Array, levels: Array) -> Array:
            read = self._read(theta, levels, fixed)
            through = jax.lax.stop_gradient(read) + theta - jax.lax.stop_gradient(theta)
            own, scores = (_scores(values, fixed, rows.X) for values in (read, through))
            margin = large_margin(own, rows.y, gamma, eta, rows.weight)
            of_levels = lam * margin + conditional * conditional_loss(own, rows.y, rows.weight)
            return of_levels + hybrid(scores, rows.y, lam, gamma, eta, conditional, rows.weight)

        d_theta, d_levels = jax.grad(loss, argnums=(0, 1))(*state.parameters)
        step = state.step + 1
        theta = adam(state.theta, d_theta, fixed.rate * schedule, step)
        return State(theta, adam(state.levels, d_levels, fixed.level_rate * schedule, step), step)

    def scores(self, parameters: tuple[Array, Array], fixed: Entries, X: Array) -> Array:
        """Return the class scores of rows."""
        return _scores(self._read(*parameters, fixed), fixed, X)

    def _read(self, theta: Array, levels: Array, fixed: Entries) -> Array:
        """Return the level of each entry."""
        if not self.reassign:
            return levels[fixed.codes]
        ordered = jnp.sort(levels)
        return ordered[jnp.searchsorted((ordered[1:] + ordered[:-1]) / 2, theta)]


def _scores(values: Array, fixed: Entries, lines: Array) -> Array:
    """Add up the entries of each row for all classes."""
    return values[fixed.layout].at[lines].get(mode="fill", fill_value=0.0).sum(axis=1)


def learn_codebook(net: BayesNet, book: Codebook, data: Dataset, options: CodebookOptions | None = None) -> BayesNet:
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

    def make(_: object) -> CodebookRun:
        return CodebookRun(net, book, data, options, training)

    training = TrainingOptions(epochs=max(1, options.epochs), batch_size=options.batch_size, shuffle_seed=options.seed)
    if options.epochs == 0:
        return make(None).results(True)[0]
    return engine.train([options], training, shape=lambda _: None, floats=lambda _: 1, make=make)[0]


class CodebookRun(engine.Run[BayesNet]):
    """One codebook on its way through the epochs."""

    def __init__(
        self, net: BayesNet, book: Codebook, data: Dataset, options: CodebookOptions, training: TrainingOptions
    ) -> None:
        self.net, self.levels, self.reassign = net, np.array(book.values), options.reassign
        levels = self.levels
        logs = np.concatenate([cpd.log_parameters.reshape(-1) for cpd in net.cpds])
        self.codes = book.encode(logs).astype(np.int32)
        padding = _FAR * (2.0 + np.arange(max(_LEAST - len(levels), 0)))
        values = np.clip(logs, levels[0] - 1.0, levels[-1] + 1.0), np.concatenate([levels, padding])
        moments = [start(jnp.asarray(part, jnp.float32)) for part in values]
        loss = tuple(jnp.asarray(getattr(options, name), jnp.float32) for name in options_of(LossOptions))
        rates = [jnp.asarray(options.learning_rate * on, jnp.float32) for on in (options.reassign, options.move_levels)]
        fixed = Entries(jnp.asarray(self.codes), jnp.asarray(_layout(net), jnp.int32), loss, rates[0], rates[1])
        state = State(moments[0], moments[1], jnp.zeros((), jnp.int32))
        state, fixed = jax.tree.map(lambda part: part[None], (state, fixed))  # the engine's axis of configurations
        super().__init__(CodebookSteps(options.reassign), state, fixed, training, data)

    def to_rows(self, data: Dataset) -> engine.Rows:
        """Return rows as lines of the layout."""
        return engine.to_rows(data, lambda X: _lines(self.net, X))

    def results(self, complete: bool) -> list[BayesNet]:
        """Return the network, all tables in the learned codebook."""
        theta, levels = (np.asarray(part[0], dtype=np.float64) for part in self.states.parameters)
        values = levels[: len(self.levels)]
        values = np.sort(values) if self.reassign else values
        book = Codebook(tuple(np.unique(values).tolist()))
        return [_stored(self.net, book, book.encode(theta if self.reassign else values[self.codes]))]


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


def _layout(net: BayesNet) -> np.ndarray:
    """Return for each context and value of each table (the class left out), and for each class, the entry it has.

    The class runs fastest, so that the entries of a row of data for all classes lie side by side.
    """
    assert net.target is not None
    classes, last, first, lines = net.target.cardinality, len(net.variables), 0, []
    for node, cpd in enumerate(net.cpds):
        family = (*cpd.parents, node)
        entries = first + np.arange(cpd.table.size).reshape([net.nodes[v].cardinality for v in family])
        first += cpd.table.size
        if last in family:
            entries = np.moveaxis(entries, family.index(last), -1).reshape(-1, classes)
        else:
            entries = np.repeat(entries.reshape(-1, 1), classes, axis=1)
        lines.append(entries)
    return np.concatenate(lines)


def _lines(net: BayesNet, X: np.ndarray) -> np.ndarray:
    """Return for each row and table the line of the layout, past the end where a value is missing."""
    first, columns = 0, []
    for node, cpd in enumerate(net.cpds):
        line, known, size = np.zeros(len(X), dtype=np.int64), np.ones(len(X), dtype=bool), 1
        for v in (*cpd.parents, node):
            if v != len(net.variables):
                line = line * net.nodes[v].cardinality + X[:, v]
                known &= X[:, v] >= 0
                size *= net.nodes[v].cardinality
        columns.append(np.where(known, first + line, _MISSING))
        first += size
    return np.stack(columns, axis=1).astype(np.int32)


def _stored(net: BayesNet, book: Codebook, codes: np.ndarray) -> BayesNet:
    parts = np.split(codes, np.cumsum([cpd.table.size for cpd in net.cpds])[:-1])
    pairs = zip(net.cpds, parts, strict=True)
    cpds = tuple(replace(cpd, table=part.reshape(cpd.table.shape), format=book) for cpd, part in pairs)
    return BayesNet(net.variables, net.target, cpds)
