"""Steps of quantised neural networks: arrays in, arrays out, in JAX.

Configurations under `vmap` have the same layers but may differ in width: narrow ones are padded, and a mask makes the
units beyond their width zero, so that these neither count nor learn. Bits, learning rates and seeds are data.
A convolution is a product with patches of the image, because products of many small matrices at once are fast where
grouped convolutions are not.

Numbers in brackets are equations of resource_efficient_bn_classifiers.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.compiling import compiled
from tinybayes.learn.training.engine import ClassSteps, Rows
from tinybayes.learn.training.optimizer import Moments, adam, decay, start

Array = jax.Array
MOMENTUM, VARIANCE = 0.99, 1e-3  # of the running means of batch normalisation, and the constant added to a variance
SHIFTS, NOISE = 0, 1  # numbers of the random streams of a mini-batch
DECAY = 4.0  # the learning rate falls by this many powers of ten over a run


class Weights(NamedTuple):
    """One layer: weights, and the two parameters of batch normalisation; `beta` of the last layer is its bias."""

    w: Array
    gamma: Array
    beta: Array


class Moving(NamedTuple):
    """Running mean and variance of the sums of a hidden layer."""

    mean: Array
    variance: Array


Parameters = tuple[tuple[Weights, ...], tuple[Moving, ...]]


class Hyper(NamedTuple):
    """What a configuration may choose: one scalar each, and how many units of each hidden layer exist."""

    levels: Array  # 2**bits - 1; zero for weights that are not quantised
    learning_rate: Array
    label_smoothing: Array
    width: Array
    input_noise: Array
    mixup: Array
    nominal: Array  # of each input: the number of the feature that it indicates, -1 for a number


class State(NamedTuple):
    """What training changes."""

    layers: Moments  # of a tuple of `Weights`
    moving: tuple[Moving, ...]
    key: Array
    step: Array

    @property
    def parameters(self) -> Parameters:
        """The weights without their moments, and the statistics of batch normalisation."""
        return self.layers.value, self.moving


@dataclass(frozen=True)
class NetSteps(ClassSteps):
    """The steps that the engine takes, for configurations with equal layers."""

    inputs: tuple[int, ...]  # columns; or rows, columns and channels of an image
    hidden: tuple[int, ...]  # units or channels, padded
    classes: int
    activation: str
    batch_norm: bool
    noisy: bool = False  # whether inputs have noise, or rows are mixed
    nominal: bool = False  # whether some inputs are indicators
    shift: int = 0  # pixels by which images move

    def schedule(self, progress: Array) -> Array:
        """Return the factor of the learning rate."""
        return decay(progress, DECAY)

    def step(self, state: State, fixed: Hyper, rows: Rows, schedule: Array) -> State:
        """Take one step of Adam on one mini-batch."""
        key, noise = jax.random.split(state.key)
        X, mixed = rows.X, rows.soft
        if self.shift:
            assert rows.key is not None
            X = shifted(jax.random.fold_in(rows.key, SHIFTS), X, self.shift)
        if self.noisy:
            assert rows.key is not None
            label = jax.nn.one_hot(rows.y, self.classes) if rows.soft is None else rows.soft
            X, mixed = disturbed(jax.random.fold_in(rows.key, NOISE), X, label, fixed, self.nominal)

        def loss(layers: tuple[Weights, ...]) -> tuple[Array, tuple[Moving, ...]]:
            scores, moving = logits((layers, state.moving), X, fixed, self, (noise, state.step))
            log_p = jax.nn.log_softmax(scores)
            if mixed is None:
                of_class = jnp.take_along_axis(log_p, rows.y[:, None], axis=1)[:, 0]
            else:
                of_class = (mixed * log_p).sum(axis=1)
            smooth = (1 - fixed.label_smoothing) * of_class + fixed.label_smoothing * log_p.mean(axis=1)
            return -(rows.weight * smooth).mean(), moving

        gradient, moving = jax.grad(loss, has_aux=True)(state.layers.value)
        step = state.step + 1
        moved = adam(state.layers, gradient, fixed.learning_rate * schedule, step)
        bound = jnp.where(fixed.levels > 0, 1.0, jnp.inf)  # only weights that are quantised stay within the levels
        layers = tuple(layer._replace(w=jnp.clip(layer.w, -bound, bound)) for layer in moved.value)
        return State(moved._replace(value=layers), moving, key, step)

    def scores(self, parameters: Parameters, fixed: Hyper, X: Array) -> Array:
        """Return the class scores of rows."""
        return logits(parameters, X, fixed, self, None)[0]


def disturbed(key: Array, X: Array, label: Array, hyper: Hyper, nominal: bool) -> tuple[Array, Array]:
    """Add noise to inputs, and mix rows and labels with those of another row, up to half of `hyper.mixup`.

    The indicators of a `nominal` feature are taken from another row with a quarter of the probability that the
    deviation of the noise is: a draw from the marginal of the feature.
    """
    gauss, swap, other, share = jax.random.split(key, 4)
    flat, number = X.reshape(len(X), -1), hyper.nominal < 0
    noisy = flat + hyper.input_noise * number * jax.random.normal(gauss, flat.shape)
    if nominal:
        drawn = jax.random.uniform(swap, flat.shape)[:, jnp.maximum(hyper.nominal, 0)]
        noisy = jnp.where((drawn < hyper.input_noise / 4) & ~number, jnp.roll(flat, 1, axis=0), noisy)
    others = jax.random.permutation(other, len(X))
    part = hyper.mixup / 2 * jax.random.uniform(share, (len(X), 1))
    mixed = (1 - part) * noisy + part * noisy[others]
    return mixed.reshape(X.shape), (1 - part) * label + part * label[others]


def shifted(key: Array, X: Array, most: int) -> Array:
    """Move each image by up to so many pixels in both directions; zeros come in."""
    padded = jnp.pad(X, ((0, 0), (most, most), (most, most), (0, 0)))
    corner = jax.random.randint(key, (len(X), 2), 0, 2 * most + 1)

    def cut(image: Array, at: Array) -> Array:
        return jax.lax.dynamic_slice(image, (at[0], at[1], 0), X.shape[1:])

    return jax.vmap(cut)(padded, corner)


@compiled(static_argnames="spec")
def initial_state(key: Array, spec: NetSteps, hyper: Hyper) -> State:
    """Draw weights uniformly as Glorot and Bengio do, for the units that exist."""
    key, draw = jax.random.split(key)
    layers, shape = [], spec.inputs
    widths = [*hyper.width, jnp.asarray(float(spec.classes))]
    entering = jnp.asarray(float(shape[-1]))
    for number, units in enumerate((*spec.hidden, spec.classes)):
        image = len(shape) == 3 and number < len(spec.hidden)
        places = 9 if image else (shape[0] * shape[1] if len(shape) == 3 else 1)
        leaving = widths[number] * (9 if image else 1)
        limit = jnp.sqrt(6 / (entering * places + leaving))
        w = limit * jax.random.uniform(jax.random.fold_in(draw, number), (places * shape[-1], units), minval=-1.0)
        layers.append(Weights(w, jnp.ones(units), jnp.zeros(units)))
        shape = (shape[0] // 2, shape[1] // 2, units) if image else (units,)
        entering = widths[number]
    moving = tuple(Moving(jnp.zeros(units), jnp.ones(units)) for units in spec.hidden)
    return State(start(tuple(layers)), moving, key, jnp.zeros((), jnp.int32))


def quantize(w: Array, levels: Array) -> Array:
    """Quantise weights (12), (13); the derivative is taken to be one everywhere. One bit is the sign, 0 being +.

    Without levels, weights are floats of any size.
    """
    m = jnp.maximum(levels, 1.0)
    stored = 2 * jnp.floor((jnp.clip(w, -1.0, 1.0) + 1) / 2 * m + 0.5) / m - 1
    return w + jax.lax.stop_gradient(jnp.where(levels > 0, stored - w, 0.0))


@jax.custom_jvp
def _sign(a: Array, uniform: Array) -> Array:
    """Draw a sign (14); `uniform` of 1/2 gives the deterministic one."""
    return jnp.where(uniform <= (1 + a) / 2, 1.0, -1.0)


@_sign.defjvp
def _sign_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    a, uniform = primals
    return _sign(a, uniform), (1 - jnp.tanh(a) ** 2) * tangents[0]


def logits(
    parameters: Parameters, x: Array, hyper: Hyper, spec: NetSteps, training: tuple[Array, Array] | None
) -> tuple[Array, tuple[Moving, ...]]:
    """Return class scores and new running means; in training with a key and the number of the step."""
    (layers, moving), values, kept = parameters, x, []
    for number, layer in enumerate(layers[:-1]):
        image = values.ndim == 4
        w = quantize(layer.w, hyper.levels)
        a = (patches(values) if image else values) @ w
        if spec.batch_norm:
            a, now = _normalized(a, layer, moving[number], None if training is None else training[1])
            kept.append(now)
        if spec.activation == "sign":
            uniform = jnp.asarray(0.5)
            if training is not None:
                uniform = jax.random.uniform(jax.random.fold_in(training[0], number), a.shape)
            a = _sign(a, uniform)
        else:
            a = jax.nn.relu(a)
        values = (pooled(a) if image else a) * (jnp.arange(a.shape[-1]) < hyper.width[number])
    last = layers[-1]
    return values.reshape(len(values), -1) @ quantize(last.w, hyper.levels) + last.beta, tuple(kept) or moving


def patches(x: Array) -> Array:
    """Return for each pixel its 3x3 neighbours, zeros outside, along the last axis."""
    rows, columns = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return jnp.concatenate([padded[:, r : r + rows, c : c + columns] for r in range(3) for c in range(3)], axis=-1)


def pooled(x: Array) -> Array:
    """Take the maximum over 2x2 pixels; a last odd row or column is left out."""
    rows, columns = x.shape[1] // 2, x.shape[2] // 2
    return x[:, : 2 * rows, : 2 * columns].reshape(len(x), rows, 2, columns, 2, -1).max(axis=(2, 4))


def _normalized(a: Array, layer: Weights, moving: Moving, step: Array | None) -> tuple[Array, Moving]:
    mean, variance = moving
    if step is not None:
        axes = tuple(range(a.ndim - 1))
        mean, variance = a.mean(axis=axes), a.var(axis=axes)
        still = jax.lax.stop_gradient((mean, variance))
        kept = jnp.minimum(MOMENTUM, step / (step + 1.0))  # the plain mean at first: short runs have means, too
        moving = Moving(*(kept * old + (1 - kept) * new for old, new in zip(moving, still, strict=True)))
    return layer.gamma * (a - mean) / jnp.sqrt(variance + VARIANCE) + layer.beta, moving
