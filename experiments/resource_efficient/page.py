"""The sections of docs/results.md on *Resource-efficient classifiers*: prices of size and bits, and other networks."""

from collections.abc import Sequence
from pathlib import Path

from experiments.markdown import line, made, missing, percent
from experiments.records import DATA, Experiment, Point, label, on_folds_of, order, trained_on
from experiments.resource_efficient import bayes_claims, claims, nets_page, plots
from experiments.resource_efficient.integer_bn_page import integer_networks
from experiments.store import read_report
from experiments.verdicts import HEAD, counted, table

FIGURE5 = """
## Resource-efficient classifiers, Figure 5: the price of size

![Error and size over lambda_MS on letter; size against error on satimage, usps and mnist]({picture})

{run} Sizes are numbers of table entries, in multiples of naive Bayes. In (a) the lines are means of the runs with the
same price. In (b) to (d) the blue points are those that no smaller model reaches, **chosen on test rows**. So are the
numbers in the table: the smallest errors of models up to a multiple of the size of naive Bayes. The paper finds naive
Bayes at one end and the free search at the other. On usps, where features have few values, most of the gain comes at a
small part of the size.

| data | {heads} | any size |
|---|{rules}---:|
"""
FIGURE6 = """
## Resource-efficient classifiers, Figure 6: bits

![Test error over the bits of an entry, for naive Bayes and Chow-Liu on each data set]({picture})

{run} Solid lines: trained through fixed point; for each number of bits the best of 1 to 6 integer bits and of all
settings. Dotted lines: the best float32 error of Table 1 on the same folds. {rounding}All lines are **chosen on test
rows**. A solid line that reaches the dotted one has lost nothing at that width. The paper's tree is the best of its
own searches, ours is the Chow-Liu tree, so their numbers cannot be compared. The paper finds that one or two bits
hurt naive Bayes more than the tree, and that letter gains up to six or seven bits while usps needs few.

| data | structure | tables | float32 | {heads} |
|---|---|---|---:|{rules}
"""
ROUNDING = """Dashed lines: float32 tables rounded after training, the baseline. Each comes from one float model (its
setting is in `rounding.py`), each solid line from the best of several settings, so a part of the gap is due to
selection."""
VERDICTS = """
## Resource-efficient classifiers: verdicts

The paper's claims and what we measured, with errors in percent **chosen on test rows**, as in the paper. A claim is
asked of every data set that was run; numbers in brackets are the thresholds that we put on vague words. That networks
are more than their last layer and that methods of deep learning carry over (II-C, VI) are arguments, not
measurements.

{count}
"""
SIZES = (1.0, 1.1, 1.5, 2.0, 4.0)


def sections(folder: Path, table1: Experiment, docs: Path) -> list[str]:
    """Return all sections, and draw their pictures; errors in floats come from Table 1 of the other paper."""
    figure5, figure6 = Experiment(folder / "figure5.toml"), Experiment(folder / "figure6.toml")
    return [
        price_of_size(figure5, [table1, figure6], docs),
        quantised(figure6, table1, folder / "results" / "rounding.json", docs),
        integer_networks(figure6),
        nets_page.section(folder, figure6, docs),
        judged(folder, figure5, figure6, [table1, figure6]),
    ]


def judged(folder: Path, figure5: Experiment, figure6: Experiment, others: Sequence[Experiment]) -> str:
    """Return the table of all claims."""
    nets, points = nets_page.results(folder, figure6), figure5.points()
    best: dict[tuple[str, str, int], Point] = {}
    for p in figure6.points():
        key = p.sweep.data, p.sweep.structure, sum(p.setting["bits"])
        best[key] = min(p, best.get(key, p), key=lambda point: point.error)
    rounded, integer, ours = (
        (read_report(folder / "results" / f"{name}.json") or {"results": []})["results"]
        for name in ("rounding", "integer_bn", "integer_ours")
    )
    found = bayes_claims.Results(
        points,
        _naive_sizes(points, figure5, others),
        trained_errors(figure6.points()),
        {(r["data"], r["structure"]): {q["bits"]: 100 * q["error"] for q in r["rounded"]} for r in rounded},
        {key: p.setting for key, p in best.items()},
        integer,
        ours,
    )
    rows = table(bayes_claims.CLAIMS, found) + table(claims.CLAIMS, nets).removeprefix(HEAD)
    return VERDICTS.format(count=counted([(bayes_claims.CLAIMS, found), (claims.CLAIMS, nets)])) + rows


def trained_errors(points: Sequence[Point]) -> dict[tuple[str, str], dict[int, float]]:
    """Return the least errors by data and structure, then by the bits of an entry."""
    trained: dict[tuple[str, str], dict[int, float]] = {}
    for point in points:
        row = trained.setdefault((point.sweep.data, point.sweep.structure), {})
        width = sum(point.setting["bits"])
        row[width] = min(row.get(width, 100.0), point.error)
    return trained


def _naive_sizes(points: Sequence[Point], figure5: Experiment, others: Sequence[Experiment]) -> dict[str, float]:
    """Return the parameters of naive Bayes: the least of the search, or what the sweeps over naive Bayes say."""
    naive = {data: min(p.parameters for p in points if p.sweep.data == data) for data in {p.sweep.data for p in points}}
    for point in (p for other in others for p in on_folds_of(figure5, other) if p.sweep.structure == "naive"):
        naive[point.sweep.data] = point.parameters  # the size itself, where the search did not get down to it
    return naive


def price_of_size(figure5: Experiment, others: Sequence[Experiment], docs: Path) -> str:
    points = figure5.points()
    if not points:
        return missing(FIGURE5, figure5.command)
    naive = _naive_sizes(points, figure5, others)
    picture = "figures/resource_efficient_figure5.svg"
    plots.sizes(points, naive, docs / picture)
    lines = []
    for data in DATA:
        sizes = [(p.parameters / naive[data], p.error) for p in points if p.sweep.data == data]
        least = [min((e for size, e in sizes if size <= limit), default=None) for limit in (*SIZES, float("inf"))]
        lines.append(line(data, *(percent(error, "-") for error in least)) if sizes else "")
    heads = " | ".join(f"{size:g}x" for size in SIZES)
    text = FIGURE5.format(picture=picture, run=trained_on(points), heads=heads, rules="---:|" * len(SIZES))
    return text + "".join(lines) + made(read_report(figure5.report), figure5.command)


def quantised(figure6: Experiment, table1: Experiment, baseline: Path, docs: Path) -> str:
    points = figure6.points()
    if not points:
        return missing(FIGURE6, figure6.command)
    trained = trained_errors(points)
    floats: dict[tuple[str, str], float] = {}
    for point in on_folds_of(figure6, table1):
        key = (point.sweep.data, point.row)
        floats[key] = min(floats.get(key, 100.0), point.error)
    report = read_report(baseline)
    results = {(r["data"], r["structure"]): r for r in report["results"]} if report else {}
    rounded = {key: {r["bits"]: 100 * r["error"] for r in result["rounded"]} for key, result in results.items()}
    picture = "figures/resource_efficient_figure6.svg"
    plots.bits(trained, rounded, floats, docs / picture)
    lines = []
    for key in sorted(trained, key=lambda key: order(*key)):
        start = (key[0], label(key[1]))
        lines.append(line(*start, "trained", percent(floats.get(key), "-"), *_widths(trained[key])))
        if key in rounded:
            lines.append(line(*start, "rounded", percent(100 * results[key]["float"]), *_widths(rounded[key])))
    heads = " | ".join(f"{width} bit{'s' * (width > 1)}" for width in range(1, 9))
    rounding = f"{ROUNDING} " if report else ""
    text = FIGURE6.format(picture=picture, run=trained_on(points), heads=heads, rules="---:|" * 8, rounding=rounding)
    sources = made(read_report(figure6.report), figure6.command)
    return text + "".join(lines) + sources + made(report, "python -m experiments.resource_efficient.rounding")


def _widths(errors: dict[int, float]) -> list[str]:
    return [percent(errors.get(width), "-") for width in range(1, 9)]
