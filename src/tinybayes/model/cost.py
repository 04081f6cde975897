"""The price of a model: its memory, and the work of a prediction."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A price; prices of parts add up to the price of the whole.

    Parameters
    ----------
    bits
        Memory of all parameters.
    parameters
        Stored numbers.
    additions, multiplications
        Arithmetic of one prediction; a multiply-accumulate is one multiplication.
    lookups
        Table reads of one prediction.
    comparisons
        Comparisons of one prediction: the arg max over the classes, and the tests in decision trees.
    edges
        Edges of a circuit.
    """

    bits: int = 0
    parameters: int = 0
    additions: int = 0
    multiplications: int = 0
    lookups: int = 0
    comparisons: int = 0
    edges: int = 0

    @property
    def operations(self) -> int:
        """Operations as the papers count them: additions and multiply-accumulates, without the arg max."""
        return self.additions + self.multiplications

    @property
    def bytes(self) -> int:
        """Memory in bytes, rounded up."""
        return -(-self.bits // 8)

    def to_dict(self) -> dict[str, int]:
        """Return all entries by name, including the derived ones."""
        return {**asdict(self), "operations": self.operations, "bytes": self.bytes}

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    def fits(self, budget: "Cost") -> bool:
        """Tell whether no entry is above the budget's; an entry of zero in the budget sets no limit."""
        return all(limit == 0 or getattr(self, name) <= limit for name, limit in vars(budget).items())

    def __str__(self) -> str:
        size = f"{self.bytes:,} B" if self.bytes < 10_000 else f"{self.bytes / 1000:,.1f} kB"
        edges = f", {self.edges:,} edges" if self.edges else ""
        return f"{size}, {self.parameters:,} parameters, {self.operations:,} operations{edges}"
