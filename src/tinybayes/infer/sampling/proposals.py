"""Proposals: what a variable is drawn from, with or without messages from the variables that are drawn after it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinybayes._kernels.buckets import eliminate, supports
from tinybayes._kernels.draws import Sampler
from tinybayes.infer.orders import quick_order
from tinybayes.infer.sampling.problem import Problem, impossible
from tinybayes.infer.sampling.schedule import Scopes, Units, make_units
from tinybayes.infer.sampling.weighted import Proposal
from tinybayes.model.layout import starts, strides

MOST_SUPPORTS = 2**23  # entries of all tables that say what can be completed
BLIND = "zeros are looked for in part only: a sample may end with the weight zero"
_SAME = 1e-12
_NEARLY = 1e-3  # rows of a network that was read from a file may be off one by this


@dataclass(frozen=True)
class Table:
    """Rows of chances of a variable."""

    context: tuple[int, ...]  # the variables that choose the row
    ratio: np.ndarray  # the rows, one after the other
    log_message: np.ndarray | None = None  # the divisor of each row, where it belongs to the weight


def barren(problem: Problem) -> list[int]:
    """Return variables that only tell about themselves: summed out one after the other, they leave a constant, nearly.

    In a network these are the variables without observed descendants; what they are hardly changes a weight.
    """
    uses: list[set[int]] = [set() for _ in problem.free]
    for number, scope in enumerate(problem.scopes):
        for v in scope:
            uses[v].add(number)
    unused: list[int] = []
    waiting = [v for v, mine in enumerate(uses) if len(mine) == 1]
    while waiting:
        v = waiting.pop()
        if len(uses[v]) != 1:
            continue
        number = next(iter(uses[v]))
        scope = problem.scopes[number]
        shape = [int(problem.states[u]) for u in scope]
        with np.errstate(under="ignore", over="ignore"):
            sums = np.exp(problem.logs[number]).reshape(shape).sum(axis=scope.index(v))
        if not 0 < sums.max() < np.inf or sums.max() - sums.min() > _NEARLY * sums.max():
            continue
        unused.append(v)
        for u in scope:
            uses[u].discard(number)
            if u != v and len(uses[u]) == 1:
                waiting.append(u)
    return unused


def rest_order(problem: Problem, first: Sequence[int]) -> tuple[int, ...]:
    """Return an elimination order that begins with the variables given, which need no care."""
    gone = set(first)
    left = [v for v in range(len(problem.free)) if v not in gone]
    number = {v: k for k, v in enumerate(left)}
    scopes = [tuple(number[v] for v in scope) for scope in problem.scopes if not gone & set(scope)]
    order = quick_order(scopes, problem.states[np.array(left, dtype=np.int64)])
    return (*first, *(left[k] for k in order))


def passed(problem: Problem, units: Units) -> tuple[np.ndarray, np.ndarray, float]:
    """Pass the messages of a schedule; return the pool of tables, the joint tables, and the root's logarithm."""
    plan = units.plan
    tables = np.zeros(units.tables)
    tables[: plan.first_entry[plan.factors]] = np.concatenate([np.empty(0), *problem.logs])
    joint = np.empty(units.entries)
    parts = int(np.rint(1 / plan.share.min(initial=1.0))) + 1
    margin = np.empty(parts * int(plan.states.max(initial=1)))
    eliminate(plan, tables, joint, units.digits(), margin)
    ends = [u for u, context in enumerate(units.contexts) if not context]
    root = problem.constant + float(sum(tables[plan.first_entry[plan.factors + u]] for u in ends))
    if root == -math.inf:
        raise impossible()
    return tables, joint, root


def with_messages(
    problem: Problem, units: Units, order: Sequence[int], alone: frozenset[int], *, prune: bool = True
) -> Proposal:
    """Make the proposal that follows the messages of a schedule; evidence and zeros further on are then foreseen.

    The messages of the variables `alone` were not passed on.
    """
    pool, joint, root = passed(problem, units)
    plan = units.plan
    seen = True
    tables: list[list[Table]] = [[] for _ in problem.free]
    for u, (v, context) in enumerate(zip(units.variable.tolist(), units.contexts, strict=True)):
        message, table = None, plan.factors + u
        if v in alone and context:
            message = pool[plan.first_entry[table] : plan.first_entry[table + 1]]
            if message.max() - message.min() <= _SAME:
                root, message = root + float(message[0]), None
        tables[v].append(Table(context, joint[plan.first_joint[u] : plan.first_joint[u + 1]], message))
    if units.split and prune:
        seen = _add_supports(problem, order, tables)
    sampler = make_sampler(problem, order[::-1], tables, average=True)
    return Proposal(sampler, problem.shape, root, () if seen else (BLIND,), blind=not seen)


def without_messages(
    problem: Problem,
    order: Sequence[int],
    *,
    average: bool = True,
    known: dict[int, int] | None = None,
    reject: bool = False,
) -> Proposal:
    """Make the plain proposal: a variable is drawn from the product of the factors that it completes."""
    rank = {v: k for k, v in enumerate(order)}
    tables: list[list[Table]] = [[] for _ in problem.free]
    scale = problem.constant
    for scope, logs in zip(problem.scopes, problem.logs, strict=True):
        v = max(scope, key=lambda u: rank[u])
        table, constant = _row_table(scope, logs, v, problem.states)
        tables[v].append(table)
        scale += constant
    sampler = make_sampler(problem, order, tables, average=average, known=known, reject=reject)
    return Proposal(sampler, problem.shape, scale)


def _row_table(scope: tuple[int, ...], logs: np.ndarray, v: int, states: np.ndarray) -> tuple[Table, float]:
    """Make the rows of one factor for one of its variables; what all rows were divided by is a constant."""
    shape = [int(states[u]) for u in scope]
    table = np.moveaxis(logs.reshape(shape), scope.index(v), -1).reshape(-1, int(states[v]))
    top = table.max(axis=1, keepdims=True)
    ratio = np.exp(table - np.where(np.isneginf(top), 0.0, top))
    total = ratio.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        message = (top + np.log(total))[:, 0]
    context = tuple(u for u in scope if u != v)
    rows = (ratio / np.where(total > 0, total, 1.0)).reshape(-1)
    if message.max() - message.min() <= _SAME:  # not where some row is impossible
        return Table(context, rows), float(message[0])
    return Table(context, rows, message), 0.0


def smoothed(problem: Problem, proposal: Proposal) -> Proposal:
    """Return the proposal that averages chances given all other variables; the scale of a factor does not matter."""
    parts = [np.exp(logs - logs.max()) for logs in problem.logs]
    return replace(proposal, values=np.concatenate([np.empty(0), *parts]))


def _add_supports(problem: Problem, order: Sequence[int], tables: list[list[Table]]) -> bool:
    """Add tables of ones and zeros that rule out what factors with zeros cannot complete; False: they are too large."""
    hard = [k for k, logs in enumerate(problem.logs) if np.isneginf(logs).any()]
    if not hard:
        return True
    scopes: Scopes = [problem.scopes[k] for k in hard]
    units = make_units(scopes, problem.states, order)
    if units.entries > MOST_SUPPORTS:
        return False
    plan, joint, pool = units.plan, np.empty(units.entries), np.zeros(units.tables)
    pool[: plan.first_entry[plan.factors]] = np.concatenate([np.isfinite(problem.logs[k]) for k in hard])
    supports(plan, pool, joint, units.digits())
    for u, (v, context) in enumerate(zip(units.variable.tolist(), units.contexts, strict=True)):
        part = joint[plan.first_joint[u] : plan.first_joint[u + 1]]
        if not part.all():
            tables[v].append(Table(context, part))
    return True


def make_sampler(
    problem: Problem,
    order: Sequence[int],
    tables: list[list[Table]],
    *,
    average: bool,
    known: dict[int, int] | None = None,
    reject: bool = False,
) -> Sampler:
    """Lay a proposal out; `order` is that of drawing."""
    chosen = [table for v in order for table in tables[v]]
    steps = [strides([problem.states[u] for u in table.context]) for table in chosen]
    sizes = [0 if table.log_message is None else len(table.log_message) for table in chosen]
    kept = [table.log_message for table in chosen if table.log_message is not None]
    index = np.array(order, dtype=np.int64)
    given, matter = known or {}, _matters(order, tables)
    return Sampler(
        variable=index,
        states=problem.states[index],
        known=np.array([given.get(v, -1) for v in order], dtype=np.int64),
        reject=np.array([reject]),
        average=np.array([average and v not in matter for v in order], dtype=np.bool_),
        first_state=problem.first_state,
        first_table=starts([len(tables[v]) for v in order]),
        row=starts([len(table.ratio) for table in chosen])[:-1],
        message=np.where(np.array(sizes, dtype=np.int64) > 0, starts(sizes)[:-1], -1),
        first_context=starts([len(table.context) for table in chosen]),
        context=np.array([u for table in chosen for u in table.context], dtype=np.int64),
        stride=np.array([step for own in steps for step in own], dtype=np.int64),
        ratio=np.concatenate([np.empty(0), *(table.ratio for table in chosen)]),
        log_message=np.concatenate([np.empty(0), *kept]),
    )


def _matters(order: Sequence[int], tables: list[list[Table]]) -> set[int]:
    """Return the variables on which the weight depends, directly or through what is drawn after them."""
    relevant: set[int] = set()
    for v in reversed(order):
        weighs = len(tables[v]) > 1 or any(table.log_message is not None for table in tables[v])
        if weighs or v in relevant:
            relevant.update(u for table in tables[v] for u in table.context)
    return relevant
