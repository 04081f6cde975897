"""The pictures of the results page: SVG that depends on the results alone, so that it can be committed and compared."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from paper import DATA, label, place
from records import Point

# Okabe and Ito's colours, told apart by colour-blind readers too; yellow is left out, it is lost on white.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PINK, GREY = "#0072B2", "#D55E00", "#CC79A7", "#767676"
SERIES = tuple(zip((BLUE, ORANGE, GREEN, PINK, BLACK, SKY), "os^Dvp", strict=True))
STRUCTURES = {
    "naive": (BLACK, "o"),
    "chow-liu": (ORANGE, "s"),
    "random": (SKY, "^"),
    "subset": (BLUE, "D"),
    "all": (GREEN, "v"),
    "heuristic": (PINK, "p"),
    "order-free": (RED, "P"),
    "pseudo": (GREY, "X"),
}
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
Errors = Mapping[tuple[str, str], Mapping[int, float]]  # by data and structure, then by bits


def lower_hull(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the lower part of the convex hull, from left to right: no point lies below it."""
    hull: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if hull and hull[-1][0] == x:
            continue  # of points above each other the lowest came first
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if (c - a) * (y - b) > (d - b) * (x - a):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def pareto(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other one beats in size and in error, by size."""
    best: list[tuple[float, float]] = []
    for size, error in sorted(points):
        if not best or error < best[-1][1]:
            best.append((size, error))
    return best


def by_lambda(points: Sequence[Point], path: Path) -> None:
    """Figure 2: a panel for each data set, a colour for each structure."""
    shown = [data for data in DATA if any(p.sweep.data == data for p in points)]
    with mpl.rc_context(STYLE):
        rows = sorted({p.row for p in points}, key=lambda row: place("", row))
        figure, panels = _panels(len(shown), rows_of_legend=-(-len(rows) // 3))
        for data, axes in zip(shown, panels, strict=True):
            for row in rows:
                colour, marker = STRUCTURES[row.partition(",")[0]]
                inside = [p for p in points if (p.sweep.data, p.row) == (data, row)]
                _cloud(axes, inside, label(row), colour, marker, hollow="," in row)
            axes.set_title(data)
        _legend(figure, panels, [label(row) for row in rows], columns=3)
        _save(figure, path)


def orderings_and_candidates(points: Sequence[Point], path: Path) -> None:
    """Figure 3: mnist by ordering and by K, satimage by ordering, letter by subset and K."""
    with mpl.rc_context(STYLE):
        figure, panels = _panels(4)
        for axes, (title, series) in zip(panels, figure3_series(points).items(), strict=True):
            colours = sorted({name.split(", ")[0] for name in series})
            for name, inside in series.items():
                first, _, k = name.partition(", ")
                _cloud(axes, inside, first, *SERIES[colours.index(first) % len(SERIES)], hollow=k == "K = 2")
            axes.set_title(title)
            _legend_inside(axes)
        _save(figure, path)


def figure3_series(points: Sequence[Point]) -> dict[str, dict[str, list[Point]]]:
    """Return the series of each panel of Figure 3 by their names."""
    by_letter, by_number, by_subset, by_k = (
        lambda p: f"ordering {'ABC'[p.setting['ordering'] % 3]}",
        lambda p: f"ordering {p.setting['ordering'] + 1}",
        lambda p: f"subset {p.setting['subset'] + 1}, K = {p.sweep.k}",
        lambda p: f"K = {p.sweep.k}",
    )
    panels: dict[str, tuple[str, str, Callable[[Point], str]]] = {
        "(a) mnist, TAN Heuristic, by ordering": ("mnist", "heuristic", by_letter),
        "(b) the same, by K": ("mnist", "heuristic", by_k),
        "(c) satimage, TAN Subset, by ordering": ("satimage", "subset", by_number),
        "(d) letter, by subset; K = 2 dashed, 8 solid": ("letter", "subset", by_subset),
    }
    found: dict[str, dict[str, list[Point]]] = {}
    for title, (data, row, name) in panels.items():
        inside = [p for p in points if (p.sweep.data, p.row) == (data, row)]
        found[title] = {key: [p for p in inside if name(p) == key] for key in sorted({name(p) for p in inside})}
    return found


def sizes(points: Sequence[Point], naive: Mapping[str, float], path: Path) -> None:
    """Figure 5: error and size over the price of size on letter, size against error elsewhere."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 6.2), layout="constrained")
        grid = figure.add_gridspec(4, 2)
        top = figure.add_subplot(grid[0, 0])
        below = figure.add_subplot(grid[1, 0], sharex=top)
        _over_price(top, below, [p for p in points if p.sweep.data == "letter"], naive)
        for title, data, cell in (
            ("(b)", "satimage", grid[:2, 1]),
            ("(c)", "usps", grid[2:, 0]),
            ("(d)", "mnist", grid[2:, 1]),
        ):
            axes = figure.add_subplot(cell)
            found = [(p.parameters / naive[data], p.error) for p in points if p.sweep.data == data]
            best = pareto(found)
            axes.plot(*_columns(found), "o", ms=3.5, color=GREY, alpha=0.45, mew=0, label="all runs")
            axes.plot(
                *_columns(best), "o-", ds="steps-post", ms=4.5, lw=1.3, color=BLUE, label="no smaller one is as good"
            )
            axes.set_title(f"{title} {data}")
            axes.set_xlabel("size, multiples of naive Bayes")
            axes.set_ylabel("test error [%]")
            if data == "satimage":
                axes.legend(fontsize=8)
        _save(figure, path)


def _over_price(top: Axes, below: Axes, points: Sequence[Point], naive: Mapping[str, float]) -> None:
    values: dict[float, list[Point]] = {}
    for point in points:
        values.setdefault(point.setting["size_penalty"], []).append(point)
    prices = sorted(values)
    for axes, name, colour, of in (
        (top, "test error [%]", BLUE, lambda p: p.error),
        (below, "size (NB = 1)", RED, lambda p: p.parameters / naive["letter"]),
    ):
        axes.plot(
            [p.setting["size_penalty"] for p in points],
            [of(p) for p in points],
            "o",
            ms=3,
            color=colour,
            alpha=0.5,
            mew=0,
        )
        axes.plot(prices, [sum(map(of, values[x])) / len(values[x]) for x in prices], color=colour, lw=1.4)
        axes.set_xscale("log")
        axes.set_ylabel(name)
    top.set_title("(a) letter")
    top.tick_params(labelbottom=False)
    below.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    below.set_xlabel("price of size $\\lambda_{MS}$")


def bits(trained: Errors, rounded: Errors, floats: Mapping[tuple[str, str], float], path: Path) -> None:
    """Figure 6: error over bits, trained through fixed point, rounded afterwards, and in floats."""
    shown = [data for data in DATA if any(key[0] == data for key in trained)]
    looks = {"naive": (BLUE, "o"), "chow-liu": (RED, "s")}
    through, after, floating = "trained through fixed point", "rounded after training", "float32"
    with mpl.rc_context({**STYLE, "lines.linewidth": 1.5, "lines.markersize": 4.5}):
        figure, panels = _panels(len(shown), rows_of_legend=2)
        for data, axes in zip(shown, panels, strict=True):
            for structure, (colour, marker) in looks.items():
                key, name = (data, structure), label(structure)
                for of, what, look in ((trained, through, {"ls": "-"}), (rounded, after, {"ls": "--", "mfc": "white"})):
                    if key in of:
                        values = sorted(of[key].items())
                        axes.plot(*_columns(values), marker=marker, color=colour, label=f"{name}, {what}", **look)
                if key in trained and key in floats:
                    axes.axhline(floats[key], color=colour, lw=1, ls=":", label=f"{name}, {floating}")
            axes.set(title=data, xlabel="bits of an entry", ylabel="test error [%], log scale", xticks=range(1, 9))
            _log_errors(axes)
        names = [f"{label(structure)}, {what}" for what in (through, after, floating) for structure in looks]
        _legend(figure, panels, names, columns=3)
        _save(figure, path)


def _log_errors(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _panels(count: int, rows_of_legend: int = 0) -> tuple[Figure, list[Axes]]:
    lines = -(-count // 2)
    figure = Figure(figsize=(WIDTH, 3.0 * lines + 0.22 * rows_of_legend), layout="constrained")
    panels = figure.subplots(lines, 2, squeeze=False).ravel().tolist()
    for spare in panels[count:]:
        spare.remove()
    return figure, panels[:count]


def _cloud(axes: Axes, points: Sequence[Point], name: str, colour: str, marker: str, *, hollow: bool) -> None:
    """Draw runs as points over log10 lambda, and the lower hull as a line."""
    if not points:
        return
    places = [(math.log10(p.setting["lam"]), p.error) for p in points]
    look: dict[str, Any] = {"mfc": "none", "mew": 0.8} if hollow else {"mew": 0}
    axes.plot(*_columns(places), marker, ms=4, color=colour, alpha=0.55, **look)
    style = "--" if hollow else "-"
    axes.plot(*_columns(lower_hull(places)), style, color=colour, lw=1.5, zorder=3)
    axes.plot([], [], style, marker=marker, ms=4.5, color=colour, lw=1.5, mfc=look.get("mfc", colour), label=name)
    axes.set_xlabel("$\\log_{10}\\ \\lambda$")
    axes.set_ylabel("test error [%]")
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def _legend(figure: Figure, panels: Sequence[Axes], names: Sequence[str], columns: int) -> None:
    """Put one legend for all panels below them, in the order of the names."""
    found: dict[str, Any] = {}
    for axes in panels:
        found |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    shown = [name for name in names if name in found]
    handles = [found[name] for name in shown]
    figure.legend(handles, shown, loc="outside lower center", ncols=columns, fontsize=8.5)


def _legend_inside(axes: Axes) -> None:
    """Put a legend above the points, in room made for it; hollow and filled signs of a series share an entry."""
    found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))
    axes.legend(found.values(), found.keys(), loc="upper center", ncols=3, fontsize=8, handlelength=1.6)


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata)
