"""Figures for papers, drawn with Matplotlib: the front, bits, structures and tables, as SVG, PDF or PNG."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes.deploy import load, read_network
from tinybayes.errors import error
from tinybayes.files import atomic_path
from tinybayes.model import BayesNet, TreeEnsemble
from tinybayes.report.front import metric_value, model_path, read_front
from tinybayes.report.layout import layout
from tinybayes.report.trees import tree_nodes
from tinybayes.search.titles import TITLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".pdf", ".png")
WIDTH = 5.5  # inches
# Colours that people with any kind of colour vision can tell apart (Okabe and Ito), and a mark for each family.
LOOKS = {
    "naive": ("#0072b2", "o"),
    "tan": ("#d55e00", "s"),
    "subset": ("#e69f00", "D"),
    "tied": ("#cc79a7", "^"),
    "dense": ("#009e73", "P"),
    "conv": ("#56b4e9", "X"),
    "circuit": ("#000000", "*"),
    "tree": ("#8b939e", "v"),
    "forest": ("#f0e442", "h"),
    "boosted": ("#8a5a2b", "p"),
}
NETWORKS = ("naive", "tan", "subset", "tied")
TREES = ("tree", "forest", "boosted")
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # keep text as text, as journals require
    "svg.fonttype": "path",
    "svg.hashsalt": "tinybayes",  # reproducible files
}


def plot(
    source: Path | str,
    name: str,
    output: Path | str,
    *,
    model: str | None = None,
    variables: Sequence[str] = (),
    tree: int = 1,
    width: float = WIDTH,
) -> Path:
    """Draw a figure into a file.

    Parameters
    ----------
    source
        The directory of a search; for structures also a file of a network or of trees, for tables of a network.
    name
        ``"front"`` (error over flash, instructions as area; over parameters where programs are not priced),
        ``"bits"`` (error over bits of a parameter), ``"structure"`` (the graph of a network, or a decision tree) or
        ``"cpt"`` (tables as heat maps).
    output
        The file; its suffix is .svg, .pdf or .png.
    model
        The id of the model to draw; by default the one that the search chose if it can be drawn, or the best that can.
    variables
        Whose tables to draw; by default the first nine features.
    tree
        The number of the tree to draw, of models that have several.
    width
        Of the figure in inches.
    """
    path, output = Path(source), Path(output)
    if name not in FIGURES:
        raise error(f"one of {', '.join(FIGURES)}", repr(name), where="figure")
    if output.suffix.lower() not in SUFFIXES:
        raise error(f"a file named {', '.join('*' + s for s in SUFFIXES)}", output.name, where="output")
    if not 1 <= width <= 40:
        raise error("a width from 1 to 40 inches", width, where="width")
    with _matplotlib():
        if name in ("front", "bits"):
            front = read_front(path)
            # The figures draw the metric of the search, whatever it is.
            models = [m | {"validation_error": metric_value(m, front)} for m in front["models"]]
            models = [m for m in models if m["validation_error"] is not None]
            if not models:
                raise error("models with an error on validation rows", "none", where=str(path))
            metric = front["metric"]
            scale = 100.0 if metric["percent"] else 1.0
            figure = FIGURES[name](models, width, _text(metric["title"]) + " (%)" * metric["percent"], scale)
        elif name == "structure":
            shown = _structured(path, model)
            figure = draw_structure(shown, width) if isinstance(shown, BayesNet) else draw_tree(shown, tree - 1, width)
        else:
            figure = draw_tables(read_network(_file(path, model, NETWORKS)), width, variables)
        kind = output.suffix[1:].lower()
        nothing = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
        drawn = BytesIO()  # Matplotlib raises all sorts of errors where the disk is full
        figure.savefig(drawn, format=kind, dpi=300, bbox_inches="tight", metadata=nothing)
    with atomic_path(output) as temporary:
        temporary.write_bytes(drawn.getvalue())
    return output


def _matplotlib() -> AbstractContextManager[None]:
    """Load Matplotlib, which is optional, and return the context in which it draws in our style."""
    try:
        import matplotlib
    except ImportError as problem:
        remedy = "install it: pip install 'tinybayes[plot]'"
        raise error("Matplotlib for figures", "none installed", where="plot", remedy=remedy) from problem
    return matplotlib.rc_context(STYLE)


def _structured(path: Path, wanted: str | None) -> BayesNet | TreeEnsemble:
    """Read the network or the trees to draw: a file, or a model of a search."""
    file = _file(path, wanted, (*NETWORKS, *TREES))
    model = load(file)
    return model if isinstance(model, TreeEnsemble) else read_network(file)


def _file(path: Path, wanted: str | None, families: tuple[str, ...]) -> Path:
    """Find the file of a model to draw, by default the best one of these families."""
    if not path.is_dir():
        return path
    front = read_front(path)
    known = {m["id"]: m for m in front["models"] if m["file"] is not None}
    if wanted is None:
        models = [m for m in known.values() if m["family"] in families and metric_value(m, front) is not None]
        best = min(models, key=lambda m: metric_value(m, front) or 0.0, default=None)
        chosen = known.get(front["chosen"] or "")
        wanted = front["chosen"] if chosen and chosen["family"] in families else best["id"] if best else None
    if wanted is None or wanted not in known:
        names = ", ".join(list(known)[:12])
        raise error(f"the id of a saved model: {names}", repr(wanted), where="model")
    return model_path(path, known[wanted]["file"])


def _axes(width: float, height: float) -> tuple["Figure", Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def draw_front(models: list[dict[str, Any]], width: float, metric: str = "error (%)", scale: float = 100.0) -> "Figure":
    """Draw error over memory on logarithmic axes; the area of a mark grows with its work, the front is filled."""
    figure, axes = _axes(width, 0.66 * width)
    memory, work, words = _priced(models)
    log = np.log([max(1, m[work] or 0) for m in models])
    share = (log - log.min()) / max(float(np.ptp(log)), 1e-9)
    floor = _floor(models)
    for family in _families(models):
        colour, mark = LOOKS.get(family, ("#8b939e", "o"))
        for front in (False, True):
            chosen = [i for i, m in enumerate(models) if m["family"] == family and m["on_front"] == front]
            x = [max(1, models[i][memory]) for i in chosen]
            y = [scale * max(models[i]["validation_error"], floor) for i in chosen]
            face = {"facecolor": colour, "edgecolor": "black"} if front else {"facecolor": "none", "edgecolor": colour}
            line = {"linewidth": 0.4 if front else 0.8, "alpha": 1.0 if front else 0.6, "zorder": 3 if front else 2}
            axes.scatter(x, y, s=12 + 90 * share[chosen], marker=mark, **face, **line)
        axes.scatter([], [], s=24, marker=mark, facecolor=colour, edgecolor="black", linewidth=0.4, label=_name(family))
    x, y = _steps(models, floor, memory, scale)
    axes.step(x, y, where="post", color="0.5", linewidth=0.7, zorder=1)
    axes.set(xscale="log", yscale="log", xlabel=words, ylabel=f"validation {metric}")
    _finish(axes)
    return figure


def draw_bits(models: list[dict[str, Any]], width: float, metric: str = "error (%)", scale: float = 100.0) -> "Figure":
    """Draw the lowest error of each family over the bits of a parameter."""
    figure, axes = _axes(width, 0.6 * width)
    floor = _floor(models)
    for family in _families(models):
        best: dict[int, float] = {}
        for m in models:
            if m["family"] == family and m["parameters"]:
                bits = round(m["bits"] / m["parameters"])
                best[bits] = min(best.get(bits, np.inf), m["validation_error"])
        colour, mark = LOOKS.get(family, ("#8b939e", "o"))
        y = [scale * max(best[bits], floor) for bits in sorted(best)]
        edge = {"markeredgecolor": "black", "markeredgewidth": 0.4, "markersize": 5}
        axes.plot(sorted(best), y, color=colour, marker=mark, linewidth=1, label=_name(family), **edge)
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="bits of a parameter, on average", ylabel=f"least validation {metric}")
    axes.xaxis.set_major_formatter("{x:g}")
    _finish(axes)
    return figure


def draw_structure(net: BayesNet, width: float) -> "Figure":
    """Draw a network from left to right; filled features depend on the class, whose edges are not drawn."""
    target = len(net.variables) if net.target is not None else -1
    families = [[p for p in cpd.parents if p != target] for cpd in net.cpds[: len(net.variables)]]
    names = [variable.name for variable in net.variables]
    drawing = layout(families, names, aspect=1.3)
    figure, axes = _axes(width, float(np.clip(width * drawing.height / max(drawing.width, 1), 1, 3 * width)))
    size = min(7.0, 72 * width / max(drawing.width, 1) * 9)
    for node, family in enumerate(families):
        for parent in family:
            arrow = {"arrowstyle": "-|>", "lw": 0.1 * size, "color": "0.55", "shrinkA": size / 2, "shrinkB": size / 2}
            ends = [(drawing.x[node], drawing.y[node]), (drawing.x[parent], drawing.y[parent])]
            axes.annotate("", *ends, arrowprops=arrow | {"mutation_scale": size})
    on = [target < 0 or target in cpd.parents for cpd in net.cpds[: len(names)]]
    face = ["#0072b2" if known else "white" for known in on]
    axes.scatter(drawing.x, drawing.y, s=size**2 / 2, c=face, edgecolor="#0072b2", linewidth=0.12 * size, zorder=3)
    for x, y, name in zip(drawing.x, drawing.y, names, strict=True):
        short = name if len(name) <= 18 else f"{name[:17]}…"
        axes.text(x + 9, y - 7, _text(short), fontsize=size, va="bottom", zorder=4)
    axes.set_xlim(-12, max(drawing.width, 60))
    axes.set_ylim(drawing.height, -26)
    axes.axis("off")
    return figure


def draw_tree(model: TreeEnsemble, tree: int, width: float) -> "Figure":
    """Draw the upper part of a decision tree from left to right; of two branches the upper one is that of yes."""
    nodes = tree_nodes(model, tree)
    names = [node.short(24) for node in nodes]
    drawing = layout([[node.parent] if node.parent >= 0 else [] for node in nodes], names, aspect=1.3)
    figure, axes = _axes(width, float(np.clip(width * drawing.height / max(drawing.width, 1), 1, 3 * width)))
    size = min(7.0, 72 * width / max(drawing.width, 1) * 9)
    for x, y, node in zip(drawing.x, drawing.y, nodes, strict=True):
        if node.parent >= 0:
            ends = [drawing.x[node.parent], x], [drawing.y[node.parent], y]
            axes.plot(*ends, color="0.55", linewidth=0.1 * size, zorder=1)
    face = ["#e69f00" if node.is_leaf else "white" if node.is_cut else "#0072b2" for node in nodes]
    edge = ["#e69f00" if node.is_leaf else "#0072b2" for node in nodes]
    axes.scatter(drawing.x, drawing.y, s=size**2 / 2, c=face, edgecolor=edge, linewidth=0.12 * size, zorder=3)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.1 * size}  # lines do not cross the text
    for x, y, name in zip(drawing.x, drawing.y, names, strict=True):
        axes.text(x + 10, y, _text(name), fontsize=size, va="center", zorder=2, bbox=behind)
    axes.set_xlim(-12, max(drawing.width, 60))
    axes.set_ylim(drawing.height, -13)
    axes.axis("off")
    return figure


def draw_tables(net: BayesNet, width: float, names: Sequence[str] = ()) -> "Figure":
    """Draw tables as heat maps: states from left to right, assignments of the parents from top to bottom."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    known = [variable.name for variable in net.nodes]
    missing = [name for name in names if name not in known]
    if missing:
        raise error(f"variables of the network: {', '.join(known[:10])}", repr(missing[0]), where="variable")
    nodes = [known.index(name) for name in names] or list(range(min(9, len(net.variables)))) or [0]
    columns = min(3, len(nodes))
    rows = -(-len(nodes) // columns)
    figure = Figure(figsize=(width, 0.36 * width * rows * 3 / columns / 1.4), layout="constrained")
    for number, node in enumerate(nodes):
        cpd, variable = net.cpds[node], net.nodes[node]
        axes = figure.add_subplot(rows, columns, number + 1)
        axes.imshow(np.exp(cpd.log_parameters), vmin=0, vmax=1, cmap="cividis", aspect="auto")
        given = ", ".join(net.nodes[p].name for p in cpd.parents)
        axes.set_title(_text(f"{variable.name} | {given}" if given else variable.name), fontsize=7)
        one = len(cpd.parents) == 1 and cpd.tree is None and len(cpd.table) <= 12
        of_parent = [_text(str(s)) for s in net.nodes[cpd.parents[0]].states] if one else []
        states = [_text(str(s)) for s in variable.states] if variable.cardinality <= 6 else []
        axes.set_xticks(range(len(states)), states)
        axes.set_yticks(range(len(of_parent)), of_parent)
        axes.tick_params(labelsize=6, length=0, rotation=0)
        axes.spines[:].set_visible(False)
    scale = ScalarMappable(Normalize(0, 1), "cividis")
    bar = figure.colorbar(scale, ax=figure.axes, shrink=0.6, aspect=30, label="probability")
    bar.outline.set_linewidth(0.4)
    return figure


FIGURES: dict[str, Callable[..., "Figure"]] = {
    "front": draw_front,
    "bits": draw_bits,
    "structure": draw_structure,
    "cpt": draw_tables,
}


def _families(models: list[dict[str, Any]]) -> list[str]:
    known = list(LOOKS)
    return sorted({m["family"] for m in models}, key=lambda f: (known.index(f) if f in known else 99, f))


def _name(family: str) -> str:
    return _text(TITLES.get(family, family))


def _text(text: str) -> str:
    """Keep dollar signs from starting a formula."""
    return text.replace("$", r"\$")


def _floor(models: list[dict[str, Any]]) -> float:
    """Return the stand-in for an error of zero on a logarithmic axis: half of the smallest nonzero error."""
    return 0.5 * min((m["validation_error"] for m in models if m["validation_error"] > 0), default=0.002)


def _priced(models: list[dict[str, Any]]) -> tuple[str, str, str]:
    """Return the fields of memory and work, and the title of an axis: those of programs, where all have them."""
    if all(m["flash"] is not None for m in models):
        return "flash", "instructions", "flash of the program (bytes)"
    return "bits", "operations", "memory of the parameters (bits)"


def _steps(models: list[dict[str, Any]], floor: float, memory: str, scale: float) -> tuple[list[int], list[float]]:
    x: list[int] = []
    y: list[float] = []
    for m in sorted(models, key=lambda m: (m[memory], m["validation_error"])):
        height = scale * max(m["validation_error"], floor)
        if not y or height < y[-1]:
            x.append(max(1, m[memory]))
            y.append(height)
    return x, y


def _finish(axes: Any) -> None:
    """Write values as plain numbers, and add grid and legend."""
    from matplotlib.ticker import LogLocator

    axes.yaxis.set_major_locator(LogLocator(subs=[1.0, 2.0, 5.0]))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.grid(linewidth=0.3, color="0.9")
    axes.set_axisbelow(True)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
