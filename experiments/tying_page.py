"""Write docs/results_tying.md from the results of parameter tying: python experiments/tying_page.py."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from plots import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, STYLE, WIDTH
from records import Experiment, provenance, read_report
from tying_samplers import samplers
from tying_wording import (
    CIRCUITS,
    CLASSIFIERS,
    FIGURE1,
    HEAD,
    PAPER,
    TABLE1,
    VERDICTS,
    ZEROS,
)

Record = dict[str, Any]
NETWORKS = ("bn2o", "students", "grid", "friends")
METHODS = {
    "quantised": ("quantised", ORANGE, "s", "--"),
    "quantised rows": ("quantised, rows normalised", PINK, "v", "--"),
    "relearned": ("relearned", BLUE, "o", "-"),
    "relearned rows": ("relearned, rows normalised", GREEN, "^", "-"),
}
WAYS = {
    "rounded": ("fixed point, rounded", ORANGE, "s", "--"),
    "codebook": ("codebook", PINK, "v", "--"),
    "levels": ("codebook, levels trained", SKY, "D", ":"),
    "fixed point, trained": ("fixed point, trained", RED, "P", "-"),
    "codebook, trained": ("codebook, trained", BLUE, "o", "-"),
}
STRUCTURES = {"naive": "naive Bayes", "chow-liu": "Chow-Liu"}


def line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |\n"


def of(results: Sequence[Record], network: str, zeros: str) -> Record | None:
    return next((r for r in results if (r["network"], r["zeros"]) == (network, zeros)), None)


def exact_too(results: Sequence[Record], network: str) -> Record | None:
    """Return the smoothed results, with those of exact relearning that were made on fewer sets."""
    full, few = of(results, network, "smoothed"), of(results, network, "smoothed, exact")
    if full is None or few is None:
        return full
    own = {name: few["methods"][name] for name in ("quantised", "relearned")}
    return {**full, "methods": {**full["methods"], **own}}


def table1(results: Sequence[Record]) -> str:
    lines = [TABLE1]
    for network in NETWORKS:
        for zeros in ("smoothed", "known"):
            r = exact_too(results, network) if zeros == "smoothed" else of(results, network, zeros)
            if r is None:
                continue
            cells: list[object] = [
                network,
                zeros,
                f"{r['rows']:,}",
                f"{r['true levels']:,}",
                f"{r['mle']['max error']:.4g}",
            ]
            for method in METHODS:
                found = r["methods"].get(method)
                if found is None:
                    cells += ["", ""]
                    continue
                few = "" if found["path"][0]["sets"] == r["sets"] else f" ({found['path'][0]['sets']} sets)"
                cells += [f"{found['chosen levels']:.0f}", f"{found['max error']:.4g}{few}"]
            lines.append(line(*cells))
    lines.append("\nThe paper's numbers, for its own networks:\n\n")
    lines.append(line("network", "rows", "true k", "estimated k", "MLE", "quantised", "relearned"))
    lines.append("|---|---:|---:|---:|---:|---:|---:|\n")
    lines += [line(name, *cells) for name, cells in PAPER.items()]
    return "".join(lines)


def gains(results: Sequence[Record]) -> str:
    """Say what ties gain on test rows, beside what less smoothing gains."""
    lines, beyond = [ZEROS], []
    for network in NETWORKS:
        known, smoothed, tuned = (of(results, network, z) for z in ("known", "smoothed", "tuned"))
        if known is None or smoothed is None:
            continue
        cells = [network, f"{smoothed['true']['test']:.3f}", f"{smoothed['mle']['test']:.3f}"]
        cells.append("" if tuned is None else f"{tuned['mle']['test']:.3f}")
        for r in (exact_too(results, network), known):
            assert r is not None
            if r is known:
                cells.append(f"{r['mle']['test']:.3f}")
            for method in ("relearned", "relearned rows"):
                found = r["methods"].get(method)
                # Some methods were run on fewer sets: what they gain on these is added to the mean of all.
                cells.append("" if found is None else f"{r['mle']['test'] + found['chosen']['gain']:.3f}")
        lines.append(line(*cells))
        own = smoothed["methods"].get("relearned rows")
        if tuned is not None and own is not None:
            ahead = smoothed["mle"]["test"] + own["chosen"]["gain"] - tuned["mle"]["test"]
            beyond.append(f"{network} {ahead:+.3f}")
    return "".join(lines) + f"\nRelearned by rows, zeros smoothed, less *tuned*: {', '.join(beyond)}.\n"


def verdicts(results: Sequence[Record]) -> Iterator[str]:
    """Compare the paper's claims with the numbers, network by network."""
    rows = [r for n in NETWORKS for r in (of(results, n, "smoothed"), of(results, n, "known")) if r is not None]
    for claim, test in VERDICTS:
        holds, fails = [], []
        for r in rows:
            answer = test(r)
            if answer is not None:
                by_rows = "" if "relearned" in r["methods"] else ", by rows"
                (holds if answer[0] else fails).append(f"{r['network']}, zeros {r['zeros']}{by_rows} ({answer[1]})")
        word = "Holds" if not fails else "Does not hold" if not holds else "Holds in part"
        yield f"- *{claim}* **{word}.**"
        yield f" Yes: {'; '.join(holds)}." if holds else ""
        yield f" No: {'; '.join(fails)}." if fails else ""
        yield "\n"


def draw_learning(results: Sequence[Record], path: Path) -> None:
    """Draw Figure 1: a row of panels for each way of dealing with zeros."""
    kinds = ("smoothed", "known")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.7 * len(NETWORKS)), layout="constrained")
        panels = figure.subplots(len(NETWORKS), 2, squeeze=False)
        for row, network in zip(panels, NETWORKS, strict=True):
            for axes, zeros in zip(row, kinds, strict=True):
                r = exact_too(results, network) if zeros == "smoothed" else of(results, network, zeros)
                if r is not None:
                    _learning_panel(axes, r)
                axes.set_title(f"{network}, zeros {zeros}")
        _legend(figure, panels.ravel())
        _save(figure, path)


def _learning_panel(axes: Axes, r: Record) -> None:
    mle, true = r["mle"]["test"], r["true"]["test"]
    axes.axhline(mle, color=BLACK, linewidth=1.0, label="maximum likelihood")
    axes.axhline(true, color=GREY, linewidth=1.0, linestyle=":", label="true network")
    for method, (label, colour, marker, style) in METHODS.items():
        points = r["methods"].get(method, {}).get("path", [])
        # As a gain over maximum likelihood on the same sets, which may be fewer than all.
        x, y = [p["levels"] for p in points], [mle + p["gain"] for p in points]
        axes.plot(x, y, label=label, color=colour, marker=marker, markersize=3.5, linewidth=1.1, linestyle=style)
    # The smallest numbers of levels are far below: they would flatten the rest.
    good = [mle, true, *(p["test"] for m in r["methods"].values() for p in m["path"] if p["levels"] >= 8)]
    low, high = min(good), max(good)
    axes.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
    axes.set_xscale("log", base=2)
    axes.set_xlabel("levels")
    axes.set_ylabel("test log-likelihood")


def classifiers(report: Record, experiments: Path, docs: Path) -> str:
    results = [r for r in report["results"] if "structure" in r]
    pairs = list(dict.fromkeys((r["data"], r["structure"]) for r in results))
    best = _best_fixed(experiments)
    lines = [CLASSIFIERS.format(again=report["again"], epochs=report["epochs"])]
    for data, structure in pairs:
        own = {r["bits an entry"]: r for r in results if (r["data"], r["structure"]) == (data, structure)}
        for way, (label, *_) in WAYS.items():
            cells = [f"{100 * own[b]['ways'][way]['error']:.2f}" if b in own else "" for b in range(1, 9)]
            lines.append(line(data, STRUCTURES[structure], label, *cells))
        chosen = [best.get((data, structure, bits)) for bits in range(1, 9)]
        if any(chosen):
            cells = ["" if error is None else f"{error:.2f}" for error in chosen]
            lines.append(line(data, STRUCTURES[structure], "*fixed point, Figure 6*", *cells))
        first = next(iter(own.values()))
        lines.append(line(data, STRUCTURES[structure], f"32-bit floats: {100 * first['float']:.2f}", *[""] * 8))
    path = docs / "figures" / "tying_classifiers.svg"
    draw_classifiers(results, pairs, path)
    return "".join(lines) + _won(results) + _made(report, "classifiers.py") + circuits(report)


def _best_fixed(experiments: Path) -> dict[tuple[str, str, int], float]:
    """Return the least test errors of training through fixed point, of all settings of Figure 6."""
    figure6 = Experiment(experiments / "resource_efficient" / "figure6.toml")
    found: dict[tuple[str, str, int], float] = {}
    for point in figure6.points() if figure6.store.exists() else []:
        key = (point.sweep.data, point.row, sum(point.setting["bits"]))
        found[key] = min(point.error, found.get(key, 100.0))
    return found


def _won(results: Sequence[Record]) -> str:
    """Count how often a codebook errs less than fixed point of the same bits."""
    text = "\nThe codebook errs less than fixed point of as many bits an entry on "
    parts = []
    for name, book, fixed in (
        ("after training", "codebook", "rounded"),
        ("trained", "codebook, trained", "fixed point, trained"),
    ):
        for low, high in ((1, 4), (5, 8)):
            own = [r["ways"] for r in results if low <= r["bits an entry"] <= high]
            wins = sum(w[book]["error"] < w[fixed]["error"] for w in own)
            ties = sum(w[book]["error"] == w[fixed]["error"] for w in own)
            equal = f", and as much on {ties}" if ties else ""
            parts.append(f"{wins} of {len(own)} cases at {low} to {high} bits ({name}{equal})")
    return text + ", ".join(parts) + ".\n"


def draw_classifiers(results: Sequence[Record], pairs: Sequence[tuple[str, str]], path: Path) -> None:
    with mpl.rc_context(STYLE):
        rows = -(-len(pairs) // 2)
        figure = Figure(figsize=(WIDTH, 2.7 * rows), layout="constrained")
        panels = figure.subplots(rows, 2, squeeze=False)
        for axes, (data, structure) in zip(panels.ravel(), pairs, strict=False):
            own = [r for r in results if (r["data"], r["structure"]) == (data, structure)]
            own.sort(key=lambda r: r["bits an entry"])
            axes.axhline(100 * own[0]["float"], color=BLACK, linewidth=1.0, label="32-bit floats")
            for way, (label, colour, marker, style) in WAYS.items():
                x, y = [r["bits an entry"] for r in own], [100 * r["ways"][way]["error"] for r in own]
                axes.plot(
                    x, y, label=label, color=colour, marker=marker, markersize=3.5, linewidth=1.1, linestyle=style
                )
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.set_title(f"{data}, {STRUCTURES[structure]}")
            axes.set_xlabel("bits an entry")
            axes.set_ylabel("test error [%]")
        _legend(figure, panels.ravel()[: len(pairs)])
        _save(figure, path)


def circuits(report: Record) -> str:
    results = [r for r in report["results"] if "structure" not in r]
    lines = [CIRCUITS] if results else []
    for data in dict.fromkeys(r["data"] for r in results):
        own = {r["bits an entry"]: r for r in results if r["data"] == data}
        first = next(iter(own.values()))
        for way, label in (("rounded", "fixed point, rounded"), ("codebook", "codebook")):
            cells = [f"{own[b]['ways'][way]['test']:.3f}" if b in own else "" for b in range(1, 9)]
            lines.append(line(data, f"{first['parameters']:,}", label, *cells, f"{first['float']:.3f}"))
    return "".join(lines)


def write(experiments: Path, docs: Path) -> None:
    """Write the page and its pictures; a section whose results are missing says so."""
    folder, text = experiments / "parameter_tying" / "results", HEAD
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    learning = read_report(folder / "learning.json")
    if learning:
        results = learning["results"]
        draw_learning(results, docs / "figures" / "tying_figure1.svg")
        text += table1(results) + FIGURE1 + gains(results) + "\n### The paper's claims\n\n"
        text += "".join(verdicts(results)) + _made(learning, "learning.py")
    else:
        text += "\nNot run yet: `learning.py`\n"
    sampled = read_report(folder / "figure2.json")
    if sampled:
        text += samplers(sampled, docs) + _made(sampled, "figure2.py")
    report = read_report(folder / "classifiers.json")
    text += classifiers(report, experiments, docs) if report else "\nNot run yet: `classifiers.py`\n"
    (docs / "results_tying.md").write_text(text)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, of every line that one of them has."""
    shown = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=3)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _made(report: Record, script: str) -> str:
    return f"\n`python experiments/parameter_tying/{script}`: {provenance(report)}.\n"


if __name__ == "__main__":
    here = Path(__file__).parent
    write(here, here.parent / "docs")
