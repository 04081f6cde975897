"""Boosted trees under a price: histogram gradient boosting of the log loss, whose tests are worth reusing.

A tree is grown from the gradients of the log loss at the scores so far, by second-order steps. Where tests have a
price, a split must gain more than what it adds to a program: a node, and a threshold or a feature that no test before
it has used. So trees grow towards what is there already.
"""

from collections.abc import Callable

import numpy as np

from tinybayes._kernels.symmetric_growth import grow_symmetric
from tinybayes._kernels.threads import for_blocks, thread_count
from tinybayes._kernels.tree_growth import (
    NEXT,
    Growth,
    Prices,
    Tree,
    add_leaves,
    add_tree,
    begin_growth,
    count_gradients,
    gather,
    grow_tree,
    set_values,
    softmax_derivatives,
)
from tinybayes.cost import model_cost
from tinybayes.learn.trees.growth import (
    BLOCK,
    LEAST_SECOND,
    Ensemble,
    Rows,
    as_rows,
    drawn_rows,
    empty_tree,
    limits_of,
    prices_of,
)
from tinybayes.learn.trees.options import BoostingOptions
from tinybayes.model import Dataset, TreeEnsemble

LARGE = 16_384  # rows of a leaf whose histogram is counted by several threads
NO_LABELS = np.empty(0, dtype=np.int64)


def learn_boosted_trees(
    data: Dataset,
    options: BoostingOptions | None = None,
    *,
    budget: int | None = None,
    shrink: Callable[[TreeEnsemble], TreeEnsemble] | None = None,
    report: Callable[[int, int], None] | None = None,
) -> TreeEnsemble:
    """Learn boosted trees from rows with a class; missing values go to the side that gains more.

    Parameters
    ----------
    data
        The rows. Codes with an order are cut by thresholds; categories are split into two sets, in the order of their
        gradients.
    options
        Sizes, prices and rates.
    budget
        Bytes of the trees, as `tinybayes.cost.model_cost` counts them, at most: learning stops with the last round that
        fits, and at least one.
    shrink
        What is done to the trees in the end, such as tying their leaves; the budget is that of its result.
    report
        Called after every round with its number and the number of rounds.
    """
    options = options or BoostingOptions()
    boosting = Boosting(data, options)
    while boosting.rounds < options.rounds:
        boosting.round()
        if report is not None:
            report(boosting.rounds, options.rounds)
        if budget is not None and boosting.bytes > budget:
            break
    make = shrink or (lambda model: model)
    model = make(boosting.model())
    if budget is None or model_cost(model).bytes <= budget:
        return model
    low, high = 1, boosting.rounds  # the bytes of a round were rough: find the last one that fits
    model = make(boosting.model(1))
    while high - low > 1:
        middle = (low + high) // 2
        smaller = make(boosting.model(middle))
        if model_cost(smaller).bytes <= budget:
            low, model = middle, smaller
        else:
            high = middle
    return model


class Boosting:
    """Boosted trees as they are learned, round by round; the model of every number of rounds can be had.

    Parameters
    ----------
    data
        The rows.
    options
        Sizes, prices and rates; how many rounds there are is up to the caller.
    feature_prices
        What each feature costs beside the others: the price of features is multiplied by it.
    """

    def __init__(self, data: Dataset, options: BoostingOptions, feature_prices: np.ndarray | None = None) -> None:
        rows = as_rows(data)
        self.data, self.rows, self.options = data, rows, options
        self.limits = limits_of(options, len(rows.columns.codes), options.ridge, LEAST_SECOND)
        self.ensemble = Ensemble(prices_of(options, rows.columns, feature_prices), rows.columns.begin, options.tests)
        self.outputs = [1] if rows.classes == 2 else list(range(rows.classes))
        self.start = _log_priors(rows)
        self.scores = np.repeat(self.start[:, None], len(rows), axis=1)
        self.gradient, self.second = np.empty_like(self.scores), np.empty_like(self.scores)
        room = (options.leaves, int(rows.columns.begin[-1]), 3)
        self.pools = [np.empty(room) for _ in self.outputs]
        self.trees = [empty_tree(options.leaves, 1, rows.columns) for _ in self.outputs]
        self.generator = np.random.default_rng(options.seed)

    @property
    def rounds(self) -> int:
        """The rounds so far."""
        return len(self.ensemble.trees) // len(self.outputs)

    @property
    def bytes(self) -> int:
        """The bytes of the trees so far, roughly, where leaves have at most 16 values."""
        return self.ensemble.bytes(symmetric=self.options.symmetric)

    def model(self, rounds: int | None = None) -> TreeEnsemble:
        """Return the model of the first rounds, or of all."""
        count = None if rounds is None else rounds * len(self.outputs)
        return self.ensemble.model(self.data, self.start - self.start.max(), count)

    def round(self) -> None:
        """Grow a tree for each output, from the gradients at the scores so far."""
        rows, count = self.rows, len(self.rows)
        derivatives = self.scores, rows.label, rows.weight

        def differentiate(start: int, stop: int) -> None:
            softmax_derivatives(*derivatives, start, stop, self.gradient, self.second)

        for_blocks(differentiate, count, BLOCK)
        drawn = drawn_rows(self.generator, count, self.options.row_share)
        streams = self.generator.integers(2**63, size=(len(self.outputs), 1), dtype=np.uint64)
        nodes = [0] * len(self.outputs)

        def grow(first: int, last: int) -> None:
            for i in range(first, last):
                nodes[i] = self._grow(i, drawn.copy(), streams[i])

        for_blocks(grow, len(self.outputs), 1)
        for output, tree, size in zip(self.outputs, self.trees, nodes, strict=True):
            self.ensemble.add(output, tree, size)

    def _grow(self, i: int, drawn: np.ndarray, stream: np.ndarray) -> int:
        """Grow one tree and add it to its scores; return its number of nodes."""
        output, tree, options = self.outputs[i], self.trees[i], self.options
        prices = Prices(*(array.copy() for array in self.ensemble.prices))  # trees of a round do not see each other
        derivatives = self.gradient[output], self.second[output]
        grown = self.limits, prices, stream, tree, self.pools[i]
        if options.symmetric:
            nodes = int(grow_symmetric(self.rows.columns, drawn, *derivatives, *grown))
        else:
            growth = begin_growth(self.rows.columns, drawn, tree, self.pools[i])
            most = len(self.rows) if len(self.outputs) >= thread_count() else LARGE  # each thread has trees of its own
            nodes = -1
            while nodes < 0:
                nodes = int(grow_tree(self.rows.columns, drawn, *derivatives, NO_LABELS, *grown, growth, most))
                if nodes < 0:
                    self._count(drawn, *derivatives, tree, self.pools[i], growth)
        set_values(tree, nodes, options.ridge, options.learning_rate)
        if len(drawn) == len(self.rows):
            add_leaves(tree, nodes, drawn, self.scores[output])
        else:
            add_tree(self.rows.columns, tree, self.scores[output])
        return nodes

    def _count(
        self, drawn: np.ndarray, gradient: np.ndarray, second: np.ndarray, tree: Tree, pool: np.ndarray, growth: Growth
    ) -> None:
        """Count the histogram of a large leaf on all cores: some features each, so that sums stay the same."""
        node = growth.size[NEXT]
        start, stop = int(tree.start[node]), int(tree.stop[node])
        histogram, columns = pool[growth.slot[node]], self.rows.columns

        def copy(first: int, last: int) -> None:
            gather(drawn, start + first, start + last, gradient, second, growth.own, first)

        def count(first: int, last: int) -> None:
            count_gradients(columns, first, last, drawn, start, stop, growth.own, histogram)

        for_blocks(copy, stop - start, 8 * BLOCK)
        for_blocks(count, len(columns.codes), 1)


def _log_priors(rows: Rows) -> np.ndarray:
    """Return the logarithms of the shares of the classes; a class without rows is very unlikely."""
    counts = np.bincount(rows.label, weights=rows.weight, minlength=rows.classes)
    return np.asarray(np.log(np.maximum(counts, 1e-3) / counts.sum()))
