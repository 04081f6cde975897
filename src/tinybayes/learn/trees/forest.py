"""Decision trees and forests: trees grown by the Gini index, whose leaves hold the shares of the classes, or a vote."""

from dataclasses import replace

import numpy as np

from tinybayes._kernels.threads import for_blocks
from tinybayes._kernels.tree_growth import FIRST, Prices, Tree, begin_growth, grow_tree, set_values
from tinybayes.infer.calibration import fit_temperature
from tinybayes.infer.trees import tree_scores
from tinybayes.learn.trees.growth import Ensemble, Rows, as_rows, drawn_rows, empty_tree, limits_of, prices_of
from tinybayes.learn.trees.options import ForestOptions
from tinybayes.model import Dataset, TreeEnsemble


def learn_forest(
    data: Dataset, options: ForestOptions | None = None, *, feature_prices: np.ndarray | None = None
) -> TreeEnsemble:
    """Learn a decision tree, or a forest, from rows with a class.

    A single tree is grown from all rows; the trees of a forest are grown from as many rows, drawn with replacement. A
    leaf holds the logarithms of the shares of the classes; in a forest the shares themselves, whose means are the
    scores, times a scale that suits the rows that were not drawn. With `votes` it holds the most frequent class.

    Parameters
    ----------
    data
        The rows.
    options
        Sizes and prices.
    feature_prices
        What each feature costs beside the others: the price of features is multiplied by it.
    """
    options = options or ForestOptions()
    rows = as_rows(data)
    count, columns = len(rows), rows.columns
    leaves = min(options.leaves, count)
    limits = limits_of(options, len(columns.codes), 0.0, 0.0)._replace(leaves=leaves)
    ensemble = Ensemble(prices_of(options, columns, feature_prices), columns.begin, options.tests)
    seeds = np.random.default_rng(options.seed).spawn(options.trees)
    grown = [empty_tree(leaves, rows.classes, columns) for _ in seeds]
    nodes = [0] * len(seeds)
    drawn = [_drawn(seed, count, options) for seed in seeds]

    def grow(first: int, last: int) -> None:
        for i in range(first, last):
            stream = seeds[i].integers(2**63, size=1, dtype=np.uint64)
            prices = Prices(*(array.copy() for array in ensemble.prices))
            pool = np.empty((leaves, int(columns.begin[-1]), FIRST + rows.classes))
            looked = limits, prices, stream, grown[i], pool
            grown_from = drawn[i].copy()
            growth = begin_growth(columns, grown_from, grown[i], pool)
            told = np.empty(0), rows.weight, rows.label
            nodes[i] = int(grow_tree(columns, grown_from, *told, *looked, growth, count))
            set_values(grown[i], nodes[i], 0.0, 1.0)
            _set_leaves(grown[i], nodes[i], options)

    one_by_one = options.tests is not None or options.threshold_price > 0 or options.feature_price > 0
    if not one_by_one:
        for_blocks(grow, len(seeds), 1)
    for i, tree in enumerate(grown):
        if one_by_one:  # a tree knows what those before it use
            grow(i, i + 1)
        ensemble.add(-1, tree, nodes[i])
    model = ensemble.model(data, np.zeros(rows.classes))
    return model if options.trees == 1 and not options.votes else _scaled(model, data, rows, drawn)


def _drawn(seed: np.random.Generator, count: int, options: ForestOptions) -> np.ndarray:
    rows = drawn_rows(seed, count, options.row_share)
    return np.sort(seed.choice(rows, len(rows))).astype(np.int32) if options.trees > 1 else rows


def _set_leaves(tree: Tree, nodes: int, options: ForestOptions) -> None:
    """Turn the shares of the classes into what leaves hold."""
    share = tree.value[:nodes]
    if options.votes:
        share[:] = np.eye(share.shape[1])[share.argmax(axis=1)]
    elif options.trees == 1:  # a class that a leaf has not seen counts like one row in all
        weight, classes = tree.second[:nodes, None], share.shape[1]
        share[:] = np.log((share * weight + 1.0 / classes) / (weight + 1.0))


def _scaled(model: TreeEnsemble, data: Dataset, rows: Rows, drawn: list[np.ndarray]) -> TreeEnsemble:
    """Scale scores so that they are logarithms of probabilities, for rows that few trees have seen."""
    seen = np.zeros(len(rows))
    for some in drawn:
        seen[np.unique(some)] += 1
    least = seen <= np.quantile(seen, 0.2)
    scores = tree_scores(model, data.X[rows.index[least]]) * model.scale
    return replace(model, scale=model.scale / fit_temperature(scores, rows.label[least], rows.weight[least]))
