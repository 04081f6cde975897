"""Masks that take the cycles out of a search without an ordering."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_candidates import chosen, is_ordered

from tinybayes.learn.training import candidates
from tinybayes.learn.training.arborescence import acyclic_mask, best_parents, ordering_mask
from tinybayes.learn.training.candidates import Candidates


@st.composite
def searches(draw):
    """Candidates without an ordering, some of them not allowed, and logits that prefer some strongly."""
    features, seed = draw(st.integers(1, 9)), draw(st.integers(0, 100_000))
    found = candidates.order_free(features, draw(st.sampled_from([None, 1, 3])), seed=seed)
    generator = np.random.default_rng(seed)
    mask = found.allowed & (generator.random(found.parent.shape) >= draw(st.sampled_from([0.0, 0.5])))
    mask[:, 0] = True
    logits = draw(st.sampled_from([0.0, 1.0, 30.0])) * generator.normal(size=found.parent.shape)
    return logits, mask, found.parent


def log_probabilities(logits, mask, parent):
    """An oracle, one number at a time: log-softmax over what is allowed, by parent; the last column is for none."""
    features = len(parent)
    weight = np.full((features, features + 1), -np.inf)
    for i in range(features):
        total = np.logaddexp.reduce([logits[i, k] for k in range(parent.shape[1]) if mask[i, k]])
        for k in range(parent.shape[1]):
            if mask[i, k]:
                weight[i, features if parent[i, k] < 0 else parent[i, k]] = logits[i, k] - total
    return weight


@given(searches())
def test_an_ordering_leaves_no_cycle_and_keeps_the_best_choice(search):
    logits, mask, parent = search
    result = ordering_mask(logits, mask, parent)
    assert not (result & ~mask).any()
    assert result[:, 0].all()  # no extra parent
    # A cycle takes one parent of each of its nodes, so that it would show in the graph of all that is allowed.
    assert is_ordered(chosen(Candidates(parent, result)))
    best = best_parents(log_probabilities(logits, mask, parent))
    assert (result & (parent == best[:, None])).any(axis=1).all()


@given(searches())
def test_what_is_acyclic_already_loses_nothing(search):
    logits, mask, parent = search
    single = acyclic_mask(logits, mask, parent)
    np.testing.assert_array_equal(ordering_mask(logits, single, parent), single)


@given(searches())
def test_the_best_acyclic_choice_is_one_parent_each(search):
    logits, mask, parent = search
    result = acyclic_mask(logits, mask, parent)
    assert not (result & ~mask).any()
    assert (result.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(parent[result], best_parents(log_probabilities(logits, mask, parent)))


def test_the_most_informative_candidates_come_first_and_a_feature_is_none_of_its_own():
    information = np.array([[9.0, 1, 3, 2], [1, 9, 1, 1], [3, 1, 9, 0], [2, 1, 0, 9]])
    found = candidates.most_informative(information, 2)
    assert found.parent.tolist() == [[-1, 2, 3], [-1, 0, 2], [-1, 0, 1], [-1, 0, 1]]
    assert found.allowed.all()
    assert not found.ordered


def test_an_ordering_keeps_what_the_search_likes():
    """Two features want each other; a third wants both, and comes after them."""
    parent = candidates.order_free(3).parent
    liking = np.array([[0.0, 0.0, -9.0], [3.0, 0.0, -9.0], [4.0, 3.0, 0.0]])  # of feature i for parent j
    logits = np.where(parent < 0, -5.0, np.take_along_axis(liking, np.maximum(parent, 0), axis=1))
    sets = chosen(Candidates(parent, ordering_mask(logits, np.ones(parent.shape, dtype=bool), parent)))
    assert sets == [set(), {0}, {0, 1}]
