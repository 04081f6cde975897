"""The counts by which a program is priced: operations that are written and that run, tables, frames of the stack."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tinybayes.deploy._price.expressions import REGISTERS
from tinybayes.deploy._price.machine import Machine
from tinybayes.deploy.programs.classifier import classifier_program
from tinybayes.deploy.programs.plan import Plan
from tinybayes.deploy.programs.program import Array, Dialect
from tinybayes.errors import error

ROWS = 32  # that are run, at most
WORK = 300_000  # runs of blocks after which no further row is run
DIALECT = Dialect("net", "net_")
# Operations for which the compiler may link a function of its library, the first time that one occurs.
LIBRARY = ("div", "float_add", "float_mul", "float_compare", "float_convert")


class Counts(NamedTuple):
    """What a prediction from raw values takes."""

    tables: int  # bytes of constants
    written: Mapping[str, float]  # operations of its functions, by kind
    run: Mapping[str, float]  # operations of a prediction, on average
    arrays: int  # bytes of local arrays of the deepest calls
    frames: Mapping[str, float]  # what else these calls have on the stack
    ram: int = 0  # bytes of static variables


def count_program(plan: Plan, codes: np.ndarray | None = None, *, most: int = ROWS) -> Counts:
    """Count what the program of a plan writes and runs, on rows of these codes, or of random ones.

    At most so many rows are run. Without any row, what runs is not known: all counts of it are NaN.
    """
    program = classifier_program(plan, DIALECT, "")
    machine = Machine(program, DIALECT)
    entry = f"{DIALECT.prefix}{'predict_raw' if plan.features.value else 'predict'}"
    machine.code(entry)
    rows = _run(machine, entry, _rows(plan, codes)[:most]) if most else 0
    written: dict[str, float] = defaultdict(float, program=1.0)  # the call from outside
    run: dict[str, float] = defaultdict(float, program=1.0)
    for tally, hits in zip(machine.tallies, machine.hits, strict=True):
        for kind, count in tally.items():
            written[kind.removeprefix("walk_")] += count  # such loops run as no other ones, but are written alike
            run[kind] += count * hits / rows if rows else np.nan
    written |= {f"library_{kind}": 1.0 for kind in LIBRARY if written[kind]}
    arrays, frames = _deepest(machine, entry)
    # The compiler writes the last table first.
    tables = [array for array in reversed(program.arrays) if array.name in machine.tables]
    nested = machine.functions[entry].prices == "nested"  # its registers need not be saved
    return Counts(table_bytes(tables), written, run, arrays, {} if nested else {"program": 1.0, **frames})


def table_bytes(arrays: Iterable[Array]) -> int:
    """Return the bytes of tables, each one at a multiple of the size of its numbers."""
    size = 0
    for array in arrays:
        dtype = array.values.dtype
        align = max(dtype[name].itemsize for name in dtype.names) if dtype.names else dtype.itemsize
        size = -(-size // align) * align + array.values.size * _entry_bytes(dtype, align)
    return size


def _entry_bytes(dtype: np.dtype, align: int) -> int:
    """Return the bytes of an entry; C aligns the fields of a structure."""
    if not dtype.names:
        return dtype.itemsize
    end = 0
    for name in dtype.names:
        width = dtype[name].itemsize
        end = -(-end // width) * width + width
    return -(-end // align) * align


def _rows(plan: Plan, codes: np.ndarray | None) -> list[list[float]]:
    """Return raw values of rows, or codes for a program that takes no raw values.

    Codes are those of the model: the encoder of a program may leave out cut points that no tree asks for.
    """
    features = replace(plan.features, variables=plan.model.variables)
    if codes is None:
        cards = [v.cardinality for v in features.variables]
        codes = np.random.default_rng(0).integers(0, cards, (ROWS, len(cards)))
    codes = np.asarray(codes)[:ROWS]
    if codes.ndim != 2 or not len(codes) or codes.shape[1] != len(plan.variables):
        raise error(f"rows of {len(plan.variables)} codes, at least one", f"shape {codes.shape}", where="rows")
    values = features.values(codes) if features.value else np.where(codes < 0, features.missing, codes)
    rows: list[list[float]] = (values if features.raw == "float" else values.astype(np.int64)).tolist()
    return rows


def _run(machine: Machine, entry: str, rows: list[list[float]]) -> int:
    """Run rows one after another; return their number."""
    for i, row in enumerate(rows, start=1):
        machine.call(entry, [(row, 0)])
        if sum(machine.hits) > WORK:
            return i
    return len(rows)


def _deepest(machine: Machine, name: str) -> tuple[int, Counter[str]]:
    """Return the bytes of arrays, and the frames, of the deepest calls from a function on."""
    code = machine.codes[name]
    chains: list[tuple[int, Counter[str]]] = [(0, Counter())]
    if any(machine.tallies[block][kind] for block in code.blocks for kind in LIBRARY):
        chains.append((0, Counter({"library": 1})))
    arrays, frames = max(chains + [_deepest(machine, callee) for callee in sorted(code.calls)], key=_depth)
    if machine.functions[name].prices == "nested":
        frames = frames + Counter(nested_frame=1)
    elif not code.inlined:
        own = Counter({"frame": 1, "saved": min(code.pressure, REGISTERS[0])})
        own |= Counter({f"spilled{limit}": max(0, code.pressure - limit) for limit in REGISTERS})
        frames = frames + own
    return arrays + code.arrays, frames


def _depth(chain: tuple[int, Counter[str]]) -> int:
    return chain[0] + 24 * (chain[1]["frame"] + chain[1]["nested_frame"] + chain[1]["library"])
