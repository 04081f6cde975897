"""Speed of training by gradient: python benchmarks/training.py [--configurations 100 --epochs 500].

Bayesian networks, and dense networks of 6 bits with noise in their inputs. On a CPU: one configuration; seconds of CPU
time an epoch after compilation, seconds until the first epoch is done, peak memory of the process. On a GPU: all
configurations for all epochs, wall seconds with compilation. Each case runs in a process of its own, without the cache
of compiled code. The public TensorFlow reference needs, on two cores, in CPU
seconds an epoch, 0.48 (letter naive), 2.5 (letter TAN), 4.9 (satimage TAN) and about 27 (usps TAN), measured elsewhere.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

from harness import provenance

CASES = [("letter", "naive", 100), ("letter", "subset", 100), ("satimage", "subset", 50), ("usps", "subset", 100)]
CASES += [("digits", "44x44", 100), ("letter", "116x116", 100)]


def measure(data: str, structure: str, batch: int, configurations: int, epochs: int) -> dict[str, object]:
    import jax

    from tinybayes import datasets
    from tinybayes.learn import naive_bayes
    from tinybayes.learn.training import candidates
    from tinybayes.learn.training.nets import NetConfiguration, train_nets
    from tinybayes.learn.training.options import TrainingOptions
    from tinybayes.learn.training.tables import TableConfiguration, train_tables

    rows, _ = datasets.load(data)
    options, seeds = TrainingOptions(epochs=epochs, batch_size=batch), range(configurations)
    marks: list[tuple[int, float, float]] = []

    def mark(progress: object) -> None:
        marks.append((progress.done, time.perf_counter() - began, time.process_time()))

    began = time.perf_counter()
    if "x" in structure:
        hidden = tuple(int(width) for width in structure.split("x"))
        nets = [NetConfiguration(hidden=hidden, bits=6, input_noise=0.2, mixup=0.2, seed=seed) for seed in seeds]
        train_nets(rows, nets, options, networks=False, report=mark)
    else:
        naive = structure == "naive"
        space = candidates.fixed(naive_bayes(rows)) if naive else candidates.subset(len(rows.variables), 8)
        runs = [TableConfiguration(candidates=space, learning_rate=3e-3, seed=seed) for seed in seeds]
        train_tables(rows, runs, options, networks=False, report=mark)
    wall = time.perf_counter() - began
    (first, first_wall, first_cpu), (last, _, last_cpu) = marks[0], marks[-1]
    return {
        "data": data,
        "structure": structure,
        "configurations": configurations,
        "epochs": epochs,
        "device": jax.devices()[0].device_kind,
        "wall_s": round(wall, 2),
        "first_epoch_s": round(first_wall, 2),
        "cpu_s_per_epoch": round((last_cpu - first_cpu) / max(1, last - first), 4),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "jax": jax.__version__,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configurations", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--case", type=int, help="run one case in this process and print it")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "training.json")
    options = parser.parse_args()
    if options.case is not None:
        print(json.dumps(measure(*CASES[options.case], options.configurations, options.epochs)))
        return
    results = []
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    for case in range(len(CASES)):
        command = [sys.executable, __file__, "--case", str(case)]
        command += ["--configurations", str(options.configurations), "--epochs", str(options.epochs)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
        print(results[-1], flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    made = provenance(["jax", "numpy"])
    options.output.write_text(json.dumps({**made, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
