import itertools
import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import zoo
from tinybayes._kernels.circuit_nodes import N_EDGES
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, estimate_width, is_decomposable, is_deterministic, is_smooth, log_evidence
from tinybayes.infer.compile_circuit import _Compiler
from tinybayes.infer.elimination import least_edges
from tinybayes.model import BayesNet, Codebook, DecisionTree, Fixed, Float, Variable

FORMATS = (Float(64), Float(), Fixed(3, 2), Codebook((-math.inf, -2.0, -1.0, -0.5, 0.0)))


def some_net(seed, zeros=0.3, **options):
    """A random net with zeros, ties, tables and trees."""
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, int(rng.integers(1, 6)), target=bool(seed % 2), trees=True, **options)
    cpds = []
    for cpd in net.cpds:
        table = np.exp(cpd.log_parameters)
        table[rng.random(table.shape) < zeros] = 0
        if seed % 3 == 0:
            table = np.round(4 * table) / 4
        cpds.append(zoo.cpd(table, cpd.parents, cpd.tree))
    return BayesNet(net.variables, net.target, tuple(cpds))


@given(st.integers(0, 10**6), st.sampled_from(["search", "min-fill", "weighted-min-fill"]), st.booleans())
def test_a_circuit_is_the_polynomial_of_its_network(seed, order, share):
    net = some_net(seed)
    rows, logs = oracle.joint(net)
    if logs.max() == -math.inf:
        with pytest.raises(TinybayesError, match="zero for everything"):
            compile_circuit(net, order=order, share_equal=share)
        return
    circuit = compile_circuit(net, order=order, share_equal=share)
    assert is_smooth(circuit)
    assert is_decomposable(circuit)
    assert is_deterministic(circuit)
    for row, log in zip(rows.tolist(), logs, strict=True):
        assert oracle.circuit_value(circuit, row)[-1] == pytest.approx(math.exp(log), rel=1e-12, abs=1e-300)
    total = oracle.circuit_value(circuit, [-1] * len(net.nodes))[-1]
    assert total == pytest.approx(math.exp(oracle.log_sum(logs)), rel=1e-12)


@given(st.integers(0, 10**6))
def test_any_order_of_elimination_gives_the_same_distribution(seed):
    net = some_net(seed, zeros=0.0)
    rng = np.random.default_rng(seed)
    rows, logs = oracle.joint(net)
    circuit = compile_circuit(net, order=rng.permutation(len(net.nodes)))
    np.testing.assert_allclose(log_evidence(circuit, rows), logs, rtol=1e-12)


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_the_format_and_every_code_of_the_tables_survive(form):
    net = zoo.random_net(np.random.default_rng(3), 4, formats=(form,), trees=True)
    circuit = compile_circuit(net)
    assert circuit.format == form
    np.testing.assert_array_equal(circuit.table, np.concatenate([cpd.table.reshape(-1) for cpd in net.cpds]))
    rows, logs = oracle.joint(net)
    np.testing.assert_allclose(log_evidence(circuit, rows), logs, rtol=1e-12)


def test_different_formats_become_double_precision():
    net = zoo.random_net(np.random.default_rng(5), 6, formats=FORMATS[:3])
    circuit = compile_circuit(net)
    assert len({cpd.format for cpd in net.cpds}) > 1
    assert circuit.format == Float(64)
    np.testing.assert_array_equal(circuit.log_parameters, np.concatenate([c.log_parameters.ravel() for c in net.cpds]))


def test_zeros_ones_and_equal_parameters_leave_fewer_leaves():
    # The table of the grass is 1, 0, 1/4, 3/4, 1/2, 1/2, 0, 1; of the others 3/4, 1/4 and 1/2, 1/2, 7/8, 1/8.
    shared, all_of_them = compile_circuit(zoo.sprinkler()), compile_circuit(zoo.sprinkler(), share_equal=False)
    assert sorted(shared.leaf[shared.kind == 0].tolist()) == [0, 1, 2, 4, 5, 8, 9, 10]
    assert sorted(all_of_them.leaf[all_of_them.kind == 0].tolist()) == [*range(7), 8, 9, 10, 11, 13]
    assert shared.n_edges < all_of_them.n_edges


def test_context_specific_independence_makes_the_circuit_smaller():
    """A child of ten parents that asks for one after the other until one is true, as a tree and as a full table."""
    parents = 10
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(parents + 1))
    roots = [zoo.cpd([0.3, 0.7])] * parents
    split = [x for i in range(parents) for x in (i, -1)] + [-1]
    first = [x for i in range(parents) for x in (2 * i, 0)] + [0]
    children = [x for i in range(parents) for x in (2 * i + 2, 2 * i + 1)]
    row = [x for i in range(parents) for x in (0, i)] + [parents]
    tree = DecisionTree(split, first, children, row)
    table = np.random.default_rng(0).dirichlet([1, 1], parents + 1)
    with_tree = BayesNet(variables, None, (*roots, zoo.cpd(table, range(parents), tree)))
    lines = [tree.find(dict(enumerate(values))) for values in itertools.product((0, 1), repeat=parents)]
    full = BayesNet(variables, None, (*roots, zoo.cpd(table[lines], range(parents))))
    noise = BayesNet(
        variables, None, (*roots, zoo.cpd(np.random.default_rng(1).dirichlet([1, 1], 2**parents), range(parents)))
    )
    order = range(parents, -1, -1)
    sizes = [compile_circuit(net, order=order).n_edges for net in (with_tree, full, noise)]
    assert sizes[0] == sizes[1] < 250
    assert sizes[2] > 10 * sizes[0]
    assert compile_circuit(with_tree).n_edges < 1.3 * sizes[0]  # the tree tells which order is good
    assert compile_circuit(full).n_edges < sizes[2] / 4


def test_a_wide_tree_compiles_although_its_full_table_would_not():
    parents = 40
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(parents + 1))
    split = [x for i in range(parents) for x in (i, -1)] + [-1]
    first = [x for i in range(parents) for x in (2 * i, 0)] + [0]
    children = [x for i in range(parents) for x in (2 * i + 2, 2 * i + 1)]
    row = [x for i in range(parents) for x in (0, i)] + [parents]
    table = np.random.default_rng(0).dirichlet([1, 1], parents + 1)
    cpds = [zoo.cpd([0.5, 0.5])] * parents + [zoo.cpd(table, range(parents), DecisionTree(split, first, children, row))]
    net = BayesNet(variables, None, tuple(cpds))
    circuit = compile_circuit(net)
    assert circuit.n_edges < 1000
    evidence = np.full((1, parents + 1), -1)
    evidence[0, -1] = 1
    want = sum(table[k, 1] * 0.5 ** (k + 1) for k in range(parents)) + table[parents, 1] * 0.5**parents
    assert log_evidence(circuit, evidence)[0] == pytest.approx(math.log(want), rel=1e-12)


@pytest.mark.exhaustive
def test_a_naive_bayes_with_many_features_compiles_in_a_moment():
    rng = np.random.default_rng(0)
    n = 2000
    variables = tuple(Variable(f"f{i}", (0, 1, 2)) for i in range(n))
    cpds = [zoo.cpd(rng.dirichlet([1, 1, 1], 2), [n]) for _ in range(n)] + [zoo.cpd([0.4, 0.6])]
    net = BayesNet(variables, Variable("c", (0, 1)), tuple(cpds))
    assert estimate_width(net).treewidth == 1
    circuit = compile_circuit(net)
    assert circuit.n_edges < 30 * n
    row = rng.integers(0, 3, (1, n + 1))
    row[0, -1] = 1
    assert log_evidence(circuit, row)[0] == pytest.approx(oracle.log_joint(net, row[0].tolist()), rel=1e-12)


def test_estimates_know_the_width_of_known_graphs():
    chain = BayesNet(
        tuple(Variable(f"v{i}", (0, 1, 2)) for i in range(6)),
        None,
        (zoo.cpd([0.2, 0.3, 0.5]), *(zoo.cpd(np.full((3, 3), 1 / 3), [i]) for i in range(5))),
    )
    for order in ("search", "min-fill", "weighted-min-fill"):
        found = estimate_width(chain, order)
        assert (found.treewidth, found.largest_clique) == (1, 9)
        assert compile_circuit(chain, order=order).n_edges <= found.edges
    hub = estimate_width(chain, [2, 0, 1, 3, 4, 5])
    assert hub.treewidth == 2


@given(st.integers(0, 10**6))
def test_no_circuit_is_larger_than_its_estimate(seed):
    net = some_net(seed, zeros=0.0)
    for order in ("min-fill", "weighted-min-fill"):
        assert compile_circuit(net, order=order, share_equal=False).n_edges <= estimate_width(net, order).edges


class _Counting(_Compiler):
    """A compiler that remembers the first promise of edges, and takes none of them as a reason to stop."""

    promised = 0

    def _check_hope(self, buckets):
        factors = [factor for bucket in buckets for factor in bucket]
        varieties = [factor.variety(self.cards) for factor in factors]
        scopes = [factor.scope for factor in factors]
        promise = int(self.nodes.counts[N_EDGES]) + least_edges(scopes, varieties, self.cards)
        self.promised = self.promised or promise

    def _finish(self, factors):
        return int(self.nodes.counts[N_EDGES])


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.1, 0.6]))
def test_no_circuit_needs_less_than_is_said_beforehand(seed, share, zeros):
    net = some_net(seed, zeros=zeros)
    compiler = _Counting(net, estimate_width(net), 10**9, share)
    assert compiler.run() >= compiler.promised


@given(st.integers(0, 10**6))
def test_without_zeros_and_equal_entries_the_number_of_edges_is_known_beforehand(seed):
    rng = np.random.default_rng(seed)
    variables = [Variable(f"v{i}", tuple(range(int(rng.integers(2, 5))))) for i in range(int(rng.integers(2, 8)))]
    net = zoo.random_net(rng, len(variables), target=False, formats=(Float(64),), variables=variables)
    compiler = _Counting(net, estimate_width(net), 10**9, True)
    assert compiler.run() == compiler.promised


def dense_net(n):
    """Every variable depends on all before it, in no particular way."""
    rng = np.random.default_rng(0)
    variables = tuple(Variable(f"v{i}", (0, 1)) for i in range(n))
    return BayesNet(variables, None, tuple(zoo.cpd(rng.dirichlet([1, 1], 2**i), range(i)) for i in range(n)))


def test_what_is_too_large_is_refused_with_its_width_before_any_work(monkeypatch):
    net = dense_net(12)
    edges = compile_circuit(net).n_edges
    monkeypatch.setattr(_Compiler, "_sum_out", None)
    words = r"at most 1,000 edges.*width 11 that needs more \(at least ([0-9,]+), at most ([0-9,]+)\)"
    with pytest.raises(TinybayesError, match=words) as problem:
        compile_circuit(net, max_edges=1000)
    least, most = (int(x.replace(",", "")) for x in re.search(words, str(problem.value)).groups())
    assert 1000 < edges <= least <= most


def test_what_turns_out_to_be_too_large_is_refused_too():
    """Equal entries leave hope, which the work then disappoints."""
    net = dense_net(10)
    cpds = [zoo.cpd(np.round(8 * np.exp(cpd.log_parameters)) / 8, cpd.parents) for cpd in net.cpds]
    net = BayesNet(net.variables, None, tuple(cpds))
    edges = compile_circuit(net).n_edges
    with pytest.raises(TinybayesError, match=f"at least {edges:,}, at most"):
        compile_circuit(net, max_edges=edges - 1)


@pytest.mark.parametrize("name", ["BN_0", "bn2o-30-15-150-1a", "bn2o-30-20-200-1a"])
def test_real_networks_without_structure_are_refused_at_once(data_dir, monkeypatch, name):
    from tinybayes.deploy import load

    monkeypatch.setattr(_Compiler, "_sum_out", None)
    with pytest.raises(TinybayesError, match="at least"):
        compile_circuit(load(data_dir / "networks" / f"{name}.uai"), max_edges=50_000_000)


@pytest.mark.parametrize("order", ["best", [0], [0, 0, 1], [0, 1, 3]])
def test_unknown_orders_are_refused(order):
    with pytest.raises(TinybayesError, match="order"):
        compile_circuit(zoo.sprinkler(), order=order)


def test_a_variable_with_one_state_and_a_certain_network():
    one = BayesNet((Variable("a", ("only",)),), None, (zoo.cpd([1.0]),))
    assert compile_circuit(one).n_nodes == 1
    two = BayesNet(
        (Variable("a", ("only",)), Variable("b", (0, 1))), None, (zoo.cpd([1.0]), zoo.cpd([[0.0, 1.0]], [0]))
    )
    assert log_evidence(compile_circuit(two), np.array([[0, 1], [0, 0], [-1, -1]])).tolist() == [0.0, -math.inf, 0.0]


@pytest.mark.parametrize("name", ["asia", "cancer", "child", "alarm", "win95pts", "hailfinder", "hepar2", "insurance"])
def test_real_networks_sum_to_one_and_score_rows_like_their_tables(data_dir, name):
    from tinybayes.deploy import load
    from tinybayes.infer import sample

    net = load(data_dir / "networks" / "bif" / f"{name}.bif.gz")
    circuit = compile_circuit(net)
    assert is_smooth(circuit)
    assert is_decomposable(circuit)
    assert is_deterministic(circuit)
    nothing = np.full((1, len(net.nodes)), -1)
    assert log_evidence(circuit, nothing)[0] == pytest.approx(
        0, abs=1e-3 * len(net.nodes) if name == "hailfinder" else 1e-6
    )
    rows = sample(circuit, 20, 0)
    want = [oracle.log_joint(net, row) for row in rows.tolist()]
    np.testing.assert_allclose(log_evidence(circuit, rows), want, rtol=1e-11)


def test_the_limit_is_what_memory_holds(monkeypatch):
    module = sys.modules["tinybayes.infer.compile_circuit"]
    net = zoo.sprinkler()
    edges = compile_circuit(net).n_edges
    monkeypatch.setattr(module, "default_bytes", lambda: 3 * module.EDGE_BYTES)
    with pytest.raises(TinybayesError, match="a circuit of at most 3 edges"):
        compile_circuit(net)
    assert compile_circuit(net, max_edges=1000).n_edges == edges
    monkeypatch.setattr(module, "default_bytes", lambda: 2**50)
    assert module.edges_in_memory() < 2**31
