"""What a mini-batch does to tables: a step of Adam for every entry, and normalising."""

import numpy as np

from tinybayes._kernels.single import exp, log
from tinybayes._kernels.table_rows import add_classes, see
from tinybayes._kernels.table_state import (
    EPSILON,
    KEEP1,
    KEEP2,
    MOVE1,
    MOVE2,
    WIDTH,
    ZERO,
    Hyper,
    Layout,
    Moments,
    Tables,
    lean,
)

IDLE = 160  # mini-batches: 0.9**160 is below the resolution of a 32-bit float


@lean
def move(
    tables: Tables,
    layout: Layout,
    u: int,
    rate: np.float32,
    touched: bool,
    skipped: int,
    pulled: np.ndarray,
    work: np.ndarray,
) -> None:
    """Take a step of Adam on a unit, after so many that were skipped; `touched`: with a gradient from the data."""
    classes = len(tables.prior.value)
    value, first = tables.theta.value.reshape(-1), tables.theta.first.reshape(-1)
    second, gradient = tables.theta.second.reshape(-1), tables.gradient
    states, step = layout.states[u], layout.step[u] * classes
    begin = layout.first[u] * classes
    end = begin + layout.groups[u] * classes
    keep1 = KEEP1 * np.float32(0.9**skipped) if skipped else KEEP1
    keep2 = KEEP2 * np.float32(0.999**skipped) if skipped else KEEP2
    for start in range(begin, end, WIDTH):
        n = min(WIDTH, end - start)
        total, slope = work[0, :n], work[1, :n]
        total[:] = ZERO
        slope[:] = ZERO
        if touched:
            for s in range(states):
                d = gradient[start + s * step : start + s * step + n]
                for j in range(n):
                    total[j] += d[j]
        for s in range(states):
            at = start + s * step
            p = value[at : at + n]
            if touched:
                d = gradient[at : at + n]
                for j in range(n):
                    slope[j] = d[j] - exp(p[j]) * total[j]
                d[:] = ZERO
                if pulled.size:
                    own, c = pulled[s, layout.owner[u]], (start - begin) % classes
                    for j in range(n):
                        own[c] += slope[j]
                        c = c + 1 if c + 1 < classes else 0
            m, v = first[at : at + n], second[at : at + n]
            for j in range(n):
                m[j] = keep1 * m[j] + MOVE1 * slope[j]
                v[j] = keep2 * v[j] + MOVE2 * slope[j] * slope[j]
                p[j] -= rate * m[j] / (np.sqrt(v[j]) + EPSILON)


@lean
def move_common(common: Moments, pulled: np.ndarray, moved: np.ndarray, rate: np.float32) -> None:
    """Take a step of Adam on the common parts; `moved` is how far they went, `pulled` their gradient, zero again."""
    states, features, classes = pulled.shape
    for s in range(states):
        for i in range(features):
            for c in range(classes):
                first = KEEP1 * common.first[s, i, c] + MOVE1 * pulled[s, i, c]
                second = KEEP2 * common.second[s, i, c] + MOVE2 * pulled[s, i, c] * pulled[s, i, c]
                common.first[s, i, c], common.second[s, i, c] = first, second
                moved[s, i, c] = -rate * first / (np.sqrt(second) + EPSILON)
                common.value[s, i, c] += moved[s, i, c]
                pulled[s, i, c] = ZERO


@lean
def settle(tables: Tables, layout: Layout, u: int, hyper: Hyper, moved: np.ndarray, work: np.ndarray) -> None:
    """Add the step of the common part to a unit, if there is one, and normalise its groups."""
    classes, features, wide = len(tables.prior.value), moved.shape[1], moved.shape[2]
    value, seen = tables.theta.value.reshape(-1), tables.seen
    states, step = layout.states[u], layout.step[u] * classes
    begin = layout.first[u] * classes
    end = begin + layout.groups[u] * classes
    if features > 0:
        for s in range(states):
            for at in range(begin + s * step, end + s * step, classes):
                add_classes(value, at, moved, (s * features + layout.owner[u]) * wide, classes)
    for start in range(begin, end, WIDTH):
        n = min(WIDTH, end - start)
        total = work[0, :n]
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
def find_idle(tables: Tables, layout: Layout, idle: np.ndarray) -> None:
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
def fade(first: np.ndarray, second: np.ndarray, layout: Layout, idle: np.ndarray) -> None:
    """Let the moments of idle units lose what they have not lost yet."""
    classes = first.shape[1]
    for u in range(len(idle)):
        skipped = idle[u] - IDLE
        if skipped > 0:
            faded1, faded2 = np.float32(0.9**skipped), np.float32(0.999**skipped)
            for s in range(layout.states[u]):
                at = layout.first[u] + s * layout.step[u]
                for e in range(at, at + layout.groups[u]):
                    for c in range(classes):
                        first[e, c] *= faded1
                        second[e, c] *= faded2
