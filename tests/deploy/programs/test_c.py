"""Exported C for complete rows against Python: the same integers and labels for every structure and format."""

import numpy as np
import pytest

from c_host import labels_and_codes, labels_and_scores
from cases import thinned
from networks import STRUCTURES, classifier, codebook, every_state, formats
from tinybayes.deploy.export import write_files
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.errors import TinybayesError
from tinybayes.infer import class_scores
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.scores import scorer
from tinybayes.model import CPD, BayesNet, Cuts, Fixed, Float, Variable


def agrees(directory, net, X):
    texts = to_c(net, name="net", gaps=False, extras=False)
    if make_plan(net).values is None:
        labels, scores = labels_and_scores(directory, texts, "net", net, X, score="float")
        exact = class_scores(net, X)
        finite = np.isfinite(exact)
        assert np.abs(scores[finite] - exact[finite]).max() <= make_plan(net).float_error
        assert (np.isneginf(scores) == ~finite).all()
        np.testing.assert_array_equal(labels, scores.argmax(axis=1))
    else:
        labels, scores = labels_and_scores(directory, texts, "net", net, X)
        exact, _ = integer_log_joint(net, X)
        np.testing.assert_array_equal(scores, exact)
        np.testing.assert_array_equal(labels, exact.argmax(axis=1))


USUAL = (Fixed(1, 0), Fixed(3, 1), Fixed(8, 16), codebook(13), Float(32))  # others are in test_targets.py, too


@pytest.mark.parametrize("form", thinned(formats(), USUAL), ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_scores_and_labels_are_those_of_python(tmp_path, structure, form):
    seed = STRUCTURES.index(structure) * 100 + formats().index(form)
    classes = [2, 3, 5, 10, 26, 40][seed % 6]
    net = classifier(structure, form, seed=seed, classes=classes)
    agrees(tmp_path, net, every_state(net))


@pytest.mark.parametrize(
    "net",
    [
        classifier("naive", Fixed(4, 4), features=400, classes=3),  # sums above 16 bits
        classifier("tree", Fixed(3, 1), states=[300, 4, 2], classes=7),  # states above 8 bits
        classifier("naive", Fixed(3, 1), states=[2, 3], classes=300),  # labels above 8 bits, many planes
        classifier("tree", codebook(9, zeros=True), zeros=True, seed=3),
        classifier("general", Float(32), zeros=True, seed=4),
        classifier("general", Float(64), seed=5),
        classifier("naive", Fixed(3, 1), states=[1, 1], classes=4),  # nothing to look at
    ],
    ids=["wide sums", "many states", "many classes", "impossible levels", "zeros", "float64", "constant"],
)
def test_unusual_sizes(tmp_path, net):
    agrees(tmp_path, net, every_state(net))


def cut(edges, form, seed=0):
    rng = np.random.default_rng(seed)
    variables = [Variable.from_encoding(f"v{i}", Cuts(e)) for i, e in enumerate(edges)]
    variables.append(Variable("colour", ("red", "green", "blue")))
    target = Variable("y", ("no", "yes"))
    above = len(variables)
    tables = [rng.dirichlet(np.ones(v.cardinality), 2) for v in variables]
    cpds = [CPD((above,), form.encode(np.log(t)), form) for t in tables]
    prior = CPD((), form.encode(np.log([[0.4, 0.6]])), form)
    return BayesNet(tuple(variables), target, (*cpds, prior))


@pytest.mark.parametrize("kind", ["float", "int32_t"])
def test_raw_values_fall_into_the_same_states(tmp_path, kind):
    edges = [[0.1, 0.7, 3.0], [-5.5], [-2.0, 1e-3, 16777217.0]]
    net = cut(edges, Fixed(3, 1))
    near = [np.float32(e) for row in edges for e in row]
    values = np.concatenate([near, np.nextafter(near, np.float32(9e9)), np.nextafter(near, np.float32(-9e9))])
    values = np.array([*values, -7, -6, -5, -3, -2, 0, 1, 2, 3, 16777216, 16777218, 2e9], dtype=np.float64)
    values = np.unique(np.floor(values) if kind == "int32_t" else values)
    raw = np.column_stack([values, np.roll(values, 1), np.roll(values, 2), np.arange(len(values)) % 3])
    texts = to_c(net, name="net", raw="float" if kind == "float" else "int")
    labels, codes = labels_and_codes(tmp_path, texts, "net", net, raw, kind)
    wanted = np.column_stack([*(Cuts(e).codes(raw[:, i]) for i, e in enumerate(edges)), raw[:, 3]])
    np.testing.assert_array_equal(codes, wanted)
    np.testing.assert_array_equal(labels, integer_log_joint(net, wanted.astype(np.int32))[0].argmax(axis=1))


def test_quantised_code_has_no_float_and_needs_only_stdint():
    net = classifier("tree", Fixed(3, 1))
    text = to_c(net)["model.c"] + to_c(net)["model.h"]
    assert not any(word in text for word in ("float", "double", "malloc"))
    assert {line for line in text.splitlines() if line.startswith("#include")} == {
        '#include "model.h"',
        "#include <stdint.h>",
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "2fast"}, "name: expected a C identifier"),
        ({"name": "while"}, "name: expected a name that no language reserves"),
        ({"name": "a__b"}, "name: expected a name that no language reserves"),
        ({"name": "x" * 40}, "name: expected a C identifier of at most 31 characters"),
        ({"raw": "double"}, "raw: expected one of float, int, none"),
    ],
)
def test_names_that_no_compiler_takes(options, words):
    with pytest.raises(TinybayesError, match=words):
        to_c(classifier("naive", Fixed(3, 1)), **options)


def test_sums_that_no_integer_holds():
    net = classifier("naive", Fixed(2, 30), states=[4] * 8)
    with pytest.raises(TinybayesError, match="integer sums: expected sums of all tables below 2\\*\\*31"):
        to_c(net)


def test_too_many_states():
    net = classifier("naive", Fixed(3, 1), states=[70_000, 2], classes=2)
    with pytest.raises(TinybayesError, match="expected at most 65,536 states"):
        to_c(net)


def test_wild_names_of_variables_become_distinct_constants(tmp_path):
    variables = (Variable("petal length (cm)", ("a b", "a-b", "*/ int x;")), Variable("petal_length_cm", ("ä", "ö")))
    form = Fixed(3, 1)
    cpds = [CPD((2,), np.zeros((2, 3), np.uint8), form), CPD((2,), np.ones((2, 2), np.uint8), form)]
    net = BayesNet(variables, Variable("??/", ("int", "INT")), (*cpds, CPD((), np.zeros((1, 2), np.uint8), form)))
    agrees(tmp_path, net, every_state(net, rows=12))


def test_nothing_is_written_where_nothing_can_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TinybayesError, match="expected a directory"):
        write_files(to_c(classifier("naive", Fixed(3, 1))), tmp_path / "file")


def test_scores_do_not_depend_on_what_the_memory_held():
    """Sums over decision trees once began with the old content of the output times zero, which may be NaN."""
    net = classifier("trees", Float(32), seed=2)
    X = every_state(net)
    out = np.full((len(X), 3), np.nan)
    scorer(net).into(X, out)
    assert np.isfinite(out).all()
