"""Tie the parameters of a circuit: few levels, chosen as for networks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tinybayes.compress._likelihood import data_rows
from tinybayes.compress.tie import Books, candidate_levels, distance
from tinybayes.errors import error
from tinybayes.infer import log_evidence, log_partition
from tinybayes.model import Circuit, Dataset, Float


@dataclass(frozen=True)
class TiedCircuit:
    """What `tie_circuit` made.

    Parameters
    ----------
    circuit
        The circuit, its table in a `Codebook`.
    levels, zeros, epsilon
        As of `Tied`: levels, parameters that are zero, the largest distance of a log-parameter from its level.
    log_partition
        ``log Z``: what the circuit's values must be divided by to be probabilities.
    before, after
        Exact mean log-likelihood of the data before and after, in nats; None without data.
    path
        The numbers of levels that were tried, each with its mean log-likelihood.
    """

    circuit: Circuit
    levels: int
    zeros: int
    epsilon: float
    log_partition: float
    before: float | None = None
    after: float | None = None
    path: tuple[tuple[int, float], ...] = ()


def tie_circuit(
    circuit: Circuit,
    levels: int | Literal["auto"] = 16,
    *,
    data: Dataset | None = None,
    candidates: Sequence[int] | None = None,
) -> TiedCircuit:
    """Replace the log-parameters of a circuit by few levels, those with the least squared error.

    Parameters
    ----------
    circuit
        A smooth and decomposable circuit.
    levels
        How many levels; or ``"auto"``: the number with the best likelihood of `data`, of equally good ones the least.
    data
        Held-out rows: they give the likelihoods, and choose the number of levels.
    candidates
        The numbers of levels that ``"auto"`` tries, as for `tie`.

    Raises
    ------
    TinybayesError
        When there are fewer distinct parameters than levels, or no data to choose by.
    """
    if not len(circuit.table):
        raise error("a circuit with parameters", "one without", where="tie_circuit")
    tables = [circuit.log_parameters[None]]
    tried = candidate_levels(levels, candidates, tables, data)
    books = Books(tables, np.ones(len(circuit.table)), False, max(tried))

    def mean(values: np.ndarray) -> float:
        assert data is not None
        one = replace(circuit, table=values.reshape(-1), format=Float(64))
        weight = np.ones(len(data)) if data.weight is None else data.weight
        return float(np.average(log_evidence(one, data_rows(circuit, data)), weights=weight)) - log_partition(one)

    before, chosen = None, tried[0]
    path: list[tuple[int, float]] = []
    if data is not None:
        before = mean(tables[0])
        path = [(k, mean(books.quantized(k)[0])) for k in tried]
        chosen = max(path, key=lambda point: (point[1], -point[0]))[0]
    book = books.formats(chosen)[0]
    tied = replace(circuit, table=book.encode(circuit.log_parameters), format=book)
    return TiedCircuit(
        circuit=tied,
        levels=len(book.values),
        zeros=int(np.isneginf(circuit.log_parameters).sum()),
        epsilon=distance(circuit.log_parameters, tied.log_parameters),
        log_partition=log_partition(tied),
        before=before,
        after=dict(path).get(chosen),
        path=tuple(path),
    )
