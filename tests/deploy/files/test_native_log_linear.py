"""Log-linear models in the native file: there and back, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from tinybayes import tie
from tinybayes.deploy import load, read_classifier, save
from tinybayes.deploy.files.clauses import parse_clauses
from tinybayes.errors import FileError, TinybayesError
from tinybayes.model import Factor, LogLinear, Variable


@given(seed=st.integers(0, 10**6), trees=st.booleans(), ties=st.booleans())
def test_models_come_back_as_they_were(tmp_path_factory, seed, trees, ties):
    net = zoo.random_net(np.random.default_rng(seed), 4, trees=trees)
    model = LogLinear.from_bayes_net(tie(net, 2).model if ties and net.cpds[0].table.size > 3 else net)
    path = tmp_path_factory.mktemp("models") / "m.tb"
    save(model, path)
    assert load(path) == model


def test_clauses_constants_and_models_without_features(tmp_path):
    variable = Variable("x", (0, 1))
    for model in (
        parse_clauses("variable w a b c\n1.5: w=a | x\nhard: x | !y\n"),
        LogLinear((variable,), (), []),
        LogLinear((variable,), (Factor((), [0]), Factor((0,), [-1, 0])), [0.5]),
    ):
        save(model, tmp_path / "m.tb")
        assert load(tmp_path / "m.tb") == model


def test_only_the_native_format_holds_them(tmp_path):
    model = LogLinear.from_bayes_net(zoo.sprinkler())
    save(model, tmp_path / "m.tb")
    for name in ("m.uai", "m.bif", "m.ac"):
        with pytest.raises(TinybayesError, match="expected a network or a circuit, got a log-linear model"):
            save(model, tmp_path / name)
    with pytest.raises(TinybayesError, match="expected a network or a circuit, got a log-linear model"):
        read_classifier(tmp_path / "m.tb")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["factors"][0].update(entries=10**9), "1000000000 more entries"),
        (lambda c: c["factors"][0].update(scope=[7]), "a valid log-linear model"),
        (lambda c: c["factors"][0].update(scope="x"), "factors.0..scope: expected a value of type list"),
        (lambda c: c.update(features=1), "a valid log-linear model"),
        (lambda c: c.update(classes=-1), "classes: expected an integer from 0"),
        (lambda c: c.update(factors={}), "factors: expected a value of type list"),
    ],
)
def test_wrong_fields_are_named(tmp_path, monkeypatch, change, message):
    from tinybayes.deploy.files import native

    model = LogLinear.from_bayes_net(zoo.sprinkler())
    content, tensors = native._KINDS["LogLinear"][0](model)
    change(content)
    kind = (lambda _: (content, tensors), native._KINDS["LogLinear"][1])
    monkeypatch.setitem(native._KINDS, "LogLinear", kind)
    save(model, tmp_path / "m.tb")
    with pytest.raises(FileError, match=message):
        load(tmp_path / "m.tb")
