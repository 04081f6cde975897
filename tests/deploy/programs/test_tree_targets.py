"""Tree ensembles in MicroPython, ONNX and Verilog: the integers and labels of Python, gaps included."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_devices import shorter
from test_gaps_python import FAR_CODES, SHARES, answers, sessions, with_gaps
from test_gaps_python import RUNNERS as IN_PYTHON

from cases import thinned
from micropython_host import run_micropython
from networks import every_state
from raw_values import expected_codes, float_rows, int_rows, numbers_of, variable_of
from targets_host import RUNNERS as HOSTS
from targets_host import Case, simulate
from tinybayes.deploy.export import export, write_files
from tinybayes.errors import TinybayesError
from tinybayes.infer.trees import tree_scores
from tinybayes.model import Cuts, Grid, Integers, TreeEnsemble
from tree_ensembles import kinds, plain_scores, tree_ensemble

KINDS = kinds()
PYTHON = ("micropython", "onnx")


def check(model, X, labels, scores):
    """Compare with Python, where all missing values are -1."""
    X = np.where((X < 0) | ([v.cardinality for v in model.variables] <= X), -1, X).astype(np.int32)
    exact = tree_scores(model, X)
    np.testing.assert_array_equal(exact[:8], plain_scores(model, X[:8]))
    np.testing.assert_array_equal(scores, exact)
    np.testing.assert_array_equal(labels, exact.argmax(axis=1))


@pytest.mark.parametrize("key", KINDS)
@pytest.mark.parametrize("target", PYTHON)
def test_every_kind_with_gaps(target, key):
    complete = every_state(KINDS[key], rows=25)[:60]
    X = np.vstack([complete, *(with_gaps(complete[:25], share, codes=FAR_CODES) for share in SHARES)])
    check(KINDS[key], X, *answers(target, KINDS[key], X))


@pytest.mark.parametrize("key", KINDS)
@pytest.mark.parametrize("target", PYTHON)
def test_every_kind_without_gaps(target, key):
    X = every_state(KINDS[key], rows=25)[:60]
    check(KINDS[key], X, *answers(target, KINDS[key], X, gaps=False))


@st.composite
def ensembles(draw):
    kind = draw(st.sampled_from(["class", "all", "votes"]))
    symmetric = draw(st.booleans())
    leaves = draw(st.sampled_from([1, 2, 4, 8])) if symmetric else draw(st.integers(1, 9))
    return tree_ensemble(
        draw(st.integers(1, 6)),
        leaves=leaves,
        kind=kind,
        sets=draw(st.sampled_from([0, 0.5, 1])),
        states=draw(st.lists(st.integers(1, 20), min_size=1, max_size=5)),
        classes=draw(st.integers(1, 4)),
        values=draw(st.sampled_from([None, 1, 3])),
        largest=draw(st.sampled_from([1, 127, 128, 40_000, 2**24, 2**28])),
        symmetric=symmetric,
        start=draw(st.booleans()),
        seed=draw(st.integers(0, 999)),
    )


@settings(max_examples=40)
@given(ensembles(), st.sampled_from(SHARES), st.booleans())
def test_any_ensemble(model, share, gaps):
    X = every_state(model, rows=10)
    X = with_gaps(X, share) if gaps else X
    for target in PYTHON:
        check(model, X, *answers(target, model, X, gaps=gaps))


def encoded(model, raw, *, numbers):
    """Give the features encodings: cuts and grids alone, or every kind in turn."""
    integer, variables = raw == "int", []
    for i, v in enumerate(model.variables):
        k = v.cardinality
        cuts = Cuts(np.arange(k - 1) * (3 if integer else 0.7) - 5, integer=integer)
        grid = Grid(-8, 4, k, integer=True) if integer else Grid(-1, 0.25, k)
        variables.append(variable_of(f"v{i}", [cuts, grid, Integers(-2, k - 3), k][i % (2 if numbers else 4)]))
    return replace(model, variables=tuple(variables))


def rows_of(model, raw, seed, rows=150):
    values = (int_rows if raw == "int" else float_rows)(model.variables, np.random.default_rng(seed), rows)
    return values, expected_codes(model.variables, numbers_of(values)).astype(np.int32)


RAW_KINDS = [key for key in KINDS if key not in ("many features", "many classes", "many classes, all")]


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "every encoding"])
@pytest.mark.parametrize("raw", ["float", "int"])
@pytest.mark.parametrize("key", thinned(RAW_KINDS, ("no sets", "sets", "votes 7 trees", "wide values", "single leaf")))
@pytest.mark.parametrize("target", PYTHON)
def test_raw_rows(target, key, raw, numbers):
    model = encoded(KINDS[key], raw, numbers=numbers)
    values, codes = rows_of(model, raw, 5)
    check(model, codes, *IN_PYTHON[target](model, values, raw))
    complete = (codes >= 0).all(axis=1)
    assert complete.any()
    check(model, codes[complete], *IN_PYTHON[target](model, values[complete], raw, gaps=False))


@pytest.mark.parametrize("target", PYTHON)
def test_integers_that_floats_do_not_tell_apart(target):
    """Cuts beyond 2**24, where a graph cannot compare floats."""
    model = tree_ensemble(5, leaves=9, states=[4, 4], sets=0, seed=3)
    for points in ([2**24 - 1, 2**24, 2**24 + 1], [-(2**24) - 1, -(2**24), 2**30 + 1]):
        cut = replace(model, variables=tuple(variable_of(f"v{i}", Cuts(points, integer=True)) for i in range(2)))
        values, codes = rows_of(cut, "int", 1)
        check(cut, codes, *IN_PYTHON[target](cut, values, "int"))


def nodes_of(model, raw, **options):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    file = export(model, "onnx", raw=raw, **options)["model.onnx" if raw == "none" else "model_raw.onnx"]
    found = list(onnx.load_from_string(file).graph.node)
    (trees,) = (node for node in found if node.op_type == "TreeEnsembleRegressor")
    return found, {a.name: onnx.helper.get_attribute_value(a) for a in trees.attribute}


def test_other_tools_see_trees_on_raw_values():
    model = encoded(tree_ensemble(6, sets=0, seed=3), "float", numbers=True)
    nodes, trees = nodes_of(model, "float")
    assert [node.op_type for node in nodes] == ["TreeEnsembleRegressor", "Cast", "Add", "Cast", "ArgMax"]
    assert list(nodes[0].input) == ["value"]
    inner = [i for i, mode in enumerate(trees["nodes_modes"]) if mode != b"LEAF"]
    for i in inner:
        cuts = model.variables[trees["nodes_featureids"][i]].encoding.cuts
        if trees["nodes_modes"][i] == b"BRANCH_LEQ":
            assert trees["nodes_values"][i] == np.inf
        else:
            assert trees["nodes_values"][i] in cuts
    assert {trees["nodes_modes"][i] for i in inner} == {b"BRANCH_LT", b"BRANCH_LEQ"}


def test_large_values_are_split_into_digits_and_small_ones_are_not():
    for largest, digits in ((1000, 1), (2**24 // 4, 1), (2**24, 2), (2**28, 2)):
        model = tree_ensemble(4, largest=largest, seed=2)
        _, trees = nodes_of(model, "none")
        assert trees["n_targets"] == digits * 3
        assert max(map(abs, trees["target_weights"])) <= 2**24


def test_tables_without_rows():
    for key in ("all 7 trees", "single leaf", "wide values"):
        session = sessions(KINDS[key])
        (scores,) = session.run(["scores"], {"x": np.empty((0, 6), np.int64)})
        assert scores.shape == (0, 3)


def test_modules_have_integers_only_and_import_nothing():
    for model in KINDS.values():
        text = re.sub(r"#.*|b['\"].*|\"\"\".*", "", export(model, "micropython")["model.py"])
        assert not re.search(r"import|float|\d\.\d|/", text)


def test_the_tables_of_modules_are_about_as_small_as_their_price():
    """Bytes of the constants; modules have one form of tables, the price is that of the smallest one."""
    for key in ("all 7 trees", "no sets", "codebook", "votes 7 trees"):
        model, names = KINDS[key], {}
        exec(export(model, "micropython", gaps=False)["model.py"], names)
        tables = {name: value for name, value in names.items() if isinstance(value, bytes)}
        from_price = int(re.search(r"Price: (\d+) B", export(model, "micropython")["model.py"])[1])
        assert sum(map(len, tables.values())) <= 1.5 * from_price


@pytest.mark.parametrize("key", ["no sets", "sets", "votes 7 trees", "class 1 trees"])
def test_micropython_itself(tmp_path, key):
    model = KINDS[key]
    X = with_gaps(every_state(model, rows=16)[:16], 0.2)
    module = shorter(export(model, "micropython", raw="none")["model.py"])
    said = run_micropython(tmp_path, f"{module}\nfor x in {X.tolist()}:\n    print(predict(x), *scores(x))\n")
    lines = np.array([[int(v) for v in line.split()] for line in said.splitlines()])
    check(model, X, lines[:, 0], lines[:, 1:])


@pytest.mark.parametrize("target", PYTHON)
def test_the_same_model_gives_the_same_bytes(target):
    assert export(KINDS["sets"], target) == export(KINDS["sets"], target)
    with pytest.raises(TinybayesError, match="expected at most 65,536 states"):
        export(tree_ensemble(states=[70_000]), target)


def test_the_cases_have_everything():
    """The tests above would say nothing about what no ensemble has."""
    models = list(KINDS.values())
    assert {m.votes for m in models} == {True, False}
    assert all(isinstance(m, TreeEnsemble) for m in models)
    for m in (KINDS["all 7 trees"], KINDS["no sets"]):
        inner = ~m.trees.is_leaf
        last = np.array([v.cardinality - 1 for v in m.variables])[m.trees.feature[inner]]
        assert (m.trees.threshold[inner] == last).any()
    assert m.trees.is_leaf[m.trees.root].any()


VERILOG = pytest.mark.parametrize("target", ["verilog", "verilog-pipelined"])


def simulated(directory, models, target, rows=30):
    cases = [Case(f"trees{i}", model, every_state(model, rows=rows)[:60]) for i, model in enumerate(models)]
    for case, (labels, scores) in zip(cases, HOSTS[target](directory, cases), strict=True):
        check(case.net, case.X, labels, scores)


@VERILOG
def test_every_kind_in_verilog(tmp_path, target):
    simulated(tmp_path, KINDS.values(), target)


@VERILOG
def test_ensembles_that_differ_in_everything_in_verilog(tmp_path, target):
    rng, models = np.random.default_rng(0), []
    for seed in range(25):
        kind, sets = ["class", "all", "votes"][seed % 3], [0, 0.5, 1][seed // 3 % 3]
        trees, leaves, classes = (int(v) for v in rng.integers(1, [9, 12, 6]))
        states = rng.integers(1, 40, int(rng.integers(1, 6))).tolist()
        made = {"values": [None, 4][seed % 2], "start": seed % 4 > 0, "largest": 10 ** (seed % 7)}
        models.append(tree_ensemble(trees, leaves=leaves, kind=kind, sets=sets, classes=classes, states=states, **made))
    simulated(tmp_path, models, target)


@VERILOG
def test_the_test_bench_passes_and_can_fail(tmp_path, target):
    for i, key in enumerate(("sets", "votes 7 trees", "single leaves")):
        write_files(export(KINDS[key], target, name=f"trees{i}"), tmp_path)
    files = [path.name for path in tmp_path.glob("*.v")]
    said = sorted(simulate(tmp_path, *files).splitlines())
    assert said == [f"trees{i}: PASS, 64 rows" for i in range(3)]
    module = tmp_path / "trees0.v"
    changed = re.sub(r"(tree\d+ <?= \S+) \? (\S+) : (\S+);", r"\1 ? \3 : \2;", module.read_text())
    assert changed != module.read_text()
    module.write_text(changed)
    assert "trees0: FAIL" in simulate(tmp_path, *files)


@VERILOG
def test_text_is_neat_and_large_ensembles_are_refused(monkeypatch, target):
    for model in KINDS.values():
        for file, content in export(model, target, name="net").items():
            lines = content.splitlines()
            assert content.endswith("\n")
            assert [line for line in lines if line != line.rstrip() or "\t" in line] == []
            assert file != "net.v" or [line for line in lines if (len(line) - len(line.lstrip(" "))) % 4] == []
    assert list(export(model, target, checks=0)) == ["model.v"]
    with pytest.raises(TinybayesError, match="expected no raw measurements in Verilog"):
        export(model, target, raw="int")
    monkeypatch.setattr("tinybayes.deploy.programs.verilog_trees.MAX_NUMBERS", 3)
    with pytest.raises(TinybayesError, match=r"verilog: expected at most 3 numbers of leaves, got .* export to C"):
        export(KINDS["sets"], target)
    monkeypatch.setattr("tinybayes.deploy.programs.verilog_trees.MAX_NODES", 3)
    with pytest.raises(TinybayesError, match="verilog: expected at most 3 tests in trees"):
        export(KINDS["sets"], target)


@pytest.mark.exhaustive
@VERILOG
@pytest.mark.parametrize("key", ["sets", "all 7 trees", "votes 7 trees", "symmetric"])
def test_what_yosys_makes_of_it_passes_the_test_bench(tmp_path, target, key):
    if shutil.which("yosys") is None:
        pytest.skip("no yosys on this machine")
    write_files(export(KINDS[key], target, name="net", checks=20), tmp_path)
    script = "read_verilog net.v; synth -flatten -top net; check -assert; write_verilog -noattr gates.v"
    done = subprocess.run(["yosys", "-q", "-p", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    subprocess.run(["iverilog", "-g2001", "-o", "gates", "gates.v", "net_tb.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "gates"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "net: PASS" in said
