"""Export random models to C, build them with all warnings and sanitizers, and compare every answer with Python's.

    python tests/fuzz/models.py --count 1000 --processes 2 -o tests/fuzz/results.json

Many models share one build, each with a name of its own. A difference, a warning, or what a sanitizer says is a
mismatch; the code of such a build is kept beside the results.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]

from run import machine, read_results, say, write_results  # noqa: E402

import zoo  # noqa: E402
from c_host import FLAGS, SANITIZERS, state_type  # noqa: E402
from networks import STRUCTURES, classifier, codebook, every_state  # noqa: E402
from neural_nets import neural_net, rows_of  # noqa: E402
from tinybayes.deploy.programs.c import to_c  # noqa: E402
from tinybayes.deploy.programs.plan import make_plan  # noqa: E402
from tinybayes.errors import TinybayesError  # noqa: E402
from tinybayes.infer import class_scores, compile_circuit, integer_posterior, posteriors  # noqa: E402
from tinybayes.infer.integers import integer_log_joint  # noqa: E402
from tinybayes.infer.neural_net import net_scores  # noqa: E402
from tinybayes.model import BayesNet, Circuit, Cuts, Fixed, Float, NeuralNet, NumberFormat, Variable  # noqa: E402

ROWS = 60
BATCH = 20  # models in one build

CLASSIFIER = """    for (r = 0; r < {rows}; ++r) {{
        {state} x[{width}];
        {score} s[{answers}];
        if (fread(x, sizeof x[0], {width}, stdin) != {width}) return 1;
        printf("%ld", (long){name}_predict(x));
        {name}_scores(x, s);
        for (c = 0; c < {answers}; ++c) printf(" {print}", {cast}s[c]);
        printf("\\n");
    }}
"""
CIRCUIT = """    for (r = 0; r < {rows}; ++r) {{
        {state} x[{width}];
        {score} p[{answers}];
        struct {name}_memory memory;
        if (fread(x, sizeof x[0], {width}, stdin) != {width}) return 1;
        printf("%ld", (long){name}_predict(x, &memory));
        (void){name}_posterior(x, &memory, p);
        for (c = 0; c < {answers}; ++c) printf(" {print}", {cast}p[c]);
        printf("\\n");
    }}
"""
RAW = """    for (r = 0; r < {rows}; ++r) {{
        float v[{width}];
        {state} x[{width}];
        if (fread(v, sizeof v[0], {width}, stdin) != {width}) return 1;
        {name}_encode(v, x);
        printf("%ld", (long){name}_predict_raw(v));
        for (c = 0; c < {width}; ++c) printf(" %ld", (long)x[c]);
        printf("\\n");
    }}
"""
WHOLE = {"print": "%ld", "cast": "(long)"}
REAL = {"print": "%.9g", "cast": "(double)"}


@dataclass(frozen=True)
class Case:
    """A model as C: its files, the part of the main program that asks it, the bytes of its rows, the comparison."""

    kind: str
    files: dict[str, str]
    block: str
    rows: bytes
    count: int
    agrees: Callable[[np.ndarray, np.ndarray], bool]  # labels and answers


def make_case(name: str, rng: np.random.Generator) -> Case:
    """Draw a model of any kind; raises `TinybayesError` for one that C cannot have."""
    make = rng.choice([_network, _network, _network, _raw_network, _circuit, _net])  # type: ignore[arg-type]
    case: Case = make(name, rng)
    return case


def random_format(rng: np.random.Generator) -> NumberFormat:
    draw = rng.random()
    if draw < 0.4:
        bits = int(rng.integers(1, 13))
        whole = int(rng.integers(0, min(bits, 5) + 1))
        return Fixed(whole, bits - whole)
    return codebook(int(rng.integers(1, 40)), zeros=bool(rng.random() < 0.2)) if draw < 0.8 else Float(32)


def random_classifier(rng: np.random.Generator, most: int = 12) -> BayesNet:
    """Draw a network with a class: chains, trees, general graphs, tree CPDs; several formats at once now and then."""
    seed, features, classes = int(rng.integers(2**31)), int(rng.integers(1, most)), int(rng.integers(1, 12))
    if rng.random() < 0.3:
        forms = [random_format(rng)] * 3 if rng.random() < 0.6 else [Fixed(3, int(f)) for f in rng.integers(0, 5, 3)]
        return zoo.random_net(rng, features, formats=forms, trees=True)
    states = [int(k) for k in rng.integers(1, 9, features)]
    if rng.random() < 0.03:
        states[0] = 300
    zeros, form = bool(rng.random() < 0.2), random_format(rng)
    zeros = zeros and (isinstance(form, Float) or form.decode(np.zeros(1, np.uint8))[0] == -np.inf)
    structure = str(rng.choice([*STRUCTURES, "forest"])) if features > 1 else "naive"
    return classifier(structure, form, seed=seed, classes=classes, states=states, zeros=zeros)


def _network(name: str, rng: np.random.Generator) -> Case:
    net = random_classifier(rng)
    plan = make_plan(net, gaps=True)
    X, gaps = every_state(net, rows=ROWS), plan.features.gaps
    if gaps:
        X[rng.random(X.shape) < rng.choice([0.0, 0.05, 0.5])] = -1
    whole = plan.values is not None
    files = to_c(net, name=name)
    kind, form = state_type(net), WHOLE | {"score": "int32_t"} if whole else REAL | {"score": "float"}
    block = _filled(CLASSIFIER, name, X, kind, net.target.cardinality, form)

    def agrees(labels: np.ndarray, scores: np.ndarray) -> bool:
        if whole:
            return _equal(labels, scores, integer_log_joint(net, X, gaps=gaps)[0])
        exact = class_scores(net, X)
        finite = np.isfinite(exact)
        bound = plan.gap_error if gaps else plan.float_error
        near = bool((np.abs(scores[finite] - exact[finite]) <= bound).all())
        return near and bool((np.isneginf(scores) == ~finite).all()) and _first_best(labels, scores)

    what = "networks in integers" if whole else "networks in floats"
    return Case(what, files, block, X.astype(kind).tobytes(), len(X), agrees)


def _raw_network(name: str, rng: np.random.Generator) -> Case:
    """Draw a network over measurements, which come as floats, some of them on the cut points."""
    count, form = int(rng.integers(1, 7)), random_format(rng)
    edges = [np.unique(np.round(rng.normal(0, 10, rng.integers(1, 9)), int(rng.integers(0, 4)))) for _ in range(count)]
    variables = [Variable.from_encoding(f"v{i}", Cuts(e.tolist())) for i, e in enumerate(edges)]
    variables.append(Variable("y", tuple(range(int(rng.integers(1, 6))))))
    net = zoo.random_net(rng, count, formats=[form], variables=variables)
    files = to_c(net, name=name, raw="float")
    values = rng.normal(0, 12, (ROWS, count)).astype(np.float32)
    for column, cuts in enumerate(edges):
        near = rng.choice(cuts, ROWS).astype(np.float32)
        values[:, column] = np.where(rng.random(ROWS) < 0.4, near, values[:, column])
    codes = np.column_stack([net.variables[i].encoding.codes(values[:, i].astype(float)) for i in range(count)])
    plan = make_plan(net, "float", gaps=True)
    gaps = plan.features.gaps
    if gaps:
        holes = rng.random(values.shape) < 0.05
        values[holes], codes[holes] = np.nan, -1
    block = _filled(RAW, name, codes, state_type(net), count, WHOLE | {"score": "int32_t"})

    def agrees(labels: np.ndarray, found: np.ndarray) -> bool:
        if not np.array_equal(found, np.where(codes < 0, plan.features.missing, codes)):
            return False
        X = codes.astype(np.int32)
        if plan.values is not None:
            return _first_best(labels, integer_log_joint(net, X, gaps=gaps)[0])
        exact = class_scores(net, X)
        taken = np.take_along_axis(exact, labels[:, None], axis=1)[:, 0]
        return bool((taken >= exact.max(axis=1) - 2 * (plan.gap_error if gaps else plan.float_error)).all())

    return Case("networks on measurements", files, block, values.tobytes(), ROWS, agrees)


def _circuit(name: str, rng: np.random.Generator) -> Case:
    net = random_classifier(rng, most=6)
    circuit = compile_circuit(net, max_edges=3000)
    query, whole = int(rng.integers(len(circuit.nodes))), bool(rng.random() < 0.5)
    files = to_c(circuit, name=name, query=circuit.nodes[query].name, arithmetic="integer" if whole else "float")
    X = np.array([rng.integers(0, v.cardinality, ROWS) for v in circuit.nodes]).T
    X[rng.random(X.shape) < 0.5] = -1
    X[:, query] = -1
    kind = np.uint16 if max(v.cardinality for v in circuit.nodes) > 255 else np.uint8
    form = {"print": "%lu", "cast": "(unsigned long)", "score": "uint32_t"} if whole else REAL | {"score": "float"}
    block = _filled(CIRCUIT, name, X, kind, circuit.nodes[query].cardinality, form)
    found = re.search(r"within (\S+) of the exact", files[f"{name}.c"])
    assert found is not None
    bound = float(found[1])

    def agrees(labels: np.ndarray, posterior: np.ndarray) -> bool:
        integers, states = integer_posterior(circuit, X, query)
        if whole:
            return np.array_equal(posterior, integers) and np.array_equal(labels, states)
        possible = integers.any(axis=1)
        wanted = _posterior(circuit, X[possible], query)
        near = np.abs(posterior[possible] - wanted) <= bound
        return bool(near.all()) and not posterior[~possible].any() and _first_best(labels, posterior)

    codes = np.where(X < 0, np.iinfo(kind).max, X).astype(kind)
    return Case("circuits", files, block, codes.tobytes(), ROWS, agrees)


def _posterior(circuit: Circuit, X: np.ndarray, query: int) -> np.ndarray:
    first = circuit.first_state
    return posteriors(circuit, X)[:, first[query] : first[query + 1]]


def _net(name: str, rng: np.random.Generator) -> Case:
    image = (int(rng.integers(2, 7)), int(rng.integers(2, 7))) if rng.random() < 0.3 else None
    hidden: list[Any] = [int(u) for u in rng.integers(1, 20, rng.integers(0, 3))]
    if image:
        hidden.insert(0, (int(rng.integers(1, 7)),))
    inputs = "ordinal" if image else str(rng.choice(["ordinal", "one-hot", "mixed", "some"]))
    net: NeuralNet = neural_net(
        tuple(hidden),
        bits=int(rng.integers(1, 9)),
        activation=str(rng.choice(["relu", "sign"])),
        inputs=inputs,
        classes=int(rng.integers(1, 12)),
        seed=int(rng.integers(2**31)),
        scaled=bool(rng.random() < 0.5),
        image=image,
    )
    X = rows_of(net, rows=ROWS)
    X[rng.random(X.shape) < rng.choice([0.0, 0.05, 0.5])] = -1
    files = to_c(net, name=name)
    block = _filled(CLASSIFIER, name, X, state_type(net), net.target.cardinality, WHOLE | {"score": "int32_t"})

    def agrees(labels: np.ndarray, scores: np.ndarray) -> bool:
        return _equal(labels, scores, net_scores(net, X))

    return Case("neural nets", files, block, X.astype(state_type(net)).tobytes(), len(X), agrees)


def _filled(block: str, name: str, X: np.ndarray, kind: type, answers: int, form: dict[str, str]) -> str:
    size = {"rows": len(X), "width": X.shape[1], "answers": answers}
    return block.format(name=name, state=f"{kind.__name__}_t", **size, **form)


def _equal(labels: np.ndarray, scores: np.ndarray, exact: np.ndarray) -> bool:
    return np.array_equal(scores, exact) and _first_best(labels, exact)


def _first_best(labels: np.ndarray, scores: np.ndarray) -> bool:
    return np.array_equal(labels, scores.argmax(axis=1))


def run_batch(directory: Path, cases: list[Case]) -> list[str]:
    """Build and run a batch; return what went wrong."""
    main = "#include <stdio.h>\n"
    main += "".join(f'#include "{file}"\n' for case in cases for file in case.files if file.endswith(".h"))
    main += "int main(void)\n{\n    int r, c;\n" + "".join(case.block for case in cases) + "    return 0;\n}\n"
    for file, text in {"main.c": main, **{f: t for case in cases for f, t in case.files.items()}}.items():
        (directory / file).write_text(text)
    sources = [file.name for file in directory.glob("*.c")]
    flags = ["-O0" if flag == "-O1" else flag for flag in FLAGS if flag != "-g"]
    command = ["gcc", *flags, *SANITIZERS, *sources, "-o", "main"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        return [f"compiler: {done.stderr[:2000]}"]
    ran = subprocess.run(["./main"], cwd=directory, input=b"".join(case.rows for case in cases), capture_output=True)
    if ran.returncode:
        return [f"exit code {ran.returncode}: {ran.stderr.decode(errors='replace')[:2000]}"]
    lines = iter(ran.stdout.decode().splitlines())
    wrong = []
    for case in cases:
        rows = np.array([[float(word) for word in next(lines).split()] for _ in range(case.count)])
        if not case.agrees(rows[:, 0].astype(np.int64), rows[:, 1:]):
            wrong.append(f"another answer than Python's: {next(iter(case.files))}, {case.kind}")
    return wrong


def draw(number: int, seed: int) -> tuple[list[Case], int]:
    """Draw the models of a batch, and count those that C cannot have."""
    rng = np.random.default_rng([seed, number])
    cases: list[Case] = []
    refused = 0
    while len(cases) < BATCH:
        try:
            cases.append(make_case(f"m{len(cases)}", rng))
        except TinybayesError:
            refused += 1
    return cases, refused


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help=f"models, made {BATCH} at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2, help="compilers at a time")
    parser.add_argument("-o", "--output", type=Path, help="the JSON file of run.py")
    options = parser.parse_args()
    began, kinds, wrong, refused, rows = time.monotonic(), Counter[str](), list[str](), 0, 0

    def batch(number: int) -> tuple[list[Case], int, list[str]]:
        cases, without = draw(number, options.seed)
        with tempfile.TemporaryDirectory() as place:
            found = run_batch(Path(place), cases)
            if found and options.output:
                kept = options.output.with_suffix("").with_name(f"{options.output.stem}_findings") / f"c-{number}"
                shutil.copytree(place, kept, dirs_exist_ok=True)
        return cases, without, found

    with ThreadPoolExecutor(options.processes) as pool:
        for cases, without, found in pool.map(batch, range(-(-options.count // BATCH))):
            kinds.update(case.kind for case in cases)
            refused, rows = refused + without, rows + sum(case.count for case in cases)
            wrong += found
            for line in found:
                say(line)
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    seconds = round(time.monotonic() - began, 1)
    say(f"{sum(kinds.values())} models, {rows} rows, {len(wrong)} mismatches, {seconds} s: {dict(kinds)}")
    if options.output:
        results = read_results(options.output)
        results["c_models"] = {
            "models": sum(kinds.values()),
            "kinds": dict(sorted(kinds.items())),
            "rows": rows,
            "mismatches": len(wrong),
            "redrawn": refused,
            "seconds": seconds,
            "seed": options.seed,
            "compiler": compiler,
            "flags": " ".join(SANITIZERS),
            "machine": machine(),
        }
        write_results(options.output, results)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
