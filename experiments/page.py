"""Write docs/results.md and its pictures from the results of the experiments: python experiments/page.py."""

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import nets_page
import plots
from integer_bn_page import integer_networks
from paper import CLOSED_FORM, DATA, TABLE1, label, place
from records import Experiment, Point, folds_of, merged, on_folds_of, provenance, read_report
from wording import DEFAULTS, FIGURE2, FIGURE3, FIGURE5, FIGURE6, FINDINGS1, HEAD, RECOVERY, ROUNDING, SWEEPS, TABLE

from tinybayes.search.sweep import Sweep

HERE = Path(__file__).parent
SIZES = (1.0, 1.1, 1.5, 2.0, 4.0)


def write(experiments: Path, docs: Path) -> None:
    """Write the page and its pictures; a section whose results are missing says so."""
    tan, small = experiments / "differentiable_tan", experiments / "resource_efficient"
    table1, figure3 = Experiment(tan / "table1.toml"), Experiment(tan / "figure3.toml")
    figure5, figure6 = Experiment(small / "figure5.toml"), Experiment(small / "figure6.toml")
    sections = [
        HEAD,
        errors_by_structure(table1),
        over_lambda(table1, docs),
        orderings(figure3, docs),
        recovery(tan / "results" / "recovery.json"),
        price_of_size(figure5, [table1, figure6], docs),
        quantised(figure6, table1, small / "results" / "rounding.json", docs),
        integer_networks(figure6),
        nets_page.section(small, figure6, docs),
        defaults(experiments / "defaults.json"),
        what_was_run([table1, figure3, figure5, figure6]),
    ]
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "results.md").write_text(_wrapped("".join(sections)))


def errors_by_structure(table1: Experiment) -> str:
    report = read_report(table1.report)
    if report is None:
        return _missing(TABLE, table1.command)
    rows = merged(report["results"])
    lines = []
    for data, row in sorted({*rows, *TABLE1}, key=lambda key: place(*key)):
        found = rows.get((data, row), {})
        paper = f"{TABLE1[data, row]:.2f}" if (data, row) in TABLE1 else "not in the paper"
        cells = (_percent(found.get("test"), "not run"), paper, _percent(found.get("validation"), "-"))
        lines.append(_line(data, label(row), f"{found.get('runs', 0):,}", *cells))
    closed = "; ".join(f"{data} {naive:.2f} and {tree:.2f}" for data, (naive, tree) in CLOSED_FORM.items())
    text = f"\nWith closed-form parameters the paper has, for naive Bayes and Chow-Liu: {closed}.\n"
    return TABLE + "".join(lines) + text + FINDINGS1 + _made(report, table1.command)


def over_lambda(table1: Experiment, docs: Path) -> str:
    points = table1.points()
    if not points:
        return _missing(FIGURE2, table1.command)
    picture = "figures/differentiable_tan_figure2.svg"
    plots.by_lambda(points, docs / picture)
    return FIGURE2.format(picture=picture, run=_run(points))


def orderings(figure3: Experiment, docs: Path) -> str:
    points = figure3.points()
    if not points:
        return _missing(FIGURE3, figure3.command)
    picture = "figures/differentiable_tan_figure3.svg"
    plots.orderings_and_candidates(points, docs / picture)
    least = [
        f"- {title}. " + "; ".join(f"{name}: {min(p.error for p in found):.2f}" for name, found in series.items())
        for title, series in plots.figure3_series(points).items()
        if series
    ]
    text = FIGURE3.format(picture=picture, run=_run(points), least="\n".join(least))
    return text + _made(read_report(figure3.report), figure3.command)


def recovery(path: Path) -> str:
    report = read_report(path)
    command = "python experiments/differentiable_tan/recovery.py"
    if report is None:
        return _missing(RECOVERY, command)
    lines = [
        _line(r["data"], r["features"], r["candidates"], f"{', '.join(map(str, r['agree']))} of {r['features']}")
        for r in report["results"]
    ]
    seeds = max(len(r["agree"]) for r in report["results"])
    return RECOVERY.format(epochs=report["epochs"], seeds=seeds) + "".join(lines) + _made(report, command)


def price_of_size(figure5: Experiment, others: Sequence[Experiment], docs: Path) -> str:
    points = figure5.points()
    if not points:
        return _missing(FIGURE5, figure5.command)
    naive = {data: min(p.parameters for p in points if p.sweep.data == data) for data in {p.sweep.data for p in points}}
    for point in (p for other in others for p in on_folds_of(figure5, other) if p.sweep.structure == "naive"):
        naive[point.sweep.data] = point.parameters  # the size itself, where the search did not get down to it
    picture = "figures/resource_efficient_figure5.svg"
    plots.sizes(points, naive, docs / picture)
    lines = []
    for data in DATA:
        found = [(p.parameters / naive[data], p.error) for p in points if p.sweep.data == data]
        least = [min((e for size, e in found if size <= limit), default=None) for limit in (*SIZES, float("inf"))]
        lines.append(_line(data, *(_percent(error, "-") for error in least)) if found else "")
    heads = " | ".join(f"{size:g}x" for size in SIZES)
    text = FIGURE5.format(picture=picture, run=_run(points), heads=heads, rules="---:|" * len(SIZES))
    return text + "".join(lines) + _made(read_report(figure5.report), figure5.command)


def quantised(figure6: Experiment, table1: Experiment, baseline: Path, docs: Path) -> str:
    points = figure6.points()
    if not points:
        return _missing(FIGURE6, figure6.command)
    trained: dict[tuple[str, str], dict[int, float]] = {}
    for point in points:
        row = trained.setdefault((point.sweep.data, point.sweep.structure), {})
        width = sum(point.setting["bits"])
        row[width] = min(row.get(width, 100.0), point.error)
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
    for key in sorted(trained, key=lambda key: place(*key)):
        start = (key[0], label(key[1]))
        lines.append(_line(*start, "trained", _percent(floats.get(key), "-"), *_widths(trained[key])))
        if key in rounded:
            lines.append(_line(*start, "rounded", _percent(100 * results[key]["float"]), *_widths(rounded[key])))
    heads = " | ".join(f"{width} bit{'s' * (width > 1)}" for width in range(1, 9))
    rounding = f"{ROUNDING} " if report else ""
    text = FIGURE6.format(picture=picture, run=_run(points), heads=heads, rules="---:|" * 8, rounding=rounding)
    made = _made(read_report(figure6.report), figure6.command)
    return text + "".join(lines) + made + _made(report, "python experiments/resource_efficient/rounding.py")


def defaults(path: Path) -> str:
    report = read_report(path)
    if report is None:
        return _missing(DEFAULTS, "python experiments/defaults.py")
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for result in report["results"]:
        row = rows.setdefault((result["data"], result["structure"]), {})
        row[result["case"]] = f"{result['error']:.2f} ({result['seconds']:.0f})"
    cases = ("closed form", "hybrid", "search")
    return DEFAULTS + "".join(_line(*key, *(row.get(case, "") for case in cases)) for key, row in rows.items())


def what_was_run(experiments: Iterable[Experiment]) -> str:
    lines = []
    for experiment in experiments:
        for sweep in experiment.sweeps:
            searched = sweep.structure not in ("naive", "chow-liu", "random", "all")
            ranges = (_range(sweep.lam), _range(sweep.gamma), _range(sweep.eta))
            rates = ", ".join(f"{rate:g}" for rate in sweep.learning_rates)
            epochs = f"{sweep.short_epochs}, then {sweep.epochs}" if sweep.short_epochs else str(sweep.epochs)
            start = (experiment.file.name, sweep.name, sweep.k if searched else "", sweep.settings)
            lines.append(_line(*start, *ranges, rates, epochs, f"{len(experiment.runs.get(sweep.name, {})):,}"))
    return SWEEPS + "".join(lines)


def _run(points: Sequence[Point]) -> str:
    """Say what was trained, by data set, from the sweeps and what is in the store."""
    parts = []
    for data in DATA:
        inside = [p for p in points if p.sweep.data == data]
        sweeps: dict[str, Sweep] = {p.sweep.name: p.sweep for p in inside}
        if not sweeps:
            continue
        epochs = " or ".join(str(e) for e in sorted({s.epochs for s in sweeps.values()}))
        folds = {folds_of(s) for s in sweeps.values()}
        where = " (first fold only)" if data == "satimage" and folds == {1} else ""
        parts.append(f"{data}{where} {len(inside):,} settings for {epochs} epochs")
    return f"Trained: {'; '.join(parts)}."


def _widths(errors: dict[int, float]) -> list[str]:
    return [_percent(errors.get(width), "-") for width in range(1, 9)]


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"


def _percent(error: float | None, otherwise: str = "") -> str:
    return otherwise if error is None else f"{error:.2f}"


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _made(report: dict | None, command: str) -> str:
    return f"\n`{command}`: {provenance(report)}.\n" if report else ""


def _wrapped(page: str) -> str:
    """Break the lines of prose; tables, headings, lists and pictures stay."""
    parts = [
        part if part.startswith(("|", "#", "-", "!")) else textwrap.fill(part, 120, break_on_hyphens=False)
        for part in page.strip().split("\n\n")
    ]
    return "\n\n".join(parts) + "\n"


def _missing(section: str, command: str) -> str:
    heading = section.strip().splitlines()[0]
    return f"\n{heading}\n\nNot run yet: `{command}`.\n"


def main() -> None:
    write(HERE, HERE.parent / "docs")


if __name__ == "__main__":
    main()
