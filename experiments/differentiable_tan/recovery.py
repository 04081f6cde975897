"""Section 4.6 of the paper: does the search find the tree of Chow and Liu?

python -m experiments.differentiable_tan.recovery

With lambda = 0 the loss is the negative log-likelihood, whose best tree is known in closed form. Features are ordered
so that this tree is in the search space, every earlier feature is a candidate (on usps seven random ones beside the
parent in the tree), and the chosen parents are counted that agree with it.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from experiments.provenance import provenance
from experiments.store import write_report
from experiments.training import train_tables
from tinybayes import datasets
from tinybayes.learn import chow_liu
from tinybayes.learn.training import candidates
from tinybayes.learn.training.candidates import Candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration

CASES = {"letter": (100, None), "satimage": (50, None), "usps": (100, 8)}
SEEDS = 5


def space(parent: np.ndarray, k: int | None, seed: int) -> Candidates:
    """Order the features so that parents come first; offer the parent in the tree and other earlier features."""
    generator = np.random.default_rng(seed)
    order: list[int] = []
    while len(order) < len(parent):
        free = [i for i in range(len(parent)) if i not in order and (parent[i] < 0 or parent[i] in order)]
        order.append(int(generator.choice(free)))
    chosen: list[list[int]] = [[] for _ in parent]
    for position, i in enumerate(order):
        others = [j for j in generator.permutation(order[:position]).tolist() if j != parent[i]]
        mixed = ([int(parent[i])] if parent[i] >= 0 else []) + others[: None if k is None else k - 1]
        chosen[i] = generator.permutation(np.array(mixed, dtype=int)).tolist()
    return candidates.among(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "recovery.json")
    options = parser.parse_args()
    began = time.perf_counter()
    results = []
    for data, (batch, k) in CASES.items():
        rows, _ = datasets.load(data)
        tree = candidates.fixed(chow_liu(rows)).parent[:, 0]
        runs = [
            TableConfiguration(candidates=space(tree, k, seed), lam=0.0, learning_rate=3e-2, seed=seed)
            for seed in range(SEEDS)
        ]
        trained = train_tables(rows, runs, TrainingOptions(epochs=options.epochs, batch_size=batch), networks=False)
        agree = [int((np.array(result.parents) == tree).sum()) for result in trained]
        results.append({"data": data, "features": len(tree), "candidates": k or "all", "agree": agree})
        print(results[-1], flush=True)
    report = {"command": " ".join(sys.argv), "epochs": options.epochs, "results": results}
    write_report(options.output, {"provenance": provenance(time.perf_counter() - began), **report})


if __name__ == "__main__":
    main()
