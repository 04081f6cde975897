"""Training by gradient: configurations in, networks out.

This file is the bridge between the package's types and the arrays of `gradient.py`: it lays out the tables, groups
configurations of equal shape, splits what does not fit in memory, runs the epochs, and turns the result into networks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.errors import error
from tinybayes.learn.training import _arrays as arrays
from tinybayes.learn.training import _plan as plan
from tinybayes.learn.training import gradient
from tinybayes.learn.training._arrays import find_device
from tinybayes.learn.training._epochs import Epochs, Progress, Tell, in_parts
from tinybayes.learn.training._tables import acyclic_mask, network, ordering_mask, table_space
from tinybayes.learn.training.candidates import Candidates, with_none
from tinybayes.learn.training.options import TableOptions, TrainingOptions
from tinybayes.model import BayesNet, Dataset, Fixed, Float, NumberFormat
from tinybayes.options import documented, option

__all__ = ["Progress", "TableConfiguration", "Trained", "find_device", "noisy", "train_tables"]

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
    """

    candidates: Candidates
    number_format: NumberFormat = field(default_factory=Float)
    preference: np.ndarray | None = None
    per_row: bool = option(False, "Draw a structure for every row, not (as the paper does) for every mini-batch.")
    seed: int = option(0, "Of the initial parameters and of the sampled structures.")


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
    """

    net: BayesNet | None
    parents: tuple[int, ...]
    validation_error: float
    test_error: float
    history: tuple[tuple[int, float], ...]
    complete: bool


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
    configurations = [noisy(run) for run in configurations]
    plan.check(data, configurations)
    for name, rows in (("validation", validation), ("test", test)):
        if rows is not None and (rows.variables, rows.target) != (data.variables, data.target):
            raise error("the variables of the training rows", "others", where=name, remedy="read it like the data")
    arrays.keep_compiled_code()
    device = find_device(options.device)
    parts = list(plan.parts(data, configurations, options.batch_size, options.memory or arrays.device_memory(device)))

    def work(indices: tuple[int, ...], tell: Tell, interrupted: Event) -> list[Trained]:
        run = _Run(data, [configurations[i] for i in indices], validation, options.keep_best, options.every)
        complete = run.train(options.epochs, options.batch_size, acyclic_from, options.shuffle_seed, tell, interrupted)
        return run.results(complete, test, networks=networks and acyclic_from <= 1)

    return in_parts(parts, work, epochs=options.epochs, device=device, report=report)


class _Run(Epochs):
    """Configurations of equal shape on their way through the epochs."""

    def __init__(
        self,
        data: Dataset,
        configurations: Sequence[TableConfiguration],
        validation: Dataset | None,
        keep_best: bool,
        every: int,
    ) -> None:
        super().__init__(len(configurations), keep_best=keep_best and validation is not None, every=every)
        self.data, self.configurations = data, configurations
        self.quantized = isinstance(configurations[0].number_format, Fixed)
        self.states_of = np.array([v.cardinality for v in data.variables])
        assert data.target is not None
        classes = data.target.cardinality
        spaces = [table_space(c.candidates, self.states_of, classes) for c in configurations]
        # A whole number of vector loads in every row of a table: on a GPU an odd number of groups costs half the speed.
        groups = -(-max(len(space.states) for space in spaces) // 32) * 32
        padded = [arrays.padded(space, groups) for space in spaces]
        self.spaces = gradient.Space(*(jnp.stack(part) for part in zip(*padded, strict=True)))
        self.masks = jnp.stack([jnp.asarray(c.candidates.allowed) for c in configurations])
        self.hypers = plan.hypers(configurations)
        self.rows = arrays.to_rows(data)
        self.validation = None if validation is None else arrays.to_blocks(arrays.to_rows(validation))
        sharing = configurations[0].sharing > 0
        make = jax.vmap(partial(gradient.initial_state, sharing=sharing), in_axes=(0, 0, None, None))
        keys = jnp.stack([jax.random.key(c.seed) for c in configurations])
        self.states = make(keys, self.spaces, int(self.states_of.max()), classes)
        start = [np.zeros(c.candidates.parent.shape) if c.preference is None else c.preference for c in configurations]
        logits = self.states.logits._replace(value=jnp.asarray(np.stack(start), dtype=jnp.float32))
        self.states = self.states._replace(logits=logits)

    def train(
        self, epochs: int, batch: int, acyclic_from: float, shuffle_seed: int, tell: Tell, interrupted: Event
    ) -> bool:
        """Run the epochs; tell whether all of them were run."""
        self.batch, self.shuffle = min(batch, self.rows.y.shape[0]), jax.random.key(shuffle_seed)
        free = any(not c.candidates.ordered for c in self.configurations) and acyclic_from <= 1
        turn = min(epochs, max(1, round(acyclic_from * epochs))) if free else epochs
        done = self.run(0, turn, epochs, tell, interrupted)
        if turn < epochs and done == turn and not interrupted.is_set():
            self._break_cycles(ordering_mask)
            done = self.run(done, epochs, epochs, tell, interrupted)
            self.measure(done, again=done == turn)
        elif free:  # still without an ordering
            self._break_cycles(acyclic_mask)
            self.measure(done, again=True)
        else:  # an interrupt may have come between two measurements
            self.measure(done)
        return done == epochs

    def advance(self, first: int, last: int, epochs: int) -> None:
        """Run some of all epochs, in one compiled call."""
        self.states = gradient.run_epochs(
            self.states,
            self.rows,
            self.spaces,
            self.masks,
            self.hypers,
            jnp.asarray(first),
            jnp.asarray(last),
            jnp.asarray(epochs),
            self.shuffle,
            batch=self.batch,
            quantized=self.quantized,
            per_row=self.configurations[0].per_row,
        )
        jax.block_until_ready(self.states)

    @property
    def current(self) -> gradient.Parameters:
        """The parameters as they are now."""
        return self.states.parameters

    def validation_errors(self) -> jax.Array | None:
        """Return the errors of the parameters as they are now; None without validation rows."""
        return None if self.validation is None else self._errors(self.current, self.validation)

    def _break_cycles(self, narrow: Callable[..., np.ndarray]) -> None:
        """Leave each feature only candidates among which no choice has a cycle."""
        logits = np.asarray(self.states.logits.value, dtype=np.float64)
        masks = np.array(self.masks)
        for b, configuration in enumerate(self.configurations):
            masks[b] = narrow(logits[b], masks[b], configuration.candidates.parent)
        self.masks = jnp.asarray(masks)
        self.best = None  # what was best before had cycles

    def _errors(self, parameters: gradient.Parameters, rows: gradient.Rows) -> jax.Array:
        return gradient.error_rates(parameters, rows, self.spaces, self.masks, self.hypers, quantized=self.quantized)

    def results(self, complete: bool, test: Dataset | None, *, networks: bool) -> list[Trained]:
        """Return what was learned."""
        parameters, validation_errors = self.kept()
        test_errors = np.full(self.count, np.nan)
        if test is not None:
            test_errors = np.asarray(self._errors(parameters, arrays.to_blocks(arrays.to_rows(test))))
        theta, prior = (np.asarray(part) if networks else np.empty(self.count) for part in parameters[:2])
        choices = np.asarray(gradient.best_choice(parameters.logits, self.masks))
        found = []
        for b, configuration in enumerate(self.configurations):
            parent = configuration.candidates.parent[np.arange(len(choices[b])), choices[b]]
            offset = np.asarray(self.spaces.offset[b])[np.arange(len(choices[b])), choices[b]]
            net = None
            if networks:
                net = network(self.data, configuration.number_format, parent, offset, theta[b], prior[b])
            figures = float(validation_errors[b]), float(test_errors[b])
            found.append(Trained(net, tuple(parent.tolist()), *figures, self.history_of(b), complete))
        return found
