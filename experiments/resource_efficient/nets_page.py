"""The section of docs/results.md about neural networks under budgets."""

from collections.abc import Sequence
from pathlib import Path

from experiments.markdown import line, made
from experiments.records import DATA, Experiment
from experiments.resource_efficient import plots
from experiments.resource_efficient.bits import of_first_fold
from experiments.resource_efficient.claims import Results
from experiments.resource_efficient.nets import Chosen, Model, Nets, Table, bayes, front
from experiments.store import read_report

HEAD = """
## Resource-efficient classifiers, Figures 3, 4 and 7: networks under budgets
"""
INTRO = """
Quantised networks that take as many bits as naive Bayes with tables of 1 to 8 bits (Figure 3) or a multiple of its
operations (Figure 4), with widths derived as in the paper. All settings were trained for a few epochs on nine tenths
of the training rows. Those best on test rows, and those best on the held-out tenth, were trained to the end with
several seeds; where *settings* says 20 or more, the next best followed with one seed. It is the number of settings of a
budget that were trained to the end. Errors are those of the integer networks, as they are exported.
A cell holds two numbers. The first is **chosen on
test rows**: the best of all runs. The second is **chosen on validation rows**: the setting that was best on held-out
training rows in the short runs, as the mean of its seeds. Naive Bayes is that of Figure 6 where it was run, otherwise
that of `figure6.toml`, chosen on test rows. satimage is its first fold. mnist has other levels than in the paper, so
its budgets are a third of the paper's; it was trained for 100 epochs instead of 500. If an error
rises with the budget (mnist with 7 bits, the sign at many operations), the short runs favoured settings that are good
only early: networks without batch normalisation, and one convolution with the sign. The comments at the top of
`figure3.toml` and `figure4.toml` say what was omitted. Both ran at the same time on one GPU, with some dense networks
on a CPU.
"""
FIGURE3 = """
![Test error over the bits of naive Bayes, for all families on each data set]({picture})

| data | network | settings | {heads} |
|---|---|---:|{rules}
"""
FIGURE4 = """
![Test error over multiples of the operations of naive Bayes on usps and mnist]({picture})

| data | network | settings | {heads} |
|---|---|---:|{rules}
"""
BETTER = """
These rows use only the largest budget. Rows marked *shifted* were also trained on images moved by a pixel; rows with
*smoothed labels*, on labels with a tenth of their weight spread over all classes. *13 levels* are equally wide, and
their naive Bayes is about as large as the paper's on mnist; its 8-bit tables are the budget of that row. These rows
were added after we had seen the test errors of the others, and those with *shifted* after those with smoothed labels.

| data | network | budget | bits | operations | chosen on test rows | chosen on validation rows |
|---|---|---:|---:|---:|---:|---:|
"""
FIGURE7 = """
![Models on the front of bits, operations and test error, as disks]({picture})

Models that no other model beats in bits, operations and test error at once (Figure 7), from the final runs of Figures
3 and 4 and the quantised Bayesian networks of Figure 6 and `figure6.toml`; **chosen on test rows**. As in the paper,
one-hot inputs are omitted. Models on the front, of all models:

| data | {heads} |
|---|{rules}
"""
WIDTHS, MULTIPLES = range(1, 9), tuple(2**k for k in range(1, 9))


def section(folder: Path, figure6: Experiment, docs: Path) -> str:
    """Return the section, and draw its pictures; without results it says so."""
    by_bits, by_operations = Nets(folder / "figure3.toml"), Nets(folder / "figure4.toml")
    found = results(folder, figure6)
    if not found.bits:
        return f"{HEAD}\nNot run yet: `{by_bits.command}`.\n"
    text = HEAD + INTRO + _budgets(FIGURE3, found.bits, found.bayes, docs / "figures", operations=False)
    if found.operations:
        text += _budgets(FIGURE4, found.operations, found.bayes, docs / "figures", operations=True)
    text += _single(found.bits) + _fronts(found.models, docs / "figures")
    return text + "".join(made(read_report(nets.report), nets.command) for nets in (by_bits, by_operations))


def results(folder: Path, figure6: Experiment) -> Results:
    """Return all results about networks, and the Bayesian networks beside them."""
    by_bits, by_operations = Nets(folder / "figure3.toml"), Nets(folder / "figure4.toml")
    quantised = read_report(folder / "results" / "bits.json") or {"results": []}
    naive, models = bayes(figure6.points(), map(of_first_fold, quantised["results"]))
    models += [m for m in by_bits.models() + by_operations.models() if m.family in plots.LOOKS]
    models = [m for m in models if m.family != "one-hot"]
    return Results(by_bits.table(), by_operations.table(), naive, models, by_bits)


def _budgets(text: str, table: Table, naive: Table, figures: Path, *, operations: bool) -> str:
    picture = f"resource_efficient_figure{4 if operations else 3}.svg"
    plots.over_budgets(table, naive, figures / picture, operations=operations)
    budgets = MULTIPLES if operations else WIDTHS
    lines = []
    for data in DATA:
        rows = {row: table.get((data, row), {}) for row in plots.LOOKS}
        if not any(rows.values()):
            continue
        own = naive.get((data, "naive"), {})
        if own and operations:
            least = min(c.test for c in own.values())
            lines.append(line(data, "naive Bayes, any bits", "", *[f"{least:.2f}"] * len(budgets)))
        elif own:
            lines.append(line(data, "naive Bayes", "", *(f"{own[b].test:.2f}" if b in own else "-" for b in budgets)))
        for row, best in rows.items():
            if row == "logistic regression" and best:
                lines.append(
                    line(data, "logistic regression, float32", _settings(best), *[_both(next(iter(best.values())))] * 8)
                )
            elif best:
                cells = (_both(best.get(b)) for b in budgets)
                lines.append(line(data, plots.LOOKS[row][0], _settings(best), *cells))
    heads = " | ".join(f"{b}x" if operations else f"{b} bit{'s' * (b > 1)}" for b in budgets)
    return text.format(picture=f"figures/{picture}", heads=heads, rules="---:|" * len(budgets)) + "".join(lines)


def _settings(best: dict[int, Chosen]) -> str:
    """Return how many settings of a budget were trained to the end, from the least to the most."""
    counts = sorted({chosen.settings for chosen in best.values()})
    return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def _both(chosen: Chosen | None) -> str:
    return "-" if chosen is None else f"{chosen.test:.2f} / {chosen.validation:.2f}"


def _single(table: Table) -> str:
    """Return what was tried beside the paper's settings."""
    lines = []
    for (data, row), best in table.items():
        for budget, chosen in best.items():
            if row not in plots.LOOKS or (row == "conv relu" and budget == max(best)):
                price = f"{chosen.setting['bits_used']:,}", f"{chosen.setting['operations']:,}"
                lines.append(line(data, row, budget, *price, f"{chosen.test:.2f}", f"{chosen.validation:.2f}"))
    return BETTER + "".join(lines) if lines else ""


def _fronts(models: Sequence[Model], figures: Path) -> str:
    picture = "resource_efficient_figure7.svg"
    plots.fronts(models, figures / picture)
    families = [family for family in plots.LOOKS if any(m.family == family for m in models)]
    lines = []
    for data in DATA:
        own = [m for m in models if m.data == data]
        best = front(own)
        counts = [(sum(m.family == f for m in best), sum(m.family == f for m in own)) for f in families]
        if own:
            lines.append(line(data, *(f"{a} of {b}" if b else "-" for a, b in counts)))
    heads = " | ".join(plots.LOOKS[family][0] for family in families)
    return FIGURE7.format(picture=f"figures/{picture}", heads=heads, rules="---:|" * len(families)) + "".join(lines)
