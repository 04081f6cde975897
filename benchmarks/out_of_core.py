"""Learning from Parquet larger than memory: python benchmarks/out_of_core.py [--rows 1e8] [--kinds codes,...].

Writes 20 columns (19 features and a class) with a seed into a temporary directory, then measures steps, each in a
process of its own: opening the file (finding the variables), naive Bayes, Chow-Liu with its parameters, both from one
pass, and all of it from the path to the two models. Every time right after a plain scan of the same file (pyarrow reads
all columns in batches), so that both meet the same machine. Seconds of wall and CPU time, the best of --repeat; the
peak memory of the process. Everything runs once on a small file before, so that no compilation is timed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import provenance

KINDS = {
    "codes": "int8, 4 to 12 values",
    "text": "dictionaries of 4 to 12 short texts",
    "floats": "float32, cut by 8 quantiles",
    "floats-mdlp": "float32, cut by MDLP",
}
STEPS = ("open", "naive", "chow-liu", "both", "all")
FEATURES, CLASSES, GROUP = 19, 4, 1_000_000
HEAD = """# Learning from Parquet larger than memory

Written by `benchmarks/out_of_core.py` from `out_of_core.json`: {rows:,} rows, 19 features and a class of 4 values, row
groups of a million rows, {cores} cores; load before {before:.1f}, after {after:.1f}. Seconds of wall time, the best of
{repeat}; behind it, as a share of the speed of a plain scan (pyarrow reads all columns in batches) in the same process,
by wall time and by CPU time. *Open* finds the states or the cut points, the next three learn from the opened file
(*both* from one pass), *all* goes from the path to both models. *Peak* is the memory of the process that did *all*,
scan included.

| columns | file GB | scan s | open s | naive Bayes s | Chow-Liu s | both s | all s | peak MB |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def write(path: Path, kind: str, rows: int, seed: int) -> None:
    """Write features in chains of three that begin at the class."""
    generator = np.random.default_rng(seed)
    writer = None
    for start in range(0, rows, GROUP):
        table = group(kind, min(GROUP, rows - start), generator)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=GROUP)
    assert writer is not None
    writer.close()


def group(kind: str, rows: int, generator: np.random.Generator) -> pa.Table:
    y = generator.integers(0, CLASSES, rows, dtype=np.int8)
    columns: dict[str, object] = {}
    parent = y
    for j in range(FEATURES):
        parent = parent if j % 3 else y
        if kind.startswith("floats"):
            columns[f"x{j}"] = parent = (
                np.float32(0.5) * parent + generator.standard_normal(rows, dtype=np.float32)
            ).astype(np.float32)
            continue
        states = 4 + j % 9
        noise = generator.integers(0, states, rows, dtype=np.int8)
        parent = np.where(generator.random(rows, dtype=np.float32) < 0.4, (parent + j) % states, noise).astype(np.int8)
        texts = pa.array([f"s{k}" for k in range(states)])
        columns[f"x{j}"] = parent if kind == "codes" else pa.DictionaryArray.from_arrays(pa.array(parent), texts)
    return pa.table(columns | {"y": y})


def work(step: str, kind: str, path: str, warm: str, repeat: int) -> None:
    """Do one step in this process: once on the small file, then on the large one."""
    from tinybayes.data import Discretization, _table, open_dataset
    from tinybayes.learn import learn_classifier
    from tinybayes.learn.closed_form.counts import remember

    _table.SMALL = 0  # the small file is read as the large one is
    cuts = {"floats": "quantile", "floats-mdlp": "mdlp"}.get(kind)
    discretization = Discretization(discretizer=cuts)

    def scan(place: str) -> None:
        with pq.ParquetFile(place, pre_buffer=False) as file:
            for _ in file.iter_batches():
                pass

    def learn(data: object) -> None:
        data = open_dataset(data, target="y", discretization=discretization) if isinstance(data, str) else data
        kept = remember(data) if step in ("both", "all") else data
        if step in ("chow-liu", "both", "all"):
            learn_classifier(kept, structure="chow-liu")
        if step in ("naive", "both", "all"):
            learn_classifier(kept, structure="naive")

    def timed(call: Callable[[Any], None], argument: object) -> dict[str, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        call(argument)
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    scan(warm)
    learn(warm)
    given = path if step in ("open", "all") else open_dataset(path, target="y", discretization=discretization)
    pairs = [(timed(scan, path), timed(learn, given)) for _ in range(repeat)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"scan": [pair[0] for pair in pairs], "step": [pair[1] for pair in pairs]}
    print(json.dumps({**found, "peak_mb": peak, "load": os.getloadavg()[0]}))


def measure(kind: str, rows: int, folder: Path, seed: int, repeat: int) -> dict[str, Any]:
    path, warm = folder / f"{kind}.parquet", folder / f"{kind}-small.parquet"
    write(path, kind, rows, seed)
    write(warm, kind, 20_000, seed)
    found: dict[str, Any] = {"kind": kind, "columns": KINDS[kind], "rows": rows, "file_bytes": path.stat().st_size}
    for step in STEPS:
        command = [sys.executable, __file__, "--work", step, kind, str(path), str(warm), str(repeat)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[step] = json.loads(done.stdout)
        print(kind, step, done.stdout.strip(), flush=True)
    path.unlink()
    return found


def row(found: dict[str, Any]) -> str:
    def best(step: str, part: str, clock: str) -> float:
        return min(times[clock] for times in found[step][part])

    def cell(step: str) -> str:
        shares = [best(step, "scan", clock) / best(step, "step", clock) for clock in ("wall", "cpu")]
        return f"{best(step, 'step', 'wall'):.2f} ({shares[0]:.2f}, {shares[1]:.2f})"

    scan = min(best(step, "scan", "wall") for step in STEPS)
    cells = [found["columns"], f"{found['file_bytes'] / 1e9:.2f}", f"{scan:.2f}", *map(cell, STEPS)]
    return "| " + " | ".join([*cells, f"{found['all']['peak_mb']:,.0f}"]) + " |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**8)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to make the temporary directory")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "out_of_core.json")
    options = parser.parse_args()
    about = provenance(["numba", "numpy", "pyarrow"])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        kinds = options.kinds.split(",")
        results = [measure(k, options.rows, Path(folder), options.seed, options.repeat) for k in kinds]
    found = {**about, "repeat": options.repeat, "load_after": os.getloadavg()[0], "results": results}
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    loads = {"before": about["load_before"], "after": found["load_after"]}
    head = HEAD.format(rows=options.rows, cores=about["cores"], repeat=options.repeat, **loads)
    options.output.with_suffix(".md").write_text(head + "".join(map(row, results)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:6], repeat=int(sys.argv[6]))
    else:
        main()
