"""Generated C in Python: the labels and scores of the model, integers as in C, and counts worked by hand."""

import shutil
import subprocess

import numpy as np
import pytest

from networks import STRUCTURES, classifier, codebook, every_state
from neural_nets import kinds, rows_of
from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy._price.syntax import parse_body
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Array, Dialect, Function, Program
from tinybayes.errors import TinybayesError
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.scores import predict_codes
from tinybayes.model import Fixed, Float, NeuralNet

DIALECT = Dialect("net", "net_")


def machine_of(*functions, tables=()):
    return Machine(Program((), functions, (), (), tables=tables), DIALECT)


def function(name, body, parameters=(), returns="uint32_t", **more):
    return Function(name, returns, parameters, tuple(body), **more)


def check(net, X, raw, gaps):
    plan = make_plan(net, raw, gaps=gaps)
    machine = Machine(classifier_program(plan, DIALECT, ""), DIALECT)
    values = plan.features.values(X)
    rows = (values if raw == "float" else values.astype(np.int64)).tolist()
    labels = [machine.call("net_predict_raw", [(row, 0)]) for row in rows]
    np.testing.assert_array_equal(labels, predict_codes(net, X))
    if plan.score == "float":
        return
    scores = net_scores(net, X) if isinstance(net, NeuralNet) else integer_log_joint(net, X)[0] << plan.shift
    for x, wanted in zip(np.where(X < 0, plan.features.missing, X).tolist(), scores.tolist(), strict=True):
        made = [0] * plan.classes
        machine.call("net_scores", [(x, 0), (made, 0)])
        assert made == wanted


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("form", [Fixed(1, 0), Fixed(3, 1), Fixed(3, 5), Fixed(8, 8), codebook(13), Float(32)], ids=str)
def test_networks_answer_as_python_does(structure, form):
    net = classifier(structure, form, features=7, classes=10)
    for raw, gaps in (("float", False), ("int", True)):
        check(net, every_state(net, rows=12)[:12], raw, gaps)


@pytest.mark.parametrize(
    "key", ["deep", "mixed relu", "one-hot sign", "some relu", "linear", "conv conv", "conv signs"]
)
def test_neural_nets_answer_as_python_does(key):
    net = kinds()[key]
    check(net, rows_of(net, rows=4)[:5], "float", True)


@pytest.mark.parametrize("form", [Fixed(3, 1), codebook(13)], ids=str)
@pytest.mark.parametrize("structure", ["naive", "tree"])
def test_rows_with_gaps_answer_as_python_does(structure, form):
    net = classifier(structure, form, features=5, classes=3)
    X = every_state(net, rows=10)[:10]
    X[np.random.default_rng(0).random(X.shape) < 0.3] = -1
    plan = make_plan(net, "float", gaps=True)
    machine = Machine(classifier_program(plan, DIALECT, ""), DIALECT)
    labels = [machine.call("net_predict_raw", [(row, 0)]) for row in plan.features.values(X).tolist()]
    np.testing.assert_array_equal(labels, predict_codes(net, X))


EXPRESSIONS = [
    "a - b",
    "(a - b) >> 3",
    "a * 2654435761U",
    "(uint32_t)-(int32_t)a",
    "(uint8_t)(a + 250U)",
    "(uint32_t)(int32_t)(int8_t)a",
    "(uint32_t)((int32_t)a / 3)",
    "(uint32_t)((int32_t)(a - b) / 7)",
    "(uint32_t)((int32_t)(a - b) % 7)",
    "(uint32_t)((int32_t)(a - b) >> 2)",
    "~a ^ b",
    "a < b ? a : b",
    "(a & 255U) << 24 | b >> 8",
    "(uint32_t)(a && !b) + (uint32_t)(a || b)",
    "(uint32_t)((uint16_t)a * 3 - (uint16_t)b)",
    "a % 10U + b / 3U",
]
PAIRS = [(0, 0), (3, 5), (5, 3), (200, 7), (65535, 65536), (2**31, 1), (2**32 - 1, 2**31 - 1), (123456789, 987654321)]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_integers_wrap_as_in_c(tmp_path):
    functions = [f"uint32_t f{i}(uint32_t a, uint32_t b) {{ return {e}; }}" for i, e in enumerate(EXPRESSIONS)]
    calls = [f'printf("%u\\n", f{i}({a}U, {b}U));' for i in range(len(EXPRESSIONS)) for a, b in PAIRS]
    text = "#include <stdint.h>\n#include <stdio.h>\n" + "\n".join(functions)
    (tmp_path / "f.c").write_text(f"{text}\nint main(void) {{ {' '.join(calls)} return 0; }}\n")
    subprocess.run(["cc", "-fwrapv", "-w", "-o", "f", "f.c"], cwd=tmp_path, check=True)
    wanted = iter(map(int, subprocess.run(["./f"], cwd=tmp_path, capture_output=True, check=True).stdout.split()))
    for expression in EXPRESSIONS:
        machine = machine_of(function("f", [f"return {expression};"], ("uint32_t a", "uint32_t b")))
        assert [machine.call("f", [a, b]) for a, b in PAIRS] == [next(wanted) for _ in PAIRS], expression


def test_statements_pointers_and_tables():
    body = """
    uint32_t sum = 0, i;
    const uint8_t *p = x + 1;
    int32_t out[3];
    do {
        sum += *p++;
    } while (p < x + 4);
    for (i = 0; i < 100U; ++i) {
        if (i == 3U) {
            continue;
        } else if (i > 6U) {
            break;
        }
        sum += step[i % 2U][1] * pair[i % 3U].high;
    }
    out[0] = -5;
    out[2] = out[0] + 7;
    while (--i) {
        ++out[1];
        out[1]++;
    }
    return sum + (uint32_t)out[2] + (uint32_t)out[1];
    """
    pair = Array("pair", np.array([(1, 2), (3, 40), (5, 600)], dtype=[("low", "u1"), ("high", "u2")]))
    step = Array("step", np.array([[1, 2], [3, 4]], dtype=np.uint8))
    machine = machine_of(function("f", body.splitlines(), ("const uint8_t *x",), arrays=(pair,)), tables=(step,))
    products = sum([2, 4][i % 2] * [2, 40, 600][i % 3] for i in (0, 1, 2, 4, 5, 6))
    assert machine.call("f", [([9, 1, 2, 3, 9], 0)]) == 1 + 2 + 3 + products + 2 + 2 * 6
    assert set(machine.tables) == {"pair", "step"}


def test_blocks_are_counted_as_often_as_they_run():
    inner = function("twice", ["return a + a;"], ("uint32_t a",))
    body = ["uint32_t s = 0, i;", "for (i = 0; i < 10U; ++i) {", "    if (x[i] > 4U) {"]
    body += ["        s += twice(x[i]);", "    }", "}", "return s;"]
    machine = machine_of(inner, function("f", body, ("const uint16_t *x",)))
    assert machine.call("f", [(list(range(10)), 0)]) == 2 * (5 + 6 + 7 + 8 + 9)
    counted = list(zip(machine.tallies, machine.hits, strict=True))
    assert sum(tally["alu"] * hits for tally, hits in counted) == 10 + 2 * 5  # ++i, s += and a + a
    assert sum(tally["load16"] * hits for tally, hits in counted) == 10  # the second x[i] is in a register
    assert machine.codes["twice"].inlined


def test_a_short_loop_over_a_table_is_written_out_and_a_long_one_is_not():
    def tables(count):
        start = Array("start", np.arange(count, dtype=np.uint32))
        body = ["unsigned c;", f"for (c = 0; c < {count}U; ++c) {{", "    sum[c] = start[c];", "}", "return 0;"]
        machine = machine_of(function("f", body, ("uint32_t *sum",), arrays=(start,)))
        out = [9] * count
        machine.call("f", [(out, 0)])
        assert out == list(range(count))
        return set(machine.tables)

    assert tables(3) == set()  # the numbers are in the code
    assert tables(8) == {"start"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (["return missing;"], "expected a name of the program, got 'missing'"),
        (["return g(1);"], "expected a function of the program, got 'g'"),
        (["return (1;"], r"expected \), got ';'"),
    ],
)
def test_code_that_cannot_be_read_is_an_error(body, words):
    with pytest.raises(TinybayesError, match=words):
        machine_of(function("f", body)).call("f", [])


def test_comments_and_empty_bodies_are_read():
    assert parse_body(["/* a */", ";", "(void)x; /* b", "c */"]).parts[0].kind == "empty"
