"""Exported JavaScript under Node.js, bit for bit like Python."""

import numpy as np
import pandas as pd
import pytest

import neural_nets
import tree_ensembles
import zoo
from cases import exhaustive
from gaps import random_forest
from javascript_host import run_javascript
from tinybayes import export, learn_circuit, learn_classifier
from tinybayes.data.encode import encode_frame
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores, compile_circuit
from tinybayes.infer.integer_circuit import integer_posterior
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Codebook, Cuts, Dataset, Fixed, Grid, Integers, Variable

NETS, TREES = neural_nets.kinds(), tree_ensembles.kinds()
QUICK_NETS, QUICK_TREES = ("dense 4 bits", "mixed sign", "conv scaled"), ("class 7 trees", "votes 7 trees", "sets")


def some(all_names, quick):
    return [*quick, *exhaustive(*(name for name in all_names if name not in quick))]


def rows_with_gaps(variables, count=25, seed=0, share=0.3):
    """Draw rows of codes; some are complete, some have gaps, one has nothing else."""
    rng = np.random.default_rng(seed)
    X = np.array([rng.integers(0, v.cardinality, count) for v in variables]).T.reshape(count, len(variables))
    gaps = rng.random(X.shape) < share
    gaps[: count // 2] = False
    gaps[-1] = True
    return np.where(gaps, -1, X)


def said(model, rows, call="scores"):
    return run_javascript(export(model, "javascript")["model.js"], rows, call)


@pytest.mark.parametrize(
    "form", [Fixed(3, 1), Codebook((-7.25, -3.5, -0.75, -0.125)), *exhaustive(Fixed(5, 9))], ids=str
)
@pytest.mark.parametrize("shape", ["tree", *exhaustive("naive", "chain", "star", "roots")])
def test_networks(form, shape):
    seed = 3
    net = random_forest(seed, shape, form)
    X = rows_with_gaps(net.variables, seed=seed)
    scores, _ = integer_log_joint(net, X, gaps=True)
    assert said(net, X) == scores.tolist()
    assert said(net, X, "predict") == class_scores(net, X).argmax(axis=1).tolist()


@pytest.mark.parametrize("name", some(NETS, QUICK_NETS))
def test_nets(name):
    net = NETS[name]
    X = rows_with_gaps(net.variables)
    assert said(net, X) == net_scores(net, X).tolist()


@pytest.mark.parametrize("name", some(TREES, QUICK_TREES))
def test_trees(name):
    model = TREES[name]
    X = rows_with_gaps(model.variables)
    assert said(model, X) == tree_scores(model, X).tolist()


@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2)])
def test_circuits(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (400, 5))
    variables = tuple(Variable(f"v{i}", (0, 1, 2)) for i in range(5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.integers(0, 2, 400)) % 3
    data = Dataset(variables, Variable("class", ("a", "b", "c")), X, y)
    circuit = learn_circuit(data, edge_price=0.05, max_edges=400).circuit
    rows = np.column_stack([rows_with_gaps(variables, seed=seed), np.full(25, -1)])
    posterior, best = integer_posterior(circuit, rows, 5)
    assert said(circuit, rows) == posterior.tolist()
    assert said(circuit, rows, "predict") == best.tolist()


def test_impossible_rows_of_circuits():
    circuit = compile_circuit(zoo.tan())
    rows = rows_with_gaps(circuit.nodes, 40)
    posterior, best = integer_posterior(circuit, rows, len(circuit.nodes) - 1)
    assert said(circuit, rows) == posterior.tolist()
    assert said(circuit, rows, "predict") == best.tolist()


def test_networks_of_floats_are_as_close_as_doubles():
    net = zoo.tan()
    X = rows_with_gaps(net.variables)
    np.testing.assert_allclose(said(net, X), class_scores(net, X), rtol=1e-6, atol=1e-5)
    posterior = np.exp(class_scores(net, X))
    posterior /= posterior.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(said(net, X, "probabilities"), posterior, atol=1e-5)


def test_raw_values_get_the_codes_of_python():
    variables = (
        Variable.from_encoding("cuts", Cuts([0.1, 2.5, 1e6])),
        Variable.from_encoding("integer cuts", Cuts([-3, 2**24 + 1], integer=True)),
        Variable.from_encoding("grid", Grid(-1.0, 0.25, 9)),
        Variable.from_encoding("integers", Integers(-2, 5)),
        Variable("numbers", (0.1, 7.0, 2.0)),
        Variable("words", ("red", "1", "a b")),
        Variable("flags", (False, True)),
    )
    target = Variable("class", ("no", "yes"))
    data = Dataset(variables, target, np.zeros((2, 7), dtype=int), np.array([0, 1]))
    net = learn_classifier(data, structure="naive", number_format=Fixed(3, 1))
    texts = ["", "0.1", "0.10000000149", "2.5", "-3", "16777217", "1e6", "nan", "x", "red", "1", "1.0", " 7 ", "True"]
    texts += ["false", "0", "a b", "5", "5.00000000001", "-1.01", "+2", "7.", ".25", "1e400", "0x10"]
    rows = [[text] * 7 for text in texts]
    frame = pd.DataFrame({v.name: pd.Series([t.strip() or None for t in texts], dtype=object) for v in variables})
    frame = frame.replace({"1e400": None, "nan": None})  # infinite numbers are refused there
    numeric = frame.copy()
    for name in ("words", "flags"):
        numeric[name] = numeric[name].replace({"1.0": "1"})  # a column of numbers loses its points
    expected = encode_frame(numeric, variables)
    found = said(net, rows, "encode")
    for text, one, other in zip(texts, found, expected.tolist(), strict=True):
        assert one == other, text


def test_names_that_javascript_or_c_take_are_refused():
    """Each of these broke the program: as a syntax error, or since the program needs what it hides."""
    net = random_forest(1, "tree", Fixed(3, 1))
    for name in ("function", "let", "eval", "package", "exports", "Math", "tinybayesProgram", "atob", "top"):
        with pytest.raises(TinybayesError, match="a name that no language reserves"):
            export(net, "javascript", name=name)
    for name in ("NULL", "INT8_MAX", "int_fast8_t", "printf"):
        with pytest.raises(TinybayesError, match="a name that no language reserves"):
            export(net, "cpp", name=name)
    assert export(net, "javascript", name="state_tables")


def test_a_program_pasted_into_a_page_ends_where_its_script_ends():
    hostile = "</script><script>alert(1)</script><!-- <script>"
    names = Variable(hostile, (hostile, "a"))
    data = Dataset((names,), Variable("class", (f"{hostile}y", "n")), np.array([[0], [1]]), np.array([0, 1]))
    net = learn_classifier(data, structure="naive", number_format=Fixed(3, 1))
    text = export(net, "javascript", note=hostile)["model.js"]
    assert not any(mark in text.lower() for mark in ("</", "<!--", "<script"))
    assert run_javascript(text, [[hostile], ["a"]], "predictRaw") == [0, 1]
