"""The pictures of networks under budgets: figures 3, 4 and 7 of resource_efficient_bn_classifiers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from nets_records import Chosen, Model, Table, front
from paper import DATA
from plots import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, STYLE, WIDTH

LOOKS = {
    "naive": ("naive Bayes", BLACK, "o", "-"),
    "chow-liu": ("Chow-Liu", GREY, "s", "-"),
    "dense relu": ("dense, ReLU", BLUE, "D", "-"),
    "dense sign": ("dense, sign", SKY, "D", "--"),
    "one-hot": ("dense, one-hot inputs", GREEN, "^", "-"),
    "conv relu": ("CNN, ReLU", RED, "v", "-"),
    "conv sign": ("CNN, sign", ORANGE, "v", "--"),
    "logistic regression": ("logistic regression, float32", PINK, "", ":"),
}
LARGEST = 220.0  # points squared, of the largest disk of a panel


def over_budgets(table: Table, naive: Table, path: Path, *, operations: bool) -> None:
    """Draw test errors over budgets: multiples of the bits of 1-bit naive Bayes (figure 3), or of operations (4)."""
    shown = [data for data in DATA if any(key[0] == data for key in table)]
    with mpl.rc_context({**STYLE, "lines.markersize": 4.5}):
        lines = -(-len(shown) // 2)
        figure = Figure(figsize=(WIDTH, 3.0 * lines + 0.5), layout="constrained")
        panels = figure.subplots(lines, 2, squeeze=False).ravel().tolist()
        for spare in panels[len(shown) :]:
            spare.remove()
        for data, axes in zip(shown, panels, strict=False):
            for row in LOOKS:
                best = naive.get((data, row), {}) if row == "naive" else table.get((data, row), {})
                _line(axes, row, best, level=row == "logistic regression" or (operations and row == "naive"))
            axes.set(title=data, ylabel="test error [%], log scale")
            if operations:
                axes.set_xscale("log", base=2)
                axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}x"))
            axes.set_xlabel("operations, multiples of naive Bayes" if operations else "bits of an entry of naive Bayes")
            _log_errors(axes)
        _legend(figure, panels[: len(shown)])
        _save(figure, path)


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
        _legend(figure, panels.ravel().tolist())
        _save(figure, path)


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
    _log_errors(axes)


def _log_errors(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    found = {}
    for axes in panels:
        found |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    names = [look[0] for look in LOOKS.values() if look[0] in found]
    figure.legend([found[name] for name in names], names, loc="outside lower center", ncols=4, fontsize=8.5)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
