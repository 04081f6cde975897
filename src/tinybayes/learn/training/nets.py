"""Quantised neural networks: configurations in, networks of integers out.

The bridge between the package's types and the arrays of `net_steps.py`, as `tables.py` is for Bayesian networks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from tinybayes.errors import error
from tinybayes.infer.scores import predict_codes
from tinybayes.learn.training import engine
from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.engine import Progress
from tinybayes.learn.training.net_inputs import columns
from tinybayes.learn.training.net_integers import integer_layers, trained_layers
from tinybayes.learn.training.net_sizes import image_of
from tinybayes.learn.training.net_steps import Hyper, NetSteps, Parameters, initial_state
from tinybayes.learn.training.options import NetOptions, TrainingOptions
from tinybayes.model import Dataset, NeuralNet
from tinybayes.model.neural_net import input_reach
from tinybayes.options import MOST_SEED, documented, option

CALIBRATION = 2000  # training rows on which the units of activations are chosen
NARROW = {"dense": 16, "conv": 4}  # layers are padded to this times a power of two, so that few shapes are compiled


@documented
@dataclass(frozen=True, kw_only=True)
class NetConfiguration(NetOptions):
    """One run."""

    seed: int = option(0, "Of the weights and of the drawn signs.", low=0, high=MOST_SEED)


@dataclass(frozen=True)
class TrainedNet:
    """The result of one configuration, with the fields of `tables.Trained`.

    There is no network where none was asked for, or the weights are not quantised. The errors are those of the network
    of integers where there is one, the history that of the network in training, whose activations are not rounded yet.
    """

    net: NeuralNet | None
    validation_error: float
    test_error: float
    history: tuple[tuple[int, float], ...]
    complete: bool
    configuration: NetConfiguration = field(repr=False, compare=False)


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
    engine.check_data(data, configurations, validation=validation, test=test)

    def make(part: Sequence[NetConfiguration]) -> NetRun:
        return NetRun(data, part, options, validation, test, networks)

    floats = partial(_floats, data, options.batch_size)
    return engine.train(configurations, options, shape=_shape, floats=floats, make=make, report=report)


class NetRun(engine.Run[TrainedNet]):
    """Configurations of equal layers on their way through the epochs."""

    def __init__(
        self,
        data: Dataset,
        configurations: Sequence[NetConfiguration],
        options: TrainingOptions,
        validation: Dataset | None,
        test: Dataset | None,
        networks: bool,
    ) -> None:
        first = configurations[0]
        assert data.target is not None
        self.configurations, self.networks, self.measured = configurations, networks, (validation, test)
        conv = first.kind == "conv"
        self.columns = columns(data, first.input_kind, centred=not conv)
        if conv and len(self.columns.inputs) != len(data.variables):
            raise error("one number a pixel", "indicators", where="inputs of a convolution", remedy="use 'shared'")
        self.image = image_of(first.image_shape, len(data.variables), len(first.hidden)) if conv else None
        entering = (*self.image, 1) if self.image else (len(self.columns.inputs),)
        self.spec = NetSteps(
            entering,
            _widths(first),
            data.target.cardinality,
            first.activation,
            first.batch_norm,
            _noisy(first),
            bool((self.columns.inputs.state >= 0).any()),
            first.image_shift,
        )
        state = self.columns.inputs.state
        fixed = _hyper(configurations, np.where(state >= 0, self.columns.inputs.feature, -1))
        keys = jnp.stack([jax.random.key(c.seed) for c in configurations])
        states = jax.vmap(partial(initial_state, spec=self.spec))(keys, hyper=fixed)
        super().__init__(self.spec, states, fixed, options, data, validation, test)

    def to_rows(self, data: Dataset) -> engine.Rows:
        """Return rows with the numbers that enter the network."""
        return engine.to_rows(data, lambda X: self.columns.values(X).reshape(-1, *self.spec.inputs))

    def results(self, complete: bool) -> list[TrainedNet]:
        """Return the networks and their errors."""
        kept, all_errors = self.kept()
        arrays, results = jax.tree.map(np.asarray, kept), []
        for b, configuration in enumerate(self.configurations):
            net, errors = None, all_errors[b].tolist()
            if self.networks and configuration.bits is not None:
                net = self._network(configuration, jax.tree.map(lambda part, b=b: part[b], arrays))
                errors = [error_of(net, rows) for rows in self.measured]
            results.append(TrainedNet(net, errors[0], errors[1], self.history_of(b), complete, configuration))
        return results

    def _network(self, run: NetConfiguration, parameters: Parameters) -> NeuralNet:
        trained = trained_layers(self.spec, run.hidden, *parameters)
        assert run.bits is not None
        assert self.data.target is not None
        rows = self.data.X[:: max(1, len(self.data) // CALIBRATION)]
        values = np.rint(self.columns.values(rows).astype(np.float64) / self.columns.unit)
        reach = input_reach(self.data.variables, self.columns.inputs).reshape(self.spec.inputs)
        layers, scale = integer_layers(
            trained, run.bits, run.activation, self.columns.unit, values.reshape(-1, *self.spec.inputs), reach
        )
        return NeuralNet(self.data.variables, self.data.target, self.columns.inputs, layers, scale, self.image)


def _noisy(c: NetConfiguration) -> bool:
    return c.input_noise > 0 or c.mixup > 0


def _hyper(configurations: Sequence[NetConfiguration], nominal: np.ndarray) -> Hyper:
    """Turn what each configuration chooses into arrays with a leading axis of configurations."""
    levels = [0.0 if c.bits is None else 2.0**c.bits - 1 for c in configurations]
    rates, smoothing = [c.learning_rate for c in configurations], [c.label_smoothing for c in configurations]
    widths = np.array([c.hidden for c in configurations], dtype=np.float32).reshape(len(configurations), -1)
    noise, mixup = [c.input_noise for c in configurations], [c.mixup for c in configurations]
    every = np.tile(nominal.astype(np.float32), (len(configurations), 1))
    parts = (levels, rates, smoothing, widths, noise, mixup, every)
    hyper = Hyper(*(jnp.asarray(part, dtype=jnp.float32) for part in parts))
    return hyper._replace(nominal=hyper.nominal.astype(jnp.int32))


def _shape(c: NetConfiguration) -> tuple[object, ...]:
    noise = _noisy(c), c.image_shift
    return c.kind, _widths(c), c.activation, c.batch_norm, c.input_kind, c.image_shape, *noise


def _widths(c: NetConfiguration) -> tuple[int, ...]:
    """Return the widths to which the hidden layers are padded, so that few shapes are compiled."""
    widths = []
    for units in c.hidden:
        width = NARROW[c.kind]
        while width < units:
            width *= 2 if c.kind == "conv" or jax.default_backend() == "cpu" else 4  # on a GPU compiling costs more
        widths.append(width)
    return tuple(widths)


def _floats(data: Dataset, batch: int, configurations: Sequence[NetConfiguration]) -> int:
    """Estimate the numbers that one configuration keeps in memory while it is trained."""
    assert data.target is not None
    c, classes = configurations[0], data.target.cardinality
    widths = _widths(c)
    if c.kind == "dense":
        inputs = sum(v.cardinality for v in data.variables) if c.input_kind == "one-hot" else len(data.variables)
        sizes = [inputs, *widths, classes]
        weights = sum(a * b for a, b in pairwise(sizes))
        return 8 * weights + 6 * batch * sum(sizes[1:])
    pixels, channels, weights, values = len(data.variables), 1, 0, 0
    for units in widths:
        weights += 9 * channels * units
        values += pixels * (9 * channels + 6 * units)
        pixels, channels = max(1, pixels // 4), units
    return 8 * (weights + pixels * channels * classes) + 2 * batch * values


def error_of(net: NeuralNet, rows: Dataset | None) -> float:
    """Return the weighted share of wrong labels; NaN without rows."""
    if rows is None or rows.y is None:
        return float("nan")
    known = rows.rows(engine.usable(rows))
    weight = np.ones(len(known)) if known.weight is None else known.weight
    return float((weight * (predict_codes(net, known.X) != known.y)).sum() / weight.sum())
