"""The passes of a join tree: up for the evidence, down for all posteriors, back for the best assignment.

Linear arithmetic comes first. When the processor reports a product too large for a double, or too small for it, which
could matter once other tables rule out everything larger, the passes are repeated in log space.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tinybayes._kernels.join_tree import (
    LOG_MAX,
    LOG_SUM,
    SUM,
    Room,
    best,
    divide,
    down,
    down_part,
    rescale,
    up_part_watched,
    up_watched,
)
from tinybayes._kernels.threads import for_blocks
from tinybayes.infer.join.plan import JoinPlan, Scope

LARGE = 2**20  # entries of a joint table that all cores work on
_PARTS = 16  # of a large joint table
COPIES = 2**21  # entries of the targets that threads have copies of
RANGE = 690.0  # nats that a table in linear space may span

Step = Callable[[float], None]
"""Called with the share of the work that is done."""


class Tables(NamedTuple):
    """The factors of a model: no more than the join tree needs of it."""

    scopes: tuple[Scope, ...]
    logs: tuple[np.ndarray, ...]  # the logarithms of the entries of each factor, row-major
    cards: np.ndarray


class _RangeError(Exception):
    """A product was too small or too large for a double."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What both passes give: the logarithm of the sum over all assignments, and marginals."""

    log_z: float
    states: tuple[np.ndarray, ...]  # of each variable
    joints: tuple[np.ndarray, ...]  # of each scope that was asked for, an axis for each of its variables


@dataclass(frozen=True, eq=False)
class Messages:
    """The pool of tables after the pass up."""

    pool: np.ndarray
    scale: np.ndarray  # of the output of each operation, its logarithm
    log_z: float
    arithmetic: int


def log_sum(join: JoinPlan, tables: Tables, step: Step | None = None) -> float:
    """Return the logarithm of the sum over all assignments; minus infinity when all are impossible."""
    return _summed(join, tables, step).log_z


def posterior(
    join: JoinPlan,
    tables: Tables,
    scopes: Sequence[Scope],
    step: Step | None = None,
) -> Posterior | None:
    """Return all marginals, and the joint ones of some scopes; None when no assignment is possible."""
    messages = _summed(join, tables, step and (lambda share: step(0.4 * share)))
    if messages.log_z == -np.inf:
        return None
    cards = tables.cards
    margins, scratch = _down(join, messages, cards, step and (lambda share: step(0.4 + 0.6 * share)))
    first = np.cumsum([0, *cards])
    states = tuple(_normalized(margins[first[v] : first[v + 1]]) for v in range(len(cards)))
    places = {frozenset(axes): (start, axes) for start, axes in join.joints}
    joints = []
    for scope in scopes:
        start, axes = places[frozenset(scope)]
        shape = [int(cards[v]) for v in axes]
        table = scratch[start : start + int(np.prod(shape))].reshape(shape)
        joints.append(_normalized(table.transpose([axes.index(v) for v in scope])))
    return Posterior(messages.log_z, states, tuple(joints))


def most_probable(join: JoinPlan, tables: Tables, step: Step | None = None) -> tuple[np.ndarray, float]:
    """Return the best assignment and its logarithm, which is minus infinity when none is possible."""
    messages = _up(join, tables, LOG_MAX, step)
    states = np.zeros(len(tables.cards), dtype=np.int64)
    if messages.log_z > -np.inf:
        best(join.plan, join.variable, join.axis_variable, messages.pool, states)
    return states, messages.log_z


def _normalized(table: np.ndarray) -> np.ndarray:
    return np.array(table / table.sum())


def _summed(join: JoinPlan, tables: Tables, step: Step | None) -> Messages:
    spread = max((_spread(table) for table in tables.logs), default=0.0)
    if spread < RANGE:
        try:
            return _up(join, tables, SUM, step)
        except _RangeError:
            pass
    return _up(join, tables, LOG_SUM, step)


def _spread(table: np.ndarray) -> float:
    """Return how many nats there are between the largest and the smallest possible entry."""
    least = float(table.min())
    if least == -np.inf:
        finite = table[table > -np.inf]
        return float(finite.max() - finite.min()) if finite.size else 0.0
    return float(table.max()) - least


def _up(join: JoinPlan, tables: Tables, arithmetic: int, step: Step | None) -> Messages:
    plan = join.plan
    pool, log_z = _pool(join, tables, arithmetic)
    scale = np.zeros(len(plan.states))
    nothing = Messages(pool, scale, -np.inf, arithmetic)
    room = _room(join)
    done, total = 0.0, float(sum(join.sizes))
    for begin, end in _runs(join):
        if end - begin == 1 and join.sizes[begin] >= LARGE:
            possible, left = _up_large(join, begin, pool, scale, arithmetic)
        else:
            possible, left = up_watched(plan, begin, end, pool, scale, room, arithmetic)
        if left and arithmetic == SUM:
            raise _RangeError
        if not possible:
            return nothing
        done += sum(join.sizes[begin:end])
        if step is not None:
            step(done / total)
    roots = [float(pool[plan.first_entry[plan.output[op]]]) for op in _roots(join)]
    log_z += float(scale.sum()) + sum(float(np.log(value)) if arithmetic == SUM else value for value in roots)
    return Messages(pool, scale, log_z, arithmetic)


def _pool(join: JoinPlan, tables: Tables, arithmetic: int) -> tuple[np.ndarray, float]:
    """Return the pool of tables with the factors in it, and the logarithm by which they were divided."""
    plan, shift = join.plan, 0.0
    pool = np.empty(int(plan.first_entry[-1]))
    for number, (axes, scope, table) in enumerate(zip(join.scopes, tables.scopes, tables.logs, strict=True)):
        top = float(table.max(initial=-np.inf))
        top = top if np.isfinite(top) else 0.0
        out = pool[plan.first_entry[number] : plan.first_entry[number + 1]]
        whole = table.reshape([int(tables.cards[v]) for v in scope])
        turned = whole.transpose([scope.index(v) for v in axes])
        np.subtract(turned, top, out=out.reshape(turned.shape))
        if arithmetic == SUM:
            np.exp(out, out=out)
        shift += top
    return pool, shift


def _roots(join: JoinPlan) -> np.ndarray:
    """Return the operations that sum their last variable out."""
    return np.flatnonzero((np.diff(join.plan.first_axis) == 1) & (join.variable >= 0))


def _runs(join: JoinPlan) -> list[tuple[int, int]]:
    """Return operations that one call does, in order: a large one, or many small ones."""
    runs: list[tuple[int, int]] = []
    begin = 0
    for op, size in enumerate(join.sizes):
        if size >= LARGE:
            runs += [(begin, op)] * (op > begin) + [(op, op + 1)]
            begin = op + 1
    return runs + [(begin, len(join.sizes))] * (begin < len(join.sizes))


def _room(join: JoinPlan) -> Room:
    """Return space for one thread."""
    tables, tile, axes = join.room
    kinds, bases = np.empty(tables, np.int64), np.empty(tables, np.int64)
    return Room(np.empty(tile), np.empty((tables, tile), np.int64), kinds, bases, np.empty(axes, np.int64))


def _tiles(join: JoinPlan, op: int) -> int:
    plan = join.plan
    axes = plan.axis_card[plan.first_axis[op] : plan.first_axis[op + 1]]
    return int(np.prod(axes[: len(axes) - plan.inner[op]]))


def _up_large(join: JoinPlan, op: int, pool: np.ndarray, scale: np.ndarray, arithmetic: int) -> tuple[bool, bool]:
    """Do one operation on all cores; parts write to parts of the output."""
    tops: list[float] = []
    flags: list[bool] = []

    def work(start: int, stop: int) -> None:
        top, left = up_part_watched(join.plan, op, start, stop, pool, _room(join), arithmetic)
        tops.append(top)
        flags.append(left)

    tiles = _tiles(join, op)
    for_blocks(work, tiles, max(1, -(-tiles // _PARTS)))
    top = max(tops)
    rescale(join.plan, op, top, pool, scale, arithmetic)
    return top > (0.0 if arithmetic == SUM else -np.inf), any(flags)


def _down(join: JoinPlan, messages: Messages, cards: np.ndarray, step: Step | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the margins of all variables, and the scratch space with the joint ones; the messages are used up."""
    plan, pool, scale = join.plan, messages.pool, messages.scale
    logs = messages.arithmetic != SUM
    first = np.cumsum([0, *cards])[:-1]
    first_margin = np.where(join.variable >= 0, first[join.variable], 0)
    margins, scratch = np.zeros(int(np.sum(cards))), np.zeros(join.scratch + COPIES)
    for op in _roots(join):
        at = plan.first_entry[plan.output[op]]
        pool[at] = -pool[at] - scale[op] if logs else np.exp(-scale[op]) / pool[at]
    room = _room(join)
    shift = np.zeros(int(np.diff(plan.first_target).max(initial=1)), np.int64)
    done, total = 0.0, float(sum(join.sizes))
    for begin, end in reversed(_runs(join)):
        if end - begin == 1 and join.sizes[begin] >= LARGE and plan.states[begin] > 1:
            margin = margins[first_margin[begin] : first_margin[begin] + plan.states[begin]]
            _down_large(join, begin, pool, margin, scratch, logs)
            divide(plan, begin, pool, scale, scratch, logs)
        else:
            down(plan, begin, end, pool, scale, margins, first_margin, scratch, shift, room, logs)
        done += sum(join.sizes[begin:end])
        if step is not None:
            step(done / total)
    return margins, scratch


def _down_large(join: JoinPlan, op: int, pool: np.ndarray, margin: np.ndarray, scratch: np.ndarray, logs: bool) -> None:
    """Do one operation on all cores.

    Parts are the states of the first axes. Where a target has them all, parts write to parts of it; where not, each
    part has a copy of the target, if that is small.
    """
    plan, (parts, copied) = join.plan, _split(join, op)
    first, last = int(plan.first_target[op]), int(plan.first_target[op + 1])
    shifts, end = np.zeros((parts, max(last - first, 1)), np.int64), join.scratch
    for target, copy in zip(range(first, last), copied, strict=True):
        start, size = int(plan.target_start[target]), int(plan.target_size[target])
        scratch[start : start + size] = 0.0
        if copy:
            scratch[end : end + parts * size] = 0.0
            shifts[:, target - first] = end - start + size * np.arange(parts)
            end += parts * size
    own_margin, tiles = np.zeros((parts, len(margin))), _tiles(join, op) // parts

    def work(part: int, _: int) -> None:
        begin = part * tiles
        down_part(plan, op, begin, begin + tiles, pool, own_margin[part], scratch, shifts[part], _room(join), logs)

    for_blocks(work, parts, 1)
    margin += own_margin.sum(axis=0)
    for target, copy in zip(range(first, last), copied, strict=True):
        if copy:
            start, size = int(plan.target_start[target]), int(plan.target_size[target])
            copies = scratch[start + shifts[0, target - first] :][: parts * size]
            scratch[start : start + size] = copies.reshape(parts, size).sum(axis=0)


def _split(join: JoinPlan, op: int) -> tuple[int, list[bool]]:
    """Return into how many parts an operation is split on the way down, and which targets each part has a copy of."""
    plan = join.plan
    targets = range(plan.first_target[op], plan.first_target[op + 1])
    axes = plan.axis_card[plan.first_axis[op] : plan.first_axis[op + 1]]
    parts, copied = 1, [False] * len(targets)
    for count in range(1, len(axes) - plan.inner[op] + 1):
        more = [not plan.stride[plan.target_stride[t] :][:count].all() for t in targets]
        wanted = parts * int(axes[count - 1])
        extra = sum(int(plan.target_size[t]) for t, copy in zip(targets, more, strict=True) if copy)
        if parts >= _PARTS or wanted * extra > COPIES:
            break
        parts, copied = wanted, more
    return parts, copied
