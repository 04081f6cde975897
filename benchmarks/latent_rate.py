"""Speed of EM for latent trees: python benchmarks/latent_rate.py [--device gpu].

One training step is a pass up and a pass down for every row of a mini-batch, and the update of all parameters. Edges
are those of the sums: the entries of the transitions and emissions, and not the edges of products, so a circuit of this
package has two to three times as many. The rate is edges times rows over the wall seconds of whole epochs, after
compilation, mini-batches drawn on the device. The data: baudio, and 60,000 rows of 784 binary variables that are noisy
copies of each other along a random tree, the size of mnist. PyJuice states 1.9e11 for training on an RTX 4090 (60,000
rows through 2.56 million edges in 0.8 seconds, its README); it was not run here.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from harness import provenance
from latent_trees import parts

from tinybayes import Dataset, Variable
from tinybayes.learn.circuits.latent_mixture import find_structure
from tinybayes.learn.circuits.latent_start import draw_start, pseudocounts
from tinybayes.learn.circuits.latent_steps import LatentSteps
from tinybayes.learn.circuits.latent_training import LatentRun
from tinybayes.learn.training import engine
from tinybayes.learn.training.options import TrainingOptions

CASES = [("baudio", 16, 512), ("baudio", 64, 512), ("baudio", 128, 1024), ("copies", 16, 512), ("copies", 64, 512)]
CASES += [("copies", 128, 512), ("copies", 128, 2048)]
SECONDS = 3.0  # of a measurement, at least


def copies(rows: int = 60_000, variables: int = 784, seed: int = 0) -> Dataset:
    """Return noisy copies along a random tree."""
    generator = np.random.default_rng(seed)
    X = np.empty((rows, variables), np.int8)
    X[:, 0] = generator.integers(0, 2, rows)
    for v in range(1, variables):
        X[:, v] = X[:, generator.integers(v)] ^ (generator.random(rows) < 0.1)
    return Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(variables)), None, X)


def measure(name: str, data: Dataset, states: int, batch: int) -> dict[str, object]:
    """Train for whole epochs until `SECONDS` are over."""
    structure = find_structure(data, 1, 0)
    prior = pseudocounts(data, structure.tree, np.full(len(structure.variables), states), 1.0)
    options = TrainingOptions(epochs=1000, batch_size=batch)
    run = LatentRun(data, LatentSteps(structure.tree, 2), [draw_start(prior, 0)], prior, options, None)
    edges = int((prior.transition > 0).sum() + (prior.emission > 0).sum())

    def epochs(count: int) -> float:
        began = time.perf_counter()
        bounds = jnp.asarray(0), jnp.asarray(count), jnp.asarray(1000)
        key = jax.random.key(0)
        run.states = engine.run_epochs(run.states, run.fixed, run.rows, bounds, key, steps=run.steps, batch=batch)
        jax.block_until_ready(run.states)
        return time.perf_counter() - began

    first, one = epochs(1), epochs(1)
    count = max(1, round(SECONDS / one))
    seconds = epochs(count) / count
    used = len(data) // batch * batch
    return {
        "data": name,
        "rows": len(data),
        "variables": len(data.variables),
        "hidden_states": states,
        "depth": len(structure.tree.levels),
        "batch_size": batch,
        "edges": edges,
        "seconds_an_epoch": round(seconds, 4),
        "compile_s": round(first - one, 1),
        "edge_rows_a_second": float(f"{edges * used / seconds:.3g}"),
        "device": jax.devices()[0].device_kind,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "latent_rate.json")
    parser.add_argument("--cases", type=int, nargs="+", default=range(len(CASES)))
    given = parser.parse_args()
    results = []
    for name, states, batch in (CASES[i] for i in given.cases):
        data = copies() if name == "copies" else parts(name)[0]
        results.append(measure(name, data, states, batch))
        print(results[-1], flush=True)
        report = {"command": " ".join(["python", *sys.argv]), **provenance(["jax", "numpy"]), "results": results}
        given.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
