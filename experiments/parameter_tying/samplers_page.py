"""The section of the page on parameter tying that shows Figure 2: samplers on tied models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

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
    WIDTH,
    add_legend,
    save,
)
from experiments.store import Record

LINES = {
    "tied": (BLUE, "o"),
    "tied, drawn": (SKY, "D"),
    "tied, plain": (GREEN, "^"),
    "mcsat": (RED, "P"),
    "gibbs": (ORANGE, "s"),
    "lw": (PINK, "v"),
    "forward": (GREY, "X"),
}
FIGURE2 = """
## Figure 2: samplers on tied models

![Mean Hellinger distance to the exact marginals over the number of levels](figures/tying_figure2.svg)

Mean Hellinger distance between the estimated and exact marginals of the sampled model: {seconds:g} s on one thread,
mean of {runs} runs (the paper: 500 s, 10 runs), zeros known, no evidence. *tied* is the default, which is exact if
its tables fit the time limit (such points are not drawn). *tied, drawn* always samples; *tied, plain* samples without
look-ahead. lw (likelihood weighting) and forward sampling are baselines that the paper does not have. Algorithm 1 as
printed is not drawn: the share of its samples with a nonzero weight is at most e^{acceptance:.0f}.

"""
LONG = """
### Untied models, smoothed zeros, a minute a method

One count was added to every entry, zeros included; {seconds:g} s on one thread, mean of {runs} runs. The machine was
busy: *worked* is the smallest processor time of a run. Distances are those to the exact marginals of the sampled model.

| network | model | tied, drawn | MC-SAT | Gibbs | lw | worked |
|---|---|---:|---:|---:|---:|---:|
"""


def long_runs(report: Record) -> str:
    """Return the table of the runs of a minute; which of the models is sampled stands in a row."""
    plan, lines = report["plan"], []
    done = [r for r in report["results"] if "failed" not in r]
    for network, model in dict.fromkeys((r["network"], r["model"]) for r in done):
        own = [r for r in done if (r["network"], r["model"]) == (network, model)]
        cells = []
        for method in plan["methods"]:
            distances = [r["hellinger"] for r in own if r["method"] == method]
            cells.append(f"{sum(distances) / len(distances):.2g}" if distances else "")
        levels = own[0]["levels"]
        name = model if levels is None else f"{model}, {levels} levels"
        lines.append(f"| {network} | {name} | {' | '.join(cells)} | {min(r['cpu'] for r in own):.0f} s |\n")
    return LONG.format(seconds=plan["seconds"], runs=plan["runs"]) + "".join(lines)


def samplers(report: Record, docs: Path) -> str:
    """Draw Figure 2 and compare it with what the paper says."""
    results = [r for r in report["results"] if "failed" not in r]
    draw(results, docs / "figures" / "tying_figure2.svg")
    accepted = max(r["log_acceptance"] for r in report["results"])
    text = FIGURE2.format(**report["settings"], acceptance=accepted)
    text += _baselines(results)
    exact = sorted({f"{r['network']} ({r['levels']} levels)" for r in results if r["method"] == "tied" and r["exact"]})
    if exact:
        text += f"\nThe default answered exactly on {', '.join(exact)}.\n"
    failed = [r for r in report["results"] if "failed" in r]
    for r in failed[:5]:
        text += f"\n{r['method']} gave no answer on {r['network']}, {r['levels']} levels, {r['model']}: {r['failed']}\n"
    return text


def _baselines(results: Sequence[Record]) -> str:
    """Say how forward sampling does, which needs no ties."""
    distances: dict[tuple[Any, ...], dict[str, float]] = {}
    for r in results:
        distances.setdefault((r["network"], r["levels"], r["model"]), {})[r["method"]] = r["hellinger"]
    both = [f for f in distances.values() if {"forward", "tied, drawn"} <= set(f)]
    ahead = sum(f["forward"] <= f["tied, drawn"] for f in both)
    return (
        "- Forward sampling, which the paper leaves out and which knows nothing of ties, is at least as good as drawing"
        f" on {ahead} of {len(both)} models: nothing is observed.\n"
        if both
        else ""
    )


def draw(results: Sequence[Record], path: Path) -> None:
    """Draw a row of panels for each network: quantised, relearned."""
    names = list(dict.fromkeys(r["network"] for r in results))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.7 * len(names)), layout="constrained")
        panels = figure.subplots(len(names), 2, squeeze=False)
        for row, name in zip(panels, names, strict=True):
            for axes, kind in zip(row, ("quantised", "relearned"), strict=True):
                for method, (colour, marker) in LINES.items():
                    own = [r for r in results if (r["network"], r["method"]) == (name, method)]
                    own = [r for r in own if r["model"].startswith(kind) and not r["exact"]]
                    if not own:
                        continue
                    own.sort(key=lambda r: r["levels"])
                    x, y, bars = ([r[field] for r in own] for field in ("levels", "hellinger", "spread"))
                    look = {"label": method, "color": colour, "marker": marker, "markersize": 3.5, "linewidth": 1.1}
                    axes.errorbar(x, y, bars, **look)
                axes.set_xscale("log", base=2)
                axes.set_yscale("log")
                axes.set_title(f"{name}, {kind}", color=BLACK)
                axes.set_xlabel("levels")
                axes.set_ylabel("Hellinger distance")
        add_legend(figure, panels.flat, columns=4)
        save(figure, path)
