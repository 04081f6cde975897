"""What programs decide before any code is written, and small parts of their text: worked by hand."""

import math
import re

import numpy as np
import pytest

import zoo
from networks import classifier, codebook
from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy.export import export
from tinybayes.deploy.programs import circuit_interface, gaps, selftest
from tinybayes.deploy.programs.answers import c_string
from tinybayes.deploy.programs.arduino import _sketch
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.deploy.programs.circuit_steps import make_steps
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.encoding import bisects, describe
from tinybayes.deploy.programs.finder import make_finder
from tinybayes.deploy.programs.micropython import _number
from tinybayes.deploy.programs.net import CLEAR, VOLATILE, _fill
from tinybayes.deploy.programs.packing import _chunk, net_banks
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect, Function, Program
from tinybayes.deploy.programs.verilog import to_verilog
from tinybayes.infer import compile_circuit
from tinybayes.model import CPD, BayesNet, Circuit, Fixed, Float, Variable
from tinybayes.model.circuit import INDICATOR, PARAMETER

DIALECT = Dialect("net", "net_")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [(" ~", '" ~"'), ("\x1f\x7f", r'"\037\177"'), ('a"\\?', r'"a\042\134\077"'), ("é", r'"\303\251"'), ("", '""')],
)
def test_texts_of_c_are_plain_letters_or_octal_bytes(text, wanted):
    assert c_string(text) == wanted


def test_a_sketch_for_a_model_without_features_has_a_row_all_the_same():
    net = BayesNet((), Variable("y", (0, 1)), (zoo.cpd([1 / 4, 3 / 4], number_format=Float(32)),))
    assert "uint8_t row[1] = {0};" in _sketch(make_plan(net), "net")


def test_short_lists_of_cut_points_are_not_bisected():
    assert [bisects(counts) for counts in ([], [12, 3], [13], [3, 13])] == [False, False, True, True]


def test_a_feature_is_described_by_its_codes():
    assert describe(Variable("a", ("x", "y", "z")), "float") == "the code of its state, 0 to 2"
    assert describe(Variable("a", (3, 4)), "none") == "the code of its state, 0 to 1"


@pytest.mark.parametrize(
    ("raw", "also"),
    [
        ("none", ""),
        ("float", "; so is a raw value that is not a number"),
        ("int", "; so is the raw value NET_MISSING_VALUE"),
    ],
)
def test_the_facts_say_what_is_missing(raw, also):
    plan = make_plan(classifier("naive", Fixed(3, 1)), raw, gaps=True)
    facts = classifier_program(plan, DIALECT, "").facts
    assert f"A code that is not a state is missing, NET_MISSING for instance{also}." in facts


# Rows of tables


def finder_of(structure, **options):
    plan = make_plan(classifier(structure, Fixed(3, 1), **options))
    return make_finder(plan.terms.terms, len(plan.terms.rows), plan.features)


def test_rows_are_found_in_the_shortest_way():
    naive = finder_of("naive", states=[2, 3, 4])
    assert (naive.row, naive.functions) == ("first[i] + x[i]", ())
    one = finder_of("naive", states=[2, 1, 4], seed=1)  # a feature of one state has no table
    assert (one.row, one.functions) == ("first[i] + x[own[i]]", ())
    (two,) = finder_of("tree", states=[2, 3, 4]).functions
    assert [array.name for array in two.arrays] == ["term"]
    assert "k" not in two.body[0]
    (lists,) = finder_of("general", features=7, seed=0).functions
    assert [array.name for array in lists.arrays] == ["first", "begin", "feature", "stride"]


def test_functions_that_need_all_registers_are_not_inlined():
    plan = make_plan(classifier("tree", Fixed(3, 1)), gaps=True)
    functions = {function.name: function.noinline for function in classifier_program(plan, DIALECT, "").functions}
    assert functions["clear"]
    assert functions["message"]
    assert functions["entry_of"]
    assert not functions["add_up_gaps"]


@pytest.mark.parametrize(
    ("divisor", "limit", "wanted"),
    [
        (1, 9, "(c / 1U)"),
        (3, 20, "(unsigned)((uint32_t)c * 21846U >> 16)"),
        (4, 20, "(c / 4U)"),
        (7, 100, "(unsigned)((uint32_t)c * 9363U >> 16)"),
        (7, 60000, "(c / 7U)"),
    ],
)
def test_divisions_are_products_where_these_are_exact(divisor, limit, wanted):
    text = gaps._quotient("c", divisor, limit)
    assert text == wanted
    body = Function("f", "unsigned", ("unsigned c",), (f"return {text};",))
    machine = Machine(Program((), (body,), (), ()), DIALECT)
    for n in range(0, limit, 1 + limit // 300):
        assert machine.call("f", [n]) == n // divisor


# Words of several codes


@pytest.mark.parametrize(
    ("largest", "start", "lane", "size"),
    [
        ([1] * 6, 0, 3, 6),  # all at once
        ([1] * 6, 2, 3, 3),  # with the start, two chunks
        ([1] * 6, 0, 2, 3),
        ([3, 0, 0, 3, 0, 0], 0, 2, 3),
        ([3] * 6, 0, 2, 1),
        ([9], 0, 2, 0),
    ],
)
def test_chunks_are_as_long_as_lanes_allow(largest, start, lane, size):
    assert _chunk(largest, start, lane) == size


@pytest.mark.parametrize(("terms", "largest", "chunk"), [(1, 3, 0), (5, 3, 0), (20, 1, 7), (20, 3, 10)])
def test_lanes_of_nets_are_emptied_before_they_overflow(terms, largest, chunk):
    (bank,) = net_banks(2, 2, np.full(terms, largest), times=False)
    shape = bank.shape
    assert shape.lanes > 1
    assert (shape.chunk or terms) * largest < 2**shape.lane
    assert shape.chunk == chunk


def test_a_loop_that_fills_is_no_call_of_memset():
    assert _fill("clear", "uint32_t", "a", (), "0", VOLATILE) == CLEAR
    filled = _fill("surround", "uint8_t", "image", ("uint8_t value",), "value")
    assert filled.parameters == ("uint8_t *image", "unsigned count", "uint8_t value")
    assert filled.body == ("volatile uint8_t *p = image;", "do {", "    *p++ = value;", "} while (--count);")


# Numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0**24 - 1, "16777215.0"),
        (2.0**24, "float(16777216)"),
        (-(2.0**24) - 2, "float(-16777218)"),
        (0.75, "3 / 4"),
        (-np.inf, '-float("inf")'),
        (np.int64(7), "7"),
    ],
)
def test_numbers_are_written_so_that_every_board_reads_them_exactly(value, text):
    assert _number(np.float32(value) if isinstance(value, float) else value) == text


def test_errors_of_floats_are_worked_by_hand():
    plan = make_plan(zoo.naive_bayes(), gaps=True)
    # The largest entries of both tables, and the entries of the prior.
    magnitude = math.log(4) + math.log(8) + math.log(4 / 3) + math.log(4)
    assert plan.float_error == pytest.approx(4 * magnitude * 2**-23, rel=1e-5)  # two tables, and two more additions
    largest = magnitude + math.log(2) + math.log(3)  # states that may be summed out
    added = (1 + 2) * (4e-7 + largest * 2**-24)
    assert plan.gap_error == pytest.approx(4 * largest * 2**-23 + added, rel=1e-5)


def test_a_table_without_any_possible_entry_adds_no_error():
    prior = zoo.cpd([1 / 2, 1 / 2], number_format=Float(32))
    never = CPD((1,), np.full((2, 3), -np.inf, np.float32), Float(32))
    plan = make_plan(BayesNet((Variable("a", (0, 1, 2)),), Variable("y", (0, 1)), (never, prior)))
    assert plan.float_error == pytest.approx(3 * 2 * math.log(2) * 2**-23, rel=1e-5)


# Tests of themselves


def rare(features=24):
    """A class that wins only where most features are 1, which a drawn row is not."""
    wins = 0.9
    table = zoo.cpd([[0.5, 0.5], [1 - wins, wins]], [features], number_format=Fixed(4, 6))
    prior = zoo.cpd([1 - 2**-8, 2**-8], number_format=Fixed(4, 6))
    variables = tuple(Variable(f"f{i}", (0, 1)) for i in range(features))
    return BayesNet(variables, Variable("y", ("often", "rare")), (*[table] * features, prior))


def test_rows_are_changed_until_every_class_is_among_them():
    plan = make_plan(rare())
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2, (selftest.DRAWN, 24))
    assert not selftest.python_scores(plan, drawn).argmax(axis=1).any()
    assert set(selftest.python_scores(plan, selftest.test_rows(plan)).argmax(axis=1)) == {0, 1}


@pytest.mark.parametrize("given", [True, False])
def test_the_rows_of_a_circuit_have_no_value_of_the_query(given):
    circuit = compile_circuit(classifier("tree", Fixed(3, 1), features=4, classes=3))
    plan = make_circuit_plan(circuit, "none", gaps=given, query="f 2")
    rows = circuit_interface.test_rows(plan)
    assert plan.query == 2
    assert (rows[:, 2] == (-1 if given else 0)).all()
    assert (rows >= (-1 if given else 0)).all()
    assert (rows[:, [0, 1, 3, 4]].max(axis=0) < np.array([v.cardinality for v in plan.variables])[[0, 1, 3, 4]]).all()


def test_a_circuit_may_be_its_last_leaf():
    none, table = np.empty(0, int), np.log([0.25, 0.5])
    kinds, leaves = np.array([PARAMETER, PARAMETER, INDICATOR]), [1, 0, 2]
    circuit = Circuit([Variable("a", (0, 1, 2))], None, kinds, np.zeros(4, int), none, leaves, table, Float(64))
    steps = make_steps(circuit)
    assert len(steps.parameters) == 2
    assert steps.operand.tolist() == [2 + 2]  # behind two parameters, the third indicator
    assert steps.root == 2 + 3


# Verilog


@pytest.mark.parametrize("bits", [2, 5])
def test_codes_are_widened_to_the_size_of_a_sum(bits):
    net = classifier("naive", Fixed(2, bits - 2), states=[3] * 9)
    text = to_verilog(net, checks=0)["model.v"]
    size = int(re.search(r"numbers of (\d+) bits", text)[1])
    lane, zeros, code = re.search(r"widen\[c \* (\d+) \+: \d+\] = \{(\d+)'b0, codes\[c \* (\d+)", text).groups()
    assert int(lane) == size
    assert int(zeros) + int(code) == size


def test_levels_are_as_wide_as_a_sum():
    net = classifier("naive", codebook(5), states=[3] * 9)
    text = export(net, "verilog", checks=0)["model.v"]
    size = int(re.search(r"numbers of (\d+) bits", text)[1])
    assert f"function [{size - 1}:0] level;" in text
    assert re.search(rf"level = {size}'h", text)
