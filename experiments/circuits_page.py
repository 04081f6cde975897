"""Write docs/results_circuits.md from the results of circuits: python experiments/circuits_page.py."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from plots import BLACK, BLUE, GREEN, ORANGE, RED, STYLE, WIDTH
from records import provenance, read_report

HEAD = """# Results: circuits

Written by `python experiments/circuits_page.py` from `experiments/learning_arithmetic_circuits/results`; nothing is
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
FEWEST = 5  # queries below which a setting is timed but not drawn
SETTINGS = {
    "exact": (BLACK, "o"),
    "fast": (ORANGE, "s"),
    "medium": (GREEN, "^"),
    "slow": (BLUE, "D"),
    "very slow": (RED, "v"),
}


def models(report: dict[str, Any]) -> str:
    lines = [TABLE3]
    for r in report["table3"]:
        cells = r["data"], r["variables"], f"{r['train']:,}", f"{r['distinct']:,}", f"{r['valid']:,}", f"{r['test']:,}"
        lines.append(_line(*cells, f"{100 * r['density']:.1f} %"))
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
        lines.append(_line(*cells, f"{r['seconds']:.1f}" + ("" if r["complete"] else "+")))
    return "".join(lines) + _made(report, "models.py")


def queries(report: dict[str, Any], docs: Path) -> str:
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
        lines.append(_line(*cells))
    counts = ", ".join(
        f"{_span([r['queries'] for r in results if r['setting'] == s])} ({s})"
        for s in SETTINGS
        if any(r["setting"] == s for r in results)
    )
    draw(results, names, docs / "figures" / "circuits_figure1.svg")
    return "".join(lines) + FIGURE1.format(counts=counts) + _made(report, "queries.py")


def draw(results: Sequence[dict[str, Any]], names: Sequence[str], path: Path) -> None:
    """Draw Figure 1: a row for each data set."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.6 * len(names)), layout="constrained")
        panels = figure.subplots(len(names), 2, squeeze=False)
        for row, name in zip(panels, names, strict=True):
            for axes, (fixed, moving) in zip(row, (("query", "evidence"), ("evidence", "query")), strict=True):
                for setting, (colour, marker) in SETTINGS.items():
                    own = [
                        r
                        for r in results
                        if (r["data"], r["setting"], r[fixed]) == (name, setting, 0.3) and r["queries"] >= FEWEST
                    ]
                    own.sort(key=lambda r: r[moving])
                    x, y, bars = (
                        [100 * r[moving] for r in own],
                        [r["accuracy"] for r in own],
                        [r["error"] or 0.0 for r in own],
                    )
                    shown = "circuit" if setting == "exact" else f"Gibbs, {setting}"
                    axes.errorbar(x, y, bars, label=shown, color=colour, marker=marker, markersize=4, linewidth=1.1)
                axes.set_title(f"{name}, 30 % {'asked' if fixed == 'query' else 'observed'}")
                axes.set_xlabel(f"{'evidence' if moving == 'evidence' else 'query'} variables [%]")
                axes.set_ylabel("log-probability a variable")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        figure.savefig(path, metadata={"Date": None})


def write(experiments: Path, docs: Path) -> None:
    """Write the page and its picture; a section whose results are missing says so."""
    folder = experiments / "learning_arithmetic_circuits" / "results"
    text = HEAD
    for name, section in (("models", models), ("queries", lambda report: queries(report, docs))):
        report = read_report(folder / f"{name}.json")
        text += section(report) if report else f"\nNot run yet: `{name}.py`\n"
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "results_circuits.md").write_text(text)


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _made(report: dict[str, Any], script: str) -> str:
    return f"\n`python experiments/learning_arithmetic_circuits/{script}`: {provenance(report)}.\n"


if __name__ == "__main__":
    here = Path(__file__).parent
    write(here, here.parent / "docs")
