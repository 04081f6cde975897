"""The page docs/results_tying.md; `python -m experiments.page` writes it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
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
    log_errors,
    make_panels,
    save,
)
from experiments.markdown import line, made
from experiments.parameter_tying.claims import CLAIMS
from experiments.parameter_tying.samplers_page import samplers
from experiments.records import LABELS, Experiment
from experiments.store import Record, read_report

HEAD = """# Results: tied parameters

Written by `python -m experiments.page` from `experiments/parameter_tying/results`; nothing is typed in by
hand. The paper is *On Parameter Tying by Quantization* (Chou and others, 2016).

"""
PAPER = {
    "bn2o": ("20,510", "20,491", 500, 0.339, 0.339, 0.299),
    "students": ("1,308", 13, 20, 0.141, 0.141, 0.140),
    "grid": ("1,089", 596, 400, 0.0186, 0.0186, 0.0181),
    "friends": ("3,899", 6, 10, 0.008, 0.008, 0.007),
}
TABLE1 = """## Table 1: levels and errors

From each network 20 sets of 6,000 training, 2,000 validation and 2,000 test rows are drawn (the paper: 100 sets).
The tables are learned from the training rows with one count added to each entry, tied to k levels, and relearned
with the ties. Errors are the mean absolute difference between true and learned conditional probabilities, the
largest of the sets. k is what the validation rows choose, the median of the sets; it counts levels of all entries,
where the paper counts rows, whose two entries are p and 1 - p.

*Zeros* says how probabilities of zero are dealt with. *Smoothed*: like all others, as in the paper. *Known*: what
the true network forbids is part of the structure. The circuits are then small, and relearning exact in seconds;
smoothed, students and grid have circuits of 13 million edges, so that exact relearning was tried on fewer sets and
levels (4, 8, 20 and 64). bn2o has width 26 and no circuit. *By rows* is the variant that stays a Bayesian network
and needs no circuit: the entries of a row are divided by their sum, after quantising, and all along in relearning.

| network | zeros | rows | true k | MLE | k | quantised | k | by rows | k | relearned | k | by rows |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""
FIGURE1 = """
bn2o and students are the paper's networks; its grid and friends are larger than ours.

## Figure 1: test log-likelihood over the number of levels

![Mean log-likelihood of test rows over the number of levels, for four networks](figures/tying_figure1.svg)

Mean log-likelihood of a test row in nats, mean of the sets. Points that lie far below are cut off.
"""
ZEROS = """
Test log-likelihood with the levels that the validation rows choose. *Tuned* has no ties: the count added to each
entry is not one but what the validation rows choose (1, 0.3, 0.1, 0.03, 0.01 or 0.003). Where it does as well as
relearning, the gain over maximum likelihood was not one of ties but of less smoothing: relearning adds no counts.
Of students and grid with smoothed zeros, *relearned* is what it gains on three sets, added to the mean of all.

| network | true | MLE | tuned | relearned | by rows | MLE, zeros known | relearned | by rows |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
CLASSIFIERS = """
## Codebooks against fixed point

No paper has this: a codebook of 2^b levels against fixed point of b bits, both b bits an entry (the levels of a
codebook cost another 32 bits each). Networks are trained in floats for {epochs} epochs, then stored; *trained*
are another {again} epochs through the format. Formats and weights of the levels are chosen on training rows. *Fixed
point, Figure 6* are the errors of the [sweeps](results.md) that train through fixed point, the best of many
settings **chosen on test rows**.

![Test error over the bits of an entry, fixed point and codebooks](figures/tying_classifiers.svg)

Test error in percent; satimage: the first fold.

| data | structure | stored as | 1 bit | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
CIRCUITS = """
### Circuits

Test log-likelihood of learned circuits whose parameters are stored in b bits, divided by the sum over all
assignments. The fixed-point format is chosen on validation rows.

| data | parameters | stored as | 1 bit | 2 | 3 | 4 | 5 | 6 | 7 | 8 | floats |
|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""
COMMAND = "python -m experiments.parameter_tying.{}"
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
                figures = r["methods"].get(method)
                if figures is None:
                    cells += ["", ""]
                    continue
                few = "" if figures["path"][0]["sets"] == r["sets"] else f" ({figures['path'][0]['sets']} sets)"
                cells += [f"{figures['chosen levels']:.0f}", f"{figures['max error']:.4g}{few}"]
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
                figures = r["methods"].get(method)
                # Some methods were run on fewer sets: what they gain on these is added to the mean of all.
                cells.append("" if figures is None else f"{r['mle']['test'] + figures['chosen']['gain']:.3f}")
        lines.append(line(*cells))
        own = smoothed["methods"].get("relearned rows")
        if tuned is not None and own is not None:
            ahead = smoothed["mle"]["test"] + own["chosen"]["gain"] - tuned["mle"]["test"]
            beyond.append(f"{network} {ahead:+.3f}")
    return "".join(lines) + f"\nRelearned by rows, zeros smoothed, less *tuned*: {', '.join(beyond)}.\n"


def verdicts(results: Sequence[Record]) -> Iterator[str]:
    """Compare the paper's claims with the numbers, network by network."""
    rows = [r for n in NETWORKS for r in (of(results, n, "smoothed"), of(results, n, "known")) if r is not None]
    for claim, test in CLAIMS:
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
        add_legend(figure, panels.flat, columns=3)
        save(figure, path)


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
            lines.append(line(data, LABELS[structure], label, *cells))
        chosen = [best.get((data, structure, bits)) for bits in range(1, 9)]
        if any(chosen):
            cells = ["" if error is None else f"{error:.2f}" for error in chosen]
            lines.append(line(data, LABELS[structure], "*fixed point, Figure 6*", *cells))
        first = next(iter(own.values()))
        lines.append(line(data, LABELS[structure], f"32-bit floats: {100 * first['float']:.2f}", *[""] * 8))
    path = docs / "figures" / "tying_classifiers.svg"
    draw_classifiers(results, pairs, path)
    return "".join(lines) + _won(results) + made(report, COMMAND.format("classifiers")) + circuits(report)


def _best_fixed(experiments: Path) -> dict[tuple[str, str, int], float]:
    """Return the least test errors of training through fixed point, of all settings of Figure 6."""
    figure6 = Experiment(experiments / "resource_efficient" / "figure6.toml")
    least: dict[tuple[str, str, int], float] = {}
    for point in figure6.points():
        key = (point.sweep.data, point.row, sum(point.setting["bits"]))
        least[key] = min(point.error, least.get(key, 100.0))
    return least


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
        figure, panels = make_panels(len(pairs), height=2.7)
        for axes, (data, structure) in zip(panels, pairs, strict=True):
            own = [r for r in results if (r["data"], r["structure"]) == (data, structure)]
            own.sort(key=lambda r: r["bits an entry"])
            axes.axhline(100 * own[0]["float"], color=BLACK, linewidth=1.0, label="32-bit floats")
            for way, (label, colour, marker, style) in WAYS.items():
                x, y = [r["bits an entry"] for r in own], [100 * r["ways"][way]["error"] for r in own]
                axes.plot(
                    x, y, label=label, color=colour, marker=marker, markersize=3.5, linewidth=1.1, linestyle=style
                )
            log_errors(axes)
            axes.set_title(f"{data}, {LABELS[structure]}")
            axes.set_xlabel("bits an entry")
            axes.set_ylabel("test error [%]")
        add_legend(figure, panels, columns=3)
        save(figure, path)


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


def page(folder: Path, docs: Path) -> str:
    """Return the page, and draw its pictures; a section whose results are missing says how to get them."""
    results, text = folder / "results", HEAD
    learning = read_report(results / "learning.json")
    text += levels(learning, docs) if learning else f"\nNot run yet: `{COMMAND.format('learning')}`\n"
    sampled = read_report(results / "figure2.json")
    if sampled:
        text += samplers(sampled, docs) + made(sampled, COMMAND.format("figure2"))
    report = read_report(results / "classifiers.json")
    missing = f"\nNot run yet: `{COMMAND.format('classifiers')}`\n"
    return text + (classifiers(report, folder.parent, docs) if report else missing)


def levels(report: Record, docs: Path) -> str:
    """Return the sections on Table 1 and Figure 1, and draw the figure."""
    results = report["results"]
    draw_learning(results, docs / "figures" / "tying_figure1.svg")
    text = table1(results) + FIGURE1 + gains(results) + "\n### The paper's claims\n\n"
    return text + "".join(verdicts(results)) + made(report, COMMAND.format("learning"))
