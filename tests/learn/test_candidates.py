import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import random_data
from tinybayes.errors import TinybayesError
from tinybayes.learn import candidates, chow_liu, naive_bayes
from tinybayes.model import Structure


def chosen(found):
    return [set(p[a & (p >= 0)].tolist()) for p, a in zip(found.parent, found.allowed, strict=True)]


def is_ordered(sets):
    """All candidates together leave an ordering: taking every edge makes no cycle."""
    try:
        Structure(tuple(tuple(sorted(s)) for s in sets))
    except TinybayesError:
        return False
    return True


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 50), st.integers(0, 50))
def test_subsets_follow_an_ordering_and_grow_with_k(features, k, seed, subset_seed):
    found = chosen(candidates.subset(features, k, seed=seed, subset_seed=subset_seed))
    assert is_ordered(found)
    sizes = sorted(len(s) for s in found)
    assert sizes == sorted(min(k, i) for i in range(features))
    larger = chosen(candidates.subset(features, k + 2, seed=seed, subset_seed=subset_seed))
    assert all(a <= b for a, b in zip(found, larger, strict=True))


def test_all_predecessors_are_candidates_when_k_is_large():
    found = chosen(candidates.subset(5, 5))
    assert sum(map(len, found)) == 10


@pytest.mark.parametrize("ordering", ["A", "B", "C"])
def test_heuristic_orderings_take_the_nearest_earlier_pixels(ordering):
    found = candidates.heuristic((5, 5), 4, ordering=ordering)
    sets = chosen(found)
    assert is_ordered(sets)
    assert sorted(map(len, sets))[:6] == [0, 1, 2, 3, 4, 4]
    if ordering == "A":
        assert sets[12] == {7, 11, 6, 8}
        assert sets[0] == set()
    if ordering == "B":
        order = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2)]
        three = chosen(candidates.heuristic((3, 3), 9, ordering="B"))
        assert [len(three[r * 3 + c]) for r, c in order] == list(range(9))
    if ordering == "C":
        assert sets[12] == set()
        assert max(sets[12 + 1]) <= 18
    with pytest.raises(TinybayesError, match="ordering A, B or C"):
        candidates.heuristic((2, 2), 1, ordering="Z")


@given(st.integers(1, 10), st.integers(0, 30))
def test_order_free_candidates(features, seed):
    assert chosen(candidates.order_free(features)) == [set(range(features)) - {i} for i in range(features)]
    some = chosen(candidates.order_free(features, 3, seed=seed))
    assert all(len(s) == min(3, features - 1) and i not in s for i, s in enumerate(some))


def test_fixed_structures():
    data = random_data(0)
    assert candidates.fixed(naive_bayes(data)).parent.tolist() == [[-1]] * 4
    tree = chow_liu(data)
    assert [p[0] for p in candidates.fixed(tree).parent] == [f[0] if len(f) == 2 else -1 for f in tree.parents[:-1]]
    with pytest.raises(TinybayesError, match="at most one feature as parents"):
        candidates.fixed(Structure(((2,), (), ())))
    assert np.all(candidates.fixed(tree).allowed)
