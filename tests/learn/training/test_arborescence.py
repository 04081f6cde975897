import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.learn.training.arborescence import best_parents


def acyclic(parent):
    for start in range(len(parent)):
        v, steps = start, 0
        while v >= 0:
            v, steps = parent[v], steps + 1
            if steps > len(parent):
                return False
    return True


@given(st.integers(0, 100_000), st.integers(1, 5), st.sampled_from([0.0, 0.4]))
def test_heaviest_of_all_acyclic_choices(seed, n, forbidden):
    generator = np.random.default_rng(seed)
    weight = generator.integers(-6, 7, size=(n, n + 1)).astype(float)
    weight[:, :n][generator.random((n, n)) < forbidden] = -np.inf
    np.fill_diagonal(weight, -np.inf)
    best = max(
        sum(weight[v, p] for v, p in enumerate(parents))
        for parents in itertools.product(range(n + 1), repeat=n)
        if acyclic([-1 if p == n else p for p in parents])
    )
    found = best_parents(weight)
    assert acyclic(found)
    assert sum(weight[v, p] for v, p in enumerate(found)) == best


def test_large_graphs():
    generator = np.random.default_rng(0)
    weight = generator.normal(size=(300, 301))
    found = best_parents(weight)
    assert acyclic(found)
    free = weight.copy()
    np.fill_diagonal(free, -np.inf)
    assert sum(weight[v, p] for v, p in enumerate(found)) <= free.max(axis=1).sum()
