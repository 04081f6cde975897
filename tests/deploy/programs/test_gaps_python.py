"""Missing values in MicroPython and ONNX: the integers and labels of Python, coded and raw."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaps as oracle
from networks import classifier, codebook, every_state, formats
from neural_nets import kinds, neural_net, rows_of
from tinybayes.deploy.export import export
from tinybayes.deploy.programs.encoding import make_features
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.trees import tree_scores
from tinybayes.model import (
    CPD,
    BayesNet,
    Categories,
    Codebook,
    Cuts,
    Fixed,
    Float,
    Grid,
    Integers,
    NeuralNet,
    TreeEnsemble,
    Variable,
)

TARGETS = ("micropython", "onnx")
SHARES = (0.05, 0.5, 1.0)
FAR_CODES = (-1, -7, 300, 65535)  # none of them is a state


def answers(target, net, X, **options):
    """Labels and scores of rows of codes."""
    return RUNNERS[target](net, X, "none", **options)


def run_module(net, rows, raw, **options):
    names = {}
    exec(export(net, "micropython", raw=raw, **options)["model.py"], names)
    codes = rows.tolist() if raw == "none" else [names["encode"](row) for row in rows.tolist()]
    predict = names["predict" if raw == "none" else "predict_raw"]
    return np.array([predict(row) for row in rows.tolist()]), np.array([names["scores"](x) for x in codes])


def run_graph(net, rows, raw, **options):
    session = sessions(net, raw, **options)
    name, kind = {"none": ("x", np.int64), "float": ("value", np.float32), "int": ("value", np.int32)}[raw]
    label, scores = session.run(["label", "scores"], {name: rows.astype(kind)})
    assert scores.shape == (len(rows), net.target.cardinality)
    return label, scores


def sessions(net, raw="none", **options):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    return runtime.InferenceSession(
        export(net, "onnx", raw=raw, **options)[f"model{'' if raw == 'none' else '_raw'}.onnx"]
    )


RUNNERS = {"micropython": run_module, "onnx": run_graph}


def with_gaps(X, share, seed=0, codes=(-1,)):
    """Remove a share of all values."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(X.shape) < share, rng.choice(codes, X.shape), X).astype(np.int32)


def check(net, X, labels, scores):
    """Compare with Python, where all missing values are -1: integers to the bit, floats within the rounding error."""
    states = [v.cardinality for v in net.variables]
    X = np.where((X < 0) | (states <= X), -1, X).astype(np.int32)
    if isinstance(net, NeuralNet):
        exact = net_scores(net, X)
    elif isinstance(net, TreeEnsemble):
        exact = tree_scores(net, X)
    elif make_plan(net).values is not None:
        exact = integer_log_joint(net, X, gaps=True)[0]
    else:
        exact = class_scores(net, X)
        finite = np.isfinite(exact)
        bound = make_plan(net, gaps=True).gap_error
        assert (np.isneginf(scores) == ~finite).all()
        assert np.abs(scores[finite] - exact[finite]).max(initial=0) <= bound
        np.testing.assert_array_equal(labels, scores.argmax(axis=1))
        taken = np.take_along_axis(exact, labels[:, None], axis=1)[:, 0]
        assert (taken >= exact.max(axis=1) - 2 * bound).all()  # other labels only where scores are that close
        return
    np.testing.assert_array_equal(scores, exact)
    np.testing.assert_array_equal(labels, exact.argmax(axis=1))


def unusual():
    """Forests in which something is extreme."""
    form = Fixed(3, 1)
    return {
        "many states": classifier("tree", form, states=[300, 4, 2], classes=3),
        "many classes": classifier("naive", form, states=[2, 3], classes=100),
        "constant features": classifier("tree", form, states=[1, 1, 3, 1, 2], classes=4),
        "nothing but constants": classifier("naive", form, states=[1, 1], classes=4),
        "constant parents": classifier("tree", Float(32), states=[1, 1, 1, 4, 3, 2, 1], classes=2, seed=6),
        "impossible levels": classifier("tree", codebook(9, zeros=True), zeros=True, seed=3),
        "impossible floats": classifier("tree", Float(32), zeros=True, seed=4),
        "one level": classifier("tree", Codebook((-1.5,)), states=[3, 2, 4]),
        "wide": classifier("tree", Fixed(4, 2), features=40, classes=3, seed=2),
        "one binary feature": classifier("naive", Fixed(1, 0), states=[2], classes=2),
        "deep": chain(30),
    }


def chain(length):
    """Every feature but the first has the one before it as its parent."""
    net = classifier("naive", Fixed(3, 2), states=[2] * length, classes=2)
    rng, above = np.random.default_rng(0), length
    cpds = [replace(c, parents=(above, i - 1)) if i else c for i, c in enumerate(net.cpds[:above])]
    tables = [c.table if len(c.parents) < 2 else rng.integers(0, 32, (4, 2)).astype(c.table.dtype) for c in cpds]
    return replace(net, cpds=(*(replace(c, table=t) for c, t in zip(cpds, tables, strict=True)), net.cpds[-1]))


def grid():
    nets = {
        f"{structure}-{form}": classifier(structure, form, seed=f + 20 * s, classes=[2, 3, 1, 5, 26][(s + f) % 5])
        for s, structure in enumerate(("naive", "tree"))
        for f, form in enumerate(formats())
    }
    return nets | unusual()


GRID, NETS = grid(), kinds()


@pytest.mark.parametrize("key", GRID)
@pytest.mark.parametrize("target", TARGETS)
def test_networks_sum_out_missing_values(target, key):
    net = GRID[key]
    complete = every_state(net, rows=25)
    X = np.vstack([complete, *(with_gaps(complete[:25], share, codes=FAR_CODES) for share in SHARES)])
    check(net, X, *answers(target, net, X))


@pytest.mark.parametrize("key", NETS)
@pytest.mark.parametrize("target", TARGETS)
def test_neural_nets_take_missing_values_as_zero(target, key):
    net = NETS[key]
    complete = rows_of(net, rows=10)[:12]
    X = np.vstack([complete, *(with_gaps(complete, share, codes=FAR_CODES) for share in SHARES)])
    check(net, X, *answers(target, net, X))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_any_forest(data):
    form = data.draw(st.sampled_from(formats()))
    states = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=9))
    classes, seed = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 999))
    net = classifier("tree", form, states=list(states), classes=classes, seed=seed)
    X = with_gaps(every_state(net, rows=8), data.draw(st.sampled_from(SHARES)), seed)
    for target in TARGETS:
        labels, scores = answers(target, net, X)
        check(net, X, labels, scores)
        if form != Float(32):
            np.testing.assert_array_equal(scores, oracle.integer_scores(net, X)[0])


def encoded(make, raw):
    """A model whose features have every encoding."""
    encodings = [
        Cuts([-2.5, 0.1, 7.25]) if raw == "float" else Cuts([-2, 3, 90], integer=True),
        Grid(-1.0, 0.25, 5) if raw == "float" else Grid(-16, 4, 5, integer=True),
        Integers(-1, 3),
        Categories(),
    ]
    states = [4, 5, 5, 3]
    net = make(states)
    assert sorted(v.cardinality for v in net.variables) == sorted(states)
    left = list(zip(states, encodings, strict=True))
    variables = []
    for i, v in enumerate(net.variables):
        pair = next(p for p in left if p[0] == v.cardinality)
        left.remove(pair)
        kept = Variable(f"v{i}", ("a", "b", "c"))
        variables.append(kept if isinstance(pair[1], Categories) else Variable.from_encoding(f"v{i}", pair[1]))
    return replace(net, variables=tuple(variables))


MODELS = {
    "fixed": lambda states: classifier("tree", Fixed(3, 2), states=list(states)),
    "codebook": lambda states: classifier("tree", codebook(13), states=list(states)),
    "float": lambda states: classifier("tree", Float(32), states=list(states)),
    "net": lambda states: neural_net((6,), states=list(states), inputs="mixed", scaled=True),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("raw", ["float", "int"])
@pytest.mark.parametrize("target", TARGETS)
def test_raw_values_that_are_missing_or_unknown(target, raw, kind):
    net = encoded(MODELS[kind], raw)
    complete = every_state(net, rows=20)
    X = np.vstack([complete, *(with_gaps(complete, share) for share in SHARES)])
    values = make_features(net.variables, raw, gaps=True).values(X)
    for i, v in enumerate(net.variables):
        if not v.has_intervals:  # an unknown state is missing, too
            values[:20, i] = np.where(np.arange(20) % 7 == i, 99, values[:20, i])
            X[:20, i] = np.where(np.arange(20) % 7 == i, -1, X[:20, i])
    assert 0 < (X[:20] < 0).sum() < 20
    rows = values if raw == "float" else values.astype(np.int64)
    check(net, X, *RUNNERS[target](net, rows, raw))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "form", [Codebook(tuple(np.linspace(-9, 0, 400))), Fixed(4, 5), Fixed(4, 12)], ids=["book", "5", "12"]
)
def test_distances_of_all_sizes_are_added(target, form):
    """Each class adds two probabilities, some of them just within the table, some just beyond it."""
    levels = form.encode(np.linspace(-9, 0, 400))
    cpds = (
        CPD((1,), np.stack([np.full(400, levels[-1]), levels], axis=1), form),
        CPD((), np.full((1, 400), levels[-1]), form),
    )
    net = BayesNet((Variable("x", (0, 1)),), Variable("y", tuple(range(400))), cpds)
    X = np.array([[0], [1], [-1]], dtype=np.int32)
    labels, scores = answers(target, net, X)
    assert 0.4 < np.mean(scores[2] > scores[0]) < 1  # the table ends at 8 nats
    check(net, X, labels, scores)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_a_table_do_not_depend_on_each_other(target):
    net = classifier("tree", Fixed(3, 2), seed=5)
    complete = every_state(net, rows=20)
    alone = answers(target, net, complete)[1]
    together = answers(target, net, np.vstack([complete, with_gaps(complete, 0.5)]))[1]
    np.testing.assert_array_equal(together[:20], alone)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", [Fixed(3, 1), codebook(13), Float(32)], ids=str)
def test_without_gaps_the_code_for_them_is_left_out(target, form):
    net = classifier("tree", form)
    X = every_state(net, rows=20)
    labels, scores = answers(target, net, X, gaps=False)
    exact = class_scores(net, X) if form == Float(32) else integer_log_joint(net, X)[0]
    np.testing.assert_allclose(scores, exact, rtol=0, atol=1e-5 if form == Float(32) else 0)
    np.testing.assert_array_equal(labels, exact.argmax(axis=1))
    (short, *_), (long, *_) = (export(net, target, gaps=gaps).values() for gaps in (False, True))
    assert len(short) < len(long)
    complete, summed = "Rows must be complete.", "Missing values are summed out."
    for text, yes, no in ((short, complete, summed), (long, summed, complete)):
        assert yes in str(text)
        assert no not in str(text)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("structure", ["general", "trees"])
def test_structures_that_are_no_forest_take_complete_rows(target, structure):
    net = classifier(structure, Fixed(3, 1), seed=1)
    assert export(net, target) == export(net, target, gaps=False)
    assert "Rows must be complete." in str(next(iter(export(net, target).values())))


def test_modules_of_quantised_forests_have_integers_only():
    for net in [classifier("tree", form) for form in (Fixed(3, 1), Fixed(6, 6), codebook(13))]:
        text = export(net, "micropython")["model.py"]
        assert "_sum_out" in text
        assert not re.search(r"import|float|\d\.\d|/", re.sub(r"#.*|b['\"].*|\"\"\".*", "", text))
        names = {}
        exec(text, names)
        assert names["FRACTION"] == integer_log_joint(net, every_state(net), gaps=True)[1]


def test_tables_without_rows_and_large_graphs(monkeypatch):
    net = chain(8)
    assert answers("onnx", net, np.empty((0, 8), np.int32))[1].shape == (0, 2)
    sizes = partial(monkeypatch.setattr, "tinybayes.deploy.programs.onnx.MAX_NODES")
    sizes(50)
    with pytest.raises(TinybayesError, match=r"onnx: expected at most 50 nodes .* gaps=False"):
        export(net, "onnx")
    assert export(net, "onnx", gaps=False)


def test_equal_features_share_the_nodes_of_a_graph():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")

    def nodes(features):
        net = classifier("naive", Fixed(3, 1), states=[4] * features)
        model = onnx.load_from_string(export(net, "onnx", raw="none")["model.onnx"])
        (choice,) = (node for node in model.graph.node if node.op_type == "If")
        return [len(branch.g.node) for branch in choice.attribute]

    assert nodes(3) == nodes(300)
