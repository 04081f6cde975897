"""Explanations: their terms are table entries looked up by hand, and their sums the differences of class scores."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gaps
import oracle
import zoo
from strategies import random_data
from tinybayes import explain
from tinybayes.compress import quantize
from tinybayes.errors import TinybayesError
from tinybayes.infer import Explanation, class_scores, compile_circuit
from tinybayes.infer.integers import gap_arithmetic
from tinybayes.learn import learn_classifier
from tinybayes.model import BayesNet, Codebook, Fixed, Float, Variable, with_target

FORMATS = [Float(64), Float(32), Fixed(4, 3), Codebook((-5.0, -2.0, -1.0, -0.1))]


def by_name(found):
    return {item.feature: item.log_odds for item in found.contributions}


@given(st.integers(0, 10_000), st.booleans(), st.integers(1, 5))
def test_terms_of_complete_rows_are_table_entries(seed, trees, features):
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, features, formats=FORMATS, trees=trees)
    assume(net.target.cardinality > 1)
    row = np.array([rng.integers(0, v.cardinality) for v in net.variables])
    scores = class_scores(net, row[None])[0]
    assume(np.isfinite(scores).all())
    label = int(scores.argmax())
    for other, state in enumerate(net.target.states):
        if other == label:
            continue
        found = explain(net, row, against=state)
        assert (found.label, found.against) == (net.target.states[label], state)
        assert found.total == pytest.approx(scores[label] - scores[other], abs=1e-9)
        assert found.prior + sum(by_name(found).values()) == pytest.approx(found.total, abs=1e-9)
        for node, item in enumerate(found.contributions):
            terms = [oracle.log_parameter(net, node, [*row.tolist(), code]) for code in (label, other)]
            assert item.log_odds == pytest.approx(terms[0] - terms[1], abs=1e-12)
            assert (item.feature, item.value) == (net.variables[node].name, net.variables[node].states[row[node]])
    second = np.argsort(-scores, kind="stable")[1]
    assert explain(net, row).against == net.target.states[second]


@given(st.integers(0, 10_000), st.sampled_from(["naive", "chow-liu", "random"]), st.sampled_from(FORMATS))
def test_missing_values_say_nothing_and_sums_stay_exact(seed, structure, number_format):
    data = random_data(seed, missing=0.4, rows=20)
    net = learn_classifier(data, structure=structure, number_format=number_format, seed=seed)
    scores = np.sort(class_scores(net, data.X), axis=1)
    exact = np.sort(oracle.class_scores(net, data.X), axis=1)
    rule = gap_arithmetic(net)
    error = 0.0 if rule is None else rule.error
    for row, ours, other in zip(data.X, scores, exact, strict=True):
        found = explain(net, row)
        assert found.total == pytest.approx(ours[-1] - ours[-2], abs=1e-9)
        assert found.total == pytest.approx(other[-1] - other[-2], abs=2 * error * gaps.additions(net, row) + 1e-5)
        assert found.prior + sum(by_name(found).values()) == pytest.approx(found.total, abs=1e-9)
        for code, item in zip(row, found.contributions, strict=True):
            assert (item.value == "missing") == (code < 0)
            assert code >= 0 or item.log_odds == 0


def test_the_chain_rule_agrees_with_the_tables_of_a_normalised_net():
    net = zoo.tan()
    whole = by_name(explain(net, np.array([1, 1])))
    part = explain(net, np.array([1, -1]), against="spam" if explain(net, np.array([1, -1])).label == "ham" else "ham")
    ratio = {"ham": 1 / 4, "spam": 3 / 4}
    assert by_name(part)["a"] == pytest.approx(math.log(ratio[part.label] / ratio[part.against]))
    assert whole["a"] == pytest.approx(math.log(1 / 3))  # ham, whose a is 1 with 1/4, against 3/4
    assert whole["b"] == pytest.approx(math.log(4))


def test_by_hand():
    found = explain(zoo.naive_bayes(), np.array([0, 0]))
    assert isinstance(found, Explanation)
    assert (found.label, found.against) == ("ham", "spam")
    assert math.exp(found.prior) == pytest.approx(3)
    assert [round(math.exp(item.log_odds), 9) for item in found.contributions] == [3, 4]
    assert [item.value for item in found.contributions] == ["0", "< 0.5"]
    assert math.exp(found.total) == pytest.approx(36)
    assert [item.feature for item in found.strongest(1)] == ["b"]
    plain = found.to_dict()
    assert plain["contributions"][1] == {"feature": "b", "value": "< 0.5", "log_odds": pytest.approx(math.log(4))}


def test_a_feature_that_does_not_depend_on_the_class_contributes_zero_and_is_not_listed():
    net = zoo.naive_bayes()
    apart = BayesNet(net.variables, net.target, (net.cpds[0], zoo.cpd([1 / 4, 1 / 4, 1 / 2]), net.cpds[2]))
    found = explain(apart, np.array([1, 2]))
    assert by_name(found)["b"] == 0
    assert [item.feature for item in found.strongest(9)] == ["a"]


def test_what_rules_a_class_out_is_infinite():
    net = zoo.naive_bayes()
    sure = BayesNet(net.variables, net.target, (zoo.cpd([[1, 0], [0, 1]], [2]), net.cpds[1], net.cpds[2]))
    for row in ([1, 0], [1, -1]):
        found = explain(sure, np.array(row))
        assert found.label == "spam"
        assert by_name(found)["a"] == math.inf == found.total
    never = BayesNet(net.variables, net.target, (zoo.cpd([[1, 0], [1, 0]], [2]), net.cpds[1], net.cpds[2]))
    with pytest.raises(TinybayesError, match="possible under some class"):
        explain(never, np.array([1, 0]))


def test_refusals_say_what_to_do():
    net = zoo.tan()
    row = np.array([0, 0])
    with pytest.raises(TinybayesError, match=r"a Circuit, whose scores are not sums.*learn a network"):
        explain(compile_circuit(net), row)
    with pytest.raises(TinybayesError, match="name a target"):
        explain(with_target(net, None), row)
    with pytest.raises(TinybayesError, match="class of 'class', got 'eggs'"):
        explain(net, row, against="eggs")
    with pytest.raises(TinybayesError, match="compare it with another"):
        explain(net, row, against=explain(net, row).label)
    with pytest.raises(TinybayesError, match="one row"):
        explain(net, row[None])
    with pytest.raises(TinybayesError, match="columns"):
        explain(net, np.array([0, 0, 0]))
    with pytest.raises(TinybayesError, match="codes from -1"):
        explain(net, np.array([0, 7]))
    with pytest.raises(TinybayesError, match="fill the gaps"):
        explain(zoo.tree_tan(), np.array([-1, 0]))
    single = BayesNet((), Variable("only", ("one",)), (zoo.cpd([1.0]),))
    with pytest.raises(TinybayesError, match="two states"):
        explain(single, np.array([], dtype=int))


def test_quantised_nets_are_explained_by_their_own_tables():
    data = random_data(3)
    net = quantize(learn_classifier(data, structure="chow-liu"), Fixed(3, 1))
    for row in data.X[:10]:
        scores = np.sort(class_scores(net, row[None])[0])
        assert explain(net, row).total == scores[-1] - scores[-2]
