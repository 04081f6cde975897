"""Greedy elimination orders: each step takes a variable with the smallest score, counted anew in the graph."""

import math

import numpy as np
import pytest

from tinybayes.infer.orders import HEURISTICS, clique_entries, cliques, quick_order, search_orders


def random_scopes(rng, n):
    return [tuple(rng.choice(n, min(n, int(rng.integers(1, 5))), replace=False).tolist()) for _ in range(n)]


def score(heuristic, v, near, cards):
    around = sorted(near[v])
    lacking = [(a, b) for i, a in enumerate(around) for b in around[:i] if b not in near[a]]
    return {
        "min-fill": len(lacking),
        "weighted-min-fill": sum(cards[a] * cards[b] for a, b in lacking),
        "min-weight": sum(math.log(cards[u]) for u in (v, *around)),
        "min-width": len(around),
    }[heuristic]


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_every_step_is_greedy(heuristic):
    rng = np.random.default_rng(5)
    for _ in range(25):
        n = int(rng.integers(1, 22))
        scopes, cards = random_scopes(rng, n), rng.integers(2, 6, n).tolist()
        (order,) = search_orders(scopes, cards, heuristic=heuristic)
        assert sorted(order) == list(range(n))
        near = [{u for scope in scopes if v in scope for u in scope} - {v} for v in range(n)]
        left = set(range(n))
        for v in order:
            least = min(score(heuristic, u, near, cards) for u in left)
            assert score(heuristic, v, near, cards) == pytest.approx(least, abs=1e-6)
            left.discard(v)
            for a in near[v]:
                near[a] = (near[a] | near[v]) - {a, v}


def test_a_search_is_no_worse_than_its_parts_and_repeats_itself():
    rng = np.random.default_rng(6)
    for _ in range(10):
        n = int(rng.integers(5, 40))
        scopes, cards = random_scopes(rng, n), rng.integers(2, 5, n)
        found = search_orders(scopes, cards, most=5)
        assert len(set(found)) == len(found) <= 5
        sizes = [clique_entries(scopes, cards, order) for order in found]
        assert sizes == sorted(sizes)
        plain = [search_orders(scopes, cards, heuristic=name)[0] for name in list(HEURISTICS)[:3]]
        assert sizes[0] <= min(clique_entries(scopes, cards, order) for order in plain) * (1 + 1e-9)
        assert found == search_orders(scopes, cards, most=5)
        assert clique_entries(scopes, cards, quick_order(scopes, cards)) < math.inf


def test_cliques_hold_every_scope():
    rng = np.random.default_rng(7)
    scopes = random_scopes(rng, 12)
    order = rng.permutation(12).tolist()
    around = cliques(scopes, order)
    assert all(v in clique for v, clique in zip(order, around, strict=True))
    assert all(any(set(scope) <= clique for clique in around) for scope in scopes)
    assert quick_order([], []) == ()
