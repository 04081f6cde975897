"""What `scaling.py` measures, and how its cost should grow."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scaling_work import (
    Size,
    Work,
    ask_circuit,
    compile_net,
    discretizer,
    estimator,
    file,
    learn,
    learn_circuit,
    mdlp,
    predict,
    write_c,
)

AXES = {
    "rows": (1_000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
    "features": (10, 30, 100, 300, 1_000, 2_000, 5_000),
    "states": (2, 10, 30, 100, 300, 1_000),
    "classes": (2, 10, 30, 100, 300, 1_000),
}


@dataclass(frozen=True)
class Case:
    """Something that is measured along some axes.

    Parameters
    ----------
    name, group
        How it is called, and with what it stands together.
    make
        Makes the work for a size.
    theory
        The exponent of time along each axis that is measured.
    memory
        The exponent of memory beside the table, where it is another.
    base
        The sizes that stay the same along an axis; `Size()` where none is given.
    most
        The largest point of an axis, where larger ones say no more or are refused.
    why
        Where the exponents come from.
    note
        What is known of an axis that may be flagged.
    """

    name: str
    group: str
    make: Callable[[Size], Work]
    theory: dict[str, float]
    why: str
    memory: dict[str, float] = field(default_factory=dict)
    base: dict[str, Size] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    note: dict[str, str] = field(default_factory=dict)

    def sizes(self, axis: str) -> list[Size]:
        """Return the sizes along an axis, in increasing order."""
        most = self.most.get(axis, AXES[axis][-1])
        start = self.base.get(axis, Size())
        return [start._replace(**{axis: value}) for value in AXES[axis] if value <= most]


ORDERS = (
    "the circuit grows as the theory says, but the search for an order of elimination looks at all variables in each "
    "step, on a matrix of them; beyond 4,000 variables a heuristic takes its place"
)
LONG = (
    "rows of thousands of dependent variables leave the range of doubles; a few are passed in log space first, to find "
    "scales for all"
)
NEW = "the file is put together in memory that is new to the process, which takes longer than copying"
WIDE = Size(20_000, 20, 4, 4)
CASES = [
    Case(
        "naive Bayes",
        "learning",
        learn("naive"),
        {"rows": 1, "features": 1, "states": 1, "classes": 1},
        "one count per table cell; tables of states times classes",
        memory={"rows": 0},
        base={"features": WIDE},
    ),
    Case(
        "Chow-Liu TAN",
        "learning",
        learn("chow-liu"),
        {"rows": 1, "features": 2, "states": 2, "classes": 1},
        "all pairs of features are counted; tables of states squared times classes",
        memory={"rows": 0},
        base={"features": Size(2_000), "states": Size(50_000, 5, 4, 2)},
    ),
    Case(
        "MDLP cut points",
        "learning",
        mdlp,
        {"rows": 1, "features": 1, "classes": 1},
        "sorting, n log n; class counts at each cut",
        note={"rows": "sorting takes n log n, and columns leave the cache"},
        base={"rows": Size(0, 4), "features": Size(2_000), "classes": Size(100_000, 4)},
    ),
    Case(
        "LearnAC, quick",
        "learning",
        learn_circuit,
        {"rows": 1, "features": 2, "states": 2},
        "prices proportional to the rows, so that about as many splits pay off; every leaf considers all pairs",
        base={"rows": Size(0, 20, 2, 2), "features": Size(2_000, 0, 2, 2), "states": Size(20_000, 8, 0, 2)},
        most={"features": 2_000, "states": 30},
    ),
    Case(
        "compile a chain",
        "learning",
        compile_net("chain"),
        {"features": 1, "states": 2},
        "edges: states squared for each variable",
        base={"states": Size(0, 5)},
        note={"features": ORDERS},
    ),
    Case(
        "compile a TAN",
        "learning",
        compile_net("chow-liu"),
        {"features": 1, "states": 2, "classes": 1},
        "edges: states squared times classes for each variable",
        base={"features": Size(0, 0, 3, 3), "states": Size(0, 5, 0, 2), "classes": Size(0, 10, 3, 0)},
        most={"states": 300},
        note={"features": ORDERS},
    ),
    Case(
        "labels, naive Bayes",
        "prediction",
        predict("naive"),
        {"rows": 1, "features": 1, "states": 0, "classes": 1},
        "one entry per feature and class; states only take memory",
        memory={"rows": 1, "features": 1, "states": 1},
        base={"features": WIDE, "states": Size(300_000, 10)},
    ),
    Case(
        "labels, TAN",
        "prediction",
        predict("chow-liu"),
        {"rows": 1, "features": 1, "classes": 1},
        "one entry per feature and class",
        base={"features": Size(10_000)},
        most={"features": 2_000},
    ),
    Case(
        "scores, naive Bayes",
        "prediction",
        predict("naive", "class_scores"),
        {"rows": 1, "features": 1, "classes": 1},
        "one entry per feature and class; the result has eight bytes per row and class",
        base={"features": WIDE},
    ),
    Case(
        "labels, quantised TAN",
        "prediction",
        predict("chow-liu", fixed=True),
        {"rows": 1, "features": 1, "classes": 1},
        "one entry per feature and class, in integers",
        base={"features": Size(10_000)},
        most={"features": 2_000},
    ),
    Case(
        "evaluation, quantised TAN",
        "prediction",
        predict("chow-liu", "evaluate", fixed=True),
        {"rows": 1, "features": 1, "classes": 1},
        "scores, and one logarithm each",
        memory={"rows": 0, "classes": 2},
        base={"features": Size(10_000)},
        most={"features": 2_000},
    ),
    Case(
        "circuit marginals",
        "prediction",
        ask_circuit("marginals"),
        {"rows": 1, "features": 1, "states": 2, "classes": 1},
        "two passes over the edges for each row",
        base={"features": Size(1_000, 0, 3, 3), "states": Size(500, 5, 0, 2), "classes": Size(1_000, 10, 3, 0)},
        most={"rows": 1_000_000, "features": 2_000, "states": 300},
        note={"features": LONG},
    ),
    Case(
        "circuit labels",
        "prediction",
        ask_circuit("predict_codes"),
        {"rows": 1, "features": 1, "classes": 1},
        "two passes over the edges for each row",
        base={"features": Size(1_000, 0, 3, 3), "classes": Size(1_000, 10, 3, 0)},
        most={"rows": 1_000_000, "features": 2_000, "classes": 300},
        note={"features": LONG},
    ),
    Case(
        "to C",
        "export",
        write_c,
        {"features": 1, "states": 1, "classes": 1},
        "each entry is written once",
    ),
    Case(
        "save .tb",
        "export",
        file("save"),
        {"features": 1, "states": 1, "classes": 1},
        "each entry and each name is written once",
        base={"states": Size(0, 100), "classes": Size(0, 1000)},
        note={"classes": NEW},
    ),
    Case(
        "load .tb",
        "export",
        file("load"),
        {"features": 1, "states": 1, "classes": 1},
        "each entry and each name is read once",
        base={"states": Size(0, 100), "classes": Size(0, 1000)},
    ),
]


class Copy(NamedTuple):
    """A call whose memory is compared with that of its table."""

    name: str
    kind: str
    make: Callable[[Size], Work]
    expected: str
    limit: float  # of the peak above the table, as a share of it
    size: Size = Size(2_000_000)


CODES = "int8 codes in a Dataset"
NOTHING = "blocks and counts alone"
SETS = "sets of rows, half a byte a cell, and the matrix of all pairs"
COPIES = [
    Copy("learn naive Bayes", CODES, learn("naive"), NOTHING, 0.1),
    Copy("learn Chow-Liu TAN", CODES, learn("chow-liu"), NOTHING, 0.5),
    Copy("learn Chow-Liu TAN, wide", CODES, learn("chow-liu"), SETS, 1.5, Size(50_000, 800)),
    Copy("labels, naive Bayes", CODES, predict("naive"), "a label of 4 bytes a row", 0.35),
    Copy("labels, TAN", CODES, predict("chow-liu"), "a label of 4 bytes a row", 0.35),
    Copy("labels, quantised TAN", CODES, predict("chow-liu", fixed=True), "a label of 4 bytes a row", 0.35),
    Copy("scores, TAN", CODES, predict("chow-liu", "class_scores"), "the scores: 32 bytes a row", 1.75),
    Copy("evaluation, quantised TAN", CODES, predict("chow-liu", "evaluate", fixed=True), NOTHING, 0.5),
    Copy("labels, circuit", CODES, ask_circuit("predict_codes"), "a label of 4 bytes a row", 0.6, Size(1_000_000)),
    Copy("scores, circuit", CODES, ask_circuit("class_scores"), "the scores: 32 bytes a row", 2.0, Size(1_000_000)),
]
for _kind in ("int64 matrix", "int64 frame", "category frame"):
    _share = 1.0 if _kind == "category frame" else 0.125
    _codes = "the codes, one byte a cell; the classes; a column at a time"
    COPIES += [
        Copy("fit naive Bayes", _kind, estimator("fit", _kind), _codes, _share + 0.4 * 8 * _share),
        Copy("fit Chow-Liu TAN", _kind, estimator("fit", _kind, "chow-liu"), _codes, _share + 0.6 * 8 * _share),
        Copy("predict", _kind, estimator("predict", _kind), _codes, _share + 0.2 * 8 * _share),
    ]
for _kind in ("float64 matrix", "float64 frame"):
    _cuts = "the codes, and on each core a column that is sorted"
    COPIES += [
        Copy("fit naive Bayes, MDLP", _kind, estimator("fit", _kind), _cuts, 0.75, Size(1_000_000)),
        Copy("predict", _kind, estimator("predict", _kind), "the codes", 0.25),
    ]
COPIES += [
    Copy("MDLPDiscretizer.fit", "float64 matrix", discretizer("fit"), "a column that is sorted", 0.6, Size(1_000_000)),
    Copy("MDLPDiscretizer.transform", "float64 matrix", discretizer("transform"), "the codes", 0.25, Size(1_000_000)),
]


def quick(case: Case) -> Case:
    """Cut a case down: a proof that everything runs, not a measurement."""
    most = {"rows": 300_000, "features": 300, "states": 100, "classes": 100}
    return replace(case, most={axis: min(value, case.most.get(axis, value)) for axis, value in most.items()})
