import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import zoo
from tinybayes import TinybayesError
from tinybayes.infer import compile_circuit, log_evidence, log_likelihood
from tinybayes.model import CPD, BayesNet, Codebook, Dataset, Fixed, Float, LogLinear, Variable

FORMATS = (Float(64), Float(), Fixed(3, 2), Codebook((-math.inf, -2.0, -1.0, -0.5, 0.0)))


@given(st.integers(0, 10**6), st.booleans())
def test_log_likelihood_is_exact_for_all_models_with_and_without_unknown_values(seed, target):
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, int(rng.integers(1, 6)), target=target, trees=True, formats=FORMATS)
    rows = np.column_stack([rng.integers(0, node.cardinality, 20) for node in net.nodes])
    everything, logs = oracle.joint(net)
    constant = 0.0 if net.is_normalized() else oracle.log_sum(logs)
    for X in (rows, np.where(rng.random(rows.shape) < 0.3, -1, rows)):
        wanted = [oracle.log_sum(logs[oracle.agreeing(everything, row)]) - constant for row in X]
        for model in (net, compile_circuit(net), LogLinear.from_bayes_net(net)):
            np.testing.assert_allclose(log_likelihood(model, X), wanted, rtol=1e-5, atol=1e-6)


def test_data_sets_have_their_rows():
    net = zoo.tan()
    X = np.column_stack([np.random.default_rng(5).integers(0, node.cardinality, 9) for node in net.nodes])
    data = Dataset(net.variables, net.target, X[:, :-1], X[:, -1])
    np.testing.assert_array_equal(log_likelihood(net, data), log_likelihood(net, X))
    X[:, -1] = -1
    unlabelled = Dataset(net.variables, net.target, X[:, :-1])
    np.testing.assert_array_equal(log_likelihood(net, unlabelled), log_likelihood(net, X))
    with pytest.raises(TinybayesError, match="the variables of the model"):
        log_likelihood(zoo.sprinkler(), data)


def test_log_likelihood_is_that_of_the_circuit():
    net = zoo.random_net(np.random.default_rng(4), 6, trees=True, formats=(Float(64),))
    rows = np.column_stack([np.random.default_rng(5).integers(0, node.cardinality, 50) for node in net.nodes])
    np.testing.assert_allclose(log_likelihood(net, rows), log_evidence(compile_circuit(net), rows), rtol=1e-12)
    assert log_likelihood(net, rows[:0]).shape == (0,)


@pytest.mark.parametrize("rows", [[[0, 0]], [[0, 0, -2]], [[0, 0, 2]], [[0.0, 0.0, 0.0]]])
def test_rows_that_do_not_fit_are_refused(rows):
    with pytest.raises(TinybayesError, match="codes"):
        log_likelihood(zoo.sprinkler(), np.array(rows))


def test_what_cannot_be_has_no_probability():
    assert log_likelihood(zoo.sprinkler(), np.array([[0, 0, 1]])).tolist() == [-math.inf]


def test_parameters_whose_exponentials_overflow():
    """The likelihood of a network that is not normalised, without a warning of NumPy's."""
    net = BayesNet((), Variable("y", (0, 1)), (CPD((), np.array([[900.0, 901.0]]), Float(64)),))
    assert not net.is_normalized()
    assert log_likelihood(net, np.array([[0]]))[0] == pytest.approx(-math.log1p(math.e))
