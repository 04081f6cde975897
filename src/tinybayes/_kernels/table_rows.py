"""What the rows of a mini-batch do in training tables: codes, choices, scores, gradients."""

import numpy as np

from tinybayes._kernels import inlined
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
from tinybayes._kernels.table_state import (
    EPSILON,
    HALF,
    KEEP1,
    KEEP2,
    MOVE1,
    MOVE2,
    ONE,
    ZERO,
    Batches,
    Hyper,
    Layout,
    Tables,
    lean,
)

NEVER = np.float32(1e-14)  # a softmax below it adds next to nothing to the gradient of the structure


@lean
def read_codes(batches: Batches, b: int, codes: np.ndarray) -> None:
    """Read the rows of a mini-batch, and move codes as `input_noise.jitter` does."""
    batch, features = codes.shape
    for r in range(batch):
        row = batches.order[b, r]
        for i in range(features):
            codes[r, i] = batches.X[row, i]
    if batches.moving.shape[1] == 0:
        return
    for r in range(batch):
        for i in range(features):
            code = codes[r, i]
            if code >= 0 and batches.moving[b, 0, r, i] < batches.noise[b]:
                level, below = batches.moving[b, 1, r, i], batches.moves[i, code]
                other = 0
                for probability in below:
                    other += level >= probability
                codes[r, i] = other


@lean
def choose(
    logits: np.ndarray,
    allowed: np.ndarray,
    batches: Batches,
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
            soft[i, k] = logits[i, k] + batches.gumbel[b, i, k]
            if allowed[i, k] and soft[i, k] > most:
                best, most = k, soft[i, k]
        kept = batches.lost[b, i] >= hyper.structure_noise
        choice[i] = best if kept else 0
        total = ZERO
        for k in range(candidates):
            soft[i, k] = exp((soft[i, k] - most) / batches.tau[b]) if allowed[i, k] and kept else ZERO
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


@lean
def into_gradients(
    g: np.ndarray, classes: int, y: np.ndarray, weight: np.ndarray, hyper: Hyper, powers: np.ndarray, sums: np.ndarray
) -> None:
    """Replace the scores of the rows by the gradient of the hybrid loss (`losses.hybrid`), with zeros behind it.

    Behind the classes, `powers` is zero.
    """
    batch, wide = g.shape
    for r in range(batch):
        s, own, w = g[r], y[r], weight[r] / np.float32(batch)
        here, most = s[own], np.float32(-np.inf)
        for c in range(classes):
            if c != own:
                most = max(most, s[c])
        for c in range(classes):
            powers[c] = exp(min(hyper.eta * (s[c] - most), ZERO))
        powers[own] = ZERO
        total = max(sum_of(powers, sums), ONE)
        lack = hyper.gamma - here + most + log(total) / hyper.eta
        margin = w * hyper.lam * (ONE if lack > ZERO else HALF if lack == ZERO else ZERO)  # of a maximum, as in JAX
        share = margin / total
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


@lean
def sum_of(numbers: np.ndarray, sums: np.ndarray) -> np.float32:
    """Add up numbers, LANES at a time."""
    for c in range(LANES):
        sums[c] = ZERO
    for c in range(0, len(numbers), LANES):
        add_lanes(sums, 0, numbers, c)
    return sum_of_lanes(sums)


@lean
def move_structure(
    tables: Tables,
    layout: Layout,
    codes: np.ndarray,
    g: np.ndarray,
    soft: np.ndarray,
    hyper: Hyper,
    tau: np.float32,
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
            slope[k] = soft[i, k] * (slope[k] - mean) / tau if soft[i, k] >= NEVER and likely > 1 else ZERO
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
    for r in range(batch):
        for at in cells[r]:
            if at >= 0:
                add_classes(gradient, at * classes, g, r * wide, classes)


@inlined
def add_classes(out, at, left, i, classes):
    """Add the numbers of all classes, and nothing behind them: what lies there would wait for it."""
    c = 0
    while c + LANES <= classes:
        add_lanes(out, at + c, left, i + c)
        c += LANES
    if classes & 4:
        add_four(out, at + c, left, i + c)
        c += 4
    if classes & 2:
        add_two(out, at + c, left, i + c)
        c += 2
    if classes & 1:
        add_one(out, at + c, left, i + c)
