"""Write docs/results.md from the results of the experiments: python experiments/page.py."""

import json
from pathlib import Path

HERE = Path(__file__).parent
# Table 1 of differentiable_tan: best test errors in percent, chosen on the test rows.
PAPER = {
    ("letter", "naive"): 12.93,
    ("letter", "chow-liu"): 9.37,
    ("letter", "random"): 10.66,
    ("letter", "subset"): 8.73,
    ("letter", "pseudo"): 7.98,
    ("satimage", "naive"): 10.83,
    ("satimage", "chow-liu"): 9.91,
    ("satimage", "random"): 9.83,
    ("satimage", "subset"): 9.31,
    ("usps", "naive"): 4.29,
    ("usps", "chow-liu"): 3.42,
    ("usps", "random"): 2.65,
    ("usps", "subset"): 2.10,
}
HEAD = """# Results

Written by `experiments/page.py` from the files under `experiments/*/results`.

## Differentiable TAN, Table 1

Test errors in percent. *Chosen on test* is the papers' protocol: the best of all final runs, looked up on the test
rows. *Chosen on validation* is the test error of the setting that was best on a tenth of the training rows, in the
first stage. *Runs* counts both stages; the paper ran 500 settings (naive Bayes, Chow-Liu) or 25 to 50 structures with
100 settings each, all with two learning rates. Order-free TAN is not in the paper.

| data | structure | runs | chosen on test | paper | chosen on validation |
|---|---|---:|---:|---:|---:|
"""


DEFAULTS = """
## Defaults

Test errors in percent on a CPU with two cores (`python experiments/defaults.py`); in brackets the seconds, with
compiled code on disk. *Search* is `n_configs=20`. Nothing was chosen on test rows; the defaults themselves were chosen
on held-out training rows of these four data sets.

| data | structure | closed form | hybrid | search |
|---|---|---:|---:|---:|
"""


def defaults() -> str:
    results = json.loads((HERE / "defaults.json").read_text())["results"]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for result in results:
        row = rows.setdefault((result["data"], result["structure"]), {})
        row[result["case"]] = f"{result['error']:.2f} ({result['seconds']:.0f})"
    lines = [
        f"| {data} | {structure} | " + " | ".join(row.get(c, "") for c in ("closed form", "hybrid", "search")) + " |"
        for (data, structure), row in rows.items()
    ]
    return DEFAULTS + "\n".join(lines) + "\n"


def main() -> None:
    report = json.loads((HERE / "differentiable_tan" / "results" / "table1.json").read_text())
    lines = []
    for result in report["results"]:
        best, chosen = (f"{100 * result[key]['error']:.2f}" for key in ("best_on_test", "chosen_on_validation"))
        paper = PAPER.get((result["data"], result["structure"]))
        shown = "" if paper is None else f"{paper:.2f}"
        lines.append(f"| {result['data']} | {result['structure']} | {result['runs']:,} | {best} | {shown} | {chosen} |")
    made = report["provenance"]
    versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    foot = (
        f"\n{made['date'][:10]}, {made['seconds']:.0f} s on {made['device']}, Python {made['python']}, {versions}, "
        f"commit {made['commit'][:12]}, `tinybayes reproduce experiments/differentiable_tan/table1.toml`.\n"
    )
    (HERE.parent / "docs" / "results.md").write_text(HEAD + "\n".join(lines) + "\n" + foot + defaults())


if __name__ == "__main__":
    main()
