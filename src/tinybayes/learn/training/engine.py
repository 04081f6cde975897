"""The training engine: configurations of equal shape go through the epochs together, in compiled calls.

A learner plugs in at two places. Its `Steps` see arrays only: `schedule` returns what is constant within an epoch,
`step` changes the state of one configuration by one mini-batch, `losses` returns what is measured of rows: for
classifiers whether a label is wrong, by their class scores. They are a static argument of the compiled loop, hence a
frozen dataclass, hashed by value. What configurations may differ in (hyper-parameters, structures, widths) is data with
a leading axis of configurations, over which `run_epochs` maps the steps. The property `parameters` of a state is the
part that is kept when it was best. Its `Run` knows the package's types: it turns configurations of equal shape into
arrays, and learned arrays into models.
`train` does the rest: groups by shape, parts that fit in memory, the device, progress, interrupts.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.compiling import compiled
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset

Array = jax.Array
Configuration = TypeVar("Configuration")
Result = TypeVar("Result")
Tell = Callable[[int, float], None]
BLOCK = 512  # rows of a block when errors are measured
MEMORY = 4 * 2**30  # bytes that the configurations trained at once may take on a CPU
DRAWN = 1  # the random stream of what is drawn for a mini-batch, beside the order of the rows
SECONDS_A_CALL = 2.0  # how long one compiled call should take: the pause between two reports


class Rows(NamedTuple):
    """Rows of data on the device: inputs (codes, -1 where missing, or numbers), classes, weights.

    Where a teacher has given probabilities of the classes, `soft` has them. A mini-batch has a `key` for what is drawn
    once for all configurations, such as noise: drawn for each, it takes longer than the arithmetic of small models.
    """

    X: Array
    y: Array
    weight: Array
    soft: Array | None = None
    key: Array | None = None


class Steps(Protocol):
    """What the compiled loop calls; `fixed` is the data of one configuration that training does not change."""

    def schedule(self, progress: Array) -> Any:
        """Return what is constant within an epoch; `progress` rises from 0 to 1 over the run."""

    def step(self, state: Any, fixed: Any, rows: Rows, schedule: Any) -> Any:
        """Return the state of one configuration after one mini-batch."""

    def losses(self, parameters: Any, fixed: Any, rows: Rows) -> Array:
        """Return what is measured of each row, on average: the error."""


class ClassSteps(Steps, Protocol):
    """Steps of a classifier: its error is the share of wrong labels."""

    def scores(self, parameters: Any, fixed: Any, X: Array) -> Array:
        """Return the class scores of rows."""

    def losses(self, parameters: Any, fixed: Any, rows: Rows) -> Array:
        """Return one for rows with a wrong label."""
        return jnp.argmax(self.scores(parameters, fixed, rows.X), axis=1) != rows.y


@compiled(static_argnames=("steps", "batch"), donate_argnums=0)
def run_epochs(
    states: Any, fixed: Any, data: Rows, epochs: tuple[Array, Array, Array], shuffle: Array, *, steps: Steps, batch: int
) -> Any:
    """Train all configurations for some epochs, in one compiled call.

    `states` and `fixed` have a leading axis of configurations; all share the training rows. `epochs` are the first
    epoch of this call, the one after its last, and the number of all, for the schedules. Epoch e is shuffled by the key
    ``fold_in(shuffle, e)``; rows that do not fill a mini-batch are left out of it.
    """
    count = data.y.shape[0]
    batches = count // batch
    first, last, total = epochs

    def epoch(e: Array, states: Any) -> Any:
        schedule = steps.schedule(e / jnp.maximum(total - 1, 1))
        key = jax.random.fold_in(shuffle, e)
        order = jax.random.permutation(key, count)[: batches * batch]
        keys = jax.random.split(jax.random.fold_in(key, DRAWN), batches)

        def step(states: Any, part: tuple[Array, Array]) -> tuple[Any, None]:
            index, own_key = part
            rows = jax.tree.map(lambda column: column[index], data)._replace(key=own_key)
            return jax.vmap(lambda state, own: steps.step(state, own, rows, schedule))(states, fixed), None

        return jax.lax.scan(step, states, (order.reshape(batches, batch), keys))[0]

    return jax.lax.fori_loop(first, last, epoch, states)


@compiled(static_argnames=("steps",))
def error_rates(parameters: Any, fixed: Any, data: Rows, *, steps: Steps) -> Array:
    """Return the weighted average of the losses of every configuration: of a classifier, the share of wrong labels.

    `data` comes in blocks: its arrays have a leading axis of blocks, and rows that only fill a block weigh nothing.
    """

    def one(parameters: Any, fixed: Any) -> Array:
        def weighted(rows: Rows) -> Array:
            return jnp.sum(rows.weight * steps.losses(parameters, fixed, rows))

        return jax.lax.map(weighted, data).sum() / data.weight.sum()

    return jax.vmap(one)(parameters, fixed)


Best = tuple[Array, Any]  # errors, and the parameters that have them


@compiled()
def better(best: Best, now: Best) -> Best:
    """Replace the parameters of the configurations whose error fell."""
    improved = now[0] < best[0]

    def pick(new: Array, old: Array) -> Array:
        return jnp.where(improved.reshape(-1, *([1] * (old.ndim - 1))), new, old)

    return jax.tree.map(pick, now, best)


def to_rows(data: Dataset, inputs: Callable[[np.ndarray], np.ndarray] | None = None) -> Rows:
    """Put the rows with a known class on the device, weights scaled to a mean of one; `inputs` turns codes into X."""
    known = data.rows(usable(data))
    weight = np.ones(len(known)) if known.weight is None else known.weight / known.weight.mean()
    X = jnp.asarray(known.X, dtype=jnp.int32) if inputs is None else jnp.asarray(inputs(known.X))
    soft = None if known.soft is None else jnp.asarray(known.soft, dtype=jnp.float32)
    return Rows(X, jnp.asarray(known.y, dtype=jnp.int32), jnp.asarray(weight, dtype=jnp.float32), soft)


def usable(data: Dataset) -> np.ndarray:
    """Tell which rows have a class and a weight."""
    assert data.y is not None
    return np.asarray((data.y >= 0) & ((data.weight if data.weight is not None else 1) > 0))


def to_blocks(rows: Rows) -> Rows:
    """Cut rows into blocks; what fills the last one weighs nothing."""
    missing = -rows.y.shape[0] % BLOCK

    def cut(part: Array) -> Array:
        padded = jnp.pad(part, [(0, missing)] + [(0, 0)] * (part.ndim - 1))
        return padded.reshape(-1, BLOCK, *part.shape[1:])

    return Rows(*jax.tree.map(cut, rows))


class Run(ABC, Generic[Result]):
    """Configurations of equal shape on their way through the epochs.

    `steps`, `states` and `fixed` are those of `run_epochs`. The error is measured on the validation rows during
    training and on the test rows at the end.
    """

    def __init__(
        self,
        steps: Steps,
        states: Any,
        fixed: Any,
        options: TrainingOptions,
        data: Dataset,
        validation: Dataset | None = None,
        test: Dataset | None = None,
    ) -> None:
        self.steps, self.states, self.fixed, self.options = steps, states, fixed, options
        self.data, self.rows, self.test = data, self.to_rows(data), test
        self.shuffle = jax.random.key(options.shuffle_seed)
        self.batch = min(options.batch_size, self.rows.y.shape[0])
        self.validation = None if validation is None else to_blocks(self.to_rows(validation))
        self.keep_best = options.keep_best and validation is not None
        self.count = len(jax.tree.leaves(states)[0])
        self.history: list[tuple[int, np.ndarray]] = []
        self.best: Best | None = None
        self._measured, self._stride = 0, 1

    def to_rows(self, data: Dataset) -> Rows:
        """Return rows as the steps take them."""
        return to_rows(data)

    @abstractmethod
    def results(self, complete: bool) -> list[Result]:
        """Return the learned models; `complete` says whether all epochs were run."""

    def train(self, tell: Tell, interrupted: Event) -> bool:
        """Run the epochs; tell whether all of them were run."""
        done = self.run(0, self.options.epochs, tell, interrupted)
        self.measure(done)  # an interrupt may have come between two measurements
        return done == self.options.epochs

    def run(self, done: int, end: int, tell: Tell, interrupted: Event) -> int:
        """Run epochs up to `end`; return how many are done, which are fewer after an interrupt."""
        epochs, every = self.options.epochs, self.options.every
        exact = self.keep_best or every > 1  # measured when it is due, whatever the machine's speed
        while done < end and not (done and (interrupted.is_set() or time.time() > self.options.deadline)):
            last = min(done + self._stride, end)
            if exact:
                last = min(last, done - done % every + every)
            began = time.perf_counter()
            self.states = self.advance((done, last, epochs))
            jax.block_until_ready(self.states)
            seconds = (time.perf_counter() - began) / (last - done)
            if done > 0:  # the first call also compiles
                self._stride = int(np.clip(SECONDS_A_CALL / max(seconds, 1e-9), 1, max(1, epochs // 10)))
            done = last
            due = done % every == 0 if exact else done - self._measured >= every
            if due or done == epochs:
                self.measure(done)
            tell(done, float(self.history[-1][1].min()) if self.history else float("nan"))
        return done

    def advance(self, epochs: tuple[int, int, int]) -> Any:
        """Return the states after some epochs, as `run_epochs` counts them."""
        return run_epochs(
            self.states,
            self.fixed,
            self.rows,
            (jnp.asarray(epochs[0]), jnp.asarray(epochs[1]), jnp.asarray(epochs[2])),
            self.shuffle,
            steps=self.steps,
            batch=self.batch,
            deterministic=self.options.deterministic,
        )

    def measure(self, epoch: int, *, again: bool = False) -> None:
        """Measure on the validation rows, unless that was done after this epoch; `again` where something changed."""
        if self.validation is None or (self._measured == epoch and not again):
            return
        parameters = self.states.parameters
        errors = self._errors(parameters, self.validation)
        self._measured = epoch
        self.history.append((epoch, np.asarray(errors)))
        if self.keep_best:
            # A copy, since the next call takes over the memory of the states.
            now = errors, jax.tree.map(jnp.array, parameters)
            self.best = now if self.best is None else better(self.best, now)

    def kept(self) -> tuple[Any, np.ndarray]:
        """Return the parameters to keep, and their validation and test errors in two columns, NaN without such rows."""
        errors, parameters = np.full((self.count, 2), np.nan), self.states.parameters
        if self.best is not None:
            errors[:, 0], parameters = self.best
        elif self.history:
            errors[:, 0] = self.history[-1][1]
        if self.test is not None:
            errors[:, 1] = self._errors(parameters, to_blocks(self.to_rows(self.test)))
        return parameters, errors

    def _errors(self, parameters: Any, blocks: Rows) -> Array:
        same = self.options.deterministic
        return error_rates(parameters, self.fixed, blocks, steps=self.steps, deterministic=same)

    def history_of(self, one: int) -> tuple[tuple[int, float], ...]:
        """Return the epochs and errors of one configuration."""
        return tuple((epoch, float(errors[one])) for epoch, errors in self.history)


@dataclass(frozen=True)
class Progress:
    """The progress of a training: epochs done of all, the least error of the last validation, seconds left."""

    done: int
    total: int
    best_error: float
    seconds_left: float


Report = Callable[[Progress], None]


def train(
    configurations: Sequence[Configuration],
    options: TrainingOptions,
    *,
    shape: Callable[[Configuration], Hashable],
    floats: Callable[[Sequence[Configuration]], int],
    make: Callable[[Sequence[Configuration]], Run[Result]],
    report: Report | None = None,
) -> list[Result]:
    """Train configurations of equal `shape` at once, as many as fit in memory.

    `floats` returns about how many numbers each of some configurations of equal shape keeps in memory; `make` starts
    their run. An interrupt (Ctrl-C) ends the training after the running call, but not before the first epoch; what has
    been learned so far is returned. No part is begun after it, except the first.
    """
    keep_compiled_code()
    device = find_device(options.device)
    memory = options.memory or device_memory(device)
    groups: dict[Hashable, list[int]] = {}
    for i, configuration in enumerate(configurations):
        groups.setdefault(shape(configuration), []).append(i)
    parts: list[list[int]] = []
    for indices in groups.values():
        most = max(1, memory // (4 * floats([configurations[i] for i in indices])))
        parts += [part.tolist() for part in np.array_split(indices, -(-len(indices) // most))]
    results: dict[int, Result] = {}
    with interruptible() as interrupted, jax.default_device(device):
        for number, indices in enumerate(parts):
            if results and (interrupted.is_set() or time.time() > options.deadline):
                break
            run = make([configurations[i] for i in indices])
            complete = run.train(_teller(report, options.epochs, number, len(parts)), interrupted)
            results |= zip(indices, run.results(complete), strict=True)
    return [results[i] for i in sorted(results)]


def _teller(report: Report | None, epochs: int, part: int, parts: int) -> Tell:
    """Return what a run calls to report, with the time left over all parts."""
    began = time.perf_counter()

    def tell(done: int, best: float) -> None:
        if report is not None:
            each = (time.perf_counter() - began) / done
            left = each * (epochs - done + epochs * (parts - part - 1))
            report(Progress(part * epochs + done, parts * epochs, best, left))

    return tell


def check_data(data: Dataset, configurations: Sequence[Any], **others: Dataset | None) -> None:
    """Refuse rows that nothing can be learned or measured on, before any work is done."""
    if data.target is None or data.y is None or not (data.y >= 0).any():
        raise error("rows with a class", "none", where="data", remedy="name the target column")
    if not configurations:
        raise error("at least one configuration", "none", where="configurations")
    for name, rows in others.items():
        if rows is not None and (rows.variables, rows.target) != (data.variables, data.target):
            raise error("the variables of the training rows", "others", where=name, remedy="read it like the data")


def find_device(name: str | None) -> jax.Device:
    """Return the device of that name, or the one that JAX prefers."""
    try:
        return jax.devices(name)[0]
    except RuntimeError as problem:
        known = sorted({device.platform for device in jax.devices()})
        remedy = "install the extra 'cuda' for an NVIDIA GPU"
        raise error(f"one of {', '.join(known)}", repr(name), where="device", remedy=remedy) from problem


def device_memory(device: jax.Device) -> int:
    """Return the bytes that training may take: most of what a GPU has free, or a fixed share on a CPU."""
    if device.platform == "cpu":
        return MEMORY
    figures = device.memory_stats() or {}
    return int(0.6 * (figures.get("bytes_limit", 2 * MEMORY) - figures.get("bytes_in_use", 0)))


def keep_compiled_code() -> None:
    """Let JAX keep compiled code on disk between processes, unless the user has decided about it."""
    if jax.config.values.get("jax_compilation_cache_dir") is None:
        base = os.environ.get("TINYBAYES_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(base).expanduser() / "tinybayes-jax"))
        # Small programs too: a training has dozens of them, which together take seconds.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
