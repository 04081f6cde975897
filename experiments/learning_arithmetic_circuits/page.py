"""The page docs/results_circuits.md; `python -m experiments.page` writes it."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing import BLACK, BLUE, GREEN, ORANGE, RED, STYLE, WIDTH, add_legend, save
from experiments.markdown import line, made
from experiments.store import Record, read_report

HEAD = """# Results: circuits

Written by `python -m experiments.page` from `experiments/learning_arithmetic_circuits/results`; nothing is
typed in by hand. The paper is *Learning Arithmetic Circuits* (Lowd and Domingos); its tables are not in the text that
we have, so only its findings stand beside ours. Prices were chosen on the validation rows, models learned on the
training rows alone; no test row was looked at for any choice.

"""
TABLE3 = """## Table 3: the data

| data | variables | rows | distinct | validation rows | test rows | density |
|---|---:|---:|---:|---:|---:|---:|
"""
TABLE4 = """
## Table 4: the models

*Quick* and *greedy* are circuits learned with the two rules of the paper; *trees* are Bayesian networks with decision
trees learned without a price on edges (the role of WinMine in the paper). LL is the mean log-likelihood of a test row
in nats. *Compiled* is the size of a circuit compiled from the network alone, by elimination, without knowing how it
grew. Widths are those of a min-fill order. A time with a plus was cut off.

| data | learner | k_e | k_p | test LL | edges | leaves | parents, mean (most) | width | compiled | seconds |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""
TABLE5 = """
## Table 5: time of a query

CPU milliseconds a query, mean over all shares of query and evidence variables. *Alone* is a circuit's query asked by
itself, *together* in one batch of a thousand.

| data | circuit, together | circuit, alone | Gibbs fast | medium | slow | very slow |
|---|---:|---:|---:|---:|---:|---:|
"""
FIGURE1 = """
## Figure 1: accuracy of queries

![Log-probability per query variable over the shares of evidence and of query variables](figures/circuits_figure1.svg)

Mean log-probability, per query variable, of what the test row has in the query variables given what it has in the
evidence variables; higher is better. Left: 30 % of the variables are asked, 0 to 50 % observed. Right: 30 % observed,
10 to 50 % asked. Gibbs sampling asks the trees. The number of queries is {counts}.
A Gibbs setting is compared with the circuit on the queries that both were asked: its point is the
circuit's plus the mean difference, its bar the standard error of that difference. Settings with fewer than five
queries are timed, not drawn.
The paper finds circuits ten times faster than its fastest Gibbs setting, ten thousand times faster than its slowest,
and more accurate than both except when few variables are asked.
"""
COMMAND = "python -m experiments.learning_arithmetic_circuits.{}"
FEWEST = 5  # queries below which a setting is timed but not drawn
SETTINGS = {
    "exact": (BLACK, "o"),
    "fast": (ORANGE, "s"),
    "medium": (GREEN, "^"),
    "slow": (BLUE, "D"),
    "very slow": (RED, "v"),
}


def models(report: Record) -> str:
    lines = [TABLE3]
    for r in report["table3"]:
        cells = r["data"], r["variables"], f"{r['train']:,}", f"{r['distinct']:,}", f"{r['valid']:,}", f"{r['test']:,}"
        lines.append(line(*cells, f"{100 * r['density']:.1f} %"))
    lines.append(TABLE4)
    for r in report["table4"]:
        edges = "" if r["edges"] is None else f"{r['edges']:,}"
        compiled = r["compiled_edges"] if isinstance(r["compiled_edges"], str) else f"{r['compiled_edges']:,}"
        price = "" if r["edge_price"] is None else f"{r['edge_price']:g}"
        cells = [
            r["data"],
            r["learner"],
            price,
            f"{r['parameter_price']:g}",
            f"{r['test']:.3f}",
            edges,
            f"{r['leaves']:,}",
        ]
        cells += [f"{r['mean_parents']:.1f} ({r['most_parents']})", r["treewidth"], compiled]
        lines.append(line(*cells, f"{r['seconds']:.1f}" + ("" if r["complete"] else "+")))
    return "".join(lines) + made(report, COMMAND.format("models"))


def queries(report: Record, docs: Path) -> str:
    results = report["results"]
    lines = [TABLE5]
    names = list(dict.fromkeys(r["data"] for r in results))
    for name in names:
        own = [r for r in results if r["data"] == name]
        cells = [name]
        for setting, field in [
            ("exact", "cpu_ms"),
            ("exact", "alone_ms"),
            *((s, "cpu_ms") for s in list(SETTINGS)[1:]),
        ]:
            values = [r[field] for r in own if r["setting"] == setting]
            cells.append(f"{sum(values) / len(values):.3g}" if values else "")
        lines.append(line(*cells))
    counts = ", ".join(
        f"{_span([r['queries'] for r in results if r['setting'] == s])} ({s})"
        for s in SETTINGS
        if any(r["setting"] == s for r in results)
    )
    draw(results, names, docs / "figures" / "circuits_figure1.svg")
    return "".join(lines) + FIGURE1.format(counts=counts) + made(report, COMMAND.format("queries"))


def draw(results: Sequence[Record], names: Sequence[str], path: Path) -> None:
    """Draw Figure 1: a row for each data set."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.6 * len(names)), layout="constrained")
        panels = figure.subplots(len(names), 2, squeeze=False)
        for row, name in zip(panels, names, strict=True):
            own = [r for r in results if r["data"] == name and r["queries"] >= FEWEST]
            for axes, fixed, moving in zip(row, ("query", "evidence"), ("evidence", "query"), strict=True):
                _panel(axes, [r for r in own if r[fixed] == 0.3], moving)
                axes.set_title(f"{name}, 30 % {'asked' if fixed == 'query' else 'observed'}")
        add_legend(figure, [panels[0, 0]], columns=5)
        save(figure, path)


def _panel(axes: Axes, results: Sequence[Record], moving: str) -> None:
    for setting, (colour, marker) in SETTINGS.items():
        own = sorted((r for r in results if r["setting"] == setting), key=lambda r: r[moving])
        x, y = [100 * r[moving] for r in own], [r["accuracy"] for r in own]
        shown = "circuit" if setting == "exact" else f"Gibbs, {setting}"
        look = {"label": shown, "color": colour, "marker": marker, "markersize": 4, "linewidth": 1.1}
        axes.errorbar(x, y, [r["error"] or 0.0 for r in own], **look)
    axes.set_xlabel(f"{moving} variables [%]")
    axes.set_ylabel("log-probability a variable")


def page(folder: Path, docs: Path) -> str:
    """Return the page, and draw its picture; a section whose results are missing says how to get them."""
    text = HEAD
    for name, section in (("models", models), ("queries", lambda report: queries(report, docs))):
        report = read_report(folder / "results" / f"{name}.json")
        text += section(report) if report else f"\nNot run yet: `{COMMAND.format(name)}`\n"
    return text


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
