"""Models, evaluations, explanations and posteriors as tables and trees for the terminal."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape as escape_markup
from rich.table import Table
from rich.tree import Tree

from tinybayes.cost import model_cost
from tinybayes.deploy.price import program_cost
from tinybayes.errors import TinybayesError, visible
from tinybayes.infer import Evaluation, Explanation, InferenceCost, is_decomposable, is_deterministic, is_smooth
from tinybayes.model import BayesNet, Circuit, Classifier, NeuralNet, TreeEnsemble, Variable
from tinybayes.report.trees import describe_trees, tree_nodes, tree_size

CORE = "cortex-m0+"  # that programs are priced for where nobody says another one
_PROPERTIES = {"smooth": is_smooth, "decomposable": is_decomposable, "deterministic": is_deterministic}


def escape(text: str) -> str:
    """Return a name as it is shown in a table: neither markup nor control characters."""
    return escape_markup(visible(text))


def bytes_text(bits: int) -> str:
    """Write a number of bits as a readable size: 12,230 bits are 1.5 kB."""
    size = -(-bits // 8)
    return f"{size} B" if size < 1000 else f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def describe(model: Classifier) -> dict[str, Any]:
    """Return the content of `model_card` in plain values."""
    if isinstance(model, Circuit):
        return describe_circuit(model)
    cost = model_cost(model).to_dict()
    if isinstance(model, NeuralNet):
        return {**describe_net(model), "cost": cost}
    if isinstance(model, TreeEnsemble):
        return {**describe_trees(model), "cost": cost}
    names = [node.name for node in model.nodes]
    return {"parents": {n: [names[p] for p in c.parents] for n, c in zip(names, model.cpds, strict=True)}, "cost": cost}


def describe_circuit(circuit: Circuit) -> dict[str, Any]:
    """Return the sizes and the properties of a circuit in plain values."""
    kinds = np.bincount(circuit.kind, minlength=4).tolist()
    return {
        "nodes": circuit.n_nodes,
        "edges": circuit.n_edges,
        "parameters": len(circuit.table),
        "format": str(circuit.format),
        "leaves": {"parameters": kinds[0], "indicators": kinds[1]},
        "sums": kinds[2],
        "products": kinds[3],
        "properties": {name: bool(check(circuit)) for name, check in _PROPERTIES.items()},
    }


def describe_net(net: NeuralNet) -> dict[str, Any]:
    """Return the inputs and the layers of a network in plain values."""
    layers = [
        {
            "kind": "convolution" if layer.convolution else "dense",
            "inputs": list(shape),
            "units": layer.units,
            "weights": layer.codes.size,
            "bits": int(layer.bits),
            "activation": layer.activation,
        }
        for layer, shape in zip(net.layers, net.shapes, strict=True)
    ]
    states = int((net.inputs.state >= 0).sum())
    return {"inputs": {"states": states, "numbers": len(net.inputs) - states}, "layers": layers}


def model_card(model: Classifier, *, limit: int = 20) -> RenderableType:
    """Describe a model: its first `limit` variables, its structure and its price."""
    if isinstance(model, Circuit):
        parts: list[RenderableType] = [_circuit_table(model)]
    elif isinstance(model, NeuralNet):
        parts = [_layers_table(model), "", _price_table(model)]
    elif isinstance(model, TreeEnsemble):
        parts = [_trees_table(model), "", decision_tree(model, limit=limit), "", _price_table(model)]
    else:
        parts = [structure_tree(model, limit=limit), "", _price_table(model)]
    return Group(variables_table(model, limit), "", *parts)


def empty_table(title: str | None, *headings: str, right: Sequence[str] = ()) -> Table:
    """Return a table without rows, with the columns named in `right` aligned there; long cells are folded."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(escape(heading), justify="right" if heading in right else "left", overflow="fold")
    return table


def _facts_table(title: str, facts: dict[str, str]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    for name, value in facts.items():
        table.add_row(name, value)
    return table


def _price_table(model: BayesNet | NeuralNet | TreeEnsemble) -> Table:
    """List the memory of a model and the operations of a prediction."""
    cost = model_cost(model)
    facts = {"memory": f"{bytes_text(cost.bits)} ({cost.bits:,} bits)", "parameters": f"{cost.parameters:,}"}
    if isinstance(model, NeuralNet):
        facts["a prediction"] = f"{cost.multiplications:,} multiply-accumulates, {cost.additions:,} additions"
        facts["largest sum"] = f"{np.log2(max(model.reach) + 1) + 1:.1f} bits"
    elif isinstance(model, TreeEnsemble):
        facts["a prediction"] = f"{cost.comparisons:,} comparisons, {cost.additions:,} additions"
        facts["largest sum"] = f"{np.log2(model.reach + 1) + 1:.1f} bits"
    else:
        facts["parameters"] += f" in {', '.join(sorted({str(cpd.format) for cpd in model.cpds}))}"
        facts["a prediction"] = f"{cost.additions:,} additions, {cost.lookups:,} look-ups"
        facts["arg max and tests"] = f"{cost.comparisons:,} comparisons"
    return _facts_table("Price", facts)


def program_figures(model: Classifier, core: str = CORE, clock: float | None = None) -> dict[str, Any]:
    """Return what the program of a classifier costs on a core; nothing where it has none that can be priced."""
    try:
        return asdict(program_cost(model, core, clock=clock))
    except TinybayesError:
        return {}


def program_table(figures: dict[str, Any]) -> Table:
    """List what a program costs, from raw values to a label."""
    facts = {
        "flash": f"{figures['flash']:,} B: {figures['tables']:,} of tables, {figures['code']:,} of code",
        "RAM": f"{figures['ram']:,} B, and {figures['stack']:,} B of stack",
        "a prediction": f"{figures['instructions']:,.0f} instructions, {figures['microseconds']:,.0f} us",
    }
    return _facts_table(f"Program on {figures['core']}, estimated", facts)


def _circuit_table(circuit: Circuit) -> Table:
    sizes = describe_circuit(circuit)
    bits = len(circuit.table) * circuit.format.bits + circuit.format.shared_bits
    leaves = f"{sizes['leaves']['parameters']:,} parameters and {sizes['leaves']['indicators']:,} indicators"
    inner = f"{sizes['sums']:,} sums, {sizes['products']:,} products"
    facts = {
        "edges": f"{sizes['edges']:,}",
        "nodes": f"{sizes['nodes']:,}: {inner}, leaves: {leaves}",
        "parameters": f"{sizes['parameters']:,} in {sizes['format']}, {bytes_text(bits)}",
    }
    for name, check in _PROPERTIES.items():
        answer = check(circuit)
        facts[name] = "yes" if answer else f"no: {answer.reason}"
    return _facts_table("Circuit", facts)


def _layers_table(net: NeuralNet) -> Table:
    numbers = ("inputs", "units", "weights", "bits")
    table = empty_table("Layers", "layer", *numbers, "activation", right=numbers)
    for layer in describe_net(net)["layers"]:
        inputs = " x ".join(map(str, layer["inputs"]))
        sizes = (f"{layer['units']:,}", f"{layer['weights']:,}", str(layer["bits"]))
        table.add_row(layer["kind"], inputs, *sizes, layer["activation"])
    return table


def _trees_table(model: TreeEnsemble) -> Table:
    sizes = describe_trees(model)
    adds = {
        "votes": "a vote for a class",
        "all classes": "a number for each class",
        "one class": "a number for a class",
    }
    sets = f", {sizes['tests_of_sets']:,} of them of sets" if sizes["tests_of_sets"] else ""
    return _facts_table(
        "Trees",
        {
            "trees": f"{sizes['trees']:,}" + (", the same test in all nodes of a level" if sizes["symmetric"] else ""),
            "leaves": f"{sizes['leaves']:,}, each adds {adds[sizes['adds']]}",
            "depth": f"{sizes['depth']:,}",
            "tests": f"{sizes['tests']:,}, {sizes['different_tests']:,} different{sets}",
            "values of leaves": f"{sizes['values']:,}",
            "features in use": f"{sizes['used_features']:,} of {len(model.variables):,}",
            "missing values": "go left, to the answer yes" if sizes["missing"] == "left" else "go to learned sides",
        },
    )


def decision_tree(model: TreeEnsemble, tree: int = 0, *, limit: int = 20) -> Tree:
    """Draw one of the trees, up to about `limit` nodes; of two branches the first is that of the answer yes."""
    count = model.trees.count
    drawn = Tree("Decision tree" if count == 1 else f"Tree {tree + 1:,} of {count:,}", highlight=False)
    below: list[Tree] = []
    for node in tree_nodes(model, tree, limit):
        text = f"[bold]{escape(node.text)}[/bold]" if node.is_leaf else escape(node.text)
        branch = (below[node.parent] if node.parent >= 0 else drawn).add(text)
        below.append(branch)
        if node.is_cut:
            branch.add("[dim]...[/dim]")
    if (size := tree_size(model, tree)) > len(below):
        drawn.add(f"[dim]... and {size - len(below):,} more nodes[/dim]")
    return drawn


def structure_tree(net: BayesNet, *, limit: int = 20) -> Tree:
    """Draw the graph as a tree: each node below the last of its feature parents.

    Other parents follow the name in brackets. In a classifier a feature without feature parents is drawn below the
    class.
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
    table = empty_table(title, target.name, "rows", "error", "most often taken for", right=("rows", "error"))
    for true, (state, counts) in enumerate(list(zip(target.states, result.confusion, strict=True))[:limit]):
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
    """Show the contributions for and against the label, strongest first, as bars that add up."""
    title = f"{target.name} = {explanation.label}, not {explanation.against}: log-odds {explanation.total:.4g}"
    table = empty_table(escape(title), "feature", "value", "log-odds", right=("log-odds",))
    table.add_column(f"against | for {escape(str(explanation.label))}", no_wrap=True)
    shown = explanation.strongest(limit)
    said = [explanation.prior, *(part.log_odds for part in shown)]
    most = max((abs(odds) for odds in said if np.isfinite(odds)), default=0.0) or 1.0
    table.add_row("[dim]before any feature[/dim]", "", f"{explanation.prior:+.3f}", _odds_bar(explanation.prior, most))
    for part in shown:
        bar = _odds_bar(part.log_odds, most)
        table.add_row(escape(part.feature), escape(part.value), f"{part.log_odds:+.3f}", bar)
    rest = [part.log_odds for part in explanation.strongest(len(explanation.contributions))[limit:]]
    if rest:
        table.add_row(f"[dim]{len(rest):,} more together[/dim]", "", f"{sum(rest):+.3f}", "")
    return table


def _odds_bar(odds: float, most: float, width: int = 12) -> str:
    """Draw a bar to the right for evidence in favour of the label, to the left for evidence against it."""
    size = max(1, round(width * min(1.0, abs(odds) / most))) if odds else 0  # one that is infinite fills it
    left, right = ("", "█" * size) if odds > 0 else ("█" * size, "")
    return f"[red]{left:>{width}}[/red]│[green]{right:<{width}}[/green]"


def variables_table(net: Classifier, limit: int) -> Table:
    """List the variables of a model with their states."""
    features = len(net.variables)
    kind = f"Classifier of {net.target.name!r} from {features} features" if net.target else f"{features} variables"
    table = empty_table(escape(kind), "variable", "states", "")
    shown = [net.target, *net.variables] if net.target is not None else list(net.variables)
    for variable in shown[:limit]:
        names = ", ".join(map(str, variable.states[:8])) + (", ..." if variable.cardinality > 8 else "")
        bold = "[bold]{}[/bold]" if variable is net.target else "{}"
        table.add_row(bold.format(escape(variable.name)), str(variable.cardinality), escape(names))
    if len(shown) > limit:
        table.add_row(f"[dim]... and {len(shown) - limit:,} more[/dim]", "", "")
    return table


def inference_table(costs: Sequence[InferenceCost]) -> Table:
    """List what the ways to all marginals take; the memory of a circuit that was not compiled is a bound."""
    table = empty_table("Inference", "method", "width", "memory", "time", "fits", right=("width", "memory", "time"))
    for cost in costs:
        bound = "at most " if cost.method == "circuit" and cost.width is not None else "about "
        sizes = ("-", "-")
        if np.isfinite(cost.bytes):
            sizes = (f"{bound}{_bytes(cost.bytes)}", f"about {cost.seconds:,.2g} s")
        table.add_row(cost.method, str(cost.width or "-"), *sizes, "yes" if cost.fits else "no")
    return table


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:,.3g} GiB"


def posterior_table(nodes: Sequence[Variable], known: np.ndarray, posterior: np.ndarray, *, limit: int = 50) -> Table:
    """List the posterior of `limit` variables, the most probable state first; `known` holds codes, -1 if unknown."""
    table = empty_table("Posteriors", "variable", "state", "probability", "others", right=("probability",))
    parts = np.split(posterior, np.cumsum([node.cardinality for node in nodes])[:-1])
    for node, part, code in list(zip(nodes, parts, known.tolist(), strict=True))[:limit]:
        order = np.argsort(-part, kind="stable")
        others = ", ".join(f"{node.states[k]} {part[k]:.4g}" for k in order[1:6]) + (", ..." if len(part) > 6 else "")
        mark = " [dim](known)[/dim]" if code >= 0 else ""
        top = int(order[0])
        table.add_row(escape(node.name), escape(str(node.states[top])) + mark, f"{part[top]:.6g}", escape(others))
    if len(nodes) > limit:
        table.add_row(f"[dim]... and {len(nodes) - limit:,} more[/dim]", "", "", "")
    return table
