"""The rows of a leaf are counted by bits or by lists; both against adding them up one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybayes._kernels.grow import count_leaf
from tinybayes.learn.circuits import pools
from tinybayes.learn.circuits.learn_ac import learn_circuit, learn_tree_cpds
from tinybayes.model import Dataset, Variable


def mixed(seed, rows, features, most=2, weights=None):
    """Rows that are mostly distinct; later variables copy earlier ones now and then."""
    generator = np.random.default_rng(seed)
    states = generator.integers(2, most + 1, size=features)
    X = generator.integers(0, states, size=(rows, features))
    for i in range(1, features):
        parent = generator.integers(i)
        copied = generator.random(rows) < 0.5
        X[copied, i] = X[copied, parent] % states[i]
    variables = tuple(Variable(f"v{i}", tuple(range(int(k)))) for i, k in enumerate(states))
    weight = None if weights is None else generator.choice(weights, size=rows)
    return Dataset(variables, None, X, weight=weight)


def with_bits(table, wanted):
    columns = np.ascontiguousarray(table.columns.T)
    listed = table.listed if wanted else table.listed[:0]
    return table._replace(bits=pools.bits_of(columns, table.first_state, listed))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([10, 40, 300]),
    st.sampled_from([3, 70]),
    st.sampled_from([2, 4]),
    st.sampled_from([None, [1.0, 2.0], [1.0, 0.3]]),
)
def test_both_ways_count_what_is_there(seed, count, features, most, weights):
    data = mixed(seed, count, features, most, weights)
    table = pools.distinct_rows(data)
    generator = np.random.default_rng(seed)
    n = len(table.weight)
    own = generator.permutation(n)[: generator.integers(1, n + 1)].astype(np.int32)
    i = int(generator.integers(features))
    column = table.columns[i]
    k = int(table.first_state[i + 1] - table.first_state[i])
    wanted = np.zeros((table.first_state[-1], k))
    for r in own:
        for v in range(features):
            wanted[table.first_state[v] + table.columns[v, r], column[r]] += table.weight[r]
    for bits in (True, False):
        chosen = with_bits(table, bits)
        work, whole = pools.work(chosen), np.full(k, 9.0)
        work.counts[:] = 9.0
        count_leaf(chosen, own, column, whole, work)
        listed = table.listed
        np.testing.assert_allclose(work.counts[listed, :k], wanted[listed], rtol=1e-12)
        np.testing.assert_allclose(whole, np.bincount(column[own], table.weight[own], k), rtol=1e-12)


@pytest.mark.parametrize("method", ["quick", "greedy"])
@pytest.mark.parametrize("weights", [None, [1.0, 3.0]])
def test_the_growth_does_not_depend_on_the_way_of_counting(monkeypatch, method, weights):
    data = mixed(3, 2000, 24, weights=weights)
    found = []
    for bits in (True, False):
        monkeypatch.setattr(pools, "_dense", lambda *_, bits=bits: bits)
        found.append(learn_circuit(data, edge_price=0.3, parameter_price=1.0, method=method))
        found.append(learn_tree_cpds(data, parameter_price=2.0))
    assert len(found[0].splits) > 10
    for one, other in zip(found[:2], found[2:], strict=True):
        assert one.splits.tolist() == other.splits.tolist()
        assert one.growth.score == other.growth.score
        assert one.net == other.net


def test_dense_rows_of_weight_one_are_counted_by_bits():
    dense = mixed(1, 400, 40)
    assert pools.distinct_rows(dense).bits.shape[1] == 1
    sparse = Dataset(dense.variables, None, (np.random.default_rng(0).random((400, 40)) < 0.05).astype(int))
    assert pools.distinct_rows(sparse).bits.shape[1] == 0
    doubled = Dataset(dense.variables, None, dense.X, weight=np.full(400, 2.0))
    assert pools.distinct_rows(doubled).bits.shape[1] == 0
