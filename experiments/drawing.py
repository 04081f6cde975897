"""Style, panels, legends and files of all pictures: SVG that depends on the results alone."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Okabe and Ito's colours, told apart by colour-blind readers too; yellow is left out, it is lost on white.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PINK, GREY = "#0072B2", "#D55E00", "#CC79A7", "#767676"
PURPLE = "#4B2E83"  # not one of theirs: dark, so that lightness tells it from blue
STYLE = {
    "figure.dpi": 100,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib, so the outlines are the same everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "tinybayes",
}
WIDTH = 8.4


def make_panels(count: int, legend_height: float = 0.0, height: float = 3.0) -> tuple[Figure, list[Axes]]:
    """Make panels in two columns, with room below them for a legend; heights are in inches."""
    lines = -(-count // 2)
    figure = Figure(figsize=(WIDTH, height * lines + legend_height), layout="constrained")
    panels = figure.subplots(lines, 2, squeeze=False).ravel().tolist()
    for spare in panels[count:]:
        spare.remove()
    return figure, panels[:count]


def add_legend(
    figure: Figure, axes: Iterable[Axes], *, columns: int, names: Iterable[str] | None = None, size: float | None = None
) -> None:
    """Put one legend for all panels below them, in the order of the names if there are any."""
    handles: dict[str, Any] = {}
    for panel in axes:
        handles |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    shown = list(handles) if names is None else [name for name in names if name in handles]
    figure.legend([handles[name] for name in shown], shown, loc="outside lower center", ncols=columns, fontsize=size)


def log_errors(axes: Axes) -> None:
    """Give errors a log scale with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return pairs as two lists, for plotting."""
    return [x for x, _ in pairs], [y for _, y in pairs]


def save(figure: Figure, path: Path) -> None:
    """Write a picture without date and version: equal pictures are equal files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
