"""Input noise against enumeration over all noisy rows, closed forms, and its own definition."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tinybayes.errors import TinybayesError
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training import candidates, input_noise, net_steps
from tinybayes.learn.training.input_noise import full, jitter, moves
from tinybayes.learn.training.nets import NetConfiguration, train_nets
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, train_tables
from tinybayes.model import Categories, Cuts, Dataset, Variable

P = 0.3


def table(rows=60, seed=0):
    """Two features with an order, one of them with unequal bins, and one without."""
    random = np.random.default_rng(seed)
    variables = (
        Variable.from_encoding("a", Cuts([0.0, 1.0, 2.0])),
        Variable.from_encoding("b", Cuts([0.0, 1.0, 10.0])),
        Variable("c", ("red", "green", "blue"), Categories()),
    )
    X = np.stack([random.integers(0, v.cardinality, rows) for v in variables], axis=1)
    y = (X[:, 0] + X[:, 1] + random.integers(0, 2, rows) > 3).astype(int)
    return Dataset(variables, Variable("y", (0, 1)), X, y)


def move_kernels(data, reach=0.0):
    """Where the codes of each feature move to: a row of probabilities for each state."""
    kernels = []
    for f, (first, start, count) in enumerate(np.stack(moves(data, reach)[:3], axis=-1).transpose(0, 2, 1)):
        states, cumulative = data.variables[f].cardinality, moves(data, reach).cumulative.astype(float)
        kernels.append(np.zeros((states, states)))
        for code in range(states):
            below = cumulative[start[code] : start[code] + count[code]]
            steps = np.diff(below, prepend=0.0, append=1.0)
            kernels[-1][code, first[code] : first[code] + len(steps)] = steps
    return kernels


def smoothed(counts, kernels):
    """The expected counts of noisy rows: each axis is smoothed by its kernel, unless that is None."""
    for axis, kernel in enumerate(kernels):
        if kernel is not None:
            counts = np.moveaxis(np.tensordot(counts, mixed(kernel), axes=(axis, 0)), -1, axis)
    return counts


def mixed(kernel, noise=P):
    return (1 - noise) * np.eye(len(kernel)) + noise * kernel


def test_codes_move_to_neighbours_and_stay_at_the_ends_half_of_the_time():
    kernel = move_kernels(table())[0]
    np.testing.assert_array_equal(kernel, [[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0.5, 0.5]])


def test_codes_without_an_order_are_drawn_from_the_marginal():
    data = table()
    share = np.bincount(data.X[:, 2], minlength=3) / len(data)
    np.testing.assert_allclose(move_kernels(data)[2], np.tile(share, (3, 1)), atol=1e-9)


def test_wide_moves_follow_the_distance_between_the_middles_of_bins():
    even, uneven, _ = move_kernels(table(), reach=1.0)
    weight = np.exp(-np.array([1.0, 4.0, 9.0]) / 2)  # bins of equal width, from the first one
    np.testing.assert_allclose(even[0, 1:], weight / weight.sum(), rtol=1e-5)
    middles = np.array([-0.5, 0.5, 5.5, 14.5])
    weight = np.exp(-(((middles - 0.5) / np.diff(middles).mean()) ** 2) / 2)
    weight[1] = 0
    np.testing.assert_allclose(uneven[1], weight / weight.sum(), rtol=1e-5)
    assert uneven[1, 0] > 1.5 * uneven[1, 2]


def test_ends_of_many_states_move_as_the_others(monkeypatch):
    """Blocks of rows, as of features of many states, give the same kernels."""
    whole = moves(table(), 0.7)
    monkeypatch.setattr(input_noise, "BLOCK", 4)
    for one, other in zip(moves(table(), 0.7), whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("reach", [0.0, 0.7, 2.5])
def test_a_search_finds_what_the_full_table_says(reach):
    random = np.random.default_rng(0)
    variables = [Variable(f"v{c}", tuple(range(c))) for c in (1, 2, 3, 17, 64)]
    variables += [Variable(f"w{c}", tuple(map(str, range(c)))) for c in (1, 2, 5, 33)]
    X = np.stack([random.integers(-1, v.cardinality, 3000) for v in variables], axis=1)
    where = moves(Dataset(tuple(variables), Variable("y", (0, 1)), X, X[:, 1].clip(0)), reach)
    found, told = (jitter(jax.random.key(0), jnp.asarray(X), jnp.asarray(0.9), w) for w in (where, full(where)))
    np.testing.assert_array_equal(found, told)
    assert (np.asarray(found) < [v.cardinality for v in variables]).all()


@pytest.mark.parametrize(("states", "reach"), [(str, 0.0), (int, 0.0), (int, 2.0)])
def test_noise_takes_little_memory_for_very_many_states(states, reach):
    """Full tables of these two features would have 50 million numbers."""
    count = 5_000
    variable = Variable("many", tuple(map(states, range(count))))
    X = np.random.default_rng(0).integers(0, count, (200, 2))
    data = Dataset((variable, replace(variable, name="more")), Variable("y", (0, 1)), X, X[:, 0] % 2)
    assert full(moves(data, reach)) is None
    assert sum(part.nbytes for part in moves(data, reach)) < 2**24
    run = TableConfiguration(candidates=candidates.fixed(naive_bayes(data)), input_noise=P, noise_reach=reach)
    (trained,) = train_tables(data, [run], TrainingOptions(epochs=1, batch_size=100))
    assert np.isfinite(trained.net.cpds[0].log_parameters).all()


def test_wide_moves_of_very_many_states_are_refused():
    variable = Variable("many", tuple(range(50_000)))
    data = Dataset((variable,), Variable("y", (0, 1)), np.array([[0], [1]]), np.array([0, 1]))
    with pytest.raises(TinybayesError, match=r"noise_reach: expected at most .* 50,000 states and moves by 1e"):
        moves(data, 1e6)


@pytest.mark.parametrize("reach", [0.0, 0.7])
def test_moves_have_the_probabilities_of_the_kernel(reach):
    data = table()
    kernels, where = move_kernels(data, reach), full(moves(data, reach))
    for f, kernel in enumerate(kernels):
        np.testing.assert_allclose(kernel.sum(axis=1), 1)
        for code in range(len(kernel)):
            X = jnp.zeros((20_000, 3), jnp.int32).at[:, f].set(code)
            moved = np.asarray(jitter(jax.random.key(f), X, jnp.asarray(P), where))[:, f]
            share = np.bincount(moved, minlength=len(kernel)) / len(moved)
            np.testing.assert_allclose(share, mixed(kernel)[code], atol=0.015)


def test_missing_values_stay_missing_and_no_noise_changes_nothing():
    data = table()
    X, where = jnp.asarray(np.where(data.X == 1, -1, data.X), jnp.int32), full(moves(data))
    noisy = np.asarray(jitter(jax.random.key(0), X, jnp.asarray(0.9), where))
    np.testing.assert_array_equal(noisy < 0, np.asarray(X) < 0)
    np.testing.assert_array_equal(jitter(jax.random.key(0), X, jnp.asarray(0.0), where), X)


def test_the_expected_generative_loss_is_that_of_smoothed_counts():
    data = table(rows=8)
    kernels, random = move_kernels(data), np.random.default_rng(1)
    log_p = np.log(random.dirichlet(np.ones(4), (4, 2)))  # log p(b | a, class)
    expected = 0.0
    for (a, b, _), c in zip(data.X, data.y, strict=True):  # all rows that noise can make of a row
        for other_a, other_b in product(range(4), range(4)):
            expected -= mixed(kernels[0])[a, other_a] * mixed(kernels[1])[b, other_b] * log_p[other_a, c, other_b]
    counts = np.zeros((4, 4, 2))
    np.add.at(counts, (data.X[:, 0], data.X[:, 1], data.y), 1)
    smooth = smoothed(counts, [kernels[0], kernels[1], None])
    assert -(smooth * np.moveaxis(log_p, 2, 1)).sum() == pytest.approx(expected)
    assert smooth.sum() == pytest.approx(len(data))


def test_training_without_a_margin_finds_the_tables_of_smoothed_counts():
    data = table(rows=200)
    structure = chow_liu(data)
    run = TableConfiguration(candidates=candidates.fixed(structure), lam=0.0, input_noise=P, learning_rate=0.03)
    (trained,) = train_tables(data, [run], TrainingOptions(epochs=1500, batch_size=100))
    kernels = move_kernels(data)
    for f, cpd in enumerate(trained.net.cpds[:-1]):
        parents = [p for p in cpd.parents if p < 3]
        axes = [*parents, f]
        counts = np.zeros([*(data.variables[a].cardinality for a in axes), 2])
        np.add.at(counts, (*(data.X[:, a] for a in axes), data.y), 1)
        smooth = np.moveaxis(smoothed(counts, [*(kernels[a] for a in axes), None]), -1, -2)
        exact = (smooth / smooth.sum(axis=-1, keepdims=True)).reshape(-1, data.variables[f].cardinality)
        learned = np.exp(cpd.format.decode(cpd.table))
        np.testing.assert_allclose(learned, exact, atol=0.06)
        plain = np.moveaxis(counts, -1, -2) + 1e-9
        plain = (plain / plain.sum(axis=-1, keepdims=True)).reshape(exact.shape)
        assert np.abs(learned - exact).mean() < 0.5 * np.abs(learned - plain).mean()


def test_noise_falls_to_its_end():
    data = table(rows=200)
    run = TableConfiguration(candidates=candidates.fixed(chow_liu(data)), input_noise=0.9, seed=3)
    options = TrainingOptions(epochs=40, batch_size=50)
    runs = [replace(run, input_noise=0.0), replace(run, noise_end=0.0), run]
    without, falling, steady = (train_tables(data, [one], options)[0].net for one in runs)

    def apart(one, other):
        return sum(np.abs(a.table - b.table).sum() for a, b in zip(one.cpds, other.cpds, strict=True))

    assert apart(falling, without) < apart(steady, without)


def test_noise_outside_of_its_bounds_is_refused():
    fixed = candidates.fixed(chow_liu(table()))
    with pytest.raises(TinybayesError, match="input_noise: expected at least 0, below 1"):
        TableConfiguration(candidates=fixed, input_noise=1.0)
    with pytest.raises(TinybayesError, match="mixup: expected 0 to 1"):
        NetConfiguration(mixup=1.5)
    with pytest.raises(TinybayesError, match="image_shift: expected convolutions, got a dense network"):
        NetConfiguration(image_shift=1)


def hyper(noise=0.0, mixup=0.0, nominal=(-1, -1, 2, 2)):
    values = (0.0, 0.1, 0.0, [4.0], noise, mixup)
    return net_steps.Hyper(*(jnp.asarray(value) for value in values), jnp.asarray(nominal))


def test_numbers_get_gaussian_noise_and_indicators_of_a_feature_change_together():
    random = np.random.default_rng(0)
    kind = random.integers(0, 2, 40_000)
    X = np.stack([np.zeros(40_000), np.ones(40_000), kind == 0, kind == 1], axis=1).astype(np.float32)
    label = np.eye(2, dtype=np.float32)[kind]
    noisy, mixed_label = net_steps.disturbed(jax.random.key(0), jnp.asarray(X), jnp.asarray(label), hyper(0.4), True)
    noisy = np.asarray(noisy)
    np.testing.assert_allclose(noisy[:, :2].mean(axis=0), [0, 1], atol=0.01)
    np.testing.assert_allclose(noisy[:, :2].std(axis=0), 0.4, atol=0.01)
    np.testing.assert_array_equal(noisy[:, 2:].sum(axis=1), 1)
    assert (noisy[:, 2] != X[:, 2]).mean() == pytest.approx(0.1 * 0.5, abs=0.005)  # half of the others are equal
    np.testing.assert_allclose(mixed_label, label)


def test_mixed_rows_lie_between_two_rows_and_so_do_their_labels():
    X = np.eye(4, dtype=np.float32)[np.arange(4000) % 4]
    mixed_rows, label = net_steps.disturbed(
        jax.random.key(1), jnp.asarray(X), jnp.asarray(X), hyper(mixup=0.6, nominal=(-1,) * 4), False
    )
    np.testing.assert_allclose(mixed_rows, label, atol=1e-6)  # rows are their labels here
    np.testing.assert_allclose(np.asarray(label).sum(axis=1), 1, atol=1e-6)
    own = np.asarray(label)[np.arange(4000), np.arange(4000) % 4]
    assert 0.7 <= own.min() < 0.72
    assert (own > 0.999).mean() == pytest.approx(0.25, abs=0.05)  # mixed with a row of the same kind


def test_images_move_by_at_most_so_many_pixels():
    X = np.zeros((500, 5, 5, 1), dtype=np.float32)
    X[:, 2, 2] = 1
    moved = np.asarray(net_steps.shifted(jax.random.key(0), jnp.asarray(X), 1))[..., 0]
    np.testing.assert_array_equal(moved.sum(axis=(1, 2)), 1)
    hit = moved.sum(axis=0)
    assert (hit[1:4, 1:4] > 20).all()
    assert hit[1:4, 1:4].sum() == 500


def test_nets_are_trained_with_noise_mixed_rows_and_shifts():
    random = np.random.default_rng(0)
    data = Dataset(
        tuple(Variable(f"p{i}", tuple(range(4))) for i in range(16)),
        Variable("y", (0, 1)),
        random.integers(0, 4, (120, 16)),
        random.integers(0, 2, 120),
    )
    plain = NetConfiguration(kind="conv", hidden=(4,), bits=8, image_shape=(4, 4))
    runs = [plain, replace(plain, input_noise=0.3), replace(plain, mixup=0.4), replace(plain, image_shift=1)]
    nets = [result.net for result in train_nets(data, runs, TrainingOptions(epochs=3, batch_size=40))]
    for net in nets[1:]:
        assert any((a.codes != b.codes).any() for a, b in zip(net.layers, nets[0].layers, strict=True))
