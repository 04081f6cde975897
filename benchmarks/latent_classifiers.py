"""What training for the class adds to latent trees: python benchmarks/latent_classifiers.py [--only german vowel].

Classifiers by circuits on the twelve tables of `flash.py`, on their own split: LearnAC, latent trees by EM alone
(`discriminative=False`), and latent trees trained further for the class, all with their defaults. Test errors in
percent, log loss in nats, edges, and seconds of the wall clock with compilation. Needs the directory `tables` in
`TINYBAYES_DATA`. Writes results/latent_classifiers.json, and the table in docs/learning_circuits.md.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from deploy_tables import LABEL, Table, load_files
from harness import provenance

from tinybayes import CircuitClassifier

TABLES = ("chess", "contraceptive", "crx", "german", "ionosphere", "marketing", "movement_libras", "mushroom")
TABLES += ("phoneme", "ring", "splice", "vowel")
METHODS: dict[str, dict[str, Any]] = {
    "LearnAC": {},
    "EM": {"method": "latent", "discriminative": False},
    "for the class": {"method": "latent"},
}
OUTPUT = Path(__file__).parent / "results" / "latent_classifiers.json"
PAGE = Path(__file__).parents[1] / "docs" / "learning_circuits.md"
BEGIN, END = "<!-- latent classifiers -->", "<!-- end of latent classifiers -->"
HEAD = """| table | error: LearnAC | EM | for the class | log loss: LearnAC | EM | for the class | edges of the last |
|---|---:|---:|---:|---:|---:|---:|---:|
"""


def measure(name: str, table: Table, method: str) -> dict[str, Any]:
    """Fit a classifier and look at the test rows."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # LearnAC leaves rows with gaps out
        model = CircuitClassifier(**METHODS[method]).fit(table.train[table.features], table.train[LABEL])
    seconds = time.perf_counter() - began
    posteriors, codes = model.predict_proba(table.test[table.features]), table.codes(table.test)
    own = np.maximum(posteriors[np.arange(len(codes)), codes], 1e-12)
    return {
        "data": name,
        "method": method,
        "error": round(float((posteriors.argmax(axis=1) != codes).mean()), 5),
        "log_loss": round(float(-np.log(own).mean()), 4),
        "edges": int(model.n_edges_),
        "seconds": round(seconds, 1),
    }


def page(results: list[dict[str, Any]]) -> str:
    """Return the table of the page, and the means."""
    by_method = {(one["data"], one["method"]): one for one in results}
    names = [name for name in TABLES if all((name, method) in by_method for method in METHODS)]
    lines = [HEAD]
    for name in names:
        own = [by_method[name, method] for method in METHODS]
        cells = [f"{100 * one['error']:.1f}" for one in own] + [f"{one['log_loss']:.3f}" for one in own]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {own[-1]['edges']:,} |\n")
    means = [np.mean([100 * by_method[name, m]["error"] for name in names]) for m in METHODS]
    losses = [np.mean([by_method[name, m]["log_loss"] for name in names]) for m in METHODS]
    lines.append(
        "| mean | " + " | ".join([f"{one:.1f}" for one in means] + [f"{one:.3f}" for one in losses]) + " | |\n"
    )
    return "".join(lines)


def write_page(results: list[dict[str, Any]]) -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"no {BEGIN} ... {END} in {PAGE}"
    PAGE.write_text(f"{before}{BEGIN}\n\n{page(results)}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=TABLES)
    parser.add_argument("--page-only", action="store_true", help="rewrite the table of the page from the results")
    options = parser.parse_args()
    kept = json.loads(OUTPUT.read_text())["results"] if OUTPUT.exists() else []
    for name in [] if options.page_only else options.only:
        table = load_files(name)
        kept = [one for one in kept if one["data"] != name]
        for method in METHODS:
            kept.append(measure(name, table, method))
            print(kept[-1], flush=True)
        command = {"command": "python benchmarks/latent_classifiers.py"}
        OUTPUT.write_text(json.dumps(command | provenance(["jax", "numpy"]) | {"results": kept}, indent=1) + "\n")
    write_page(kept)


if __name__ == "__main__":
    main()
