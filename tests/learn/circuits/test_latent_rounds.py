"""Latent trees under a price of edges, and what an interrupt leaves of them."""

import os
import signal

import numpy as np
import pytest

from tinybayes.errors import TinybayesError
from tinybayes.infer import log_partition
from tinybayes.learn.circuits.latent_pruning import count_edges, fewest_edges, strongest
from tinybayes.learn.circuits.latent_start import Tables
from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.circuits.latent_tree import learn_latent_tree
from tinybayes.model import Dataset, Variable


def dependent(seed, count, features):
    """Rows of bits that two hidden bits cause."""
    generator = np.random.default_rng(seed)
    hidden = generator.integers(0, 2, (count, 2))
    X = hidden[:, np.arange(features) % 2] ^ (generator.random((count, features)) < 0.1)
    return Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(features)), None, X.astype(np.int8))


def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("validation_fraction", [0.0, 0.2])
def test_edges_are_cut_as_long_as_the_score_rises(validation_fraction):
    data = dependent(0, 1500, 8)
    options = {"hidden_states": 5, "epochs": 8, "validation_fraction": validation_fraction}
    prices = (0.0, 0.2, 50.0)
    free, cheap, dear = (learn_latent_tree(data, edge_price=price, **options) for price in prices)
    assert free.circuit.n_edges > cheap.circuit.n_edges > dear.circuit.n_edges
    assert free.circuit == learn_latent_tree(data, **options).circuit
    rows = 1500 * (1 - validation_fraction)
    for price, learned in zip(prices[1:], (cheap, dear), strict=True):

        def score(one, price=price):
            held_out = one.validation_log_likelihood if validation_fraction else one.log_likelihood
            return rows * held_out - price * one.circuit.n_edges

        assert score(learned) > score(free)
    assert max(dear.hidden_states) < 5
    assert log_partition(dear.circuit) == pytest.approx(0, abs=1e-9)


def test_a_price_and_a_limit_hold_together():
    data = dependent(0, 800, 6)
    both = learn_latent_tree(data, hidden_states=4, epochs=4, edge_price=0.01, max_edges=150)
    assert both.circuit.n_edges <= 150


def test_a_price_beyond_measure_leaves_one_transition_of_every_state():
    data = dependent(1, 800, 6)
    learned = learn_latent_tree(data, hidden_states=3, epochs=24, edge_price=1e6)
    # One hidden state everywhere: independent variables.
    assert set(learned.hidden_states) == {1}
    parts = [np.log(np.bincount(data.X[:, v], minlength=2)[data.X[:, v]] / 800) for v in range(6)]
    independent = sum(parts).mean()
    assert learned.circuit.log_likelihood(data.X).mean() == pytest.approx(independent, abs=0.02)


def test_after_an_interrupt_nothing_more_is_pruned_but_for_a_limit():
    data = dependent(0, 800, 6)
    options = {"hidden_states": 4, "epochs": 30, "report": interrupt}
    whole = learn_latent_tree(data, **options)
    priced = learn_latent_tree(data, edge_price=5.0, **options)
    assert not whole.complete
    assert not priced.complete
    assert priced.circuit.n_edges == whole.circuit.n_edges
    limited = learn_latent_tree(data, max_edges=whole.circuit.n_edges // 2, **options)
    assert not limited.complete
    assert limited.circuit.n_edges <= whole.circuit.n_edges // 2
    assert np.isfinite(limited.validation_log_likelihood)
    assert log_partition(limited.circuit) == pytest.approx(0, abs=1e-9)
    held_out = learn_latent_tree(data, hidden_states=4, epochs=30, seconds=1e-9, edge_price=5.0)
    assert held_out.circuit.n_edges == whole.circuit.n_edges


def test_a_limit_below_the_fewest_edges_is_refused_by_its_own_number():
    data = dependent(0, 300, 6)
    independent = learn_latent_tree(data, hidden_states=1, epochs=1).circuit.n_edges
    with pytest.raises(TinybayesError, match=f"max_edges: expected at least {independent}, got 10"):
        learn_latent_tree(data, hidden_states=6, epochs=1, max_edges=10)


def test_the_fewest_edges_are_within_reach():
    tree, generator = Tree((-1, 0), (0, 1, 1)), np.random.default_rng(0)
    flow = Tables(generator.random((2, 3, 3)), generator.random((3, 3, 2))).transition
    flow[0, 1:] = 0.0
    fewest = fewest_edges(tree, flow, (2, 2, 2))
    # The root, the transition, three emissions of two values with three edges each, and products of two factors.
    assert fewest == 3 + 3 + 3 * 2 * 3 + 2 + 2
    assert strongest(tree, flow, (2, 2, 2), fewest)[1].sum() == 3
    equal = (flow > 0).astype(float)  # where nothing is larger than the rest, the limit holds as well
    kept = strongest(tree, equal, (2, 2, 2), fewest)
    assert count_edges(tree, kept, (2, 2, 2)) == fewest
    assert kept.sum() == 1 + 3
