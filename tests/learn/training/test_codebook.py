"""Training codebooks: what is read are the scores of the network, ties and levels are kept where they must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import zoo
from strategies import random_data
from tinybayes.compress import tie
from tinybayes.errors import TinybayesError
from tinybayes.infer import evaluate
from tinybayes.learn import learn_classifier
from tinybayes.learn.training import engine
from tinybayes.learn.training.codebook import _layout, _lines, learn_codebook
from tinybayes.learn.training.options import CodebookOptions
from tinybayes.model import Codebook, Dataset, Fixed, Float, Variable


def flat(net):
    return np.concatenate([cpd.log_parameters.ravel() for cpd in net.cpds])


@given(seed=st.integers(0, 10**6))
def test_the_layout_gives_the_scores_of_the_network(seed):
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, 3, formats=(Float(64),))
    X = np.stack([rng.integers(0, v.cardinality, 7) for v in net.variables], axis=1)
    scores = flat(net)[_layout(net)][_lines(net, X)].sum(axis=1)
    assert scores == pytest.approx(oracle.class_scores(net, X), abs=1e-9)


def test_missing_values_and_classes_are_left_out():
    net = zoo.tan()
    data = Dataset(net.variables, net.target, np.array([[-1, 1], [0, -1], [1, 2]]), np.array([0, 1, -1]))
    rows = engine.to_rows(data, lambda X: _lines(net, X))
    assert (np.asarray(rows.X) >= 2**30).tolist() == [[True, True, False], [False, True, False]]
    assert np.asarray(rows.y).tolist() == [0, 1]
    assert np.asarray(rows.weight).tolist() == [1, 1]


def noisy_rows(rows=400):
    """Four features that tell the class a little, each in its own way."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, rows)
    X = np.stack([np.where(rng.random(rows) < 0.4 + 0.1 * i, (y + i) % 4, rng.integers(0, 4, rows)) for i in range(4)])
    variables = tuple(Variable(f"x{i}", (0, 1, 2, 3)) for i in range(4))
    return Dataset(variables, Variable("y", (0, 1, 2)), X.T, y)


def test_no_epochs_change_nothing_and_training_lowers_the_error():
    data = noisy_rows()
    net = learn_classifier(data)
    tied = tie(net, 2).model
    book = tied.cpds[0].format
    same = learn_codebook(net, book, data, CodebookOptions(epochs=0))
    assert same == tied
    first = evaluate(tied, data).error
    errors = {}
    for name, how in {"levels": {"reassign": False}, "entries": {"move_levels": False}, "both": {}}.items():
        trained = learn_codebook(net, book, data, CodebookOptions(epochs=60, learning_rate=0.03, **how))
        form = trained.cpds[0].format
        assert isinstance(form, Codebook)
        assert len({cpd.format for cpd in trained.cpds}) == 1
        assert len(form.values) <= 2
        errors[name] = evaluate(trained, data).error
        if name == "levels":  # who had the same level still has
            assert all(np.array_equal(a.table, b.table) for a, b in zip(trained.cpds, tied.cpds, strict=True))
            assert form.values != book.values
        if name == "entries":
            assert form.values == pytest.approx(book.values, abs=1e-6)
        assert trained == learn_codebook(net, book, data, CodebookOptions(epochs=60, learning_rate=0.03, **how))
    assert errors["both"] < first
    assert max(errors.values()) <= first + 0.02


def test_fixed_point_is_a_codebook_that_does_not_move():
    data = noisy_rows()
    net = learn_classifier(data)
    form = Fixed(1, 1)
    book = Codebook(tuple(np.unique(form.decode(np.arange(4))).tolist()))
    trained = learn_codebook(net, book, data, CodebookOptions(move_levels=False, epochs=20))
    assert trained.cpds[0].format.values == pytest.approx([-1.5, -1.0, -0.5, 0.0])
    for cpd in trained.cpds:
        assert np.array_equal(form.decode(form.encode(cpd.log_parameters)), cpd.log_parameters)


def test_bad_requests_are_refused():
    data = noisy_rows(50)
    net = learn_classifier(data)
    book = tie(net, 4).model.cpds[0].format
    with pytest.raises(TinybayesError, match="codebook: expected finite levels, got minus infinity; smooth"):
        learn_codebook(net, Codebook((-np.inf, -1.0)), data)
    with pytest.raises(TinybayesError, match="the variables of the classifier"):
        learn_codebook(net, book, random_data(1))
    with pytest.raises(TinybayesError, match="a classifier, and rows with a class"):
        learn_codebook(zoo.sprinkler(), book, data)
    with pytest.raises(TinybayesError, match="batch_size: expected at least 1"):
        learn_codebook(net, book, data, CodebookOptions(batch_size=0))
    tree = zoo.tree_tan()
    row = Dataset(tree.variables, tree.target, np.array([[0, 0]]), np.array([0]))
    with pytest.raises(TinybayesError, match="tables without decision trees"):
        learn_codebook(tree, book, row)
