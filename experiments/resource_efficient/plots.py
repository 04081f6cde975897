"""The pictures of *Resource-efficient classifiers*: Figures 3 to 7."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from experiments.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    PURPLE,
    RED,
    SKY,
    STYLE,
    WIDTH,
    add_legend,
    columns,
    log_errors,
    make_panels,
    save,
)
from experiments.records import DATA, Point, label
from experiments.resource_efficient.nets import Chosen, Model, Table, front

LOOKS = {
    "naive": ("naive Bayes", BLACK, "o", "-"),
    "chow-liu": ("Chow-Liu", GREY, "s", "-"),
    "subset": ("TAN Subset", PURPLE, "s", "-"),
    "dense relu": ("dense, ReLU", BLUE, "D", "-"),
    "dense sign": ("dense, sign", SKY, "D", "--"),
    "one-hot": ("dense, one-hot inputs", GREEN, "^", "-"),
    "conv relu": ("CNN, ReLU", RED, "v", "-"),
    "conv sign": ("CNN, sign", ORANGE, "v", "--"),
    "logistic regression": ("logistic regression, float32", PINK, "", ":"),
}
NAMES = [look[0] for look in LOOKS.values()]
LARGEST = 220.0  # points squared, of the largest disk of a panel
Errors = Mapping[tuple[str, str], Mapping[int, float]]  # by data and structure, then by bits


def pareto(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other one beats in size and in error, by size."""
    best: list[tuple[float, float]] = []
    for size, error in sorted(points):
        if not best or error < best[-1][1]:
            best.append((size, error))
    return best


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
            pairs = [(p.parameters / naive[data], p.error) for p in points if p.sweep.data == data]
            best = pareto(pairs)
            axes.plot(*columns(pairs), "o", ms=3.5, color=GREY, alpha=0.45, mew=0, label="all runs")
            axes.plot(
                *columns(best), "o-", ds="steps-post", ms=4.5, lw=1.3, color=BLUE, label="no smaller one is as good"
            )
            axes.set_title(f"{title} {data}")
            axes.set_xlabel("size, multiples of naive Bayes")
            axes.set_ylabel("test error [%]")
            if data == "satimage":
                axes.legend(fontsize=8)
        save(figure, path)


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
    looks = {"naive": (BLUE, "o"), "subset": (RED, "s")}
    through, after, floating = "trained through fixed point", "rounded after training", "float32"
    with mpl.rc_context({**STYLE, "lines.linewidth": 1.5, "lines.markersize": 4.5}):
        figure, panels = make_panels(len(shown), 0.44)
        for data, axes in zip(shown, panels, strict=True):
            for structure, (colour, marker) in looks.items():
                key, name = (data, structure), label(structure)
                for of, what, look in ((trained, through, {"ls": "-"}), (rounded, after, {"ls": "--", "mfc": "white"})):
                    if key in of:
                        values = sorted(of[key].items())
                        axes.plot(*columns(values), marker=marker, color=colour, label=f"{name}, {what}", **look)
                if key in trained and key in floats:
                    axes.axhline(floats[key], color=colour, lw=1, ls=":", label=f"{name}, {floating}")
            axes.set(title=data, xlabel="bits of an entry", ylabel="test error [%], log scale", xticks=range(1, 9))
            log_errors(axes)
        names = [f"{label(structure)}, {what}" for what in (through, after, floating) for structure in looks]
        add_legend(figure, panels, columns=3, names=names, size=8.5)
        save(figure, path)


def over_budgets(table: Table, naive: Table, path: Path, *, operations: bool) -> None:
    """Draw test errors over budgets: multiples of the bits of 1-bit naive Bayes (figure 3), or of operations (4)."""
    shown = [data for data in DATA if any(key[0] == data for key in table)]
    with mpl.rc_context({**STYLE, "lines.markersize": 4.5}):
        figure, panels = make_panels(len(shown), 0.5)
        for data, axes in zip(shown, panels, strict=True):
            for row in LOOKS:
                best = naive.get((data, row), {}) if row == "naive" else table.get((data, row), {})
                _line(axes, row, best, level=row == "logistic regression" or (operations and row == "naive"))
            axes.set(title=data, ylabel="test error [%], log scale")
            if operations:
                axes.set_xscale("log", base=2)
                axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}x"))
            axes.set_xlabel("operations, multiples of naive Bayes" if operations else "bits of an entry of naive Bayes")
            log_errors(axes)
        add_legend(figure, panels, columns=4, names=NAMES, size=8.5)
        save(figure, path)


def _line(axes: Axes, row: str, best: Mapping[int, Chosen], *, level: bool) -> None:
    if not best:
        return
    name, colour, marker, style = LOOKS[row]
    if level:  # one number, whatever the budget
        axes.axhline(min(c.test for c in best.values()), color=colour, ls=":", lw=1.4, label=name)
        return
    budgets = sorted(best)
    errors = [best[b].test for b in budgets]
    axes.plot(budgets, errors, color=colour, marker=marker, ls=style, lw=1.4, label=name)


def fronts(models: Sequence[Model], path: Path) -> None:
    """Figure 7: the front in three prices; left over operations with bits as area, right the other way round."""
    shown = [data for data in DATA if any(m.data == data for m in models)]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.8 * len(shown) + 0.5), layout="constrained")
        panels = figure.subplots(len(shown), 2, squeeze=False)
        for data, (left, right) in zip(shown, panels, strict=True):
            best = front([m for m in models if m.data == data])
            _disks(left, [(m.operations, m.error, m.bits, m.family) for m in best])
            _disks(right, [(m.bits / 1000, m.error, m.operations, m.family) for m in best])
            left.set(title=f"{data}: area = bits", xlabel="operations a prediction", ylabel="test error [%], log scale")
            right.set(title=f"{data}: area = operations", xlabel="kilobits of parameters")
        add_legend(figure, panels.flat, columns=4, names=NAMES, size=8.5)
        save(figure, path)


def _disks(axes: Axes, disks: Sequence[tuple[float, float, float, str]]) -> None:
    """Draw disks (x, y, area, family), large ones first."""
    most = max(area for _, _, area, _ in disks)
    for x, y, area, family in sorted(disks, key=lambda disk: -disk[2]):
        size = max(6.0, LARGEST * area / most)
        axes.scatter([x], [y], s=size, color=LOOKS[family][1], alpha=0.6, linewidths=0.5, edgecolors="white")
    for family in dict.fromkeys(family for *_, family in disks):
        axes.scatter([], [], s=30, color=LOOKS[family][1], label=LOOKS[family][0])
    axes.set_xscale("log")
    wide = max(x for x, *_ in disks) > 30 * min(x for x, *_ in disks)
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    log_errors(axes)
