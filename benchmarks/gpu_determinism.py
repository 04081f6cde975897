"""Do two runs of the same training agree on a GPU, and what does it cost? python benchmarks/gpu_determinism.py

Each training runs twice at the same time, in processes of their own, without the cache of compiled code, as usual and
with `deterministic=True`: a search for TAN structures (letter), a dense network (letter), EM for a latent tree
(baudio). Compared are the bytes of all parameters; seconds are those of an epoch after the first call, which compiles.
Writes results/gpu_determinism.json.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from harness import provenance

CASES = ("tan", "net", "latent tree")
MODES, RUNS = (False, True), 2
OUTPUT = Path(__file__).parent / "results" / "gpu_determinism.json"


def measure(case: str, same: bool, epochs: int) -> dict[str, object]:
    """Train once; return a fingerprint of the parameters, and seconds an epoch."""
    import jax
    import numpy as np

    from tinybayes import datasets
    from tinybayes.learn.circuits import latent_mixture, latent_start, latent_training
    from tinybayes.learn.training import candidates
    from tinybayes.learn.training.nets import NetConfiguration, train_nets
    from tinybayes.learn.training.options import TrainingOptions
    from tinybayes.learn.training.tables import TableConfiguration, train_tables

    marks: list[tuple[float, int]] = []
    options = TrainingOptions(epochs=epochs, batch_size=100, deterministic=same)

    def mark(progress: object) -> None:
        marks.append((time.perf_counter(), progress.done))

    arrays: list[np.ndarray] = []
    if case == "latent tree":
        rows = datasets.load("baudio").train
        structure = latent_mixture.find_structure(rows, 1, 0)
        prior = latent_start.pseudocounts(rows, structure.tree, np.full(len(structure.variables), 64), 1.0)
        starts = [latent_start.draw_start(prior, seed) for seed in range(4)]
        for one in latent_training.train_latent(rows, structure.tree, starts, prior, options, report=mark):
            arrays += [one.tables.transition, one.tables.emission]
    else:
        rows = datasets.load("letter").train
        if case == "tan":
            space = candidates.subset(len(rows.variables), 8)
            runs = [TableConfiguration(candidates=space, learning_rate=3e-3, seed=seed) for seed in range(20)]
            arrays = [c.table for one in train_tables(rows, runs, options, report=mark) for c in one.net.cpds]
        else:
            nets = [NetConfiguration(hidden=(64, 64), bits=6, seed=seed) for seed in range(20)]
            trained = train_nets(rows, nets, options, report=mark)
            arrays = [layer.weights for one in trained for layer in one.net.layers]
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in arrays)).hexdigest()[:16]
    (first, done), (last, all_done) = marks[0], marks[-1]
    seconds = (last - first) / max(1, all_done - done)
    return {
        "case": case,
        "deterministic": same,
        "fingerprint": digest,
        "seconds_an_epoch": round(seconds, 5),
        "device": jax.devices()[0].device_kind,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--case", help="run one case in this process and print it")
    parser.add_argument("--same", action="store_true")
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(given.case, given.same, given.epochs)))
        return
    results = []
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    for case in CASES:
        for same in MODES:
            command = [sys.executable, __file__, "--case", case, "--epochs", str(given.epochs)] + ["--same"] * same
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            started = [subprocess.Popen(command, env=environment, **pipes) for _ in range(RUNS)]
            for process in started:
                output, problem = process.communicate()
                if process.returncode:
                    print(case, same, problem[-2000:], flush=True)
                    continue
                results.append(json.loads(output.splitlines()[-1]))
                print(results[-1], flush=True)
    report = provenance(["jax", "numpy"]) | {"epochs": given.epochs, "results": results}
    given.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
