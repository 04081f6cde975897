"""The plan of a circuit: what a program of the C family answers, in which arithmetic, and from which inputs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.deploy.files.native import model_id
from tinybayes.deploy.programs.circuit_numbers import ARITHMETIC, Arithmetic
from tinybayes.deploy.programs.circuit_steps import Steps, make_steps
from tinybayes.deploy.programs.encoding import Features, make_features
from tinybayes.deploy.programs.names import plain, upwards
from tinybayes.deploy.programs.program import Dialect, unsigned
from tinybayes.errors import error
from tinybayes.infer.integer_circuit import UNIT, analyse
from tinybayes.model import Circuit, Variable

MAX_STATES = 2**16 - 1  # one more code says that a variable was not observed


@dataclass(frozen=True, eq=False)
class CircuitPlan:
    """A circuit on its way to a device: the posterior of one variable, given evidence on the others."""

    circuit: Circuit
    query: int  # the variable that is asked for
    features: Features  # all variables; the value of the query is ignored
    arithmetic: str  # "integer" or "float"
    bound: float  # of the error of a posterior

    @property
    def numbers(self) -> Arithmetic:
        """How the program computes."""
        return ARITHMETIC[self.arithmetic]

    @cached_property
    def steps(self) -> Steps:
        """The steps of an evaluation."""
        return make_steps(self.circuit)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, in the order of a row."""
        return self.features.variables

    @property
    def target(self) -> Variable:
        """The variable that is asked for."""
        return self.variables[self.query]

    @property
    def states(self) -> int:
        """The number of states of the variable that is asked for."""
        return self.target.cardinality

    @property
    def label(self) -> str:
        """The C type of a state of that variable."""
        return unsigned(self.states - 1)

    @property
    def memory_bytes(self) -> int:
        """The bytes of the memory that a call works with; it ends with a word."""
        return -(-self.steps.slots * self.numbers.bytes // 4) * 4

    def facts(self, dialect: Dialect, note: str) -> tuple[str, ...]:
        """Return lines for the comment at the top of generated files."""
        circuit = self.circuit
        return (
            f"A circuit of {circuit.n_edges:,} edges over {len(self.variables)} variables, by tinybayes.",
            f"Price: {model_cost(circuit)}; it answers for {plain(self.target.name)}.",
            f"Posteriors are within {upwards(self.bound)} of the exact ones of the stored parameters.",
            f"A call works with {self.memory_bytes:,} bytes of memory.",
            self._missing(dialect),
            *([plain(note)] if note else []),
            f"Model {model_id(circuit)}.",
        )

    def _missing(self, dialect: Dialect) -> str:
        """Say how a row tells that a variable was not observed."""
        if not self.features.gaps:
            return "Rows must be complete."
        unknown, value = (
            dialect.macro(word) if dialect.prefix else f"{dialect.name}::{word}"
            for word in ("unknown", "unknown_value")
        )
        raw = {
            "float": "; so is a raw value that is not a number, or not a state",
            "int": f"; so is the raw value {value}, and one that is not a state",
            "none": "",
        }
        return f"Unknown variables are summed out. The code {unknown} is unknown{raw[self.features.raw]}."


def make_circuit_plan(
    circuit: Circuit,
    raw: str | None = None,
    *,
    gaps: bool = True,
    query: str | None = None,
    arithmetic: str | None = None,
) -> CircuitPlan:
    """Plan the program of a circuit; the parameters are those of `tinybayes.export`."""
    arithmetic = arithmetic or "integer"
    if arithmetic not in ARITHMETIC:
        raise error(f"one of {', '.join(ARITHMETIC)}", repr(arithmetic), where="arithmetic")
    asked = find_query(circuit, query)
    for node in circuit.nodes:
        if node.cardinality > MAX_STATES:
            expected = f"at most {MAX_STATES:,} states"
            raise error(expected, f"{node.cardinality:,}", where=f"variable {node.name!r}", remedy="merge states")
    features = make_features(circuit.nodes, raw, gaps=gaps, ignored=asked)
    return CircuitPlan(circuit, asked, features, arithmetic, _bound(circuit, asked, arithmetic))


def refuse_circuit_options(**options: str | None) -> None:
    """Raise when an option of circuits was given for a model of another kind."""
    for option, value in options.items():
        if value is not None:
            raise error("a circuit with this option", repr(value), where=option, remedy="leave it out")


def find_query(circuit: Circuit, query: str | None) -> int:
    """Return the number of the variable that is asked for, by default the class."""
    names = [node.name for node in circuit.nodes]
    if query is None and circuit.target is not None:
        return len(names) - 1
    if query not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        remedy = "name the variable that the board asks for"
        raise error(f"one of the variables {shown}", repr(query), where="query", remedy=remedy)
    return names.index(query)


def _bound(circuit: Circuit, query: int, arithmetic: str) -> float:
    """Return the bound of the error of a posterior; raise where values might leave the range of the arithmetic."""
    facts, numbers = analyse(circuit), ARITHMETIC[arithmetic]
    if facts.low < numbers.low or facts.high > numbers.high:
        got = f"2**{facts.low:.0f} to 2**{facts.high:.0f}"
        remedy = "use arithmetic 'integer'" if arithmetic == "float" else "learn a smaller circuit"
        expected = f"values from 2**{numbers.low} to 2**{numbers.high}"
        raise error(expected, got, where=f"arithmetic {arithmetic!r}", remedy=remedy)
    # A quotient of two values, each with these relative errors; the total is one more sum over the states.
    relative = 2 * np.expm1((facts.roundings + circuit.nodes[query].cardinality) * np.log1p(numbers.last))
    return float(relative + (2.0**-UNIT if arithmetic == "integer" else numbers.last))
