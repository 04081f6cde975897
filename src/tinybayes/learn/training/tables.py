"""Tables, and the structure with them, trained by gradient: configurations in, networks out.

The bridge between the package's types and the arrays of `table_steps.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.training import engine, table_epochs
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.arborescence import acyclic_mask, ordering_mask
from tinybayes.learn.training.candidates import Candidates, with_none
from tinybayes.learn.training.compiling import platform
from tinybayes.learn.training.engine import Progress, Tell
from tinybayes.learn.training.input_noise import Moves, full, moves
from tinybayes.learn.training.options import TableOptions, TrainingOptions
from tinybayes.learn.training.table_layout import Layout, contexts
from tinybayes.learn.training.table_steps import Hyper, Space, State, Tables, TableSteps, best_choice, initial_state
from tinybayes.model import CPD, BayesNet, Dataset, Fixed, Float, NumberFormat
from tinybayes.options import MOST_SEED, documented, option

__all__ = ["Progress", "TableConfiguration", "Trained", "TrainingOptions", "train_tables"]

FIRM = 60.0  # a preference that no Gumbel noise turns over


@documented
@dataclass(frozen=True, kw_only=True)
class TableConfiguration(TableOptions):
    """One run.

    Parameters
    ----------
    candidates
        The parents that each feature may have.
    number_format
        `Fixed` for training through quantised tables; `Float` otherwise.
    preference
        Initial structure logits, shape of the candidates; zero by default.
    start
        A network of the same structure whose tables training starts from, for a fixed structure; drawn by default.
    """

    candidates: Candidates
    number_format: NumberFormat = field(default_factory=Float)
    preference: np.ndarray | None = None
    start: BayesNet | None = None
    per_row: bool = option(False, "Draw a structure for every row, not (as the paper does) for every mini-batch.")
    seed: int = option(0, "Of the initial parameters and of the sampled structures.", low=0, high=MOST_SEED)


def noisy(run: TableConfiguration) -> TableConfiguration:
    """Give a fixed structure with structure noise "no extra parent" as the other choice of every feature."""
    fixed = run.candidates
    if fixed.parent.shape[1] > 1 or (fixed.parent < 0).all() or run.structure_noise == 0:
        return run
    both = with_none(fixed)
    return replace(run, candidates=both, preference=np.where(both.parent >= 0, FIRM, 0.0), structure_rate=0.0)


@dataclass(frozen=True)
class Trained:
    """The result of one configuration.

    Parameters
    ----------
    net
        The network under the most probable structure; None for a pseudo-TAN, which is no Bayesian network.
    parents
        The extra parent of each feature, -1 for none.
    validation_error, test_error
        Share of wrong labels on the validation and on the test rows; NaN without such rows.
    history
        Pairs (epoch, validation error).
    complete
        False when training was interrupted before the last epoch.
    configuration
        What was trained, as it was given: an interrupt or a deadline leaves results of some configurations only.
    """

    net: BayesNet | None
    parents: tuple[int, ...]
    validation_error: float
    test_error: float
    history: tuple[tuple[int, float], ...]
    complete: bool
    configuration: TableConfiguration = field(repr=False, compare=False)


def train_tables(
    data: Dataset,
    configurations: Sequence[TableConfiguration],
    options: TrainingOptions | None = None,
    *,
    validation: Dataset | None = None,
    test: Dataset | None = None,
    acyclic_from: float = 0.4,
    report: Callable[[Progress], None] | None = None,
    networks: bool = True,
) -> list[Trained]:
    """Train all configurations; those of equal shape at once.

    Parameters
    ----------
    data
        The training rows, with a class; missing values are skipped, weights multiply the loss.
    configurations
        What to train. A single fit is a list of one.
    options
        Epochs, size of a mini-batch and so on.
    validation
        Rows to measure the error on while training.
    test
        Rows to measure the error on once, at the end.
    acyclic_from
        For candidates without an ordering: after this share of the epochs the best choice without cycles gives an
        ordering, and the rest of the training searches among the parents that come earlier in it. Infinity leaves
        the cycles: a pseudo-TAN, whose scores are those of no Bayesian network.
    report
        Called now and then. An interrupt (Ctrl-C) ends the training after the running call, but not before the first
        epoch; what has been learned so far is returned.
    networks
        False leaves out the networks, for sweeps that only look at errors.
    """
    options = options or TrainingOptions()
    runs = [noisy(run) for run in configurations]
    engine.check_data(data, runs, validation=validation, test=test)
    _check(data, runs)

    def make(part: Sequence[TableConfiguration]) -> TableRun:
        return TableRun(data, part, options, validation, test, acyclic_from, networks)

    floats = partial(_floats, data, options.batch_size)
    results = engine.train(runs, options, shape=_shape, floats=floats, make=make, report=report)
    given = {id(run): configuration for run, configuration in zip(runs, configurations, strict=True)}
    return [replace(result, configuration=given[id(result.configuration)]) for result in results]


class TableRun(engine.Run[Trained]):
    """Configurations of equal shape on their way through the epochs."""

    steps: TableSteps
    states: State
    fixed: Tables

    def __init__(
        self,
        data: Dataset,
        configurations: Sequence[TableConfiguration],
        options: TrainingOptions,
        validation: Dataset | None,
        test: Dataset | None,
        acyclic_from: float,
        networks: bool,
    ) -> None:
        self.configurations, self.acyclic_from = configurations, acyclic_from
        self.loops: table_epochs.Loops | None = None
        self.networks = networks and acyclic_from <= 1
        assert data.target is not None
        states, classes = _states(data), data.target.cardinality
        sharing, candidates = configurations[0].sharing > 0, [c.candidates for c in configurations]
        layout = Layout.of(candidates, states, classes, one=sharing)
        spaces = [table_space(own, states, classes, layout) for own in candidates]
        space = Space(*(jnp.stack(part) for part in zip(*spaces, strict=True)))
        mask = jnp.stack([jnp.asarray(c.candidates.allowed) for c in configurations])
        make = partial(initial_state, layout=layout, classes=classes, sharing=sharing)
        start = jax.vmap(make)(jnp.stack([jax.random.key(c.seed) for c in configurations]), space)
        if any(c.start is not None for c in configurations):
            start = _started(start, configurations, space)
        liked = [np.zeros(c.candidates.parent.shape) if c.preference is None else c.preference for c in configurations]
        logits = start.logits._replace(value=jnp.asarray(np.stack(liked), dtype=jnp.float32))
        steps = TableSteps(layout, isinstance(configurations[0].number_format, Fixed), configurations[0].per_row)
        fixed = Tables(space, mask, _hyper(configurations), _moves(data, configurations))
        super().__init__(steps, start._replace(logits=logits), fixed, options, data, validation, test)

    def train(self, tell: Tell, interrupted: Event) -> bool:
        """Run the epochs; candidates without an ordering lose their cycles on the way, or at the end."""
        epochs = self.options.epochs
        if all(c.candidates.ordered for c in self.configurations) or self.acyclic_from > 1:
            return super().train(tell, interrupted)
        turn = min(epochs, max(1, round(self.acyclic_from * epochs)))
        done = self.run(0, turn, tell, interrupted)
        if turn < epochs and done == turn and not interrupted.is_set():
            self._break_cycles(ordering_mask)
            done = self.run(done, epochs, tell, interrupted)
            self.measure(done, again=done == turn)
        else:  # still without an ordering
            self._break_cycles(acyclic_mask)
            self.measure(done, again=True)
        return done == epochs

    def advance(self, epochs: tuple[int, int, int]) -> State:
        """Return the states after some epochs, on a CPU by loops of its own where these can take the steps."""
        if platform() != "cpu" or not table_epochs.suits(self.fixed, self.steps):
            return super().advance(epochs)
        if self.loops is None or not self.loops.go_on(self.states, self.fixed):
            loops = partial(table_epochs.Loops, steps=self.steps, batch=self.batch, first=epochs[0])
            self.loops = loops(self.states, self.fixed, self.rows, self.shuffle)
        return self.loops.advance(epochs)

    def _break_cycles(self, narrow: Callable[..., np.ndarray]) -> None:
        """Leave each feature only candidates among which no choice has a cycle."""
        logits = np.asarray(self.states.logits.value, dtype=np.float64)
        masks = np.array(self.fixed.mask)
        for b, configuration in enumerate(self.configurations):
            masks[b] = narrow(logits[b], masks[b], configuration.candidates.parent)
        self.fixed = self.fixed._replace(mask=jnp.asarray(masks))
        self.best = None  # the best parameters so far had cycles

    def results(self, complete: bool) -> list[Trained]:
        """Return the networks and their errors."""
        parameters, errors = self.kept()
        choices = np.asarray(best_choice(parameters.logits, self.fixed.mask))
        offsets, strides = np.asarray(self.fixed.space.offset), np.asarray(self.fixed.space.stride)
        theta, prior = (np.asarray(part) if self.networks else np.empty(self.count) for part in parameters[:2])
        features, results = np.arange(choices.shape[1]), []
        for b, configuration in enumerate(self.configurations):
            parents, net = configuration.candidates.parent[features, choices[b]], None
            if self.networks:
                offset = offsets[b][features, choices[b]]
                first = np.stack([offset, strides[b]], axis=1)
                net = _network(self.data, configuration.number_format, parents, first, theta[b], prior[b])
            validation, test = errors[b].tolist()
            chosen, history = tuple(parents.tolist()), self.history_of(b)
            results.append(Trained(net, chosen, validation, test, history, complete, configuration))
        return results


def _check(data: Dataset, configurations: Sequence[TableConfiguration]) -> None:
    """Refuse configurations that cannot be trained, before any work is done."""
    if not data.variables:
        raise error("at least one feature", "none", where="data")
    for i, c in enumerate(configurations):
        where = f"configuration {i}"
        if len(c.candidates.parent) != len(data.variables):
            raise error(f"candidates for {len(data.variables)} features", len(c.candidates.parent), where=where)
        if not isinstance(c.number_format, Float | Fixed):
            raise error("a Float or Fixed format", str(c.number_format), where=where)
        without = (c.candidates.parent[:, 0] < 0) & c.candidates.allowed[:, 0]
        if c.structure_noise and not without.all():
            raise error('"no extra parent" as first choice', "another one", where=f"{where}, structure_noise")
        if c.start is not None:
            _check_start(data, c.start, c.candidates.parent, f"{where}, start")
        if c.sharing and c.per_row:
            remedy = "leave one of them out"
            raise error("one structure for a mini-batch", "one for every row", where=f"{where}, sharing", remedy=remedy)


def _check_start(data: Dataset, net: BayesNet, parents: np.ndarray, where: str) -> None:
    if (net.variables, net.target) != (data.variables, data.target):
        raise error("the variables of the training rows", "others", where=where)
    if parents.shape[1] > 1 or [cpd.parents for cpd in net.cpds] != _parents(parents[:, 0].tolist()):
        raise error("a network of the fixed structure that is trained", "another one", where=where)
    if not net.is_normalized(1e-3):
        raise error("normalised tables", "others", where=where, remedy="train in floats first")
    if any(np.isneginf(cpd.log_parameters).any() for cpd in net.cpds):  # no step leads away from minus infinity
        raise error("probabilities above zero", "zeros", where=where, remedy="learn it with smoothing")


def _shape(c: TableConfiguration) -> tuple[object, ...]:
    quantized = isinstance(c.number_format, Fixed)
    return c.candidates.parent.shape[1], quantized, c.candidates.ordered, c.per_row, c.sharing > 0, c.input_noise > 0


def _floats(data: Dataset, batch: int, configurations: Sequence[TableConfiguration]) -> int:
    """Return the numbers that a configuration keeps: parameters, moments, gradient, temporaries."""
    assert data.target is not None
    candidates, classes = [c.candidates for c in configurations], data.target.cardinality
    layout = Layout.of(candidates, _states(data), classes, one=configurations[0].sharing > 0)
    return 8 * layout.entries * classes + 2 * batch * candidates[0].parent.size * classes


def _states(data: Dataset) -> np.ndarray:
    return np.array([v.cardinality for v in data.variables])


def _hyper(configurations: Sequence[TableConfiguration]) -> Hyper:
    """Turn what each configuration chooses into arrays with a leading axis of configurations."""
    formats = [c.number_format for c in configurations]
    scale = [2.0**f.fraction if isinstance(f, Fixed) else 1.0 for f in formats]
    limit = [2.0**f.integer - 2.0**-f.fraction if isinstance(f, Fixed) else 1.0 for f in formats]
    names = Hyper._fields[:-2]  # the scale and the limit of the number format come last
    columns = [[getattr(c, name) for c in configurations] for name in names]
    return Hyper(*(jnp.asarray(column, dtype=jnp.float32) for column in (*columns, scale, limit)))


def _moves(data: Dataset, configurations: Sequence[TableConfiguration]) -> Moves | jax.Array | None:
    """Return where codes move to, for each configuration, or None without input noise."""
    if configurations[0].input_noise == 0:
        return None
    made = {reach: moves(data, reach) for reach in {c.noise_reach for c in configurations}}
    own = [made[c.noise_reach] for c in configurations]
    tables = [table for one in own if (table := full(one)) is not None]
    if len(tables) == len(own):
        return jnp.stack(tables)
    longest = max(len(one.cumulative) for one in own)
    filled = [one._replace(cumulative=np.resize(one.cumulative, longest)) for one in own]
    return Moves(*(jnp.stack(part) for part in zip(*filled, strict=True)))


def table_space(candidates: Candidates, states: np.ndarray, classes: int, layout: Layout) -> Space:
    """Lay out the tables of all candidates one after another, those of a bucket together."""
    parent, needed = candidates.parent, contexts(candidates, states)
    bucket = layout.bucket_of(states)
    first_entries, first_groups = layout.starts
    group, of_states, owner = np.zeros_like(needed), np.ones(layout.groups, dtype=int), np.full(layout.groups, -1)
    for b, first in enumerate(first_groups):
        own = np.flatnonzero(bucket == b)
        lengths = needed[own].reshape(-1)
        group[own] = (first + np.cumsum(lengths) - lengths).reshape(len(own), -1)
        filled = slice(first, first + lengths.sum())
        owner[filled] = np.repeat(own, needed[own].sum(axis=1))
        of_states[filled] = states[owner[filled]]
    shift = (first_entries - first_groups)[bucket]
    stride = np.array([groups for _, groups in layout.buckets])[bucket]
    size = (needed * states[:, None] * classes).astype(np.float32)
    parts = parent, group + shift[:, None], size, stride, shift, of_states, owner
    return Space(*(jnp.asarray(part, dtype=None if part is size else jnp.int32) for part in parts))


def _parents(extra: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the parents of all nodes in a network whose features have these extra parents."""
    features = len(extra)
    return [(parent, features) if parent >= 0 else (features,) for parent in extra] + [()]


def _started(drawn: State, configurations: Sequence[TableConfiguration], space: Space) -> State:
    """Replace the drawn tables of configurations that start from a network: undo `_network`."""
    theta, prior = np.array(drawn.theta.value), np.array(drawn.prior.value)
    offsets, strides = np.asarray(space.offset), np.asarray(space.stride)
    entries = theta.reshape(len(theta), -1, prior.shape[1])
    for b, configuration in enumerate(configurations):
        if (net := configuration.start) is None:
            continue
        *features, last = net.cpds
        prior[b], classes = last.log_parameters[0], prior.shape[1]
        for cpd, offset, stride in zip(features, offsets[b, :, 0], strides[b], strict=True):
            table = cpd.log_parameters
            contexts, states = len(table) // classes, table.shape[1]
            where = _entries(offset, stride, states, contexts)
            entries[b, where] = np.moveaxis(table.reshape(contexts, classes, states), -1, 0)
    value = jnp.asarray
    return drawn._replace(
        theta=drawn.theta._replace(value=value(theta)), prior=drawn.prior._replace(value=value(prior))
    )


def _entries(offset: int, stride: int, states: int, contexts: int) -> np.ndarray:
    """Return where the entries of a table lie, by state and parent context."""
    return offset + stride * np.arange(states)[:, None] + np.arange(contexts)


def _network(
    data: Dataset, storage: NumberFormat, parents: np.ndarray, first: np.ndarray, theta: np.ndarray, prior: np.ndarray
) -> BayesNet:
    """Cut the chosen tables out of theta; `first` has the first entry and the stride of each."""
    cpds, entries = [], theta.reshape(-1, len(prior))
    above = _parents(parents.tolist())
    for i, (variable, parent, (offset, stride)) in enumerate(
        zip(data.variables, parents.tolist(), first.tolist(), strict=True)
    ):
        contexts = data.variables[parent].cardinality if parent >= 0 else 1
        table = entries[_entries(offset, stride, variable.cardinality, contexts)]  # value, parent, class
        rows = np.moveaxis(table, 0, -1).reshape(-1, variable.cardinality)
        cpds.append(CPD(above[i], storage.encode(rows.astype(np.float64)), storage))
    cpds.append(CPD((), storage.encode(prior[None].astype(np.float64)), storage))
    return BayesNet(data.variables, data.target, tuple(cpds))
