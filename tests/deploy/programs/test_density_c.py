"""Densities in C, C++ and as Arduino libraries: the integers of Python, gaps, unseen states and hostile rows."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_circuit_raw import ENCODINGS, raw_rows
from test_devices import STUB, need, ran

import zoo
from c_host import build, compiler
from density_host import RUNNERS, DensityCase, random_latent
from networks import codebook
from targets_host import unzipped
from tinybayes import CircuitDensity, tie
from tinybayes.deploy.export import export, write_files
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, log_likelihood
from tinybayes.infer.alarm import Alarm
from tinybayes.infer.integer_density import integer_density, integer_log_likelihood
from tinybayes.model import Circuit, Cuts, Fixed, Float, Variable


def mixed(kind, states=3):
    """Variables of all encodings, and one of text."""
    encoded = [Variable.from_encoding(f"v{i}", e) for i, e in enumerate(ENCODINGS[kind])]
    return (*encoded, Variable("text", tuple(f"s{i}" for i in range(states))))


def network(kind, form, seed, **options):
    several = mixed(kind)
    rng = np.random.default_rng(seed)
    return compile_circuit(zoo.random_net(rng, len(several), 2, False, [form], False, several, **options))


def cases():
    alarm = Alarm(-9.5, 7.0, 0.05, 400)
    floats, ints = random_latent(mixed("float"), 4), random_latent(mixed("int"), 3, seed=1)
    several = {
        "latent": (floats, "float", {"alarm": alarm}),
        "density only": (floats, "float", {}),
        "16 bits": (random_latent(mixed("float"), 9, seed=4), "float", {"alarm": alarm}),
        "tied": (tie(floats, 12).model, "float", {"alarm": alarm}),
        "2 levels": (tie(ints, 2).model, "int", {"alarm": alarm}),
        "integers": (ints, "int", {"alarm": alarm}),
        "integers as floats": (ints, "float", {"alarm": alarm, "raw": "float"}),
        "pruned": (random_latent(mixed("int"), 5, seed=2, cut=0.6), "int", {}),
        "zeros": (with_zeros(), "int", {"alarm": alarm}),
        "fixed": (network("float", Fixed(3, 2), 3), "float", {"alarm": alarm}),
        "codebook": (network("int", codebook(9), 5), "int", {}),
        "wide": (random_latent(mixed("int", states=255), 2, seed=6), "int", {"alarm": alarm}),
        "almost wide": (random_latent(mixed("int", states=254), 2, seed=6), "int", {"alarm": alarm}),
        "one variable": (random_latent((Variable("v", ("a", "b", "c")),), 2), "int", {"alarm": alarm}),
        "a constant": (random_latent((Variable("v", ("a",)),), 2), "int", {"alarm": alarm}),
    }
    out = {}
    for i, (key, (circuit, kind, options)) in enumerate(several.items()):
        hostile = np.random.default_rng(i).integers(0, 256, (40, len(circuit.nodes)))
        low = np.random.default_rng(i + 100).integers(0, 4, hostile.shape)
        hostile = np.where(low, low - 1, hostile)
        out[key] = DensityCase(f"net{i}", circuit, raw_rows(circuit, kind, seed=i), hostile, options)
    return out


def with_zeros():
    """Impossible rows, and a parameter that is no level of 256."""
    circuit = network("int", Float(64), 4)
    table = circuit.log_parameters.copy()
    table[::3] = -np.inf
    return Circuit(
        circuit.variables, None, circuit.kind, circuit.offsets, circuit.children, circuit.leaf, table, Float(64)
    )


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


@pytest.mark.parametrize("key", CASES)
@pytest.mark.parametrize("target", ["c", *(pytest.param(t, marks=pytest.mark.exhaustive) for t in ("cpp", "arduino"))])
def test_rows_get_the_integers_of_python(answers, target, key):
    scores, alarms, codes = answers(target, key)
    wanted = CASES[key].expected()
    for found, exact in zip((codes, alarms, scores), wanted[::-1], strict=True):
        np.testing.assert_array_equal(found, exact)


def test_the_cases_have_gaps_unseen_states_alarms_and_all_forms():
    levels = {key: integer_density(case.circuit).levels for key, case in CASES.items()}
    assert {len(found) <= 16 for found in levels.values() if found is not None} == {True, False}
    assert levels["latent"] is levels["16 bits"] is None
    features = CASES["latent"].plan.features
    _, alarms, codes = CASES["latent"].expected()
    assert 0 < alarms.mean() < 1
    assert (codes == features.missing).any()
    assert (codes == features.unseen_code).any()
    assert CASES["wide"].plan.features.state == "uint16_t"
    assert CASES["almost wide"].plan.features.state == "uint8_t"
    assert integer_density(CASES["zeros"].circuit).zeros
    assert (CASES["zeros"].expected()[0] < -(2**29)).any()
    assert not integer_density(CASES["tied"].circuit).sums_to_one


@pytest.mark.parametrize("key", ["latent", "integers"])
def test_an_unseen_state_raises_the_alarm_and_a_gap_does_not(key):
    case = CASES[key]
    _, alarms, codes = case.expected()
    features = case.plan.features
    unseen = ((codes >= case.circuit.cardinalities) & (codes != features.missing)).any(axis=1)
    assert alarms[unseen].all()
    everything = DensityCase(
        "all", case.circuit, case.values[:0], np.full((1, codes.shape[1]), features.missing), case.options
    )
    score, alarm, _ = everything.expected()
    assert abs(score[0]) <= 2**16 * integer_density(case.circuit).bound
    assert not alarm[0]


def test_the_header_states_a_bound_that_holds_and_the_alarm():
    case = CASES["latent"]
    text = export(case.circuit, name="net", alarm=case.alarm, note="A note.")["net.h"]
    bound = float(re.search(r"within (\S+) nats of the exact ones", text.replace("\n * ", " "))[1])
    density = integer_density(case.circuit)
    assert density.bound <= bound <= 1.2 * density.bound
    X = np.random.default_rng(0).integers(0, case.circuit.cardinalities, (500, len(case.circuit.nodes)))
    off = np.ldexp(integer_log_likelihood(case.circuit, X).astype(float), -density.fraction) - log_likelihood(
        case.circuit, X
    )
    assert np.abs(off).max() <= bound
    assert f"#define NET_THRESHOLD ({case.plan.units[0]})" in text
    for words in (
        "Alarm below -9.5 nats, for 5 % of usual rows",
        "A note.",
        "NET_UNSEEN 254",
        "NET_UNKNOWN 255",
        "NET_TEXT_S0",
    ):
        assert words in text


@pytest.mark.parametrize(("key", "options"), [("latent", {}), ("integers", {}), ("latent", {"raw": "none"})])
def test_the_test_of_itself_finds_the_row_that_differs(tmp_path, key, options):
    texts = export(CASES[key].circuit, name="net", alarm=CASES[key].alarm, **options)
    begin = texts["net.c"].index("test_score[12] = {")
    first, *rest = re.split(r"(-?\d+)(?=[,\n])", texts["net.c"][begin:])
    rest[2 * 4] = str(int(rest[2 * 4]) + 1)  # the fifth row
    main = '#include "net.h"\nstatic struct net_memory m;\nint main(void) { return net_selftest(&m); }\n'
    program = build(tmp_path, {**texts, "net.c": texts["net.c"][:begin] + first + "".join(rest)}, main)
    assert subprocess.run([program]).returncode == 5
    assert "selftest" not in export(CASES[key].circuit, name="net", extras=False)["net.h"]


def test_bad_options_are_refused():
    case = CASES["latent"]
    for options, words in (
        ({"arithmetic": "float"}, "arithmetic: expected integer for log-likelihoods"),
        ({"gaps": False}, "gaps: expected a program that sums out gaps"),
        ({"alarm": case.alarm, "query": "text"}, "alarm: expected a circuit without a class"),
        ({"raw": "double"}, "raw: expected one of float, int, none"),
        ({"calibration": 3}, "calibration: expected"),
    ):
        for target in RUNNERS:
            with pytest.raises(TinybayesError, match=words):
                export(case.circuit, target, **options)
    with pytest.raises(TinybayesError, match="alarm: expected a circuit without a class"):
        export(zoo.tan(), alarm=case.alarm)
    with pytest.raises(TinybayesError, match="alarm: expected the target c or cpp or arduino"):
        export(case.circuit, "onnx", alarm=case.alarm)
    with pytest.raises(TinybayesError, match="CircuitDensity: expected a fitted model"):
        export(CircuitDensity())


def test_a_variable_can_still_be_asked_for():
    assert "net_posterior(" in export(CASES["latent"].circuit, name="net", query="text")["net.h"]


def test_the_example_of_the_page_compiles(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text().split("\n## Densities and anomalies\n")[1]
    head, body = re.search(r"```c\n(.*?)```", page, re.DOTALL)[1].split("float row", 1)
    circuit = random_latent(tuple(Variable.from_encoding(f"v{i}", Cuts([0.5, 1.5])) for i in range(4)), 2)
    files = export(circuit, name="odd", alarm=Alarm(-20.0, 5.0, 0.1, 50))
    files["main.c"] = f"{head}int main(void) {{ float row{body}return alarm || nats > 0 || nats < -20; }}\n"
    write_files(files, tmp_path)
    ran(compiler(), "-std=c99", "-Wall", "-Werror", "main.c", "odd.c", "-o", "main", cwd=tmp_path)
    ran("./main", cwd=tmp_path)


def test_an_arduino_library_has_a_sketch_that_compiles(tmp_path):
    need("g++")
    (tmp_path / "Arduino.h").write_text(STUB)
    for key, words in (
        ("latent", "odd_alarm_raw(row, &memory)"),
        ("density only", "odd_log_likelihood_raw(row, &memory)"),
    ):
        unzipped(tmp_path, export(CASES[key].circuit, "arduino", name="odd", **CASES[key].options))
        sketch = tmp_path / "odd" / "examples" / "Predict" / "Predict.ino"
        assert words in sketch.read_text()
        flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-include", "Arduino.h", "-Iodd/src"]
        ran("g++", *flags, "-I.", "-c", str(sketch), "-o", "sketch.o", cwd=tmp_path)


@pytest.mark.exhaustive
def test_avr_keeps_the_tables_in_flash_and_cppcheck_is_content(tmp_path):
    if shutil.which("avr-gcc"):
        for case in CASES.values():
            unzipped(tmp_path, export(case.circuit, "arduino", name=case.name, **case.options))
            flags = ["-std=gnu11", "-mmcu=atmega328p", "-Os", "-Wall", "-Wextra", "-Werror", "-c"]
            ran("avr-gcc", *flags, f"{case.name}/src/{case.name}.c", cwd=tmp_path)
            assert ran("avr-size", f"{case.name}.o", cwd=tmp_path).splitlines()[1].split()[1:3] == ["0", "0"]
    need("cppcheck")
    sources = tmp_path / "c"
    for case in CASES.values():
        write_files(export(case.circuit, name=case.name, **case.options), sources)
    flags = ["--std=c99", "--enable=warning,style,performance,portability", "--error-exitcode=1", "--quiet"]
    done = subprocess.run(["cppcheck", *flags, "--suppress=variableScope", "."], cwd=sources, capture_output=True)
    assert (done.returncode, done.stderr.decode()) == (0, "")
