"""Programs as records: every dialect prints the same tables and functions in its own way."""

import re

import numpy as np
import pytest

from networks import STRUCTURES, classifier
from neural_nets import kinds
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Array, Dialect, Function, Program, block, loop, narrow, unsigned
from tinybayes.model import Fixed, Float

C, ARDUINO = Dialect("net", "net_"), Dialect("net", "net_", table="TABLE")
CPP = Dialect("net", "", helper="inline", local_tables=True)


def test_an_array_has_the_type_of_its_values():
    assert Array("a", np.array([1, 2], np.uint16)).text(C) == "static const uint16_t a[2] = {\n    1, 2\n};\n"
    assert (
        Array("a", np.array([10, 2], np.uint32)).text(ARDUINO) == "static TABLE uint32_t a[2] = {\n    0xAU, 0x2U\n};\n"
    )
    floats = Array("a", np.array([[0.5], [-np.inf]], np.float32))
    assert (
        floats.text(C) == "static const float a[2][1] = {\n    {\n    0.5F\n    },\n    {\n    -INFINITY\n    }\n};\n"
    )
    fields = [("first", np.uint16), ("step", np.uint16), ("up", np.uint8)]
    records = Array("a", np.array([(300, 2, 1), (4, 5, 6)], fields))
    assert records.text(C).splitlines()[:2] == [
        "static const struct { uint16_t first, step; uint8_t up; } a[2] = {",
        "    {300, 2, 1}, {4, 5, 6}",
    ]
    assert records.values.nbytes == 10


@pytest.mark.parametrize(
    ("values", "options", "kind"),
    [
        ([0, 255], {}, "uint8"),
        ([0, 256], {}, "uint16"),
        ([0, 2**16], {}, "uint32"),
        ([0, 1], {"limit": 256}, "uint16"),
        ([-128, 127], {"signed": True}, "int8"),
        ([-129], {"signed": True}, "int16"),
        ([2**15], {"signed": True}, "int32"),
    ],
)
def test_integers_become_as_narrow_as_they_can_be(values, options, kind):
    assert narrow(values, **options).dtype == kind
    assert narrow(values, **options).tolist() == values


def test_unsigned_types_hold_their_limit():
    assert [unsigned(2**k - 1) for k in (8, 16, 32)] == ["uint8_t", "uint16_t", "uint32_t"]
    assert [unsigned(2**k) for k in (8, 16)] == ["uint16_t", "uint32_t"]


def test_a_dialect_decides_how_functions_and_their_tables_are_written():
    body = loop("i", 2, block("if (x)", ["f(t[i]);"]))
    helper = Function("g", "void", ("int x",), tuple(body), "Calls f.", (Array("t", np.array([7], np.uint8)),))
    table = "static const uint8_t t[1] = {\n    7\n};\n"
    lines = "{\n    for (i = 0; i < 2U; ++i) {\n        if (x) {\n            f(t[i]);\n        }\n    }\n}\n"
    assert helper.text(C) == f"{table}\n/* Calls f. */\nstatic void g(int x)\n{lines}"
    assert helper.text(ARDUINO) == helper.text(C).replace("static const", "static TABLE")
    inside = "    static const uint8_t t[1] = {\n        7\n    };\n"
    assert helper.text(CPP) == "/* Calls f. */\ninline void g(int x)\n" + lines.replace("{\n", "{\n" + inside, 1)
    public = Function("g", "int", ("int x",), ("return x;",), "Doc.", public=True)
    assert public.text(C) == "int net_g(int x)\n{\n    return x;\n}\n"
    assert public.text(CPP) == "inline int g(int x)\n{\n    return x;\n}\n"
    assert Function("g", "int", (), (), noinline=True).head(C) == "static NET_NOINLINE int g()"


def test_a_table_of_several_functions_is_written_once():
    table = Array("t", np.array([(1, 2)], [("a", np.uint8), ("b", np.uint16)]))
    reads = Function("g", "int", (), ("return t[0].a;",))
    ignores = Function("h", "int", (), ("return 1;",))
    assert table.shared(C) == table.text(C)
    assert reads.text(C, (table,)) == "static int g()\n{\n    return t[0].a;\n}\n"
    assert table.shared(CPP).splitlines()[:4] == [
        "struct t_type { uint8_t a; uint16_t b; };",
        "",
        "inline const t_type (&t_table())[1]",
        "{",
    ]
    assert reads.text(CPP, (table,)) == "inline int g()\n{\n    const auto &t = t_table();\n    return t[0].a;\n}\n"
    assert ignores.text(CPP, (table,)) == "inline int h()\n{\n    return 1;\n}\n"


def shape(program: Program) -> list[tuple[object, ...]]:
    """What the functions of a program are, but for how a dialect writes them."""
    plain = {"TABLE": "const", "net_": ""}
    pattern = re.compile("|".join(plain))
    return [
        (
            function.name,
            [pattern.sub(lambda word: plain[word[0]], line) for line in (*function.parameters, *function.body)],
            [(array.name, array.type, array.values.tolist()) for array in function.arrays],
        )
        for function in program.functions
    ]


@pytest.mark.parametrize(
    "net",
    [*(classifier(s, form) for s in STRUCTURES for form in (Fixed(3, 1), Float(32))), *kinds().values()],
)
@pytest.mark.parametrize("gaps", [False, True])
def test_all_dialects_have_the_same_functions(net, gaps):
    programs = [classifier_program(make_plan(net, gaps=gaps), dialect, "") for dialect in (C, ARDUINO, CPP)]
    assert shape(programs[0]) == shape(programs[1]) == shape(programs[2])
    assert len({tuple((a.name, a.type, a.values.tobytes()) for a in program.tables) for program in programs}) == 1
    assert programs[0].enumerations == programs[1].enumerations == programs[2].enumerations
