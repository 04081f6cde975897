"""Random programs of circuits, for the calibration of prices: compiled from networks, or learned from their samples."""

from typing import Any

import numpy as np
from price_programs import STYLES, draw_tables, rows_of

from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.errors import TinybayesError
from tinybayes.infer import compile_circuit, sample
from tinybayes.learn import learn_circuit
from tinybayes.model import Circuit, Dataset, Variable

FAMILIES = ("naive", "tree", "codebook", "float")
WORK = 12_000  # edges times states of the query, at most: the emulated boards are slow
FIRST = 1000  # the first seed
FITTED = 48  # circuits that coefficients are fitted to
ROWS = 8  # that are measured


def draw_circuit(seed: int) -> tuple[Circuit, dict[str, Any], str]:
    """Draw a circuit, the options of its export, and a few words about it."""
    rng = np.random.default_rng(seed)
    integer, learned = bool(rng.random() < 0.35), seed % 3 == 2
    options: dict[str, Any] = {"raw": "int" if integer else "float", "gaps": bool(rng.random() < 0.7)}
    options["arithmetic"] = "float" if rng.random() < 0.35 else "integer"
    while True:
        style = str(rng.choice(STYLES))
        classes = int(rng.choice([2, 3, 4, 5, 7, 10]))
        target = Variable("class", tuple(range(classes)))
        family = FAMILIES[seed // 3 % len(FAMILIES)]
        try:
            net, _ = draw_tables(rng, family, style, integer, round(2 ** rng.uniform(1, 4)), target)
            circuit = compile_circuit(net, max_edges=WORK)
            if learned:
                circuit = _learned(circuit, rng)
            make_circuit_plan(circuit, **options)
        except TinybayesError:  # too large, or too small numbers for floats
            continue
        if circuit.n_edges * classes <= WORK:
            words = f"circuit of {circuit.n_edges:,} edges, {'learned' if learned else circuit.format}"
            words += f", {options['arithmetic']}, {len(circuit.variables)} features ({style}, {options['raw']})"
            return circuit, options, f"{words}, {classes} classes" + (", gaps" if options["gaps"] else "")


def circuit_rows(circuit: Circuit, options: dict[str, Any], seed: int) -> np.ndarray:
    """Draw rows of codes; where values may be missing, half of the rows have gaps."""
    codes = rows_of(circuit.nodes, ROWS, seed)
    if options["gaps"]:
        half = codes[: ROWS // 2]
        half[np.random.default_rng(seed).random(half.shape) < 0.3] = -1
    return codes


def _learned(circuit: Circuit, rng: np.random.Generator) -> Circuit:
    rows = sample(circuit, 300, seed=int(rng.integers(2**31)))
    price = float(rng.choice([0.05, 0.2, 1.0]))
    data = Dataset(circuit.variables, circuit.target, rows[:, :-1], rows[:, -1])
    grown = learn_circuit(data, edge_price=price, max_edges=1500).circuit
    assert grown is not None
    return grown
