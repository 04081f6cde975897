"""How much a learned circuit depends on the rows: python -m experiments.learning_arithmetic_circuits.subsets.

Some models of Table 4 are worse after retraining on more rows. Here quick learns from the training rows, from all
training and validation rows, and from random parts of these that are as large as the training rows, at prices for
which it takes a second. If the parts differ as much as retraining does, the rows decide which local optimum is found,
not their number. The prices were picked for speed; results/subsets.json has the test log-likelihoods.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.provenance import provenance
from experiments.store import Record, write_report
from tinybayes import datasets
from tinybayes.infer.likelihood import log_likelihood
from tinybayes.learn.circuits.learn_ac import learn_circuit

DATA, PRICES, DRAWS = ("plants", "msweb", "nltcs"), {"edge_price": 0.1, "parameter_price": 0.5}, 10


def measure(name: str) -> Record:
    """Learn from each set of rows; return the mean log-likelihood of a test row of each model."""
    split = datasets.load(name)
    both, n = np.concatenate([split.train.X, split.valid.X]), len(split.train)
    parts = [both[np.random.default_rng(seed).permutation(len(both))[:n]] for seed in range(DRAWS)]

    def test(rows: np.ndarray) -> float:
        grown = learn_circuit(replace(split.train, X=rows), **PRICES, method="quick")
        return round(float(log_likelihood(grown.net, split.test.X).mean()), 4)

    return {"data": name, "train": test(split.train.X), "all": test(both), "parts": [test(rows) for rows in parts]}


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    began, results = time.monotonic(), []
    for name in DATA:
        results.append(measure(name))
        print(results[-1], flush=True)
    made = provenance(time.monotonic() - began, packages=("numba", "numpy"))
    write_report(
        Path(__file__).parent / "results" / "subsets.json",
        {"provenance": made, "prices": PRICES, "results": results},
    )


if __name__ == "__main__":
    main()
