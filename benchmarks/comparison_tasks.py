"""The measurements of `run_all.py`, each in a process of its own: ``python comparison_tasks.py TASK LIBRARY SETTINGS``.

The last line of a process is a JSON object of figures. What a library does not have is not measured; what is not
installed says so.
"""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
from harness import Figures, provenance

LIBRARIES = {  # as people call them: as installed, as imported
    "tinybayes": ("tinybayes", "tinybayes"),
    "scikit-learn": ("scikit-learn", "sklearn.naive_bayes"),
    "pyAgrum": ("pyagrum", "pyagrum"),
    "pgmpy": ("pgmpy", "pgmpy.models"),
    "pomegranate": ("pomegranate", "pomegranate.bayesian_network"),
    "emlearn": ("emlearn", "emlearn"),
    "m2cgen": ("m2cgen", "m2cgen"),
    "micromlgen": ("micromlgen", "micromlgen"),
    "Orange": ("Orange3", "Orange.preprocess.discretize"),  # for its discretisation alone
}
NETWORKS = ("alarm", "hailfinder", "andes")


def installed(library: str) -> bool:
    """Tell whether a library can be imported, without importing it."""
    try:
        return importlib.util.find_spec(LIBRARIES[library][1].split(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def repeated(call: Callable[[], object], seconds: float, most: int = 30) -> Figures:
    """Time the first call apart, which may load or compile code; then take the least of several."""
    times: list[float] = []
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    if first > seconds:
        return {"seconds": first, "first": first, "repetitions": 1}
    while len(times) < 3 or (sum(times) < seconds and len(times) < most):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {"seconds": min(times), "first": first, "repetitions": len(times)}


# ------------------------------------------------------------------------------ import, installed size


def footprint(library: str, settings: Figures) -> Figures:
    """Time the import in new processes; add up the files of the package and of all that it requires."""
    package, module = LIBRARIES[library]

    def once(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True)
        return time.perf_counter() - start

    load = f"import {module}" if library != "tinybayes" else "from tinybayes import BayesNetClassifier"
    once(load)
    loads, empty = ([once(code) for _ in range(settings["processes"])] for code in (load, "pass"))
    own, everything, missing = sizes(package)
    return {
        "import_s": min(loads) - min(empty),
        "own_bytes": own,
        "all_bytes": everything,
        "required": len(closure(package)) - 1,
        "absent": missing,
    }


def sizes(package: str) -> tuple[int, int, list[str]]:
    """Return bytes of a package's files, of all that it requires with it, and what is required but not installed."""
    own, total, missing = 0, 0, []
    for name in closure(package):
        try:
            size = weight(distribution(name))
        except PackageNotFoundError:
            missing.append(name)
            continue
        own = size if normal(name) == normal(package) else own
        total += size
    return own, total, missing


def weight(found: Distribution) -> int:
    """Add up what was installed, without compiled caches; of an editable install, the package itself."""
    files = [Path(str(f.locate())) for f in found.files or ()]
    if normal(found.metadata["Name"]) == "tinybayes" and not any(f.name == "py.typed" for f in files):
        files = list(Path(str(importlib.util.find_spec("tinybayes").origin)).parent.rglob("*"))
    return sum(f.stat().st_size for f in files if f.is_file() and "__pycache__" not in f.parts)


def closure(package: str) -> list[str]:
    """Return a package and all that it requires, without extras."""
    from packaging.requirements import Requirement

    waiting, seen = [package], {}
    while waiting:
        name = waiting.pop()
        if normal(name) in seen:
            continue
        seen[normal(name)] = name
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        needs = (Requirement(line) for line in lines)
        waiting += [n.name for n in needs if n.marker is None or n.marker.evaluate({"extra": ""})]
    return list(seen.values())


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# ----------------------------------------------------------------------------------- trees, cut points


def tree(library: str, settings: Figures) -> Figures:
    """Learn the plain Chow-Liu tree over all columns; tell how much information its edges have together."""
    with np.load(settings["rows"]) as file:
        X, states = file["X"], file["states"]
    names = [f"x{j}" for j in range(X.shape[1])]
    if library == "tinybayes":
        from tinybayes import Dataset, Variable, chow_liu

        variables = tuple(Variable(n, tuple(range(k))) for n, k in zip(names, states.tolist(), strict=True))
        data = Dataset(variables, None, X, None)
        return repeated(lambda: chow_liu(data), settings["seconds"])
    if library == "pgmpy":
        os.environ["TQDM_DISABLE"] = "1"
        import pandas
        from pgmpy.estimators import TreeSearch

        frame = pandas.DataFrame(X, columns=names)

        def learn() -> object:
            return TreeSearch(frame, root_node="x0", n_jobs=1).estimate("chow-liu", show_progress=False)

        return repeated(learn, settings["seconds"])
    import torch
    from pomegranate.bayesian_network import BayesianNetwork

    tensor = torch.tensor(X, dtype=torch.int32)
    return repeated(lambda: BayesianNetwork(algorithm="chow-liu").fit(tensor), settings["seconds"])


def cut_points(library: str, settings: Figures) -> Figures:
    """Find the cut points of Fayyad and Irani."""
    from discretisation import orange, ours

    with np.load(settings["rows"]) as file:
        X, y = file["X"], file["y"]
    found: list[Any] = []
    figures = repeated(lambda: found.append((ours if library == "tinybayes" else orange)(X, y)), settings["seconds"])
    return {**figures, "cuts": sum(map(len, found[-1]))}


# ------------------------------------------------------------------------------------- exact inference


def inference(library: str, settings: Figures) -> Figures:
    """Ask for the posteriors of all variables, a fifth of them observed: one query at a time, and a batch."""
    import circuit_inference as exact

    from tinybayes.infer import compile_circuit
    from tinybayes.infer.circuit import posteriors, sample

    exact.SECONDS = settings["seconds"]
    net = exact.read(settings["network"])
    exact.warm_up()
    start = time.perf_counter()
    circuit = compile_circuit(net)
    compiling = time.perf_counter() - start
    rows = sample(circuit, exact.BATCH, 1)
    rows = np.where(np.random.default_rng(0).random(rows.shape) < exact.OBSERVED, rows, -1)
    if library == "tinybayes":
        posteriors(circuit, rows[:1])
        batch = exact.best(lambda: posteriors(circuit, rows))
        one = exact.one_by_one(lambda row: posteriors(circuit, row), rows)
        return {"one_ms": 1e3 * one, "batch_ms": 1e3 * batch / len(rows), "prepare_s": compiling}
    expected = posteriors(circuit, rows[:3])
    if library == "pyAgrum":
        found = {engine: exact.peer(net, engine, rows, expected, "all") for engine in exact.ENGINES}
        best = min((engine for engine in found if "one_ms" in found[engine]), key=lambda e: found[e]["one_ms"])
        return {**found[best], "engine": best}
    return eliminate(net, rows, expected, circuit.first_state, settings["seconds"])


def eliminate(net, rows: np.ndarray, expected: np.ndarray, first_state: np.ndarray, seconds: float) -> Figures:
    """Ask pgmpy, whose queries are for one variable at a time, for all of them."""
    os.environ["TQDM_DISABLE"] = "1"
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork

    model, cards = DiscreteBayesianNetwork(), [node.cardinality for node in net.nodes]
    model.add_nodes_from(range(len(cards)))
    model.add_edges_from((p, i) for i, cpd in enumerate(net.cpds) for p in cpd.parents)
    for i, cpd in enumerate(net.cpds):
        above = {"evidence": list(cpd.parents), "evidence_card": [cards[p] for p in cpd.parents]} if cpd.parents else {}
        model.add_cpds(TabularCPD(i, cards[i], np.exp(cpd.log_parameters).T, **above))
    engine, times, difference = VariableElimination(model), [], 0.0
    for row, posterior in zip(rows, expected, strict=False):
        start = time.perf_counter()
        known = {int(v): int(row[v]) for v in np.flatnonzero(row >= 0)}
        hidden = np.flatnonzero(row < 0).tolist()
        found = [engine.query([v], evidence=known, show_progress=False).values for v in hidden]
        times.append(time.perf_counter() - start)
        mine = np.concatenate([posterior[first_state[v] : first_state[v + 1]] for v in hidden])
        difference = max(difference, float(np.abs(np.concatenate(found) - mine).max()))
        if sum(times) > seconds:
            break
    return {"one_ms": 1e3 * float(np.median(times)), "largest_difference": difference, "engine": "VariableElimination"}


TASKS: dict[str, Callable[[str, Figures], Figures]] = {
    "footprint": footprint,
    "tree": tree,
    "cut points": cut_points,
    "inference": inference,
}


def main() -> None:
    warnings.simplefilter("ignore")
    task, library, settings = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print is not ours to parse
    print(json.dumps(TASKS[task](library, json.loads(settings))), file=out, flush=True)


def about() -> Figures:
    return provenance([package for package, _ in LIBRARIES.values()] + ["numpy", "numba", "torch"])


if __name__ == "__main__":
    main()
