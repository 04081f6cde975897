"""Tables and trees for the terminal."""

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from tinybayes.cost import model_cost
from tinybayes.infer import Evaluation, Explanation
from tinybayes.model import BayesNet, Circuit, NeuralNet, Variable


def bytes_text(bits: int) -> str:
    """Write a number of bits as a size people read: 12,230 bits are 1.5 kB."""
    size = -(-bits // 8)
    return f"{size} B" if size < 1000 else f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def model_card(net: BayesNet, *, limit: int = 20) -> RenderableType:
    """Describe a network: its variables, its structure as a tree, its price.

    Parameters
    ----------
    net
        The network.
    limit
        How many variables to list; the rest are counted.
    """
    return Group(variables_table(net, limit), "", structure_tree(net, limit=limit), "", cost_table(net))


def cost_table(net: BayesNet) -> Table:
    """List what a network stores and what a prediction does."""
    cost = model_cost(net)
    formats = sorted({str(cpd.format) for cpd in net.cpds})
    table = Table(title="Price", title_justify="left", show_header=False)
    table.add_row("memory", f"{bytes_text(cost.bits)} ({cost.bits:,} bits)")
    table.add_row("parameters", f"{cost.parameters:,} in {', '.join(formats)}")
    table.add_row("a prediction", f"{cost.additions:,} additions, {cost.lookups:,} look-ups")
    table.add_row("arg max and tests", f"{cost.comparisons:,} comparisons")
    return table


def structure_tree(net: BayesNet, *, limit: int = 20) -> Tree:
    """Draw the graph as a tree: each node below the last of its feature parents.

    Further parents stand in brackets behind the name. In a classifier every feature hangs below the class; a parent
    that is a feature is drawn instead of the class.
    """
    nodes = net.nodes
    classes = len(net.variables) if net.target is not None else -1
    children: dict[int, list[int]] = {}
    for node, cpd in enumerate(net.cpds):
        features = [p for p in cpd.parents if p != classes]
        upper = features[-1] if features else classes if classes in cpd.parents else -2
        children.setdefault(upper, []).append(node)
    left = limit
    tree = Tree("Structure", highlight=False)

    # Not recursive: a Chow-Liu tree over images can be hundreds of levels deep.
    stack = [(node, tree) for node in reversed(children.get(-2, []))]
    while stack and left > 0:
        node, above = stack.pop()
        others = [nodes[p].name for p in net.cpds[node].parents if p != classes][:-1]
        name = f"[bold]{escape(nodes[node].name)}[/bold]" if node == classes else escape(nodes[node].name)
        below = above.add(name + (f" [dim](also {escape(', '.join(others))})[/dim]" if others else ""))
        left -= 1
        stack += [(child, below) for child in reversed(children.get(node, []))]
    if len(nodes) > limit:
        tree.add(f"[dim]... and {len(nodes) - limit:,} more[/dim]")
    return tree


def evaluation_table(result: Evaluation, target: Variable, *, limit: int = 30) -> Table:
    """Show the error, overall and class by class."""
    title = f"{100 * result.error:.2f} % error on {result.rows:,} rows, log loss {result.log_loss:.4f}"
    table = Table(title=title, title_justify="left")
    for heading in (target.name, "rows", "error", "most often taken for"):
        table.add_column(escape(heading), justify="right" if heading in ("rows", "error") else "left")
    for state, row in list(zip(target.states, enumerate(result.confusion), strict=True))[:limit]:
        true, counts = row
        total = counts.sum()
        wrong = counts.copy()
        wrong[true] = 0
        share = f"{100 * wrong.sum() / total:.2f} %" if total else ""
        taken = f"{target.states[int(np.argmax(wrong))]} ({wrong.max():g})" if wrong.any() else ""
        table.add_row(escape(str(state)), f"{total:g}", share, escape(taken))
    if len(target.states) > limit:
        table.add_row(f"... and {len(target.states) - limit} more", "", "", "")
    return table


def explanation_table(explanation: Explanation, target: Variable, *, limit: int = 15) -> Table:
    """Show what speaks for the label and what against it, the strongest first, as bars that add up."""
    title = f"{target.name} = {explanation.label}, not {explanation.against}: log-odds {explanation.total:.4g}"
    table = Table(title=escape(title), title_justify="left")
    for heading in ("feature", "value", "log-odds"):
        table.add_column(heading, justify="right" if heading == "log-odds" else "left", overflow="fold")
    table.add_column(f"against | for {escape(str(explanation.label))}", no_wrap=True)
    shown = explanation.strongest(limit)
    said = [explanation.prior, *(item.log_odds for item in shown)]
    most = max((abs(odds) for odds in said if np.isfinite(odds)), default=0.0) or 1.0
    table.add_row("[dim]before any feature[/dim]", "", f"{explanation.prior:+.3f}", _odds_bar(explanation.prior, most))
    for item in shown:
        bar = _odds_bar(item.log_odds, most)
        table.add_row(escape(item.feature), escape(item.value), f"{item.log_odds:+.3f}", bar)
    rest = [item.log_odds for item in explanation.strongest(len(explanation.contributions))[limit:]]
    if rest:
        table.add_row(f"[dim]{len(rest):,} more together[/dim]", "", f"{sum(rest):+.3f}", "")
    return table


def _odds_bar(odds: float, most: float, width: int = 12) -> str:
    """Draw a bar to the right for what speaks for the label, to the left for what speaks against it."""
    size = min(width, max(1, round(width * abs(odds) / most))) if odds else 0
    left, right = ("", "█" * size) if odds > 0 else ("█" * size, "")
    return f"[red]{left:>{width}}[/red]│[green]{right:<{width}}[/green]"


def variables_table(net: BayesNet | Circuit | NeuralNet, limit: int) -> Table:
    """List the variables of a model with their states."""
    features = len(net.variables)
    kind = f"Classifier of {net.target.name!r} from {features} features" if net.target else f"{features} variables"
    table = Table(title=escape(kind), title_justify="left")
    for heading in ("variable", "states", ""):
        table.add_column(heading, overflow="fold")
    shown = [net.target, *net.variables] if net.target is not None else list(net.variables)
    for variable in shown[:limit]:
        names = ", ".join(map(str, variable.states[:8])) + (", ..." if variable.cardinality > 8 else "")
        bold = "[bold]{}[/bold]" if variable is net.target else "{}"
        table.add_row(bold.format(escape(variable.name)), str(variable.cardinality), escape(names))
    if len(shown) > limit:
        table.add_row(f"[dim]... and {len(shown) - limit:,} more[/dim]", "", "")
    return table
