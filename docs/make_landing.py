"""Write the figures of index.md, and keep the search that it shows.

    python docs/make_landing.py                 the figures, from docs/example and benchmarks/results
    python docs/make_landing.py --search DIR    first keeps the front and the models of a search on digits:

    tinybayes explore digits.csv --target digit --image-shape 8x8 --budget 4kB --trials 100 -o DIR

The pictures are part of the page, so that they take the colours of its light or dark scheme. When the docs are built,
hooks.py writes the report of the kept search.
"""

import json
import math
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE, EXAMPLE = DOCS / "index.md", DOCS / "example"
FLASH = DOCS.parent / "benchmarks" / "results" / "flash.json"
TREES = DOCS.parent / "benchmarks" / "results" / "trees.json"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 412, 70, 16, 28, 50
PEERS = {  # colour, mark, name
    "tinybayes": ("ours", "circle", "tinybayes"),
    "LightGBM": ("peer-1", "square", "LightGBM"),
    "forest": ("peer-2", "diamond", "random forest"),
    "perceptron": ("peer-3", "triangle", "8-bit perceptron"),
}
Scale = Callable[[float], float]


def take(search: Path) -> None:
    """Keep what the report of a search is made of: its front, and the models that it names."""
    text = (search / "front.json").read_text(encoding="utf-8")
    shutil.rmtree(EXAMPLE, ignore_errors=True)
    (EXAMPLE / "models").mkdir(parents=True)
    (EXAMPLE / "front.json").write_text(text, encoding="utf-8")
    for model in json.loads(text)["models"]:
        if model.get("file"):
            shutil.copyfile(search / model["file"], EXAMPLE / model["file"])


def scale(low: float, high: float, start: float, end: float) -> Scale:
    """Return a logarithmic scale."""
    return lambda value: start + (end - start) * math.log(value / low) / math.log(high / low)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def axes(x: Scale, y: Scale, ticks: dict[float, str], errors: Sequence[float], names: tuple[str, str]) -> list[str]:
    """Return the grid with its labels, and the names of both axes."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>']
    for value, name in ticks.items():
        parts += [f'<line class="grid" x1="{x(value):.1f}" y1="{TOP}" x2="{x(value):.1f}" y2="{bottom}"/>']
        parts += [text(x(value), bottom + 20, name, "quiet", "middle")]
    for value in errors:
        parts += [f'<line class="grid" x1="{LEFT}" y1="{y(value):.1f}" x2="{right}" y2="{y(value):.1f}"/>']
        parts += [text(LEFT - 8, y(value) + 4, f"{value:g} %", "quiet", "end")]
    return [*parts, text(right, HEIGHT - 6, names[0], "quiet", "end"), text(4, 16, names[1], "quiet")]


def svg(parts: list[str], label: str) -> str:
    """Return the picture as one element of the page."""
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg class="tb-chart" {box} role="img" aria-label="{escape(label)}">\n' + "\n".join(parts) + "\n</svg>"


def front_figure(example: dict[str, Any]) -> str:
    """Return all models of the example: error over flash, with the front, the budget and the chosen model."""
    models = [model for model in example["models"] if model.get("flash")]
    budget, chosen = example["budget"]["flash"], next(m for m in models if m["id"] == example["chosen"])
    sizes = [model["flash"] for model in models]
    errors = [max(100 * model["validation_error"], 0.3) for model in models]
    x = scale(min(sizes) / 1.2, max(max(sizes), budget) * 1.3, LEFT, WIDTH - RIGHT)
    y = scale(min(errors) / 1.25, max(errors) * 1.1, HEIGHT - BOTTOM, TOP)
    ticks = {v: f"{v:,} B" for v in (16, 64, 250, 1000, 4000, 16_000) if min(sizes) / 1.2 < v < max(sizes) * 1.3}
    marks = [v for v in (0.5, 1, 2, 5, 10, 20, 50) if min(errors) / 1.25 < v < max(errors) * 1.1]
    parts = axes(x, y, ticks, marks, ("flash of the whole program", "validation error"))
    front: dict[str, tuple[int, float]] = {}  # of flash and error, however long a prediction takes
    for model, error in sorted(zip(models, errors, strict=True), key=lambda pair: (pair[0]["flash"], pair[1])):
        if not front or error < min(least for _, least in front.values()):
            front[model["id"]] = model["flash"], error
    for model, error in sorted(zip(models, errors, strict=True), key=lambda pair: pair[0]["id"] in front):
        kind, size = ("on", 5) if model["id"] in front else ("point", 4)
        title = f"<title>{escape(model['label'])}: {error:.1f} %, {model['flash']:,} B</title>"
        place = f'cx="{x(model["flash"]):.1f}" cy="{y(error):.1f}" r="{size}"'
        parts.append(f'<circle class="{kind}" {place}>{title}</circle>')
    (size, error), *steps = front.values()
    line = [f"M{x(size):.1f} {y(error):.1f}", *(f"H{x(size):.1f} V{y(error):.1f}" for size, error in steps)]
    parts.insert(0, f'<path class="front" d="{" ".join(line)}"/>')
    limit = x(budget)
    parts.append(f'<line class="budget" x1="{limit:.1f}" y1="{TOP}" x2="{limit:.1f}" y2="{HEIGHT - BOTTOM}"/>')
    parts.append(text(limit + 8, TOP - 10, f"your budget: {budget:,} B", "strong", "end"))
    at = x(chosen["flash"]), y(100 * chosen["validation_error"])
    parts.append(f'<circle class="chosen" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="10"/>')
    parts.append(f'<path class="lead" d="M{at[0] - 11:.1f} {at[1]:.1f} H{at[0] - 26:.1f}"/>')
    words = f"the best that fits: {chosen['label'].split(', ')[0]}"
    figures = f"{100 * chosen['test_error']:.1f} % on test rows, {chosen['flash']:,} B as C"
    parts += [text(at[0] - 30, at[1] - 22, words, "strong", "end"), text(at[0] - 30, at[1] + 2, figures, "", "end")]
    return svg(parts, f"Error over flash of {len(models)} models; the best within {budget} bytes is marked")


def peer_means() -> dict[str, list[tuple[int, float]]]:
    """Return the mean test errors at each budget, over the tables that all have."""
    lines = json.loads(FLASH.read_text(encoding="utf-8"))["lines"]
    found = {(one["who"], one["data"], one["budget"]): one["error"] for one in lines}
    for one in json.loads(TREES.read_text(encoding="utf-8"))["budgets"]:
        found["LightGBM", one["data"], one["budget"]] = one["LightGBM"]["error"]
    tables = sorted({one["data"] for one in lines})
    means: dict[str, list[tuple[int, float]]] = {who: [] for who in PEERS}
    for budget in sorted({one["budget"] for one in lines}):
        common = [table for table in tables if all(found.get((who, table, budget)) is not None for who in PEERS)]
        for who in PEERS:
            means[who].append((budget, 100 * statistics.mean(found[who, table, budget] for table in common)))
    return means


def marker(shape: str, x: float, y: float) -> str:
    """Return a mark: shapes tell the contenders apart where colours do not."""
    corners = {"square": "-5,-5 5,-5 5,5 -5,5", "diamond": "0,-7 7,0 0,7 -7,0", "triangle": "0,-6 6,5 -6,5"}
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
    return f'<polygon points="{corners[shape]}" transform="translate({x:.1f} {y:.1f})"/>'


def peers_figure() -> str:
    """Return the mean errors of the benchmark of flash, as lines over the budget."""
    means = peer_means()
    every = [error for line in means.values() for _, error in line]
    x = scale(800, 80_000, LEFT, WIDTH - RIGHT)
    y = scale(min(every) / 1.02, max(every) * 1.02, HEIGHT - BOTTOM, TOP)
    ticks = {budget: f"{budget // 1000} kB" for budget, _ in means["tinybayes"]}
    parts = axes(x, y, ticks, range(16, 23), ("budget", "mean test error of twelve tables"))
    for number, (who, (kind, shape, name)) in enumerate(reversed(PEERS.items())):
        colour = f"var(--tb-{kind})"
        line = " ".join(f"{x(budget):.1f},{y(error):.1f}" for budget, error in means[who])
        marks = "".join(marker(shape, x(budget), y(error)) for budget, error in means[who])
        wide = 3.5 if who == "tinybayes" else 1.8
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{wide}"/>')
        place = TOP + 30 + 28 * (len(PEERS) - 1 - number)
        parts.append(f'<g fill="{colour}">{marks}{marker(shape, WIDTH - 220, place - 4)}</g>')
        parts.append(text(WIDTH - 204, place, name))
    return svg(parts, "Mean test error over the budget: tinybayes, LightGBM, a random forest and a perceptron")


def main() -> None:
    """Write the page anew, with the pictures between its marks."""
    if "--search" in sys.argv:
        take(Path(sys.argv[sys.argv.index("--search") + 1]))
    page = PAGE.read_text(encoding="utf-8")
    example = json.loads((EXAMPLE / "front.json").read_text(encoding="utf-8"))
    pictures = {"front": front_figure(example), "peers": peers_figure()}
    for name, picture in pictures.items():
        begin, end = f"<!-- {name}: written by docs/make_landing.py -->\n", "<!-- end -->"
        head, _, rest = page.partition(begin)
        page = head + begin + picture + "\n" + end + rest.partition(end)[2]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
