"""Probabilities, margins, labels or none, names and the self-test: C, C++ and Arduino's C say what Python says."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from test_c import cut

import gaps
from c_host import SANITIZERS, compiler
from cases import exhaustive
from networks import classifier, codebook, every_state
from neural_nets import kinds, neural_net, rows_of
from targets_host import QUICK, unzipped
from tinybayes.deploy._boards.boards import PACKAGES, find_board, weigh
from tinybayes.deploy._boards.monitor import Probe
from tinybayes.deploy.export import export, write_files
from tinybayes.deploy.measure import measure_program
from tinybayes.deploy.programs.answers import c_string, exponent
from tinybayes.deploy.programs.interface import margin_units
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.selftest import given_rows, python_scores, tolerance
from tinybayes.deploy.programs.selftest import test_rows as rows_of_the_test
from tinybayes.infer.calibration import Calibration, Margin
from tinybayes.infer.fixed_probabilities import (
    fixed_probabilities,
    labels_or,
    last_exponent,
    make_scale,
    score_margins,
)
from tinybayes.model import CPD, BayesNet, Fixed, Float, NeuralNet, Variable

UNDEFINED = [*SANITIZERS, "-fsanitize=float-cast-overflow"]
CALIBRATION = Calibration(1.7, 500, chosen=Margin(0.02, 1.5, 0.018, 0.25))
OTHERWISE = 250
NAMES = ('a "quoted" name', "back\\slash", "what??/", "größer\n")


def named():
    """Class names that no string holds as they are."""
    form = Fixed(3, 1)
    cpds = (CPD((1,), np.arange(8, dtype=np.uint8).reshape(4, 2), form), CPD((), np.zeros((1, 4), np.uint8), form))
    return BayesNet((Variable("x", ("a", "b")),), Variable("y", NAMES), cpds)


def nothing():
    return BayesNet((), Variable("y", ("a", "b")), (CPD((), np.array([[2, 1]], np.uint8), Fixed(3, 1)),))


@dataclass(frozen=True, eq=False)
class Case:
    """A classifier, the options of its export, and rows of codes."""

    name: str
    net: BayesNet | NeuralNet
    options: dict = field(default_factory=dict)

    @property
    def plan(self):
        return make_plan(self.net, self.options.get("raw"), gaps=self.options.get("gaps", True))

    @property
    def rows(self):
        complete = (rows_of if isinstance(self.net, NeuralNet) else every_state)(self.net, rows=12)[:30]
        return gaps.with_more_and_more_gaps(complete, seed=1) if self.plan.features.gaps and complete.size else complete

    @property
    def given(self):
        """The rows in the type of the program."""
        features = self.plan.features
        kind = {"float": np.float32, "int": np.int32}.get(features.raw, features.state.removesuffix("_t"))
        return given_rows(self.plan, self.rows).astype(kind)


def networks():
    return {
        "tree": classifier("tree", Fixed(3, 1), classes=5),
        "wide": classifier("naive", Fixed(8, 16), classes=3),
        "tied": classifier("forest", codebook(13), classes=4, seed=1),
        "impossible": classifier("tree", codebook(9, zeros=True), zeros=True, seed=3),
        "floats": classifier("general", Float(32), seed=4),
        "zeros": classifier("naive", Float(32), zeros=True, seed=4),
        "trees": classifier("trees", Fixed(4, 4), seed=5),
        "one_class": classifier("naive", Fixed(3, 1), classes=1),
        "many": classifier("naive", Fixed(3, 3), states=[2, 3], classes=256),
        "measured": cut([[0.1, 0.7, 3.0], [-5.5], []], Fixed(3, 1)),
        "measured_floats": cut([[0.1, 0.7, 3.0], [-5.5]], Float(32)),
        "names": named(),
        "nothing": nothing(),
        "net": neural_net((6,), bits=3, classes=7, scaled=True, inputs="mixed"),
        "conv": kinds()["conv"],
    }


CASES = [Case(key, net) for key, net in networks().items()]
CASES += [
    Case("codes", networks()["tree"], {"raw": "none"}),
    Case("complete", networks()["measured"], {"gaps": False}),
    Case("complete_net", networks()["net"], {"gaps": False, "raw": "none"}),
]
BY_NAME = {case.name: case for case in CASES}

C_BLOCK = """    for (r = 0; r < {rows}; ++r) {{
        {kind} v[{width}];
        {state} x[{width}] = {{0}};
        {score} s[{classes}];
        uint16_t p[{classes}];
        if (fread(v, sizeof v[0], {width}, stdin) != {width}) return 1;
        {encode};
        {name}_scores(x, s);
        {name}_probabilities(x, p);
        printf("%ld %ld %ld ", (long){name}_{predict}(v), (long){name}_predict_or(v, {NAME}_MARGIN, {otherwise}),
               (long){name}_predict_or(v, 0, {otherwise}));
        printf("{print} ", {cast}{name}_score_margin(x));
        for (c = 0; c < {classes}; ++c) printf("{print} %ld ", {cast}s[c], (long)p[c]);
        printf("\\n");
    }}
    printf("%d %d\\n", {name}_selftest(), (int){NAME}_ONE);
    for (c = 0; c < {classes}; ++c) printf("%s;", {name}_class_name(({label})c));
    printf("\\n%d\\n", (int){name}_class_name(({label})(0U - 1U))[0]);
"""
CPP_BLOCK = """    for (r = 0; r < {rows}; ++r) {{
        std::array<{name}::{Row}, {width}> v;
        if (fread(v.data(), sizeof v[0], {width}, stdin) != {width}) return 1;
        const auto x = {encode};
        const auto s = {name}::scores(x);
        const std::array<uint16_t, {name}::classes> p = {name}::probabilities(x);
        printf("%ld %ld %ld ", (long){name}::{predict}(v), (long){name}::predict_or(v, {name}::margin, {otherwise}),
               (long){name}::predict_or(v, 0, {otherwise}));
        printf("{print} ", {cast}{name}::score_margin(x));
        for (c = 0; c < {classes}; ++c) printf("{print} %ld ", {cast}s[c], (long)p[c]);
        printf("\\n");
    }}
    printf("%d %d\\n", {name}::selftest(), (int){name}::one);
    for (c = 0; c < {classes}; ++c) printf("%s;", {name}::class_name(({name}::Label)c));
    printf("\\n%d\\n", (int){name}::class_name(({name}::Label)(0U - 1U))[0]);
"""


def main_of(cases, block, cpp=False):
    """Write a program that answers the rows of all cases one after another."""
    out = "#include <stdio.h>\n" + "".join(f'#include "{case.name}.{"hpp" if cpp else "h"}"\n' for case in cases)
    out += "int main(void)\n{\n    unsigned r, c;\n"
    for case in cases:
        plan, raw = case.plan, bool(case.plan.features.value)
        encode = f"{case.name}_encode(v, x)" if raw else "for (c = 0; c < sizeof v / sizeof v[0]; ++c) x[c] = v[c]"
        out += block.format(
            name=case.name,
            NAME=case.name.upper(),
            rows=len(case.given),
            width=max(1, len(plan.variables)),
            classes=plan.classes,
            kind=plan.features.value or plan.features.state,
            state=plan.features.state,
            Row="Value" if raw else "State",
            encode=(f"{case.name}::encode(v)" if raw else "v") if cpp else encode,
            predict="predict_raw" if raw else "predict",
            label=plan.label,
            score=plan.score,
            print="%.9g" if plan.score == "float" else "%ld",
            cast="(double)" if plan.score == "float" else "(long)",
            otherwise=OTHERWISE,
        )
    return out + "    return 0;\n}\n"


def build(directory, target, cases):
    """Build a target, C under sanitizers; return the directory with ``main`` in it."""
    for case in cases:
        files = export(case.net, target, name=case.name, calibration=CALIBRATION, **case.options)
        if target == "arduino":
            unzipped(directory, files)
        else:
            write_files(files, directory)
    cpp = target == "cpp"
    (directory / f"main.{'cpp' if cpp else 'c'}").write_text(main_of(cases, CPP_BLOCK if cpp else C_BLOCK, cpp=cpp))
    folder = "{0}/src/" if target == "arduino" else ""
    command = [compiler(), *QUICK, *(UNDEFINED if target == "c" else ()), "main.c"]
    command += [f"-I{folder.format(case.name)}" for case in cases if folder]
    command += [f"{folder.format(case.name)}{case.name}.c" for case in cases]
    if cpp:
        if shutil.which("g++") is None:
            pytest.skip("no g++ on this machine")
        flags = [flag.replace("c99", "c++11") for flag in QUICK]
        command = ["g++", *flags, "-Wshadow", "main.cpp"]
    done = subprocess.run([*command, "-o", "main"], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return directory


@pytest.fixture(scope="module", params=["c", "cpp", "arduino"])
def answers(request, tmp_path_factory):
    """What each case printed: its lines of numbers, the line of the self-test, the names, the name of no class."""
    cases = [case for case in CASES if request.param != "cpp" or case.name != "nothing"]  # its rows are empty arrays
    directory = build(tmp_path_factory.mktemp(request.param), request.param, cases)
    rows = b"".join(case.given.tobytes() for case in cases)
    done = subprocess.run(["./main"], cwd=directory, input=rows, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    text, found = done.stdout.decode(), {}
    for case in cases:
        *lines, text = text.split("\n", len(case.given) + 1)
        names, text = text[: (end := text.index(";\n"))], text[end + 2 :]
        last, text = text.split("\n", 1)
        found[case.name] = (*lines, names.split(";"), int(last))
    assert text == ""
    return found


@pytest.mark.parametrize("name", BY_NAME)
def test_every_answer_is_that_of_python(answers, name):
    if name not in answers:
        return
    plan = BY_NAME[name].plan
    *lines, tested, names, last = answers[name]
    numbers = np.array([[float(word) for word in line.split()] for line in lines])
    label, chosen, sure, margin = numbers[:, :4].T
    scores, p = numbers[:, 4::2], numbers[:, 5::2]
    exact = python_scores(plan, BY_NAME[name].rows)
    if plan.score == "float":
        finite = np.isfinite(exact)
        assert np.abs(scores[finite] - exact[finite]).max() <= tolerance(plan)
        assert (np.isneginf(scores) == ~finite).all()
        scores = scores.astype(np.float32)  # nine digits: the bits of the device
    else:
        np.testing.assert_array_equal(scores, exact)
        scores = exact
    np.testing.assert_array_equal(p, fixed_probabilities(scores, make_scale(plan.nats, 1.7)))
    np.testing.assert_array_equal(margin.astype(scores.dtype), score_margins(scores))
    least = margin_units(plan, 1.5)
    rejected = score_margins(scores) < least
    np.testing.assert_array_equal(chosen, np.where(rejected, OTHERWISE, label))
    np.testing.assert_array_equal(sure, label)
    if name != "floats":  # whose labels may differ from those of rounded scores
        np.testing.assert_array_equal(chosen, labels_or(scores, least, OTHERWISE))
    assert tested == "0 32768"
    assert names == [str(state) for state in plan.target.states]
    assert last == (0 if plan.classes < 256 else ord("c"))


def test_the_cases_keep_and_reject_rows():
    kept = [score_margins(python_scores(c.plan, c.rows)) >= margin_units(c.plan, 1.5) for c in CASES]
    assert sum(rows.any() and not rows.all() for rows in kept) > len(CASES) / 2


@pytest.mark.parametrize("name", ["measured_floats", *exhaustive("tree", "net", "codes")])
def test_the_self_test_finds_the_row_that_differs(tmp_path, name):
    case = BY_NAME[name]
    texts = export(case.net, "c", name="net", **case.options)
    head, table = texts["net.c"].split("test_score[12]")
    (tmp_path / "net.h").write_text(texts["net.h"])
    numbers = list(re.finditer(r"-?\d[\d.e+-]*(?=F?[,\n])", table[: table.index("};")]))
    main = '#include "net.h"\nint main(void) { return net_selftest(); }\n'
    (tmp_path / "main.c").write_text(main)
    for wrong in (0, 7 * case.plan.classes + 1, len(numbers) - 1):
        number = numbers[wrong]
        other = f"{float(number[0]) + 1:.6g}" if case.plan.score == "float" else str(int(number[0]) + 1)
        changed = table[: number.start()] + other + table[number.end() :]
        (tmp_path / "net.c").write_text(f"{head}test_score[12]{changed}")
        subprocess.run([compiler(), "-std=c99", "main.c", "net.c", "-o", "main"], cwd=tmp_path, check=True)
        assert subprocess.run(["./main"], cwd=tmp_path).returncode == wrong // case.plan.classes + 1


@pytest.mark.skipif(not all(shutil.which(tool) for tool in PACKAGES), reason="no cross compiler or no emulator")
@pytest.mark.parametrize("name", ["measured_floats", *exhaustive("net")])
def test_the_self_test_passes_on_a_board(name):
    around = '#include "call.h"\n#include "net.h"\nuint8_t call(const uint8_t *x)\n{\n    (void)x;\n'
    files = {
        **export(BY_NAME[name].net, "c", name="net"),
        "call.h": "#include <stdint.h>\nuint8_t call(const uint8_t *x);\n",
        "call.c": f"{around}    return (uint8_t)net_selftest();\n}}\n",
    }
    rows = np.zeros((1, 1), np.uint8)
    found = measure_program(files, Probe("call.h", "call", "uint8_t", 1, "uint8_t"), rows, find_board("m0+"))
    assert found.labels.tolist() == [0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows_of_the_self_test_have_gaps_and_many_labels(case):
    rows, plan = rows_of_the_test(case.plan), case.plan
    np.testing.assert_array_equal(rows, rows_of_the_test(case.plan))
    assert len(rows) == 12
    if plan.features.gaps and rows.size:
        assert (rows < 0).any(axis=1).sum() == 3
    else:
        assert not (rows < 0).any()
    drawn = np.random.default_rng(5).integers(0, [v.cardinality for v in plan.variables], (2000, rows.shape[1]))
    possible = len(np.unique(python_scores(plan, drawn).argmax(axis=1)))
    assert len(np.unique(python_scores(plan, rows[:9]).argmax(axis=1))) >= min(possible, 9) - 1


def test_a_self_test_of_many_features_fits_in_the_memory_of_small_controllers():
    net = classifier("naive", Fixed(3, 1), states=[2] * 3000, classes=2)
    assert len(rows_of_the_test(make_plan(net, "int", gaps=True))) == 2


def test_without_extras_there_is_the_prediction_only():
    net = networks()["tree"]
    for target in ("c", "cpp"):
        full, bare = ("".join(export(net, target, extras=extras).values()) for extras in (True, False))
        for word in ("probabilities", "score_margin", "predict_or", "class_name", "selftest"):
            assert f"{word}(" in full
            assert f"{word}(" not in bare


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no cross compiler")
@pytest.mark.parametrize("name", ["measured", "net", *exhaustive("tree", "tied", "floats", "conv")])
def test_extras_that_nobody_calls_cost_nothing(tmp_path, name):
    weights = []
    for extras in (True, False):
        texts = export(BY_NAME[name].net, "c", name="net", extras=extras)
        weights.append(weigh(tmp_path, texts, find_board("m0+"), ["-Os"], "net_predict_raw"))
    assert weights[0] == weights[1]


def test_headers_state_the_model_its_price_and_its_calibration():
    case = BY_NAME["measured"]
    header = export(case.net, "c", name="net", calibration=CALIBRATION, note="Error on test rows: 3.00 %.")["net.h"]
    top = header[: header.index("*/")]
    assert re.search(r"predict_raw on a Cortex-M0\+, estimated: \d+ B of flash, 0 B of static RAM, \d+ B of stack", top)
    assert (
        "Probabilities are a softmax of scores at temperature 1.7 (fitted on 500 validation rows), within 7.4e-05"
        in top
    )
    assert "Missing values are summed out." in top
    assert "Error on test rows: 3.00 %." in top
    assert f"Model {case.plan.id}." in top
    assert re.search(
        r"rejected: 25\.00 % of 500 validation rows; 1\.80 % of the others wrong. \*/\n#define NET_MARGIN 1536\n",
        header,
    )
    plain = export(case.net, "c", name="net")["net.h"]
    assert "temperature 1 (not calibrated)" in plain
    assert "NET_MARGIN" not in plain


def test_margins_are_rounded_up_to_the_unit_of_scores():
    coarse, fine = (make_plan(networks()["tree"], gaps=gaps) for gaps in (False, True))
    assert [margin_units(coarse, nats) for nats in (0.0, 0.5, 0.6, 1.0)] == [0, 1, 2, 2]
    assert margin_units(fine, 0.6) == 615
    assert margin_units(fine, 1e9) == 2**31 - 1
    assert margin_units(make_plan(networks()["floats"]), 0.6) == 0.6


def test_features_do_not_take_the_names_of_constants():
    variables = (Variable("one", ("a", "b")), Variable("margin", ("a", "b")))
    form = Fixed(3, 1)
    cpds = [CPD((2,), np.zeros((2, 2), np.uint8), form)] * 2
    net = BayesNet(variables, Variable("y", ("a", "b")), (*cpds, CPD((), np.zeros((1, 2), np.uint8), form)))
    header = export(net, "c", name="net", calibration=CALIBRATION)["net.h"]
    names = re.findall(r"(?:#define |^ +)(NET_\w+)", header, flags=re.MULTILINE)
    assert {"NET_ONE", "NET_ONE_2", "NET_MARGIN", "NET_MARGIN_2"} <= set(names)
    assert all(a != b for a, b in pairwise(sorted(names)))


def test_strings_of_c():
    assert c_string('a"b\\c?ä\n') == '"a\\042b\\134c\\077\\303\\244\\012"'


def test_exponents_in_32_bits_are_those_of_python(tmp_path):
    """Scales from far below one unit to far above, differences of all sizes."""
    rng = np.random.default_rng(0)
    units = np.exp2(rng.uniform(-66, 20, 150))
    cases = [(make_scale(unit), last_exponent(int(classes))) for unit in units for classes in (2, 300)]
    drawn = [int(2**bits) for bits in rng.uniform(0, 32, 60)]
    d = np.array([*drawn, 0, 1, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1], dtype=object)
    lines = "".join(f"    for (i = 0; i < {len(d)}; ++i) show(d{j}(given[i]));\n" for j in range(len(cases)))
    functions = "".join(
        f"static uint32_t d{j}(uint32_t d)\n{{\n    {exponent(*case)}\n    return z;\n}}\n"
        for j, case in enumerate(cases)
    )
    (tmp_path / "main.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n"
        f"static const uint32_t given[] = {{{', '.join(f'{v}U' for v in d)}}};\n"
        f'static void show(uint32_t z) {{ printf("%lu\\n", (unsigned long)z); }}\n{functions}'
        f"int main(void)\n{{\n    unsigned i;\n{lines}    return 0;\n}}\n"
    )
    subprocess.run([compiler(), *QUICK, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    printed = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    exact = [min(v * scale.multiplier >> scale.shift, last) for scale, last in cases for v in d]
    assert list(map(int, printed)) == exact
