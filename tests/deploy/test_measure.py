"""Exported C on emulated microcontrollers: the same bytes as in Python, and figures that can be trusted."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

import zoo
from cli_host import run
from density_host import random_latent
from networks import classifier, codebook, every_state
from neural_nets import kinds, neural_net, rows_of
from tinybayes import explore
from tinybayes.cost import model_cost
from tinybayes.deploy import measure as measuring
from tinybayes.deploy import save
from tinybayes.deploy._boards import boards
from tinybayes.deploy._boards.boards import BOARDS, PACKAGES, find_board
from tinybayes.deploy._boards.monitor import Probe
from tinybayes.deploy.measure import measure, measure_program
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.deploy.programs.encoding import make_features
from tinybayes.deploy.programs.gaps import make_forest
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, integer_posterior
from tinybayes.infer.alarm import Alarm, integer_alarm
from tinybayes.infer.density_layout import lay_out
from tinybayes.infer.integer_density import integer_log_likelihood
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import Cuts, Fixed, Float, Grid, Integers, NeuralNet, Variable
from tree_ensembles import tree_ensemble

missing = [f"{tool} (Debian: {packages})" for tool, packages in PACKAGES.items() if shutil.which(tool) is None]
emulated = pytest.mark.skipif(bool(missing), reason=f"not on this machine: {', '.join(missing)}")

KNOWN = """
    .syntax unified
    .thumb
    .section .text.known, "ax"
    .global known
    .thumb_func
known:
    push {{r4-r7}}
    sub sp, #40
    str r0, [sp]
    .rept {nops}
    nop
    .endr
    movs r1, #100
1:  subs r1, #1
    bne 1b
    ldrb r0, [r0, #1]
    add sp, #40
    pop {{r4-r7}}
    bx lr
"""


def test_a_missing_emulator_is_said_before_anything_is_built(monkeypatch):
    monkeypatch.setattr(boards.shutil, "which", {boards.COMPILER: "somewhere"}.get)
    monkeypatch.setattr(measuring, "weigh", lambda *_: pytest.fail("it was built"))
    net = classifier("naive", Fixed(3, 1))
    with pytest.raises(TinybayesError, match="expected the program qemu-system-arm, got none on the path"):
        measure(to_c(net, name="net"), "net", every_state(net))


@pytest.mark.parametrize(
    ("stderr", "words"), [("qemu:  Lockup:\n bad state \n", "got qemu: Lockup: bad state;"), ("", "got exit code 3;")]
)
def test_a_failed_run_says_what_the_emulator_said(monkeypatch, tmp_path, stderr, words):
    done = subprocess.CompletedProcess([], 3, stdout="", stderr=stderr)
    monkeypatch.setattr(boards, "_run", lambda *_: done)
    with pytest.raises(TinybayesError, match=f"expected a run without faults, {words}"):
        boards.emulate(tmp_path / "board.elf", find_board("m0+"), 1.0)


def test_figures_of_a_board_are_worked_by_hand(monkeypatch):
    def emulated_by_hand(image, board, seconds):
        figures = np.array([2, 48], dtype="<u4").tobytes() + np.array([7000, 5400], dtype="<u8").tobytes()
        (image.parent / "figures.bin").write_bytes(figures)  # rows, stack, ticks of calls and of empty calls
        answers = np.array([(1, (5, -6)), (0, (9, 8))], dtype=[("label", "<u4"), ("scores", "<i4", 2)])
        (image.parent / "answers.bin").write_bytes(answers.tobytes())

    monkeypatch.setattr(measuring, "need_tools", lambda: None)
    monkeypatch.setattr(measuring, "weigh", lambda *_: (320, 4))
    monkeypatch.setattr(measuring, "build", lambda directory, *_: directory / "board.elf")
    monkeypatch.setattr(measuring, "emulate", emulated_by_hand)
    probe = Probe("net.h", "net_predict", "uint8_t", 3, "uint8_t", "net_scores", "int32_t", 2)
    found = measure_program({}, probe, np.zeros((2, 3)), find_board("m0+"), repeat=8)
    assert found.instructions == 1600 * 62.5 / 16 + 1  # a tick of 16 MHz is 62.5 ns; 16 calls
    assert (found.flash, found.ram, found.stack) == (320, 4, 48)
    assert found.labels.tolist() == [1, 0]
    assert found.scores.tolist() == [[5, -6], [9, 8]]


def test_a_program_that_compares_raw_values_has_scores_of_raw_values():
    trees = tree_ensemble(3, sets=0, states=[9, 9, 9], leaves=9)
    cuts = [Variable.from_encoding(f"v{i}", Cuts(np.arange(8) / 3)) for i in range(3)]
    texts = to_c(replace(trees, variables=tuple(cuts)), name="net", raw="float", form="nested")
    files, probe = measuring._raw_probe(texts, "net")
    assert files == texts
    assert probe == Probe("net.h", "net_predict_raw", "float", 3, "uint8_t", "net_scores", "int32_t", 3)


def float_scores(net, X):
    """Add 32-bit floats in the order of the generated code."""
    plan = make_plan(net, gaps=True)
    terms, forest = plan.terms, make_forest(plan) if plan.features.gaps else None
    firsts = [term.first for term in (terms if forest is None else forest).terms]
    sums = np.tile(terms.constant.astype(np.float64).sum(axis=0).astype(np.float32), (len(X), 1))
    for term in sorted(terms.terms, key=lambda term: firsts.index(term.first)):
        row = term.first + sum(stride * X[:, feature].astype(np.int64) for feature, stride in term.steps)
        sums = sums + terms.rows[row]
    return sums.astype(np.float32)


def scores_of(net, X):
    """Return what Python says, in the type of the C code."""
    if isinstance(net, NeuralNet):
        return net_scores(net, X).astype(np.int32)
    plan = make_plan(net, gaps=True)
    if plan.values is None:
        return float_scores(net, X)
    return integer_log_joint(net, X, gaps=plan.features.gaps)[0].astype(np.int32)


def same_bytes(net, X, boards):
    texts, wanted = to_c(net, name="net"), scores_of(net, X)
    for found in measure(texts, "net", X, boards=boards):
        assert found.scores.tobytes() == wanted.tobytes(), found.core
        np.testing.assert_array_equal(found.labels, wanted.argmax(axis=1))
        assert found.flash > 0
        assert found.ram == 0
        assert 0 < found.stack < 2000
        assert found.instructions > 10


@emulated
@pytest.mark.parametrize(
    ("structure", "form", "classes"),
    [
        ("naive", Fixed(3, 1), 10),
        ("tree", Float(32), 4),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in (
                ("naive", Fixed(2, 0), 3),
                ("tree", Fixed(3, 0), 26),
                ("tree", Fixed(4, 4), 5),
                ("trees", Fixed(3, 3), 12),
                ("general", codebook(13), 7),
            )
        ),
    ],
    ids=str,
)
def test_every_core_answers_as_python_does(structure, form, classes):
    net = classifier(structure, form, seed=classes, classes=classes, features=9)
    same_bytes(net, every_state(net), tuple(BOARDS))


@emulated
@pytest.mark.parametrize(
    "net",
    [
        classifier("naive", Fixed(3, 1), states=[3] * 60, classes=10),  # lanes are emptied between chunks
        classifier("naive", Fixed(4, 4), features=400, classes=3),  # sums above 16 bits
        classifier("tree", Fixed(3, 1), states=[300, 4, 2], classes=7),  # states above 8 bits
    ],
    ids=["chunks", "wide sums", "many states"],
)
def test_unusual_sizes_on_the_smallest_core(net):
    same_bytes(net, every_state(net), ("m0+",))


@pytest.mark.exhaustive
@emulated
@pytest.mark.parametrize("key", ["conv conv", "conv signs", "deep", "mixed relu", "one-hot sign", "wide 8 bits"])
def test_neural_nets_on_every_core(key):
    net = kinds()[key]
    same_bytes(net, rows_of(net, rows=20)[:22], tuple(BOARDS) if key == "conv conv" else ("m0+",))


@emulated
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_neural_nets_are_small_and_fast(bits):
    net = neural_net((32,), bits=bits, states=[17] * 64, classes=10)
    X = rows_of(net, rows=40)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0  # as half of the pixels of digits are
    (found,) = measure(to_c(net, name="net"), "net", X, boards=["m0+"])
    cost = model_cost(net)
    assert found.flash < cost.bytes + 700
    assert found.instructions < 3.3 * cost.multiplications


@emulated
@pytest.mark.parametrize("kind", ["float", "int"])
def test_raw_values_are_encoded_on_the_board(kind):
    rng = np.random.default_rng(3)
    encodings = [Cuts([-3, 5, 9]), Grid(-8, 2, 7), Integers(4, 6), Cuts([])]
    variables = [Variable.from_encoding(f"v{i}", encoding) for i, encoding in enumerate(encodings)]
    variables.append(Variable("text", ("a", "b")))
    net = zoo.random_net(rng, 5, 0, True, [Fixed(3, 1)], False, [*variables, Variable("y", ("p", "q", "r"))])
    codes = every_state(net, rows=40)
    rows = make_features(net.variables, kind).values(codes)
    (found,) = measure(to_c(net, name="net", raw=kind), "net", rows, raw=True, boards=["m0+"])
    scores = integer_log_joint(net, codes, gaps=True)[0]
    np.testing.assert_array_equal(found.scores, scores)
    np.testing.assert_array_equal(found.labels, scores.argmax(axis=1))


@emulated
@pytest.mark.parametrize("arithmetic", ["integer", "float"])
@pytest.mark.parametrize("raw", [False, True])
def test_circuits_are_measured(arithmetic, raw):
    circuit = compile_circuit(classifier("tree", Fixed(3, 1), features=4, classes=3))
    known = np.column_stack([every_state(circuit, rows=30), np.full(30, -1)])
    known[:15][np.random.default_rng(0).random((15, 5)) < 0.4] = -1
    texts = to_c(circuit, name="net", arithmetic=arithmetic, raw="float")
    rows = make_features(circuit.nodes, "float").values(known) if raw else np.where(known < 0, 255, known)
    (found,) = measure(texts, "net", rows, raw=raw, boards=["m0+"], repeat=1)
    posterior, states = integer_posterior(circuit, known, 4)
    if arithmetic == "integer":
        np.testing.assert_array_equal(found.scores, posterior)
        np.testing.assert_array_equal(found.labels, states)
    else:
        np.testing.assert_allclose(found.scores, posterior / 2**16, atol=2e-5)
    memory = make_circuit_plan(circuit, arithmetic=arithmetic).memory_bytes
    assert found.ram == memory  # the memory that the caller gives
    assert found.instructions > 100


def test_a_circuit_without_raw_values_is_not_measured_through_them():
    circuit = compile_circuit(classifier("tree", Fixed(3, 1), features=4, classes=3))
    with pytest.raises(TinybayesError, match="expected a program that takes raw values"):
        measure(to_c(circuit, name="net", raw="none"), "net", np.zeros((1, 5)), raw=True)


@emulated
@pytest.mark.parametrize("name", ["m0+", "m7"])
def test_instructions_stack_and_bytes_are_counted_exactly(name):
    header = "#include <stdint.h>\nextern uint8_t known(const uint8_t *x);\n"
    probe = Probe("known.h", "known", "uint8_t", 3, "uint8_t")
    rows = np.arange(21).reshape(7, 3)
    found = measure_program({"known.S": KNOWN.format(nops=500), "known.h": header}, probe, rows, find_board(name))
    assert found.instructions == pytest.approx(3 + 500 + 1 + 200 + 1 + 3, abs=0.2)
    assert found.stack == 16 + 40
    assert found.flash == 2 * (3 + 500 + 1 + 2 + 1 + 3)
    np.testing.assert_array_equal(found.labels, rows[:, 1])


@emulated
@pytest.mark.exhaustive
def test_blocks_may_take_longer_than_the_timer_counts():
    files = {"known.S": KNOWN.format(nops=0).replace("movs r1, #100", "movs r1, #1\n    lsls r1, #21")}
    files["known.h"] = "#include <stdint.h>\nextern uint8_t known(const uint8_t *x);\n"
    probe = Probe("known.h", "known", "uint8_t", 3, "uint8_t")
    found = measure_program(files, probe, np.zeros((1, 3)), find_board("m0+"))
    assert 512 * found.instructions * 16e6 / 1e9 > 2**24  # ticks: the one row is called so often in one timing
    assert found.instructions == pytest.approx(3 + 2 + 2 * 2**21 + 1 + 3, abs=1)


@emulated
def test_static_variables_are_counted():
    code = '#include "v.h"\nstatic int32_t a[5] = {1};\nstatic uint8_t b[8];\n'
    code += "uint8_t known(const uint8_t *x) { a[x[0] % 5U]++; b[x[1] % 8U]++; return (uint8_t)(a[1] + b[2]); }\n"
    probe = Probe("v.h", "known", "uint8_t", 3, "uint8_t")
    header = "#include <stdint.h>\nuint8_t known(const uint8_t *x);\n"
    found = measure_program({"v.c": code, "v.h": header}, probe, np.zeros((1, 3)), find_board("m0+"))
    assert found.ram == 20 + 8


@emulated
def test_what_does_not_fit_is_said():
    net = classifier("naive", Fixed(8, 8), states=[6000] * 8, classes=4)
    words = r"Cortex-M0\+ \(microbit\): expected at most 262,144 bytes of flash, got [34]\d\d,\d\d\d; take fewer bits"
    with pytest.raises(TinybayesError, match=words):
        measure(to_c(net, name="net"), "net", every_state(net, rows=3)[:3], boards=["m0+"])


@emulated
def test_a_program_that_never_ends_is_stopped():
    files = {"v.c": '#include "v.h"\nint known(const uint8_t *x) { while (x) {} return 0; }\n'}
    files["v.h"] = "#include <stdint.h>\nint known(const uint8_t *x);\n"
    probe = Probe("v.h", "known", "uint8_t", 3, "int")
    with pytest.raises(TinybayesError, match="qemu-system-arm: expected an end within 1 s"):
        measure_program(files, probe, np.zeros((1, 3)), find_board("m0+"), timeout=1.0)


@emulated
def test_a_fault_on_the_board_is_an_error():
    files = {"v.c": '#include "v.h"\nint known(const uint8_t *x) { __asm volatile("udf #1"); return x[0]; }\n'}
    files["v.h"] = "#include <stdint.h>\nint known(const uint8_t *x);\n"
    probe = Probe("v.h", "known", "uint8_t", 3, "int")
    with pytest.raises(TinybayesError, match="expected a run without faults"):
        measure_program(files, probe, np.zeros((1, 3)), find_board("m0+"), timeout=20.0)


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    net = classifier("naive", Fixed(3, 1))
    with pytest.raises(TinybayesError, match=r"expected the program arm-none-eabi-gcc.*gcc-arm-none-eabi"):
        measure(to_c(net, name="net"), "net", every_state(net))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"boards": ["m5"]}, r"board: expected one of m0\+, m3, m4, m7, got 'm5'"),
        ({"optimize": "fast"}, "optimize: expected one of 0, 1, 2, 3, s"),
        ({"name": "other"}, "expected the files of export"),
        ({"rows": np.full((2, 5), -1)}, "rows: expected numbers within uint8_t"),
        ({"rows": np.zeros((2, 4))}, "rows: expected rows of 5 codes"),
        ({"rows": np.zeros((0, 5))}, "rows: expected rows of 5 codes, at least one"),
    ],
)
def test_wrong_questions(monkeypatch, options, words):
    monkeypatch.setattr(measuring, "need_tools", lambda: None)
    net = classifier("naive", Fixed(3, 1))
    options = {"name": "net", "rows": every_state(net), **options}
    with pytest.raises(TinybayesError, match=words):
        measure(to_c(net, name="net"), **options)


@emulated
def test_the_command_line_shows_figures_beside_the_price(tmp_path):
    net = classifier("naive", Fixed(3, 1), seed=4)
    save(net, tmp_path / "small.tb")
    command = [sys.executable, "-m", "tinybayes", "export", "small.tb", "--measure", "-o", "out", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    small, large = json.loads(done.stdout)["boards"]
    assert (small["core"], large["core"]) == ("Cortex-M0+", "Cortex-M4")
    assert small["flash"] > model_cost(net).bytes
    assert 50 < large["instructions"] < small["instructions"] < 1000


@emulated
def test_figures_of_a_chosen_model_go_into_the_report_of_its_search(tmp_path):
    frame = load_iris(as_frame=True).frame
    chosen = explore(frame, "target", output=tmp_path / "search", families="closed-form", seconds=10).chosen
    run("export", "search", "--to", "c", "--measure", "-o", "out", cwd=tmp_path)
    document = json.loads((tmp_path / "search" / "front.json").read_text())
    noted = {model["id"]: model["boards"] for model in document["models"]}
    assert [board["core"] for board in noted.pop(chosen["id"])] == ["Cortex-M0+", "Cortex-M4"]
    assert set(noted.values()) == {None}
    assert "Cortex-M4" in (tmp_path / "search" / "report.html").read_text()


@emulated
@pytest.mark.parametrize("raw", ["float", "none"])
def test_a_density_says_on_a_board_what_python_says(raw):
    encodings = [Cuts([-1.5, 0.25]), Grid(-2, 0.5, 5), Integers(3, 6), Cuts([0.1, 0.2, 0.3])]
    circuit = random_latent(tuple(Variable.from_encoding(f"v{i}", e) for i, e in enumerate(encodings)), 4)
    alarm = Alarm(-5.0, 6.0, 0.1, 300) if raw == "float" else None
    X = np.random.default_rng(0).integers(-1, circuit.cardinalities, (40, 4))
    features = make_features(circuit.variables, raw, gaps=True, unseen=alarm is not None)
    rows = features.values(X).astype(np.float32) if raw == "float" else np.where(X < 0, features.missing, X)
    unseen = np.zeros(len(X), dtype=np.int64)
    if alarm is not None:
        rows[:5, 2] = [1, 7, 3.5, -np.inf, 1e30]  # not from 3 to 6
        X[:5, 2], unseen[:5] = -1, 1
    for found in measure(to_c(circuit, name="odd", raw=raw, alarm=alarm), "odd", rows, raw=raw == "float"):
        if alarm is None:
            scores = flags = integer_log_likelihood(circuit, X)
        else:
            scores, flags = integer_alarm(circuit, alarm, X, unseen)
            assert flags[:5].all()
        np.testing.assert_array_equal(found.scores[:, 0], scores)
        np.testing.assert_array_equal(found.labels, flags.astype(np.int64) % 2**32)
        assert found.ram == 4 * lay_out(circuit).slots
        assert 500 < found.flash < 4000


def test_a_density_without_raw_values_is_said_so():
    circuit = random_latent((Variable("a", (0, 1)), Variable("b", (0, 1))), 2)
    with pytest.raises(TinybayesError, match="expected a program that takes raw values"):
        measuring._density_probe(to_c(circuit, name="odd", raw="none"), "odd", raw=True)
