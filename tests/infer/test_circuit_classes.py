"""Circuits as classifiers: the same scores, labels and files as networks have."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cli_host import run
from strategies import random_data
from tinybayes import TinybayesError, learn_classifier
from tinybayes.deploy import save
from tinybayes.infer import class_scores, evaluate, predict_codes
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.learn.circuits.learn_ac import learn_circuit
from tinybayes.model import CPD, BayesNet, Float, Variable
from zoo import cpd


def test_a_compiled_classifier_scores_like_its_network():
    data = random_data(3, rows=200, features=5, classes=3, missing=0.1)
    net = learn_classifier(data, structure="chow-liu")
    circuit = compile_circuit(net)
    np.testing.assert_allclose(class_scores(circuit, data.X), class_scores(net, data.X), atol=1e-9)
    np.testing.assert_array_equal(predict_codes(circuit, data.X), predict_codes(net, data.X))
    ours, theirs = evaluate(circuit, data), evaluate(net, data)
    assert ours.error == theirs.error
    assert ours.log_loss == pytest.approx(theirs.log_loss)
    assert len(predict_codes(circuit, data.X[:0])) == 0


def test_classes_far_behind_and_impossible_rows_keep_their_scores():
    """The posteriors of all classes come from one pass, which must not lose what doubles cannot hold beside one."""
    pair, several = Variable("x", (0, 1)), Variable("class", (0, 1, 2))
    near, far = np.log([0.75, 0.25]), np.array([-900.0, np.log(0.5)])
    tables = [np.stack([near, far, np.array([-np.inf, 0.0])]) for _ in range(3)]
    cpds = [CPD((3,), table, Float(64)) for table in tables]
    features = tuple(replace(pair, name=f"x{i}") for i in range(3))
    net = BayesNet(features, several, (*cpds, cpd([0.5, 0.25, 0.25])))
    circuit = compile_circuit(net)
    X = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 1], [-1, 0, 1], [-1, -1, -1]])
    np.testing.assert_allclose(class_scores(circuit, X), class_scores(net, X), atol=1e-9)
    only = BayesNet(features, several, (*[CPD((3,), table[[2, 2, 2]], Float(64)) for table in tables], net.cpds[3]))
    assert (class_scores(compile_circuit(only), X[:1]) == -np.inf).all()
    with pytest.raises(TinybayesError, match="3 columns"):
        class_scores(circuit, np.zeros((2, 4), dtype=int))


def test_a_circuit_without_a_class_is_refused():
    data = random_data(3, rows=50, features=3, classes=None)
    with pytest.raises(TinybayesError, match="class"):
        class_scores(learn_circuit(data).circuit, data.X)


def test_evaluate_and_predict_take_circuits(tmp_path):
    data = random_data(5, rows=80, features=3, classes=2)
    save(learn_circuit(data, edge_price=0.1).circuit, tmp_path / "m.tb")
    header = [*(v.name for v in data.variables), data.target.name]
    classes = np.array(data.target.states)[data.y]
    lines = [",".join(map(str, (*row, c))) for row, c in zip(data.X.tolist(), classes, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(header), *lines]) + "\n")
    done = run("evaluate", "m.tb", "t.csv", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["rows"] == 80
    assert found["cost"]["edges"] > 0
    run("predict", "m.tb", "t.csv", "-o", "p.csv", "--proba", cwd=tmp_path)
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 81
