"""The pictures of *Differentiable TAN structure learning*: Figures 2 and 3."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from experiments.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    STYLE,
    add_legend,
    columns,
    make_panels,
    save,
)
from experiments.records import DATA, Point, label, order

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


def by_lambda(points: Sequence[Point], path: Path) -> None:
    """Figure 2: a panel for each data set, a colour for each structure."""
    shown = [data for data in DATA if any(p.sweep.data == data for p in points)]
    with mpl.rc_context(STYLE):
        rows = sorted({p.row for p in points}, key=lambda row: order("", row))
        figure, panels = make_panels(len(shown), 0.22 * -(-len(rows) // 3))
        for data, axes in zip(shown, panels, strict=True):
            for row in rows:
                colour, marker = STRUCTURES[row.partition(",")[0]]
                inside = [p for p in points if (p.sweep.data, p.row) == (data, row)]
                _cloud(axes, inside, label(row), colour, marker, hollow="," in row)
            axes.set_title(data)
        add_legend(figure, panels, columns=3, names=[label(row) for row in rows], size=8.5)
        save(figure, path)


def orderings_and_candidates(points: Sequence[Point], path: Path) -> None:
    """Figure 3: mnist by ordering and by K, satimage by ordering, letter by subset and K."""
    with mpl.rc_context(STYLE):
        figure, panels = make_panels(4)
        for axes, (title, series) in zip(panels, figure3_series(points).items(), strict=True):
            colours = sorted({name.split(", ")[0] for name in series})
            for name, inside in series.items():
                first, _, k = name.partition(", ")
                _cloud(axes, inside, first, *SERIES[colours.index(first) % len(SERIES)], hollow=k == "K = 2")
            axes.set_title(title)
            _legend_inside(axes)
        save(figure, path)


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
    series: dict[str, dict[str, list[Point]]] = {}
    for title, (data, row, name) in panels.items():
        inside = [p for p in points if (p.sweep.data, p.row) == (data, row)]
        series[title] = {key: [p for p in inside if name(p) == key] for key in sorted({name(p) for p in inside})}
    return series


def _cloud(axes: Axes, points: Sequence[Point], name: str, colour: str, marker: str, *, hollow: bool) -> None:
    """Draw runs as points over log10 lambda, and the lower hull as a line."""
    if not points:
        return
    pairs = [(math.log10(p.setting["lam"]), p.error) for p in points]
    look: dict[str, Any] = {"mfc": "none", "mew": 0.8} if hollow else {"mew": 0}
    axes.plot(*columns(pairs), marker, ms=4, color=colour, alpha=0.55, **look)
    style = "--" if hollow else "-"
    axes.plot(*columns(lower_hull(pairs)), style, color=colour, lw=1.5, zorder=3)
    axes.plot([], [], style, marker=marker, ms=4.5, color=colour, lw=1.5, mfc=look.get("mfc", colour), label=name)
    axes.set_xlabel("$\\log_{10}\\ \\lambda$")
    axes.set_ylabel("test error [%]")
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def _legend_inside(axes: Axes) -> None:
    """Put a legend above the points, in room made for it; hollow and filled signs of a series share an entry."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))
    axes.legend(handles.values(), handles.keys(), loc="upper center", ncols=3, fontsize=8, handlelength=1.6)
