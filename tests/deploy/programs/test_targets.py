"""The contract of every target: the integers and labels of Python, for every structure and number format."""

import numpy as np
import pytest

from cases import thinned
from networks import STRUCTURES, classifier, codebook, every_state, formats
from neural_nets import kinds, neural_net, rows_of
from targets_host import RUNNERS, Case, simulate
from tinybayes import datasets, learn_classifier, quantize
from tinybayes.deploy.export import TARGETS, export, write_files
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.verilog import to_verilog
from tinybayes.errors import FileError, TinybayesError
from tinybayes.infer import class_scores
from tinybayes.infer.integers import integer_log_joint
from tinybayes.model import CPD, BayesNet, Fixed, Float, NeuralNet, Variable
from zoo import hand_circuit

WHOLE = ("verilog", "verilog-pipelined")  # targets without floats


def grid():
    """Every structure in every format, the classes from 1 to 26, and what is unusual."""
    nets = {}
    for s, structure in enumerate(STRUCTURES):
        for f, form in enumerate(formats()):
            classes = [2, 3, 1, 5, 10, 26][(s + f) % 6]
            nets[f"{structure}-{form}"] = classifier(structure, form, seed=50 * s + f, classes=classes)
    form = Fixed(3, 1)
    nothing = BayesNet((), Variable("y", ("a", "b")), (CPD((), np.array([[2, 1]], np.uint8), form),))
    return nets | {
        "wide sums": classifier("naive", Fixed(4, 4), features=300, classes=3),
        "many states": classifier("tree", form, states=[300, 4, 2], classes=7),
        "many classes": classifier("naive", form, states=[2, 3], classes=300),
        "impossible levels": classifier("tree", codebook(9, zeros=True), zeros=True, seed=3),
        "zeros": classifier("general", Float(32), zeros=True, seed=4),
        "float64": classifier("general", Float(64), seed=5),
        "constant features": classifier("naive", form, states=[1, 1], classes=4),
        "constant floats": classifier("naive", Float(32), states=[1, 1], classes=4),
        "equal scores": classifier("naive", Fixed(1, 0), states=[2, 2, 2], classes=9),
        "no feature": nothing,
    }


def digits():
    """A network that was learned, and real rows after those with every state."""
    train, test = datasets.load("digits")
    net = quantize(learn_classifier(train, structure="chow-liu"), Fixed(3, 1))
    return Case("digits", net, np.vstack([every_state(net, rows=20), test.X[:100]]))


CASES = {key: Case(f"net{i}", net, every_state(net, rows=60)) for i, (key, net) in enumerate(grid().items())}
CASES |= {key: Case(f"layers{i}", net, rows_of(net)) for i, (key, net) in enumerate(kinds().items())}
CASES["digits"] = digits()
# C, C++ and Arduino share the code of all functions, and test_gaps_python.py runs complete rows, too. Other cases of
# these targets are in the exhaustive suite.
SHARED = ("c", "cpp", "arduino", "micropython", "javascript", "onnx")
FEW = {*list(CASES)[1::5], "tree-fixed2.0", "digits", "many classes", "no feature", "zeros"}
FEW |= {"conv scaled", "conv one-hot"}


def contract():
    """Every case of every target, except neural networks in Verilog, which test_verilog_net.py tests."""
    for target in TARGETS:
        for key, case in CASES.items():
            if target in WHOLE and isinstance(case.net, NeuralNet):
                continue
            rest = target in SHARED and key not in FEW
            yield pytest.param(target, key, marks=[pytest.mark.exhaustive] if rest else [])


def has_tables(case):
    """Tell whether a model is one of tables for Verilog."""
    return case.whole and isinstance(case.net, BayesNet)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What a target answers, its cases built together when the first is needed."""
    known, missing = {}, {}

    def build(target, few):
        cases = {key: case for key, case in CASES.items() if target not in WHOLE or has_tables(case)}
        cases = {key: case for key, case in cases.items() if target not in SHARED or (key in FEW) == few}
        known[target, few] = None  # a build that fails is tried once
        try:
            found = RUNNERS[target](tmp_path_factory.mktemp(target), list(cases.values()))
        except pytest.skip.Exception as reason:
            missing[target] = str(reason)
        else:
            known[target, few] = dict(zip(cases, found, strict=True))

    def answer(target, key):
        few = key in FEW or target not in SHARED
        if (target, few) not in known:
            build(target, few)
        if target in missing:
            pytest.skip(missing[target])
        assert known[target, few] is not None, "the build failed, see the first test of this target"
        return known[target, few][key]

    return answer


@pytest.mark.parametrize(("target", "key"), list(contract()))
def test_every_target_says_what_python_says(answers, target, key):
    case = CASES[key]
    if target in WHOLE and not has_tables(case):
        with pytest.raises(TinybayesError, match="expected a model in fixed point or with a codebook"):
            export(case.net, target, name=case.name)
        return
    labels, scores = answers(target, key)
    if case.whole:
        exact = case.complete if target in WHOLE else case.exact
        np.testing.assert_array_equal(scores, exact)
        np.testing.assert_array_equal(labels, exact.argmax(axis=1))
        return
    exact = class_scores(case.net, case.X)
    finite = np.isfinite(exact)
    assert np.abs(scores[finite] - exact[finite]).max() <= make_plan(case.net).float_error
    assert (np.isneginf(scores) == ~finite).all()
    np.testing.assert_array_equal(labels, scores.argmax(axis=1))
    if target in ("cpp", "arduino"):
        np.testing.assert_array_equal(scores, answers("c", key)[1])


def test_the_grid_visits_every_state_and_has_ties():
    for case in CASES.values():
        assert [len(np.unique(column)) for column in case.X.T] == [v.cardinality for v in case.net.variables]
    scores = integer_log_joint(CASES["equal scores"].net, CASES["equal scores"].X)[0]
    assert ((scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1).any()


@pytest.mark.parametrize("key", thinned(CASES, FEW))
def test_code_is_written_neatly(key):
    for target in ("c", "cpp", "micropython", *(WHOLE if has_tables(CASES[key]) else ())):
        for name, content in export(CASES[key].net, target, name="net").items():
            lines = content.splitlines()
            assert [line for line in lines if line != line.rstrip() or "\t" in line] == []
            assert content.endswith("\n")
            assert not content.endswith("\n\n")
            if not name.endswith("_tb.v"):
                odd = [s for s in lines if (len(s) - len(s.lstrip(" "))) % 4 and not s.startswith(" *")]
                assert odd == []


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_model_gives_the_same_bytes(target):
    net = classifier("tree", Fixed(3, 1))
    assert export(net, target) == export(net, target)
    net = neural_net(((4,), 5), image=(4, 4))
    assert export(net, target) == export(net, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("net", "options", "words"),
    [
        (classifier("naive", Fixed(3, 1)), {"name": "2fast"}, "name: expected a C identifier"),
        (classifier("naive", Fixed(3, 1)), {"name": "stdint"}, "name: expected a name that no language reserves"),
        (classifier("naive", Fixed(3, 1)), {"raw": "double"}, "raw: expected"),
        (classifier("naive", Fixed(2, 30), states=[4] * 8), {}, "expected sums of all tables below 2\\*\\*31"),
        (classifier("naive", Fixed(3, 1), states=[70_000, 2]), {}, "expected at most 65,536 states"),
    ],
    ids=["not a name", "a header's name", "unknown numbers", "wide sums", "many states"],
)
def test_what_no_target_can_write(target, net, options, words):
    with pytest.raises(TinybayesError, match=words):
        export(net, target, **options)


@pytest.mark.parametrize("target", [t for t in TARGETS if t not in ("c", "cpp", "arduino", "javascript")])
def test_circuits_are_written_in_the_c_family_and_javascript_only(target):
    with pytest.raises(TinybayesError, match="expected a Bayesian network with a class, got Circuit"):
        export(hand_circuit(), target)


def test_unknown_targets_and_names_that_one_language_keeps():
    net = classifier("naive", Fixed(3, 1))
    with pytest.raises(TinybayesError, match=r"to: expected one of c, cpp, arduino.*got 'rust'"):
        export(net, "rust")
    with pytest.raises(TinybayesError, match="expected a name that does not begin with arduino"):
        export(net, "arduino", name="arduino_model")
    with pytest.raises(TinybayesError, match="expected a name that no language reserves"):
        export(net, "verilog", name="table")
    with pytest.raises(TinybayesError, match="expected no raw measurements in Verilog"):
        export(net, "verilog", raw="int")
    assert list(export(net, "c", name="table")) == ["table.h", "table.c"]


def test_wide_tables_are_not_for_verilog(monkeypatch):
    net = classifier("tree", Fixed(3, 1), states=[300, 300, 2], classes=2, seed=1)
    with pytest.raises(TinybayesError, match="verilog: expected tables of at most 65,536 rows"):
        export(net, "verilog")
    monkeypatch.setattr("tinybayes.deploy.programs.verilog.MAX_ENTRIES", 10)
    with pytest.raises(TinybayesError, match="verilog: expected at most 10 entries"):
        export(classifier("naive", Fixed(3, 1)), "verilog")


def test_files_are_written_together_or_not_at_all(tmp_path):
    (tmp_path / "b").mkdir()
    with pytest.raises(FileError, match="a file that can be written"):
        write_files({"a": "text", "b": b"bytes"}, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    write_files({"a": "text", "c": b"\xff"}, tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder" / "c").read_bytes() == b"\xff"


@pytest.mark.parametrize("target", WHOLE)
def test_the_test_bench_passes_and_can_fail(tmp_path, target):
    for name, form in (("fixed", Fixed(3, 1)), ("tied", codebook(13))):
        write_files(export(classifier("general", form, classes=5), target, name=f"{name}_net"), tmp_path)
    files = [p.name for p in tmp_path.glob("*.v")]
    assert sorted(simulate(tmp_path, *files).splitlines()) == ["fixed_net: PASS, 64 rows", "tied_net: PASS, 64 rows"]
    module = tmp_path / "fixed_net.v"
    module.write_text(module.read_text().replace("default: rom0", "0: rom0").replace("best = b", "best = a", 1))
    module.write_text(module.read_text().replace("] < a[", "] > a["))
    assert "fixed_net: FAIL" in simulate(tmp_path, *files)


def test_a_module_without_test_bench():
    assert list(to_verilog(classifier("naive", Fixed(3, 1)), checks=0)) == ["model.v"]
