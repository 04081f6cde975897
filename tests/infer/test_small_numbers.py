"""Answers about models whose parameters, or products of them, are near or beyond the range of doubles.

The oracle enumerates all assignments with decimals of 60 digits, whose exponents have no such range.
"""

import itertools
import math
import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest

import zoo
from tinybayes.infer import compile_circuit, joint_marginals, log_evidence, log_z, marginals, mpe, posteriors
from tinybayes.infer.circuit import evidence_and_posteriors, log_conditionals
from tinybayes.infer.circuit_passes import ExpectedCounts, plan_of
from tinybayes.infer.sampling.problem import as_log_linear
from tinybayes.model import CPD, BayesNet, Factor, Float, LogLinear, Variable

BLOCK = 25  # networks of a test
KINDS = ("rare", "lost", "wide", "many", "plain")
LEAST = 1e-200  # posteriors from here on have all their digits


def drawn_weights(rng, kind, count):
    """Log-parameters: down to 1e-300; around the smallest double; of hundreds of nats; of 1e-3; ordinary ones."""
    plain = np.log(rng.random(count))
    if kind == "rare":
        return np.where(rng.random(count) < 0.5, rng.uniform(math.log(1e-300), 0, count), plain)
    if kind == "lost":
        return np.where(rng.random(count) < 0.6, rng.uniform(-760, -690, count), plain)
    if kind == "wide":
        return rng.normal(0, 500, count)
    return math.log(1e-3) + plain if kind == "many" else plain


def some_model(rng, kind):
    """A random model of a few variables; zeros rule out some assignments."""
    cards = rng.integers(1, 5, int(rng.integers(2, 6)))
    variables = tuple(Variable(f"v{i}", tuple(range(card))) for i, card in enumerate(cards))
    factors, count = [], 0
    scopes = [rng.choice(len(cards), min(int(rng.integers(1, 4)), len(cards)), replace=False) for _ in range(6)]
    if kind == "many":  # hundreds of parameters in one product
        scopes += [rng.integers(0, len(cards), 1) for _ in range(int(rng.integers(100, 400)))]
    for scope in scopes:
        entries = int(np.prod(cards[scope]))
        factors.append(Factor(tuple(scope.tolist()), np.arange(count, count + entries)))
        count += entries
    weights = drawn_weights(rng, kind, count)
    weights[rng.random(count) < 0.05 * (kind != "many")] = -np.inf
    return LogLinear(variables, tuple(factors), weights)


def some_net(rng, kind):
    """A random network; its rows need not sum to one, as those of tied and quantised ones do not."""
    cards = [int(card) for card in rng.integers(2, 4, int(rng.integers(2, 7)))]
    variables = tuple(Variable(f"v{i}", tuple(range(card))) for i, card in enumerate(cards))
    cpds = []
    for v, card in enumerate(cards):
        parents = tuple(rng.choice(v, min(int(rng.integers(0, 3)), v), replace=False).tolist())
        logs = drawn_weights(rng, kind, math.prod(cards[p] for p in parents) * card).reshape(-1, card)
        logs[rng.random(logs.shape) < 0.1] = -np.inf
        cpds.append(CPD(parents, logs, Float(64)))
    return BayesNet(variables, None, tuple(cpds))


def exact(model, known):
    """The possible assignments that agree with evidence, their logarithms, and their shares, as decimals."""
    linear = as_log_linear(model)
    states = [[known[v]] if v in known else range(card) for v, card in enumerate(linear.cardinalities)]
    rows = np.array(list(itertools.product(*states)))
    weights = [Decimal(float(w)) for w in linear.weights]
    found = [factor.find(rows, linear.cardinalities) for factor in linear.factors]
    with localcontext() as context:
        context.prec = 60
        logs = [
            sum((weights[linear.classes[f]] for f in line if f >= 0), Decimal(0)) for line in zip(*found, strict=True)
        ]
        possible = [r for r, log in enumerate(logs) if log.is_finite()]
        if not possible:
            return None
        rows, logs = rows[possible], [logs[r] for r in possible]
        top = max(logs)
        shares = [(log - top).exp() for log in logs]
        total = sum(shares)
        return rows, [float(log) for log in logs], float(top + total.ln()), [share / total for share in shares]


def state_shares(model, rows, shares):
    """The posterior of every state of every variable."""
    cards = as_log_linear(model).cardinalities
    sums = [[Decimal(0)] * card for card in cards]
    for row, share in zip(rows.tolist(), shares, strict=True):
        for v, state in enumerate(row):
            sums[v][state] += share
    return np.array([float(share) for part in sums for share in part])


def agree(found, want):
    """Posteriors have all digits down to LEAST, also where they are tiny; below they are small, too."""
    found = np.asarray(found)
    counts = want > LEAST
    np.testing.assert_allclose(found[counts], want[counts], rtol=1e-8)
    assert (found[~counts] <= 2 * LEAST).all()


def check_circuit(model, row, log, want):
    circuit = compile_circuit(model)
    for count in (1, 3, 20, 70):  # one by one, in blocks, and with other scales
        X = np.tile(row, (count, 1))
        logs, found = evidence_and_posteriors(circuit, X)
        assert logs[[0, -1]] == pytest.approx(log, rel=1e-12, abs=1e-9)
        assert log_evidence(circuit, X)[-1] == pytest.approx(log, rel=1e-12, abs=1e-9)
        agree(found[0], want)
        agree(found[-1], want)


def check_model(model, rng):
    """Compare every exact way with the oracle; return whether the evidence is possible."""
    cards = as_log_linear(model).cardinalities
    chosen = rng.choice(len(cards), int(rng.integers(0, len(cards))), replace=False).tolist()
    known = {v: int(rng.integers(cards[v])) for v in chosen}
    answer = exact(model, known)
    if answer is None:
        return False
    rows, logs, total, shares = answer
    want = state_shares(model, rows, shares)
    row = np.array([known.get(v, -1) for v in range(len(cards))])
    check_circuit(model, row, total, want)
    of_rows = marginals(model, np.tile(row, (2, 1)), method="join-tree")
    agree(np.concatenate([states[1] for states in of_rows.probabilities]), want)
    found = marginals(model, known, method="join-tree")
    assert found.log_z == pytest.approx(total, rel=1e-12, abs=1e-9)
    assert log_z(model, known) == pytest.approx(total, rel=1e-12, abs=1e-9)
    agree(np.concatenate(found.probabilities), want)
    assert mpe(model, known).log_probability == pytest.approx(max(logs), rel=1e-12, abs=1e-9)
    pair = tuple(rng.choice(len(cards), 2, replace=False).tolist())
    joint = np.zeros([cards[v] for v in pair])
    for row, share in zip(rows, shares, strict=True):
        joint[tuple(row[list(pair)])] += float(share)
    agree(joint_marginals(model, [pair], known)[0].ravel(), joint.ravel())
    return True


@pytest.mark.parametrize("block", [0, 1, *(pytest.param(b, marks=pytest.mark.exhaustive) for b in range(2, 80))])
def test_models_beyond_the_range_of_doubles_are_answered_as_by_enumeration(block):
    """All blocks together are 2,000 models."""
    rng = np.random.default_rng([24, block])
    possible = 0
    for number in range(BLOCK):
        kind = KINDS[number % len(KINDS)]
        model = some_net(rng, kind) if number % 2 and kind != "many" else some_model(rng, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            possible += check_model(model, rng)
    assert possible > BLOCK // 3


def unary(weights, children=()):
    """A model of one variable with these weights, and children that each rule something out."""
    states = len(weights)
    variables = [Variable("x", tuple(range(states)))]
    factors, values = [Factor((0,), np.arange(states))], list(weights)
    for child, table in enumerate(children):
        variables.append(Variable(f"y{child}", (0, 1)))
        factors.append(Factor((0, child + 1), len(values) + np.arange(2 * states)))
        values += list(np.ravel(table))
    return LogLinear(tuple(variables), tuple(factors), np.array(values))


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_parameters_smaller_than_any_double(rows):
    """The third state is ruled out by the child: the others, e^-745.2 and e^-745, are all that is left."""
    never = [[0.0, 0.0], [0.0, 0.0], [-np.inf, 0.0]]
    model = unary([-745.2, -745.0, 0.0], [never])
    found = posteriors(compile_circuit(model), np.tile([-1, 0], (rows, 1)))[-1]
    want = 1 / (1 + math.exp(0.2))
    assert found[:3] == pytest.approx([want, 1 - want, 0.0], rel=1e-12)


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_products_of_a_hundred_parameters(rows):
    """Two products round to the same smallest double; the third state, which hides that, is ruled out by y."""
    logs = np.log([1e-3, 4.2e-3, 5.88e-3])
    variables = (Variable("x", (0, 1, 2)), Variable("y", (0, 1)))
    factors = [Factor((0,), np.array([0, 0, 3]))] * 107 + [
        Factor((0,), np.arange(1, 4)),
        Factor((0, 1), np.arange(4, 10)),
    ]
    weights = np.array([*logs, 0.0, 0.0, math.log(0.5), 0.0, math.log(0.5), 0.0, -np.inf])
    circuit = compile_circuit(LogLinear(variables, tuple(factors), weights))
    X = np.tile([-1, 1], (rows, 1))
    assert posteriors(circuit, X)[-1][:3] == pytest.approx([1 / 2.4, 1.4 / 2.4, 0.0], rel=1e-11)
    assert log_evidence(circuit, X)[-1] == pytest.approx(107 * logs[0] + math.log(4.2e-3 * 2.4 * 0.5), rel=1e-13)


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_a_tiny_posterior_has_all_its_digits(rows):
    """Two rare causes of an effect that is rarer still without them: 1e-126 is left for the second one alone."""
    rare = zoo.cpd([1 - 1e-180, 1e-180])
    effect = zoo.cpd([[1, 0], [1 - 1e-210, 1e-210], [1 - 1e-84, 1e-84], [1, 0]], [0, 1])
    variables = tuple(Variable(name, (0, 1)) for name in "abe")
    circuit = compile_circuit(BayesNet(variables, None, (rare, rare, effect)))
    found = posteriors(circuit, np.tile([-1, -1, 1], (rows, 1)))[-1]
    assert found[2] == pytest.approx(1.0, rel=1e-12)
    assert [found[0], found[3]] == pytest.approx([1e-126, 1e-126], rel=1e-9, abs=0)
    assert log_conditionals(circuit, np.array([[1, 0, 1]]))[0, 2] == pytest.approx(math.log(1e-84), rel=1e-12)


def test_weights_of_hundreds_of_nats_give_no_warning_and_are_exact():
    model = unary([800.0, 801.0, -900.0], [[[-750.0, 0.0], [-750.0, -np.inf], [900.0, 0.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        circuit = compile_circuit(model)
        rows, _, total, shares = exact(model, {})
        assert log_evidence(circuit, np.full((1, 2), -1))[0] == pytest.approx(total, rel=1e-13)
        agree(posteriors(circuit, np.full((1, 2), -1))[0], state_shares(model, rows, shares))


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_weights_beyond_all_measure(rows):
    model = unary([-1e200, 0.0, -800.0], [[[0.0, 0.0], [-np.inf, 0.0], [-0.3, -2.0]]])
    logs, found = evidence_and_posteriors(compile_circuit(model), np.tile([-1, 0], (rows, 1)))
    assert logs[-1] == pytest.approx(-800.3, rel=1e-14)
    assert found[-1][:3].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("weights", [(-800.0, -801.0, 300.0), (-600.0, -600.0, 1100.0), (710.0, -750.0, 10.0)])
def test_expected_counts_of_small_parameters_that_large_ones_make_up_for(weights):
    """Each entry of x is a product of three parameters, the first of which, or two, no double holds."""
    variables = (Variable("x", (0, 1)), Variable("y", (0, 1)))
    entries = np.array([0, 1])
    factors = (*(Factor((0,), entries + 2 * k) for k in range(3)), Factor((0, 1), np.arange(6, 10)))
    values = np.repeat(weights, 2) + np.tile([0.0, 0.1], 3)
    values = np.concatenate([values, [-0.5, -1.0, -1.5, -np.inf]])
    model = LogLinear(variables, factors, values)
    log, counts = ExpectedCounts(compile_circuit(model, share_equal=False))(values)
    rows, _, total, shares = exact(model, {})
    want = np.zeros(10)
    for row, share in zip(rows, shares, strict=True):
        for factor in factors:
            want[factor.find(row[None], model.cardinalities)[0]] += float(share)
    assert log == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(counts, want, atol=1e-12)


def test_ordinary_circuits_are_neither_scaled_nor_watched():
    plan = plan_of(compile_circuit(zoo.sprinkler()))
    np.testing.assert_array_equal(plan.coefficient, np.exp(plan.log_coefficient))
    assert plan.shift == 0.0
    assert not plan.watched


def test_many_messages_into_one_clique_do_not_overflow():
    """Fifty chains of almost uniform variables, whose messages are sums of millions, meet in one variable."""
    chains, length, states = 50, 7, 10
    rng = np.random.default_rng(0)
    variables, cpds = [Variable("c", (0, 1))], [zoo.cpd([0.3, 0.7])]
    for chain in range(chains):
        above, reached = 0, np.array([0.3, 0.7])
        for k in range(length):
            table = rng.uniform(0.95, 1, (len(reached), states))
            table /= table.sum(axis=1, keepdims=True)
            cpds.append(zoo.cpd(table, [above]))
            variables.append(Variable(f"v{chain}_{k}", tuple(range(states))))
            above, reached = len(variables) - 1, reached @ table
    found = marginals(BayesNet(tuple(variables), None, tuple(cpds)), method="join-tree")
    assert found.log_z == pytest.approx(0.0, abs=1e-5)  # parameters are stored in single precision
    assert found["c"] == pytest.approx([0.3, 0.7], rel=1e-5)
    assert found[f"v{chains - 1}_{length - 1}"] == pytest.approx(reached, rel=1e-5)
