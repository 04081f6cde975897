"""The order in which very large networks are eliminated, and formats that must be one."""

import numpy as np
import pytest

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, log_evidence, orders
from tinybayes.infer.integers import only_format
from tinybayes.infer.orders import by_degree
from tinybayes.model import BayesNet, Fixed, Float


def by_hand(families, n):
    """Take the variable with the fewest neighbours, the first of several, and join its neighbours."""
    near = [{u for family in families if v in family for u in family} - {v} for v in range(n)]
    order = []
    while len(order) < n:
        v = min((u for u in range(n) if u not in order), key=lambda u: (len(near[u]), u))
        order.append(v)
        for a in near[v]:
            near[a] = (near[a] | near[v]) - {a, v}
    return tuple(order)


@pytest.mark.parametrize("seed", range(8))
def test_the_variable_with_the_fewest_neighbours_is_next(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    families = [rng.choice(n, min(n, int(rng.integers(1, 5))), replace=False).tolist() for _ in range(n)]
    assert by_degree(families, n) == by_hand(families, n)


def test_very_large_networks_are_compiled_in_that_order(monkeypatch):
    net = zoo.random_net(np.random.default_rng(3), 8, target=False)
    X = np.stack([np.arange(20) % node.cardinality for node in net.nodes], axis=1)
    wanted = compile_circuit(net)
    monkeypatch.setattr(orders, "DENSE", 4)
    found = compile_circuit(net)
    assert found == compile_circuit(net, order=by_degree(net.structure.families, len(net.nodes)))
    np.testing.assert_allclose(log_evidence(found, X), log_evidence(wanted, X), rtol=1e-10)


def test_formats_are_not_mixed():
    net = zoo.tan()
    fixed = Fixed(3, 2)
    mixed = BayesNet(net.variables, net.target, (zoo.cpd([[0.5, 0.5]] * 2, [2], None, fixed), *net.cpds[1:]))
    assert only_format(net) == Float(64)
    with pytest.raises(TinybayesError, match=r"one number format in all tables, got fixed3.2, float64; quantise"):
        only_format(mixed)
