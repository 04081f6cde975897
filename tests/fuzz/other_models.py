"""Random densities and trees as C, and random models of all kinds as JavaScript; every answer must be that of Python.

    python tests/fuzz/other_models.py --count 300 -o tests/fuzz/results.json

The C is built with all warnings and sanitizers; JavaScript runs in Node.js. `models.py` does this for the other models
in C. What a batch got wrong, is one mismatch.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers"), str(HERE.parent / "deploy" / "programs")]

from models import random_classifier  # noqa: E402
from run import machine, read_results, say, write_results  # noqa: E402

from density_host import DensityCase, random_latent, run_c  # noqa: E402
from javascript_host import run_javascript  # noqa: E402
from neural_nets import neural_net  # noqa: E402
from raw_values import float_rows, int_rows  # noqa: E402
from tinybayes import tie  # noqa: E402
from tinybayes.deploy.export import export  # noqa: E402
from tinybayes.deploy.programs.plan import make_plan  # noqa: E402
from tinybayes.errors import TinybayesError  # noqa: E402
from tinybayes.infer import class_scores, compile_circuit  # noqa: E402
from tinybayes.infer.alarm import Alarm  # noqa: E402
from tinybayes.infer.integer_circuit import integer_posterior  # noqa: E402
from tinybayes.infer.integers import integer_log_joint  # noqa: E402
from tinybayes.infer.neural_net import net_scores  # noqa: E402
from tinybayes.infer.trees import tree_scores  # noqa: E402
from tinybayes.model import Circuit, Cuts, Grid, Integers, NeuralNet, TreeEnsemble, Variable  # noqa: E402
from tree_ensembles import tree_ensemble  # noqa: E402
from tree_host import TreeCase, run_trees  # noqa: E402

BATCH = 10  # models in one build
ROWS = 40
KINDS = ("densities in C", "trees in C", "JavaScript")


def random_variables(rng: np.random.Generator, kind: str) -> tuple[Variable, ...]:
    """Draw variables of all encodings that take numbers of one kind."""
    made = []
    for i in range(int(rng.integers(1, 8))):
        states, whole = int(rng.integers(2, 7)), kind == "int"
        cuts = np.unique(np.round(rng.normal(0, 8, states), 0 if whole else 2))
        every = (
            Cuts(cuts.tolist(), integer=whole),
            Grid(-8, 4, states, integer=True) if whole else Grid(-1, 0.25, states),
            Integers(-2, states - 3),
        )
        chosen = int(rng.integers(4))
        text = Variable(f"v{i}", tuple(f"s{k}" for k in range(states)))
        made.append(text if chosen == 3 else Variable.from_encoding(f"v{i}", every[chosen]))
    return tuple(made)


def densities(rng: np.random.Generator, directory: Path) -> tuple[int, list[str]]:
    """Draw latent circuits with and without an alarm, some of few levels, and compare their programs."""
    cases = []
    for number in range(BATCH):
        kind = str(rng.choice(["int", "float"]))
        variables = random_variables(rng, kind)
        cut = float(rng.choice([0.0, 0.6]))
        circuit = random_latent(variables, int(rng.integers(1, 7)), seed=int(rng.integers(2**31)), cut=cut)
        levels = int(rng.integers(2, 17))
        if rng.random() < 0.4 and len(np.unique(circuit.log_parameters)) >= levels:
            circuit = tie(circuit, levels).model
        alarm = Alarm(float(rng.uniform(-20, -1)), float(rng.uniform(0.1, 12)), 0.05, 100)
        options: dict[str, Any] = {"alarm": alarm} if rng.random() < 0.7 else {}
        values = (int_rows if kind == "int" else float_rows)(variables, rng, ROWS)
        case = DensityCase(f"m{number}", circuit, values, rng.integers(0, 256, (ROWS, len(variables))), options)
        if case.plan.features.raw == kind:
            cases.append(case)
    wrong = [case.name for case, found in zip(cases, run_c(directory, cases), strict=True) if not same(case, found)]
    return len(cases), wrong


def same(case: DensityCase, found: Any) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(found, case.expected(), strict=True))


def some_trees(rng: np.random.Generator) -> TreeEnsemble:
    kind, symmetric = str(rng.choice(["class", "all", "votes"])), bool(rng.random() < 0.3)
    states = [int(k) for k in rng.integers(1, 40 if rng.random() < 0.1 else 9, rng.integers(1, 8))]
    return tree_ensemble(
        int(rng.integers(1, 12)),
        leaves=int(2 ** rng.integers(1, 4)) if symmetric else int(rng.integers(1, 20)),
        kind=kind,
        sets=float(rng.choice([0.0, 0.5])),
        states=states,
        classes=int(rng.integers(2, 8)),
        symmetric=symmetric,
        seed=int(rng.integers(2**31)),
    )


def trees(rng: np.random.Generator, directory: Path) -> tuple[int, list[str]]:
    """Draw trees of all kinds, in the form that the price chooses or in another one."""
    cases = []
    while len(cases) < BATCH:
        model, form = some_trees(rng), [None, "nested", "nodes", "levels"][int(rng.integers(4))]
        kind = np.dtype(make_plan(model, "none", gaps=True).features.state.removesuffix("_t"))
        states = np.array([v.cardinality for v in model.variables])
        given = rng.integers(0, states, (ROWS, len(states)))
        given = np.where(rng.random(given.shape) < 0.2, np.iinfo(kind).max, given)
        codes = np.where(given < states, given, -1).astype(np.int32)
        case = TreeCase(f"m{len(cases)}", model, given.astype(kind), codes, form=form)
        try:
            case.export("c")
        except TinybayesError:
            continue  # levels are of symmetric trees
        cases.append(case)
    wrong = []
    for case, (labels, scores) in zip(cases, run_trees(directory, cases), strict=True):
        exact = tree_scores(case.model, case.codes)
        if not (np.array_equal(scores, exact) and np.array_equal(labels, exact.argmax(axis=1))):
            wrong.append(case.name)
    return len(cases), wrong


def javascript(rng: np.random.Generator, directory: Path) -> tuple[int, list[str]]:
    """Draw models of all kinds, and compare scores, bit for bit where they are integers."""
    wrong = []
    for number in range(BATCH):
        draw = int(rng.integers(4))
        if draw == 0:
            model: Any = some_trees(rng)
        elif draw == 1:
            hidden = tuple(int(u) for u in rng.integers(1, 12, rng.integers(0, 3)))
            options: dict[str, Any] = {"bits": int(rng.integers(1, 9)), "scaled": bool(rng.random() < 0.5)}
            model = neural_net(hidden, classes=int(rng.integers(1, 8)), seed=int(rng.integers(2**31)), **options)
        else:
            model = random_classifier(rng, most=6)
            model = compile_circuit(model, max_edges=3000) if draw == 3 else model
        variables = model.nodes if isinstance(model, Circuit) else model.variables
        X = np.array([rng.integers(0, v.cardinality, ROWS) for v in variables]).T.reshape(ROWS, -1)
        X = np.where(rng.random(X.shape) < rng.choice([0.0, 0.3]), -1, X)
        try:
            text = str(export(model, "javascript")["model.js"])
        except TinybayesError:
            continue
        (directory / "model.js").write_text(text)
        if not agrees(model, X, run_javascript(text, X)):
            wrong.append(f"{type(model).__name__} {number}")
    return BATCH, wrong


def agrees(model: Any, X: np.ndarray, found: list[Any]) -> bool:
    if isinstance(model, Circuit):
        return found == integer_posterior(model, X, len(model.variables))[0].tolist()
    if isinstance(model, NeuralNet):
        return found == net_scores(model, X).tolist()
    if isinstance(model, TreeEnsemble):
        return found == tree_scores(model, X).tolist()
    plan = make_plan(model, "none", gaps=True)
    keep = np.ones(len(X), bool) if plan.features.gaps else (X >= 0).all(axis=1)
    answers = [answer for answer, kept in zip(found, keep, strict=True) if kept]
    if not answers:
        return True
    if plan.values is not None:
        return answers == integer_log_joint(model, X[keep], gaps=plan.features.gaps)[0].tolist()
    return bool(np.allclose(answers, class_scores(model, X[keep]), rtol=1e-5, atol=1e-4))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help=f"models of each kind, made {BATCH} at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="the JSON file of run.py")
    options = parser.parse_args()
    began, counts, wrong = time.monotonic(), Counter[str](), list[str]()
    for kind, make in zip(KINDS, (densities, trees, javascript), strict=True):
        for number in range(-(-options.count // BATCH)):
            rng = np.random.default_rng([options.seed, number])
            with tempfile.TemporaryDirectory() as place:
                try:
                    count, bad = make(rng, Path(place))
                except (AssertionError, json.JSONDecodeError, subprocess.SubprocessError) as problem:
                    count, bad = BATCH, [str(problem)[:1000]]
            counts[kind] += count
            wrong += [f"{kind}, batch {number}: {one}" for one in bad]
            for one in bad:
                say(f"{kind}, batch {number}: {one}")
    seconds = round(time.monotonic() - began, 1)
    say(f"{dict(counts)}, {len(wrong)} mismatches, {seconds} s")
    if options.output:
        results = read_results(options.output)
        about = {"seconds": seconds, "seed": options.seed, "rows_of_each": ROWS, "machine": machine()}
        results["other_models"] = {"models": dict(counts), "mismatches": wrong} | about
        write_results(options.output, results)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
