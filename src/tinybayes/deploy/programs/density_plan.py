"""The plan of a density: the log-likelihood of a row in integers, and whether it raises an alarm."""

from dataclasses import dataclass

from tinybayes.cost import model_cost
from tinybayes.deploy.files.native import model_id
from tinybayes.deploy.programs.circuit_plan import MAX_STATES
from tinybayes.deploy.programs.encoding import Features, make_features
from tinybayes.deploy.programs.names import plain, upwards
from tinybayes.deploy.programs.program import Dialect
from tinybayes.errors import error
from tinybayes.infer.alarm import Alarm
from tinybayes.infer.integer_density import Density, integer_density
from tinybayes.model import Circuit, Variable


@dataclass(frozen=True, eq=False)
class DensityPlan:
    """A circuit on its way to a device: the log-likelihood of a row, and an alarm if there is a threshold."""

    circuit: Circuit
    features: Features
    density: Density
    alarm: Alarm | None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, in the order of a row."""
        return self.features.variables

    @property
    def memory_bytes(self) -> int:
        """The bytes of the memory that a call works with."""
        return 4 * max(1, self.density.layout.slots)

    @property
    def units(self) -> tuple[int, int]:
        """The threshold, and the cost of an unseen state."""
        assert self.alarm is not None
        return self.alarm.units(self.density, len(self.variables))

    def facts(self, dialect: Dialect, note: str) -> tuple[str, ...]:
        """Return lines for the comment at the top of generated files."""
        density, circuit = self.density, self.circuit
        return (
            f"The density of a circuit of {circuit.n_edges:,} edges, {len(self.variables)} variables, by tinybayes.",
            f"Price: {model_cost(circuit)}; a call works with {self.memory_bytes:,} bytes of memory.",
            f"Log-likelihoods are in units of 2**-{density.fraction} nats, within {upwards(density.bound)} nats of the "
            "exact ones of the model.",
            *self._alarm(),
            *self._missing(dialect),
            *([plain(note)] if note else []),
            f"Model {model_id(circuit)}.",
        )

    def _alarm(self) -> tuple[str, ...]:
        if self.alarm is None:
            return ()
        alarm, sure = self.alarm, upwards(2 * self.density.bound + 2.0**-self.density.fraction)
        return (
            f"Alarm below {alarm.threshold:.6g} nats, for {100 * alarm.rate:.4g} % of usual rows as chosen on "
            f"{alarm.rows:,} of them.",
            f"No row at or above that raises one; every row does that is more than {sure} nats below.",
        )

    def _missing(self, dialect: Dialect) -> tuple[str, ...]:
        """Say how a row tells what is missing, and what becomes of other values."""
        unknown, value, unseen = (
            dialect.macro(word) if dialect.prefix else f"{dialect.name}::{word}"
            for word in ("unknown", "unknown_value", "unseen")
        )
        raw = {"float": "; so is a raw value that is not a number", "int": f"; so is the raw value {value}", "none": ""}
        said = f"Unknown values are summed out. The code {unknown} is unknown{raw[self.features.raw]}"
        if self.alarm is None:
            return (f"{said}, and so is every value that is not a state.",)
        return f"{said}.", f"A value that is not a state, code {unseen}, raises an alarm."


def is_density(circuit: Circuit, query: str | None) -> bool:
    """Tell whether the program of a circuit gives log-likelihoods: it has no class, and no variable is asked for."""
    return query is None and circuit.target is None


def make_density_plan(
    circuit: Circuit,
    raw: str | None = None,
    *,
    gaps: bool = True,
    arithmetic: str | None = None,
    alarm: Alarm | None = None,
) -> DensityPlan:
    """Plan the program of a density; the parameters are those of `tinybayes.export`."""
    if arithmetic not in (None, "integer"):
        remedy = "leave it out, or name a variable to ask for as query"
        raise error("integer for log-likelihoods", repr(arithmetic), where="arithmetic", remedy=remedy)
    if not gaps:
        remedy = "leave it out: gaps take hardly any code here"
        raise error("a program that sums out gaps", "none", where="gaps", remedy=remedy)
    for node in circuit.nodes:
        if node.cardinality > MAX_STATES - 1:
            expected = f"at most {MAX_STATES - 1:,} states"
            raise error(expected, f"{node.cardinality:,}", where=f"variable {node.name!r}", remedy="merge states")
    features = make_features(circuit.nodes, raw, gaps=True, unseen=alarm is not None)
    return DensityPlan(circuit, features, integer_density(circuit), alarm)


def refuse_alarm(alarm: Alarm | None) -> None:
    """Raise when an alarm was given for a program that gives no log-likelihoods."""
    if alarm is not None:
        remedy = "leave query out; a circuit with a class has no alarm"
        raise error("a circuit without a class, and no query", "another model", where="alarm", remedy=remedy)
