"""The price of a model in a search: its parameters as the papers count them, and its program on a core."""

from dataclasses import dataclass

from tinybayes.deploy.price import ProgramCost, microseconds_of, program_cost
from tinybayes.errors import TinybayesError
from tinybayes.model import Classifier, Cost

FEW = 4  # rows that instructions are counted for in a search: random rows all take about as many
ENOUGH = 32  # and those of the models that are kept, as in `program_cost`


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a model costs. Where no program could be priced, flash is that of the tables: the least it could have."""

    bits: int  # of the parameters
    parameters: int
    operations: int  # of a prediction, as the papers count them
    multiplications: int
    core: str
    flash: int  # bytes of the whole program
    tables: int  # bytes of the flash that hold tables; these are exact, the code is estimated
    ram: int  # bytes of static variables
    stack: int  # bytes
    instructions: float  # of a prediction; NaN where they were not counted
    features: float | None = None  # what the columns cost that the program reads, where they have prices
    tables_only: bool = False  # whether the program is not priced: flash is that of the tables

    @property
    def bytes(self) -> int:
        """Bytes of the parameters."""
        return -(-self.bits // 8)

    def microseconds(self, clock: float | None = None) -> float:
        """Return the time of a prediction, at the usual clock of the core or another one in Hz."""
        return microseconds_of(self.instructions, self.core, clock)


def price_of(model: Classifier | None, cost: Cost, core: str, *, rows: int = FEW) -> Price:
    """Price a model and its program; a model without a program, or one that cannot be priced, by its tables."""
    program: ProgramCost | None = None
    if model is not None:
        try:
            program = program_cost(model, core, most=rows)
        except TinybayesError:
            program = None
    tables = cost.bytes if program is None else program.tables
    return Price(
        bits=cost.bits,
        parameters=cost.parameters,
        operations=cost.operations,
        multiplications=cost.multiplications,
        core=core,
        flash=tables if program is None else program.flash,
        tables=tables,
        ram=0 if program is None else program.ram,
        stack=0 if program is None else program.stack,
        instructions=float(cost.operations) if program is None else program.instructions,
        tables_only=program is None,
    )
