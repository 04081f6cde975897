"""The whole program of a circuit for the C family: the answers, what it states of itself, and a test of itself."""

from dataclasses import replace

import numpy as np

from tinybayes.deploy._price.circuits import count_circuit
from tinybayes.deploy.price import price
from tinybayes.deploy.programs.circuit import circuit_program, memory_type
from tinybayes.deploy.programs.circuit_plan import CircuitPlan
from tinybayes.deploy.programs.program import Array, Dialect, Function, Program, block, loop, narrow, number
from tinybayes.infer.integer_circuit import UNIT, integer_posterior

ROWS = 12  # of the test
LARGEST_TABLE = 2**15 - 1  # bytes; more do not fit in the address space of small controllers
SELFTEST = (
    "Returns 0 if the posteriors of {rows} rows are those of Python, otherwise the number of the first other row."
)


def whole_circuit(plan: CircuitPlan, dialect: Dialect, note: str, *, extras: bool = True) -> Program:
    """Make the program with all its functions; without `extras` with those that answers need."""
    program = circuit_program(plan, dialect, note)
    *facts, last = program.facts
    optional = (_selftest(plan, dialect),) if extras else ()
    return replace(program, facts=(*facts, _price_fact(plan), last), optional=optional)


def _price_fact(plan: CircuitPlan) -> str:
    cost = price(count_circuit(plan, most=0), "cortex-m0+")
    figures = f"{cost.flash:,} B of flash, {cost.ram:,} B of static RAM, {cost.stack:,} B of stack"
    return f"{'predict_raw' if plan.features.value else 'predict'} on a Cortex-M0+, estimated: {figures}."


def _selftest(plan: CircuitPlan, dialect: Dialect) -> Function:
    """Make the function; its rows are raw values where the program takes them."""
    codes, features, score = test_rows(plan), plan.features, plan.numbers.score
    row = "value" if features.value else "x"
    test = block("if (p[i] != test_posterior[r][i])", ["return (int)r + 1;"])
    if score == "float":
        bound = number(float(np.float32(tolerance(plan))))
        differs = f"if (!(off <= {bound} && off >= -{bound}))"
        test = ["const float off = p[i] - test_posterior[r][i];", *block(differs, ["return (int)r + 1;"])]
    lines = [
        *loop("i", len(plan.variables), [f"{row}[i] = test_row[r][i];"]),
        f"(void){dialect.prefix}posterior{'_raw' if features.value else ''}({row}, memory, p);",
        *loop("i", plan.states, test),
    ]
    body = (
        f"{features.value or features.state} {row}[{len(plan.variables)}];",
        f"{score} p[{plan.states}];",
        "unsigned r, i;",
        *loop("r", len(codes), lines),
        "return 0;",
    )
    arrays = (Array("test_row", _given(plan, codes)), Array("test_posterior", _posteriors(plan, codes)))
    doc = SELFTEST.format(rows=len(codes))
    return Function("selftest", "int", (f"{memory_type(dialect)} *memory",), body, doc, arrays, public=True)


def test_rows(plan: CircuitPlan) -> np.ndarray:
    """Draw rows of codes, the last quarter with gaps where they may be; no row has a value of the query."""
    states, rng = plan.circuit.cardinalities, np.random.default_rng(0)
    count = max(1, min(ROWS, LARGEST_TABLE // (4 * max(len(states), plan.states))))
    rows = rng.integers(0, states, (count, len(states)))
    if plan.features.gaps:
        gaps = rows[count - count // 4 :]
        gaps[rng.random(gaps.shape) < 0.3] = -1
    rows[:, plan.query] = -1 if plan.features.gaps else 0
    return rows


def tolerance(plan: CircuitPlan) -> float:
    """Return by how much a posterior in floats may differ from one in integers, which has much smaller roundings."""
    return 1.1 * plan.bound + 2.0**-UNIT + 2.0**-22


def _given(plan: CircuitPlan, codes: np.ndarray) -> np.ndarray:
    """Return rows as the program takes them."""
    features = plan.features
    if features.raw == "float":
        return features.values(codes).astype(np.float32)
    if features.raw == "int":
        return narrow(features.values(codes).astype(np.int64), signed=True)
    return narrow(np.where(codes < 0, features.missing, codes))


def _posteriors(plan: CircuitPlan, codes: np.ndarray) -> np.ndarray:
    posterior, _ = integer_posterior(plan.circuit, codes, plan.query)
    return (posterior / 2**UNIT).astype(np.float32) if plan.arithmetic == "float" else narrow(posterior)
