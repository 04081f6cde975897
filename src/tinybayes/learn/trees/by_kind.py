"""Learning trees by the name of their kind, with defaults that need no tuning: what estimator and command line call."""

from collections.abc import Callable
from typing import Any

from tinybayes.errors import error, near
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Dataset, TreeEnsemble
from tinybayes.options import options_of

KINDS = ("boosted", "forest", "tree")
DEFAULTS: dict[str, dict[str, Any]] = {  # beside those of the learners, and those that depend on the table
    "boosted": {"feature_share": 0.5, "row_share": 0.7},  # sampling makes up for the lack of tuning
    "forest": {"trees": 100},
    "tree": {},
}


def options_of_kind(kind: str) -> tuple[str, ...]:
    """Return the names of the options that a kind of trees has."""
    if kind not in KINDS:
        raise error(f"one of {', '.join(KINDS)}", repr(kind), where="kind")
    names = options_of(BoostingOptions if kind == "boosted" else ForestOptions)
    return tuple(name for name in names if kind != "tree" or name != "trees")


def learn_trees(
    data: Dataset,
    kind: str = "boosted",
    *,
    budget: int | None = None,
    shrink: Callable[[TreeEnsemble], TreeEnsemble] | None = None,
    report: Callable[[int, int], None] | None = None,
    **options: Any,
) -> TreeEnsemble:
    """Learn boosted trees, a forest or a decision tree.

    Parameters
    ----------
    data
        Rows with a class.
    kind
        ``"boosted"``, ``"forest"`` or ``"tree"``.
    budget
        Of ``"boosted"``: bytes of the trees, at most.
    shrink
        Of ``"boosted"``: what is done to the trees in the end; the budget is that of its result.
    report
        Of ``"boosted"``: called after every round with its number and the number of rounds.
    options
        Of `BoostingOptions` or `ForestOptions`. By default, boosted trees draw rows and features, and have smaller
        leaves for small tables; a forest has 100 trees that look at few features for a test.
    """
    known = options_of_kind(kind)
    for name in options:
        if name not in known:
            raise error(f"an option of {kind!r}: {', '.join(known)}", repr(name), where=name, remedy=near(name, known))
    if kind == "boosted":
        from tinybayes.learn.trees.boosting import learn_boosted_trees

        small = {"leaf_rows": min(20, max(1, len(data) // 10))}  # a small table has small leaves
        made = BoostingOptions(**small | DEFAULTS[kind] | options)
        return learn_boosted_trees(data, made, budget=budget, shrink=shrink, report=report)
    for name, asked in (("budget", budget), ("shrink", shrink)):
        if asked is not None:
            raise error("boosted trees", f"a {kind}", where=name, remedy=f"leave {name} out")
    from tinybayes.learn.trees.forest import learn_forest

    few = {"feature_share": max(1, len(data.variables)) ** -0.5} if kind == "forest" else {}
    return learn_forest(data, ForestOptions(**few | DEFAULTS[kind] | options))
