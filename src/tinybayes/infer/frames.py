"""Answers and predictions as tables, batch by batch."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from tinybayes.data.encode import encode_column, encode_frame
from tinybayes.errors import error
from tinybayes.infer.alarm import Alarm, least_probable
from tinybayes.infer.circuit import conditional, log_evidence, log_partition, posteriors
from tinybayes.infer.likelihood import log_likelihood
from tinybayes.infer.scores import class_scores, normalize_scores, predict_codes
from tinybayes.model import Circuit, Classifier, Dataset, Variable
from tinybayes.model.variable import distinct_texts, state_array


def encode_evidence(frame: pd.DataFrame, nodes: tuple[Variable, ...], first_row: int = 0) -> np.ndarray:
    """Return the codes of a frame of evidence: empty cells, and variables without a column, are not observed.

    Unlike data to learn from, evidence with an unknown column or state is an error: a wrong answer would look right.
    """
    index = {node.name: number for number, node in enumerate(nodes)}
    X = np.full((len(frame), len(nodes)), -1, dtype=np.int32)
    for name in map(str, frame.columns):
        if name not in index:
            raise error("columns that are variables of the model", repr(name), where="evidence")
        column = frame[name]
        codes = encode_column(column, nodes[index[name]])
        unknown = np.flatnonzero((codes < 0) & column.notna().to_numpy())
        if len(unknown):
            row = int(unknown[0])
            got, where = repr(column.iloc[row]), f"evidence, row {first_row + row + 1}, column {name!r}"
            states = ", ".join(map(str, nodes[index[name]].states[:10]))
            raise error(f"a state of the variable ({states})", got, where=where)
        X[:, index[name]] = codes
    return X


def query_frames(
    circuit: Circuit, frames: Iterable[pd.DataFrame], query: np.ndarray, evidence: np.ndarray, *, posterior: bool
) -> Iterator[pd.DataFrame]:
    """Answer a question for each row of batches of evidence.

    `query` holds the codes asked for, `evidence` those that are known in all rows. A frame has the column
    ``log_evidence``, with a query also ``probability``, with `posterior` also ``NAME=STATE`` for each state.
    """
    first, constant = 0, log_partition(circuit)
    for frame in frames:
        rows = encode_evidence(frame, circuit.nodes, first)
        clash = np.flatnonzero(((rows >= 0) & (evidence >= 0) & (rows != evidence)).any(axis=1))
        if len(clash):
            where = f"evidence, row {first + int(clash[0]) + 1}"
            raise error("the states that the query says are known", "others", where=where)
        rows = np.where(evidence >= 0, evidence, rows)
        columns = {"log_evidence": log_evidence(circuit, rows) - constant}
        impossible = np.flatnonzero(columns["log_evidence"] == -np.inf)
        if len(impossible) and (posterior or (query >= 0).any()):
            where = f"evidence, row {first + int(impossible[0]) + 1}"
            raise error("evidence with a probability above zero", "zero", where=where)
        if (query >= 0).any():
            columns["probability"] = conditional(circuit, np.broadcast_to(query, rows.shape), rows)
        if posterior:
            names = [f"{node.name}={text}" for node in circuit.nodes for text in distinct_texts(node.states)]
            columns |= dict(zip(names, posteriors(circuit, rows).T, strict=True))
        yield pd.DataFrame(columns)
        first += len(frame)


def alarm_frames(circuit: Circuit, alarm: Alarm, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield the columns ``log_likelihood``, ``alarm`` and ``blame`` for batches of rows, as a detector has them.

    The blame of an alarm is the column whose value is the least probable one, given all others of its row.
    """
    names = [variable.name for variable in circuit.variables]
    for frame in frames:
        codes = encode_frame(frame, circuit.variables)
        unseen = (codes < 0) & frame[names].notna().to_numpy()
        logs = log_likelihood(circuit, codes)
        scores = alarm.scores(logs, unseen.sum(axis=1))
        alarms = scores < alarm.threshold
        blamed = np.full(len(codes), None, dtype=object)
        rows = np.flatnonzero(alarms)
        blamed[rows] = [None if v < 0 else names[v] for v in least_probable(circuit, codes[rows], unseen[rows])]
        yield pd.DataFrame({"log_likelihood": scores, "alarm": alarms, "blame": blamed})


def prediction_frames(net: Classifier, data: Iterable[Dataset], *, proba: bool = False) -> Iterator[pd.DataFrame]:
    """Yield a frame with the predicted class for each batch, named like the target; `proba` adds ``p(STATE)``."""
    if net.target is None:
        raise error("a network with a class variable", "none", where="predict", remedy="name a target")
    states = state_array(net.target.states)
    texts = distinct_texts(net.target.states)
    for batch in data:
        if not proba:
            yield pd.DataFrame({net.target.name: states[predict_codes(net, batch.X)]})
            continue
        scores = class_scores(net, batch.X)
        posterior = np.exp(normalize_scores(scores))
        labels = {net.target.name: states[scores.argmax(axis=1)]}
        yield pd.DataFrame(labels | {f"p({text})": posterior[:, k] for k, text in enumerate(texts)})
