"""pyAgrum: exact posteriors, likelihoods, parameters, information, and networks there and back."""

import math

import numpy as np
import pytest
from exchanged import QUESTIONS, posterior, same_network, states, weather
from others import BIF, UAI, answers, bif_answers, bif_file, largest_difference, small_networks, to_pyagrum, uai_answers
from sklearn.datasets import load_iris

from tinybayes import (
    Float,
    chow_liu,
    compile_circuit,
    learn_classifier,
    load,
    log_likelihood,
    maximum_likelihood,
    naive_bayes,
    read_dataset,
    save,
)
from tinybayes.infer import log_evidence, sample
from tinybayes.learn import random_tan
from tinybayes.learn.closed_form.chow_liu import conditional_mutual_information

gum = pytest.importorskip("pyagrum")
SMALL = small_networks()
SLOW_PRIOR = {"munin1": 1}  # without evidence pyAgrum takes a minute and more: pgmpy is asked about that


def posteriors(bn, row, engine=gum.LazyPropagation):
    inference = engine(bn)
    inference.setEvidence({int(v): int(row[v]) for v in np.flatnonzero(row >= 0)})
    inference.makeInference()
    return [inference.posterior(v).toarray().ravel() for v in range(len(row))]


@pytest.mark.parametrize("name", SMALL)
def test_posteriors_of_small_networks(name):
    net = SMALL[name]
    bn = to_pyagrum(net)
    for row, ours in zip(*answers(net, 6), strict=True):
        for engine in (gum.LazyPropagation, gum.ShaferShenoyInference, gum.VariableElimination):
            assert largest_difference(ours, posteriors(bn, row, engine)) < 1e-6


@pytest.mark.parametrize("name", BIF)
def test_posteriors_of_the_repository(data_dir, name, tmp_path):
    """From our tables, and as pyAgrum reads the file, which keeps its numbers in single precision."""
    net, rows, ours = bif_answers(data_dir, name)
    bn = to_pyagrum(net)
    # A state of child has a slash, which its reader refuses.
    read = None if name == "child" else gum.loadBN(str(bif_file(data_dir, name, tmp_path)))
    first = SLOW_PRIOR.get(name, 0)
    for row, mine in zip(rows[first:], ours[first:], strict=True):
        assert largest_difference(mine, posteriors(bn, row)) < 1e-10
        if read is not None:
            assert largest_difference(mine, named_posteriors(read, net, row)) < 1e-6


def named_posteriors(bn, net, row):
    inference = gum.LazyPropagation(bn)
    inference.setEvidence({net.nodes[v].name: str(net.nodes[v].states[row[v]]) for v in np.flatnonzero(row >= 0)})
    inference.makeInference()
    for node in net.nodes:
        found = inference.posterior(node.name)
        yield [found[{node.name: str(state)}] for state in node.states]


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in UAI.items() for kind in kinds])
def test_posteriors_of_the_competitions(data_dir, name, kind):
    net, row, ours = uai_answers(data_dir, name, kind)
    assert largest_difference(ours, posteriors(to_pyagrum(net), row)) < 1e-10


@pytest.mark.parametrize("name", SMALL)
def test_likelihoods_of_rows(name):
    net = SMALL[name]
    circuit, bn = compile_circuit(net), to_pyagrum(net)
    X = sample(circuit, 100, 5)
    expected = []
    for row in X:
        instantiation = bn.completeInstantiation()
        for v, value in enumerate(row):
            instantiation.chgVal(f"x{v}", int(value))
        expected.append(bn.log2JointProbability(instantiation) * math.log(2))
    np.testing.assert_allclose(log_likelihood(net, X), expected, rtol=1e-6)
    np.testing.assert_allclose(log_evidence(circuit, X), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["alarm", "child", "hailfinder", "insurance"])
def test_probabilities_of_evidence(data_dir, name):
    net, rows, _ = bif_answers(data_dir, name)
    inference = gum.LazyPropagation(to_pyagrum(net))
    found = log_evidence(compile_circuit(net), rows)
    for row, logs in zip(rows[1:], found[1:], strict=True):
        inference.setEvidence({int(v): int(row[v]) for v in np.flatnonzero(row >= 0)})
        inference.makeInference()
        assert logs == pytest.approx(math.log(inference.evidenceProbability()), rel=1e-9)


@pytest.mark.parametrize("structure", [naive_bayes, chow_liu, lambda data: random_tan(data, seed=1)])
@pytest.mark.parametrize("smoothing", [0.5, 1.0, 20.0])
def test_parameters(digits, structure, smoothing):
    data, frame = digits[0], digits[1].astype(str)
    net = maximum_likelihood(data, structure(data), smoothing=smoothing, number_format=Float(64))
    bn = to_pyagrum(net)
    learner = gum.BNLearner(frame, bn)
    learner.useSmoothingPrior(smoothing)
    learned = learner.learnParameters(bn.dag())
    for v in range(len(net.nodes)):
        theirs = learned.cpt(v).reorganize(list(bn.cpt(v).names))  # the axes of a table come in any order
        np.testing.assert_allclose(bn.cpt(v).toarray(), theirs.toarray(), atol=1e-12)


def test_mutual_information(digits):
    data, frame = digits[0], digits[1].astype(str)
    learner = gum.BNLearner(frame)
    learner.useNoPrior()
    ours = conditional_mutual_information(data)
    for i in range(len(data.variables)):
        for j in range(i):
            theirs = learner.mutualInformation(f"x{i}", f"x{j}", [f"x{len(data.variables)}"]) * math.log(2)
            assert ours[i, j] == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("suffix", ["bif", "bifxml"])
def test_models_there_and_back(tmp_path, suffix):
    net = weather()
    save(net, tmp_path / f"ours.{suffix}")
    theirs = gum.loadBN(str(tmp_path / f"ours.{suffix}"))
    for variable, evidence in QUESTIONS:
        found = gum.getPosterior(theirs, target=variable, evs=evidence)
        values = [found[{variable: state}] for state in states(net, variable)]
        np.testing.assert_allclose(values, posterior(net, variable, evidence), atol=1e-6)
    gum.saveBN(theirs, str(tmp_path / f"theirs.{suffix}"))
    same_network(load(tmp_path / f"theirs.{suffix}"), net)


def test_uai_there_and_back(tmp_path):
    """One parent at most: with more, pyAgrum orders the rows of a table in another way than the format says."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    net = learn_classifier(read_dataset(X.assign(y=y), target="y"), structure="naive")
    save(net, tmp_path / "ours.uai")
    theirs = gum.loadBN(str(tmp_path / "ours.uai"))
    gum.saveBN(theirs, str(tmp_path / "theirs.uai"))
    again = load(tmp_path / "theirs.uai")
    for place, node in enumerate(net.variables):
        for code in range(node.cardinality):
            ours = posterior(net, "y", {node.name: node.states[code]})
            found = gum.getPosterior(theirs, target="4", evs={str(place): code}).toarray()
            np.testing.assert_allclose(found, ours, atol=1e-6)
            np.testing.assert_allclose(posterior(again, "x4", {f"x{place}": code}), ours, atol=1e-6)
