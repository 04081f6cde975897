"""Missing values in C and C++: the integers of Python for every row, and no code that reads outside a table."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from test_encoder import rows_around, variables_of
from test_net_c import SPECIAL

import gaps as oracle
from c_host import SANITIZERS, labels_and_codes
from cases import thinned
from networks import classifier, codebook, every_state
from neural_nets import kinds, neural_net, rows_of
from raw_values import expected_codes
from targets_host import Case, run_c, run_cpp
from tinybayes.deploy._boards.boards import PACKAGES
from tinybayes.deploy.export import export
from tinybayes.deploy.measure import measure
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.cpp import to_cpp
from tinybayes.deploy.programs.gaps import FAR, LOGARITHM, POWER, make_forest
from tinybayes.deploy.programs.plan import LOG_ADD_ERROR, make_plan
from tinybayes.infer import class_scores
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import BayesNet, Categories, Fixed, Float, Inputs, Integers, NeuralNet, Variable

FORMATS = [*(Fixed(min(b, 3), b - min(b, 3)) for b in range(1, 9)), Fixed(5, -2), Fixed(6, 14), Fixed(8, 16)]
FORMATS += [codebook(2), codebook(13), codebook(300), Float(32)]


def networks():
    """Naive Bayes and forests in every format, 2 to 30 classes, features of 1 to 300 states."""
    nets = {}
    for i, form in enumerate(FORMATS):
        classes = [2, 3, 7, 10, 13, 30][i % 6]
        nets[f"naive {form}"] = classifier("naive", form, seed=i, classes=classes)
        nets[f"forest {form}"] = classifier("forest", form, seed=i, classes=classes, features=8)
    fixed = Fixed(3, 1)
    return nets | {
        "chunks": classifier("forest", fixed, states=[3] * 60, classes=10),
        "chunks of naive Bayes": classifier("naive", fixed, states=[3] * 60, classes=10),
        "wide sums": classifier("naive", Fixed(4, 4), states=[3] * 300, classes=3),
        "many states": classifier("tree", fixed, states=[300, 4, 2, 1], classes=7, seed=2),
        "255 states": classifier("forest", fixed, states=[255, 3, 5], classes=2),
        "256 states": classifier("forest", fixed, states=[256, 3, 5], classes=2),
        "65,536 states": classifier("naive", fixed, states=[2, 65_536, 3], classes=2),
        "many classes": classifier("tree", fixed, states=[2, 3, 2], classes=300),
        "chain": classifier("tree", Fixed(3, 2), states=[2] * 40, classes=3, seed=4),
        "one state": classifier("forest", fixed, states=[1, 3, 1, 1, 4, 1, 2], classes=4, seed=5),
        "only one state": classifier("naive", fixed, states=[1, 1], classes=4),
        "only one state, floats": classifier("forest", Float(32), states=[1, 1], classes=4),
        "impossible levels": classifier("tree", codebook(9, zeros=True), zeros=True, seed=3),
        "impossible floats": classifier("forest", Float(32), zeros=True, seed=4, features=7),
        "impossible floats of naive Bayes": classifier("naive", Float(32), zeros=True, seed=4),
    }


def indicators_with_centres():
    """A net whose indicators have centres, which a missing value must not leave."""
    net = neural_net((5,), inputs="mixed", states=[3, 4, 2], seed=3)
    inputs = net.inputs
    return replace(net, inputs=Inputs(inputs.feature, inputs.state, inputs.multiplier, np.arange(len(inputs)) - 2))


def neural_nets():
    chosen = {key: net for key, net in kinds().items() if key not in ("many classes", "wide 8 bits", "wide")}
    chosen |= SPECIAL | {"indicators with centres": indicators_with_centres()}
    chosen["65,536 states"] = neural_net((), bits=1, inputs="one-hot", states=[3, 65_536, 2], classes=2)
    return chosen | {
        f"{kind} {scaled} {bits}": neural_net((4,), bits=bits, inputs=kind, scaled=scaled, seed=bits, classes=3 + bits)
        for bits, (kind, scaled) in enumerate(
            [(k, s) for k in ("ordinal", "one-hot", "mixed", "some") for s in (True, False)], start=1
        )
    }


def make_cases():
    cases = {}
    nets = networks() | {f"net {key}": net for key, net in neural_nets().items()}
    for i, (key, net) in enumerate(nets.items()):
        complete = (rows_of if isinstance(net, NeuralNet) else every_state)(net, rows=12)
        X = oracle.with_more_and_more_gaps(complete[:40], seed=i)
        states = [v.cardinality for v in net.variables]
        codes = oracle.codes_of(X, states, make_plan(net, gaps=True).features.missing, seed=i)
        cases[key] = Case(f"net{i}", net, X, codes)
        if isinstance(net, NeuralNet) and not net.layers[0].convolution:
            cases[f"{key}, lanes"] = Case(f"lanes{i}", net, X, codes, "lanes")
    return cases


CASES = make_cases()
UNUSUAL = [key for key in CASES if not key.startswith(("naive", "forest", "net ")) and key != "65,536 states"]
FEW = {*list(CASES)[::3], *UNUSUAL[::2], "forest fixed3.1", "naive float32", "impossible floats of naive Bayes"}
FEW = FEW - {"many classes"} | {
    "net conv one-hot",
    "net some False 8",
    "net some False 8, lanes",
    "net mixed True 5, lanes",
}
IN_CPP = list(CASES)[::12]


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    """What the C of a model says; models are built together under sanitizers, first the few of the quick suite."""
    known = {}

    def answer(key):
        if key not in known:
            keys = [other for other in CASES if (other in FEW) == (key in FEW)]
            found = run_c(tmp_path_factory.mktemp("c"), [CASES[other] for other in keys], SANITIZERS)
            known.update(zip(keys, found, strict=True))
        return known[key]

    return answer


@pytest.fixture(scope="module")
def in_cpp(tmp_path_factory):
    cases = [CASES[key] for key in IN_CPP]
    return dict(zip(IN_CPP, run_cpp(tmp_path_factory.mktemp("cpp"), cases), strict=True))


@pytest.mark.parametrize("key", thinned(CASES, FEW))
def test_scores_and_labels_are_those_of_python(in_c, key):
    case, (labels, scores) = CASES[key], in_c(key)
    assert case.gaps
    if case.whole:
        np.testing.assert_array_equal(scores, case.exact)
    else:
        exact = class_scores(case.net, case.X)
        finite = np.isfinite(exact)
        assert (np.isneginf(scores) == ~finite).all()
        assert np.abs(scores[finite] - exact[finite]).max() <= make_plan(case.net, gaps=True).gap_error
    np.testing.assert_array_equal(labels, scores.argmax(axis=1))


@pytest.mark.parametrize("key", IN_CPP)
def test_cpp_says_what_c_says(in_c, in_cpp, key):
    for found, wanted in zip(in_cpp[key], in_c(key), strict=True):
        np.testing.assert_array_equal(found, wanted)


WHOLE = [key for key, case in CASES.items() if isinstance(case.net, BayesNet) and case.whole]


@pytest.mark.parametrize("key", thinned(WHOLE, set(WHOLE) - {"65,536 states"}))
def test_python_says_what_the_specification_says(key):
    case = CASES[key]
    rows = np.random.default_rng(0).permutation(len(case.X))[: 3 if len(case.net.variables) > 20 else 12]
    classes = case.net.target.cardinality
    if classes <= 30:
        np.testing.assert_array_equal(case.exact[rows], oracle.integer_scores(case.net, case.X[rows])[0])


def encoded(kind, make, seed):
    """Return a model whose features have encodings of every kind, and raw rows around all cut points, with gaps."""
    rng = np.random.default_rng(seed)
    drawn = [v for v in (*variables_of(rng, 1), *variables_of(rng, 2)) if 1 < v.cardinality < 30]
    drawn = [v for v in drawn if kind == "float" or isinstance(v.encoding, Integers | Categories)]
    drawn += [Variable.from_encoding("", Integers(k, k + 3)) for k in range(4)]
    net = make([v.cardinality for v in drawn])
    named = []
    for i, variable in enumerate(net.variables):  # each gets an encoding with as many states
        named.append(replace(next(v for v in drawn if v.cardinality == variable.cardinality), name=f"v{i}"))
        drawn.remove(next(v for v in drawn if v.cardinality == variable.cardinality))
    net = replace(net, variables=tuple(named))
    raw = rows_around(net.variables, rng, rows=150).astype(np.float64)
    raw[rng.random(raw.shape) < 0.05] = np.nan
    return net, raw if kind == "float" else np.where(np.isnan(raw), -(2**31), np.clip(raw, -1e9, 1e9).round())


def forest_over(states):
    return classifier("forest", Fixed(3, 2), states=list(states), classes=5, seed=1)


def neural_over(states):
    return neural_net((6,), inputs="mixed", states=list(states), classes=4, scaled=True)


@pytest.mark.parametrize("kind", ["float", "int"])
@pytest.mark.parametrize("make", [forest_over, neural_over])
def test_raw_rows_with_gaps(tmp_path, make, kind):
    net, raw = encoded(kind, make, seed=3)
    values = np.where(raw == -(2**31), np.nan, raw)
    codes = expected_codes(net.variables, values)
    assert (codes < 0).any(axis=0).all()
    texts = to_c(net, name="net", raw=kind)
    labels, found = labels_and_codes(tmp_path, texts, "net", net, raw, "float" if kind == "float" else "int32_t")
    np.testing.assert_array_equal(np.where(found == 255, -1, found), codes)
    case = Case("net", net, codes.astype(np.int32))
    np.testing.assert_array_equal(labels, case.exact.argmax(axis=1))


def test_headers_say_how_gaps_are_taken():
    small, large = (classifier("forest", Fixed(3, 1), states=[k, 3, 2]) for k in (255, 256))
    text = to_c(small, name="net")["net.h"]
    assert "#define NET_MISSING 255\n" in text
    assert "#define NET_MISSING_VALUE (-2147483647 - 1)\n" in text
    assert "#define NET_FRACTION 10\n" in text
    assert "Missing values are summed out.\n * A code that is not a state is missing, NET_MISSING for instance;" in text
    assert "#define NET_MISSING 65535\n" in to_c(large, name="net")["net.h"]
    assert "MISSING_VALUE" not in to_c(small, name="net", raw="float")["net.h"]
    assert "; so is a raw value that is not a number." in to_c(small, name="net", raw="float")["net.h"]
    assert "constexpr State missing = 255;\n" in to_cpp(small, name="net")["net.hpp"]
    assert "NET_FRACTION" not in to_c(neural_net((3,)), name="net")["net.h"]
    assert "A missing value adds nothing." in to_c(neural_net((3,)), name="net")["net.h"]


@pytest.mark.parametrize("target", ["c", "cpp", "arduino"])
def test_without_gaps_there_is_no_code_for_them(target):
    net = classifier("forest", Fixed(3, 1))
    plain, full = (export(net, target, gaps=gaps, raw="none") for gaps in (False, True))
    assert sum(map(len, plain.values())) < sum(map(len, full.values()))
    if target != "arduino":
        text = "".join(plain.values())
        assert not re.search("log_add|missing|FRACTION", text, re.IGNORECASE)
        assert "Rows must be complete." in text


def test_networks_that_are_no_forest_take_complete_rows():
    for structure in ("general", "trees"):
        net = classifier(structure, Fixed(3, 1), seed=1)
        assert to_c(net) == to_c(net, gaps=False)
        assert "Rows must be complete." in to_c(net)["model.h"]


def test_names_of_features_do_not_collide_with_constants():
    net, names = classifier("naive", Fixed(3, 1), states=[2, 3]), ("missing", "fraction")
    net = replace(net, variables=tuple(replace(v, name=n) for v, n in zip(net.variables, names, strict=True)))
    header = to_c(net, name="net")["net.h"]
    assert "NET_MISSING_2 = 0," in header
    assert "NET_FRACTION_2 = 1 " in header
    header = to_c(net, name="net", gaps=False)["net.h"]
    assert "NET_MISSING = 0," in header
    assert "NET_FRACTION = 1 " in header


def test_slots_are_as_large_as_the_widest_feature_of_each_depth():
    net = classifier("tree", Fixed(3, 1), states=[2, 3, 4, 5, 6, 7], seed=1)
    forest = make_forest(make_plan(net, gaps=True))
    depth = {-1: -1}
    for branch in reversed(forest.terms):
        depth[branch.feature] = depth[branch.parent] + 1
    widest = {d: max(b.states for b in forest.terms if depth[b.feature] == d) for d in set(depth.values()) - {-1}}
    assert forest.size == 1 + sum(widest.values())
    assert f"int32_t below[{forest.size}];" in to_c(net)["model.c"]
    order = [branch.feature for branch in forest.terms]
    assert all(b.parent < 0 or order.index(b.parent) > order.index(b.feature) for b in forest.terms)


def test_polynomials_add_probabilities_as_exactly_as_stated():
    """The operations of the C code in 32-bit floats."""
    distance = np.concatenate([np.linspace(0, FAR, 200_001), np.geomspace(1e-9, FAR, 10_000)]).astype(np.float32)
    scaled = distance * np.float32(1.44269504)
    whole = scaled.astype(np.int64)
    value = polynomial(POWER, scaled - whole.astype(np.float32))
    value = np.ldexp(value, -whole).astype(np.float32)
    found = polynomial(LOGARITHM, value)
    exact = np.log1p(np.exp(-distance.astype(np.float64)))
    assert np.abs(found - exact).max() < LOG_ADD_ERROR
    assert np.log1p(np.exp(-FAR)) < LOG_ADD_ERROR


def polynomial(coefficients, x):
    total = np.zeros_like(x)
    for coefficient in coefficients:
        total = (total * x).astype(np.float32) + np.float32(coefficient)
    return total


@pytest.mark.skipif(any(shutil.which(tool) is None for tool in PACKAGES), reason="no tools for microcontrollers")
@pytest.mark.parametrize(("structure", "most"), [("naive", 350), ("tree", 550)])
def test_gaps_cost_little_flash(structure, most):
    net = classifier(structure, Fixed(3, 1), states=[4] * 16, classes=10)
    X = every_state(net, rows=8)
    flash = []
    for gaps in (False, True):
        (board,) = measure(to_c(net, name="net", gaps=gaps), "net", X, boards=["m0+"])
        flash.append(board.flash)
    assert flash[1] - flash[0] < most


@pytest.mark.skipif(any(shutil.which(tool) is None for tool in PACKAGES), reason="no tools for microcontrollers")
@pytest.mark.parametrize("key", ["naive fixed3.1", "forest fixed3.1", "forest codebook13", "net mixed True 5"])
def test_an_emulated_core_says_what_python_says(key):
    case = CASES[key]
    (board,) = measure(to_c(case.net, name="net"), "net", case.given, boards=["m0+"])
    exact = net_scores(case.net, case.X) if isinstance(case.net, NeuralNet) else case.exact
    np.testing.assert_array_equal(board.scores, exact)
    np.testing.assert_array_equal(board.labels, exact.argmax(axis=1))
