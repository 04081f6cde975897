"""Decision trees and forests: trees grown by the Gini index, whose leaves hold the shares of the classes."""

import numpy as np

from tinybayes._kernels.threads import for_blocks
from tinybayes._kernels.tree_growth import FIRST, Prices, grow_tree, set_values
from tinybayes.learn.trees.growth import Ensemble, as_rows, drawn_rows, empty_tree, limits_of, prices_of
from tinybayes.learn.trees.options import ForestOptions
from tinybayes.model import Dataset, TreeEnsemble


def learn_forest(data: Dataset, options: ForestOptions | None = None) -> TreeEnsemble:
    """Learn a decision tree, or a forest, from rows with a class.

    The score of a class is the mean of its shares in the leaves. A single tree is grown from all rows; the trees of a
    forest are grown from as many rows, drawn with replacement.

    Parameters
    ----------
    data
        The rows.
    options
        Sizes and prices.
    """
    options = options or ForestOptions()
    rows = as_rows(data)
    count, columns = len(rows), rows.columns
    limits = limits_of(options, len(columns.codes), 0.0, 0.0)
    ensemble = Ensemble(prices_of(options, columns), columns.begin)
    generator = np.random.default_rng(options.seed)
    leaves = min(options.leaves, count)
    limits = limits._replace(leaves=leaves)
    seeds = generator.spawn(options.trees)
    grown = [empty_tree(leaves, rows.classes, columns) for _ in seeds]
    nodes = [0] * len(seeds)

    def grow(first: int, last: int) -> None:
        for i in range(first, last):
            drawn = drawn_rows(seeds[i], count, options.row_share)
            if options.trees > 1:
                drawn = np.sort(seeds[i].choice(drawn, len(drawn))).astype(np.int32)
            stream = seeds[i].integers(2**63, size=1, dtype=np.uint64)
            prices = Prices(*(array.copy() for array in ensemble.prices))
            pool = np.empty((leaves, int(columns.begin[-1]), FIRST + rows.classes))
            empty = np.empty(0)
            nodes[i] = int(
                grow_tree(columns, drawn, empty, rows.weight, rows.label, limits, prices, stream, grown[i], pool)
            )
            set_values(grown[i], nodes[i], 0.0, 1.0 / options.trees)

    for_blocks(grow, len(seeds), 1)
    for tree, size in zip(grown, nodes, strict=True):
        ensemble.add(-1, tree, size)
    return ensemble.model(data, np.zeros(rows.classes))
