"""Figures of one model, drawn with Matplotlib: structures, decision trees and tables."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes.errors import error, warn
from tinybayes.model import CPD, BayesNet, TreeEnsemble, Variable
from tinybayes.report.layout import CHARACTER, LONGEST, Layout, layout
from tinybayes.report.plot_style import INK, drawn_text, new_axes
from tinybayes.report.tables import row_names
from tinybayes.report.trees import tree_nodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST, SMALLEST = 7.0, 4.5  # points of a name; smaller ones cannot be read
BLUE, ORANGE, YELLOW = "#0072b2", "#d55e00", "#e69f00"
LABELS, ROW = 40, 0.085  # rows of a table that are named, and their height in inches
CHARACTERS, TITLE = 18, 120  # of the name of a row, and of a table
CLASS_ROOM = 60.0  # between the class and the features


def draw_structure(net: BayesNet, width: float, *, ink: str = INK) -> "Figure":
    """Draw a network from left to right: the class is a square, and filled features depend on it.

    Where names would become too small to be read, the figure is wider than asked for.
    """
    target = len(net.variables) if net.target is not None else -1
    families = [[p for p in cpd.parents if p != target] for cpd in net.cpds[: len(net.variables)]]
    names = [variable.name for variable in net.variables]
    drawing = layout(families, names, aspect=1.3)
    left = -(CLASS_ROOM + CHARACTER * min(len(net.target.name), LONGEST)) if net.target is not None else 0.0
    figure, axes, size = _canvas(drawing, width, left)
    on = [target < 0 or target in cpd.parents for cpd in net.cpds[: len(names)]]
    middle = (drawing.height - 26) / 2
    if net.target is not None:
        for node, known in enumerate(on):
            if known:
                ends = [left, drawing.x[node]], [middle, drawing.y[node]]
                axes.plot(*ends, color="0.6", linewidth=0.06 * size, alpha=0.35, zorder=1)
        axes.scatter([left], [middle], s=size**2, marker="s", c=ORANGE, edgecolor=ORANGE, zorder=3)
        name = f"{net.target.name[: LONGEST - 1]}…" if len(net.target.name) > LONGEST else net.target.name
        bold = {"fontsize": size, "fontweight": "bold", "ha": "left", "va": "bottom", "zorder": 4}
        axes.text(left + 2, middle - 12, drawn_text(name), **bold)
    for node, family in enumerate(families):
        for parent in family:
            arrow = {"arrowstyle": "-|>", "lw": 0.1 * size, "color": "0.55", "shrinkA": size / 2, "shrinkB": size / 2}
            tips = [(drawing.x[node], drawing.y[node]), (drawing.x[parent], drawing.y[parent])]
            axes.annotate("", *tips, arrowprops=arrow | {"mutation_scale": size})
    face = [BLUE if known else "white" for known in on]
    axes.scatter(drawing.x, drawing.y, s=size**2 / 2, c=face, edgecolor=BLUE, linewidth=0.12 * size, zorder=3)
    for x, y, name in zip(drawing.x, drawing.y, names, strict=True):
        short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        axes.text(x + 9, y - 7, drawn_text(short), fontsize=size, va="bottom", zorder=4)
    return figure


def draw_tree(model: TreeEnsemble, tree: int, width: float, *, ink: str = INK) -> "Figure":
    """Draw the upper part of a decision tree from left to right: tests are circles, leaves squares.

    Of two branches the upper one is that of yes.
    """
    nodes = tree_nodes(model, tree)
    names = [node.short(24) for node in nodes]
    drawing = layout([[node.parent] if node.parent >= 0 else [] for node in nodes], names, aspect=1.3)
    figure, axes, size = _canvas(drawing, width)
    for x, y, node in zip(drawing.x, drawing.y, nodes, strict=True):
        if node.parent >= 0:
            ends = [drawing.x[node.parent], x], [drawing.y[node.parent], y]
            axes.plot(*ends, color="0.55", linewidth=0.1 * size, zorder=1)
    for leaf, mark, colour in ((False, "o", BLUE), (True, "s", YELLOW)):
        own = [i for i, node in enumerate(nodes) if node.is_leaf == leaf]
        face = ["white" if nodes[i].is_cut else colour for i in own]
        places = [drawing.x[i] for i in own], [drawing.y[i] for i in own]
        axes.scatter(*places, s=size**2 / 2, marker=mark, c=face, edgecolor=colour, linewidth=0.12 * size, zorder=3)
    for x, y, name in zip(drawing.x, drawing.y, names, strict=True):
        axes.text(x + 10, y, drawn_text(name), fontsize=size, va="center", zorder=2)
    return figure


def _canvas(drawing: Layout, width: float, left: float = 0.0) -> tuple["Figure", Any, float]:
    """Return a figure for a drawing, its axes, and the size of names in points."""
    extent = max(drawing.width, 60) - left
    size = min(LARGEST, 72 * width / extent * 9)
    if size < SMALLEST:
        wide = width * SMALLEST / size
        warn(f"the figure is {wide:.1f} inches wide, not {width:g}: its names could not be read otherwise")
        width, size = wide, SMALLEST
    figure, axes = new_axes(width, float(np.clip(width * drawing.height / extent, 1, 3 * width)))
    axes.set_xlim(left - 12, max(drawing.width, 60))
    axes.set_ylim(drawing.height, -26)
    axes.axis("off")
    return figure, axes, size


def draw_tables(net: BayesNet, width: float, names: Sequence[str] = (), *, ink: str = INK) -> "Figure":
    """Draw tables as heat maps: states from left to right, assignments of the parents from top to bottom."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    known = [variable.name for variable in net.nodes]
    missing = [name for name in names if name not in known]
    if missing:
        raise error(f"variables of the network: {', '.join(known[:10])}", repr(missing[0]), where="variable")
    few = 9 if all(len(cpd.table) <= 12 for cpd in net.cpds[:9]) else 6
    nodes = [known.index(name) for name in names] or list(range(min(few, len(net.variables)))) or [0]
    columns = min(3, len(nodes))
    lines = [nodes[i : i + columns] for i in range(0, len(nodes), columns)]
    # A row with a name needs as much room as its letters.
    heights = [0.5 + ROW * max(4, *(min(LABELS, len(net.cpds[node].table)) for node in line)) for line in lines]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(lines), columns, height_ratios=heights)
    for number, node in enumerate(nodes):
        cpd, variable = net.cpds[node], net.nodes[node]
        axes = figure.add_subplot(grid[number // columns, number % columns])
        axes.imshow(np.exp(cpd.log_parameters), vmin=0, vmax=1, cmap="cividis", aspect="auto")
        given = ", ".join(net.nodes[p].name for p in cpd.parents)
        axes.set_title(_short(f"{variable.name} | {given}" if given else variable.name, TITLE), fontsize=7)
        states = [_short(str(s), 10) for s in variable.states] if variable.cardinality <= 8 else []
        axes.set_xticks(range(len(states)), states, rotation=90 if sum(map(len, states)) > 24 else 0)
        rows = row_labels(cpd, net.nodes)
        shown = range(0, len(rows), -(-len(rows) // LABELS))
        axes.set_yticks(shown, [_short(rows[i], CHARACTERS) for i in shown])
        axes.tick_params(labelsize=5, length=0)
        axes.spines[:].set_visible(False)
    scale = ScalarMappable(Normalize(0, 1), "cividis")
    bar = figure.colorbar(scale, ax=figure.axes, shrink=0.6, aspect=30, label="probability")
    bar.outline.set_linewidth(0.4)
    return figure


def row_labels(cpd: CPD, nodes: Sequence[Variable]) -> list[str]:
    """Name the rows of a table by the states of the parents, or by the paths of a decision tree."""
    if cpd.tree is not None:
        return row_names(cpd.tree, len(cpd.table), nodes)
    if not cpd.parents:
        return [""]
    return [", ".join(map(str, states)) for states in product(*(nodes[p].states for p in cpd.parents))]


def _short(text: str, longest: int) -> str:
    return drawn_text(text if len(text) <= longest else f"{text[: longest - 1]}…")
