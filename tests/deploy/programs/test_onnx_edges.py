"""Graphs of ONNX at their edges: coarse units, values that are no numbers, and attributes that the standard allows."""

import numpy as np
import pytest

from encoders import codes_in_onnx
from networks import classifier, codebook
from tinybayes.deploy.programs.encoding import make_features
from tinybayes.deploy.programs.onnx import to_onnx
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.infer.integers import integer_log_joint
from tinybayes.model import CPD, BayesNet, Codebook, Cuts, Fixed, Float, Grid, Integers, Variable

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def coarse(largest):
    """A network with an entry so large that sums leave little room for fractions."""
    rng = np.random.default_rng(0)
    form = Fixed(27, 0)
    tables = [rng.integers(0, 5, (rows, columns)) for rows, columns in ((2, 3), (6, 4), (1, 2))]
    tables[0][1, 2] = largest
    variables = (Variable("a", (0, 1, 2)), Variable("b", (0, 1, 2, 3)))
    parents = ((2,), (2, 0), ())
    cpds = [CPD(above, table.astype(np.uint32), form) for above, table in zip(parents, tables, strict=True)]
    return BayesNet(variables, Variable("y", (0, 1)), tuple(cpds))


@pytest.mark.parametrize(("largest", "fraction"), [(1000, 10), (2**21, 8), (2**24, 5), (2**26, 3)])
def test_missing_values_are_summed_out_in_coarse_units(largest, fraction):
    net = coarse(largest)
    plan = make_plan(net, gaps=True)
    assert plan.fraction == fraction
    X = np.array([[a, b] for a in range(-1, 3) for b in range(-1, 4)], dtype=np.int32)
    exact = integer_log_joint(net, X, gaps=True)[0]
    session = runtime.InferenceSession(to_onnx(net, name="net")["net.onnx"])
    complete = (X >= 0).all(axis=1)
    for chosen in (np.ones(len(X), bool), complete):  # the graph asks whether any value is missing
        labels, scores = session.run(["label", "scores"], {"x": X[chosen].astype(np.int64)})
        np.testing.assert_array_equal(scores, exact[chosen])
        np.testing.assert_array_equal(labels, exact[chosen].argmax(axis=1))


@pytest.mark.parametrize("gaps", [True, False])
def test_what_is_no_number_is_missing_or_has_the_first_code(tmp_path, gaps):
    encodings = [Cuts([-1.5, 0.5, 2]), Grid(-1, 0.5, 9), Grid(0, 2.0**-126, 5), Grid(0, 2.0**-70, 5), Integers(0, 3)]
    variables = tuple(Variable.from_encoding(f"v{i}", encoding) for i, encoding in enumerate(encodings))
    features = make_features(variables, "float", gaps=gaps)
    tiny = 2.0**-126
    values = np.array([[np.nan] * 5, [0.5, 0.5, 2 * tiny, 2.0**-69, 2], [-9, -9, -9, -9, 9], [9, 9, 9, 9, 1]])
    unknown = -1 if gaps else 0
    wanted = [[unknown] * 5, [2, 3, 2, 2, 2], [0, 0, 0, 0, unknown], [3, 8, 4, 4, 1]]
    assert codes_in_onnx(tmp_path, features, values).tolist() == wanted


def attributes(graph, name):
    """Yield an attribute of all nodes, those of graphs inside included."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == name:
                yield attribute.i
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from attributes(attribute.g, name)


@pytest.mark.parametrize("form", [Float(32), Fixed(3, 1), codebook(5)], ids=str)
def test_axes_are_kept_or_not(form):
    content = to_onnx(classifier("tree", form), name="net", raw="none")["net.onnx"]
    kept = list(attributes(onnx.load_from_string(content).graph, "keepdims"))
    assert len(kept) > 2
    assert set(kept) <= {0, 1}


def test_levels_that_are_too_far_apart_for_a_table_of_logarithms():
    """Units of 2**80 nats: nothing is added to the larger of two numbers; the step of the table was beyond integers."""
    book = Codebook((-1e30, -1e10, 0.0, 700.0))
    table = np.array([[0, 1], [2, 3]], dtype=np.uint8)
    variables = tuple(Variable(name, (0, 1)) for name in "aby")
    cpds = (CPD((2,), table, book), CPD((0, 2), np.vstack([table, table]), book), CPD((), table[:1], book))
    net = BayesNet(variables[:2], variables[2], cpds)
    X = np.array([[a, b] for a in range(-1, 2) for b in range(-1, 2)], dtype=np.int32)
    session = runtime.InferenceSession(to_onnx(net, name="net")["net.onnx"])
    _, scores = session.run(["label", "scores"], {"x": X.astype(np.int64)})
    np.testing.assert_array_equal(scores, integer_log_joint(net, X, gaps=True)[0])
