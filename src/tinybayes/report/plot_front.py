"""Figures of a search, drawn with Matplotlib: the front, and error over bits."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes.report.plot_style import INK, LOOKS, UNKNOWN, drawn_text, log_axis, new_axes
from tinybayes.search.titles import TITLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST, MOST = 12.0, 90.0  # areas of marks, in square points
LONGEST = 24  # characters of the name of the chosen model


def draw_front(
    models: list[dict[str, Any]],
    width: float,
    metric: str = "error (%)",
    scale: float = 100.0,
    *,
    budget: dict[str, Any] | None = None,
    chosen: str | None = None,
    ink: str = INK,
) -> "Figure":
    """Draw error over memory on logarithmic axes; the area of a mark grows with its work, the front is filled.

    The budget is a dashed line, the chosen model has a ring, and keys say what marks and areas mean.
    """
    figure, axes = new_axes(width, 0.66 * width)
    memory, work, words, unit = _priced(models)
    known = [max(1.0, m[work]) for m in models if m[work] is not None] or [1.0]
    low, high = min(known), max(known)
    counts = [low if m[work] is None else max(1.0, m[work]) for m in models]
    floor = _floor(models)

    def area(count: float) -> float:
        share = np.log(count / low) / np.log(high / low) if high > low else 0.3
        return LEAST + MOST * float(share)

    def place(model: dict[str, Any]) -> tuple[float, float]:
        return max(1, model[memory]) / unit, scale * max(model["validation_error"], floor)

    for family in _families(models):
        colour, mark = LOOKS.get(family, UNKNOWN)
        for front in (False, True):
            own = [i for i, m in enumerate(models) if m["family"] == family and m["on_front"] == front]
            x, y = zip(*(place(models[i]) for i in own), strict=True) if own else ((), ())
            face = {"facecolor": colour, "edgecolor": ink} if front else {"facecolor": "none", "edgecolor": colour}
            line = {"linewidth": 0.4 if front else 0.8, "alpha": 1.0 if front else 0.6, "zorder": 3 if front else 2}
            axes.scatter(x, y, s=[area(counts[i]) for i in own], marker=mark, **face, **line)
        axes.scatter([], [], s=24, marker=mark, facecolor=colour, edgecolor=ink, linewidth=0.4, label=_name(family))
    steps = _steps([place(model) for model in models])
    axes.step(*steps, where="post", color="0.5", linewidth=0.7, zorder=1)
    limit = (budget or {}).get(memory)
    if limit is not None:
        axes.axvline(
            limit / unit, color=LOOKS["tan"][0], linewidth=0.8, linestyle=(0, (4, 3)), zorder=1, label="budget"
        )
    for model, count in zip(models, counts, strict=True):
        if model["id"] == chosen:
            _ring(axes, model, place(model), area(count))
    axes.set(xscale="log", yscale="log", xlabel=words, ylabel=f"validation {metric}")
    for axis in (axes.xaxis, axes.yaxis):
        log_axis(axis)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    if high > low:
        _size_key(figure, axes, low, high, area, work, ink)
    return figure


def _ring(axes: Any, model: dict[str, Any], place: tuple[float, float], size: float) -> None:
    """Mark the chosen model with a ring, which the legend names: names would cover marks."""
    name = model["label"].rsplit(", ", 1)[0]
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    look = {"facecolor": "none", "edgecolor": LOOKS["tan"][0], "linewidth": 1.2, "zorder": 4}
    axes.scatter(*([at] for at in place), s=2.6 * size + 60, **look)
    axes.scatter([], [], s=60, label=f"chosen:\n{drawn_text(short)}", **look)


def _size_key(figure: "Figure", axes: Any, low: float, high: float, area: Any, work: str, ink: str) -> None:
    """Say what the areas of marks mean, by the least, a middle and the largest work."""
    shown = [low, float(np.sqrt(low * high)), high]
    marks = [
        axes.scatter([], [], s=area(count), marker="o", facecolor="none", edgecolor=ink, linewidth=0.6)
        for count in shown
    ]
    names = [f"{float(f'{count:.2g}'):,.0f}" for count in shown]
    figure.legend(marks, names, title=work, loc="outside right lower", title_fontsize=7, fontsize=7)


def draw_bits(
    models: list[dict[str, Any]], width: float, metric: str = "error (%)", scale: float = 100.0, *, ink: str = INK
) -> "Figure":
    """Draw the lowest error of each family over the bits of a parameter."""
    figure, axes = new_axes(width, 0.6 * width)
    floor = _floor(models)
    for family in _families(models):
        best: dict[int, float] = {}
        for m in models:
            if m["family"] == family and m["parameters"]:
                bits = round(m["bits"] / m["parameters"])
                best[bits] = min(best.get(bits, np.inf), m["validation_error"])
        colour, mark = LOOKS.get(family, UNKNOWN)
        y = [scale * max(best[bits], floor) for bits in sorted(best)]
        edge = {"markeredgecolor": ink, "markeredgewidth": 0.4, "markersize": 5}
        axes.plot(sorted(best), y, color=colour, marker=mark, linewidth=1, label=_name(family), **edge)
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="bits of a parameter, on average", ylabel=f"least validation {metric}")
    axes.xaxis.set_major_formatter("{x:g}")
    log_axis(axes.yaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _families(models: list[dict[str, Any]]) -> list[str]:
    known = list(LOOKS)
    return sorted({m["family"] for m in models}, key=lambda f: (known.index(f) if f in known else 99, f))


def _name(family: str) -> str:
    return drawn_text(TITLES.get(family, family))


def _floor(models: list[dict[str, Any]]) -> float:
    """Return the stand-in for an error of zero on a logarithmic axis: half of the smallest nonzero error."""
    return 0.5 * min((m["validation_error"] for m in models if m["validation_error"] > 0), default=0.002)


def _priced(models: list[dict[str, Any]]) -> tuple[str, str, str, int]:
    """Return the fields of memory and work, the title of an axis and its unit: of programs, where all have them."""
    if all(m["flash"] is not None for m in models):
        return "flash", "instructions", "flash of the program (bytes)", 1
    return "bits", "operations", "memory of the parameters (bytes)", 8


def _steps(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return the lower border of points: the least height up to each place."""
    x: list[float] = []
    y: list[float] = []
    for at, height in sorted(points):
        if not y or height < y[-1]:
            x.append(at)
            y.append(height)
    return x, y
