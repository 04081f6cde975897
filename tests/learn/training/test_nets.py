"""Training quantised networks: the arrays against NumPy and optax, the integers against the arrays."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import exhaustive
from tinybayes import Dataset, TinybayesError, Variable, predict_codes
from tinybayes.learn.training import net_steps as steps
from tinybayes.learn.training.engine import Rows
from tinybayes.learn.training.net_inputs import columns
from tinybayes.learn.training.net_integers import trained_layers
from tinybayes.learn.training.nets import NetConfiguration, train_nets
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Cuts

QUIET = jnp.asarray(0.0), jnp.asarray(0.0), jnp.asarray([-1])  # no noise, no mixed rows
GENERATOR = np.random.default_rng(0)


def blobs(rows=400, features=6, classes=3, states=9, seed=0):
    """Numbers in bins, whose centres differ from class to class."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, rows)
    centres = generator.uniform(1, states - 2, (classes, features))
    X = np.clip(np.rint(centres[y] + generator.normal(0, 1.0, (rows, features))), 0, states - 1).astype(np.int8)
    variables = tuple(Variable.from_encoding(f"x{i}", Cuts(range(1, states))) for i in range(features))
    return Dataset(variables, Variable("class", tuple(range(classes))), X, y)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_quantiser_is_equation_12(bits, seed):
    w = np.random.default_rng(seed).uniform(-1.5, 1.5, 50).astype(np.float32)
    m = 2**bits - 1
    levels = 2 * np.arange(m + 1) / m - 1
    nearest = levels[np.abs(np.clip(w, -1, 1)[:, None] - levels).argmin(axis=1)]
    found = np.asarray(steps.quantize(jnp.asarray(w), jnp.asarray(float(m))))
    np.testing.assert_allclose(found, nearest, atol=1e-5)
    slope = jax.grad(lambda v: steps.quantize(v, jnp.asarray(float(m))).sum())(jnp.asarray(w))
    assert (np.asarray(slope) == 1).all()  # straight through, also where clipped


def test_one_bit_is_the_sign_and_zero_is_positive():
    found = steps.quantize(jnp.asarray([-0.2, 0.0, 0.2]), jnp.asarray(1.0))
    assert np.asarray(found).tolist() == [-1.0, 1.0, 1.0]


def test_weights_that_are_floats_may_be_of_any_size():
    """A network without hidden layers is logistic regression; here its weights are far from [-1, 1]."""
    linear = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(0)
    X = generator.integers(0, 16, (3000, 3))
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    drawn = z @ generator.normal(0, 5, (3, 6)) + generator.gumbel(size=(3000, 6))
    classes = Variable("class", tuple(range(6)))
    data = Dataset(tuple(Variable(f"x{i}", tuple(range(16))) for i in range(3)), classes, X, drawn.argmax(axis=1))
    run = NetConfiguration(hidden=(), bits=None, batch_norm=False, learning_rate=0.3)
    trained = train_nets(data, [run], TrainingOptions(epochs=40, batch_size=100), test=data)[0]
    other = linear.LogisticRegression(C=1e6, max_iter=3000).fit(z, data.y)
    assert np.abs(other.coef_).max() > 5
    assert trained.test_error == pytest.approx(1 - other.score(z, data.y), abs=0.006)


def test_stochastic_sign_has_its_probability_and_the_slope_of_tanh():
    a = jnp.full(20_000, 0.3)
    uniform = jax.random.uniform(jax.random.key(0), a.shape)
    assert abs(float((steps._sign(a, uniform) > 0).mean()) - 0.65) < 0.01
    slope = jax.grad(lambda v: steps._sign(v, jnp.asarray(0.5)))(0.3)
    assert slope == pytest.approx(1 - np.tanh(0.3) ** 2)


def reference_logits(layers, moving, x, activation, batch_norm):
    """The same network in NumPy, one loop a pixel."""
    values = x
    for number, (w, gamma, beta) in enumerate(layers[:-1]):
        if values.ndim == 4:
            rows, cols = values.shape[1:3]
            around = np.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))
            kernel = w.reshape(3, 3, values.shape[3], -1)
            a = np.zeros((*values.shape[:3], kernel.shape[3]))
            for r in range(rows):
                for c in range(cols):
                    a[:, r, c] = np.einsum("nijk,ijku->nu", around[:, r : r + 3, c : c + 3], kernel)
        else:
            a = values @ w
        if batch_norm:
            a = gamma * (a - moving[number].mean) / np.sqrt(moving[number].variance + 1e-3) + beta
        a = np.maximum(a, 0) if activation == "relu" else np.where(a >= 0, 1.0, -1.0)
        if a.ndim == 4:
            half = a.shape[1] // 2, a.shape[2] // 2
            a = np.stack(
                [
                    [a[:, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2].max(axis=(1, 2)) for c in range(half[1])]
                    for r in range(half[0])
                ]
            ).transpose(2, 0, 1, 3)
        values = a
    return values.reshape(len(values), -1) @ layers[-1].w + layers[-1].beta


@pytest.mark.parametrize("inputs", [(5,), (7, 5, 1)])
@pytest.mark.parametrize("activation", ["relu", "sign"])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_forward_pass_is_numpys(inputs, activation, batch_norm):
    spec = steps.NetSteps(inputs, (4, 6) if len(inputs) == 1 else (3, 2), 3, activation, batch_norm)
    hyper = steps.Hyper(
        jnp.asarray(0.0), jnp.asarray(0.1), jnp.asarray(0.0), jnp.asarray([float(u) for u in spec.hidden]), *QUIET
    )
    state = steps.initial_state(jax.random.key(1), spec, hyper)
    moving = tuple(
        steps.Moving(jnp.asarray(GENERATOR.normal(size=u)), jnp.asarray(GENERATOR.uniform(0.5, 2, u)))
        for u in spec.hidden
    )
    x = GENERATOR.normal(size=(8, *inputs))
    found = jax.jit(spec.scores)((state.layers.value, moving), hyper, jnp.asarray(x))
    exact = jax.tree.map(lambda part: np.asarray(part, dtype=float), state.layers.value)
    np.testing.assert_allclose(found, reference_logits(exact, moving, x, activation, batch_norm), atol=1e-4)


def test_steps_are_those_of_optax():
    spec = steps.NetSteps((4,), (5,), 3, "relu", True)
    hyper = steps.Hyper(jnp.asarray(0.0), jnp.asarray(0.1), jnp.asarray(0.1), jnp.asarray([5.0]), *QUIET)
    state = steps.initial_state(jax.random.key(0), spec, hyper)
    rows = Rows(
        jnp.asarray(GENERATOR.normal(size=(10, 4)), dtype=jnp.float32),
        jnp.asarray(GENERATOR.integers(0, 3, 10)),
        jnp.asarray(GENERATOR.uniform(0.5, 2, 10), dtype=jnp.float32),
    )

    def loss(layers, moving, step):
        scores, new = steps.logits((layers, moving), rows.X, hyper, spec, (jax.random.key(9), step))
        target = 0.9 * jax.nn.one_hot(rows.y, 3) + 0.1 / 3
        return (rows.weight * optax.softmax_cross_entropy(scores, target)).mean(), new

    adam = optax.adam(0.05, b1=0.9, b2=0.999, eps=1e-7, eps_root=0.0)
    (layers, moving), memory = state.parameters, adam.init(state.layers.value)
    slope_of, take_step = jax.jit(jax.grad(loss, has_aux=True)), jax.jit(spec.step)
    for step in range(5):
        slope, moving = slope_of(layers, moving, jnp.asarray(step))
        change, memory = adam.update(slope, memory)
        layers = optax.apply_updates(layers, change)
        state = take_step(state, hyper, rows, jnp.asarray(0.5))
    for ours, theirs in zip(jax.tree.leaves(state.layers.value), jax.tree.leaves(layers), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)  # the place of epsilon differs, as in the reference


def test_units_beyond_the_width_neither_count_nor_learn():
    spec = steps.NetSteps((4,), (8, 8), 3, "sign", True)
    hyper = steps.Hyper(jnp.asarray(3.0), jnp.asarray(0.1), jnp.asarray(0.0), jnp.asarray([5.0, 2.0]), *QUIET)
    state = steps.initial_state(jax.random.key(0), spec, hyper)
    rows = Rows(jnp.asarray(GENERATOR.normal(size=(10, 4))), jnp.zeros(10, int), jnp.ones(10))
    after = jax.jit(spec.step)(state, hyper, rows, jnp.asarray(0.5))
    for number, width in enumerate((5, 2)):
        before, now = state.layers.value[number + 1].w, after.layers.value[number + 1].w
        assert (before[width:] == now[width:]).all()
        assert (before[:width] != now[:width]).any()
    first, second, last = state.layers.value
    far = second._replace(w=second.w.at[:, 2:].set(99.0))
    scores_of = jax.jit(spec.scores)
    scores = scores_of(state.parameters, hyper, rows.X)
    others = scores_of(((first, far, last), state.moving), hyper, rows.X)
    assert (scores == others).all()


@pytest.mark.parametrize(
    "run",
    [
        NetConfiguration(hidden=(12, 7), bits=8, inputs="shared"),
        NetConfiguration(kind="conv", hidden=(3, 5), bits=4),
        *exhaustive(
            NetConfiguration(hidden=(12,), bits=2),
            NetConfiguration(hidden=(20,), bits=1, activation="sign"),
            NetConfiguration(hidden=(), bits=5),
            NetConfiguration(hidden=(9,), bits=3, inputs="one-hot", batch_norm=False),
            NetConfiguration(kind="conv", hidden=(6,), bits=3, activation="sign"),
        ),
    ],
    ids=str,
)
def test_whole_numbers_predict_what_was_trained(run):
    data = blobs(features=36 if run.kind == "conv" else 6)
    train, held_out = data.rows(slice(0, 300)), data.rows(slice(300, None))
    run = replace(run, learning_rate=0.02)
    found = train_nets(train, [run, run], TrainingOptions(epochs=25, batch_size=25), validation=held_out)[1]
    trained_error = found.history[-1][1]
    assert abs(found.validation_error - trained_error) <= 0.05  # activations are rounded to 8 bits
    assert found.validation_error < 0.35
    assert (predict_codes(found.net, held_out.X) != held_out.y).mean() == pytest.approx(found.validation_error)


def test_a_configuration_does_not_depend_on_its_company():
    data = blobs()
    run = NetConfiguration(hidden=(10,), bits=3, seed=4)
    alone = train_nets(data, [run], TrainingOptions(epochs=3))[0].net
    other = NetConfiguration(hidden=(12,), bits=8, learning_rate=0.1)
    together = train_nets(data, [other, run], TrainingOptions(epochs=3))[1].net
    for a, b in zip(alone.layers, together.layers, strict=True):
        assert (a.codes == b.codes).mean() > 0.99  # sums of floats may differ in their last bit


def test_batch_normalisation_is_folded():
    spec = steps.NetSteps((3,), (2,), 2, "relu", True)
    layer = steps.Weights(np.ones((3, 2)), np.array([2.0, -1.0]), np.array([0.5, 0.25]))
    last = steps.Weights(np.ones((2, 2)), np.ones(2), np.array([3.0, 4.0]))
    moving = [steps.Moving(np.array([1.0, -1.0]), np.array([4.0, 9.0]))]
    first, second = trained_layers(spec, (2,), [layer, last], moving)
    total = GENERATOR.normal(size=(50, 2))
    wanted = layer.gamma * (total - moving[0].mean) / np.sqrt(moving[0].variance + 1e-3) + layer.beta
    np.testing.assert_allclose(first.factor * (total + first.shift), wanted)
    assert second.shift.tolist() == [3.0, 4.0]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["standard", "shared", "one-hot"]))
def test_inputs_are_whole_numbers_times_a_unit(seed, kind):
    generator = np.random.default_rng(seed)
    states = generator.integers(1, 40, 5)
    X = np.stack([generator.integers(-1, k, 60) for k in states], axis=1)
    variables = tuple(Variable.from_encoding(f"x{i}", Cuts(range(1, k))) for i, k in enumerate(states))
    found = columns(Dataset(variables, None, X), kind, centred=True)
    values = found.values(X)
    whole = values / found.unit
    assert np.abs(whole - np.rint(whole)).max() < 1e-2
    missing = (X < 0)[:, found.inputs.feature]
    assert (values[missing] == 0).all()
    if kind == "standard":
        for column in range(5):
            seen = values[X[:, column] >= 0, column]
            if len(seen) > 20 and X[:, column].max() > 1:
                assert abs(seen.mean()) < 0.2
                assert 0.6 < seen.std() < 1.5


def test_bad_configurations_are_refused():
    data = blobs(rows=40)
    for wrong, message in (
        ({"kind": "deep"}, "kind: expected one of dense, conv, got 'deep'"),
        ({"activation": "tanh"}, "activation: expected one of relu, sign"),
        ({"bits": 9}, "bits: expected 1 to 8, got 9"),
        ({"hidden": (4, 0)}, "hidden: expected at least 1, got 0"),
        ({"kind": "conv", "hidden": (2, 2, 2)}, "hidden: expected one or two convolutions"),
        ({"learning_rate": 0.0}, "learning_rate: expected above 0, got 0"),
        ({"label_smoothing": 1.0}, "label_smoothing: expected at least 0, below 1, got 1"),
        ({"inputs": "raw"}, "inputs: expected one of standard, shared, one-hot, got 'raw'"),
    ):
        with pytest.raises(TinybayesError, match=message):
            NetConfiguration(**wrong)
    with pytest.raises(TinybayesError, match="at least one configuration"):
        train_nets(data, [])
    with pytest.raises(TinybayesError, match="square"):
        train_nets(data, [NetConfiguration(kind="conv", hidden=(2,))], TrainingOptions(epochs=1))
    too_deep = [NetConfiguration(kind="conv", hidden=(2, 2))]
    with pytest.raises(TinybayesError, match="at least 4x4 pixels for 2 convolutions, got 3x3; use fewer convolutions"):
        train_nets(blobs(rows=40, features=9), too_deep, TrainingOptions(epochs=1))
