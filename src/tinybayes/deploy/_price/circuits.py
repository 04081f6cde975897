"""The counts by which the program of a circuit is priced.

Its code is the same for all circuits but for the encoder, and what runs follows from which values are zero. So the
encoder is read and run as that of a classifier; steps, operands and operations of the circuit are counted without
numbers, on sets of rows. A set is an integer with a bit for each row and state of the query.
"""

from collections import Counter, defaultdict

import numpy as np

from tinybayes.deploy._price.counts import DIALECT, ROWS, Counts, table_bytes
from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy.programs.circuit import circuit_program
from tinybayes.deploy.programs.circuit_plan import CircuitPlan
from tinybayes.deploy.programs.encoder import encode_functions
from tinybayes.deploy.programs.program import Program
from tinybayes.errors import error


def count_circuit(plan: CircuitPlan, codes: np.ndarray | None = None, *, most: int = ROWS) -> Counts:
    """Count what the program of a circuit writes and runs, on rows of these codes, or of random ones.

    At most so many rows are run. Without any row, what runs is not known: all counts of it are NaN.
    """
    program, rows = circuit_program(plan, DIALECT, ""), _rows(plan, codes)[:most]
    written, run = _encoder(plan, rows)
    written[f"circuit_{plan.arithmetic}"] += 1.0
    for kind, count in count_steps(plan, rows).items() if len(rows) else ():
        run[f"circuit_{plan.arithmetic}_{kind}"] += count / len(rows)
    if not len(rows):
        run["nothing"] = np.nan
    wide = max(array.values.itemsize for array in program.arrays if array.name in ("begin", "operand")) > 1
    own = f"circuit_{plan.arithmetic}"
    looped = float(plan.states > 2)  # a loop of one turn is written out, and needs no counter
    written |= {f"{own}_wide": float(wide), f"{own}_loop": looped}
    # The codes of a row, in a frame that ends at eight bytes; other frames do not depend on the circuit.
    row_bytes = len(plan.variables) * np.dtype(plan.features.state.removesuffix("_t")).itemsize
    arrays = -(-row_bytes // 8) * 8 if plan.features.value else 0
    frames = {own: 1.0, f"{own}_raw": float(bool(plan.features.value)), f"{own}_loop": looped}
    tables = table_bytes(reversed(program.arrays))  # the compiler writes the last table first
    return Counts(tables, written, run, arrays, frames, ram=plan.memory_bytes)


def _rows(plan: CircuitPlan, codes: np.ndarray | None) -> np.ndarray:
    """Return rows of codes, -1 where unknown; a column for the class may be left out."""
    cards = [v.cardinality for v in plan.variables]
    if codes is None:
        codes = np.random.default_rng(0).integers(0, cards, (ROWS, len(cards)))
    codes = np.asarray(codes)
    if codes.ndim == 2 and codes.shape[1] == len(cards) - 1 and plan.circuit.target is not None:
        codes = np.column_stack([codes, np.full(len(codes), -1)])
    if codes.ndim != 2 or not len(codes) or codes.shape[1] != len(cards):
        raise error(f"rows of {len(cards)} codes, at least one", f"shape {codes.shape}", where="rows")
    return codes


def _encoder(plan: CircuitPlan, rows: np.ndarray) -> tuple[dict[str, float], dict[str, float]]:
    """Count the operations of the encoder that are written and, for each row on average, that run."""
    written: dict[str, float] = defaultdict(float)
    run: dict[str, float] = defaultdict(float)
    features = plan.features
    if not features.value:
        return written, run
    machine = Machine(Program((), encode_functions(features, DIALECT), (), ()), DIALECT)
    entry = f"{DIALECT.prefix}encode"
    machine.code(entry)
    values = features.values(rows)
    for row in (values if features.raw == "float" else values.astype(np.int64)).tolist():
        machine.call(entry, [(row, 0), ([0] * len(row), 0)])
    for tally, hits in zip(machine.tallies, machine.hits, strict=True):
        for kind, count in tally.items():
            written[kind] += count
            run[kind] += count * hits / max(1, len(rows))
    return written, run


def count_steps(plan: CircuitPlan, rows: np.ndarray) -> Counter[str]:
    """Count what runs for all rows and all states of the query, by kind."""
    steps, states = plan.steps, plan.states
    everywhere = (1 << len(rows) * states) - 1
    parameters = [0 if np.isneginf(value) else everywhere for value in steps.parameters.tolist()]
    values = [*parameters, *_indicators(plan, rows), *([0] * steps.slots)]  # where an operand is not zero
    first_slot, first = len(values) - steps.slots, len(parameters)
    count: Counter[str] = Counter(evaluation=len(rows) * states, step=len(steps.slot) * len(rows) * states)
    begin, operands = steps.begin.tolist(), steps.operand.tolist()
    for n, (slot, product) in enumerate(zip(steps.slot.tolist(), steps.product.tolist(), strict=True)):
        where = everywhere if product else 0  # where the result is not zero so far
        for k in operands[begin[n] : begin[n + 1]]:
            value, visited = values[k], (where if product else everywhere).bit_count()
            if first <= k < first_slot:
                count["indicator"] += visited
                count["add_one"] += 0 if product else value.bit_count()
            else:
                count["parameter" if k < first else "slot"] += visited
                both = (where & value).bit_count()
                count["multiply" if product else "add"] += both
                count["multiply_zero" if product else "add_zero"] += visited - both
            where = where & value if product else where | value
        values[first_slot + slot] = where
    return count


def _indicators(plan: CircuitPlan, rows: np.ndarray) -> list[int]:
    """Return for each indicator the set of rows and states of the query where it holds."""
    states, sets = plan.states, []
    for v, variable in enumerate(plan.variables):
        for code in range(variable.cardinality):
            if v == plan.query:
                holds = np.tile(np.arange(states) == code, len(rows))
            else:
                holds = np.repeat((rows[:, v] < 0) | (rows[:, v] == code), states)
            sets.append(int.from_bytes(np.packbits(holds).tobytes(), "big") >> -len(holds) % 8)
    return sets
