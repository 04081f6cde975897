"""One epoch of training the tables of a network by gradient, for one configuration: `TableSteps.step` as loops.

The arithmetic is that of `learn/training/table_steps.py`, where the equations are; the random numbers come from
outside, so that both take the same steps. A mini-batch touches few numbers for each row, but Adam moves every table,
so that most of the time goes into the tables. Two things are left out that change no float:

- A table that was not chosen for `IDLE` mini-batches has a first moment of almost zero, so that it stays where it is
  until it is chosen again. What its moments would have lost meanwhile is taken off then.
- A candidate with a softmax below `NEVER` adds nothing to the gradient of the structure.

A *unit* is what is updated at once: some neighbouring groups of the layout, for all states; in a search, one table.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.single import (
    LANES,
    add_four,
    add_four_lanes,
    add_lanes,
    add_one,
    add_product_lanes,
    add_two,
    exp,
    log,
    sum_of_lanes,
)

IDLE = 160  # 0.9**160 is below the resolution of a 32-bit float
NEVER = np.float32(1e-14)
WIDTH = 1024  # numbers that are worked on at once; they stay in the nearest cache
ZERO, ONE = np.float32(0), np.float32(1)
KEEP1, MOVE1 = np.float32(0.9), np.float32(1 - 0.9)
KEEP2, MOVE2 = np.float32(0.999), np.float32(1 - 0.999)
EPSILON = np.float32(1e-7)
# Nothing is allocated, so that references need no counting, and divisions are not tested for zero.
lean = partial(jit, _nrt=False, error_model="numpy", fastmath={"contract"})
in_any_order = partial(jit, _nrt=False, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})  # sums


class Moments(NamedTuple):
    """Parameters with their two Adam moments, changed in place."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Tables(NamedTuple):
    """The tables of a configuration: moments of shape (entries, classes), and what training reads of them."""

    theta: Moments
    prior: Moments
    logits: Moments  # (features, candidates)
    # The entries through the fixed-point format, or as they are if there is none. Classes are read LANES at a time, and
    # what lies behind those of an entry is ignored: it is flat, with LANES numbers behind the last entry.
    seen: np.ndarray
    gradient: np.ndarray  # of the entries, zero between two mini-batches


class Layout(NamedTuple):
    """Where tables lie, as in `table_steps.Space`, and the units."""

    parent: np.ndarray  # (features, candidates)
    offset: np.ndarray  # (features, candidates)
    stride: np.ndarray  # (features,)
    size: np.ndarray  # (features, candidates) parameters of a table
    allowed: np.ndarray  # (features, candidates)
    first: np.ndarray  # (units,) the first entry
    groups: np.ndarray  # (units,)
    states: np.ndarray  # (units,)
    step: np.ndarray  # (units,) entries from one state to the next
    unit: np.ndarray  # (features, candidates) the unit of a table in a search


class Epoch(NamedTuple):
    """The rows in the order of the mini-batches, and what was drawn for them; empty arrays where nothing is drawn."""

    X: np.ndarray  # (rows, features), in the order of the file
    order: np.ndarray  # (batches, batch) rows
    y: np.ndarray  # (batches, batch)
    weight: np.ndarray  # (batches, batch)
    moving: np.ndarray  # (batches, 2, batch, features) uniform numbers: whether a code moves, and where to
    moves: np.ndarray  # (features, states, states) cumulative probabilities
    gumbel: np.ndarray  # (batches, features, candidates)
    lost: np.ndarray  # (batches, features) uniform numbers: whether a feature loses its parent


class Work(NamedTuple):
    """What is worked on in a mini-batch; see `work_space`."""

    codes: np.ndarray  # (batch, features)
    cells: np.ndarray  # (batch, features) the entry of a row in the chosen table, -1 where something is missing
    column: np.ndarray  # (batch,) the same for one table
    choice: np.ndarray  # (features,)
    soft: np.ndarray  # (features, candidates)
    prior: np.ndarray  # (classes,) as it is seen
    g: np.ndarray  # (batch, classes filled up to LANES) scores, and then their gradients
    powers: np.ndarray  # (classes filled up,)
    chosen: np.ndarray  # (units,)
    slope: np.ndarray  # (candidates,)
    wide: np.ndarray  # (2, WIDTH)


def work_space(layout: Layout, batch: int, classes: int) -> Work:
    """Return the memory that `train_epoch` works in."""
    (features, candidates), units = layout.parent.shape, len(layout.first)
    codes, cells = np.empty((batch, features), np.int32), np.empty((batch, features), np.int64)
    choice, soft = np.empty(features, np.int64), np.zeros((features, candidates), np.float32)
    filled = -(-classes // LANES) * LANES
    prior, g, powers = (np.zeros(shape, np.float32) for shape in (classes, (batch, filled), filled))
    slope, wide = np.empty(candidates, np.float32), np.empty((2, WIDTH), np.float32)
    return Work(
        codes, cells, np.empty(batch, np.int64), choice, soft, prior, g, powers, np.empty(units, np.bool_), slope, wide
    )


class Hyper(NamedTuple):
    """The fields of `table_steps.Hyper` that a mini-batch needs, at this epoch, and the number of steps before it."""

    lam: np.float32
    gamma: np.float32
    eta: np.float32
    conditional: np.float32
    rate: np.float32
    structure_rate: np.float32
    size_penalty: np.float32
    structure_noise: np.float32
    input_noise: np.float32
    tau: np.float32
    quantized: bool
    scale: np.float32
    limit: np.float32
    steps: int


@lean
def train_epoch(tables: Tables, layout: Layout, epoch: Epoch, hyper: Hyper, idle: np.ndarray, work: Work) -> None:
    """Take a step on every mini-batch. `idle[u]` counts the mini-batches since unit u was last chosen."""
    batches, features = len(epoch.order), len(layout.parent)
    search = layout.parent.shape[1] > 1
    codes, cells, column, choice, soft, prior, g, powers, chosen, slope, wide = work
    choice[:] = 0
    chosen[:] = True
    for b in range(batches):
        t = np.float32(hyper.steps + b + 1)
        correction = np.sqrt(ONE - KEEP2**t) / (ONE - KEEP1**t)
        read_codes(epoch, b, hyper.input_noise, codes)
        if search:
            choose(tables.logits.value, layout.allowed, epoch, b, hyper, choice, soft)
            chosen[:] = False
            for i in range(features):
                chosen[layout.unit[i, choice[i]]] = True
        see(tables.prior.value, prior, hyper)
        find_chosen(layout, codes, choice, cells)
        add_scores(tables.seen, prior, cells, g)
        into_gradients(g, len(prior), epoch.y[b], epoch.weight[b], hyper, powers)
        if search:
            move_structure(
                tables, layout, codes, g, soft, hyper, hyper.structure_rate * correction, slope, column, powers
            )
        scatter(tables.gradient, len(prior), cells, g)
        rate = hyper.rate * correction
        for u in range(len(idle)):
            if chosen[u] or idle[u] < IDLE:
                skipped = max(0, idle[u] - IDLE)
                faded1 = np.float32(0.9**skipped) if skipped else ONE
                faded2 = np.float32(0.999**skipped) if skipped else ONE
                update(tables, layout, u, hyper, rate, chosen[u], faded1, faded2, wide)
            idle[u] = 0 if chosen[u] else idle[u] + 1
        update_prior(tables.prior, g, rate, powers)


@lean
def read_codes(epoch: Epoch, b: int, noise: np.float32, codes: np.ndarray) -> None:
    """Read the rows of a mini-batch, and move codes as `input_noise.jitter` does."""
    batch, features = codes.shape
    for r in range(batch):
        row = epoch.order[b, r]
        for i in range(features):
            codes[r, i] = epoch.X[row, i]
    if len(epoch.moving) == 0:
        return
    for r in range(batch):
        for i in range(features):
            code = codes[r, i]
            if code >= 0 and epoch.moving[b, 0, r, i] < noise:
                level, below = epoch.moving[b, 1, r, i], epoch.moves[i, code]
                other = 0
                for probability in below:
                    other += level >= probability
                codes[r, i] = other


@lean
def choose(
    logits: np.ndarray,
    allowed: np.ndarray,
    epoch: Epoch,
    b: int,
    hyper: Hyper,
    choice: np.ndarray,
    soft: np.ndarray,
) -> None:
    """Draw a candidate for each feature by the Gumbel trick, and the softmax that its gradient goes through."""
    features, candidates = logits.shape
    for i in range(features):
        best, most = 0, np.float32(-np.inf)
        for k in range(candidates):
            soft[i, k] = logits[i, k] + epoch.gumbel[b, i, k]
            if allowed[i, k] and soft[i, k] > most:
                best, most = k, soft[i, k]
        kept = epoch.lost[b, i] >= hyper.structure_noise
        choice[i] = best if kept else 0
        total = ZERO
        for k in range(candidates):
            soft[i, k] = exp((soft[i, k] - most) / hyper.tau) if allowed[i, k] and kept else ZERO
            total += soft[i, k]
        if total > ZERO:
            for k in range(candidates):
                soft[i, k] /= total


@lean
def see(values: np.ndarray, seen: np.ndarray, hyper: Hyper) -> None:
    """Write values as the fixed-point format shows them."""
    if not hyper.quantized:
        for j in range(len(values)):
            seen[j] = values[j]
        return
    scale, limit, back = hyper.scale, hyper.limit, ONE / hyper.scale
    for j in range(len(values)):
        seen[j] = min(max(np.rint(values[j] * scale) * back, -limit), ZERO)


@lean
def find_chosen(layout: Layout, codes: np.ndarray, choice: np.ndarray, cells: np.ndarray) -> None:
    """Write the entry of every row in the chosen table of each feature, -1 where it or its parent is missing."""
    batch, features = codes.shape
    for r in range(batch):
        for i in range(features):
            k = choice[i]
            x, parent = codes[r, i], layout.parent[i, k]
            above = codes[r, parent] if parent >= 0 else np.int32(0)
            known = x >= 0 and above >= 0
            cells[r, i] = x * layout.stride[i] + layout.offset[i, k] + above if known else -1


@lean
def find(layout: Layout, codes: np.ndarray, i: int, k: int, cells: np.ndarray) -> None:
    """Write the entry of every row in one table."""
    stride, offset, parent = layout.stride[i], layout.offset[i, k], layout.parent[i, k]
    for r in range(len(codes)):
        x, above = codes[r, i], codes[r, parent] if parent >= 0 else np.int32(0)
        cells[r] = x * stride + offset + above if x >= 0 and above >= 0 else -1


@lean
def add_scores(seen: np.ndarray, prior: np.ndarray, cells: np.ndarray, scores: np.ndarray) -> None:
    """Write the class scores of the rows."""
    batch, wide = scores.shape
    classes = len(prior)
    for r in range(batch):
        for c in range(classes):
            scores[r, c] = prior[c]
        own, i = cells[r], 0
        while i < len(own):
            if i + 4 <= len(own) and (own[i] | own[i + 1] | own[i + 2] | own[i + 3]) >= 0:  # none is missing
                p, q, s, t = own[i] * classes, own[i + 1] * classes, own[i + 2] * classes, own[i + 3] * classes
                for c in range(0, wide, LANES):
                    add_four_lanes(scores, r * wide + c, seen, p + c, seen, q + c, seen, s + c, seen, t + c)
                i += 4
                continue
            if own[i] >= 0:
                for c in range(0, wide, LANES):
                    add_lanes(scores, r * wide + c, seen, own[i] * classes + c)
            i += 1


@in_any_order
def into_gradients(
    g: np.ndarray, classes: int, y: np.ndarray, weight: np.ndarray, hyper: Hyper, powers: np.ndarray
) -> None:
    """Replace the scores of the rows by the gradient of the hybrid loss (`losses.hybrid`), with zeros behind it."""
    batch, wide = g.shape
    for r in range(batch):
        s, own, w = g[r], y[r], weight[r] / np.float32(batch)
        here, most = s[own], np.float32(-np.inf)
        for c in range(classes):
            if c != own:
                most = max(most, s[c])
        total = ZERO
        for c in range(classes):
            powers[c] = exp(min(hyper.eta * (s[c] - most), ZERO)) if c != own else ZERO
            total += powers[c]
        lacking = classes > 1 and hyper.gamma - here + most + log(max(total, ONE)) / hyper.eta > ZERO
        margin = w * hyper.lam if lacking else ZERO
        share = margin / max(total, ONE)
        of_own = -w - margin
        if hyper.conditional > ZERO:
            top, total = max(most, here), ZERO
            for c in range(classes):
                s[c] = exp(s[c] - top)
                total += s[c]
            part = w * hyper.conditional / total
            of_own += part * s[own] - w * hyper.conditional
            for c in range(classes):
                s[c] = part * s[c] + share * powers[c]
        else:
            for c in range(classes):
                s[c] = share * powers[c]
        s[own] = of_own
        for c in range(classes, wide):
            s[c] = ZERO


@in_any_order
def move_structure(
    tables: Tables,
    layout: Layout,
    codes: np.ndarray,
    g: np.ndarray,
    soft: np.ndarray,
    hyper: Hyper,
    rate: np.float32,
    slope: np.ndarray,
    cells: np.ndarray,
    products: np.ndarray,
) -> None:
    """Take a step of the structure logits: the gradient through the softmax, and the price of sizes."""
    features, candidates = soft.shape
    seen, logits, classes = tables.seen, tables.logits, len(tables.prior.value)
    for i in range(features):
        mean, likely = ZERO, 0
        for k in range(candidates):
            likely += soft[i, k] >= NEVER
        for k in range(candidates):
            slope[k] = ZERO
            if soft[i, k] < NEVER or likely < 2:
                continue
            find(layout, codes, i, k, cells)
            slope[k] = dots(seen, classes, cells, g, products)
            mean += soft[i, k] * slope[k]
        for k in range(candidates):
            slope[k] = soft[i, k] * (slope[k] - mean) / hyper.tau if soft[i, k] >= NEVER and likely > 1 else ZERO
        if hyper.size_penalty > ZERO:
            add_size(logits.value[i], layout.allowed[i], layout.size[i], hyper.size_penalty, slope)
        for k in range(candidates):
            first = KEEP1 * logits.first[i, k] + MOVE1 * slope[k]
            second = KEEP2 * logits.second[i, k] + MOVE2 * slope[k] * slope[k]
            logits.first[i, k], logits.second[i, k] = first, second
            logits.value[i, k] -= rate * first / (np.sqrt(second) + EPSILON)


@lean
def dots(seen: np.ndarray, classes: int, cells: np.ndarray, g: np.ndarray, products: np.ndarray) -> np.float32:
    """Add up the products of what the rows read in a table and their gradients."""
    batch, wide = g.shape
    for c in range(LANES):
        products[c] = ZERO
    for r in range(batch):
        if cells[r] >= 0:
            for c in range(0, wide, LANES):
                add_product_lanes(products, 0, seen, cells[r] * classes + c, g, r * wide + c)
    return sum_of_lanes(products)


@lean
def add_size(logits: np.ndarray, allowed: np.ndarray, size: np.ndarray, penalty: np.float32, slope: np.ndarray) -> None:
    """Add the gradient of the expected number of entries (R18)."""
    most, total, mean = np.float32(-np.inf), ZERO, ZERO
    for k in range(len(logits)):
        if allowed[k]:
            most = max(most, logits[k])
    for k in range(len(logits)):
        if allowed[k]:
            share = exp(logits[k] - most)
            total += share
            mean += share * size[k]
    mean /= total
    for k in range(len(logits)):
        if allowed[k]:
            slope[k] += penalty * exp(logits[k] - most) / total * (size[k] - mean)


@lean
def scatter(gradient: np.ndarray, classes: int, cells: np.ndarray, g: np.ndarray) -> None:
    """Add the gradients of the rows to the entries that they were read from."""
    batch, wide = g.shape
    whole = classes - classes % LANES
    for r in range(batch):
        for at in cells[r]:
            if at >= 0:
                for c in range(0, whole, LANES):
                    add_lanes(gradient, at * classes + c, g, r * wide + c)
                # Not all lanes, and zeros behind the row: the next entry would wait for them.
                to, of = at * classes + whole, r * wide + whole
                if classes & 4:
                    add_four(gradient, to, g, of)
                    to, of = to + 4, of + 4
                if classes & 2:
                    add_two(gradient, to, g, of)
                    to, of = to + 2, of + 2
                if classes & 1:
                    add_one(gradient, to, g, of)


@lean
def update(
    tables: Tables,
    layout: Layout,
    u: int,
    hyper: Hyper,
    rate: np.float32,
    touched: bool,
    faded1: np.float32,
    faded2: np.float32,
    work: np.ndarray,
) -> None:
    """Take a step of Adam on a unit, and normalise its groups."""
    classes = len(tables.prior.value)
    value, first = tables.theta.value.reshape(-1), tables.theta.first.reshape(-1)
    second, gradient, seen = tables.theta.second.reshape(-1), tables.gradient, tables.seen
    states, step = layout.states[u], layout.step[u] * classes
    begin, end = layout.first[u] * classes, (layout.first[u] + layout.groups[u]) * classes
    keep1, keep2 = KEEP1 * faded1, KEEP2 * faded2
    for start in range(begin, end, WIDTH):
        n = min(WIDTH, end - start)
        total, slope = work[0, :n], work[1, :n]
        total[:] = ZERO
        if touched:
            for s in range(states):
                d = gradient[start + s * step : start + s * step + n]
                for j in range(n):
                    total[j] += d[j]
        else:
            slope[:] = ZERO
        for s in range(states):
            at = start + s * step
            p = value[at : at + n]
            if touched:
                d = gradient[at : at + n]
                for j in range(n):
                    slope[j] = d[j] - exp(p[j]) * total[j]
                d[:] = ZERO
            m, v = first[at : at + n], second[at : at + n]
            for j in range(n):
                m[j] = keep1 * m[j] + MOVE1 * slope[j]
                v[j] = keep2 * v[j] + MOVE2 * slope[j] * slope[j]
                p[j] -= rate * m[j] / (np.sqrt(v[j]) + EPSILON)
        total[:] = ZERO
        for s in range(states):
            p = value[start + s * step : start + s * step + n]
            for j in range(n):
                total[j] += exp(p[j])
        for j in range(n):
            total[j] = log(total[j])
        for s in range(states):
            at = start + s * step
            p = value[at : at + n]
            for j in range(n):
                p[j] -= total[j]
            if hyper.quantized:
                see(p, seen[at : at + n], hyper)


@lean
def update_prior(prior: Moments, g: np.ndarray, rate: np.float32, sums: np.ndarray) -> None:
    """Take a step of Adam on the class prior, and normalise it."""
    classes, whole, total = len(prior.value), ZERO, ZERO
    for c in range(classes):
        sums[c] = ZERO
    for r in range(len(g)):
        for c in range(classes):
            sums[c] += g[r, c]
    for c in range(classes):
        whole += sums[c]
    for c in range(classes):
        slope = sums[c] - exp(prior.value[c]) * whole
        prior.first[c] = KEEP1 * prior.first[c] + MOVE1 * slope
        prior.second[c] = KEEP2 * prior.second[c] + MOVE2 * slope * slope
        prior.value[c] -= rate * prior.first[c] / (np.sqrt(prior.second[c]) + EPSILON)
        total += exp(prior.value[c])
    total = log(total)
    for c in range(classes):
        prior.value[c] -= total


@lean
def begin(tables: Tables, layout: Layout, idle: np.ndarray) -> None:
    """Find the units whose first moment is almost zero: they have been idle."""
    for u in range(len(idle)):
        still = True
        for s in range(layout.states[u]):
            at = layout.first[u] + s * layout.step[u]
            for e in range(at, at + layout.groups[u]):
                for c in range(tables.theta.first.shape[1]):
                    spread = np.sqrt(tables.theta.second[e, c]) + EPSILON
                    still &= abs(tables.theta.first[e, c]) <= EPSILON * spread
            if not still:
                break
        idle[u] = IDLE if still else 0


@lean
def end(tables: Tables, layout: Layout, idle: np.ndarray) -> None:
    """Let the moments of idle units lose what they have not lost yet."""
    for u in range(len(idle)):
        skipped = idle[u] - IDLE
        if skipped > 0:
            for s in range(layout.states[u]):
                at = layout.first[u] + s * layout.step[u]
                for e in range(at, at + layout.groups[u]):
                    for c in range(len(tables.prior.value)):
                        tables.theta.first[e, c] *= np.float32(0.9**skipped)
                        tables.theta.second[e, c] *= np.float32(0.999**skipped)
            idle[u] = IDLE
