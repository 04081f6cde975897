"""Mini-batches of training the tables of a network by gradient, for one configuration: `TableSteps.step` as loops.

The arithmetic is that of `learn/training/table_steps.py`, where the equations are; the random numbers come from
outside, so that both take the same steps. A mini-batch touches few numbers for each row, but Adam moves every table,
so that most of the time goes into the tables. Two things are left out that change next to nothing:

- A table that was not chosen for `IDLE` mini-batches has a first moment of almost zero, so that it stays where it is
  until it is chosen again. What its moments would have lost meanwhile is taken off then.
- A candidate with a softmax below `NEVER` adds next to nothing to the gradient of the structure.

A *unit* is what is updated at once: some neighbouring groups of the layout, for all states; in a search, one table.
"""

import numpy as np

from tinybayes._kernels.table_adam import IDLE, move, move_common, settle, update_prior
from tinybayes._kernels.table_rows import (
    add_scores,
    choose,
    find_chosen,
    into_gradients,
    move_structure,
    read_codes,
    scatter,
    see,
)
from tinybayes._kernels.table_state import KEEP1, KEEP2, ONE, ZERO, Batches, Hyper, Layout, Tables, Work, lean


@lean
def train_batches(tables: Tables, layout: Layout, batches: Batches, hyper: Hyper, idle: np.ndarray, work: Work) -> None:
    """Take a step on every mini-batch. `idle[u]` counts the mini-batches since unit u was last chosen."""
    codes, cells, column, choice, soft, prior, g, powers, sums, chosen, slope, pulled, moved, wide = work
    features, classes = len(layout.parent), len(prior)
    search, sharing = layout.parent.shape[1] > 1, pulled.size > 0
    choice[:] = 0
    chosen[:] = True
    for b in range(len(batches.order)):
        t = np.float32(hyper.steps + b + 1)
        correction = np.sqrt(ONE - KEEP2**t) / (ONE - KEEP1**t)
        read_codes(batches, b, codes)
        if search:
            choose(tables.logits.value, layout.allowed, batches, b, hyper, choice, soft)
            chosen[:] = False
            for i in range(features):
                chosen[layout.unit[i, choice[i]]] = True
        see(tables.prior.value, prior, hyper)
        find_chosen(layout, codes, choice, cells)
        add_scores(tables.seen, prior, cells, g)
        into_gradients(g, classes, batches.y[b], batches.weight[b], hyper, powers, sums)
        if search and hyper.structure_rate > ZERO:
            rate, tau = hyper.structure_rate * correction, batches.tau[b]
            move_structure(tables, layout, codes, g, soft, hyper, tau, rate, slope, column, sums)
        scatter(tables.gradient, classes, cells, g)
        rate = batches.rate[b] * correction
        for u in range(len(idle)):
            if chosen[u] or idle[u] < IDLE:
                move(tables, layout, u, rate, chosen[u], max(0, idle[u] - IDLE), pulled, wide)
                if not sharing:
                    settle(tables, layout, u, hyper, moved, wide)
            idle[u] = 0 if chosen[u] else idle[u] + 1
        if sharing:  # every table moves
            move_common(tables.common, pulled, moved, rate * hyper.sharing)
            for u in range(len(idle)):
                settle(tables, layout, u, hyper, moved, wide)
        update_prior(tables.prior, g, rate, sums)
