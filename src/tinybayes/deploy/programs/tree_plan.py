"""The plan of decision trees: tests of raw values, and nodes that point to them.

A program that takes raw values compares numbers as they are: the threshold of a test is an integer in the order of the
raw values, such as the key of a float. Only states become codes, and only those that are tested, without an encoder.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.cost.tree_ensemble import Tests, find_tests
from tinybayes.deploy.programs.classifier_plan import ClassifierPlan, check_states
from tinybayes.deploy.programs.encoding import float_keys, make_features
from tinybayes.deploy.programs.names import plain
from tinybayes.deploy.programs.program import Array, block, loop, narrow
from tinybayes.errors import error
from tinybayes.model import TreeEnsemble
from tinybayes.model.encoding import Intervals

FORMS = ("nested", "nodes", "levels")


@dataclass(frozen=True, eq=False)
class TreePlan(ClassifierPlan):
    """Decision trees on their way to a device."""

    net: TreeEnsemble
    form: str | None = None  # of the program: "nested", "nodes", "levels"; None for the one that costs least
    score = "int32_t"

    @cached_property
    def tests(self) -> Tests:
        """The different tests."""
        return find_tests(self.net.trees)

    @cached_property
    def encodes(self) -> bool:
        """Whether raw values become codes before anything else: where intervals of numbers are tested as a set."""
        sets = np.unique(self.net.trees.feature[self.net.trees.is_set]).tolist()
        return bool(self.features.value) and any(isinstance(self.variables[f].encoding, Intervals) for f in sets)

    @property
    def given(self) -> str:
        """What the trees of the program test: "codes", or raw values, "int" or "float"."""
        return self.features.raw if self.takes_raw else "codes"

    def is_state(self, feature: int) -> bool:
        """Tell whether the raw value of a feature is that of a state, whose code is tested; others are numbers."""
        return self.takes_raw and not isinstance(self.variables[feature].encoding, Intervals)

    def cut(self, feature: int, threshold: int) -> int:
        """Return the lowest raw value above a code: an integer, or the key of a float.

        Above the last code there is none: it is the number that follows the largest integer, or the key of infinity.
        """
        encoding, integer = self.variables[feature].encoding, self.features.raw == "int"
        assert isinstance(encoding, Intervals)
        if threshold == len(encoding.cuts):
            return 2**31 if integer else int(float_keys(np.array([np.inf]))[0]) + 1
        cut = encoding.cuts[threshold]
        return int(np.ceil(cut)) if integer else int(float_keys(np.array([cut]))[0])

    @cached_property
    def start(self) -> tuple[str, tuple[Array, ...]]:
        """The score of class ``c`` before any tree, as an expression, and the table that it reads."""
        start = self.net.start
        if len(np.unique(start)) == 1:
            return str(int(start[0])), ()
        return "start[c]", (Array("start", narrow(start, signed=True)),)

    @property
    def start_lines(self) -> list[str]:
        """Lines that set all sums to the first scores; compilers would call memset, which takes more than the loop."""
        lines = ["volatile int32_t *first = sum;", *loop("c", self.classes, [f"first[c] = {self.start[0]};"])]
        return block("", lines)

    @property
    def nats(self) -> float:
        """The unit of scores in nats."""
        return float(self.net.scale)

    @property
    def entries(self) -> int:
        """The number of nodes."""
        return len(self.net.trees.feature)

    @property
    def unit_property(self) -> dict[str, str]:
        """The unit of scores, by its name."""
        return {"scale": repr(float(self.net.scale))}

    def facts(self, note: str = "") -> list[str]:
        """Return lines for the comment at the top of generated files."""
        trees = self.net.trees
        count = "One decision tree" if trees.count == 1 else f"{trees.count:,} decision trees"
        leaves = f"{int(trees.is_leaf.sum()):,} leaves, {len(self.tests.node):,} different tests"
        return [
            f"{count} of {len(self.variables)} features into {self.classes} classes, by tinybayes.",
            f"{leaves}, {len(self.net.values):,} values.",
            f"Price: {model_cost(self.net)}.",
            f"Scores times {self.net.scale:.6g} are log p(class | x), up to a constant of the row; they are exact.",
            "A missing value goes to the side that was learned." if self.features.gaps else "Rows must be complete.",
            *([plain(note)] if note else []),
            f"Model {self.id}.",
        ]


def make_tree_plan(
    model: TreeEnsemble, raw: str | None = "none", *, gaps: bool = False, form: str | None = None
) -> TreePlan:
    """Lay out trees for export."""
    check_states((*model.variables, model.target))
    if form is not None and form not in FORMS:
        raise error(f"one of {', '.join(FORMS)}", repr(form), where="form")
    return TreePlan(model, model.target, make_features(model.variables, raw, gaps=gaps), model, form)
