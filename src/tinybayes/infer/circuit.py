"""Exact queries of a circuit, for rows of evidence at once.

Evidence is a row of codes, one for each variable and the class last, -1 where nothing was observed; what was not
observed is summed out. Time and memory are linear in the edges of the circuit.
"""

import numpy as np

from tinybayes._kernels.circuits_log import best_rows, draw_rows, fill_log, up_log
from tinybayes._kernels.threads import for_blocks
from tinybayes.errors import error
from tinybayes.infer.circuit_passes import entry_counts, pass_rows, plan_of, share_of
from tinybayes.infer.circuit_properties import require
from tinybayes.model import Circuit
from tinybayes.model.layout import check_codes
from tinybayes.options import check_seed

_TINY = -500.0  # nats; the logarithm of the smallest double is -708


def log_evidence(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Return the log-probability of each row of evidence: of a complete row its log-likelihood.

    Parameters
    ----------
    circuit
        A smooth and decomposable circuit.
    X
        Codes, shape (rows, variables); the column of the class may be left out.

    Returns
    -------
    ndarray of float64, shape (rows,)
        Minus infinity for evidence that is impossible.
    """
    return pass_rows(circuit, checked_rows(circuit, X))[0]


def log_partition(circuit: Circuit) -> float:
    """Return ``log Z``, the logarithm of the sum over all assignments; exactly zero where only rounding separates it.

    It is zero for a normalised network; tied and quantised parameters have another sum.
    """
    log_z = float(log_evidence(circuit, np.full((1, len(circuit.nodes)), -1))[0])
    return 0.0 if abs(log_z) < 1e-12 * len(circuit.nodes) else log_z


def posteriors(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Return the posterior probability of every state of every variable, given each row of evidence.

    Parameters
    ----------
    circuit, X
        As for `log_evidence`.

    Returns
    -------
    ndarray of float64, shape (rows, states of all variables)
        The states of variable ``v`` are the columns ``circuit.first_state[v]`` to ``circuit.first_state[v + 1]``.

    Raises
    ------
    TinybayesError
        When a row of evidence has the probability zero.
    """
    return evidence_and_posteriors(circuit, X)[1]


def evidence_and_posteriors(circuit: Circuit, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of `log_evidence` and `posteriors`, from the same passes."""
    X = checked_rows(circuit, X)
    posterior = np.empty((len(X), int(circuit.first_state[-1])))
    return _possible(pass_rows(circuit, X, posterior)[0]), posterior


def log_joint_with_class(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Return ``log p(x, c)`` for each row of features and each class: one pass up and one down for all classes."""
    X = checked_rows(circuit, X)
    posterior = np.empty((len(X), int(circuit.first_state[-1])))
    logs = pass_rows(circuit, X, posterior)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = logs[:, None] + np.log(posterior[:, circuit.first_state[-2] :])
    scores[logs == -np.inf] = -np.inf
    rows, codes = np.nonzero((scores < logs[:, None] + _TINY) & (logs > -np.inf)[:, None])
    if rows.size:  # so small that doubles may have lost it: computed separately
        single = X[rows]
        single[:, -1] = codes
        scores[rows, codes] = pass_rows(circuit, single)[0]
    return scores


def conditional(
    circuit: Circuit, query_rows: np.ndarray, evidence_rows: np.ndarray, *, log: bool = False
) -> np.ndarray:
    """Return ``P(query | evidence)`` for each pair of rows.

    Parameters
    ----------
    circuit
        A smooth and decomposable circuit.
    query_rows, evidence_rows
        Codes, -1 where a variable belongs to neither. A query that contradicts its evidence has the probability zero.
    log
        Return log-probabilities.

    Raises
    ------
    TinybayesError
        When a row of evidence has the probability zero.
    """
    query, evidence = checked_rows(circuit, query_rows), checked_rows(circuit, evidence_rows)
    if len(query) != len(evidence):
        raise error(f"{len(evidence)} rows, one for each row of evidence", len(query), where="query rows")
    given = _possible(pass_rows(circuit, evidence)[0])
    both = pass_rows(circuit, np.where(query >= 0, query, evidence))[0]
    both[((query >= 0) & (evidence >= 0) & (query != evidence)).any(axis=1)] = -np.inf
    return both - given if log else np.exp(both - given)


def log_conditionals(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Return the log-probability of each observed value given all others of its row: how surprising it is.

    Parameters
    ----------
    circuit, X
        As for `log_evidence`.

    Returns
    -------
    ndarray of float64, shape (rows, variables)
        NaN where nothing was observed. Minus infinity for a value that the others rule out.

    Raises
    ------
    TinybayesError
        When a row has the probability zero also without one of its values.
    """
    X = checked_rows(circuit, X)
    logs, result = pass_rows(circuit, X)[0], np.full(X.shape, np.nan)
    for v in range(X.shape[1]):
        seen = np.flatnonzero(X[:, v] >= 0)
        if seen.size:
            others = X[seen]
            others[:, v] = -1
            result[seen, v] = logs[seen] - _possible(pass_rows(circuit, others)[0])
    return result


def most_probable(circuit: Circuit, X: np.ndarray, *, approximate: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Complete each row of evidence in the most probable way.

    Parameters
    ----------
    circuit
        A smooth and decomposable circuit; deterministic, too, unless `approximate`.
    X
        As for `log_evidence`.
    approximate
        Take the maximum at every sum also in a circuit that is not deterministic, such as that of a latent tree. The
        rows are then those of the most probable values *and* hidden states together. Their log-probability, in which
        hidden states are summed out again, is exact, hence a lower bound of the largest one.

    Returns
    -------
    rows, log_probability
        The complete rows, and the log-probability of each. Ties are broken arbitrarily. In a circuit that is not
        normalised, such as a tied one, it is the logarithm of the weight: subtract `log_partition`.

    Raises
    ------
    TinybayesError
        When the circuit lacks a property, or a row of evidence has the probability zero.
    """
    exact = not approximate
    if exact:
        lower_bound = "approximate=True completes rows with a probability that is a lower bound of the largest one"
        require(circuit, "deterministic", remedy=lower_bound)
    X, plan = checked_rows(circuit, X), plan_of(circuit)
    rows, log_probability = np.empty_like(X), np.empty(len(X))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        best_rows(plan, X[part], rows[part], log_probability[part])

    for_blocks(work, len(X), share_of(len(X)))
    _possible(log_probability)
    return rows, log_probability if exact else pass_rows(circuit, rows)[0]


def sample(circuit: Circuit, n: int, seed: int, evidence: np.ndarray | None = None) -> np.ndarray:
    """Draw rows exactly from the distribution of a circuit, given a row of evidence or none.

    Parameters
    ----------
    circuit
        A smooth and decomposable circuit.
    n
        How many rows.
    seed
        The same seed gives the same rows.
    evidence
        One row of codes, shape (variables,), -1 where nothing was observed.

    Returns
    -------
    ndarray of int32, shape (n, variables)
    """
    check_seed(seed)
    plan = plan_of(circuit)
    given = np.full(len(circuit.nodes), -1) if evidence is None else np.asarray(evidence)
    row = checked_rows(circuit, given[None])[0]
    value = np.empty(len(plan.home))
    fill_log(plan, row, value)
    up_log(plan, value)
    _possible(value[-1:])
    if n < 0:
        raise error("a number of rows that is not negative", n, where="sample")
    rows = np.empty((n, len(row)), dtype=np.int32)
    draw_rows(plan, value, seed % 2**32, rows)
    return rows


def expected_counts(circuit: Circuit, X: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return how often each parameter is expected to be used, given rows of evidence: the E step of EM.

    A parameter that stands for several (see `compile_circuit`) has the counts of all of them.

    Parameters
    ----------
    circuit, X
        As for `log_evidence`.
    weight
        The weight of each row; one when None.

    Returns
    -------
    ndarray of float64, one entry for each entry of the circuit's table

    Raises
    ------
    TinybayesError
        When a row of evidence has the probability zero.
    """
    X = checked_rows(circuit, X)
    weights = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    if weights.shape != (len(X),) or not np.isfinite(weights).all():
        raise error(f"{len(X)} finite weights, one for each row", f"shape {weights.shape}", where="weight")
    logs, flow = pass_rows(circuit, X, weight=weights)
    _possible(logs)
    return entry_counts(plan_of(circuit), flow, len(circuit.table))


def checked_rows(circuit: Circuit, X: np.ndarray) -> np.ndarray:
    """Check shape and range of evidence; add a missing column of the class."""
    X = np.asarray(X)
    columns, features = len(circuit.nodes), len(circuit.variables)
    given = features if X.ndim == 2 and X.shape[1] == features else columns
    check_codes(X, circuit.cardinalities[:given], where="evidence")
    if X.shape[1] < columns:
        X = np.column_stack([X, np.full(len(X), -1)])
    return np.ascontiguousarray(X, dtype=np.int32)


def _possible(logs: np.ndarray) -> np.ndarray:
    if (impossible := np.flatnonzero(logs == -np.inf)).size:
        raise error(
            "evidence with a probability above zero",
            "zero: no assignment of the variables agrees with it",
            where=f"evidence, row {impossible[0]}",
            remedy="take back one of the observations",
        )
    return logs
