"""Exported code on what it is meant for, where the tools are there: AVR, MicroPython, sketches, raw measurements."""

import ast
import re
import shutil
import subprocess

import numpy as np
import pytest
from test_c import cut

from c_host import compiler
from cases import exhaustive
from micropython_host import run_micropython
from networks import STRUCTURES, classifier, codebook, every_state, formats
from neural_nets import kinds, neural_net, rows_of
from targets_host import Case, unzip
from tinybayes.deploy.export import export, write_files
from tinybayes.errors import TinybayesError
from tinybayes.infer.integers import integer_log_joint
from tinybayes.model import Cuts, Fixed, Float, NeuralNet, Variable

EDGES = [[0.1, 0.7, 3.0], [-5.5], [-2.0, 1e-3, 16777217.0], []]
STUB = """#pragma once
#include <stdint.h>
struct Port { void begin(long); void print(const char *); void print(unsigned); void print(unsigned long);
              void print(long); void println(const char *); };
extern Port Serial;
unsigned long micros();
void delay(unsigned long);
"""


def need(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool} on this machine")


def ran(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measurements(kind):
    """Rows around all cut points of `EDGES`, the last column the state of a feature without any."""
    near = np.array([np.float32(e) for row in EDGES for e in row])
    values = np.concatenate(
        [near, np.nextafter(near, np.float32(9e9)), np.nextafter(near, np.float32(-9e9)), [-7, 2e9]]
    )
    values = np.unique(np.floor(values.astype(np.float64)) if kind == "int" else values.astype(np.float64))
    columns = [np.roll(values, i) for i in range(len(EDGES))]
    raw = np.column_stack([*columns, np.arange(len(values)) % 3])
    states = [Cuts(e).codes(raw[:, i]) for i, e in enumerate(EDGES)]
    return raw, np.column_stack([*states, raw[:, -1]]).astype(np.int32)


@pytest.fixture(scope="module")
def net():
    return cut(EDGES, Fixed(3, 1))


@pytest.mark.parametrize("kind", ["float", "int"])
def test_cpp_finds_the_states_of_measurements(tmp_path, net, kind):
    need("g++")
    raw, states = measurements(kind)
    write_files(export(net, "cpp", name="net", raw=kind), tmp_path)
    (tmp_path / "main.cpp").write_text("""#include "net.hpp"
#include <cstdio>
int main() {
    std::array<net::Value, net::features> v;
    while (std::fread(v.data(), sizeof v[0], v.size(), stdin) == v.size()) {
        std::printf("%d", int(net::predict_raw(v)));
        for (net::State s : net::encode(v)) std::printf(" %d", int(s));
        std::printf("\\n");
    }
}
""")
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-fsanitize=undefined"]
    ran("g++", *flags, "main.cpp", "-o", "main", cwd=tmp_path)
    data = raw.astype(np.float32 if kind == "float" else np.int32).tobytes()
    out = subprocess.run(["./main"], cwd=tmp_path, input=data, capture_output=True, check=True).stdout
    found = np.array([[int(v) for v in line.split()] for line in out.decode().splitlines()])
    np.testing.assert_array_equal(found[:, 1:], states)
    np.testing.assert_array_equal(found[:, 0], integer_log_joint(net, states)[0].argmax(axis=1))


@pytest.mark.parametrize("kind", ["float", "int"])
def test_python_finds_the_states_of_measurements(net, kind):
    raw, states = measurements(kind)
    rows = raw.tolist() if kind == "float" else raw.astype(int).tolist()
    names = {}
    exec(export(net, "micropython", raw=kind)["model.py"], names)
    assert [names["encode"](row) for row in rows] == states.tolist()
    labels = integer_log_joint(net, states)[0].argmax(axis=1)
    assert [names["predict_raw"](row) for row in rows] == labels.tolist()


@pytest.mark.parametrize("kind", ["float", "int"])
def test_onnx_finds_the_states_of_measurements(net, kind):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    raw, states = measurements(kind)
    raw = np.vstack([raw, np.full((1, 5), np.inf if kind == "float" else 2**31 - 1)])
    states = np.vstack([states, [[3, 1, 3, 0, 0]]])
    raw[-1, -1] = 0
    session = runtime.InferenceSession(export(net, "onnx", raw=kind)["model_raw.onnx"])
    given = {"value": raw.astype(np.float32 if kind == "float" else np.int32)}
    label, scores = session.run(["label", "scores"], given)
    exact = integer_log_joint(net, states.astype(np.int32), gaps=True)[0]
    np.testing.assert_array_equal(scores, exact)
    np.testing.assert_array_equal(label, exact.argmax(axis=1))


def test_numbers_out_of_reach(net):
    far = cut([[1e12]], Fixed(3, 1))
    with pytest.raises(TinybayesError, match=r"expected cut points of floats within 2\*\*24 for integers"):
        export(far, "micropython", raw="int")
    for target in ("c", "cpp", "arduino", "micropython", "onnx"):
        text = " ".join(map(str, export(net, target, raw="none").items()))
        assert "predict_raw" not in text
        assert "_raw.onnx" not in text


def test_quantised_modules_have_no_float_and_import_nothing():
    nets = [classifier("general", form) for form in (Fixed(3, 1), codebook(13))]
    for net in [*nets, neural_net((5,), inputs="mixed", scaled=True)]:
        text = export(net, "micropython")["model.py"]
        assert not re.search(r"import|float|\d\.\d|/", re.sub(r"#.*|b['\"].*|\"\"\".*", "", text))


@pytest.mark.parametrize("form", [Fixed(3, 2), codebook(5), Float(32)], ids=str)
def test_micropython_itself(tmp_path, form):
    model = classifier("tree", form, features=4, classes=3, states=[3, 2, 2, 1])
    X = every_state(model, rows=24)
    X[12:][np.random.default_rng(0).random((12, 4)) < 0.5] = -1
    module = shorter(export(model, "micropython")["model.py"])
    said = run_micropython(tmp_path, f"{module}\nfor x in {X.tolist()}:\n    print(predict(x), *scores(x))\n")
    names = {}
    exec(module, names)
    found = [[float(v) for v in line.split()] for line in said.splitlines()]
    wanted = [[names["predict"](x), *names["scores"](x)] for x in X.tolist()]
    np.testing.assert_allclose(found, wanted, atol=0 if form != Float(32) else 1e-4)


def shorter(module):
    """Leave out comments and descriptions: the smallest boards have little memory to compile in."""
    tree = ast.parse(module)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.body = node.body[1:]
    return ast.unparse(tree).replace("    ", " ")


@pytest.mark.parametrize("inputs", ["ordinal", "mixed"])
def test_micropython_itself_on_neural_nets(tmp_path, inputs):
    image = (2, 2) if inputs == "ordinal" else None
    model = neural_net(((3,),) if image else (4,), bits=3, image=image, states=[3, 2, 3, 2], inputs=inputs)
    X = rows_of(model, rows=4)
    module = shorter(export(model, "micropython")["model.py"])
    said = run_micropython(tmp_path, f"{module}\nfor x in {X.tolist()}:\n    print(predict(x), *scores(x))\n")
    found = np.array([[int(v) for v in line.split()] for line in said.splitlines()])
    exact = Case("net", model, X).exact
    np.testing.assert_array_equal(found, np.column_stack([exact.argmax(axis=1), exact]))


def test_micropython_itself_on_measurements(tmp_path):
    """Beside the cut points, not at them: some boards have floats of 30 bits."""
    model = cut([[0.1, 0.7, 3.3], [16777217.0]], Fixed(3, 1))
    edges = np.array([0.1, 0.7, 3.3, 16777217.0])
    values = np.concatenate([edges * (1 - 2.0**-20), edges * (1 + 2.0**-20)]).astype(np.float32)  # beside each of them
    module = export(model, "micropython")["model.py"]
    exact = ", ".join(f"{a} / {b}" for a, b in (float(v).as_integer_ratio() for v in values))
    said = run_micropython(tmp_path, f"{module}\nfor v in [{exact}]:\n    print(*encode([v, v, 0]))\n")
    found = [[int(w) for w in line.split()] for line in said.splitlines()]
    assert found == [[sum(v >= edges[:3]), int(v >= edges[3]), 0] for v in values]


def test_an_arduino_library_is_laid_out_as_the_standard_says(tmp_path, net):
    case = Case("iris", net, np.empty((0, 5)))
    place = unzip(tmp_path, case)
    files = {str(p.relative_to(place)) for p in place.rglob("*") if p.is_file()}
    assert files == {"library.properties", "keywords.txt", "src/iris.h", "src/iris.c", "examples/Predict/Predict.ino"}
    properties = dict(line.split("=", 1) for line in (place / "library.properties").read_text().splitlines())
    needed = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
    assert needed <= set(properties)
    assert (properties["name"], properties["includes"], properties["architectures"]) == ("iris", "iris.h", "*")
    assert "iris_predict_raw\tKEYWORD2" in (place / "keywords.txt").read_text().splitlines()


@pytest.mark.parametrize("raw", ["float", "none"])
def test_the_sketch_compiles(tmp_path, net, raw):
    need("g++")
    write_files(export(net, "c", name="iris", raw=raw), tmp_path)
    case = Case("iris", net if raw == "float" else classifier("naive", Fixed(3, 1)), np.empty((0, 5)))
    place = unzip(tmp_path, case)
    (tmp_path / "Arduino.h").write_text(STUB)
    sketch = place / "examples" / "Predict" / "Predict.ino"
    assert "iris_predict_raw(row)" in sketch.read_text()
    flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-include", "Arduino.h", f"-I{place / 'src'}"]
    ran("g++", *flags, "-I.", "-c", str(sketch), "-o", "sketch.o", cwd=tmp_path)


AVR_MAIN = """
#include <avr/interrupt.h>
#include <avr/sleep.h>
#include <stdio.h>
#include "net.h"
static int put(char c, FILE *f) { (void)f; while (!(UCSR0A & 32)) {} UDR0 = (unsigned char)c; return 0; }
static FILE out = FDEV_SETUP_STREAM(put, NULL, _FDEV_SETUP_WRITE);
static const uint8_t rows[][NET_FEATURES] = {%s};
int main(void)
{
    unsigned r, c;
    int32_t s[NET_CLASSES];
    UCSR0B = 8;
    stdout = &out;
    for (r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        net_scores(rows[r], s);
        printf("row %%u", net_predict(rows[r]));
        for (c = 0; c < NET_CLASSES; ++c) printf(" %%ld", (long)s[c]);
        printf("\\n");
    }
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
"""


@pytest.mark.exhaustive
def test_avr_keeps_all_tables_in_flash(tmp_path):
    need("avr-gcc")
    cases = [
        Case(f"net{i}", classifier(s, form, seed=i, classes=[2, 3, 10, 26][i % 4]), np.empty((0, 5)))
        for i, (s, form) in enumerate((s, form) for s in STRUCTURES for form in formats()[::3])
    ]
    nets = [net for key, net in kinds().items() if key not in ("many classes", "wide", "wide 8 bits")]
    cases += [Case(f"layers{i}", net, np.empty((0, 5))) for i, net in enumerate(nets[::2])]
    sources = [str(unzip(tmp_path, case) / "src" / f"{case.name}.c") for case in cases]
    flags = ["-std=gnu11", "-mmcu=atmega328p", "-Os", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fdata-sections"]
    ran("avr-gcc", *flags, "-c", *sources, cwd=tmp_path)
    listed = ran("avr-size", "-A", *(f"{case.name}.o" for case in cases), cwd=tmp_path)
    memory = re.findall(r"^(\.(?:data|bss|rodata)\S*)\s+([1-9]\d*)", listed, flags=re.MULTILINE)
    # Only the names of classes are in memory, and only in programs that ask for them.
    assert {re.sub(r"\.\d+$", "", section) for section, _ in memory} <= {
        ".rodata.names",
        ".rodata.str1",
        ".data.rel.ro.names",
    }


@pytest.mark.parametrize(
    "model",
    [
        *(
            classifier("tree", form, classes=11, features=6, seed=7)
            for form in (Fixed(3, 1), codebook(13), Fixed(8, 8))
        ),
        neural_net((9, 5), bits=3, inputs="mixed", scaled=True),
        neural_net(((5,), 6), bits=4, image=(4, 5), scaled=True),
    ],
    ids=["fixed", "codebook", "wide", "dense", "convolution"],
)
def test_an_emulated_avr_says_what_python_says(tmp_path, model):
    need("avr-gcc")
    need("simavr")
    X = rows_of(model, rows=22) if isinstance(model, NeuralNet) else every_state(model, rows=24)
    case = Case("net", model, X)
    place = unzip(tmp_path, case)
    rows = ", ".join("{" + ", ".join(map(str, x)) + "}" for x in X.tolist())
    (tmp_path / "main.c").write_text(AVR_MAIN % rows)
    flags = ["-std=gnu11", "-mmcu=atmega328p", "-Os", "-DF_CPU=16000000UL", f"-I{place / 'src'}"]
    ran("avr-gcc", *flags, "main.c", str(place / "src" / "net.c"), "-o", "main.elf", cwd=tmp_path)
    done = subprocess.run(
        ["simavr", "-m", "atmega328p", "-f", "16000000", "main.elf"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [[int(v) for v in m.split()] for m in re.findall(r"row ([-\d ]+)", done.stdout + done.stderr)]
    np.testing.assert_array_equal(np.array(lines), np.column_stack([case.exact.argmax(axis=1), case.exact]))


def test_what_is_too_large_for_an_avr_says_so(tmp_path):
    large = classifier("naive", Fixed(8, 8), states=[1500] * 8, classes=4)
    small = neural_net((40,), bits=8, states=[17] * 64)
    for name, net, words in [
        ("large", large, r"This model has a table of 96,\d\d\d bytes; boards with an AVR have room for 32,767"),
        ("small", small, ""),
    ]:
        place = unzip(tmp_path, Case(name, net, np.empty((0, 8))))
        source, properties = (place / "src" / f"{name}.c").read_text(), (place / "library.properties").read_text()
        assert bool(re.search(rf'#ifdef __AVR__\n#error "{words}', source)) == bool(words)
        assert ("architectures=*" in properties) == (not words)
        assert ("Too large for boards with an AVR." in properties) == bool(words)
        if shutil.which("avr-gcc"):
            flags = ["-std=gnu11", "-mmcu=atmega2560", "-Os", "-c", f"{name}.c"]
            done = subprocess.run(["avr-gcc", *flags], cwd=place / "src", capture_output=True, text=True)
            assert (done.returncode, "boards with an AVR" in done.stderr) == ((1, True) if words else (0, False))


@pytest.mark.exhaustive
@pytest.mark.parametrize("raw", [*exhaustive("float"), "int"])
def test_cppcheck_has_nothing_to_say(tmp_path, net, raw):
    need("cppcheck")
    write_files(export(net, "c", name="raw", raw=raw), tmp_path)
    nets = [classifier(s, form, seed=i, classes=7) for i, s in enumerate(STRUCTURES) for form in formats()[3::4]]
    nets += list(kinds().values())[::3]
    for i, one in enumerate(nets):
        write_files(export(one, "c", name=f"net{i}"), tmp_path)
    flags = ["--std=c99", "--enable=warning,style,performance,portability", "--error-exitcode=1", "--quiet"]
    flags += ["--suppress=variableScope"]  # variables are declared where their function begins
    done = subprocess.run(["cppcheck", *flags, "."], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_onnx_is_asked_for_only_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(TinybayesError, match="expected the package onnx, got none installed; pip install"):
        export(classifier("naive", Fixed(3, 1)), "onnx")
    assert export(classifier("naive", Fixed(3, 1)), "c")


def test_onnx_says_what_it_is():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    net, plain = classifier("tree", Fixed(3, 1)), {"Gather", "Mul", "ReduceSum", "Add", "Cast", "ArgMax"}
    for gaps, fraction in ((False, "1"), (True, "10")):
        model = onnx.load_from_string(export(net, "onnx", note="Error: 5 %.", gaps=gaps)["model.onnx"])
        assert "Error: 5 %." in model.doc_string
        facts = {p.key: p.value for p in model.metadata_props}
        assert facts["classes"] == '["c0", "c1", "c2"]'
        assert facts["fraction"] == fraction
        operations = {n.op_type for n in model.graph.node}
        assert "If" in operations if gaps else operations == plain


def test_wild_names_do_no_harm(tmp_path):
    need("g++")
    model = cut([[0.5]], Fixed(3, 1))
    wild = Variable("\\\n*/ \"'??/", ("#endif", "// ä\n", "`end"))
    model = type(model)((model.variables[0], wild), Variable("*/int", ("int", "INT")), model.cpds)
    for target in ("cpp", "micropython", "verilog"):
        write_files(export(model, target, name="net", note="*/ `x \\\n boom"), tmp_path)
    (tmp_path / "main.cpp").write_text('#include "net.hpp"\nint main() { return net::predict({0, 0}) > 1; }\n')
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-trigraphs"]
    ran("g++", *flags, "main.cpp", "-o", "main", cwd=tmp_path)
    ran("./main", cwd=tmp_path)
    names = {}
    exec((tmp_path / "net.py").read_text(), names)
    assert names["FEATURES"][1] == wild.name
    if shutil.which("iverilog"):
        ran("iverilog", "-g2001", "-o", "net", "net.v", "net_tb.v", cwd=tmp_path)
        assert "PASS" in ran("vvp", "net", cwd=tmp_path)
    assert compiler()
