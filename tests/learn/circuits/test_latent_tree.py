"""Latent trees: likelihood, expected counts and EM against the enumeration of all hidden states."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybayes.deploy import load, save
from tinybayes.errors import TinybayesError
from tinybayes.infer import (
    expected_counts,
    is_decomposable,
    is_deterministic,
    is_smooth,
    log_partition,
    most_probable,
    posteriors,
    sample,
)
from tinybayes.infer.circuit import log_joint_with_class
from tinybayes.infer.integer_circuit import integer_posterior
from tinybayes.learn.circuits import latent_rows
from tinybayes.learn.circuits.latent_circuit import class_mixture, latent_circuit, used_states
from tinybayes.learn.circuits.latent_classifier import learn_latent_classifier
from tinybayes.learn.circuits.latent_pruning import count_edges, cut, strongest
from tinybayes.learn.circuits.latent_start import Tables, draw_start, marginals, pseudocounts
from tinybayes.learn.circuits.latent_steps import Fixed, LatentSteps, Parameters, State
from tinybayes.learn.circuits.latent_structure import Tree, latent_structure, rooted_at_centre
from tinybayes.learn.circuits.latent_training import counts_and_log_likelihood, rows_of, train_latent
from tinybayes.learn.circuits.latent_tree import learn_latent_tree
from tinybayes.learn.circuits.options import LatentOptions
from tinybayes.learn.training.engine import Rows
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset, Variable

CARDS = (2, 3, 2, 4, 2)
TREE = Tree((-1, 0, 0), (0, 1, 2, 1, 0))


def variables(cards):
    return tuple(Variable(f"x{i}", tuple(range(card))) for i, card in enumerate(cards))


def rows_with_gaps(seed, count, cards=CARDS, gaps=0.3):
    generator = np.random.default_rng(seed)
    X = np.stack([generator.integers(0, card, count) for card in cards], axis=1)
    X[generator.random(X.shape) < gaps] = -1
    return X


def dependent(seed, count, features, gaps=0.0):
    """Rows of bits that two hidden bits cause."""
    generator = np.random.default_rng(seed)
    hidden = generator.integers(0, 2, (count, 2))
    X = hidden[:, np.arange(features) % 2] ^ (generator.random((count, features)) < 0.1)
    return np.where(generator.random(X.shape) < gaps, -1, X)


def model(seed, states=(3, 2, 3), cards=CARDS, tree=TREE):
    """A latent tree with random tables, and its pseudocounts."""
    data = Dataset(variables(cards), None, rows_with_gaps(seed, 50, cards))
    prior = pseudocounts(data, tree, np.array(states), 1.0)
    return data, prior, draw_start(prior, seed)


def enumerate_row(tree, tables, states, cards, row):
    """Return the probability of a row, and the expected counts of both tables, by summing over everything unknown."""
    total = 0.0
    counts = [np.zeros_like(tables.transition), np.zeros_like(tables.emission)]
    values = [[x] if x >= 0 else range(card) for x, card in zip(row, cards, strict=True)]
    for z in itertools.product(*map(range, states)):
        for x in itertools.product(*values):
            used = [(node, z[p] if p >= 0 else 0, z[node]) for node, p in enumerate(tree.parent)]
            seen = [(v, z[home], x[v]) for v, home in enumerate(tree.home)]
            p = math.prod(tables.transition[e] for e in used) * math.prod(tables.emission[e] for e in seen)
            total += p
            for e in used:
                counts[0][e] += p
            for v, state, value in seen:
                if row[v] >= 0:
                    counts[1][v, state, value] += p
    return total, [part / total for part in counts]


def on_device(tables):
    return Parameters(jnp.asarray(tables.transition, jnp.float32), jnp.asarray(tables.emission, jnp.float32))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("states", [(3, 2, 3), (1, 1, 1), (2, 4, 1)])
def test_likelihood_and_counts_are_those_of_enumeration(seed, states):
    data, _, tables = model(seed, states)
    X = data.X[:12]
    steps, weight = LatentSteps(TREE, 4), np.linspace(0.5, 2.0, 12)
    rows = Rows(jnp.asarray(X, jnp.int32), jnp.zeros(12, jnp.int32), jnp.asarray(weight, jnp.float32))
    counted = steps.expected_counts(on_device(tables), rows)
    logs = np.asarray(steps.log_likelihood(on_device(tables), rows.X))
    known = [enumerate_row(TREE, tables, states, CARDS, row) for row in X.tolist()]
    np.testing.assert_allclose(logs, np.log([p for p, _ in known]), rtol=2e-5)
    for part, name in enumerate(("transition", "emission")):
        wanted = sum(w * counts[part] for w, (_, counts) in zip(weight, known, strict=True))
        np.testing.assert_allclose(np.asarray(getattr(counted, name)), wanted, rtol=2e-4, atol=2e-5)


def test_expected_counts_are_the_derivative_in_the_logarithms():
    data, _, tables = model(5)
    steps, parameters = LatentSteps(TREE, 4), on_device(tables)
    rows = rows_of(data)
    inside = jax.tree.map(lambda p: jnp.log(jnp.maximum(p, 1e-30)), parameters)

    def total(logs):
        return (rows.weight * steps.log_likelihood(jax.tree.map(jnp.exp, logs), rows.X)).sum()

    counts, slope = steps.expected_counts(parameters, rows), jax.grad(total)(inside)
    for own, other, p in zip(counts, slope, parameters, strict=True):
        np.testing.assert_allclose(np.where(p > 0, own, 0), np.where(p > 0, other, 0), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("states", [(3, 2, 3), (1, 1, 1), (2, 4, 1)])
def test_the_circuit_answers_like_enumeration(states):
    data, _, tables = model(1, states)
    circuit = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    assert is_smooth(circuit)
    assert is_decomposable(circuit)
    assert bool(is_deterministic(circuit)) == (max(states) == 1)
    assert log_partition(circuit) == 0.0
    X = data.X[:15].astype(int)
    wanted = [enumerate_row(TREE, tables, states, CARDS, row)[0] for row in X.tolist()]
    np.testing.assert_allclose(circuit.log_likelihood(X), np.log(wanted), rtol=1e-10)
    nothing = np.full_like(X, -1)
    np.testing.assert_allclose(circuit.conditional(X, nothing), wanted, rtol=1e-10)
    posterior = posteriors(circuit, X)
    for r, row in enumerate(X.tolist()):
        for v, card in enumerate(CARDS):
            if row[v] < 0:
                with_value = [[*row[:v], x, *row[v + 1 :]] for x in range(card)]
                p = [enumerate_row(TREE, tables, states, CARDS, one)[0] / wanted[r] for one in with_value]
                np.testing.assert_allclose(posterior[r, circuit.first_state[v] :][:card], p, rtol=1e-9)


def test_expected_counts_of_the_circuit_are_those_of_the_tree():
    data, _, tables = model(2)
    circuit = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    counts = expected_counts(circuit, data.X)
    tree_counts, _ = counts_and_log_likelihood(data, TREE, tables)
    wanted = np.sort(np.concatenate([tree_counts.transition[tables.transition > 0]]))
    # The sums of the counts agree part by part; single entries by their values, whatever their order in the table.
    emitted = sum((data.X[:, v] >= 0).sum() for v in range(len(CARDS)))
    # The circuit also counts values that are missing, in expectation.
    assert counts.sum() == pytest.approx(len(data) * (len(TREE.parent) + len(CARDS)))
    assert tree_counts.emission.sum() == pytest.approx(emitted, rel=1e-4)
    for value in wanted:
        assert np.isclose(counts, value, rtol=1e-3, atol=1e-4).any()


def test_samples_have_the_probabilities_of_the_model():
    data, _, tables = model(3, (2, 2, 2))
    circuit = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    rows = sample(circuit, 40_000, 0, np.array([1, -1, -1, -1, -1]))
    assert (rows[:, 0] == 1).all()
    posterior = posteriors(circuit, np.array([[1, -1, -1, -1, -1]]))[0]
    for v, card in enumerate(CARDS):
        share = np.bincount(rows[:, v], minlength=card) / len(rows)
        np.testing.assert_allclose(share, posterior[circuit.first_state[v] :][:card], atol=0.012)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 1000))
def test_full_em_never_decreases_the_posterior(seed):
    data, prior, start = model(seed)
    steps = LatentSteps(TREE, 4, rates=(1.0, 1.0))
    fixed = Fixed(on_device(prior), jnp.asarray(float(len(data))))
    state, rows, values = State(on_device(start), on_device(start)), rows_of(data), []
    for _ in range(8):
        logs = np.asarray(steps.log_likelihood(state.parameters, rows.X), dtype=np.float64).sum()
        smoothed = zip(prior.__dict__.values(), state.parameters, strict=True)
        values.append(logs + sum((a * np.log(np.maximum(np.asarray(p), 1e-30))).sum() for a, p in smoothed))
        state = steps.step(state, fixed, rows, jnp.asarray(1.0))
    assert np.diff(values).min() > -1e-3
    assert values[-1] > values[0] + 0.1


def test_the_step_falls_evenly_in_its_logarithm():
    steps = LatentSteps(TREE, 4, rates=(0.5, 0.02))
    np.testing.assert_allclose(steps.schedule(jnp.asarray([0.0, 0.5, 1.0])), [0.5, 0.1, 0.02], rtol=1e-6)


def test_with_one_hidden_state_the_variables_are_independent_and_smoothed():
    X = rows_with_gaps(0, 200)
    weight = np.random.default_rng(1).integers(0, 4, 200).astype(float)
    data = Dataset(variables(CARDS), None, X, weight=weight)
    tree, nodes = latent_structure(data)
    prior = pseudocounts(data, tree, np.ones(len(nodes), dtype=int), 2.0)
    options = TrainingOptions(epochs=1, batch_size=200)
    (trained,) = train_latent(data, tree, [draw_start(prior, 0)], prior, options, rates=(1.0, 1.0))
    for v, card in enumerate(CARDS):
        counts = np.array([weight[X[:, v] == x].sum() for x in range(card)])
        base = (counts + 2.0 / card) / (counts.sum() + 2.0)
        np.testing.assert_allclose(
            trained.tables.emission[v, 0, :card], (counts + 2 * base) / (counts.sum() + 2), rtol=1e-5
        )


def test_pseudocounts_are_the_smoothing_in_total():
    states = np.array([3, 2, 4])
    data, prior, _ = model(2, states)
    for node, parent in enumerate(TREE.parent):
        above = states[parent] if parent >= 0 else 1
        wanted = np.zeros((4, 4))
        wanted[:above, : states[node]] = 1.0 / states[node]
        np.testing.assert_allclose(prior.transition[node], wanted)
    for v, home in enumerate(TREE.home):
        wanted = np.zeros((4, 4))
        wanted[: states[home]] = marginals(data, 1.0)[v]
        np.testing.assert_allclose(prior.emission[v], wanted)


def test_integer_weights_count_as_rows():
    X, weight = rows_with_gaps(4, 60), np.random.default_rng(2).integers(0, 3, 60)
    weighted = Dataset(variables(CARDS), None, X, weight=weight.astype(float))
    repeated = Dataset(variables(CARDS), None, np.repeat(X, weight, axis=0))
    _, _, tables = model(4)
    one, other = (counts_and_log_likelihood(data, TREE, tables) for data in (weighted, repeated))
    np.testing.assert_allclose(one[0].transition, other[0].transition, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(one[0].emission, other[0].emission, rtol=1e-4, atol=1e-4)
    assert one[1] == pytest.approx(other[1], rel=1e-5)
    np.testing.assert_allclose(marginals(weighted, 1.0), marginals(repeated, 1.0))


def test_rows_without_weight_are_as_if_absent():
    X, weight = rows_with_gaps(6, 400), np.random.default_rng(3).integers(0, 3, 400).astype(float)
    data, some = Dataset(variables(CARDS), None, X, weight=weight), weight > 0
    absent = Dataset(variables(CARDS), None, X[some], weight=weight[some])
    parts, wanted = (latent_rows.learning_rows(one, None, 0.25, 0) for one in (data, absent))
    for part, known in zip(parts, wanted, strict=True):
        np.testing.assert_array_equal(part.X, known.X)
        np.testing.assert_array_equal(part.weight, known.weight)
    assert len(parts[1]) == some.sum() // 4
    with pytest.raises(TinybayesError, match="at least one row with a weight above zero"):
        latent_rows.learning_rows(Dataset(variables(CARDS), None, X, weight=np.zeros(400)), None, 0.25, 0)


@pytest.mark.parametrize("many", [50_000, 40])
def test_equal_rows_of_large_tables_are_collapsed(monkeypatch, many):
    monkeypatch.setattr(latent_rows, "MANY", many)
    generator = np.random.default_rng(0)
    X = (generator.random((500, 4)) < [0.1, 0.2, 0.1, 0.5]).astype(int)
    data = Dataset(variables([2] * 4), None, X, weight=generator.integers(1, 3, 500).astype(float))
    rows = latent_rows.collapsed(data)
    distinct, total = len(np.unique(X, axis=0)), data.weight.sum()
    assert rows.weight.max() <= max(1, total / many) * (1 + 1e-6)
    assert len(rows) <= min(total, many + distinct)
    for row in itertools.product(range(2), repeat=4):
        same = [np.equal(part.X, row).all(axis=1) for part in (data, rows)]
        assert data.weight[same[0]].sum() == pytest.approx(rows.weight[same[1]].sum())
    repeated = Dataset(variables([2] * 4), None, np.repeat(X, data.weight.astype(int), axis=0))
    np.testing.assert_array_equal(latent_rows.collapsed(repeated).X, rows.X)
    np.testing.assert_array_equal(latent_rows.collapsed(repeated).weight, rows.weight)


def test_wide_trees_do_not_underflow():
    """A star whose leaves contradict each other, and a chain."""
    generator, n = np.random.default_rng(0), 400
    for parents in ([-1] + [0] * (n - 1), list(range(-1, n - 1))):
        tree, nodes = rooted_at_centre(parents)
        if parents[-1] != 0 and n > 60:  # the chain, shorter: its compiled program grows with its depth
            tree, nodes = rooted_at_centre(list(range(-1, 39)))
        count = len(tree.home)
        data = Dataset(variables([2] * count), None, generator.integers(0, 2, (30, count)))
        prior = pseudocounts(data, tree, np.full(len(nodes), 3), 1e-3)
        tables = draw_start(prior, 1)
        sharp = tables.emission**20
        tables = Tables(tables.transition, sharp / sharp.sum(axis=2, keepdims=True))
        circuit = latent_circuit(data.variables, None, tree, tables.transition, tables.emission)
        logs = LatentSteps(tree, 2).log_likelihood(on_device(tables), jnp.asarray(data.X, jnp.int32))
        np.testing.assert_allclose(np.asarray(logs), circuit.log_likelihood(data.X), rtol=1e-4)
        counts, _ = counts_and_log_likelihood(data, tree, tables)
        np.testing.assert_allclose(counts.transition.sum(axis=(1, 2)), len(data), rtol=1e-3)


def test_the_root_is_the_centre_and_leaves_hang_on_their_neighbours():
    tree, nodes = rooted_at_centre([-1, 0, 1, 2, 3, 4, 2])  # the path 0-1-2-3-4-5, and 6 at 2
    assert nodes[0] in (2, 3)
    assert len(tree.levels) == 3
    assert sorted(nodes) == [1, 2, 3, 4]
    assert [nodes[home] for home in tree.home] == [1, 1, 2, 3, 4, 4, 2]
    for node, parent in enumerate(tree.parent):
        assert parent < node
        assert node == 0 or abs(nodes[node] - nodes[parent]) == 1
    alone, only = rooted_at_centre([-1])
    assert (alone, only) == (Tree((-1,), (0,)), [0])


def test_two_hidden_causes_are_found():
    data = Dataset(variables([2] * 8), None, dependent(0, 3000, 8, gaps=0.1))
    test = dependent(1, 2000, 8)
    learned = learn_latent_tree(data, hidden_states=2, epochs=20)
    single = learn_latent_tree(data, hidden_states=1, epochs=5)
    # Two hidden bits and eight flips of one in ten: what the best model has.
    entropy = 2 * math.log(2) + 8 * -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    assert learned.circuit.log_likelihood(test).mean() > -entropy - 0.05
    assert single.circuit.log_likelihood(test).mean() < -8 * math.log(2) + 0.05
    assert learned.complete
    assert learned.validation_log_likelihood == max(value for _, value in learned.history)


def test_the_same_seed_gives_the_same_circuit_and_restarts_choose():
    data = Dataset(variables([2] * 6), None, dependent(0, 600, 6))
    one, again = (learn_latent_tree(data, hidden_states=2, epochs=3, seed=1) for _ in range(2))
    assert one.circuit == again.circuit
    many = learn_latent_tree(data, hidden_states=2, epochs=3, seed=1, restarts=3)
    assert many.validation_log_likelihood >= one.validation_log_likelihood - 1e-6


def test_hidden_states_may_differ_and_a_class_is_a_variable():
    X = dependent(0, 400, 5)
    target = Variable("class", ("a", "b"))
    data = Dataset(variables([2] * 5), target, X, (X.sum(axis=1) > 2).astype(int))
    learned = learn_latent_tree(data, hidden_states=[1, 2, 3, 4, 3, 2], epochs=2)
    assert learned.hidden_states == tuple([1, 2, 3, 4, 3, 2][v] for v in learned.variables)
    assert learned.circuit.target == target
    assert learned.circuit.log_likelihood(np.full((1, 6), -1))[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_states": 0}, "hidden_states"),
        ({"hidden_states": [2, 2]}, "5 of them, one for each variable"),
        ({"hidden_states": [2, 2, 0, 2, 2]}, "hidden_states: expected a number of states"),
        ({"hidden_states": 2.0}, "hidden_states: expected a number of states"),
        ({"hidden_states": [2, 2, 2, 2, "2"]}, "hidden_states: expected a number of states"),
        ({"hidden_states": np.int64(2000)}, "hidden_states: expected 1 to 1024, got 2000"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"restarts": 0}, "restarts"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_bad_options_are_refused(options, message):
    data = Dataset(variables([2] * 5), None, dependent(0, 20, 5))
    with pytest.raises(TinybayesError, match=message):
        learn_latent_tree(data, **options)


def test_rows_of_other_variables_are_refused_for_validation():
    data, other = (Dataset(variables([2] * n), None, dependent(0, 20, n)) for n in (5, 4))
    with pytest.raises(TinybayesError, match="the variables of the training rows"):
        learn_latent_tree(data, validation=other)
    with pytest.raises(TinybayesError, match="at least one row"):
        learn_latent_tree(data.rows(slice(0, 0)))


def test_cut_transitions_have_no_edges_and_states_without_any_vanish():
    data, _, tables = model(7, (3, 3, 3))
    whole = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    cut = tables.transition.copy()
    cut[1, :, 2] = 0.0
    cut /= np.maximum(cut.sum(axis=2, keepdims=True), 1e-300)
    circuit = latent_circuit(data.variables, None, TREE, cut, tables.emission)
    assert used_states(TREE, cut).sum(axis=1).tolist() == [3, 2, 3]
    # Three transitions, and the emissions of the variables 1 and 3 in one state, with their product.
    assert whole.n_edges - circuit.n_edges == 3 * 3 + 3 * (3 + 4) + 2
    row = data.X[3].tolist()
    p = enumerate_row(TREE, Tables(cut, tables.emission), (3, 3, 3), CARDS, row)[0]
    assert circuit.log_likelihood(np.array([row]))[0] == pytest.approx(math.log(p))


def test_the_most_probable_completion_is_exact_or_named_approximate():
    states = (3, 2, 3)
    data, _, tables = model(1, states)
    circuit = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    X = data.X[:10].astype(int)
    with pytest.raises(TinybayesError, match=r"a deterministic circuit.*approximate=True"):
        most_probable(circuit, X)
    rows, logs = circuit.most_probable(X, approximate=True)
    assert ((rows == X) | (X < 0)).all()
    assert (rows >= 0).all()
    every = [
        np.array(list(itertools.product(*([x] if x >= 0 else range(c) for x, c in zip(row, CARDS, strict=True)))))
        for row in X.tolist()
    ]
    for row, log, completions in zip(rows, logs, every, strict=True):
        p = enumerate_row(TREE, tables, states, CARDS, row.tolist())[0]
        assert log == pytest.approx(math.log(p), rel=1e-9)
        assert log <= circuit.log_likelihood(completions).max() + 1e-9
    # The values and hidden states that the rows come from are the most probable ones together.
    joint = {}
    for z in itertools.product(*map(range, states)):
        for x in map(tuple, every[0]):
            used = [(node, z[p] if p >= 0 else 0, z[node]) for node, p in enumerate(TREE.parent)]
            seen = [(v, z[home], x[v]) for v, home in enumerate(TREE.home)]
            joint[z, x] = math.prod(tables.transition[e] for e in used) * math.prod(tables.emission[e] for e in seen)
    assert max(joint, key=joint.get)[1] == tuple(rows[0].tolist())


def test_a_mixture_of_classes_is_its_parts():
    target = Variable("class", ("a", "b", "c"))
    parts = []
    for seed in range(3):
        data, _, tables = model(seed, (2, 3, 2))
        parts.append(latent_circuit(data.variables, None, TREE, tables.transition, tables.emission))
    prior = np.array([0.5, 0.2, 0.3])
    circuit = class_mixture(parts, target, prior)
    assert is_smooth(circuit)
    assert is_decomposable(circuit)
    X = data.X.astype(int)
    joint = np.stack([np.log(p) + part.log_likelihood(X) for p, part in zip(prior, parts, strict=True)], axis=1)
    np.testing.assert_allclose(log_joint_with_class(circuit, X), joint, rtol=1e-9)
    np.testing.assert_allclose(circuit.log_likelihood(X), np.logaddexp.reduce(joint, axis=1), rtol=1e-9)
    assert circuit.n_edges == sum(part.n_edges for part in parts) + 4 * 3


@pytest.mark.parametrize("own", [True, False])
def test_classes_have_their_own_trees_if_that_is_better(own):
    """Either the class decides which features are equal, or it is a noisy copy of one."""
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 1500)
    X = generator.integers(0, 2, (1500, 6))
    if own:
        X[:, 1], X[:, 3], X[:, 5] = X[:, 0] ^ y, X[:, 2] ^ y, X[:, 4] ^ y
    else:
        X[:, 0] = y ^ (generator.random(1500) < 0.1)
    data = Dataset(variables([2] * 6), Variable("class", (0, 1)), X, y)
    learned = learn_latent_classifier(data, LatentOptions(hidden_states=2, epochs=10))
    assert learned.class_trees == (learned.conditional[1] > learned.conditional[0])
    labels = log_joint_with_class(learned.circuit, X).argmax(axis=1)
    assert (labels == y).mean() > (0.99 if own else 0.88)
    assert learned.class_trees or not own


def test_a_classifier_keeps_its_edges_and_refuses_rows_without_a_class():
    X = dependent(0, 300, 5)
    data = Dataset(variables([2] * 5), Variable("class", (0, 1)), X[:, :5], X[:, 0])
    learned = learn_latent_classifier(data, LatentOptions(hidden_states=4, epochs=2, max_edges=260))
    assert learned.circuit.n_edges <= 260
    with pytest.raises(TinybayesError, match="rows with a class"):
        learn_latent_classifier(Dataset(data.variables, None, X))


@pytest.mark.parametrize("name", ["m.tb", "m.ac"])
def test_files_hold_the_circuit(tmp_path, name):
    data, _, tables = model(6)
    circuit = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    save(circuit, tmp_path / name)
    loaded = load(tmp_path / name)
    np.testing.assert_allclose(loaded.log_likelihood(data.X), circuit.log_likelihood(data.X), rtol=1e-6)
    assert not is_deterministic(loaded)


def test_integers_of_devices_have_the_posteriors_of_hidden_variables():
    data, _, tables = model(6)
    circuit = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    X = data.X[:20].astype(np.int32)
    X[:, 3] = -1
    shares, states = integer_posterior(circuit, X, 3)
    exact = posteriors(circuit, X)[:, circuit.first_state[3] : circuit.first_state[4]]
    np.testing.assert_allclose(shares / 2.0**16, exact, atol=2.0**-15)
    sure = np.sort(exact, axis=1)[:, -1] - np.sort(exact, axis=1)[:, -2] > 1e-6
    np.testing.assert_array_equal(states[sure], exact.argmax(axis=1)[sure])


def test_edges_are_counted_without_building_the_circuit():
    data, _, tables = model(7, (3, 2, 4))
    flow, _ = counts_and_log_likelihood(data, TREE, tables)
    whole = latent_circuit(data.variables, None, TREE, tables.transition, tables.emission)
    assert count_edges(TREE, tables.transition > 0, CARDS) == whole.n_edges
    for limit in range(70, whole.n_edges + 10, 23):
        allowed = strongest(TREE, flow.transition, CARDS, limit)
        kept = cut(tables, allowed)
        circuit = latent_circuit(data.variables, None, TREE, kept.transition, kept.emission)
        assert circuit.n_edges == count_edges(TREE, allowed, CARDS) <= limit
        assert log_partition(circuit) == pytest.approx(0, abs=1e-9)
    with pytest.raises(TinybayesError, match="max_edges"):
        strongest(TREE, flow.transition, CARDS, 10)


def test_pruned_trees_keep_the_edges_and_more_than_independent_variables():
    data = Dataset(variables([2] * 8), None, dependent(0, 2000, 8))
    whole = learn_latent_tree(data, hidden_states=6, epochs=8)
    pruned = learn_latent_tree(data, hidden_states=6, epochs=8, max_edges=whole.circuit.n_edges // 3)
    assert pruned.circuit.n_edges <= whole.circuit.n_edges // 3
    assert -8 * math.log(2) + 0.5 < pruned.log_likelihood <= whole.log_likelihood
    assert max(pruned.hidden_states) <= 6


def test_a_limit_of_time_returns_what_was_learned_so_far():
    data = Dataset(variables([2] * 6), None, dependent(0, 600, 6))
    seen = []
    learned = learn_latent_tree(data, hidden_states=2, epochs=50, seconds=1e-9, report=seen.append)
    assert not learned.complete
    assert len(learned.history) < 50
    assert seen[0].total == 50
    assert log_partition(learned.circuit) == pytest.approx(0, abs=1e-9)
