"""The price of programs against measurements on emulated boards: calibration, errors, and the table of docs/price.md.

Run it as ``python benchmarks/price.py`` with Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm.
Programs that were measured before, and whose C is the same, are not measured again. The coefficients are fitted to
every second program of each family, then those that only circuits have to the first 48 circuits, and those that only
trees have to every second one of them; errors are reported on the others. ``--count 0``, ``--circuits 0`` and ``--trees
0`` keep what is known of a kind.
"""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from harness import provenance
from price_circuits import FIRST, FITTED, circuit_rows, draw_circuit
from price_page import write_page
from price_programs import FAMILIES, draw, rows_of
from price_trees import FIRST as FIRST_TREE
from price_trees import KINDS, draw_trees
from scipy.optimize import nnls

from tinybayes.deploy._price.circuits import count_circuit
from tinybayes.deploy._price.coefficients import COEFFICIENTS
from tinybayes.deploy._price.counts import Counts, count_program
from tinybayes.deploy.measure import measure
from tinybayes.deploy.price import CORES, price
from tinybayes.deploy.programs.c import to_c
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.model import Circuit

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "price.json"
SHIPPED = ROOT / "src" / "tinybayes" / "deploy" / "_price" / "coefficients.py"
FIGURES = ("flash", "instructions", "stack")
ROWS = 24
SMALL = 32  # figures below are as good as this: a single tree takes few instructions and no stack
OF_CIRCUITS = ("circuit_",)  # the kinds of operations that only circuits have
OF_TREES = ("nested_", "walk_")  # and those of trees: nested comparisons, and loops that follow tables
# What an operation takes, about, in bytes and in instructions: the fit stays close where programs do not tell.
USUAL = (2.0, 1.0)
GUESS = {
    "address": (1, 0.5), "base": (6, 1), "call": (4, 3), "constant": (5, 1), "div": (6, 45), "float_add": (6, 70),
    "float_compare": (6, 40), "float_convert": (6, 40), "float_mul": (6, 60), "frame": (4, 2), "function": (4, 2),
    "library": (30, 30), "library_div": (250, 1), "library_float_add": (600, 1), "library_float_compare": (200, 1),
    "library_float_convert": (200, 1), "library_float_mul": (400, 1), "local": (0.5, 0.2), "narrow": (1, 0.5),
    "program": (8, 6), "saved": (1, 1), "shift": (2, 0.5), "spill12": (4, 1.5), "spill8": (4, 1.5),
    "spilled12": (0.5, 0.5), "spilled8": (0.5, 0.5),
    **{f"{code}_{kind}": known for code in ("nested", "walk") for kind, known in (
        ("base", (6, 1)), ("constant", (4, 0.1)), ("function", (4, 3)), ("local", (0.5, 0.2)), ("frame", (10, 2)),
        ("spill8", (0.1, 0.1)), ("spill12", (0.1, 0.1)), ("return", (3, 2)), ("address", (1, 0.5)))},
    "circuit_integer": (400, 100), "circuit_float": (800, 100), "circuit_integer_raw": (20, 20),
    "circuit_float_raw": (20, 20), "circuit_integer_wide": (6, 1), "circuit_float_wide": (6, 1),
    "circuit_integer_loop": (16, 5), "circuit_float_loop": (16, 5),
    **{f"circuit_{a}_{kind}": (1, n) for a in ("integer", "float") for kind, n in (
        ("evaluation", 50), ("step", 20), ("indicator", 15), ("parameter", 15), ("slot", 15), ("multiply", 40),
        ("multiply_zero", 40), ("add", 40), ("add_zero", 15), ("add_one", 40))},
}  # fmt: skip
PULL = 0.02  # a coefficient of twice the guess counts as an error of 2 % in one program
Figures = dict[str, Any]
Drawn = tuple[Any, dict[str, Any], str]  # a model, the options of its export, and a few words about it


def measured(drawn: Drawn, seed: int, known: Figures) -> Figures:
    """Measure a program on all boards, unless the same code was measured before."""
    model, options, words = drawn
    texts = to_c(model, name="net", extras=False, **options)
    code = re.sub(r"/\*.*?\*/", "", texts["net.c"], flags=re.DOTALL)  # comments do not matter
    digest = hashlib.sha256(code.encode()).hexdigest()[:16]
    cores: Figures = known["cores"] if known.get("code") == digest else {}
    if set(CORES) <= set(cores):
        return known
    circuit = isinstance(model, Circuit)
    features = (make_circuit_plan if circuit else make_plan)(model, **options).features
    features = replace(features, variables=model.nodes if circuit else model.variables)
    codes = circuit_rows(model, options, seed) if circuit else rows_of(model.variables, ROWS, 1000 + seed)
    for core in set(CORES) - set(cores):
        board = core.removeprefix("cortex-")
        often = {"repeat": 2} if circuit else {}  # a tick of the timer is nothing to them
        (on_board,) = measure(texts, "net", features.values(codes), raw=True, boards=[board], **often)
        stack = on_board.stack
        if options["gaps"] and not circuit:  # the deepest calls are those for missing values
            gaps = codes[:4].copy()
            gaps[:, np.argmin([v.cardinality for v in model.variables])] = -1
            (deep,) = measure(texts, "net", features.values(gaps), raw=True, boards=[board])
            stack = max(stack, deep.stack)
        figures = {"flash": on_board.flash, "ram": on_board.ram, "stack": stack}
        cores[core] = {"measured": {**figures, "instructions": round(on_board.instructions, 1)}}
    return {"seed": seed, "program": words, "code": digest, "cores": {core: cores[core] for core in CORES}}


def fit(counts: list[Counts], figures: list[Figures]) -> dict[str, dict[str, float]]:
    """Fit the coefficients of a core; residuals are relative to the whole figure."""
    return {
        "bytes": _fit([c.written for c in counts], [f["flash"] for f in figures], [c.tables for c in counts], 0),
        "instructions": _fit([c.run for c in counts], [f["instructions"] for f in figures], [0 for _ in counts], 1),
        "stack": _fit([c.frames for c in counts], [f["stack"] for f in figures], [c.arrays for c in counts], 0),
    }


def _fit(counts: list[Any], totals: list[float], known: list[int], which: int) -> dict[str, float]:
    kinds = sorted({kind for each in counts for kind in each})
    relative = 1.0 / np.maximum(totals, SMALL)
    rows = np.array([[each.get(kind, 0.0) for kind in kinds] for each in counts]) * relative[:, None]
    wanted = (np.array(totals) - np.array(known)) * relative
    guess = np.array([GUESS.get(kind, USUAL)[which] for kind in kinds])
    rows, wanted = np.vstack([rows, PULL * np.diag(1 / guess)]), np.append(wanted, np.full(len(kinds), PULL))
    values, _ = nnls(rows, wanted)
    return {kind: round(float(value), 3) for kind, value in zip(kinds, values, strict=True)}


def fit_own(
    counts: list[Counts], figures: list[Figures], core: str, kinds: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Fit the coefficients of kinds of operations that no other programs have; those of the rest stay as they are."""
    out = {figure: dict(values) for figure, values in COEFFICIENTS[core].items()}
    parts = [
        ("bytes", "flash", [c.written for c in counts], [c.tables for c in counts]),
        ("instructions", "instructions", [c.run for c in counts], [0 for _ in counts]),
        ("stack", "stack", [c.frames for c in counts], [c.arrays for c in counts]),
    ]
    for name, figure, operations, exact in parts:
        out[name] = {kind: value for kind, value in out[name].items() if not kind.startswith(kinds)}
        own = [{k: n for k, n in each.items() if k.startswith(kinds)} for each in operations]
        rest = [sum(n * out[name].get(k, 0.0) for k, n in each.items()) for each in operations]
        known = [round(a + b) for a, b in zip(exact, rest, strict=True)]
        out[name] |= _fit(own, [f[figure] for f in figures], known, int(name == "instructions"))
    return out


def errors(programs: list[Figures], core: str) -> Figures:
    """Return quantiles of the relative errors of programs that were not fitted."""
    out = {}
    for figure in FIGURES:
        pairs = [(p["cores"][core]["priced"][figure], p["cores"][core]["measured"][figure]) for p in programs]
        error = np.array([abs(priced - real) / max(real, SMALL) for priced, real in pairs])
        quantiles = {"median": np.median(error), "q95": np.quantile(error, 0.95), "largest": error.max()}
        out[figure] = {name: round(float(value), 4) for name, value in quantiles.items()}
    return out


def ship(coefficients: Figures) -> None:
    """Write the coefficients into the package."""
    lines = ['"""What an operation costs on a core, by kind. Written by benchmarks/price.py; do not edit."""', ""]
    lines += ["COEFFICIENTS: dict[str, dict[str, dict[str, float]]] = {"]
    for core, figures in coefficients.items():
        lines += [f'    "{core}": {{']
        for figure, values in figures.items():
            entries = [f'            "{kind}": {value},' for kind, value in values.items()]
            lines += [f'        "{figure}": {{', *entries, "        },"]
        lines += ["    },"]
    SHIPPED.write_text("\n".join([*lines, "}"]) + "\n")


def _write(document: Figures) -> None:
    """Write the results, one program a line."""
    lists = ("circuits", "trees", "programs")
    text = json.dumps({key: value for key, value in document.items() if key not in lists}, indent=1)
    for name in lists:
        lines = ",\n".join("  " + json.dumps(program) for program in document.get(name, []))
        text = text.removesuffix("\n}") + f',\n "{name}": [\n{lines}\n ]\n}}'
    RESULTS.write_text(f"{text}\n")


def _priced(program: Figures, counts: Counts) -> None:
    """Note the prices of a program beside its measurements."""
    for core in CORES:
        cost = price(counts, core)
        names = ("flash", "tables", "ram", "stack", "instructions")
        program["cores"][core]["priced"] = {name: getattr(cost, name) for name in names}


def calibrate(document: Figures, count: int) -> None:
    """Measure classifiers, fit the coefficients to them, and price them."""
    known = {p["seed"]: p for p in document["programs"]}
    programs = []
    for seed in range(count):
        programs.append(measured(draw(seed), seed, known.get(seed, {})))
        if seed % 20 == 19:
            kept = {**known, **{p["seed"]: p for p in programs}}
            _write({**document, "programs": list(kept.values())})
            print(f"{seed + 1} programs")
    counts = [count_program(make_plan(model, **options)) for model, options, _ in map(draw, range(count))]
    for program in programs:  # every second one of each family
        program["fitted"] = program["seed"] // len(FAMILIES) % 2 == 0
    fitted = [p["seed"] for p in programs if p["fitted"]]
    for core in CORES:
        COEFFICIENTS[core] = fit([counts[i] for i in fitted], [programs[i]["cores"][core]["measured"] for i in fitted])
    for program, each in zip(programs, counts, strict=True):
        _priced(program, each)
    others = [p for p in programs if not p["fitted"]]
    document |= {"about": provenance(["numpy", "scipy"]), "errors": {core: errors(others, core) for core in CORES}}
    document["programs"] = programs


def calibrate_circuits(document: Figures, count: int) -> None:
    """Measure circuits, fit what only they have, and price them."""
    known = {p["seed"]: p for p in document.get("circuits", [])}
    seeds = range(FIRST, FIRST + count)
    drawn = {seed: draw_circuit(seed) for seed in seeds}
    document["circuits"] = programs = []
    for seed in seeds:
        programs.append(measured(drawn[seed], seed, known.pop(seed, {})))
        if seed % 5 == 4:
            _write({**document, "circuits": [*programs, *known.values()]})
            print(f"{len(programs)} circuits", flush=True)
    counts = [
        count_circuit(make_circuit_plan(model, **options), circuit_rows(model, options, seed))
        for seed, (model, options, _) in drawn.items()
    ]
    for program in programs:  # the others were drawn when the kinds of operations had been chosen
        program["fitted"] = program["seed"] < FIRST + FITTED
    fitted = [i for i, p in enumerate(programs) if p["fitted"]]
    for core in CORES:
        figures = [programs[i]["cores"][core]["measured"] for i in fitted]
        COEFFICIENTS[core] = fit_own([counts[i] for i in fitted], figures, core, OF_CIRCUITS)
    for program, each in zip(programs, counts, strict=True):
        _priced(program, each)
    others = [p for p in programs if not p["fitted"]]
    document |= {"about_circuits": provenance(["numpy", "scipy"])}
    document["circuit_errors"] = {core: errors(others, core) for core in CORES}


def calibrate_trees(document: Figures, count: int) -> None:
    """Measure trees, fit what only they have, and price them."""
    known = {p["seed"]: p for p in document.get("trees", [])}
    seeds = range(FIRST_TREE, FIRST_TREE + count)
    drawn = {seed: draw_trees(seed) for seed in seeds}
    document["trees"] = programs = []
    for seed in seeds:
        programs.append(measured(drawn[seed], seed, known.pop(seed, {})))
        if seed % 10 == 9:
            _write({**document, "trees": [*programs, *known.values()]})
            print(f"{len(programs)} trees", flush=True)
    counts = []
    for seed, (model, options, _) in drawn.items():
        codes = rows_of(model.variables, ROWS, 1000 + seed)  # the rows that were measured: paths differ in length
        counts.append(count_program(make_plan(model, **options), codes))
    for program in programs:
        program["fitted"] = (program["seed"] - FIRST_TREE) // len(KINDS) % 2 == 0
    fitted = [i for i, p in enumerate(programs) if p["fitted"]]
    for core in CORES:
        figures = [programs[i]["cores"][core]["measured"] for i in fitted]
        COEFFICIENTS[core] = fit_own([counts[i] for i in fitted], figures, core, OF_TREES)
    for program, each in zip(programs, counts, strict=True):
        _priced(program, each)
    others = [p for p in programs if not p["fitted"]]
    document |= {"about_trees": provenance(["numpy", "scipy"])}
    document["tree_errors"] = {core: errors(others, core) for core in CORES}


def main(
    count: Annotated[int, typer.Option(help="Number of classifiers; 0 keeps their results and coefficients.")] = 240,
    circuits: Annotated[int, typer.Option(help="Number of circuits; 0 keeps their results.")] = 84,
    trees: Annotated[int, typer.Option(help="Number of tree ensembles; 0 keeps their results.")] = 96,
) -> None:
    """Measure, calibrate, and write the results."""
    document = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"programs": []}
    if count:
        calibrate(document, count)
    if circuits:
        calibrate_circuits(document, circuits)
    if trees:
        calibrate_trees(document, trees)
    ship(COEFFICIENTS)
    _write(document)
    write_page(document, ROOT / "docs")
    for kind in ("errors", "circuit_errors", "tree_errors"):
        for core, figures in document[kind].items():
            print(kind, core, figures)


if __name__ == "__main__":
    typer.run(main)
