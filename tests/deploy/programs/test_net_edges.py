"""Programs of neural networks at their edges: few inputs, large factors, missing indicators, and registers in use.

The C code runs in Python, as prices read it.
"""

import re

import numpy as np
import pytest

from neural_nets import kinds
from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy.export import export
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.micropython import to_micropython
from tinybayes.deploy.programs.net import terms
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect
from tinybayes.deploy.programs.verilog_ports import Ports
from tinybayes.deploy.programs.verilog_serial import _Machine
from tinybayes.infer.neural_net import net_scores
from tinybayes.model import NeuralNet, Variable
from tinybayes.model.neural_net import Inputs, Layer
from verilog_nets import run_nets

DIALECT = Dialect("net", "net_")


def net_of(columns, cards, *, bits=3, classes=3, hidden=0, weights=None, seed=0):
    """Make a net of columns (feature, state or -1, multiplier, centre); its weights are drawn, or all ±1."""
    rng = np.random.default_rng(seed)
    layers, width = [], len(columns)
    for units, activation in (((hidden, "sign"),) if hidden else ()) + ((classes, "none"),):
        codes = rng.integers(0, 2**bits, (width, units)) if weights is None else weights + 2 ** (bits - 1) - 1
        layers.append(Layer(codes, bits, rng.integers(-20, 20, units), activation))
        width = units
    variables = tuple(Variable(f"f{i}", tuple(range(k))) for i, k in enumerate(cards))
    target = Variable("y", tuple(range(classes)))
    return NeuralNet(variables, target, Inputs(*np.array(columns).T), tuple(layers), 0.01)


def all_rows(net, *, gaps=True):
    axes = [range(-1 if gaps else 0, v.cardinality) for v in net.variables]
    return np.array(np.meshgrid(*axes, indexing="ij"), dtype=np.int32).reshape(len(axes), -1).T


def check_c(net, *, gaps=True, form="lanes"):
    """Compare the C code with Python, and return its text."""
    program = classifier_program(make_plan(net, gaps=gaps, form=form), DIALECT, "")
    machine, rows = Machine(program, DIALECT), all_rows(net, gaps=gaps)
    found = []
    for row in np.where(rows < 0, 255, rows).tolist():
        found.append([0] * net.target.cardinality)
        machine.call("net_scores", [(row, 0), (found[-1], 0)])
    assert found == net_scores(net, rows).tolist()
    return "\n".join(line for function in program.functions for line in function.body)


def check_python(net):
    """Compare the module for MicroPython with Python, and return its text."""
    text = to_micropython(net, name="net")["net.py"]
    names = {}
    exec(text, names)
    rows = all_rows(net)
    assert [names["scores"](row) for row in rows.tolist()] == net_scores(net, rows).tolist()
    return text


FEW = {
    "one number": net_of([(0, -1, 1, 0)], [5]),
    "one number, scaled": net_of([(0, -1, 3, 4)], [5]),
    "one indicator": net_of([(0, 0, 1, 0)], [3]),
    "indicators of the first states": net_of([(0, 0, 2, 0), (1, 0, 2, 0), (2, 0, 2, 0)], [3, 2, 4]),
    "indicators in order": net_of([(0, 1, 1, 1), (1, 0, 1, 1), (2, 3, 1, 1)], [3, 2, 4]),
    "numbers in order": net_of([(0, -1, 3, 2), (1, -1, 3, 2)], [3, 4]),
    "several centres": net_of([(0, -1, 3, 2), (1, -1, 3, 5)], [3, 4]),
    "several multipliers": net_of([(0, -1, 3, 2), (1, -1, 5, 2)], [3, 4]),
    "negative multipliers": net_of([(0, -1, -3, 2), (1, 1, -5, 2), (1, 0, 4, -3)], [3, 4]),
    "no multiplier": net_of([(0, -1, 0, 2), (1, -1, 0, 2)], [3, 4]),
}


@pytest.mark.parametrize("key", FEW)
def test_few_columns(key):
    for form in ("lanes", None):
        check_c(FEW[key], form=form)
        check_c(FEW[key], gaps=False, form=form)
    check_python(FEW[key])


def test_equal_columns_are_one_expression_in_micropython():
    assert "values = [3 * x[f] - 2 if 0 <= x[f] < _STATES[f] else 0 for f in range(2)]" in check_python(
        FEW["numbers in order"]
    )
    assert "values = [3 * x[f] - 4 if 0 <= x[f] < 5 else 0 for f in range(1)]" in check_python(
        FEW["one number, scaled"]
    )
    for key in ("several centres", "several multipliers", "indicators in order"):
        assert "_COLUMNS = (" in check_python(FEW[key])


# Large factors, with weights of plus and minus one: sums fit in 32 bits, but what is subtracted from them does not


LARGE = 2**26


def signs(inputs, classes=3):
    return np.random.default_rng(1).integers(0, 2, (inputs, classes))


@pytest.mark.parametrize("gaps", [True, False])
def test_factors_are_taken_modulo_32_bits(gaps):
    numbers = net_of([(f, -1, LARGE, 0) for f in range(3)], [3, 4, 2], bits=8, weights=signs(3))
    whole = net_of([(f, s, LARGE, 0) for f in range(3) for s in range(2)], [2, 2, 2], bits=8, weights=signs(6))
    for net in (numbers, whole):
        text = check_c(net, gaps=gaps)
        assert f"{2 * LARGE}U * sum[u]" in text
        assert max(int(number) for number in re.findall(r"\b(\d+)U", text)) < 2**32
        check_c(net, gaps=gaps, form="compact")


# Missing indicators


def test_a_missing_indicator_with_a_centre_is_not_zero():
    columns = [(f, s, 3, 1) for f in range(2) for s in range(3)]
    net = net_of(columns, [3, 3])
    check_c(net)
    check_c(net, form=None)
    stage = make_plan(net, gaps=True).stages[0]
    assert [term.states for term in terms(net, stage)] == [0] * 6  # one by one


def test_indicators_without_a_centre_are_joined_beside_numbers_that_have_one():
    net = net_of([(0, -1, 2, 4), *((1, s, 2, 0) for s in range(3)), (2, -1, 2, 2)], [5, 3, 4])
    check_c(net)
    check_c(net, form="compact")
    stage = make_plan(net, gaps=True).stages[0]
    assert [(term.feature, term.states) for term in terms(net, stage)] == [(0, 0), (1, 3), (2, 0)]


# Verilog


DESIGNS = ("verilog", "verilog-pipelined")


@pytest.mark.parametrize("target", DESIGNS)
def test_few_columns_in_verilog(tmp_path, target):
    names = ("one number", "one indicator", "indicators of the first states", "no multiplier")
    nets = {f"net{i}": FEW[name] for i, name in enumerate(names)}
    rows = {name: all_rows(net, gaps=False) for name, net in nets.items()}
    for name, (_, labels, scores) in run_nets(tmp_path, nets, rows, target).items():
        exact = net_scores(nets[name], rows[name])
        np.testing.assert_array_equal(scores, exact)
        np.testing.assert_array_equal(labels, exact.argmax(axis=1))


def text_of(net, target="verilog"):
    return export(net, target, name="net", checks=0)["net.v"]


def test_nothing_is_multiplied_by_one():
    assert "$signed(picked) *" not in text_of(FEW["one number"])
    assert "$signed(picked) * $signed(3'h3)" in text_of(FEW["one number, scaled"])


ALL = kinds()
SOME = ["linear", "deep", "deep signs", "mixed relu", "conv scaled", "conv conv", "conv signs", "one class"]


@pytest.mark.parametrize("target", DESIGNS)
@pytest.mark.parametrize("key", SOME)
def test_every_register_is_read(key, target):
    for module in text_of(ALL[key], target).split("endmodule"):
        body = module[module.find(");") :]
        declared = re.findall(r"^ *reg (?:signed )?(?:\[\d+:0\] )?([\w, ]+)[;\[]", body, re.MULTILINE)
        body = re.sub(r"^ *reg .*$", "", body, flags=re.MULTILINE)
        for name in (name.strip() for names in declared for name in names.split(",")):
            reads = re.sub(rf"\b{name}(\[[^]]*\])* <= ", "", body)
            assert re.search(rf"\b{name}\b", reads), f"{name} is written only"


@pytest.mark.parametrize("key", SOME)
def test_flags_of_the_machine_are_single_bits(key):
    text = text_of(ALL[key])
    for name in ("busy", "loading", "running", "finished"):
        assert f"    reg {name};\n" in text
    ends = re.findall(r"wire (.*?)(\w+)_end = ", text)
    assert {"channel", "unit", "row"} <= {name for _, name in ends}
    assert {width for width, _ in ends} == {""}


def test_only_what_counts_further_than_one_is_a_counter():
    dense, image = (
        _Machine(net, Ports(net.variables, net.target, 20)).counters for net in (ALL["deep"], ALL["conv scaled"])
    )
    assert dense == ["channel", "unit"]
    assert image == ["channel", "across", "down", "pool", "unit", "column", "row"]


def test_registers_are_as_wide_as_their_numbers():
    net = net_of([(f, -1, 1, 0) for f in range(6)], [4] * 6, bits=3, hidden=2)
    assert net.reach[0] >= 2**6
    # A weight of 3 + 1 bits times a signed number of 3 bits, for each of six inputs.
    assert "reg [41:0] part_2;" in text_of(net, "verilog-pipelined")


def test_scaled_sums_hold_the_largest_value_and_one_bit_more():
    layer = Layer(np.array([[1], [0]]), 1, np.array([0]), "relu", np.array([1]), 0, 0)
    last = Layer(np.array([[1, 0]]), 1, np.array([0, 0]), "none")
    variables = (Variable("a", (0, 1)), Variable("b", (0, 1)))
    inputs = Inputs([0, 1], [-1, -1], [1, 1], [0, 0])
    net = NeuralNet(variables, Variable("y", (0, 1)), inputs, (layer, last), 0.01)
    text = text_of(net)
    assert "reg [8:0] scaled_4;" in text
    assert "rounded > 9'd255" in text
