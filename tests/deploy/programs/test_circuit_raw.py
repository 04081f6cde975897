"""Circuits that take raw rows, in C, C++ and as Arduino libraries: the codes and the integers of Python, with gaps."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from test_devices import STUB, need, ran

import zoo
from c_host import build, compiler
from circuit_host import RUNNERS, CircuitCase
from networks import codebook
from targets_host import unzipped
from tinybayes import load, read_dataset, save, tie
from tinybayes.data.encode import encode_frame
from tinybayes.deploy.export import export, write_files
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, conditional, integer_posterior, predict_codes
from tinybayes.learn import learn_circuit
from tinybayes.model import Circuit, Cuts, Fixed, Float, Grid, Integers, Variable
from tinybayes.model.encoding import LOWEST

ENCODINGS = {
    "float": [Cuts([-3.25, 0.1, 9]), Grid(-8, 0.5, 7), Integers(4, 6), Cuts([]), Cuts((np.arange(14) / 3).tolist())],
    "int": [Cuts([-3, 5, 9], integer=True), Grid(-8, 2, 7, integer=True), Integers(-4, 6), Cuts([], integer=True)],
}


def mixed_circuit(kind, form, seed=0, classes=3, states=2, parents=1):
    """A circuit over variables of all encodings, and a class."""
    variables = [Variable.from_encoding(f"v{i}", e) for i, e in enumerate(ENCODINGS[kind])]
    variables += [Variable("text", tuple(f"s{i}" for i in range(states)))]
    target = Variable("y", tuple(f"c{i}" for i in range(classes)))
    rng = np.random.default_rng(seed)
    return compile_circuit(zoo.random_net(rng, len(variables), parents, True, [form], False, [*variables, target]))


def raw_rows(circuit, kind, rows=40, seed=0):
    """Values at and around cut points, states and what is none, far ones, and gaps."""
    rng = np.random.default_rng(seed)
    columns = []
    for variable in circuit.nodes:
        near = np.array([-1, 0, 1, variable.cardinality - 1, variable.cardinality, 255, 256, 1e9, -1e9])
        cuts = getattr(variable.encoding, "cuts", np.empty(0))
        if kind == "float":
            steps = [np.nextafter(np.float32(cuts), np.float32(end)) for end in (-np.inf, np.inf)]
            near = np.concatenate([near, cuts, *steps, [0.5, 4, 6, 1e38, -1e38, np.inf, -np.inf, -0.0]])
        else:
            near = np.concatenate([near, np.ceil(cuts), np.ceil(cuts) - 1, [-4, 6]])
        column = rng.choice(near, rows).astype(np.float32).astype(float)
        columns.append(np.where(rng.random(rows) < 0.2, np.nan if kind == "float" else LOWEST, column))
    return np.array(columns).T


def cases():
    several = {
        "fixed": (mixed_circuit("float", Fixed(3, 1)), "float", {}),
        "codebook": (mixed_circuit("int", codebook(13), seed=1), "int", {}),
        "float32": (mixed_circuit("float", Float(32), seed=2), "float", {"arithmetic": "float"}),
        "integers as floats": (mixed_circuit("int", Fixed(2, 2), seed=3), "float", {"raw": "float"}),
        "another query": (mixed_circuit("float", Fixed(3, 1), seed=4), "float", {"query": "v1"}),
        "wide states": (mixed_circuit("float", Fixed(3, 1), seed=5, classes=2, states=256, parents=0), "float", {}),
        "no gaps": (mixed_circuit("float", Fixed(3, 1), seed=6), "float", {"gaps": False}),
        "one class": (mixed_circuit("int", Fixed(3, 1), seed=7, classes=1), "int", {}),
        "no features": (zoo.hand_circuit(), "int", {}),
    }
    out = {}
    for i, (key, (circuit, kind, options)) in enumerate(several.items()):
        values = raw_rows(circuit, kind, seed=i)
        if "gaps" in options:  # all values known
            codes = np.random.default_rng(9).integers(0, [v.cardinality for v in circuit.nodes], (40, 7))
            values = CircuitCase("x", circuit, values, options).plan.features.values(codes)
        out[key] = CircuitCase(f"net{i}", circuit, values, options)
    return out


CASES = cases()


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    known = {}

    def answer(target, key):
        if target == "cpp":
            need("g++")
        if target not in known:
            known[target] = None  # a build that fails is tried once
            found = RUNNERS[target](tmp_path_factory.mktemp(target), list(CASES.values()))
            known[target] = dict(zip(CASES, found, strict=True))
        assert known[target] is not None, "the build failed, see the first test of this target"
        return known[target][key]

    return answer


@cache
def exact(key):
    case = CASES[key]
    return integer_posterior(case.circuit, case.codes, case.plan.query)


@pytest.mark.parametrize("key", CASES)
@pytest.mark.parametrize("target", RUNNERS)
def test_raw_rows_get_the_posteriors_of_python(answers, target, key):
    case = CASES[key]
    labels, possible, posterior, codes = answers(target, key)
    wanted = case.codes
    shown = wanted if case.plan.features.gaps else np.where(wanted < 0, 0, wanted)
    np.testing.assert_array_equal(codes, shown)
    integers, states = exact(key)
    if case.plan.arithmetic == "integer":
        np.testing.assert_array_equal(posterior, integers)
        np.testing.assert_array_equal(labels, states)
        np.testing.assert_array_equal(possible, integers.any(axis=1))
    else:
        np.testing.assert_allclose(posterior, integers / 2**16, atol=case.plan.bound + 2**-15)
        np.testing.assert_array_equal(labels, posterior.argmax(axis=1))
    if "query" not in case.options:
        sure = np.diff(np.sort(integers, axis=1))[:, -1:] > 2
        same = labels == predict_codes(case.circuit, wanted[:, :-1])
        assert same[sure.all(axis=1)].all()


def test_the_cases_have_gaps_values_that_are_no_states_and_every_kind():
    for key in ("fixed", "codebook"):
        codes = CASES[key].codes
        assert (codes[:, :-1] < 0).any(axis=0).all()
        assert (codes >= 0).any(axis=0)[:-1].all()
    unknown = CASES["fixed"].values[:, 2]  # Integers(4, 6)
    assert (~np.isnan(unknown) & ~np.isin(unknown, [4, 5, 6])).any()


def test_the_encoder_does_not_read_the_query():
    circuit = mixed_circuit("float", Fixed(3, 1))
    text = export(circuit, name="net", query="v4")["net.c"]  # the only variable with 14 cut points
    assert re.search(r"x\[4\] = 255U;", text)
    assert len(re.search(r"\bcut\[(\d+)\]", text)[1]) == 1
    assert "NET_V4 = 4, /* ignored: it is asked for */" in export(circuit, name="net", query="v4")["net.h"]
    # Its values do not matter for the type of raw values, either.
    assert "const int32_t value[" in export(compile_circuit(last_is_float()), name="net", query="v1")["net.h"]


def last_is_float():
    variables = [Variable.from_encoding("v0", Cuts([3], integer=True)), Variable.from_encoding("v1", Cuts([0.5]))]
    return zoo.random_net(np.random.default_rng(0), 2, 1, False, [Fixed(3, 1)], False, variables)


def test_equal_parameters_are_stored_once():
    circuit = mixed_circuit("float", codebook(13))
    text = export(circuit, name="net")["net.c"]
    assert int(re.search(r"parameter_m\[(\d+)\]", text)[1]) <= 13 < len(circuit.table)


def test_learned_tied_and_saved_circuits_keep_their_encodings(tmp_path):
    frame = load_iris(as_frame=True).frame
    data = read_dataset(frame, target="target")
    circuit = tie(learn_circuit(data).circuit, levels=12).model
    save(circuit, tmp_path / "iris.tb")
    circuit = load(tmp_path / "iris.tb")
    assert isinstance(circuit, Circuit)
    assert all(isinstance(v.encoding, Cuts) for v in circuit.variables)
    gaps = frame.where(np.random.default_rng(0).random(frame.shape) >= 0.3)
    case = CircuitCase("iris", circuit, gaps.to_numpy(float))
    ((labels, _, posterior, codes),) = RUNNERS["c"](tmp_path, [case])
    np.testing.assert_array_equal(codes[:, :-1], encode_frame(gaps, circuit.variables))
    np.testing.assert_array_equal(codes[:, -1], -1)
    np.testing.assert_array_equal(posterior, integer_posterior(circuit, codes, 4)[0])
    np.testing.assert_array_equal(labels, predict_codes(circuit, codes[:, :-1]))
    assert (labels == frame["target"]).mean() > 0.8


def test_a_posterior_by_hand(tmp_path):
    """One feature with a cut at 0.5, one class: p(c=1) = 1/4, p(x=1 | c) = 1/2 and 3/4."""
    variables = (Variable.from_encoding("x", Cuts([0.5])),)
    table = np.log([[1 / 2, 1 / 2], [1 / 4, 3 / 4]])
    net = zoo.naive_bayes()
    cpds = (type(net.cpds[0])((1,), table, Float(64)), type(net.cpds[0])((), np.log([[3 / 4, 1 / 4]]), Float(64)))
    circuit = compile_circuit(type(net)(variables, Variable("c", (0, 1)), cpds))
    case = CircuitCase("net", circuit, np.array([[0.5, 0], [0.4, 0], [np.nan, 1]]))
    ((labels, _, posterior, _),) = RUNNERS["c"](tmp_path, [case])
    exact = [[2 / 3, 1 / 3], [6 / 7, 1 / 7], [3 / 4, 1 / 4]]
    np.testing.assert_allclose(posterior / 2**16, exact, atol=case.plan.bound)
    assert labels.tolist() == [0, 0, 0]
    assert conditional(circuit, np.array([[-1, 1]]), np.array([[1, -1]]))[0] == pytest.approx(1 / 3)


def test_the_examples_of_the_page_compile(tmp_path):
    variables = tuple(Variable.from_encoding(f"v{i}", Cuts([0.5, 1.5])) for i in range(4))
    target = Variable("species", (0, 1, 2))
    circuit = compile_circuit(
        zoo.random_net(np.random.default_rng(0), 4, 1, True, [Fixed(3, 1)], False, [*variables, target])
    )
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text().split("\n## Circuits\n")[1]
    in_c, in_cpp = re.findall(r"```c\n(.*?)```", page, re.DOTALL)[:2]
    files = {**export(circuit, name="iris"), **export(circuit, "cpp", name="iris")}
    head, body = in_c.split("float row", 1)
    check = "return state != IRIS_SPECIES_0 + state || !possible || posterior[0] > IRIS_ONE;"
    files["main.c"] = f"{head}int main(void) {{ float row{body}{check} }}\n"
    files["main.cpp"] = f'#include <cmath>\n#include "iris.hpp"\nint main() {{ {in_cpp} return !possible; }}\n'
    write_files(files, tmp_path)
    ran(compiler(), "-std=c99", "-Wall", "-Werror", "main.c", "iris.c", "-o", "main", cwd=tmp_path)
    ran("./main", cwd=tmp_path)
    need("g++")
    ran("g++", "-std=c++11", "-Wall", "-Werror", "main.cpp", "-o", "cpp", cwd=tmp_path)
    ran("./cpp", cwd=tmp_path)


@pytest.mark.parametrize("options", [{}, {"arithmetic": "float", "raw": "none"}], ids=["raw", "codes in floats"])
def test_the_test_of_itself_finds_the_row_that_differs(tmp_path, options):
    circuit = mixed_circuit("float", Float(32))
    texts = export(circuit, name="net", **options)
    begin = texts["net.c"].index("test_posterior[12][3] = {")
    rows = re.split(r"(\n    \{\n)", texts["net.c"][begin:])
    rows[2 * 5] = re.sub(r"\w[\w.-]*", "1", rows[2 * 5], count=1)  # the fifth row
    main = '#include "net.h"\nstatic struct net_memory m;\nint main(void) { return net_selftest(&m); }\n'
    program = build(tmp_path, {**texts, "net.c": texts["net.c"][:begin] + "".join(rows)}, main)
    assert subprocess.run([program]).returncode == 5
    assert "Model " in texts["net.h"]
    assert "on a Cortex-M0+, estimated:" in texts["net.h"]


def test_codes_only():
    circuit = mixed_circuit("float", Fixed(3, 1))
    for target in RUNNERS:
        files = export(circuit, target, name="net", raw="none")
        assert b"_raw" not in b"".join(v.encode() if isinstance(v, str) else v for v in files.values())
    with pytest.raises(TinybayesError, match="raw: expected one of float, int, none"):
        export(circuit, raw="double")
    with pytest.raises(TinybayesError, match="expected at most 65,535 states"):
        export(Circuit((Variable("v", tuple(range(2**16))),), None, *single_leaf(), Float(32)), query="v")


def single_leaf():
    return (np.array([1]), np.array([0, 0]), np.empty(0, int), np.array([0]), np.empty(0, np.float32))


def test_an_arduino_library_has_a_sketch_that_compiles(tmp_path):
    need("g++")
    circuit = mixed_circuit("float", Fixed(3, 1))
    unzipped(tmp_path, export(circuit, "arduino", name="iris"))
    (tmp_path / "Arduino.h").write_text(STUB)
    sketch = tmp_path / "iris" / "examples" / "Predict" / "Predict.ino"
    assert "iris_predict_raw(row, &memory)" in sketch.read_text()
    flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-include", "Arduino.h", "-Iiris/src"]
    ran("g++", *flags, "-I.", "-c", str(sketch), "-o", "sketch.o", cwd=tmp_path)
    assert "iris_posterior_raw\tKEYWORD2" in (tmp_path / "iris" / "keywords.txt").read_text().splitlines()


def test_avr_keeps_the_tables_in_flash_and_cppcheck_is_content(tmp_path):
    if shutil.which("avr-gcc"):
        for key in ("fixed", "float32"):
            case = CASES[key]
            unzipped(tmp_path, export(case.circuit, "arduino", name=case.name, **case.options))
            flags = ["-std=gnu11", "-mmcu=atmega328p", "-Os", "-Wall", "-Wextra", "-Werror", "-c"]
            ran("avr-gcc", *flags, f"{case.name}/src/{case.name}.c", cwd=tmp_path)
            assert ran("avr-size", f"{case.name}.o", cwd=tmp_path).splitlines()[1].split()[1:3] == ["0", "0"]
    need("cppcheck")
    sources = tmp_path / "c"
    for key in ("fixed", "float32", "no gaps"):
        case = CASES[key]
        write_files(export(case.circuit, name=case.name, **case.options), sources)
    flags = ["--std=c99", "--enable=warning,style,performance,portability", "--error-exitcode=1", "--quiet"]
    done = subprocess.run(["cppcheck", *flags, "--suppress=variableScope", "."], cwd=sources, capture_output=True)
    assert (done.returncode, done.stderr.decode()) == (0, "")
