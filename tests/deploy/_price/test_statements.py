"""The reader of generated C at its edges: functions answer as compiled ones do, and operations are tallied by hand."""

import shutil
import subprocess
from collections import Counter

import numpy as np
import pytest

from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy.programs.program import Array, Constant, Dialect, Function, Program
from tinybayes.errors import TinybayesError

DIALECT = Dialect("net", "net_")
TABLES = (
    Array("step", np.array([[1, 2, 30], [4, 5, 60]], dtype=np.uint8)),
    Array("start", np.array([100, 200, 300], dtype=np.uint16)),
)
CONSTANTS = {"SMALL": 1, "HUNDRED": 100, "TOP": 2**31 - 1, "HIGH": 2**31, "LOW": -5}
# Functions of a word, of bytes to write on, and of larger numbers.
BODIES = {
    "continue in a do loop": "unsigned i = 0; do { if (++i == 2U) { continue; } a += i; } while (i < 6U); return a;",
    "continue in a while loop": "unsigned i = 0; while (i < 6U) { ++i; if (i & 1U) { continue; } a += i; } return a;",
    "break out of a do loop": "unsigned i = 0; do { a += 3U; if (++i > 4U) { break; } } while (1); return a;",
    "return out of a loop": "unsigned i; for (i = 0; i < 9U; ++i) { if (w[i % 3U] == 77U) { return i; } } return 99U;",
    "return out of one turn": "unsigned i; for (i = 0; i < 1U; ++i) { if (a & 1U) { return 7U; } } return i + 5U;",
    "break out of one turn": "unsigned i; for (i = 0; i < 1U; ++i) { if (a & 1U) { break; } a = 9U; } return a;",
    "continue in two turns": "unsigned i; for (i = 0; i < 2U; ++i) { if (a & 1U) { continue; } a += w[i]; } return a;",
    "from a later number": "unsigned i; for (i = 2U; i < 4U; ++i) { a += w[i - 2U]; } return a * 10U + i;",
    "no turn": "unsigned i; for (i = 3U; i < 3U; ++i) { a += 5U; } return a;",
    "an entry stepped down below zero": "x[1] = 0; a = x[1]--; return a * 1000U + x[1];",
    "an entry stepped up beyond its type": "x[1] = 255; a = x[1]++; return a * 1000U + x[1];",
    "an entry stepped up": "x[1] = 7; a = ++x[1]; x[0] = x[1]++; return a * 1000U + x[0];",
    "an entry stepped down": "x[1] = 7; a = --x[1]; x[0] = x[1]--; return a * 1000U + x[0];",
    "bytes wrap": "x[0] = 250; x[0] += 10; x[1] -= 200; return (uint32_t)x[0] * 1000U + x[1];",
    "a difference of pointers": "const uint8_t *p = x; while (*p) { ++p; } return (uint32_t)(p - x) + a;",
    "a difference the other way": "const uint16_t *p = w + 2, *q = w; return (uint32_t)((q - p) * 10 + (p - q));",
    "rows of a table": "const uint8_t *p = step[a & 1U]; return (uint32_t)(p[1] * 100 + *(p + 2));",
    "order of pointers": "const uint8_t *p = x + 1; return (uint32_t)((p > x) * 2 + (x + 2 <= p));",
    "a chosen sign": "return (uint32_t)(a & 1U ? -1 : 1) / 2U;",
    "narrow and back": "int8_t b = (int8_t)a; int16_t c = (int16_t)(b * 300); return (uint32_t)c;",
    "sign of a byte": "return (uint32_t)(int8_t)a;",
    "sign of a half word": "return (uint32_t)(int16_t)(a * 77U) >> 1;",
    "constant below zero": "return (uint32_t)(NET_LOW < 0) + (uint32_t)(a < (uint32_t)NET_LOW);",
    "constant of 100": "return (uint32_t)(-NET_HUNDRED < 1) + (uint32_t)(-NET_SMALL < 1);",
    "constant of 31 bits": "return (uint32_t)(-1 < NET_TOP);",
    "constant of 32 bits": "return (uint32_t)(-1 < NET_HIGH);",
    "least integer": "return (uint32_t)(INT32_MIN < 0);",
    "number of 31 bits": "return (uint32_t)(-1 < 0x7fffffff);",
    "number of 32 bits": "return (uint32_t)(-1 < 0x80000000);",
    "endless": "unsigned i = 0; for (;;) { if (++i > 5U) { break; } a += i; } return a;",
    "a shift keeps the sign": "uint32_t n = w[0] & 7U; return (uint32_t)((int32_t)a >> n) + (uint32_t)(x[0] << n);",
    "a small type is shifted as an integer": "return (uint32_t)((x[0] << 8) >> 4) + (uint32_t)(-x[1] >> 1);",
    "signed beside unsigned": "return (uint32_t)(a < (uint32_t)-1) + (uint32_t)(a > -2) * 2U + a / -1;",
    "a small type beside a large one": "return (uint32_t)(w[0] - a > 0) + (uint32_t)(x[0] - w[0] > 0) * 2U;",
    "small types side by side": "return (uint32_t)((int8_t)x[0] < (int16_t)w[2]) + (uint32_t)((int8_t)x[0] * w[1]);",
    "logic": "return (uint32_t)(a && x[0] || !w[0]);",
    "a chain of conditions": "return a > 100U ? 3U : a > 10U ? 2U : 1U;",
    "shifts of a signed number": "return (uint32_t)(((int32_t)a >> 3) + ((int32_t)(a & 7U) << 2));",
}
INPUTS = [(0, [3, 1, 0, 9], [5, 6, 7]), (5, [250, 0, 0, 1], [77, 0, 1]), (200, [1, 9, 4, 0], [1, 77, 65535])]
INPUTS += [(2**31, [1, 0, 2, 3], [0, 0, 0]), (2**32 - 1, [255, 255, 255, 0], [9, 9, 77])]
PARAMETERS = ("uint32_t a", "uint8_t *x", "const uint16_t *w")


def machine_of(body, parameters=PARAMETERS, **more):
    constants = tuple(Constant(name, str(value)) for name, value in CONSTANTS.items())
    made = Function("f", "uint32_t", parameters, (body,), **more)
    return Machine(Program((), (made,), (), constants, tables=TABLES), DIALECT)


def tallied(body, *arguments):
    """Return the operations that ran, by kind."""
    parameters = ("uint32_t a", "uint32_t b", "const uint16_t *w", "uint32_t *out")
    machine = machine_of(body, parameters)
    machine.call("f", [*arguments, ([5, 6, 7, 8], 0), ([0] * 4, 0)])
    total = Counter()
    for tally, hits in zip(machine.tallies, machine.hits, strict=True):
        for kind, count in tally.items():
            total[kind] += count * hits
    return total


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_statements_answer_as_compiled_ones_do(tmp_path):
    text = "#include <stdint.h>\n#include <stdio.h>\n"
    text += "".join(f"#define NET_{name} ({value}{'U' * (value >= 2**31)})\n" for name, value in CONSTANTS.items())
    text += "".join(array.text(DIALECT) + "\n" for array in TABLES)
    calls = []
    for i, body in enumerate(BODIES.values()):
        text += f"static uint32_t f{i}({', '.join(PARAMETERS)}) {{ (void)a; (void)x; (void)w; {body} }}\n"
        for a, x, w in INPUTS:
            lists = f"uint8_t x[] = {{{', '.join(map(str, x))}}}; uint16_t w[] = {{{', '.join(map(str, w))}}};"
            calls.append(f'{{ {lists} printf("%u", f{i}({a}U, x, w)); printf(" %u %u\\n", x[0], x[1]); }}')
    (tmp_path / "f.c").write_text(f"{text}int main(void) {{ {' '.join(calls)} return 0; }}\n")
    subprocess.run(["cc", "-fwrapv", "-w", "-o", "f", "f.c"], cwd=tmp_path, check=True)
    lines = iter(subprocess.run(["./f"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines())
    for name, body in BODIES.items():
        for a, x, w in INPUTS:
            bytes_of = list(x)
            label = machine_of(body).call("f", [a, (bytes_of, 0), (list(w), 0)])
            assert [label, *bytes_of[:2]] == list(map(int, next(lines).split())), (name, a)


# Functions, and what they take: kinds of operations with their numbers.
TALLIED = {
    "return a;": "local 1",
    "return !a;": "compare 1 local 1",
    "return -a + ~b;": "alu 3 local 2",
    "return a * 0U;": "mul 1 constant 1 local 2",
    "return a * 3U + b * 8U;": "mul 1 alu 2 constant 1 local 3",  # one of them is a shift
    "return a / 3U + b / 4U + a % 10U;": "div 2 alu 3 constant 2 local 4",
    "return (a & 255U) + (b & 65535U) + (a & 0xF0FU);": "alu 5 constant 1 local 3",
    "return a + 255U;": "alu 1 local 1",
    "return a + 256U;": "alu 1 constant 1 local 2",
    "return (a << 3) + (b >> 2);": "alu 1 shift 2 local 2",
    "return a << b;": "alu 1 local 2",
    "return (uint32_t)(w < w + a);": "compare 1 alu 1 scale 1 local 2",
    "return w[a] + w[1] + w[a];": "load16 2 alu 2 scale 1 local 2",  # w[a] is in a register
    "s[a] = (int8_t)b; return 0;": "store8 1 local 3",
    "return (uint32_t)s[a];": "load_signed 1 local 2",
    "return start[a - 1U] + step[1][b];": "load16 1 load8 1 base 2 address 1 alu 1 scale 1 local 4",
    "g[0] = g[1] * g[2] + 1.0F; return g[0] > g[1];": (
        "float_add 1 float_mul 1 float_compare 1 load32 4 store32 1 local 1"
    ),
    "return (uint32_t)g[0];": "float_convert 1 load32 1 local 1",
    "return a < b ? a : 7U;": "compare 1 branch 1 move 1 local 2",
    "return a && b || w[0];": "branch 2 local 3",  # the last one is not read
    "uint32_t i; for (i = 0; i < a; ++i) { b += w[i]; } return b;": (
        "alu 6 compare 3 branch 3 load16 3 scale 3 loop 1 move 1 local 4"
    ),
    "uint32_t i = 0; do { b += i; } while (++i < a); return b;": "alu 6 compare 3 branch 3 loop 1 move 1 local 3",
    "uint32_t i; for (i = 6U; i < 8U; ++i) { b += w[i - 6U]; } return b;": "alu 2 load16 2 local 2",
    "uint16_t t[5]; t[0] = 3; t[0] += 2; ++t[0]; return t[0];": "frame 1 alu 2 load16 3 store16 3 move 1 local 1",
    "uint8_t c = (uint8_t)a; return c;": "narrow 1 local 2",
    "return twice(a) + twice(5U);": "call 2 argument 2 alu 3 function 2 local 7",
    "return once(a);": "alu 1 local 2",
    "return once(5U) + once(5U);": "call 2 argument 2 alu 3 function 2 local 6",
}
HELPERS = {"twice": "v += v; return v;", "once": "v += 3U; return v;"}
GIVEN = ("uint32_t a", "uint32_t b", "const uint16_t *w", "int8_t *s", "float *g")


def run_whole(body, prices=""):
    """Return the answer of a function and the operations that ran, by kind."""
    used = [Function(name, "uint32_t", ("uint32_t v",), (text,)) for name, text in HELPERS.items() if name in body]
    made = Function("f", "uint32_t", GIVEN, (body,), prices=prices)
    machine = Machine(Program((), (*used, made), (), (), tables=TABLES), DIALECT)
    found = machine.call("f", [3, 2, ([5, 6, 7, 8], 0), ([-1, 2, 3, 4], 0), ([1.5, 2.5, -1.0], 0)])
    total = Counter()
    for tally, hits in zip(machine.tallies, machine.hits, strict=True):
        for kind, count in tally.items():
            total[kind] += count * hits
    return found, +total


@pytest.mark.parametrize("body", TALLIED)
def test_all_operations_of_a_function(body):
    words = TALLIED[body].split()
    wanted = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert run_whole(body)[1] == Counter(wanted) + Counter(function=1)


def test_a_parameter_that_is_always_the_same_may_still_be_changed():
    assert run_whole("return once(5U) + once(5U);")[0] == 16
    assert run_whole("return twice(a) + twice(5U);")[0] == 16


@pytest.mark.parametrize("prices", ["walk", "nested"])
def test_functions_with_prices_of_their_own_count_returns_and_wide_constants(prices):
    found = run_whole("if (a > 5U) { return 1U; } return 1000U + b;", prices)[1]
    wanted = {"alu": 1, "branch": 1, "compare": 1, "constant": 1, "function": 1, "local": 3, "return": 1, "wide": 1}
    assert found == {f"{prices}_{kind}": count for kind, count in wanted.items()}
    found = run_whole("while (a) { --a; b += 300U; } return b;", prices)[1]
    wanted = {"alu": 6, "branch": 4, "constant": 1, "function": 1, "local": 3, "loop": 1, "return": 1, "wide": 3}
    assert found == {f"{prices}_{kind}": count for kind, count in wanted.items()}


@pytest.mark.parametrize(
    ("body", "kind", "count"),
    [
        ("b = a; return b;", "move", 1),
        ("b = 3U; return b;", "move", 1),
        ("b = a + 1U; return b;", "move", 0),
        ("b += a; return b;", "move", 0),
        ("a + 0U; a - 0U; a | 0U; a ^ 0U; a * 1U; a / 1U; return a;", "alu", 0),
        ("return a + 1U;", "alu", 1),
        ("return a & 0U;", "alu", 1),
        ("return w[a * 2U + b];", "address", 2),
        ("return w[a * 2U + b];", "alu", 0),
        ("return w[(a + b) & 1U];", "address", 0),
        ("return w[(a + b) & 1U];", "alu", 2),
        ("return w[a >> 1];", "address", 0),
        ("return w[a];", "scale", 1),
        ("return w[1];", "scale", 0),
        ("out[a] = 0; return 0;", "scale", 1),
        ("return *(w + a);", "scale", 1),
        ("return step[1][a];", "scale", 0),
    ],
)
def test_operations_are_tallied(body, kind, count):
    assert tallied(body, 1, 1)[kind] == count


def test_the_test_of_a_while_loop_runs_once_more_than_its_body():
    found = tallied("while (a < 5U) { b += w[0]; ++a; } return b;", 2, 0)
    assert found["compare"] == 4
    assert found["branch"] == 4
    assert found["load16"] == 3


def test_a_variable_that_is_only_written_takes_a_register():
    parameters = ("const uint16_t *w", "uint32_t *out")
    body = "uint32_t p, q, r = 3; p = w[0]; q = w[1]; out[0] = p; ++r; return 0;"
    names = machine_of(body, parameters).code("f").names
    assert {name.split("@")[0] for name in names} == {"w", "out", "p", "q", "r"}


def test_names_beyond_the_registers_are_spilled_inside_the_loop_that_has_them():
    names = [f"v{i}" for i in range(10)]
    body = f"uint32_t {', '.join(names)}, i; for (i = 0; i < 20U; ++i) {{ "
    body += " ".join(f"{name} = w[{i}];" for i, name in enumerate(names)) + " } return 0;"
    machine = machine_of(body, ("const uint16_t *w",))
    code = machine.code("f")
    assert code.pressure == 12  # the ten, the counter and the pointer
    assert [sum(tally[f"spill{limit}"] for tally in machine.tallies) for limit in (8, 12)] == [
        4 + 1,
        0,
    ]  # the counter outside, too


def test_what_is_no_variable_cannot_be_assigned():
    with pytest.raises(TinybayesError, match="expected a variable, got variable"):
        machine_of("missing = 3U; return 0;").call("f", [0, ([], 0), ([], 0)])
