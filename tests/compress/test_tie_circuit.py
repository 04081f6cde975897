"""Tied circuits against enumeration, and their price; likelihoods of networks that are not normalised."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import zoo
from strategies import random_data
from tinybayes import learn_circuit
from tinybayes.compress import optimal_levels, tie
from tinybayes.cost import model_cost
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, expected_counts, log_likelihood
from tinybayes.infer.likelihood import dataset_rows
from tinybayes.model import Codebook, Dataset, Float


def by_hand(circuit, data):
    """The exact mean log-likelihood, from the values of the circuit's nodes."""
    rows = data.X if data.y is None else np.column_stack([data.X, data.y])
    none = [-1] * len(circuit.nodes)
    total = np.log(oracle.circuit_value(circuit, none)[-1])
    logs = [np.log(oracle.circuit_value(circuit, row)[-1]) for row in rows.tolist()]
    return np.average(logs, weights=data.weight) - total


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), weighted=st.booleans())
def test_learned_circuits_are_tied_to_the_best_levels(seed, k, weighted):
    data = random_data(seed, weighted=weighted)
    assume(data.weight is None or data.weight.sum() > 0)
    circuit = learn_circuit(data, edge_price=0.05).circuit
    k = min(k, len(np.unique(circuit.log_parameters)))
    result = tie(circuit, k, data=data)
    assert result.levels <= k
    levels = optimal_levels(circuit.log_parameters, k)
    nearest = levels[np.abs(circuit.log_parameters[:, None] - levels).argmin(axis=1)]
    assert result.model.log_parameters == pytest.approx(nearest, abs=1e-5)
    assert result.epsilon == pytest.approx(np.abs(circuit.log_parameters - nearest).max(), abs=1e-5)
    assert result.before == pytest.approx(by_hand(circuit, data), abs=1e-9)
    assert result.after == pytest.approx(by_hand(result.model, data), abs=1e-9)
    bits = len(result.model.table) * (result.levels - 1).bit_length() + 32 * result.levels
    assert model_cost(result.model).bits == bits


@pytest.mark.parametrize("seed", range(3))
def test_levels_are_weighted_by_the_expected_counts(seed):
    data = random_data(seed)
    circuit = learn_circuit(data, edge_price=0.05).circuit
    k = min(4, len(np.unique(circuit.log_parameters)))
    tied = tie(circuit, k, counts=data).model.log_parameters
    weights = 1 + expected_counts(circuit, dataset_rows(data.nodes, data), data.weight)

    def distance(values):
        return (weights * (values - circuit.log_parameters) ** 2).sum()

    assert distance(tied) <= distance(tie(circuit, k).model.log_parameters) + 1e-6
    levels = np.unique(tied)
    own = np.abs(circuit.log_parameters[:, None] - levels).argmin(axis=1)
    for i, level in enumerate(levels):  # each is the weighted mean of its entries
        assert level == pytest.approx(np.average(circuit.log_parameters[own == i], weights=weights[own == i]), abs=1e-5)


def test_the_number_of_levels_is_chosen_by_data_and_zeros_stay():
    circuit = compile_circuit(zoo.sprinkler())
    data = Dataset(circuit.variables, None, np.array([[0, 0, 0], [1, 1, 1], [0, 1, 1]]))
    result = tie(circuit, "auto", data=data)
    assert result.after == max(score for _, score in result.path)
    assert isinstance(result.model.format, Codebook)
    two = tie(circuit, 2)
    assert two.zeros == np.isneginf(circuit.log_parameters).sum()
    assert np.array_equal(np.isneginf(two.model.log_parameters), np.isneginf(circuit.log_parameters))
    assert (two.before, two.after, two.path) == (None, None, ())


def test_bad_requests_are_refused():
    circuit = compile_circuit(zoo.naive_bayes())
    for levels in (0, 1000):
        with pytest.raises(TinybayesError, match="levels: expected"):
            tie(circuit, levels)
    with pytest.raises(TinybayesError, match="data to choose the levels by"):
        tie(circuit, "auto")
    with pytest.raises(TinybayesError, match="the variables of the model"):
        tie(circuit, 2, data=random_data(1))


@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), missing=st.booleans())
def test_likelihoods_are_those_of_enumeration(seed, k, missing):
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, 3, target=False, formats=(Float(64),))
    k = min(k, len(np.unique(np.concatenate([cpd.log_parameters.ravel() for cpd in net.cpds]))))
    rows, _ = oracle.joint(net)
    X = rows[rng.integers(0, len(rows), 8)]
    if missing:
        X[rng.random(X.shape) < 0.3] = -1
    for one in (net, tie(net, k).model):
        _, logs = oracle.joint(one)
        expected = [oracle.log_sum(logs[oracle.agreeing(rows, row)]) - oracle.log_sum(logs) for row in X]
        data = Dataset(net.variables, None, X)
        assert log_likelihood(one, data).mean() == pytest.approx(np.mean(expected), abs=1e-6)
    if len(X) and not tie(net, k).model.is_normalized():
        with pytest.raises(TinybayesError):
            log_likelihood(tie(net, k).model, data, max_edges=1)
