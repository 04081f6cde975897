"""Tables trained on a CPU by loops of Numba, beside XLA's code for the same steps: python benchmarks/table_epochs.py.

Two configurations, with the settings of long training; seconds of CPU and of the clock for an epoch after the first
ones, the least of two processes each, by turns. In a search the loops get faster towards the end, when fewer tables
are chosen: `whole` is a training of 500 epochs of one configuration, in CPU seconds, for the loops alone. The kernels
are on disk. Needs the named data sets.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import provenance

CASES = [
    ("iris", "naive", 0),
    ("letter", "naive", 0),
    ("letter", "chow-liu", 0),
    ("letter", "subset", 0),
    ("letter", "order-free", 0),
    ("satimage", "naive", 0),
    ("satimage", "chow-liu", 4),
    ("satimage", "subset", 0),
    ("usps", "naive", 0),
    ("usps", "subset", 0),
]
BATCH = {"letter": 100, "usps": 100, "satimage": 50, "iris": 50}
LOSS = {"letter": (110.0, 18.0), "satimage": (10.2, 70.8), "usps": (107.4, 89.5), "iris": (30.0, 10.0)}  # lambda, gamma
ENGINES = ("loops", "xla")


def measure(data: str, structure: str, bits: int, engine: str, whole: bool) -> dict[str, float]:
    from tinybayes import datasets
    from tinybayes.learn.closed_form.chow_liu import chow_liu
    from tinybayes.learn.closed_form.structures import naive_bayes
    from tinybayes.learn.training import candidates, table_epochs
    from tinybayes.learn.training.options import TrainingOptions
    from tinybayes.learn.training.tables import TableConfiguration, train_tables
    from tinybayes.model import Fixed, Float

    if engine == "xla":
        table_epochs.suits = lambda *_: False
    rows, _ = datasets.load(data)
    features = len(rows.variables)
    spaces = {
        "naive": lambda: candidates.fixed(naive_bayes(rows)),
        "chow-liu": lambda: candidates.fixed(chow_liu(rows)),
        "subset": lambda: candidates.subset(features, 8),
        "order-free": lambda: candidates.order_free(features),
    }
    lam, gamma = LOSS[data]
    form = Fixed(3, bits - 3) if bits else Float()
    hyper = {"candidates": spaces[structure](), "lam": lam, "gamma": gamma, "learning_rate": 3e-3}
    searched = structure in ("subset", "order-free")
    count, epochs = (1, 500) if whole else (2, 10 if searched else 2000 if data == "iris" else 30)
    runs = [TableConfiguration(seed=seed, number_format=form, **hyper) for seed in range(count)]
    marks: list[tuple[int, float, float]] = []
    options = TrainingOptions(epochs=epochs, batch_size=BATCH[data])
    began = time.process_time()
    train_tables(
        rows,
        runs,
        options,
        networks=False,
        report=lambda p: marks.append((p.done, time.process_time(), time.perf_counter())),
    )
    if whole:
        return {"whole_cpu_s": round(time.process_time() - began, 2)}
    (first, *start), (last, *end) = marks[1], marks[-1]
    cpu, wall = ((b - a) / (last - first) / count for a, b in zip(start, end, strict=True))
    return {"cpu_ms": round(1000 * cpu, 3), "wall_ms": round(1000 * wall, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", help="run one case in this process and print it")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "table_epochs.json")
    options = parser.parse_args()
    if options.case is not None:
        print(json.dumps(measure(*json.loads(options.case))))
        return
    results = []
    for case in CASES:
        result: dict[str, Any] = dict(zip(("data", "structure", "bits"), case, strict=True))
        for engine in ENGINES * 2:
            figures = _run([*case, engine, False])
            result[engine] = min(figures, result.get(engine, figures), key=lambda one: one["cpu_ms"])
        result |= _run([*case, "loops", True])
        result["ratio_cpu"] = round(result["xla"]["cpu_ms"] / result["loops"]["cpu_ms"], 1)
        result["ratio_wall"] = round(result["xla"]["wall_ms"] / result["loops"]["wall_ms"], 1)
        results.append(result)
        print(result, flush=True)
    made = provenance(["jax", "numpy", "numba"])
    options.output.write_text(json.dumps({**made, "results": results}, indent=1) + "\n")


def _run(case: list[Any]) -> dict[str, float]:
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
