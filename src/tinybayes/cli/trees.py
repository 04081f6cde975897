"""The command that learns decision trees."""

from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinybayes import __version__
from tinybayes.cli._console import check_output, print_json, say, suggest, watched_live
from tinybayes.cli._options import Drop, Json, ModelOutput, Seed, TableFile, Target, Weight, given, options_from
from tinybayes.cli.learning import discretization_options, read_rows
from tinybayes.errors import error

if TYPE_CHECKING:
    from tinybayes.data.variables import Discretization
    from tinybayes.learn.trees.options import BoostingOptions, ForestOptions

_OPTIONS = "tinybayes.learn.trees.options"


@discretization_options(discretizer="histogram", n_bins=128, max_states=1000)
@options_from(f"{_OPTIONS}.ForestOptions", "forest", panel="Of forests and trees", only=("trees", "votes"), trees=100)
@options_from(
    f"{_OPTIONS}.BoostingOptions",
    "options",
    panel="Trees, and their boosting",
    without=["seed"],
    feature_share=0.5,
    row_share=0.7,
)
def learn_trees(
    context: typer.Context,
    table: TableFile,
    target: Target,
    output: ModelOutput,
    kind: Annotated[str, typer.Option(help="boosted, forest or tree.")] = "boosted",
    budget: Annotated[str | None, typer.Option(help="Of boosted: memory of the trees, such as 4kB.")] = None,
    levels: Annotated[int | None, typer.Option(help="Of boosted: different values of all leaves together.")] = None,
    weight: Weight = None,
    drop: Drop = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    options: "BoostingOptions",
    forest: "ForestOptions",
    discretization: "Discretization",
) -> None:
    """Learn boosted trees, a forest or a decision tree from a table, and save the model.

    The defaults are those of boosted trees. Their leaves have fewer rows if the table is small. By default, trees of
    other kinds have up to 512 leaves, of any number of rows, and are grown from all rows; a forest looks at few
    features for a test, a single tree at all of them.
    """
    from tinybayes.compress.trees import tie_leaves
    from tinybayes.deploy import save
    from tinybayes.infer import evaluate
    from tinybayes.learn.trees.by_kind import learn_trees as learn
    from tinybayes.model import Dataset
    from tinybayes.report.progress import rounds_progress
    from tinybayes.search.budget import parse_bytes

    check_output(output)
    chosen = _chosen(context, kind, options, forest)
    size = None if budget is None else parse_bytes(budget, "--budget")
    if kind != "boosted" and levels is not None:
        raise error("boosted trees", f"a {kind}", where="--levels", remedy="leave it out")
    rows = read_rows(table, target, weight, drop or [], replace(discretization, seed=seed), in_memory=True)
    assert isinstance(rows, Dataset)
    shrink = None if levels is None else partial(tie_leaves, levels=levels, data=rows)
    with rounds_progress(watched_live() and kind == "boosted") as draw:
        report = None if draw is None else lambda done, total: draw((done, total))
        model = learn(rows, kind, budget=size, shrink=shrink, report=report, **chosen, seed=seed)
    trained: dict[str, Any] = {"rows": len(rows), "kind": kind, **chosen, "seed": seed}
    trained |= {"discretizer": discretization.discretizer or "none", "training_error": evaluate(model, rows).error}
    save(model, output, metadata={"trained": trained, "tinybayes": __version__})
    _tell(model, trained, output, as_json)


def _chosen(context: typer.Context, kind: str, options: "BoostingOptions", forest: "ForestOptions") -> dict[str, Any]:
    """Return the options that the user gave, by name; refuse those that the kind does not have."""
    from tinybayes.learn.trees.by_kind import KINDS, options_of_kind

    known = options_of_kind(kind)
    values = {"trees": forest.trees, "votes": forest.votes}
    values |= {field.name: getattr(options, field.name) for field in fields(options)}
    chosen = {name: value for name, value in values.items() if name != "seed" and given(context, name)}
    for name in chosen:
        if name not in known:
            kinds = " or ".join(other for other in KINDS if name in options_of_kind(other))
            raise error(f"--kind {kinds}", kind, where=given(context, name)[0], remedy="leave it out")
    return chosen


def _tell(model: Any, trained: dict[str, Any], output: Any, as_json: bool) -> None:
    from tinybayes.cost import model_cost

    cost, wrong = model_cost(model), trained["training_error"]
    if as_json:
        print_json({**cost.to_dict(), **trained}, output)
        return
    count = f"{model.trees.count:,} trees" if model.trees.count > 1 else "a tree"
    leaves = f"{int(model.trees.is_leaf.sum()):,} leaves"
    say(f"Learned {count} with {leaves} from {trained['rows']:,} rows: {100 * wrong:.2f} % error on them; {cost}.")
    say(f"Saved to {output}. {suggest('evaluate', output, 'TEST_TABLE')}")
