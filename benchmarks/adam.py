"""Our Adam beside optax's in the training loop: python benchmarks/adam.py.

Seconds of an epoch after compilation (CPU time on a CPU, with one configuration; wall time on a GPU, with 100), the
least of three processes each, by turns. Needs optax, and the data sets letter and satimage.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import provenance

DATA = ("letter", "satimage")


def use_optax() -> None:
    """Let the steps take optax's update; it must come before they are imported."""
    import jax
    import optax

    from tinybayes.learn.training import optimizer

    rule = optax.scale_by_adam(b1=optimizer.BETA1, b2=optimizer.BETA2, eps=optimizer.EPSILON)

    def adam(moments: optimizer.Moments, gradient: Any, rate: jax.Array, step: jax.Array) -> optimizer.Moments:
        state = optax.ScaleByAdamState(step - 1, moments.first, moments.second)
        updates, state = rule.update(gradient, state)
        return optimizer.Moments(jax.tree.map(lambda p, u: p - rate * u, moments.value, updates), state.mu, state.nu)

    optimizer.adam = adam


def measure(name: str) -> dict[str, Any]:
    import jax

    from tinybayes import datasets
    from tinybayes.learn.training import candidates, table_epochs
    from tinybayes.learn.training.options import TrainingOptions
    from tinybayes.learn.training.tables import TableConfiguration, train_tables

    table_epochs.suits = lambda *_: False  # on a CPU, too, the steps in JAX are compared
    rows, _ = datasets.load(name)
    gpu = jax.default_backend() == "gpu"
    count, epochs = (100, 60) if gpu else (1, 10)
    space = candidates.subset(len(rows.variables), 8)
    runs = [TableConfiguration(candidates=space, learning_rate=3e-3, seed=seed) for seed in range(count)]
    marks: list[tuple[int, float]] = []
    clock = time.perf_counter if gpu else time.process_time
    options = TrainingOptions(epochs=epochs, batch_size=100)
    train_tables(rows, runs, options, networks=False, report=lambda p: marks.append((p.done, clock())))
    (first, began), (last, ended) = marks[1], marks[-1]
    return {"device": jax.devices()[0].device_kind, "seconds": (ended - began) / (last - first)}


def main() -> None:
    if len(sys.argv) > 2:
        if sys.argv[1] == "optax":
            use_optax()
        print(json.dumps(measure(sys.argv[2])))
        return
    results = []
    for name in DATA:
        least: dict[str, float] = {}
        for optimizer in ("ours", "optax") * 3:
            command = [sys.executable, __file__, optimizer, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            figures = json.loads(done.stdout.splitlines()[-1])
            least[optimizer] = min(figures["seconds"], least.get(optimizer, figures["seconds"]))
        ratio = round(least["optax"] / least["ours"], 3)
        results.append({"data": name, "device": figures["device"], **least, "optax / ours": ratio})
        print(results[-1], flush=True)
    path = Path(__file__).parent / "results" / "adam.json"
    known = json.loads(path.read_text()) if path.exists() else {"provenance": {}, "results": []}
    device = results[0]["device"]
    made = {**known["provenance"], device: provenance(["jax", "numpy", "optax"])}
    others = [run for run in known["results"] if run["device"] != device]
    path.write_text(json.dumps({"provenance": made, "results": others + results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
