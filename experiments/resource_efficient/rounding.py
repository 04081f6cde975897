"""The baseline of Figure 6 of resource_efficient_bn_classifiers: train in floats, round afterwards.

python -m experiments.resource_efficient.rounding [--epochs 500]

Naive Bayes and the tree of Chow and Liu are trained by gradient, each with one good setting of the loss. Their tables
are then rounded to every format of 1 to 8 bits with 1 to 6 of them before the binary point. For each number of bits the
best of these formats is kept, looked up on the test rows, as the figure does for training through quantised tables.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from experiments.provenance import provenance
from experiments.store import write_report
from tinybayes import datasets
from tinybayes.compress import quantize
from tinybayes.infer import evaluate
from tinybayes.learn import chow_liu
from tinybayes.learn.closed_form.structures import naive_bayes
from tinybayes.learn.training import candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, train_tables
from tinybayes.model import BayesNet, Dataset, Fixed

BITS, INTEGER_BITS = range(1, 9), range(1, 7)
BATCH = {"letter": 100, "usps": 100, "satimage": 50}
SETTINGS: dict[tuple[str, str], dict[str, float]] = {
    ("letter", "naive"): {"lam": 61, "gamma": 1.24, "eta": 10, "learning_rate": 3e-2},
    ("letter", "chow-liu"): {"lam": 43, "gamma": 6.9, "eta": 2, "learning_rate": 3e-3},
    ("usps", "naive"): {"lam": 290, "gamma": 69, "eta": 12, "learning_rate": 3e-3},
    ("usps", "chow-liu"): {"lam": 26, "gamma": 56, "eta": 3, "learning_rate": 3e-3},
    ("satimage", "naive"): {"lam": 30, "gamma": 30, "eta": 10, "learning_rate": 3e-3},
    ("satimage", "chow-liu"): {"lam": 30, "gamma": 30, "eta": 10, "learning_rate": 3e-3},
}


def rounded(net: BayesNet, test: Dataset, bits: int) -> dict[str, Any]:
    """Return the least test error of the network in a format with so many bits, and the format."""
    formats = [Fixed(integer, bits - integer) for integer in INTEGER_BITS]
    errors = [evaluate(quantize(net, one), test).error for one in formats]
    best = min(range(len(formats)), key=errors.__getitem__)
    return {"bits": bits, "integer": formats[best].integer, "error": round(errors[best], 6)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "rounding.json")
    options = parser.parse_args()
    began = time.perf_counter()
    results = []
    for (data, structure), setting in SETTINGS.items():
        rows, test = datasets.load(data)
        tree = naive_bayes(rows) if structure == "naive" else chow_liu(rows)
        run = TableConfiguration(candidates=candidates.fixed(tree), **setting)
        net = train_tables(rows, [run], TrainingOptions(epochs=options.epochs, batch_size=BATCH[data], device="cpu"))[
            0
        ].net
        assert net is not None  # a tree is always a network
        result = {
            "data": data,
            "structure": structure,
            "setting": setting,
            "float": round(evaluate(net, test).error, 6),
        }
        results.append({**result, "rounded": [rounded(net, test, bits) for bits in BITS]})
        print(results[-1], flush=True)
    report = {"command": " ".join(sys.argv), "epochs": options.epochs, "results": results}
    write_report(options.output, {"provenance": provenance(time.perf_counter() - began), **report})


if __name__ == "__main__":
    main()
