"""Quantised neural networks: configurations in, networks of whole numbers out.

The bridge between the package's types and the arrays of `net_gradient.py`, as `hybrid.py` is for Bayesian networks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

import jax
import jax.numpy as jnp
import numpy as np

from tinybayes.errors import error
from tinybayes.infer.scores import predict_codes
from tinybayes.learn.training import _arrays as arrays
from tinybayes.learn.training import _net_plan as plan
from tinybayes.learn.training import net_gradient as gradient
from tinybayes.learn.training._epochs import Epochs, Progress, Tell, in_parts
from tinybayes.learn.training.net_inputs import columns
from tinybayes.learn.training.net_integers import Trained, whole_layers
from tinybayes.learn.training.net_sizes import image_side
from tinybayes.learn.training.options import NetOptions, TrainingOptions
from tinybayes.model import Dataset, NeuralNet
from tinybayes.model.neural_net import input_reach
from tinybayes.options import documented, option

Learned = tuple[tuple[gradient.Weights, ...], tuple[gradient.Moving, ...]]  # weights, and statistics of batch norm
CALIBRATION = 2000  # training rows on which the units of activations are chosen


@documented
@dataclass(frozen=True, kw_only=True)
class NetConfiguration(NetOptions):
    """One run."""

    seed: int = option(0, "Of the weights and of the drawn signs.")


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
    options: TrainingOptions | None = None,
    *,
    validation: Dataset | None = None,
    test: Dataset | None = None,
    report: Callable[[Progress], None] | None = None,
    networks: bool = True,
) -> list[TrainedNet]:
    """Train all configurations; those of nearly equal shape at once. The arguments are those of `train_tables`."""
    options = options or TrainingOptions()
    plan.check(data, configurations)
    arrays.keep_compiled_code()
    device = arrays.find_device(options.device)
    parts = list(plan.parts(data, configurations, options.batch_size, options.memory or arrays.device_memory(device)))

    def work(indices: tuple[int, ...], tell: Tell, interrupted: Event) -> list[TrainedNet]:
        run = _Run(data, [configurations[i] for i in indices], validation, options.keep_best, options.every)
        complete = run.train(options.epochs, options.batch_size, options.shuffle_seed, tell, interrupted)
        return run.results(complete, test, networks=networks)

    return in_parts(parts, work, epochs=options.epochs, device=device, report=report)


class _Run(Epochs):
    """Configurations of equal layers on their way through the epochs."""

    def __init__(
        self,
        data: Dataset,
        configurations: Sequence[NetConfiguration],
        validation: Dataset | None,
        keep_best: bool,
        every: int,
    ) -> None:
        super().__init__(len(configurations), keep_best=keep_best and validation is not None, every=every)
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
        keys = jnp.stack([jax.random.key(c.seed) for c in configurations])
        self.states = jax.vmap(partial(gradient.initial_state, spec=self.spec))(keys, hyper=self.hypers)

    def _rows(self, data: Dataset) -> gradient.Rows:
        rows = arrays.to_rows(data)
        known = data.X[arrays.usable(data)]
        values = self.columns.values(known).reshape(-1, *self.spec.inputs)
        return gradient.Rows(jnp.asarray(values), rows.y, rows.weight)

    def train(self, epochs: int, batch: int, shuffle_seed: int, tell: Tell, interrupted: Event) -> bool:
        """Run the epochs; tell whether all of them were run."""
        self.batch, self.shuffle = min(batch, self.rows.y.shape[0]), jax.random.key(shuffle_seed)
        done = self.run(0, epochs, epochs, tell, interrupted)
        self.measure(done)  # an interrupt may have come between two measurements
        return done == epochs

    def advance(self, first: int, last: int, epochs: int) -> None:
        """Run some of all epochs, in one compiled call."""
        self.states = gradient.run_epochs(
            self.states,
            self.rows,
            self.hypers,
            jnp.asarray(first),
            jnp.asarray(last),
            jnp.asarray(epochs),
            self.shuffle,
            batch=self.batch,
            spec=self.spec,
        )
        jax.block_until_ready(self.states)

    @property
    def current(self) -> Learned:
        """The parameters as they are now."""
        return self.states.layers, self.states.moving

    def validation_errors(self) -> jax.Array | None:
        """Return the errors of the parameters as they are now; None without validation rows."""
        return None if self.validation is None else self._errors(self.current, self.validation)

    def _errors(self, learned: Learned, rows: gradient.Rows) -> jax.Array:
        return gradient.error_rates(*learned, rows, self.hypers, spec=self.spec)

    def results(self, complete: bool, test: Dataset | None, *, networks: bool) -> list[TrainedNet]:
        """Return what was learned."""
        kept, validation = self.kept()
        tested = np.full(self.count, np.nan)
        if test is not None:
            tested = np.asarray(self._errors(kept, arrays.to_blocks(self._rows(test))))
        layers, moving = jax.tree.map(np.asarray, kept)
        found = []
        for b, configuration in enumerate(self.configurations):
            net, errors = None, [float(validation[b]), float(tested[b])]
            if networks and configuration.bits is not None:
                of_one = jax.tree.map(lambda part, b=b: part[b], (layers, moving))
                net = self._network(configuration, *of_one)
                errors = [error_of(net, rows) for rows in (self.validation_rows, test)]
            found.append(TrainedNet(net, errors[0], errors[1], self.history_of(b), complete))
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
