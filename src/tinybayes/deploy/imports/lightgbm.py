"""Model files of LightGBM: lines ``name=value``, a block of them for each tree."""

import json
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tinybayes.deploy.files import fields
from tinybayes.deploy.files import network_text as common
from tinybayes.deploy.imports.ensemble import BITS, Features, check_states, make_ensemble
from tinybayes.deploy.imports.foreign import ForeignTree, bits_set, cut_above
from tinybayes.errors import FileError, error
from tinybayes.model import State, TreeEnsemble, Variable

HEADER = "tree"
MOST_STATES = 2**16  # of a feature with categories
_OBJECTIVES = ("binary", "multiclass", "multiclassova")
_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of decision_type; two more say which values are missing
_NO_MISSING, _ZERO_MISSING = 0, 1


class _Block(NamedTuple):
    """Lines of a file that belong together."""

    where: str
    lines: dict[str, str]

    def text(self, name: str) -> str:
        if name not in self.lines:
            raise error(f"a line {name}=", "none", where=self.where, kind=FileError)
        return self.lines[name]

    def integers(self, name: str, count: int) -> np.ndarray:
        return self._numbers(name, count, int, "integers")

    def reals(self, name: str, count: int) -> np.ndarray:
        return self._numbers(name, count, float, "numbers")

    def integer(self, name: str, low: int, high: int = 2**31 - 1) -> int:
        value = int(self.integers(name, 1)[0])
        if not low <= value <= high:
            raise error(f"an integer from {low} to {high}", value, where=f"{self.where}, {name}", kind=FileError)
        return value

    def _numbers(self, name: str, count: int, kind: type, plural: str) -> np.ndarray:
        where = f"{self.where}, {name}"
        words = self.text(name).split() if count else []
        if len(words) != count:
            raise error(f"{count} {plural}", len(words), where=where, kind=FileError)
        try:  # one by one: an array of texts would give each the space of the longest
            return np.array([kind(word) for word in words], dtype=np.int64 if kind is int else np.float64)
        except (ValueError, OverflowError) as problem:
            raise error(plural, f"{problem}"[:200], where=where, kind=FileError) from problem


def read_lightgbm(path: str | os.PathLike[str], *, bits: int = BITS) -> TreeEnsemble:
    """Read a classifier from a text file that LightGBM's ``Booster.save_model`` has written.

    Rows of float32 get the scores of LightGBM, rounded to `bits`. Categories are numbers, or the texts of the pandas
    columns that LightGBM was trained with. Values of a category that was never seen go right.

    Parameters
    ----------
    path
        The file; a gzip is decompressed.
    bits
        Of the largest value of a leaf, with its sign.
    """
    text = common.read_source(path).text
    body, _, rest = text.partition("\nend of trees")
    if not re.match(r"tree\s*\nversion=", text) or not rest:
        raise error(
            "a text model of LightGBM, from 'tree' to 'end of trees'", "others", where=f"{path}:1", kind=FileError
        )
    first, *blocks = re.split(r"\n(?=Tree=)", body)
    head = _block(first, f"{path}, head")
    objective, *settings = head.text("objective").split() or [""]
    if objective not in _OBJECTIVES:
        expected = f"a classifier, of the objective {' or '.join(_OBJECTIVES)}"
        raise error(expected, objective[:40], where=f"{path}, objective", kind=FileError)
    scores = head.integer("num_tree_per_iteration", 1, 2**16)
    parsed = [
        _tree(_block(block, f"{path}, tree {i}"), 1 if scores == 1 else i % scores) for i, block in enumerate(blocks)
    ]
    classes = 2 if scores == 1 else scores
    factor = _sigmoid(settings, str(path))
    if "average_output" in first.split():  # a random forest
        factor *= scores / max(len(parsed), 1)
    target = Variable("class", tuple(range(classes)))
    with fields.sound("model", str(path)):
        features = _features(head, parsed, rest)
        return make_ensemble(parsed, features, target, np.zeros(classes), factor=factor, bits=bits)


def _block(text: str, where: str) -> _Block:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return _Block(where, {name: value for name, _, value in pairs})


def _sigmoid(settings: list[str], path: str) -> float:
    """Return what scores are multiplied with before they are logarithms of odds."""
    for setting in settings:
        name, _, value = setting.partition(":")
        if name == "sigmoid":
            try:
                return float(value)
            except ValueError as problem:
                raise error("a number", setting[:40], where=f"{path}, objective", kind=FileError) from problem
    return 1.0


def _tree(block: _Block, output: int) -> ForeignTree:
    """Read the nodes of a tree: tests first, then leaves, which children name by ``-1 - leaf``."""
    leaves = block.integer("num_leaves", 1, 2**24)
    if block.lines.get("is_linear", "0").strip() != "0":
        raise error("a constant value in a leaf", "a linear model", where=block.where, kind=FileError)
    tests, leaf = leaves - 1, np.full(leaves, -1)
    kind = block.integers("decision_type", tests)
    threshold = block.reals("threshold", tests)
    categorical, missing = kind & _CATEGORICAL > 0, kind >> 2 & 3
    if (missing[~categorical] == _ZERO_MISSING).any():
        remedy = "train without zero_as_missing"
        raise error("NaN for missing values", "zero", where=block.where, remedy=remedy, kind=FileError)
    # Where no value was missing in training, LightGBM takes a missing value for zero.
    left = np.where(missing == _NO_MISSING, threshold >= 0, kind & _DEFAULT_LEFT > 0) & ~categorical
    below = [block.integers(name, tests) for name in ("left_child", "right_child")]
    children = [np.concatenate([np.where(side < 0, tests - 1 - side, side), leaf]) for side in below]
    value = np.concatenate([np.zeros(tests), block.reals("leaf_value", leaves)])
    feature = block.integers("split_feature", tests)
    if (feature < 0).any():
        raise error("features from 0 on", feature.min(), where=f"{block.where}, split_feature", kind=FileError)
    with fields.sound("tree", block.where):
        return ForeignTree(
            feature=np.concatenate([feature, leaf]),
            cut=np.concatenate([np.where(categorical, 0.0, cut_above(threshold)), np.zeros(leaves)]),
            left=children[0],
            right=children[1],
            missing=np.concatenate([left, np.zeros(leaves, dtype=np.bool_)]),
            value=value[:, None],
            output=output,
            sets=_sets(block, np.flatnonzero(categorical), threshold),
        )


def _sets(block: _Block, nodes: np.ndarray, threshold: np.ndarray) -> dict[int, np.ndarray]:
    """Return the categories that go left, of all tests of categories."""
    count = block.integer("num_cat", 0, 2**24)
    bounds = block.integers("cat_boundaries", count + 1 if count else 0)
    size = int(bounds[-1]) if count else 0
    number = threshold[nodes]
    if count and (bounds[0] != 0 or (np.diff(bounds) < 0).any()):
        raise error("boundaries that increase from 0", "others", where=f"{block.where}, cat_boundaries", kind=FileError)
    if (number != np.rint(number)).any() or (number < 0).any() or (number >= count).any():
        raise error(f"numbers of {count} sets", "others", where=f"{block.where}, threshold", kind=FileError)
    if len(np.unique(number)) < len(number):  # a few words of the file would be sets without end
        raise error("a set for each test", "one for several", where=f"{block.where}, threshold", kind=FileError)
    words = block.integers("cat_threshold", size) if 0 <= size <= 2**24 else np.array([-1])
    if (words < 0).any() or (words >= 2**32).any() or (np.diff(bounds) > MOST_STATES // 32).any():
        raise error(f"sets of {MOST_STATES} categories", "more", where=f"{block.where}, cat_threshold", kind=FileError)
    return {
        node: bits_set(words[bounds[k] : bounds[k + 1]])
        for node, k in zip(nodes.tolist(), number.astype(int), strict=True)
    }


def _features(head: _Block, trees: list[ForeignTree], rest: str) -> Features:
    """Return the names of the features, and the states of categories: numbers, or texts of pandas."""
    names, infos = head.text("feature_names").split(), head.lines.get("feature_infos", "").split()
    count = head.integer("max_feature_idx", 0, 2**24) + 1
    if len(names) != count or len(infos) not in (0, count):
        raise error(f"{count} names", len(names), where=f"{head.where}, feature_names", kind=FileError)
    highest = {f: -1 for f, info in enumerate(infos) if re.fullmatch(r"-?\d{1,9}(:-?\d{1,9})*", info)}
    for f in highest:
        highest[f] = max(0, *map(int, infos[f].split(":")))
    for tree in trees:
        for node, codes in tree.sets.items():
            f = int(tree.feature[node])
            highest[f] = max(highest.get(f, 0), int(codes.max(initial=0)))
    if max(highest.values(), default=0) >= MOST_STATES:
        raise error(f"categories below {MOST_STATES}", max(highest.values()), where=head.where, kind=FileError)
    check_states(top + 1 for top in highest.values())
    states: dict[int, Sequence[State]] = {f: range(top + 1) for f, top in highest.items()}
    texts = _pandas_categories(rest, head.where)
    if len(texts) == len(states):  # columns of categories in the order of the table
        for f, known in zip(sorted(states), texts, strict=True):
            states[f] = [*known, *states[f][len(known) :]]
    return [(name, states.get(f)) for f, name in enumerate(names)]


def _pandas_categories(rest: str, where: str) -> list[list[State]]:
    _, _, line = rest.rpartition("\npandas_categorical:")
    try:
        texts = json.loads(line.splitlines()[0]) if line.strip() else None
    except (ValueError, RecursionError) as problem:
        raise error("JSON", f"{problem}"[:200], where=f"{where}, pandas_categorical", kind=FileError) from problem
    if not isinstance(texts, list) or not all(isinstance(known, list) for known in texts):
        return []
    plain = all(isinstance(state, str | int | float) for known in texts for state in known)
    return texts if plain else []
