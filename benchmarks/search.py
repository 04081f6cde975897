"""How fast a sweep over small dense networks runs: many configurations on letter, trained at once.

python benchmarks/search.py [--configurations 1000] [--epochs 500] [-o FILE]
"""

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np
from harness import provenance

from tinybayes.data import named
from tinybayes.learn.training.net_sizes import hidden_within
from tinybayes.learn.training.nets import NetConfiguration, train_nets
from tinybayes.learn.training.options import TrainingOptions


def configurations(count: int, seed: int) -> list[NetConfiguration]:
    """Draw networks with one or two hidden layers within the bits of naive Bayes at 1 to 8 bits (3822 parameters)."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        bits, layers = int(generator.integers(1, 9)), int(generator.integers(2, 4))
        budget = 3822 * int(generator.integers(1, 9))
        size = {"layers": layers, "weight_bits": bits, "inputs": 16, "classes": 26}
        hidden = hidden_within(budget, "bits", image=None, batch_norm=True, **size)
        rate = float(generator.choice([3e-2, 3e-3, 3e-4]))
        found.append(NetConfiguration(hidden=hidden, bits=bits, learning_rate=rate, seed=number))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configurations", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    train, test = named.load("letter")
    runs = configurations(options.configurations, options.seed)
    began = time.perf_counter()
    results = train_nets(train, runs, TrainingOptions(epochs=options.epochs, batch_size=100), test=test, networks=False)
    seconds = time.perf_counter() - began
    errors = sorted(result.test_error for result in results)
    found = {
        "what": "dense networks on letter, compilation included",
        "configurations": len(runs),
        "epochs": options.epochs,
        "batch_size": 100,
        "seed": options.seed,
        "device": jax.devices()[0].device_kind,
        "seconds": round(seconds, 1),
        "weights": int(np.mean([16 * r.hidden[0] + r.hidden[-1] * 26 for r in runs])),
        "test_errors": {"least": errors[0], "median": errors[len(errors) // 2]},
        "provenance": provenance(["jax", "numpy"]),
    }
    print(json.dumps(found, indent=1))
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
