"""The price of a program without a compiler: flash, RAM, stack and instructions of ``predict_raw`` on a core.

The program is made as for an export, read, and run in Python on a few rows. Tables are counted exactly. Code,
instructions and stack are sums of the operations that are written or run, by kind, times coefficients that were fitted
to measured programs (`benchmarks/price.py`); docs/price.md states the errors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from tinybayes.cost import model_cost as parameter_cost
from tinybayes.deploy._price.circuits import count_circuit
from tinybayes.deploy._price.coefficients import COEFFICIENTS
from tinybayes.deploy._price.counts import ROWS, Counts, count_program
from tinybayes.deploy.imports.scikit_learn import as_model
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.errors import error
from tinybayes.model import Circuit, Classifier, Cost


@dataclass(frozen=True)
class Core:
    """A core: the usual frequency of its clock, and the cycles that an instruction takes on average.

    The cycles are an assumption: emulated boards count instructions, not cycles. Loads and taken branches take two
    cycles or more, an M7 issues up to two instructions at once, and memory is taken to have no wait states.
    """

    clock: float  # Hz
    cycles: float


CORES = {
    "cortex-m0+": Core(48e6, 1.4),
    "cortex-m3": Core(64e6, 1.3),
    "cortex-m4": Core(64e6, 1.3),
    "cortex-m7": Core(216e6, 1.0),
}


@dataclass(frozen=True)
class ProgramCost:
    """What the program of a classifier costs on a core, from raw values to a label."""

    core: str
    flash: int  # bytes of tables and code
    ram: int  # bytes of static variables: the memory of a circuit
    stack: int  # bytes, the most that any row takes
    instructions: float  # of a prediction for a complete row, on average
    microseconds: float  # of these instructions
    tables: int  # bytes of the flash that hold parameters, cut points and other tables, exactly
    code: int  # the other bytes of the flash

    def __str__(self) -> str:
        return (
            f"{self.flash:,} B of flash ({self.tables:,} tables, {self.code:,} code), {self.ram:,} B of RAM, "
            f"{self.stack:,} B of stack, {self.instructions:,.0f} instructions, {self.microseconds:,.0f} us"
        )


@overload
def model_cost(model: Classifier | Any) -> Cost: ...
@overload
def model_cost(
    model: Classifier | Any,
    core: str,
    *,
    clock: float | None = None,
    raw: str | None = None,
    gaps: bool = True,
) -> ProgramCost: ...
def model_cost(
    model: Classifier | Any,
    core: str | None = None,
    *,
    clock: float | None = None,
    raw: str | None = None,
    gaps: bool = True,
) -> Cost | ProgramCost:
    """Price a model: its parameters and operations, or its whole program on a core.

    Parameters
    ----------
    model
        The model; a fitted tree, forest or boosted trees of scikit-learn are read by `from_sklearn`.
    core
        None for the price of the papers: bits of the parameters and operations of a prediction. The name of a core,
        such as ``"cortex-m0+"``, for the program from raw values to a label; see `program_cost`.
    clock
        The frequency of the core in Hz; by default its usual one.
    raw, gaps
        The options of the export.

    Examples
    --------
    >>> import tinybayes as tb
    >>> train, _ = tb.datasets.load("digits")
    >>> net = tb.quantize(tb.learn_classifier(train, structure="naive"), tb.Fixed(3, 1))
    >>> tb.model_cost(net).bytes < tb.model_cost(net, "cortex-m0+").flash
    True
    """
    model = as_model(model)
    if core is None:
        return parameter_cost(model)
    return program_cost(model, core, clock=clock, raw=raw, gaps=gaps)


def program_cost(
    model: Classifier,
    core: str = "cortex-m0+",
    *,
    clock: float | None = None,
    raw: str | None = None,
    gaps: bool = True,
    rows: np.ndarray | None = None,
    most: int = ROWS,
) -> ProgramCost:
    """Estimate what `tinybayes.deploy.measure.measure` measures for the exported C of a classifier.

    Parameters
    ----------
    model
        A Bayesian network with a class, a circuit with a class, or a neural net.
    core
        ``"cortex-m0+"``, ``"cortex-m3"``, ``"cortex-m4"`` or ``"cortex-m7"``; or ``"m0+"``, for example.
    clock
        The frequency of the core in Hz; by default 48, 64, 64 or 216 MHz.
    raw, gaps
        The options of the export. With ``raw="none"`` the price is that of ``predict``, which takes codes.
    rows
        Rows of codes that instructions are counted for; by default all states are equally likely. Those of a circuit
        may have a column for the class, which is ignored.
    most
        How many rows are run, at most. With 0 none is run: instructions and microseconds are then NaN.
    """
    name = find_core(core)
    if clock is not None and not clock > 0:
        raise error("a positive frequency in Hz", clock, where="clock")
    if isinstance(model, Circuit):
        return price(count_circuit(make_circuit_plan(model, raw, gaps=gaps), rows, most=most), name, clock)
    return price(count_program(make_plan(model, raw, gaps=gaps), rows, most=most), name, clock)


def find_core(name: str) -> str:
    """Return the full name of a core."""
    short = name.lower().removeprefix("cortex-")
    if f"cortex-{short}" not in CORES:
        raise error(f"one of {', '.join(CORES)}", repr(name), where="core", remedy="or measure the exported program")
    return f"cortex-{short}"


def price(counts: Counts, core: str, clock: float | None = None) -> ProgramCost:
    """Price what was counted."""
    fitted = COEFFICIENTS[core]
    flash = -(-(counts.tables + round(_weighted(counts.written, fitted["bytes"]))) // 4) * 4  # ends with a word
    instructions = _weighted(counts.run, fitted["instructions"])
    return ProgramCost(
        core=core,
        flash=flash,
        ram=counts.ram,
        stack=4 * round((counts.arrays + _weighted(counts.frames, fitted["stack"])) / 4),
        instructions=round(instructions, 1),
        microseconds=round(microseconds_of(instructions, core, clock), 2),
        tables=counts.tables,
        code=flash - counts.tables,
    )


def microseconds_of(instructions: float, core: str, clock: float | None = None) -> float:
    """Return the time that instructions take on a core, at its usual clock or another one in Hz."""
    return instructions * CORES[core].cycles * 1e6 / (clock or CORES[core].clock)


def _weighted(counts: Mapping[str, float], coefficients: Mapping[str, float]) -> float:
    return sum(count * coefficients.get(kind, 0.0) for kind, count in counts.items())
