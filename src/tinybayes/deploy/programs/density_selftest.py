"""The test of itself of a density's program: rows with the log-likelihoods of Python."""

import numpy as np

from tinybayes.deploy.programs.circuit import memory_type
from tinybayes.deploy.programs.density_plan import DensityPlan
from tinybayes.deploy.programs.program import Array, Dialect, Function, block, loop, narrow
from tinybayes.infer.integer_density import integer_log_likelihood

ROWS = 12
LARGEST_TABLE = 2**15 - 1  # bytes; more do not fit in the address space of small controllers
SELFTEST = "Returns 0 if {rows} rows have the log-likelihoods of Python, otherwise the number of the first other row."


def selftest_function(plan: DensityPlan, dialect: Dialect) -> Function:
    """Make the test of the program; its rows are raw values where the program takes them."""
    codes, features, width = test_rows(plan), plan.features, len(plan.variables)
    scores = integer_log_likelihood(plan.circuit, codes)
    row, raw = ("value", "_raw") if features.value else ("x", "")
    lines = [
        *loop("i", width, [f"{row}[i] = test_row[r][i];"]),
        *block(f"if ({dialect.prefix}log_likelihood{raw}({row}, memory) != test_score[r])", ["return (int)r + 1;"]),
    ]
    body = (
        f"{features.value or features.state} {row}[{width}];",
        "unsigned r, i;",
        *loop("r", len(codes), lines),
        "return 0;",
    )
    arrays = (Array("test_row", _given(plan, codes)), Array("test_score", narrow(scores, signed=True)))
    doc, inputs = SELFTEST.format(rows=len(codes)), (f"{memory_type(dialect)} *memory",)
    return Function("selftest", "int", inputs, body, doc, arrays, public=True)


def test_rows(plan: DensityPlan) -> np.ndarray:
    """Draw rows of codes, the last quarter with gaps."""
    states, rng = plan.circuit.cardinalities, np.random.default_rng(0)
    count = max(1, min(ROWS, LARGEST_TABLE // (4 * len(states))))
    rows = rng.integers(0, states, (count, len(states)))
    gaps = rows[count - count // 4 :]
    gaps[rng.random(gaps.shape) < 0.3] = -1
    return rows


def _given(plan: DensityPlan, codes: np.ndarray) -> np.ndarray:
    """Return rows as the program takes them."""
    features = plan.features
    if features.raw == "float":
        return features.values(codes).astype(np.float32)
    if features.raw == "int":
        return narrow(features.values(codes).astype(np.int64), signed=True)
    return narrow(np.where(codes < 0, features.missing, codes))
