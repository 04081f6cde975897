"""Latent trees on the density data sets: python benchmarks/latent_trees.py [--only nltcs plants | --page-only].

For each data set: a latent tree with 16 hidden states, one cut to two fifths of its edges, and both with their
parameters tied to a few levels. Validation rows choose the epoch. The defaults were found on five of the sets, whose
test figures were seen (docs/learning_circuits.md). Edges are those of the circuit, as for LearnAC: a transition is
three of them. Bits are those of the parameters, 32 each where they are not tied. Seconds are of the wall clock, with
compilation. Needs the density data sets: those that `tinybayes.datasets` knows by name, and others in the directory
`TINYBAYES_DATA`.
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import provenance

from tinybayes import Circuit, Codebook, Dataset, Variable, datasets, learn_latent_tree, model_cost, tie

NAMED = ("nltcs", "plants", "baudio", "msweb", "tmovie", "book", "kdd", "msnbc")
OTHERS = ("jester", "tretail", "kosarek", "pumsb_star", "cwebkb", "bbc")
LEVELS = (8, 16, 32)
SHARE = 0.4  # of the edges that pruning leaves
ROOT = Path(__file__).parents[1]
LEARN_AC = ROOT / "experiments" / "learning_arithmetic_circuits" / "results" / "models.json"
PAGE, BEGIN, END = ROOT / "docs" / "learning_circuits.md", "<!-- latent trees -->", "<!-- end -->"
HEAD = """| data | LearnAC | edges | latent tree | edges | pruned | edges | 16 levels | kB | 32 levels | kB |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def parts(name: str) -> list[Dataset]:
    """Return training, validation and test rows."""
    if name in NAMED:
        split = datasets.load(name)
        assert split.valid is not None
        return [split.train, split.valid, split.test]
    result = []
    for part in ("train", "valid", "test"):
        path = Path(os.environ["TINYBAYES_DATA"]) / "density" / f"{name}.{part}.data.gz"
        with gzip.open(path, "rt") as file:
            X = np.loadtxt(file, delimiter=",", dtype=np.int8)
        result.append(Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(X.shape[1])), None, X))
    return result


def figures(circuit: Circuit, test: Dataset) -> dict[str, object]:
    """Return likelihood and price."""
    cost, tied = model_cost(circuit), isinstance(circuit.format, Codebook)
    return {
        "test": round(float(circuit.log_likelihood(test.X).mean()), 4),
        "edges": circuit.n_edges,
        "parameters": cost.parameters,
        "bits": cost.bits if tied else 32 * cost.parameters,
    }


def measure(name: str, states: int, seed: int) -> list[dict[str, object]]:
    """Learn both trees, and tie their parameters."""
    train, validation, test = parts(name)
    results: list[dict[str, object]] = []
    edges = None
    for form in ("whole", "pruned"):
        limit = None if edges is None else int(SHARE * edges)
        began = time.perf_counter()
        found = learn_latent_tree(train, validation=validation, hidden_states=states, max_edges=limit, seed=seed)
        seconds, edges = round(time.perf_counter() - began, 1), found.circuit.n_edges
        about = {"data": name, "form": form, "hidden_states": states, "seed": seed}
        fit = {"validation": round(found.validation_log_likelihood, 4), "seconds": seconds}
        results.append({**about, "levels": None, **figures(found.circuit, test), **fit})
        for levels in LEVELS:
            results.append({**about, "levels": levels, **figures(tie(found.circuit, levels, counts=train).model, test)})
    return results


def learn_ac() -> dict[str, dict[str, Any]]:
    """Return the circuit of LearnAC (quick) whose prices the validation rows chose, for each data set."""
    rows = json.loads(LEARN_AC.read_text())["table4"]
    return {one["data"]: one for one in rows if one["learner"] == "quick"}


def table(results: list[dict[str, Any]]) -> str:
    """Return the table of the page."""
    lines = [HEAD]
    circuits = learn_ac()
    for name in dict.fromkeys(one["data"] for one in results):
        known = circuits.get(name)
        cells = ["", ""] if known is None else [f"{known['test']:.3f}", f"{known['edges']:,}"]
        for form, levels in (("whole", None), ("pruned", None), ("pruned", 16), ("pruned", 32)):
            one = next(one for one in results if (one["data"], one["form"], one["levels"]) == (name, form, levels))
            cells += [f"{one['test']:.3f}", f"{one['edges']:,}" if levels is None else f"{one['bits'] / 8000:,.1f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |\n")
    return "".join(lines)


def write_page(results: list[dict[str, Any]]) -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"no {BEGIN} ... {END} in {PAGE}"
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(results)}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "latent_trees.json")
    parser.add_argument("--only", nargs="+", default=[*NAMED, *OTHERS])
    parser.add_argument("--states", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page-only", action="store_true", help="rewrite the table of the page from the results")
    options = parser.parse_args()
    kept = json.loads(options.output.read_text())["results"] if options.output.exists() else []
    for name in [] if options.page_only else options.only:
        new = measure(name, options.states, options.seed)
        kept = [one for one in kept if (one["data"], one["hidden_states"]) != (name, options.states)] + new
        for one in new:
            print(one, flush=True)
        found = {**provenance(["jax", "numpy"]), "results": kept}
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    if options.page_only:
        write_page(kept)


if __name__ == "__main__":
    main()
