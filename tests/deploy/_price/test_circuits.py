"""Prices of circuits: counts of a plain run with numbers, exact tables and memory, figures close to measured ones."""

import math
import re
import shutil
import subprocess
from collections import Counter

import numpy as np
import pytest

import zoo
from networks import classifier, codebook
from tinybayes.deploy._boards.boards import PACKAGES
from tinybayes.deploy._price.circuits import count_circuit, count_steps
from tinybayes.deploy.measure import measure
from tinybayes.deploy.price import CORES, program_cost
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit
from tinybayes.model import Cuts, Fixed, Float, Grid, Integers, Variable
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT

missing = [tool for tool in PACKAGES if shutil.which(tool) is None]
emulated = pytest.mark.skipif(bool(missing), reason=f"not on this machine: {', '.join(missing)}")


def mixed_circuit(form, seed=3):
    encodings = [Cuts([-3.5, 5, 9]), Grid(-8, 2, 7), Integers(4, 6), Cuts((np.arange(20) / 3).tolist())]
    variables = [Variable.from_encoding(f"v{i}", encoding) for i, encoding in enumerate(encodings)]
    rng = np.random.default_rng(seed)
    return compile_circuit(zoo.random_net(rng, 4, 1, True, [form], False, [*variables, Variable("y", tuple("pqr"))]))


def plain_run(circuit, rows, query):
    """Count what runs with numbers, one row and one state after another, as the comment of `evaluate` says."""
    owner = np.repeat(np.arange(len(circuit.nodes)), circuit.cardinalities)
    count = Counter()
    for row in rows:
        for state in range(circuit.nodes[query].cardinality):
            count["evaluation"] += 1
            seen = [state if v == query else code for v, code in enumerate(row)]
            value = np.zeros(circuit.n_nodes)
            for n, (kind, leaf) in enumerate(zip(circuit.kind, circuit.leaf, strict=True)):
                if kind == PARAMETER:
                    value[n] = math.exp(circuit.log_parameters[leaf])
                elif kind == INDICATOR:
                    v = owner[leaf]
                    value[n] = seen[v] in (-1, leaf - circuit.first_state[v])
                else:
                    value[n] = _step(circuit, n, value, count)
    return count


def _step(circuit, n, value, count):
    count["step"] += 1
    product = circuit.kind[n] == PRODUCT
    result = 1.0 if product else 0.0
    below = circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]]
    below = [*below[circuit.kind[below] == INDICATOR], *below[circuit.kind[below] != INDICATOR]] if product else below
    for child in below:
        kind = circuit.kind[child]
        count[{PARAMETER: "parameter", INDICATOR: "indicator"}.get(kind, "slot")] += 1
        zero = value[child] == 0 or (not product and result == 0)
        if kind != INDICATOR:
            count[("multiply" if product else "add") + ("_zero" if zero else "")] += 1
        elif not product and value[child]:
            count["add_one"] += 1
        result = result * value[child] if product else result + value[child]
        if product and result == 0:
            break
    return result


@pytest.mark.parametrize(
    ("circuit", "query"),
    [
        (compile_circuit(classifier("tree", Float(64), seed=2, zeros=True)), "class"),
        (compile_circuit(classifier("trees", codebook(5), seed=1)), None),
        (mixed_circuit(Fixed(3, 1)), "v1"),
        (zoo.hand_circuit(), None),
    ],
    ids=["zeros", "codebook", "another query", "by hand"],
)
def test_counts_are_those_of_a_run_with_numbers(circuit, query):
    names = [node.name for node in circuit.nodes]
    plan = make_circuit_plan(circuit, query=query if query in names else None)
    rows = np.random.default_rng(0).integers(-1, circuit.cardinalities, (7, len(names)))
    found = count_steps(plan, rows)
    assert +found == +plain_run(circuit, rows, plan.query)
    counts = count_circuit(plan, rows)
    assert counts.run["circuit_integer_step"] == found["step"] / 7


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no cross compiler")
@pytest.mark.parametrize(
    ("circuit", "options"),
    [(mixed_circuit(Fixed(3, 1)), {}), (mixed_circuit(Float(32)), {"arithmetic": "float", "gaps": False})],
    ids=["integer", "float"],
)
def test_tables_and_memory_take_the_bytes_of_the_compiler(circuit, options, tmp_path):
    texts = to_c(circuit, name="net", extras=False, **options)
    texts["net.c"] += "struct net_memory net_one;\n"
    for file, content in texts.items():
        (tmp_path / file).write_text(content)
    command = ["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m0plus", "-Os", "-fdata-sections", "-c", "net.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    listed = subprocess.run(["arm-none-eabi-size", "-A", "net.o"], cwd=tmp_path, capture_output=True, text=True).stdout
    sections = [int(size) for size in re.findall(r"^\.rodata\.\w+\s+(\d+)", listed, re.MULTILINE)]
    counts = count_circuit(make_circuit_plan(circuit, **options))
    assert sum(sections) <= counts.tables <= sum(sections) + 4 * len(sections)  # with what aligns them
    assert counts.ram == int(re.search(r"^\.bss\.net_one\s+(\d+)", listed, re.MULTILINE)[1])


@emulated
@pytest.mark.parametrize("form", [Fixed(3, 1), pytest.param(Float(32), marks=pytest.mark.exhaustive)], ids=str)
def test_prices_are_close_to_measurements(form):
    circuit = mixed_circuit(form)
    codes = np.random.default_rng(1).integers(0, circuit.cardinalities, (8, 5))
    plan = make_circuit_plan(circuit, "float")
    texts = to_c(circuit, name="net", raw="float")
    for core, real in zip(
        ("m0+", "m4"), measure(texts, "net", plan.features.values(codes), raw=True, repeat=2), strict=True
    ):
        cost = program_cost(circuit, core, raw="float", rows=codes)
        assert cost.flash == pytest.approx(real.flash, rel=0.15)
        assert cost.instructions == pytest.approx(real.instructions, rel=0.15)
        assert cost.stack == pytest.approx(real.stack, rel=0.25)
        assert cost.ram == real.ram


def test_larger_circuits_cost_more_on_every_core():
    small, large = (compile_circuit(classifier("tree", Fixed(3, 1), features=n, classes=3)) for n in (4, 9))
    for core in CORES:
        costs = [program_cost(circuit, core) for circuit in (small, large)]
        for figure in ("flash", "ram", "instructions", "tables"):
            assert getattr(costs[0], figure) < getattr(costs[1], figure), (core, figure)
        assert 300 < costs[0].code < 2500


def test_rows_and_what_is_not_run():
    circuit = mixed_circuit(Fixed(3, 1))
    rows = np.zeros((3, 5), int)
    cost = program_cost(circuit, rows=rows)
    assert cost == program_cost(circuit, rows=rows[:, :-1])  # without the class
    assert program_cost(circuit, rows=np.full((3, 5), -1)).instructions > 1.5 * cost.instructions
    static = program_cost(circuit, most=0)
    assert math.isnan(static.instructions)
    assert (static.flash, static.ram, static.stack) == (cost.flash, cost.ram, cost.stack)
    assert program_cost(circuit, raw="none").flash < cost.flash - 100
    with pytest.raises(TinybayesError, match="rows: expected rows of 5 codes"):
        program_cost(circuit, rows=np.zeros((3, 2)))
