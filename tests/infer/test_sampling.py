"""Samplers against enumeration: 50 random models of eight variables with ties, zeros and evidence, and their errors."""

import math
from functools import partial

import numpy as np
import pytest

from sampling_cases import MODELS, case, check, clause_model, random_model, scores, truth
from tinybayes import LogLinear, TinybayesError, Variable, compile_circuit
from tinybayes.infer import marginals, slices
from tinybayes.infer.sampling import chains, importance, proposals, satisfiable
from tinybayes.infer.sampling.problem import restrict
from tinybayes.infer.sampling.proposals import smoothed
from tinybayes.model import Factor

WEIGHTED = {
    "tied, plain": {"method": "tied", "lookahead": None},
    "tied, tables of 4": {"method": "tied", "lookahead": 2},
    "tied, tables of 8, not pruned": {"method": "tied", "lookahead": 3, "prune": False},
    "tied, exact tables": {"method": "tied", "draw": True},
    "likelihood weighting": {"method": "lw"},
    "forward": {"method": "forward"},
    "slices": {"method": "slices"},
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_samples_are_unbiased(name):
    z, log_z = [], []
    for seed in range(MODELS):
        model, evidence, rows, weight = case(seed)
        found = marginals(model, evidence, samples=8192, seed=seed, **WEIGHTED[name])
        assert found.samples == 8192
        z += scores(found, truth(model, rows, weight))
        assert not found.exact
        error = math.expm1(found.log_z - math.log(weight.sum()))
        if found.log_z_error > 1e-9:
            log_z.append(error / found.log_z_error)
        else:
            assert abs(error) < 1e-9
    check(z)
    if log_z:
        assert np.abs(log_z).max() < 4.5
    assert (name in ("tied, exact tables", "slices")) == (not log_z)


@pytest.mark.parametrize("lookahead", [None, 2])
def test_chances_given_all_others_are_unbiased(monkeypatch, lookahead):
    used = []

    def always(problem, proposal, seed):
        used.append(proposal)
        return smoothed(problem, proposal)

    monkeypatch.setattr(importance, "_averaged", always)
    z, gained = [], []
    for seed in range(MODELS):
        model, evidence, rows, weight = case(seed)
        found = marginals(model, evidence, samples=8192, seed=seed, lookahead=lookahead)
        z += scores(found, truth(model, rows, weight))
        with monkeypatch.context() as patch:
            patch.setattr(importance, "_averaged", lambda problem, proposal, seed: proposal)
            other = marginals(model, evidence, samples=8192, seed=seed, lookahead=lookahead)
        spreads = [sum((part**2).sum() for part in answer.errors) for answer in (other, found)]
        if spreads[0] > 0:
            gained.append(spreads[1] / spreads[0])
    assert len(used) == MODELS
    check(z)
    assert np.mean(gained) < 0.9


@pytest.mark.parametrize("lookahead", [None, 2])
def test_samples_checked_by_a_solver_are_unbiased_and_never_weigh_zero(lookahead):
    pytest.importorskip("pysat")
    z, log_z, dead = [], [], 0.0
    for seed in (21, 39, 41, 0, 1):  # some of the few where samples weigh zero
        model, evidence, rows, weight = case(seed)
        options = {"method": "tied", "lookahead": lookahead, "draw": True, "seed": seed, "samples": 1024}
        found = marginals(model, evidence, prune="sat", **options)
        assert found.zero == 0
        assert "SAT solver" in found.notes[0]
        assert found.samples == 1024
        z += scores(found, truth(model, rows, weight))
        if found.log_z_error > 1e-9:
            log_z.append(math.expm1(found.log_z - math.log(weight.sum())) / found.log_z_error)
        dead += marginals(model, evidence, prune=False, **options).zero
    check(z)
    assert np.abs(log_z).max() < 4.5
    assert dead > 0


def parities(n, m):
    """Draw even parities of three coins; return their model and how many solutions they have, by elimination."""
    rng = np.random.default_rng(0)
    scopes = [sorted(rng.choice(n, 3, replace=False).tolist()) for _ in range(m)]
    even = np.array([0.0 if (a + b + c) % 2 == 0 else -np.inf for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    factors = [Factor(tuple(scope), np.arange(8)) for scope in scopes]
    model = LogLinear(tuple(Variable(f"x{i}", (0, 1)) for i in range(n)), tuple(factors), even)
    rows, rank = [sum(1 << v for v in scope) for scope in scopes], 0
    while rows:
        row = rows.pop()
        if row:
            rank, low = rank + 1, row & -row
            rows = [other ^ row if other & low else other for other in rows]
    return model, n - rank


def test_where_tables_of_zeros_are_too_large_a_solver_is_asked_when_samples_weigh_zero(monkeypatch):
    pytest.importorskip("pysat")
    model, free = parities(40, 36)
    monkeypatch.setattr(proposals, "MOST_SUPPORTS", 0)
    options = {"method": "tied", "lookahead": 2, "draw": True}
    for name, value in (("installed", lambda package: False), ("MOST_LITERALS", 10)):  # it is not asked if it cannot be
        with monkeypatch.context() as patch:
            patch.setattr(satisfiable, name, value)
            estimates = marginals(model, samples=5000, **options)
            assert estimates.zero > 0.99
            assert proposals.BLIND in estimates.notes
    with monkeypatch.context() as patch:
        patch.setattr(satisfiable, "MOST_LITERALS", 10)
        with pytest.raises(TinybayesError, match="prune: expected clauses of at most 10 literals"):
            marginals(model, samples=10, prune="sat", **options)
    for prune in (True, "sat"):
        found = marginals(model, samples=100, **options, prune=prune)
        assert found.zero == 0
        assert found.log_z == pytest.approx(free * math.log(2))  # each parity halves what is left: equal weights
        assert "SAT solver" in found.notes[0]
    model, free = parities(20, 12)
    found = marginals(model, samples=100, **options)  # half of them weigh zero: that is still far quicker
    assert 0.3 < found.zero < 0.7


def test_chains_begin_where_a_solver_finds_a_solution(monkeypatch):
    pytest.importorskip("pysat")
    model, _ = parities(40, 36)
    monkeypatch.setattr(proposals, "MOST_SUPPORTS", 0)
    few = partial(importance.choose, lookahead=2)
    monkeypatch.setattr(chains, "choose", few)
    monkeypatch.setattr(chains, "_TRIES", 2)
    begins = chains._first_states(restrict(model, {}), 4, 0)
    assert len(begins) == 4
    assert all((begins[:, list(factor.scope)].sum(axis=1) % 2 == 0).all() for factor in model.factors)


@pytest.mark.parametrize(
    ("kind", "levels"),
    [(random_model, "factor"), (random_model, "feature"), (clause_model, "factor"), (clause_model, "feature")],
)
def test_mcsat_is_consistent(kind, levels):
    z = []
    for seed in range(MODELS if kind is random_model and levels == "factor" else 10):
        model, evidence, rows, weight = case(seed, kind)
        found = marginals(model, evidence, method="mcsat", samples=6000, seed=seed, levels=levels)
        assert not found.notes
        z += scores(found, truth(model, rows, weight))
    check(z, df=100)


def test_mcsat_with_local_search_is_close():
    for seed in range(0, MODELS, 5):
        model, evidence, rows, weight = case(seed, clause_model)
        found = marginals(model, evidence, method="mcsat", uniform="samplesat", samples=6000, seed=seed)
        assert "near uniform" in found.notes[0]
        for p, q in zip(found.probabilities, truth(model, rows, weight), strict=True):
            np.testing.assert_allclose(p, q, atol=0.12)


def connected(rows, weight):
    """Whether moves of one variable reach every possible assignment from every other."""
    possible = {tuple(row) for row in rows[weight > 0].tolist()}
    waiting, seen = [next(iter(possible))], set()
    while waiting:
        row = waiting.pop()
        if row in seen:
            continue
        seen.add(row)
        near = ((*row[:v], s, *row[v + 1 :]) for v in range(len(row)) for s in range(3))
        waiting += [other for other in near if other in possible and other not in seen]
    return seen == possible


def test_gibbs_is_consistent_where_it_reaches_everything():
    z, reached = [], 0
    for seed in range(MODELS):
        model, evidence, rows, weight = case(seed)
        if not connected(rows, weight):
            continue
        reached += 1
        found = marginals(model, evidence, method="gibbs", samples=20_000, seed=seed, burn_in=200)
        z += scores(found, truth(model, rows, weight))
    assert reached > 20
    check(z, df=100)


def test_exact_answers_are_those_of_enumeration():
    for seed in range(MODELS):
        for kind in (random_model, clause_model):
            model, evidence, rows, weight = case(seed, kind)
            for method in ("exact", "tied"):
                found = marginals(model, evidence, method=method)
                assert found.exact
                assert found.log_z == pytest.approx(math.log(weight.sum()), abs=1e-9)
                for p, q in zip(found.probabilities, truth(model, rows, weight), strict=True):
                    np.testing.assert_allclose(p, q, atol=1e-9)


def test_slices_are_those_of_enumeration():
    for seed in range(MODELS):
        for kind in (random_model, clause_model):
            model, evidence, rows, weight = case(seed, kind)
            found = slices(model, evidence)
            assert found.log_z == pytest.approx(math.log(weight.sum()), abs=1e-9)
            for p, q in zip(found.problem.spread(found.marginals(), 1.0), truth(model, rows, weight), strict=True):
                np.testing.assert_allclose(p, q, atol=1e-9)
            # Counted by hand: how many assignments have each vector of counts, up to what evidence decides.
            counts = {}
            for row in rows[weight > 0]:
                vector = [0] * len(model.weights)
                for factor in model.factors:
                    place = 0
                    for v in factor.scope:
                        place = place * len(model.variables[v].states) + row[v]
                    if factor.feature[place] >= 0:
                        vector[model.ties[factor.feature[place]]] += 1
                counts[tuple(vector)] = counts.get(tuple(vector), 0) + 1
            assert sorted(np.exp(found.log_sizes).round().astype(int).tolist()) == sorted(counts.values())
            spread = np.array(sorted(counts))
            ours = np.array(sorted(map(tuple, found.counts.tolist())))
            np.testing.assert_array_equal(spread - spread[0], ours - ours[0])


def test_answers_do_not_depend_on_threads(monkeypatch):
    model, evidence, _, _ = case(1)
    for method, options in (
        ("tied", {"lookahead": 2}),
        ("lw", {}),
        ("mcsat", {"chains": 4}),
        ("gibbs", {"chains": 4}),
        ("slices", {}),
    ):
        answers = []
        for threads in ("1", "3"):
            monkeypatch.setenv("TINYBAYES_THREADS", threads)
            answers.append(marginals(model, evidence, method=method, samples=5000, seed=3, **options))
        other = marginals(model, evidence, method=method, samples=5000, seed=4, **options)
        for a, b in zip(*(answer.probabilities for answer in answers), strict=True):
            np.testing.assert_array_equal(a, b)
        assert any((a != b).any() for a, b in zip(answers[0].probabilities, other.probabilities, strict=True))


def test_pruned_proposals_never_fail():
    """Parities: small tables do not see that they contradict each other, tables of zeros and ones do."""
    rng = np.random.default_rng(5)
    n = 12
    solution, factors, weights = rng.integers(0, 2, n), [], [-np.inf, 0.4]
    odd = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    for _ in range(9):
        scope = tuple(rng.choice(n, 3, replace=False).tolist())
        wrong = odd != solution[list(scope)].sum() % 2
        factors.append(Factor(scope, np.where(wrong, 0, 1)))
    for v in range(n):
        factors.append(Factor((v,), np.array([-1, len(weights)])))
        weights.append(rng.normal())
    model = LogLinear(tuple(Variable(f"v{k}", (0, 1)) for k in range(n)), tuple(factors), np.array(weights))
    free = marginals(model, lookahead=3, prune=False, samples=20_000)
    pruned = marginals(model, lookahead=3, samples=20_000)
    assert pruned.zero == 0 < 0.1 < free.zero
    assert any("weight zero" in note for note in free.notes)
    exact = marginals(model)
    for answer in (free, pruned):
        for a, e, b in zip(answer.probabilities, answer.errors, exact.probabilities, strict=True):
            assert (np.abs(a - b) < 4.5 * e + 1e-9).all()


def test_impossible_evidence_is_an_error():
    model = LogLinear(
        tuple(Variable(name, (0, 1)) for name in "ab"),
        (Factor((0, 1), np.array([0, -1, -1, 0])),),
        np.array([-np.inf]),
    )
    for method in ("tied", "exact", "slices", "mcsat", "gibbs", "lw", "forward"):
        with pytest.raises(TinybayesError, match=r"occur|zero"):
            marginals(model, {"a": 0, "b": 0}, method=method, samples=500)
        found = marginals(model, {"a": 0}, method=method, samples=500)
        assert found["b"][1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("tied", {"prune": "smt"}, "prune: expected True, False or 'sat', got 'smt'"),
        ("tied", {"draw": "no"}, "draw: expected True or False, got 'no'"),
        ("mcsat", {"chains": 0}, "chains: expected an integer of at least 1, got 0"),
        ("mcsat", {"chains": 2.5}, "chains: expected an integer of at least 1, got 2.5"),
        ("gibbs", {"burn_in": -1}, "burn_in: expected an integer of at least 0, got -1"),
        ("mcsat", {"levels": "entry"}, "levels: expected 'factor' or 'feature', got 'entry'"),
        ("auto", {"chains": 3}, "options of 'tied': draw, lookahead, prune, got chains"),
    ],
)
def test_options_are_checked_even_if_an_exact_answer_needs_none(method, options, message):
    model, _ = parities(4, 2)
    for one in [model] if method != "auto" else [model, compile_circuit(model)]:
        with pytest.raises(TinybayesError, match=message):
            marginals(one, method=method, samples=10, **options)
