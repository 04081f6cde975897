"""The one interface to marginals: what may be asked, how, and what is refused."""

import time

import numpy as np
import pytest

import zoo
from cases import exhaustive
from tinybayes import CPD, BayesNet, Float, LogLinear, TinybayesError, Variable, compile_circuit
from tinybayes.deploy.files.clauses import parse_clauses
from tinybayes.deploy.files.uai import read_evidence, read_uai, read_uai_factors
from tinybayes.deploy.files.uai_marginals import read_marginals
from tinybayes.infer import METHODS, Marginals, circuit, hellinger, marginals
from tinybayes.infer.sampling import importance
from tinybayes.infer.sampling.problem import restrict
from tinybayes.infer.sampling.weighted import rows
from tinybayes.model import Factor

NETWORKS = ["50-14-1", "fs-04", "mastermind1", "students_03_02-0000"]
NETWORKS += exhaustive("75-18-1", "90-20-1", "BN_0", "bn2o-30-15-150-1a")


def grid(side, seed, *, zeros=0.0):
    """Make an undirected grid of binary variables."""
    rng = np.random.default_rng(seed)
    factors, weights = [], []
    for v in range(side**2):
        for u in ([v + 1] if (v + 1) % side else []) + ([v + side] if v + side < side**2 else []):
            factors.append(Factor((v, u), np.arange(len(weights), len(weights) + 4)))
            part = rng.normal(0, 0.8, 4)
            part[rng.random(4) < zeros] = -np.inf
            weights += part.tolist()
    return LogLinear(tuple(Variable(f"x{k}", (0, 1)) for k in range(side**2)), tuple(factors), np.array(weights))


def test_evidence_goes_by_name_or_number():
    net = zoo.sprinkler()
    names = [variable.name for variable in net.variables]
    known = {names[0]: net.variables[0].states[1]}
    first = marginals(net, known)
    row = np.array([1] + [-1] * (len(names) - 1))
    for same in ({0: 1}, {names[0]: 1}, row):
        for p, q in zip(first.probabilities, marginals(net, same).probabilities, strict=True):
            np.testing.assert_array_equal(p, q)
    assert first[names[0]].tolist() == [0.0, 1.0]
    assert first[1].sum() == pytest.approx(1)
    assert first.exact
    assert first.effective == np.inf
    for other in ([known], [1, -1, -1], "rain", 3):
        with pytest.raises(TinybayesError, match=r"^evidence: expected a mapping from variables to states"):
            marginals(net, other)


def test_circuits_answer_exactly_and_rows_in_batches():
    net = zoo.sprinkler()
    compiled = compile_circuit(net)
    X = np.array([[-1, -1, -1], [1, -1, -1]])
    batch = marginals(compiled, X)
    posteriors = circuit.posteriors(compiled, X)
    np.testing.assert_array_equal(np.concatenate(batch.probabilities, axis=1), posteriors)
    np.testing.assert_array_equal(batch["wet"], posteriors[:, 4:])
    np.testing.assert_array_equal(batch.log_z, circuit.log_evidence(compiled, X))
    assert [part.shape for part in batch.errors] == [(2, 2)] * 3
    for row, known in zip(posteriors, (None, {0: 1}), strict=True):
        for model in (compiled, net):
            answer = marginals(model, known)
            assert isinstance(answer, Marginals)
            np.testing.assert_allclose(np.concatenate(answer.probabilities), row, atol=1e-12)
    with pytest.raises(TinybayesError, match="a circuit answers exactly"):
        marginals(compiled, method="gibbs")


def test_all_methods_agree_on_clauses():
    model = parse_clauses("""
        variable weather sunny rainy snow
        u = 0.5
        u: a | b
        u: b | !c
        -1.25: !a | weather=rainy
        hard: weather!=snow | a
    """)
    exact = marginals(model, {"c": 1}, method="exact")
    for method in METHODS:
        found = marginals(model, {"c": 1}, method=method, samples=40_000)
        assert hellinger(found.probabilities, exact.probabilities) < 0.02
        assert found.method == ("join-tree" if method == "auto" else method)


@pytest.mark.parametrize("method", METHODS)
def test_wrong_requests(method):
    net = zoo.sprinkler()
    for known, message in (
        ({"nobody": 0}, "name or the number of a variable"),
        ({17: 0}, "name or the number of a variable"),
        ({0: 9}, "a state of"),
        ({0: "purple"}, "a state of"),
        ({0: 0, net.variables[0].name: 1}, "one state of"),
        (np.zeros(7, dtype=np.int64), "integer codes"),
    ):
        with pytest.raises(TinybayesError, match=message):
            marginals(net, known, method=method)
    for options, message in (
        ({"seconds": 0.0}, "positive"),
        ({"seconds": float("nan")}, "positive"),
        ({"samples": 0}, "at least 1"),
        ({"samples": 10, "seed": -1}, "seed"),
        ({"samples": 10, "patience": 3}, "patience"),
    ):
        with pytest.raises(TinybayesError, match=message):
            marginals(net, method=method, **options)


def test_unknown_methods_and_options():
    net = zoo.sprinkler()
    with pytest.raises(TinybayesError, match="method: expected auto or join-tree"):
        marginals(net, method="oracle")
    with pytest.raises(TinybayesError, match="lookahead"):
        marginals(net, lookahead="far")
    with pytest.raises(TinybayesError, match="uniform"):
        marginals(net, method="mcsat", uniform="perhaps")
    with pytest.raises(TinybayesError, match="distributions"):
        hellinger([np.ones(1)], [np.ones(2)])


def test_networks_that_are_not_normalised():
    rng = np.random.default_rng(0)
    binary = [Variable(name, (0, 1)) for name in "abcd"]
    parents = [(), (0,), (0, 1), (1, 2)]
    cpds = tuple(CPD(above, rng.normal(-1, 1, (2 ** len(above), 2)), Float(64)) for above in parents)
    net = BayesNet(tuple(binary), None, cpds)
    exact = marginals(net, {3: 1})
    linear = LogLinear.from_bayes_net(net)
    values = [linear.log_weights(np.array([[a, b, c, 1]]))[0] for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    assert exact.log_z == pytest.approx(np.logaddexp.reduce(values), abs=1e-12)
    for method in METHODS:
        found = marginals(net, {3: 1}, method=method, samples=200_000)
        for p, error, q in zip(found.probabilities, found.errors, exact.probabilities, strict=True):
            assert (np.abs(p - q) < 5 * error + 1e-9).all()


def test_progress_comes_while_sampling_and_time_is_kept():
    model = grid(6, 0)
    for options in ({"draw": True}, {"method": "gibbs"}, {"method": "mcsat"}, {"method": "lw"}):
        seen = []
        began = time.perf_counter()
        last = marginals(model, seconds=0.6, progress=seen.append, **options)
        assert 0.5 < time.perf_counter() - began < 60  # on a busy machine it may be more
        assert len(seen) >= 2
        assert [state.samples for state in seen] == sorted({state.samples for state in seen})
        assert seen[-1].samples <= last.samples
        assert all(state.largest_error > 0 for state in seen)


def test_buckets_that_do_not_fit_are_split_and_chosen_by_a_pilot(monkeypatch):
    monkeypatch.setattr(importance, "LARGEST", 20_000)
    monkeypatch.setattr(importance, "_SMALL", 20_000)
    model = grid(9, 1)
    found = marginals(model, method="tied", samples=20_000)
    assert not found.exact
    assert found.effective > 2000
    monkeypatch.undo()
    exact = marginals(model)
    assert exact.exact
    assert found.log_z == pytest.approx(exact.log_z, abs=5 * found.log_z_error)
    for p, error, q in zip(found.probabilities, found.errors, exact.probabilities, strict=True):
        assert (np.abs(p - q) < 5 * error).all()


def test_weights_are_those_of_the_features():
    """The logarithm of a weight is that of the features, counted by class, less that of the chance of the draw."""
    model = grid(4, 2, zeros=0.1)
    problem = restrict(model, {})
    for proposal in (
        importance.choose(problem, 2**20, 0, lookahead=2),
        importance.choose(problem, 2**20, 0, lookahead=None),
        importance.choose(problem, 2**20, 0),
    ):
        X, logs = rows(proposal, 500, 1)
        alive = np.isfinite(logs)
        assert alive.any()
        full = np.zeros((len(X), len(model.variables)), dtype=np.int64)
        for v, left in enumerate(problem.domains):
            full[:, v] = left[0]
        for k, v in enumerate(problem.free):
            full[:, v] = problem.domains[v][X[:, k]]
        counts = np.array([model.class_counts(row[None]) for row in full[alive]])
        finite = np.where(np.isfinite(model.weights), model.weights, 0.0)
        assert not counts[:, np.isneginf(model.weights)].any()
        # Equal rows have equal chances, so that log w - t mu is a function of the row; and w sums to Z.
        chance = counts @ finite - logs[alive]
        assert (chance <= 1e-9).all()
        seen: dict[bytes, float] = {}
        for row, value in zip(full[alive], chance, strict=True):
            assert seen.setdefault(row.tobytes(), value) == pytest.approx(value, abs=1e-9)


def test_a_model_that_forbids_everything():
    factors = (Factor((0,), np.array([0, 0])),)
    model = LogLinear((Variable("a", (0, 1)),), factors, np.array([-np.inf]))
    with pytest.raises(TinybayesError, match="can occur"):
        marginals(model)


def test_factors_that_are_too_large_are_left_to_gibbs():
    text = "0.5: " + " | ".join(f"v{k}" for k in range(30))
    model = parse_clauses(text)
    with pytest.raises(TinybayesError, match="method='gibbs'"):
        marginals(model, method="tied")
    exact = marginals(model)
    assert exact.method == "circuit"
    assert exact["v3"] == pytest.approx([0.5, 0.5], abs=1e-6)
    found = marginals(model, method="gibbs", samples=4000)
    assert found["v3"] == pytest.approx([0.5, 0.5], abs=0.02)


def test_slices_and_mcsat_refuse_what_is_too_large():
    with pytest.raises(TinybayesError, match="lattice"):
        marginals(grid(7, 0), method="slices")
    with pytest.raises(TinybayesError, match="samplesat"):
        marginals(grid(17, 0), method="mcsat", uniform="exact")


@pytest.mark.parametrize("name", NETWORKS)
def test_real_networks(data_dir, name):
    place = data_dir / "networks"
    files = sorted((place / "truth").glob(f"{name}.*.evid"))
    assert files
    for file in files:
        truth = read_marginals(file.with_suffix(".MAR"))
        log_z = float(file.with_suffix(".PR").read_text().split()[1]) * np.log(10)
        model = read_uai_factors(place / f"{name}.uai")
        found = marginals(model, read_evidence(file)[0], method="exact")
        assert found.log_z == pytest.approx(log_z, abs=1e-9)
        for p, q in zip(found.probabilities, truth, strict=True):
            np.testing.assert_allclose(p, q, atol=1e-9)


@pytest.mark.parametrize("name", ["50-14-1", "fs-04", "students_03_02-0000"])
def test_samples_of_real_networks(data_dir, name):
    place = data_dir / "networks"
    truth = read_marginals(place / "truth" / f"{name}.rand20.MAR")
    known = read_evidence(place / "truth" / f"{name}.rand20.evid")[0]
    net = read_uai(place / f"{name}.uai")
    found = marginals(net, known, samples=50_000, draw=True)
    assert not found.exact
    assert hellinger(found.probabilities, truth) < 0.003
    exact = marginals(net, known, seconds=1)
    assert exact.exact
    assert hellinger(exact.probabilities, truth) < 1e-9
