"""The part of docs/price.md that `price.py` writes: errors, a plot, and programs, priced and measured."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("agg")
mpl.rcParams["svg.hashsalt"] = "price"  # the same file for the same figures
from matplotlib import pyplot as plt  # noqa: E402

BEGIN, END = "<!-- price: written by benchmarks/price.py -->\n", "<!-- end -->\n"
SHOWN, CIRCUITS = 40, 12
Figures = dict[str, Any]


def write_page(document: Figures, docs: Path) -> None:
    """Replace the written part of the page, and the plot."""
    page = docs / "price.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END, 1)[1]
    others = [p for p in document["programs"] if not p["fitted"]]
    circuits = [p for p in document["circuits"] if not p["fitted"]]
    trees = [p for p in document["trees"] if not p["fitted"]]
    text = f"{_errors(document['errors'], len(others), 'programs')}\n{_table(others, SHOWN)}\n"
    text += f"{_errors(document['circuit_errors'], len(circuits), 'circuits')}\n{_table(circuits, CIRCUITS)}\n"
    text += f"{_errors(document['tree_errors'], len(trees), 'tree ensembles')}\n{_table(trees, CIRCUITS)}"
    page.write_text(f"{before}{BEGIN}{text}{END}{after}")
    _plot([*others, *circuits, *trees], docs / "figures" / "price.svg")


def _errors(errors: Figures, count: int, kind: str) -> str:
    lines = [f"| error over {count} {kind} | median | 95 % within | largest |", "|---|---|---|---|"]
    for core, figures in errors.items():
        for figure, e in figures.items():
            lines.append(
                f"| {core.title()}, {figure} | {e['median']:.1%} | {e['q95']:.1%} | {e['largest']:.0%} |".replace(
                    "%", " %"
                )
            )
    return "\n".join(lines) + "\n"


def _table(programs: list[Figures], count: int) -> str:
    """Show programs of all sizes, in the order of their flash, on the smaller core."""
    spread = [programs[int(i)] for i in np.linspace(0, len(programs) - 1, count)]
    shown = sorted(spread, key=lambda p: p["cores"]["cortex-m0+"]["measured"]["flash"])
    head = "| program | tables, B | flash, B | | stack, B | | instructions | |"
    lines = [
        head,
        "|---|---|---|---|---|---|---|---|",
        "| | | priced | measured | priced | measured | priced | measured |",
    ]
    for program in shown:
        both = program["cores"]["cortex-m0+"]
        cells = [f"{both[how][f]:,.0f}" for f in ("flash", "stack", "instructions") for how in ("priced", "measured")]
        lines.append(f"| {program['program']} | {both['priced']['tables']:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _plot(programs: list[Figures], path: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.2))
    for panel, name, unit in zip(panels, ("flash", "instructions"), (" (bytes)", ""), strict=True):
        for core, marker in (("cortex-m0+", "o"), ("cortex-m4", "x")):
            pairs = [(p["cores"][core]["measured"][name], p["cores"][core]["priced"][name]) for p in programs]
            panel.plot(*np.array(pairs).T, marker, markersize=4, alpha=0.7, fillstyle="none", label=core.title())
        ends = np.array(panel.get_xlim())
        ends[0] = min(p["cores"]["cortex-m4"]["measured"][name] for p in programs) * 0.8
        panel.plot(ends, ends, color="grey", linewidth=0.8)
        panel.fill_between(ends, 0.85 * ends, 1.15 * ends, color="grey", alpha=0.15, linewidth=0)
        panel.set(xscale="log", yscale="log", xlabel=f"measured {name}{unit}", ylabel=f"priced {name}{unit}")
    panels[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
