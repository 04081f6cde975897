"""A program's test of itself: rows with the scores of Python, the same ones for the same model."""

import numpy as np

from tinybayes.deploy.programs.plan import NetPlan, Plan, TablePlan
from tinybayes.deploy.programs.program import Array, Dialect, Function, block, loop, narrow, number
from tinybayes.deploy.programs.tree_plan import TreePlan
from tinybayes.infer import class_scores
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.trees import tree_scores

ROWS = 12
LARGEST_TABLE = 2**15 - 1  # bytes; more do not fit in the address space of small controllers
DRAWN = 128  # rows among which those with different labels are chosen
ROUNDS, CHANGED = 3, 24  # of changes to rows, and changed rows in each one, for classes that no row had
SELFTEST = "Returns 0 if the scores of {rows} rows are those of Python, otherwise the number of the first other row."


def selftest_function(plan: Plan, dialect: Dialect) -> Function:
    """Make the function; its rows are raw values where the program takes them."""
    codes = test_rows(plan)
    features, prefix, width = plan.features, dialect.prefix, max(1, len(plan.variables))
    kind = features.value or features.state
    name, score = "value" if features.value else "x", "s[i]"
    differs = f"if ({score} != test_score[r][i])"
    if plan.score == "float":
        bound = number(float(np.float32(tolerance(plan))))
        differs = f"if ({score} != test_score[r][i] && !(off <= {bound} && off >= -{bound}))"
    test = block(differs, ["return (int)r + 1;"])
    if plan.score == "float":
        test = [f"const float off = {score} - test_score[r][i];", *test]
    lines = [
        *loop("i", width, [f"{name}[i] = test_row[r][i];"]),
        *([f"{prefix}encode(value, x);"] if plan.encodes else []),
        f"{prefix}scores({plan.row_name}, s);",
        *loop("i", plan.classes, test),
    ]
    body = (
        *([f"{kind} value[{width}];"] if features.value else []),
        *([] if plan.takes_raw else [f"{features.state} x[{width}];"]),
        f"{plan.score} s[{plan.classes}];",
        "unsigned r, i;",
        *loop("r", len(codes), lines),
        "return 0;",
    )
    arrays = (Array("test_row", given_rows(plan, codes)), Array("test_score", _stored_scores(plan, codes)))
    doc = SELFTEST.format(rows=len(codes))
    return Function("selftest", "int", ("void",), body, doc, arrays, public=True)


def test_rows(plan: Plan) -> np.ndarray:
    """Choose rows of codes: one for each class if a drawn row has it, the last quarter with gaps where they may be."""
    width = len(plan.variables)
    count = max(1, min(ROWS, LARGEST_TABLE // (4 * max(1, width, plan.classes))))
    rng = np.random.default_rng(0)
    states = np.array([v.cardinality for v in plan.variables], dtype=np.int64)
    complete = count - count // 4 if plan.features.gaps else count
    rows = _of_every_class(plan, states, complete, rng)
    gaps = rows[: count - complete].copy()
    missing = rng.random(gaps.shape) < 0.2
    if gaps.size:
        missing[np.arange(len(gaps)), rng.integers(0, width, len(gaps))] = True
    return np.concatenate([rows, np.where(missing, -1, gaps)])


def _of_every_class(plan: Plan, states: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows, change those that are closest to classes that none has, and take rows of different classes first."""
    rows = rng.integers(0, states, (DRAWN, len(states)))
    scores = python_scores(plan, rows).astype(np.float64)
    for _ in range(ROUNDS):
        absent = np.setdiff1d(np.arange(plan.classes), scores.argmax(axis=1))[:count]
        if not len(absent) or not len(states):
            break
        with np.errstate(invalid="ignore"):
            behind = np.nan_to_num(scores.max(axis=1, keepdims=True) - scores[:, absent], nan=np.inf)
        closest = np.repeat(rows[behind.argmin(axis=0)], CHANGED, axis=0)
        changed = np.where(rng.random(closest.shape) < 0.25, rng.integers(0, states, closest.shape), closest)
        rows = np.concatenate([rows, changed])
        scores = np.concatenate([scores, python_scores(plan, changed)])
    _, first = np.unique(scores.argmax(axis=1), return_index=True)
    others = np.setdiff1d(np.arange(len(rows)), first)
    return rows[np.concatenate([np.sort(first), others])[:count]]


def python_scores(plan: Plan, codes: np.ndarray) -> np.ndarray:
    """Return the scores of Python: integers in the unit of the program, or doubles."""
    codes = codes.astype(np.int32)
    if isinstance(plan, NetPlan):
        return net_scores(plan.net, codes)
    if isinstance(plan, TreePlan):
        return tree_scores(plan.net, codes)
    if plan.values is None:
        return class_scores(plan.net, codes)
    return integer_log_joint(plan.net, codes, gaps=plan.features.gaps)[0]


def tolerance(plan: Plan) -> float:
    """Return by how much a score that is added up in floats may differ from that of Python."""
    assert isinstance(plan, TablePlan)
    return 1.05 * (plan.gap_error if plan.features.gaps else plan.float_error) + 1e-30


def given_rows(plan: Plan, codes: np.ndarray) -> np.ndarray:
    """Return rows as the program takes them."""
    features = plan.features
    if not codes.shape[1]:
        return np.zeros((len(codes), 1), np.uint8)  # no array of C is empty
    if features.raw == "float":
        return features.values(codes).astype(np.float32)
    if features.raw == "int":
        return narrow(features.values(codes).astype(np.int64), signed=True)
    return narrow(np.where(codes < 0, features.missing, codes))


def _stored_scores(plan: Plan, codes: np.ndarray) -> np.ndarray:
    scores = python_scores(plan, codes)
    return scores.astype(np.float32) if plan.score == "float" else narrow(scores, signed=True)
