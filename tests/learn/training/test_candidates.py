import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import random_data
from tinybayes.errors import TinybayesError
from tinybayes.learn import chow_liu, naive_bayes
from tinybayes.learn.training import candidates
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


def outwards(side):
    """Ordering C in the words of the paper: around an ordered centre of H x H pixels come four sides, then corners."""
    first, last = side // 2, (side - 1) // 2  # the centre: one pixel, or none, whose ring is four corners
    order = [(first, first)] if side % 2 else []
    while len(order) < side * side:
        inside = range(first, last + 1)
        first, last = first - 1, last + 1
        order += [(first, c) for c in inside]  # above, left to right
        order += [(last, c) for c in inside]  # below
        order += [(r, first) for r in inside]  # left, top to bottom
        order += [(r, last) for r in inside]  # right
        order += [(first, first), (first, last), (last, first), (last, last)]
    return order


def test_the_oracle_of_ordering_c():
    assert outwards(2) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert outwards(3) == [(1, 1), (0, 1), (2, 1), (1, 0), (1, 2), (0, 0), (0, 2), (2, 0), (2, 2)]
    # fmt: off
    assert outwards(4)[4:] == [
        (0, 1), (0, 2), (3, 1), (3, 2), (1, 0), (2, 0), (1, 3), (2, 3), (0, 0), (0, 3), (3, 0), (3, 3),
    ]
    # fmt: on


@pytest.mark.parametrize("side", range(1, 9))
def test_ordering_c_goes_outwards_as_the_paper_says(side):
    order = outwards(side)
    every = chosen(candidates.heuristic((side, side), side * side, ordering="C"))
    assert [every[r * side + c] for r, c in order] == [{p * side + q for p, q in order[:n]} for n in range(len(order))]
    for k in (1, 3):
        few = chosen(candidates.heuristic((side, side), k, ordering="C"))
        for n, (r, c) in enumerate(order):
            distance = {p * side + q: (p - r) ** 2 + (q - c) ** 2 for p, q in order[:n]}
            taken = few[r * side + c]
            assert sorted(distance[j] for j in taken) == sorted(distance.values())[:k]


def test_ordering_c_takes_images_that_are_not_square():
    found = chosen(candidates.heuristic((2, 5), 10, ordering="C"))
    assert is_ordered(found)
    assert sorted(map(len, found)) == list(range(10))


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


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(0, 100))
def test_no_extra_parent_becomes_the_first_choice(has_parent, seed):
    generator = np.random.default_rng(seed)
    parent = np.array([[int(generator.integers(i)) if has and i else -1] for i, has in enumerate(has_parent)])
    before = candidates.Candidates(parent, np.ones_like(parent, dtype=bool))
    found = candidates.with_none(before)
    assert found.parent.shape == found.allowed.shape == (len(parent), 2)
    for i, (only,) in enumerate(parent.tolist()):
        # No choice twice: a feature that had no parent has still one choice.
        assert found.parent[i, found.allowed[i]].tolist() == ([-1] if only < 0 else [-1, only])
    assert found.ordered
    assert not candidates.with_none(candidates.Candidates(parent, before.allowed, ordered=False)).ordered


@given(st.lists(st.lists(st.integers(0, 5), max_size=6, unique=True), min_size=1, max_size=6), st.booleans())
def test_listed_features_are_offered_beside_no_extra_parent(listed, ordered):
    found = candidates.among(listed, ordered=ordered)
    assert found.parent.shape == (len(listed), 1 + max(map(len, listed)))
    for i, wanted in enumerate(listed):
        assert found.parent[i, found.allowed[i]].tolist() == [-1, *wanted]
        assert (found.parent[i, ~found.allowed[i]] == -1).all()
    assert found.ordered == ordered
