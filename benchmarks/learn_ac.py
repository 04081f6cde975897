"""Speed of learning circuits: python benchmarks/learn_ac.py [--only kdd].

CPU seconds of one growth after compilation, beside what the authors' own toolkit (Libra 1.1.2, OCaml and C) needed for
the same data, prices and method, measured elsewhere on two shared cores of the same kind. Its penalty for a split
equals `parameter_price` for binary variables. Needs the density data sets (`tinybayes.datasets`).
"""

import argparse
import json
import time
from pathlib import Path

from harness import provenance

# data, method, price of an edge, of a parameter; of Libra: seconds (None where it did not finish or was not run),
# splits, test log-likelihood, edges
CASES = [
    ("nltcs", "quick", 0.1, 0.0, 5.3, 472, -6.0320, 8032),
    ("nltcs", "greedy", 0.1, 0.0, 11.3, 513, -6.0321, 8611),
    ("nltcs", "quick", 0.02, 0.0, 96, 1462, -6.0643, 33630),
    ("kdd", "quick", 1.0, 1.0, 3.9, 362, -2.1891, 5356),
    ("kdd", "quick", 0.1, 1.0, 59, 888, -2.1647, 28419),
    ("kdd", "greedy", 1.0, 1.0, 9.0, 397, -2.1891, 5638),
    ("kdd", "greedy", 0.1, 1.0, None, None, None, None),
    ("msweb", "quick", 1.0, 1.0, 17, 245, -10.135, 5193),
    ("msweb", "quick", 0.1, 1.0, 67, 605, -9.977, 23856),
    ("plants", "quick", 1.0, 5.0, 9.9, 371, -14.455, 9479),
    ("plants", "quick", 0.1, 1.0, None, None, None, None),
    ("plants", "greedy", 0.1, 1.0, None, None, None, None),
    ("tmovie", "quick", 1.0, 1.0, None, None, None, None),
    ("kdd", "quick", 0.02, 1.0, None, None, None, None),
    ("plants", "quick", 0.02, 1.0, None, None, None, None),
    ("tmovie", "greedy", 1.0, 1.0, None, None, None, None),
    ("baudio", "quick", 0.02, 0.5, None, None, None, None),
    ("tmovie", "quick", 0.02, 1.0, None, None, None, None),
]
HEAD = """| data | method | k_e | k_p | ours s | Libra s | ratio | splits | Libra | test LL | Libra | edges | Libra |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def measure(data: str, method: str, edge_price: float, parameter_price: float) -> dict[str, object]:
    from tinybayes import datasets
    from tinybayes.infer.circuit import log_evidence
    from tinybayes.learn.circuits.learn_ac import learn_circuit

    split = datasets.load(data)
    learn_circuit(split.train.rows(slice(0, 100)), edge_price=0.5, method=method)  # compiles, or reads compiled code
    prices = {"edge_price": edge_price, "parameter_price": parameter_price, "method": method}
    times = []
    while True:
        began = time.process_time()
        found = learn_circuit(split.train, **prices)
        times.append(time.process_time() - began)
        if sum(times) > 2 or len(times) == 5:
            break
    return {
        "data": data,
        **prices,
        "cpu_s": round(min(times), 3),
        "splits": len(found.splits),
        "edges": found.growth.edges,
        "score": round(found.growth.score, 3),
        "test": round(float(log_evidence(found.circuit, split.test.X).mean()), 4),
        "looks": found.looks,
        "complete": found.complete,
    }


def row(result: dict[str, object], libra: tuple[float | None, ...]) -> str:
    seconds = libra[0]
    ratio = "" if seconds is None else f"{seconds / float(str(result['cpu_s'])):.0f}"
    shown = ["-" if seconds is None else f"{seconds:g}", *("" if x is None else f"{x:g}" for x in libra[1:])]
    ours = [f"{result[key]:,}" if key == "edges" else f"{result[key]}" for key in ("splits", "test", "edges")]
    cells = [
        result["data"],
        result["method"],
        result["edge_price"],
        result["parameter_price"],
        result["cpu_s"],
        shown[0],
    ]
    cells += [ratio, ours[0], shown[1], ours[1], shown[2], ours[2], shown[3]]
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a data set; may be repeated")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "learn_ac.json")
    options = parser.parse_args()
    results, lines = [], []
    for case in CASES:
        if options.only and case[0] not in options.only:
            continue
        results.append(measure(*case[:4]))
        lines.append(row(results[-1], case[4:]))
        print(lines[-1], end="", flush=True)
    made = provenance(["numba", "numpy"])
    options.output.write_text(json.dumps({**made, "results": results}, indent=1) + "\n")
    options.output.with_suffix(".md").write_text("# Learning circuits\n\n" + HEAD + "".join(lines))


if __name__ == "__main__":
    main()
