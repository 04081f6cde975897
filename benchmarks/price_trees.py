"""Random programs of trees, for the calibration of prices: learned from random rows."""

from typing import Any

import numpy as np
from price_programs import STYLES, draw_tables, rows_of

from tinybayes.compress.trees import tie_leaves
from tinybayes.errors import TinybayesError
from tinybayes.learn.trees.boosting import learn_boosted_trees
from tinybayes.learn.trees.forest import learn_forest
from tinybayes.learn.trees.options import BoostingOptions, ForestOptions
from tinybayes.model import Dataset, TreeEnsemble, Variable

KINDS = ("tree", "forest", "boosted", "symmetric", "tree", "few boosted", "votes", "tied")
FIRST = 2000  # the first seed
ROWS = 400  # that trees are learned from


def draw_trees(seed: int) -> tuple[TreeEnsemble, dict[str, Any], str]:
    """Draw trees, the options of their export, and a few words about them."""
    rng = np.random.default_rng(seed)
    kind, integer = KINDS[seed % len(KINDS)], bool(rng.random() < 0.4)
    styles = STYLES if seed % 3 == 0 else ("short", "long", "grid")  # categories need an encoder
    raw = "int" if integer else "float"
    while True:
        style, classes = str(rng.choice(styles)), int(rng.choice([2, 3, 4, 6, 10, 20]))
        target = Variable("class", tuple(range(classes)))
        try:
            net, _ = draw_tables(rng, "naive", style, integer, round(2 ** rng.uniform(1, 5.5)), target)
        except TinybayesError:
            continue
        codes = rows_of(net.variables, ROWS, seed)
        scores = sum(rng.normal(size=(v.cardinality, classes))[codes[:, i]] for i, v in enumerate(net.variables))
        codes = np.where(rng.random(codes.shape) < (0.05 if seed % 4 == 1 else 0.0), -1, codes)
        model = _learned(rng, kind, Dataset(net.variables, target, codes.astype(np.int32), np.argmax(scores, axis=1)))
        if model.trees.feature.max() >= 0:
            break
    form = "nodes" if seed % 16 == 0 else "nested" if kind == "few boosted" else None
    options = {"raw": raw, "gaps": bool(rng.random() < 0.6), "form": form}
    leaves = int(model.trees.is_leaf.sum())
    words = f"{kind}, {model.trees.count} trees of {leaves} leaves, {len(model.variables)} features ({style}, {raw})"
    words += f", {classes} classes" + (", gaps" if options["gaps"] else "") + (f", {form}" if form else "")
    return model, options, words


def _learned(rng: np.random.Generator, kind: str, data: Dataset) -> TreeEnsemble:
    leaves = int(2 ** rng.uniform(2, 6))
    if kind in ("tree", "forest", "votes"):
        trees = 1 if kind == "tree" else int(rng.integers(3, 12))
        votes = kind == "votes" or (kind == "tree" and rng.random() < 0.7)
        return learn_forest(data, ForestOptions(trees=trees, leaves=leaves, leaf_rows=2, votes=votes))
    rounds = int(rng.integers(1, 3)) if kind == "few boosted" else int(rng.integers(3, 15))
    depth = int(rng.integers(1, 5))
    symmetric = kind in ("symmetric", "tied") and rng.random() < 0.8
    size = 2**depth if symmetric else min(leaves, 6 if kind == "few boosted" else 16)
    options = BoostingOptions(rounds=rounds, leaves=size, leaf_rows=2, symmetric=bool(symmetric), ridge=1.0)
    model = learn_boosted_trees(data, options)
    return tie_leaves(model, int(rng.choice([4, 16, 40])), data) if kind == "tied" else model
