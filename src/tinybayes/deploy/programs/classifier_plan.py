"""What the plans of all classifiers have."""

from dataclasses import dataclass
from functools import cached_property

from tinybayes.deploy.files.native import model_id
from tinybayes.deploy.programs.encoding import Features
from tinybayes.deploy.programs.program import unsigned
from tinybayes.errors import error
from tinybayes.model import BayesNet, NeuralNet, TreeEnsemble, Variable

MAX_STATES = 2**16


@dataclass(frozen=True, eq=False)
class ClassifierPlan:
    """A classifier on its way to a device."""

    model: BayesNet | NeuralNet | TreeEnsemble  # as it was given
    target: Variable  # the class variable
    features: Features  # the inputs of the program

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The features as variables."""
        return self.features.variables

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.target.cardinality

    @property
    def label(self) -> str:
        """The C type of a label."""
        return unsigned(self.classes - 1)

    @cached_property
    def id(self) -> str:
        """The digits that tell the model from others."""
        return model_id(self.model)

    @property
    def encodes(self) -> bool:
        """Whether raw values become codes before anything else; otherwise functions take rows as they are."""
        return bool(self.features.value)

    @property
    def row(self) -> str:
        """The C type of an entry of the rows that ``scores`` takes: codes, or raw values that are not encoded."""
        return self.features.state if self.encodes or not self.features.value else self.features.value

    @property
    def takes_raw(self) -> bool:
        """Whether ``scores`` takes raw values, which are not encoded."""
        return bool(self.features.value) and not self.encodes

    @property
    def row_name(self) -> str:
        """The name of the parameter of ``scores`` that is a row."""
        return "value" if self.takes_raw else "x"

    @property
    def predict_name(self) -> str:
        """The name of the function that predicts the label of such a row."""
        return "predict_raw" if self.takes_raw else "predict"

    @property
    def parameter(self) -> str:
        """The parameter of ``scores`` that is a row."""
        return f"const {self.row} {self.row_name}[{max(1, len(self.variables))}]"  # no array of C is empty


def check_states(variables: tuple[Variable, ...]) -> None:
    """Refuse variables with more states than programs can count."""
    if not variables:
        raise error("a model with variables", "none", where="export")
    largest = max(v.cardinality for v in variables)
    if largest > MAX_STATES:
        remedy = "merge states, or leave the column out"
        raise error(f"at most {MAX_STATES:,} states of a variable", f"{largest:,}", where="export", remedy=remedy)
