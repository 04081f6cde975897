"""Quantised neural networks: configurations in, networks of whole numbers out.

The bridge between the package's types and the arrays of `net_gradient.py`, as `hybrid.py` is for Bayesian networks.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.errors import error
from tinybayes.infer.scores import predict_codes
from tinybayes.learn import _arrays as arrays
from tinybayes.learn import _net_plan as plan
from tinybayes.learn import net_gradient as gradient
from tinybayes.learn._interrupts import interruptible
from tinybayes.learn._net_inputs import columns
from tinybayes.learn._net_integers import Trained, whole_layers
from tinybayes.learn.hybrid import Progress, teller
from tinybayes.learn.net_sizes import image_side
from tinybayes.model import Dataset, NeuralNet
from tinybayes.model.neural_net import input_reach

SECONDS_A_CALL = 2.0  # how long one compiled call should take: the pause between two reports
CALIBRATION = 2000  # training rows on which the units of activations are chosen


@dataclass(frozen=True, kw_only=True)
class NetConfiguration:
    """One run.

    Parameters
    ----------
    kind
        ``"dense"``, or ``"conv"``: 3x3 convolutions, each followed by the maximum over 2x2 pixels.
    hidden
        Units, or channels, of the hidden layers; none for logistic regression.
    bits
        Of a weight, 1 to 8; None trains weights that are not quantised, of which no `NeuralNet` is made.
    activation
        ``"relu"`` or ``"sign"``.
    batch_norm
        Whether the sums of hidden layers are normalised.
    inputs
        ``"standard"``, ``"shared"`` or ``"one-hot"``; see `tinybayes.learn.nets.columns`. By default "shared" for
        convolutions and "standard" otherwise.
    learning_rate
        At the start; it falls by a factor of 10,000 over the run.
    smoothing
        Of the labels: this share of a label is spread over all classes.
    image_shape
        Of convolutions; by default a square.
    seed
        Of the weights and of the drawn signs.
    """

    kind: str = "dense"
    hidden: tuple[int, ...] = (32,)
    bits: int | None = 4
    activation: str = "relu"
    batch_norm: bool = True
    inputs: str | None = None
    learning_rate: float = 3e-3
    smoothing: float = 0.0
    image_shape: tuple[int, int] | None = None
    seed: int = 0

    @property
    def input_kind(self) -> str:
        """How codes enter, the default filled in."""
        return self.inputs or ("shared" if self.kind == "conv" else "standard")


@dataclass(frozen=True)
class TrainedNet:
    """The result of one configuration.

    Parameters
    ----------
    net
        The network of whole numbers; None where none was asked for, or the weights are not quantised.
    validation_error, test_error
        Share of wrong labels, NaN without such rows; of the network in whole numbers where there is one.
    history
        Pairs (epoch, validation error) of the network in training, whose activations are not rounded yet.
    complete
        False when training was interrupted before the last epoch.
    """

    net: NeuralNet | None
    validation_error: float
    test_error: float
    history: tuple[tuple[int, float], ...]
    complete: bool


def train_nets(
    data: Dataset,
    configurations: Sequence[NetConfiguration],
    *,
    epochs: int = 500,
    batch_size: int = 100,
    validation: Dataset | None = None,
    test: Dataset | None = None,
    keep_best: bool = False,
    shuffle_seed: int = 0,
    report: Callable[[Progress], None] | None = None,
    memory: int | None = None,
    device: str | None = None,
    every: int = 1,
    networks: bool = True,
) -> list[TrainedNet]:
    """Train all configurations; those of nearly equal shape at once. The arguments are those of `hybrid.train`."""
    plan.check(data, configurations, epochs, batch_size)
    arrays.keep_compiled_code()
    place = arrays.find_device(device)
    parts = list(plan.parts(data, configurations, batch_size, memory or arrays.device_memory(place)))
    results: dict[int, TrainedNet] = {}
    with interruptible() as interrupted, jax.default_device(place):
        for number, indices in enumerate(parts):
            if interrupted.is_set() and results:
                break
            run = _Run(data, [configurations[i] for i in indices], validation, keep_best, every)
            complete = run.train(
                epochs, batch_size, shuffle_seed, teller(report, epochs, number, len(parts)), interrupted
            )
            results |= dict(zip(indices, run.results(complete, test, networks=networks), strict=True))
    return [results[i] for i in sorted(results)]


class _Run:
    """Configurations of equal layers on their way through the epochs."""

    def __init__(
        self,
        data: Dataset,
        configurations: Sequence[NetConfiguration],
        validation: Dataset | None,
        keep_best: bool,
        every: int,
    ) -> None:
        first = configurations[0]
        assert data.target is not None
        self.data, self.configurations, self.validation_rows = data, configurations, validation
        conv = first.kind == "conv"
        self.columns = columns(data, first.input_kind, centred=not conv)
        if conv and len(self.columns.inputs) != len(data.variables):
            raise error("one number a pixel", "indicators", where="inputs of a convolution", remedy="use 'shared'")
        self.image = first.image_shape or image_side(len(data.variables)) if conv else None
        entering = (*self.image, 1) if self.image else (len(self.columns.inputs),)
        widest = tuple(
            plan.ladder(first.kind, max(units)) for units in zip(*(c.hidden for c in configurations), strict=True)
        )
        self.spec = gradient.Spec(entering, widest, data.target.cardinality, first.activation, first.batch_norm)
        self.hypers = plan.hypers(configurations)
        self.rows = self._rows(data)
        self.validation = None if validation is None else arrays.to_blocks(self._rows(validation))
        self.keep_best, self.every = keep_best and validation is not None, max(1, every)
        self.history: list[tuple[int, np.ndarray]] = []
        keys = jnp.stack([jax.random.key(c.seed) for c in configurations])
        self.states = jax.vmap(partial(gradient.initial_state, spec=self.spec))(keys, hyper=self.hypers)
        self.best: tuple[jax.Array, tuple[object, object]] | None = None

    def _rows(self, data: Dataset) -> gradient.Rows:
        rows = arrays.to_rows(data)
        known = data.X[arrays.usable(data)]
        values = self.columns.values(known).reshape(-1, *self.spec.inputs)
        return gradient.Rows(jnp.asarray(values), rows.y, rows.weight)

    def train(
        self, epochs: int, batch: int, shuffle_seed: int, tell: Callable[[int, float], None], interrupted: Event
    ) -> bool:
        """Run the epochs; tell whether all of them were run."""
        batch = min(batch, self.rows.y.shape[0])
        shuffle = jax.random.key(shuffle_seed)
        done, stride = 0, 1
        while done < epochs and not (done and interrupted.is_set()):
            last = min(done + stride, epochs)
            if self.keep_best:
                last = min(last, done - done % self.every + self.every)
            began = time.perf_counter()
            self.states = gradient.run_epochs(
                self.states,
                self.rows,
                self.hypers,
                jnp.asarray(done),
                jnp.asarray(last),
                jnp.asarray(epochs),
                shuffle,
                batch=batch,
                spec=self.spec,
            )
            jax.block_until_ready(self.states)
            seconds = (time.perf_counter() - began) / (last - done)
            if done > 0:  # the first call also compiles
                stride = int(np.clip(SECONDS_A_CALL / max(seconds, 1e-9), 1, max(1, epochs // 10)))
            measured = self.history[-1][0] if self.history else 0
            done = last
            due = done % self.every == 0 if self.keep_best else done - measured >= self.every
            if due or done == epochs or interrupted.is_set():
                self._measure(done)
            tell(done, float(self.history[-1][1].min()) if self.history else float("nan"))
        return done == epochs

    def _measure(self, epoch: int) -> None:
        if self.validation is None:
            return
        found = gradient.error_rates(
            self.states.layers, self.states.moving, self.validation, self.hypers, spec=self.spec
        )
        self.history.append((epoch, np.asarray(found)))
        if self.keep_best:
            # A copy, since the next call takes over the memory of the states.
            now = found, jax.tree.map(jnp.array, (self.states.layers, self.states.moving))
            self.best = now if self.best is None else arrays.better(self.best, now)

    def results(self, complete: bool, test: Dataset | None, *, networks: bool) -> list[TrainedNet]:
        """Return what was learned."""
        kept = (self.states.layers, self.states.moving) if self.best is None else self.best[1]
        nothing = np.full(len(self.configurations), np.nan)
        validation = self.history[-1][1] if self.history else nothing
        if self.best is not None:
            validation = np.asarray(self.best[0])
        tested = nothing
        if test is not None:
            rows = arrays.to_blocks(self._rows(test))
            tested = np.asarray(gradient.error_rates(*kept, rows, self.hypers, spec=self.spec))
        layers, moving = jax.tree.map(np.asarray, kept)
        found = []
        for b, configuration in enumerate(self.configurations):
            history = tuple((epoch, float(errors[b])) for epoch, errors in self.history)
            net, errors = None, [float(validation[b]), float(tested[b])]
            if networks and configuration.bits is not None:
                of_one = jax.tree.map(lambda part, b=b: part[b], (layers, moving))
                net = self._network(configuration, *of_one)
                errors = [error_of(net, rows) for rows in (self.validation_rows, test)]
            found.append(TrainedNet(net, errors[0], errors[1], history, complete))
        return found

    def _network(
        self, run: NetConfiguration, layers: tuple[gradient.Weights, ...], moving: tuple[gradient.Moving, ...]
    ) -> NeuralNet:
        trained = trained_layers(self.spec, run.hidden, layers, moving)
        assert run.bits is not None
        assert self.data.target is not None
        rows = self.data.X[:: max(1, len(self.data) // CALIBRATION)]
        values = np.rint(self.columns.values(rows).astype(np.float64) / self.columns.unit)
        reach = input_reach(self.data.variables, self.columns.inputs).reshape(self.spec.inputs)
        whole, scale = whole_layers(
            trained, run.bits, run.activation, self.columns.unit, values.reshape(-1, *self.spec.inputs), reach
        )
        return NeuralNet(self.data.variables, self.data.target, self.columns.inputs, whole, scale, self.image)


def trained_layers(
    spec: gradient.Spec,
    hidden: tuple[int, ...],
    layers: Sequence[gradient.Weights],
    moving: Sequence[gradient.Moving],
) -> list[Trained]:
    """Cut off what was padded, and write batch normalisation as ``factor * (sum + shift)``."""
    found, entering, shape = [], spec.inputs[-1], spec.inputs
    for number, (layer, units) in enumerate(zip(layers, (*hidden, spec.classes), strict=True)):
        last = number == len(hidden)
        image = len(shape) == 3 and not last
        places = (3, 3) if image else shape[:2] if len(shape) == 3 else ()
        w = np.asarray(layer.w, dtype=np.float64).reshape(*places, -1, np.shape(layer.w)[-1])[..., :entering, :units]
        factor, shift = np.ones(units), np.zeros(units)
        if last:
            shift = np.asarray(layer.beta, dtype=np.float64)[:units]
        elif spec.batch_norm:
            gamma, beta = (np.asarray(part, dtype=np.float64)[:units] for part in layer[1:])
            mean, variance = (np.asarray(part, dtype=np.float64)[:units] for part in moving[number])
            factor = gamma / np.sqrt(variance + gradient.VARIANCE)
            factor = np.where(np.abs(factor) < 1e-9, 1e-9, factor)  # a dead unit: its weights do not matter
            shift = beta / factor - mean
        found.append(Trained(w if image else w.reshape(-1, units), factor, shift))
        padded = spec.hidden[number] if not last else spec.classes
        shape = (shape[0] // 2, shape[1] // 2, padded) if image else (padded,)
        entering = units
    return found


def error_of(net: NeuralNet, rows: Dataset | None) -> float:
    """Return the weighted share of wrong labels; NaN without rows."""
    if rows is None or rows.y is None:
        return float("nan")
    known = rows.rows(arrays.usable(rows))
    weight = np.ones(len(known)) if known.weight is None else known.weight
    return float((weight * (predict_codes(net, known.X) != known.y)).sum() / weight.sum())
