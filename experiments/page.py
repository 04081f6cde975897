"""Write the pages of results and their pictures from the stored results: python -m experiments.page.

docs/results.md, docs/results_circuits.md and docs/results_tying.md depend on the results alone, so that they can be
committed and compared. A section whose results are missing says how to get them.
"""

from collections.abc import Iterable
from pathlib import Path

from experiments.differentiable_tan import page as differentiable_tan
from experiments.learning_arithmetic_circuits import page as circuits
from experiments.markdown import line, missing, wrapped
from experiments.parameter_tying import page as tying
from experiments.records import Experiment
from experiments.resource_efficient import page as resource_efficient
from experiments.store import read_report

HERE = Path(__file__).parent
HEAD = """# Results

Written by `python -m experiments.page` from the files under `experiments/*/results`; nothing is typed in by hand
except the numbers of the papers. Errors are test errors in percent, on satimage the mean of its five folds unless a
section says otherwise. [Named data sets](datasets.md) has the splits and discretisations; the papers' discretisation
of mnist is not public, so its numbers are not those of the papers' data.

**Chosen on test rows** marks what was picked by looking at the test rows, as the papers do. Such a number can be
compared with the papers', but it is too good as a forecast for new rows. **Chosen on validation rows** marks numbers
for which no test row was looked at.
"""
DEFAULTS = """
## Defaults

Test errors in percent on a CPU with two cores (`python -m experiments.defaults`); in brackets the seconds, with
compiled code on disk. *Search* is `n_configs=20`. Nothing was chosen on test rows; the defaults themselves were
chosen on held-out training rows of these four data sets. satimage is its first fold.

| data | structure | closed form | hybrid | search |
|---|---|---:|---:|---:|
"""
SWEEPS = """
## What was run

Every sweep of the files above. A setting draws lambda and gamma uniformly on a log scale and eta uniformly, and takes
the learning rates in turn. With two stages, all settings are trained for the epochs of the first on nine tenths of
the training rows, and those best on test rows and on validation rows go on. *Runs* counts what is in the store.

| file | sweep | K | settings | log10 lambda | log10 gamma | eta | learning rates | epochs | runs |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def write(experiments: Path, docs: Path) -> None:
    """Write all pages and their pictures."""
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "results.md").write_text(classifiers(experiments, docs))
    (docs / "results_circuits.md").write_text(circuits.page(experiments / "learning_arithmetic_circuits", docs))
    (docs / "results_tying.md").write_text(tying.page(experiments / "parameter_tying", docs))


def classifiers(experiments: Path, docs: Path) -> str:
    """Return the page on the two papers about classifiers, and draw its pictures."""
    tan, small = experiments / "differentiable_tan", experiments / "resource_efficient"
    files = (tan / "table1.toml", tan / "figure3.toml", small / "figure5.toml", small / "figure6.toml")
    run = [Experiment(file) for file in files]
    sections = [
        HEAD,
        *differentiable_tan.sections(tan, docs),
        *resource_efficient.sections(small, run[0], docs),
        defaults(experiments / "defaults.json"),
        what_was_run(run),
    ]
    return wrapped("".join(sections))


def defaults(path: Path) -> str:
    report = read_report(path)
    if report is None:
        return missing(DEFAULTS, "python -m experiments.defaults")
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for result in report["results"]:
        row = rows.setdefault((result["data"], result["structure"]), {})
        row[result["case"]] = f"{result['error']:.2f} ({result['seconds']:.0f})"
    cases = ("closed form", "hybrid", "search")
    return DEFAULTS + "".join(line(*key, *(row.get(case, "") for case in cases)) for key, row in rows.items())


def what_was_run(experiments: Iterable[Experiment]) -> str:
    lines = []
    for experiment in experiments:
        for sweep in experiment.tables:
            searched = sweep.structure not in ("naive", "chow-liu", "random", "all")
            ranges = (_range(sweep.lam), _range(sweep.gamma), _range(sweep.eta))
            rates = ", ".join(f"{rate:g}" for rate in sweep.learning_rates)
            epochs = f"{sweep.short_epochs}, then {sweep.epochs}" if sweep.short_epochs else str(sweep.epochs)
            start = (experiment.file.name, sweep.name, sweep.k if searched else "", sweep.settings)
            lines.append(line(*start, *ranges, rates, epochs, f"{len(experiment.runs.get(sweep.name, {})):,}"))
    return SWEEPS + "".join(lines)


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"


if __name__ == "__main__":
    write(HERE, HERE.parent / "docs")
