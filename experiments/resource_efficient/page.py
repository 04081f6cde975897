"""The sections of docs/results.md on *Resource-efficient classifiers*: prices of size and bits, and other networks."""

from collections.abc import Sequence
from pathlib import Path

from experiments.markdown import line, made, missing, percent
from experiments.records import DATA, Experiment, Point, label, on_folds_of, order, trained_on
from experiments.resource_efficient import bayes_claims, claims, nets_page, plots
from experiments.resource_efficient.bits import ROWS, SHORT, TRIED, of_first_fold
from experiments.resource_efficient.integer_bn_page import integer_networks
from experiments.store import Record, read_report
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

![Test error over the bits of an entry, for naive Bayes and a searched tree on each data set]({picture})

Structures are naive Bayes and, as in the paper, the tree that the best run of TAN Subset in Table 1 found. *rounded*:
the float32 tables of one model, the best of Table 1, in the best of 1 to 6 integer bits. *trained*: the best of the
trainings through fixed point, at least 32 for each number of bits with both learning rates, and of those that start
from the float tables with small learning rates. These two and *float32* are **chosen on test rows**. *trained, chosen
on validation rows* is the setting that was best on a held-out tenth after {short} epochs; no test row was looked at,
but {tried} settings a format and few epochs are a weak choice. In {cells} cells of the table, trained tables have
more errors than rounded ones in {lost}.{folds}

Of these {cells} cells, the training that starts from the float tables is the best one in {started}, mostly from 4
bits on: a tree that a search has found, trained from scratch, does not get back to the error that it had at the end
of the search, whose sampled parents act like dropout. At 1 to 3 bits training from scratch is better. The paper finds
that one or two bits hurt naive Bayes more than the tree, and that letter gains up to six or seven bits while usps
needs few.

| data | structure | tables | float32 | {heads} |
|---|---|---|---:|{rules}
"""
BITS = "python -m experiments.resource_efficient.bits"
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
        price_of_size(figure5, [figure6, table1], docs),
        quantised(folder / "results" / "bits.json", docs),
        integer_networks(figure6, [of_first_fold(one) for one in _results(folder, "bits")]),
        nets_page.section(folder, figure6, docs),
        judged(folder, figure5, figure6, [figure6, table1]),
    ]


def judged(folder: Path, figure5: Experiment, figure6: Experiment, others: Sequence[Experiment]) -> str:
    """Return the table of all claims."""
    nets, points = nets_page.results(folder, figure6), figure5.points()
    bits, integer, ours = (_results(folder, name) for name in ("bits", "integer_bn", "integer_ours"))
    bits = _on_equal_folds(bits)
    best: dict[tuple[str, str, int], Record] = {}
    for one in bits:
        for run in one["trained"]:
            key = one["data"], ROWS[one["structure"]], run["bits"]
            best[key] = min(run, best.get(key, run), key=lambda record: record["error"])
    found = bayes_claims.Results(
        points,
        _naive_sizes(points, figure5, others),
        {(one["data"], ROWS[one["structure"]]): _least(one["trained"]) for one in bits},
        {one["data"]: _least(of_first_fold(one)["trained"]) for one in bits if one["structure"] == "naive"},
        {(one["data"], ROWS[one["structure"]]): _least(one["rounded"]) for one in bits},
        best,
        integer,
        ours,
    )
    rows = table(bayes_claims.CLAIMS, found) + table(claims.CLAIMS, nets).removeprefix(HEAD)
    return VERDICTS.format(count=counted([(bayes_claims.CLAIMS, found), (claims.CLAIMS, nets)])) + rows


def _results(folder: Path, name: str) -> list[Record]:
    return list((read_report(folder / "results" / f"{name}.json") or {"results": []})["results"])


def _naive_sizes(points: Sequence[Point], figure5: Experiment, others: Sequence[Experiment]) -> dict[str, float]:
    """Return the parameters of naive Bayes: the least of the search, or what the last sweep over naive Bayes says.

    Table 1 comes last, since the images of mnist in `figure6.toml` are scaled in another way.
    """
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


def quantised(path: Path, docs: Path) -> str:
    report = read_report(path)
    if report is None:
        return missing(FIGURE6, BITS)
    results = {(one["data"], ROWS[one["structure"]]): one for one in report["results"]}
    trained = {key: _least(one["trained"]) for key, one in results.items()}
    rounded = {key: _least(one["rounded"]) for key, one in results.items()}
    floats = {key: 100 * one["float"] for key, one in results.items()}
    picture = "figures/resource_efficient_figure6.svg"
    plots.bits(trained, rounded, floats, docs / picture)
    lines = []
    for key in sorted(results, key=lambda key: order(*key)):
        start, kinds = (key[0], label(key[1])), results[key]["trained"]
        validated = _least([one for one in kinds if one["kind"] == "validation"])
        lines.append(line(*start, "trained", percent(floats[key]), *_widths(trained[key])))
        lines.append(line(*start, "rounded", "", *_widths(rounded[key])))
        lines.append(line(*start, "trained, chosen on validation rows", "", *_widths(validated)))
    cells = [(key, width) for key in results for width in trained[key]]
    of_start = {key: _least([o for o in one["trained"] if o["kind"] == "started"]) for key, one in results.items()}
    text = FIGURE6.format(
        picture=picture,
        short=SHORT,
        tried=TRIED,
        folds=_folds(report["results"]),
        cells=len(cells),
        lost=sum(trained[key][width] > rounded[key][width] for key, width in cells) or "none",
        started=sum(of_start[key][width] == trained[key][width] for key, width in cells),
        heads=" | ".join(f"{width} bit{'s' * (width > 1)}" for width in range(1, 9)),
        rules="---:|" * 8,
    )
    runs = {"provenance": [m for one in report["results"] for m in one.get("provenances", [one["provenance"]])]}
    return text + "".join(lines) + made(runs, BITS)


def _on_equal_folds(results: Sequence[Record]) -> list[Record]:
    """Return results that can be compared: of the first fold where not all structures were run on the others."""
    alone = {one["data"] for one in results if "floats" not in one}
    return [of_first_fold(one) if one["data"] in alone else one for one in results]


def _folds(results: Sequence[Record]) -> str:
    """Say which results are means of folds, and which of a first fold."""
    run = {(one["data"], one["structure"]): len(one.get("floats", [0])) for one in results if one["data"] == "satimage"}
    if not run:
        return ""
    if set(run.values()) == {1}:
        return " satimage is its first fold."
    text = " Errors on satimage are means of its five folds; the settings are those that its first fold has chosen."
    alone = [label(ROWS[structure]) for (_, structure), folds in run.items() if folds == 1]
    return text + (f" {alone[0]} is run on the first fold alone, where the verdicts compare both." if alone else "")


def _least(runs: Sequence[Record]) -> dict[int, float]:
    """Return the smallest error in percent for each number of bits."""
    errors: dict[int, float] = {}
    for one in runs:
        errors[one["bits"]] = min(errors.get(one["bits"], 100.0), 100 * one["error"])
    return errors


def _widths(errors: dict[int, float]) -> list[str]:
    return [percent(errors.get(width), "-") for width in range(1, 9)]
