"""The front of a search as a table for the terminal, which fits into 80 columns."""

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from tinybayes.errors import visible

if TYPE_CHECKING:
    from tinybayes.search.conclude import Exploration

ROWS = 20  # that are listed
CHOSEN, OVER = "*", "!"


def front_table(result: "Exploration", *, whole: bool = False) -> Table:
    """Return the front as a table, by flash: the chosen model and what exceeds the budget are marked.

    Figures with ± are means over several splits of the rows. Of more than 20 models the chosen one and the best within
    the budget are listed, unless `whole`.
    """
    measure, models = result.measure, shown_models(result, whole=whole)
    plain = measure.name == "error"
    costs = any("feature_cost" in model for model in result.models)
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, title_justify="left", caption_justify="left"
    )
    table.title = (
        f"The front: no other model is better in {measure.metric.title}, {'feature cost, ' * costs}flash and work"
    )
    table.caption = Text(visible("\n".join(_key(result, models))), style="table.caption")
    table.add_column("", no_wrap=True)
    table.add_column("model")  # the only one that gives way: its names are cut, not wrapped
    names = ["validation", "test", *(["error"] * (not plain)), *(["cost"] * costs), "flash B", "instr."]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for model in models:
        chosen = result.chosen is not None and model["id"] == result.chosen["id"]
        over = model.get("within") is False
        sign = CHOSEN if chosen else OVER if over else ""
        style = "bold green" if chosen else "dim" if over else None
        label = Text(visible(_named(model)), no_wrap=True, overflow="ellipsis")
        table.add_row(sign, label, *_figures(model, result, plain=plain, costs=costs), style=style)
    return table


def shown_models(result: "Exploration", *, whole: bool = False) -> list[dict[str, Any]]:
    """Return the models to list, by flash: the front and the chosen one, which may be as good as one of it."""
    models, chosen = list(result.front), result.chosen
    if chosen is not None and all(model["id"] != chosen["id"] for model in models):
        models.append(chosen)
    if not whole and len(models) > ROWS:
        value = result.measure.figures[0]
        first = None if chosen is None else chosen["id"]
        models.sort(key=lambda m: (m["id"] != first, m.get("within") is False, m[value]))
        models = models[:ROWS]
    return sorted(models, key=lambda m: m["flash"])


def _named(model: dict[str, Any]) -> str:
    return f"{model['label'].rsplit(', ', 1)[0]}{' (tables only)' if model['tables_only'] else ''}"


def _figures(model: dict[str, Any], result: "Exploration", *, plain: bool, costs: bool) -> list[str]:
    """Return the figures of a row of the table."""
    from tinybayes.search.measure import ERROR

    measure = result.measure
    validation, test = (model[name] for name in measure.figures)
    known = measure.show(validation)
    if model.get("checked"):
        spread = model["standard_error"]
        percent = measure.metric.percent
        known = f"{known.removesuffix(' %')} ± {100 * spread:.1f} %" if percent else f"{known} ± {spread:.2g}"
    return [
        known,
        measure.show(test),
        *([] if plain else [ERROR.show(model["test_error"])]),
        *([f"{model['feature_cost']:g}"] if costs else []),
        f"{model['flash']:,}",
        "" if model["instructions"] is None else f"{model['instructions']:,.0f}",
    ]


def _key(result: "Exploration", models: list[dict[str, Any]]) -> list[str]:
    """Say what the marks mean that are there, and how much is not listed."""
    lines = [f"Programs for {result.document['budget']['core']}. {CHOSEN} chosen"] if result.chosen is not None else []
    if any(model.get("within") is False for model in models):
        lines.append(f"{OVER} over the budget")
    said = [", ".join(lines) + "."] if lines else []
    if any(model.get("checked") for model in models):
        said.append("± means over several splits of the rows, which choose; others are of one split.")
    left = len(result.front) - sum(bool(model["on_front"]) for model in models)
    if left > 0:
        said.append(f"{left} more with --all, and on the page.")
    return said
