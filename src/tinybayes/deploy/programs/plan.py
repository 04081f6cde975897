"""The plan of a model: the one form from which the programs of every target are made."""

import numpy as np

from tinybayes.deploy.programs.net_plan import NetPlan
from tinybayes.deploy.programs.table_plan import TablePlan, table_plan
from tinybayes.errors import error
from tinybayes.model import BayesNet, NeuralNet, Variable

MAX_STATES = 2**16

Plan = TablePlan | NetPlan


def make_plan(model: object) -> Plan:
    """Lay out a model for export; raise when a device could not hold its codes or sums."""
    if isinstance(model, NeuralNet):
        _check_states((*model.variables, model.target))
        return NetPlan(model)
    return make_table_plan(model)


def make_table_plan(model: object) -> TablePlan:
    """Lay out a model that must be one of tables."""
    if not isinstance(model, BayesNet):
        remedy = "neural nets are written in C, C++, Arduino, MicroPython and ONNX, circuits in C"
        raise error("a Bayesian network with a class", type(model).__name__, where="export", remedy=remedy)
    _check_states(model.nodes)
    return table_plan(model)


def _check_states(variables: tuple[Variable, ...]) -> None:
    largest = max(v.cardinality for v in variables)
    if largest > MAX_STATES:
        remedy = "merge states, or leave the column out"
        raise error(f"at most {MAX_STATES:,} states of a variable", f"{largest:,}", where="export", remedy=remedy)


def rows_with_every_state(states: tuple[int, ...], count: int) -> np.ndarray:
    """Draw rows of codes to try a program on, always the same ones; every state of every feature occurs."""
    rng = np.random.default_rng(0)
    count = max((count, *states))
    columns = [rng.permutation(np.arange(count) % k) for k in states]
    return np.array(columns, dtype=np.int32).T.reshape(count, len(states))
