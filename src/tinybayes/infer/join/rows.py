"""Posteriors of rows of evidence, one or many, where tables stay small: all work of a row in one kernel.

What does not depend on evidence is kept with the model, which never changes: its tables as flat arrays and an order of
its variables. Where evidence is worth an order of its own, that is kept for the next rows with the same variables
observed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tinybayes._kernels.join_rows import DONE, IMPOSSIBLE, LARGE, Model, answer_rows
from tinybayes._kernels.threads import for_blocks
from tinybayes.infer.join.limits import AT_ONCE, size_of
from tinybayes.infer.join.messages import RANGE
from tinybayes.infer.orders import quick_order
from tinybayes.infer.sampling.problem import dense_entries, facts
from tinybayes.model import LogLinear
from tinybayes.model.layout import starts, strides

__all__ = ["DONE", "IMPOSSIBLE", "Answers", "answer", "nothing", "row_seconds"]

MOST = AT_ONCE  # entries of the cliques of a row: more are worked off on all cores, one row after the other
_PLENTY = 2**15  # entries that are worth an order of their own, and
_PLENTY_VARIABLE = 64  # as many for each variable
_TABLES = 2**22  # entries of all factors
_KEPT = 64  # orders
_GENERAL = 5e-5  # seconds for a variable of a row that is answered in log space
_BLOCK = 16  # rows that a thread takes at a time
_ROUND = 512  # rows between two reports


@dataclass(frozen=True, eq=False)
class _Kept:
    """What is kept with a model."""

    arrays: Model
    scopes: tuple[tuple[int, ...], ...]  # of the factors, without variables of one state
    last_first: np.ndarray  # the variables, the one that is eliminated last first
    left: np.ndarray  # how many states zeros leave of each variable
    orders: dict[bytes, np.ndarray] = field(default_factory=dict)  # last first, by the variables that are observed

    @cached_property
    def seconds(self) -> float:
        """The time of a row without evidence, roughly."""
        return size_of(self.scopes, self.left, self.last_first[::-1].tolist()).seconds


@dataclass(frozen=True, eq=False)
class Answers:
    """The posteriors of rows."""

    posterior: np.ndarray  # (rows, states of all variables)
    logs: np.ndarray  # (rows,) of the sums over all assignments
    status: np.ndarray  # (rows,) of the kernel: `DONE`, or why there is no answer


def answer(model: LogLinear, rows: np.ndarray, progress: Callable[[float], None] | None = None) -> Answers | None:
    """Answer rows of codes, -1 for what was not observed; None: the model is not one for this.

    `progress` is called with the share of the rows that is done.
    """
    kept = _kept(model)
    if kept is None:
        return None
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    logs, status = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    answers = Answers(np.empty((len(rows), len(kept.arrays.domain))), logs, status)
    limit = _PLENTY + _PLENTY_VARIABLE * rows.shape[1]
    if len(rows) == 1:
        answer_rows(kept.arrays, kept.last_first, rows, limit, answers.posterior, logs, status)
        if status[0] == LARGE:
            answer_rows(kept.arrays, _order(kept, rows[0]), rows, MOST, answers.posterior, logs, status)
        return answers
    for start in range(0, len(rows), _ROUND):
        numbers = np.arange(start, min(start + _ROUND, len(rows)))
        _run(kept, kept.last_first, rows, numbers, limit, answers)
        alike: dict[bytes, list[int]] = {}
        for number in numbers[status[numbers] == LARGE].tolist():
            alike.setdefault((rows[number] >= 0).tobytes(), []).append(number)
        for group in alike.values():
            _run(kept, _order(kept, rows[group[0]]), rows, np.array(group), MOST, answers)
        if progress is not None:
            progress((int(numbers[-1]) + 1) / len(rows))
    return answers


def row_seconds(model: LogLinear) -> float:
    """Return the time that a row takes at most, roughly; infinite where tables are large."""
    kept = _kept(model)
    if kept is None:
        return math.inf if dense_entries(model) > _TABLES else _GENERAL * len(model.variables)
    return kept.seconds


def nothing(model: LogLinear, rows: np.ndarray) -> Answers:
    """Return no answer for any row, with space for them."""
    states = int(sum(model.cardinalities))
    return Answers(np.empty((len(rows), states)), np.empty(len(rows)), np.full(len(rows), LARGE))


def _run(
    kept: _Kept, last_first: np.ndarray, rows: np.ndarray, numbers: np.ndarray, limit: float, answers: Answers
) -> None:
    """Answer some of the rows, on all cores."""

    def work(start: int, stop: int) -> None:
        mine = numbers[start:stop]
        posterior, logs = np.empty((len(mine), answers.posterior.shape[1])), np.empty(len(mine))
        status = np.empty(len(mine), dtype=np.int64)
        answer_rows(kept.arrays, last_first, rows[mine], limit, posterior, logs, status)
        answers.posterior[mine], answers.logs[mine], answers.status[mine] = posterior, logs, status

    for_blocks(work, len(numbers), _BLOCK)


def _kept(model: LogLinear) -> _Kept | None:
    """Return what is kept with a model, made at its first question."""
    if "_rows" not in model.__dict__:
        model.__dict__["_rows"] = _flat(model) if dense_entries(model) <= _TABLES else None
    kept: _Kept | None = model.__dict__["_rows"]
    return kept


def _flat(model: LogLinear) -> _Kept | None:
    known, cards = facts(model), np.array(model.cardinalities, dtype=np.int64)
    first_entry, first_state = starts(map(len, known.tables)), starts(cards)
    logs = known.weights[np.concatenate([np.empty(0, dtype=np.int64), *known.tables])]
    begin, sizes = first_entry[:-1], np.diff(first_entry)
    top = np.maximum.reduceat(logs, begin) if len(begin) else np.empty(0)
    logs = logs - np.repeat(top, sizes)
    if (logs[logs > -np.inf] < -RANGE).any():
        return None  # answered in log space
    zero = np.minimum.reduceat(logs, begin) == -np.inf if len(begin) else np.empty(0, dtype=np.bool_)
    scopes = [factor.scope for factor in model.factors]
    hard: list[list[int]] = [[] for _ in cards]
    for f in np.flatnonzero(zero).tolist():
        for v in scopes[f]:
            hard[v].append(f)
    left = np.add.reduceat(known.domain, first_state[:-1], dtype=np.int64) if len(cards) else cards
    open_scopes = tuple(tuple(v for v in scope if left[v] > 1) for scope in scopes)
    steps = [step for scope in scopes for step in strides([model.cardinalities[v] for v in scope])]
    arrays = Model(
        cards=cards,
        first_state=first_state,
        domain=known.domain,
        first_scope=starts(map(len, scopes)),
        scope=np.array([v for scope in scopes for v in scope], dtype=np.int64),
        stride=np.array(steps, dtype=np.int64),
        first_entry=first_entry,
        value=np.exp(logs),
        first_hard=starts(map(len, hard)),
        hard=np.array([f for mine in hard for f in mine], dtype=np.int64),
        shift=float(top.sum()),
    )
    return _Kept(arrays, open_scopes, _last_first(open_scopes, left), left)


def _last_first(scopes: tuple[tuple[int, ...], ...], cards: np.ndarray) -> np.ndarray:
    return np.array(quick_order(scopes, cards)[::-1], dtype=np.int64)


def _order(kept: _Kept, row: np.ndarray) -> np.ndarray:
    """Return an order for rows that observe the variables of this one."""
    seen = row >= 0
    pattern = seen.tobytes()
    found = kept.orders.get(pattern)
    if found is None:
        scopes = tuple(tuple(v for v in scope if not seen[v]) for scope in kept.scopes)
        found = _last_first(scopes, np.where(seen, 1, kept.left))
        while len(kept.orders) >= _KEPT:
            kept.orders.pop(next(iter(kept.orders)), None)
        kept.orders[pattern] = found
    return found
