"""Counting the rows of leaves by lists of states and by bits: python benchmarks/leaf_counts.py.

Learns a network of decision trees from each density data set, and recounts all leaves that it ever had, both
ways; CPU milliseconds, the smallest of five. Then the CPU seconds of the whole learner, which chooses by density,
and with lists alone. Needs the density data sets.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
from harness import provenance

from tinybayes import datasets
from tinybayes._kernels.grow import N_PARTS, Table, count_leaf
from tinybayes.learn.circuits import pools
from tinybayes.learn.circuits.learn_ac import State
from tinybayes.learn.circuits.options import CircuitOptions

PRICES = {"nltcs": 2, "msnbc": 2, "kdd": 3, "plants": 5, "baudio": 7, "msweb": 5, "book": 7, "tmovie": 7}
HEAD = """# Counting leaves

Written by `benchmarks/leaf_counts.py` from `leaf_counts.json`. *States* are those of a row that are not the most common
ones of their variables, on average; *words* the words of 64 bits of a row. The learner takes the way in *chosen*.

| data | rows | of weight one | states | words | leaves | lists ms | bits ms | times | chosen | lists only s | ours s |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|
"""


@numba.njit
def count_all(table, parts, order, count, work):
    whole = np.zeros(2)
    for part in range(count):
        i = parts.variable[part]
        count_leaf(table, order[i, parts.begin[part] : parts.end[part]], table.columns[i], whole, work)


def least(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(5):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def grow(table: Table, price: float) -> State:
    state = State(table, CircuitOptions(edge_price=None, parameter_price=price))
    state.run_all(None)
    return state


def measure(name: str) -> dict[str, object]:
    table = pools.distinct_rows(datasets.load(name).train)
    columns, words = np.ascontiguousarray(table.columns.T), -(-len(table.listed) // 64)
    lists = table._replace(bits=np.zeros((len(table.weight), 0), np.uint64))
    bits = table._replace(bits=pools.bits_of(columns, table.first_state, table.listed))
    state = grow(table, PRICES[name])
    count = int(state.numbers[N_PARTS])
    result: dict[str, object] = {
        "data": name,
        "rows": len(table.weight),
        "of_weight_one": round(float((table.weight == 1).mean()), 3),
        "states": round(len(table.entries) / len(table.weight), 2),
        "words": words,
        "leaves": count,
    }
    for label, rows in (("lists_ms", lists), ("bits_ms", bits)):
        counting = rows, state.parts, state.order, count, pools.work(rows)
        result[label] = round(1000 * least(lambda counting=counting: count_all(*counting)), 2)
    result["chosen"] = "bits" if table.bits.shape[1] else "lists"
    for label, rows in (("lists_alone_s", lists), ("learner_s", table)):
        result[label] = round(least(lambda rows=rows: grow(rows, PRICES[name])), 4)
    return result


def row(result: dict[str, object]) -> str:
    cells = list(result.values())
    cells.insert(8, f"{cells[6] / cells[7]:.1f}")
    return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells) + " |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "leaf_counts.json")
    options = parser.parse_args()
    results = []
    for name in PRICES:
        results.append(measure(name))
        print(row(results[-1]), end="", flush=True)
    found = {**provenance(["numba", "numpy"]), "results": results}
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    options.output.with_suffix(".md").write_text(HEAD + "".join(map(row, results)))


if __name__ == "__main__":
    main()
