"""Join trees against enumeration and circuits: zeros, ties, extreme parameters, impossible evidence, conditioning."""

import itertools

import numpy as np
import pytest

import zoo
from cases import exhaustive
from random_models import enumerate_all, random_factors, random_net
from tinybayes import CPD, BayesNet, Float, LogLinear, TinybayesError, Variable, compile_circuit
from tinybayes.infer import circuit, inference_costs, joint_marginals, log_z, marginals, mpe
from tinybayes.infer.join import limits, messages
from tinybayes.infer.join.plan import make_plan
from tinybayes.infer.join.reduce import reduce
from tinybayes.infer.join.solve import prepare, solve
from tinybayes.infer.sampling.problem import as_log_linear
from tinybayes.model import Factor

BLOCKS = [*range(8), *exhaustive(*range(8, 25))]
BLOCK = 20  # models of a test


def check(model, known, groups):
    """Compare all queries with enumeration; return whether the evidence is possible."""
    rows, logs = enumerate_all(model, known)
    if np.isneginf(logs.max()):
        for ask in (log_z, mpe, lambda m, e: marginals(m, e, method="join-tree")):
            with pytest.raises(TinybayesError, match="can occur"):
                ask(model, known)
        return False
    total = np.logaddexp.reduce(logs)
    weight = np.exp(logs - total)
    close = {"rel": 1e-11, "abs": 1e-9}
    found = marginals(model, known, method="join-tree")
    assert found.exact
    assert found.log_z == pytest.approx(total, **close)
    assert log_z(model, known) == pytest.approx(total, **close)
    cards = as_log_linear(model).cardinalities
    for v, part in enumerate(found.probabilities):
        np.testing.assert_allclose(part, np.bincount(rows[:, v], weight, cards[v]), atol=1e-9)
    best = mpe(model, known)
    assert best.log_probability == pytest.approx(logs.max(), **close)
    assert as_log_linear(model).log_weights(best.row[None])[0] == pytest.approx(logs.max(), **close)
    assert all(best.row[v] == state for v, state in known.items())
    for group, table in zip(groups, joint_marginals(model, groups, known), strict=True):
        wanted = np.zeros([cards[v] for v in group])
        np.add.at(wanted, tuple(rows[:, v] for v in group), weight)
        np.testing.assert_allclose(table, wanted, atol=1e-9)
    return True


@pytest.mark.parametrize("block", BLOCKS)
def test_against_enumeration_and_circuits(block):
    rng = np.random.default_rng(block)
    possible = 0
    for number in range(BLOCK):
        kind = ("plain", "zeros", "ties", "extreme")[number % 4]
        model = (random_net, random_factors)[number // 4 % 2](rng, kind)
        cards = as_log_linear(model).cardinalities
        chosen = rng.choice(len(cards), int(rng.integers(0, min(3, len(cards)) + 1)), replace=False).tolist()
        known = {v: int(rng.integers(cards[v])) for v in chosen}
        groups = [tuple(rng.choice(len(cards), min(len(cards), k), replace=False).tolist()) for k in (1, 2, 2, 3)]
        if check(model, known, groups):
            possible += 1
            if number % 3 == 0:
                row = np.array([[known.get(v, -1) for v in range(len(cards))]])
                logs, posterior = circuit.evidence_and_posteriors(compile_circuit(model), row)
                found = marginals(model, known, method="join-tree")
                assert found.log_z == pytest.approx(logs[0], rel=1e-11, abs=1e-9)
                np.testing.assert_allclose(np.concatenate(found.probabilities), posterior[0], atol=1e-9)
    assert possible > BLOCK // 2


def test_all_cores_and_large_tables_give_the_same(monkeypatch):
    """Every joint table counts as large: it is split into parts, and targets are copied."""
    monkeypatch.setattr(messages, "LARGE", 1)
    rng = np.random.default_rng(50)
    for kind in ("plain", "zeros", "ties", "extreme") * 3:
        net = random_net(rng, kind)
        check(net, {}, [(0,)])


@pytest.mark.parametrize("kind", ["plain", "zeros", "extreme"])
def test_conditioning_on_a_cutset_changes_nothing(kind, monkeypatch):
    rng = np.random.default_rng(7)
    monkeypatch.setattr(limits, "COPIES", 0)
    split = 0
    for _ in range(20):
        linear = as_log_linear(random_net(rng, kind))
        n = len(linear.variables)
        whole = prepare(linear, {}, "posterior")
        if whole.size.width < 2:
            continue
        few = prepare(linear, {}, "posterior", max_bytes=0.7 * whole.size.bytes, max_seconds=1e9)
        split += bool(few.cut)
        a, b = solve(whole), solve(few)
        assert a.log_z == pytest.approx(b.log_z, abs=1e-9)
        for p, q in zip(a.states, b.states, strict=True):
            np.testing.assert_allclose(p, q, atol=1e-9)
        best = prepare(linear, {}, "best", max_bytes=0.7 * whole.size.bytes, max_seconds=1e9)
        seen = []
        assert solve(best, seen.append).log_z == pytest.approx(mpe(linear).log_probability, abs=1e-9)
        assert seen == sorted(seen)
        assert seen[-1:] == [1.0] or n == 1
    assert split > 6


def test_an_underflow_is_computed_in_logarithms():
    """Two causes of 1e-300 each, and evidence that rules out everything else: a product of 1e-600."""
    rare = np.log([[1.0, 1e-300]])
    never = np.array([[0.0, -np.inf], [0.0, -np.inf], [0.0, -np.inf], [-0.1, np.log(-np.expm1(-0.1))]])
    variables = tuple(Variable(name, (0, 1)) for name in "abc")
    net = BayesNet(variables, None, (CPD((), rare, Float(64)), CPD((), rare, Float(64)), CPD((0, 1), never, Float(64))))
    found = marginals(net, {"c": 1})
    assert found.log_z == pytest.approx(2 * np.log(1e-300) + np.log(-np.expm1(-0.1)), rel=1e-12)
    assert found["a"].tolist() == [0.0, 1.0]


def clique(n, states):
    """Return a model whose variables are all beside each other."""
    variables = tuple(Variable(f"x{v}", tuple(range(states))) for v in range(n))
    pairs = list(itertools.combinations(range(n), 2))
    entries = states**2
    factors = tuple(Factor(pair, np.arange(k * entries, (k + 1) * entries)) for k, pair in enumerate(pairs))
    weights = np.random.default_rng(0).normal(size=len(pairs) * entries)
    return LogLinear(variables, factors, weights)


def test_what_is_too_large_is_refused_or_sampled():
    model = clique(50, 3)
    with pytest.raises(TinybayesError, match=r"join tree: expected work within .* a model of width 49 that needs"):
        marginals(model)
    sampled = marginals(model, seconds=0.3)
    assert sampled.method == "tied"
    assert "sampled, since exact inference takes more: join tree: expected work within" in sampled.notes[-1]
    assert not marginals(model, samples=100).exact
    costs = {cost.method: cost for cost in inference_costs(model)}
    assert not costs["join-tree"].fits
    assert costs["join-tree"].bytes > 3.0**49
    small = {cost.method: cost for cost in inference_costs(zoo.sprinkler())}
    assert list(small) == ["circuit", "join-tree", "tied"]
    assert all(cost.fits and 0 < cost.seconds < 1 for cost in small.values())


def test_memory_is_known_before_the_work():
    rng = np.random.default_rng(9)
    for kind in ("plain", "ties") * 8:
        model = random_factors(rng, kind)
        question = prepare(model, {}, "posterior")
        tables = reduce(question.problem, None).tables
        place = {v: k for k, v in enumerate(question.problem.free)}
        plan = make_plan(tables.scopes, tables.cards, [place[v] for v in question.order])
        assert plan.bytes + 8 * messages.COPIES <= question.size.bytes + 64
    assert question.size.cases == 1


def test_wrong_groups():
    net = zoo.sprinkler()
    for group in (("nobody",), (0, 0), (), (9,)):
        with pytest.raises(TinybayesError, match="different variables by name or number"):
            joint_marginals(net, [group])


@pytest.mark.parametrize("name", ["CSP_11", "DBN_12", *exhaustive("Grids_15", "linkage_14")])
def test_networks_that_no_circuit_holds(data_dir, name):
    from tinybayes.deploy.files.uai import read_evidence, read_uai_factors
    from tinybayes.deploy.files.uai_marginals import read_marginals

    place = data_dir / "networks" / "hard"
    model = read_uai_factors(place / f"{name}.uai")
    found = marginals(model, read_evidence(place / f"{name}.evid")[0], method="join-tree")
    for p, q in zip(found.probabilities, read_marginals(place / f"{name}.MAR"), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-6)


def test_several_rows_at_once():
    rng = np.random.default_rng(3)
    for kind in ("plain", "ties"):
        net = random_net(rng, kind)
        cards = as_log_linear(net).cardinalities
        rows = np.stack([rng.integers(0, cards) for _ in range(6)])
        rows[:, rng.random(len(cards)) < 0.5] = -1
        by_tree = marginals(net, rows, method="join-tree")
        by_circuit = marginals(net, rows, method="circuit")
        assert (by_tree.method, by_circuit.method) == ("join-tree", "circuit")
        np.testing.assert_allclose(by_tree.log_z, by_circuit.log_z, atol=1e-9)
        for p, q in zip(by_tree.probabilities, by_circuit.probabilities, strict=True):
            assert p.shape == q.shape == (6, p.shape[1])
            np.testing.assert_allclose(p, q, atol=1e-9)
    sprinkler = zoo.sprinkler()
    with pytest.raises(TinybayesError, match="evidence, row 1"):
        marginals(sprinkler, np.array([[-1, -1, -1], [0, 0, 1]]), method="join-tree")


def test_an_interrupt_leaves_nothing_wrong():
    """An answer that was interrupted half way changes no later one."""
    linear = as_log_linear(random_net(np.random.default_rng(11), "plain"))
    before = marginals(linear, method="join-tree")

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        marginals(linear, method="join-tree", progress=stop)
    after = marginals(linear, method="join-tree")
    assert after.log_z == before.log_z
    for p, q in zip(before.probabilities, after.probabilities, strict=True):
        np.testing.assert_array_equal(p, q)
