"""Model files of XGBoost, as JSON."""

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tinybayes.deploy.files import fields
from tinybayes.deploy.files import network_text as common
from tinybayes.deploy.imports.ensemble import BITS, Features, check_states, make_ensemble
from tinybayes.deploy.imports.foreign import ForeignTree
from tinybayes.errors import FileError, error
from tinybayes.model import State, TreeEnsemble, Variable

MOST_STATES = 2**16  # of a feature with categories
_BINARY = ("binary:logistic", "binary:logitraw", "binary:hinge")
_SEVERAL = ("multi:softprob", "multi:softmax")
_ARRAYS = ("left_children", "right_children", "split_indices", "split_type", "default_left")
Object = dict[str, Any]


def read_xgboost(path: str | os.PathLike[str], *, bits: int = BITS) -> TreeEnsemble:
    """Read a classifier from a JSON file that XGBoost's ``Booster.save_model`` has written.

    Rows of float32 get the scores of XGBoost, rounded to `bits`. Values of a category that was never seen count as
    missing.

    Parameters
    ----------
    path
        The file; a gzip is decompressed.
    bits
        Of the largest value of a leaf, with its sign.
    """
    content = fields.parse(common.read_source(path).text, str(path))
    learner = fields.get(content, "learner", dict, str(path))
    where = f"{path}, learner"
    objective = fields.get(fields.get(learner, "objective", dict, where), "name", str, where)
    if objective not in _BINARY + _SEVERAL:
        expected = f"a classifier, of the objective {' or '.join(_BINARY + _SEVERAL)}"
        raise error(expected, objective[:40], where=f"{where}.objective", kind=FileError)
    parameters = fields.get(learner, "learner_model_param", dict, where)
    scores = max(1, _integer(parameters, "num_class", where, 2**16))
    if (scores > 1) != (objective in _SEVERAL):
        raise error(f"classes of {objective}", scores, where=f"{where}.num_class", kind=FileError)
    model, weights = _booster(fields.get(learner, "gradient_booster", dict, where), where)
    trees = _trees(model, weights, scores, f"{where}.trees")
    classes = max(2, scores)
    with fields.sound("model", str(path)):
        features = _features(learner, model, trees, _integer(parameters, "num_feature", where), where)
        start = _start(fields.get(parameters, "base_score", str, where), objective, scores, where)
        return make_ensemble(trees, features, Variable("class", tuple(range(classes))), start, bits=bits)


def _integer(holder: Object, key: str, where: str, high: int = 2**20) -> int:
    """Return a field that is an integer in a string, as XGBoost writes them."""
    text = fields.get(holder, key, str, where)
    if not (re.fullmatch("[0-9]{1,8}", text) and int(text) <= high):
        raise error(f"an integer up to {high} in quotes", text[:40], where=f"{where}.{key}", kind=FileError)
    return int(text)


def _booster(booster: Object, where: str) -> tuple[Object, list[float] | None]:
    """Return the trees, and the weights of those of DART."""
    name = booster.get("name")
    if name == "gbtree":
        return fields.get(booster, "model", dict, where), None
    if name != "dart":
        raise error("trees (gbtree or dart)", repr(name)[:40], where=f"{where}.gradient_booster", kind=FileError)
    inner = fields.get(booster, "gbtree", dict, where)
    return fields.get(inner, "model", dict, where), _reals(booster, "weight_drop", where).tolist()


def _start(text: str, objective: str, scores: int, where: str) -> np.ndarray:
    """Return the scores before any tree; XGBoost writes a probability for logistic regression."""
    try:
        base = np.array([float(word) for word in text.strip("[]").split(",")])
    except ValueError as problem:
        raise error("numbers", text[:40], where=f"{where}.base_score", kind=FileError) from problem
    if len(base) not in (1, scores):
        raise error(f"{scores} numbers", len(base), where=f"{where}.base_score", kind=FileError)
    if objective == "binary:logistic":
        if not 0 < base[0] < 1:
            raise error("a probability", text[:40], where=f"{where}.base_score", kind=FileError)
        base = np.log(base / (1 - base))
    return np.append(0.0, base) if scores == 1 else np.broadcast_to(base, (scores,))


def _trees(model: Object, weights: list[float] | None, scores: int, where: str) -> list[ForeignTree]:
    contents = fields.values(model, "trees", (dict,), where)
    outputs = fields.values(model, "tree_info", (int,), where)
    weights = [1.0] * len(contents) if weights is None else weights
    if not len(contents) == len(outputs) == len(weights) or not all(0 <= k < scores for k in outputs):
        raise error("a class and a weight for each tree", "others", where=where, kind=FileError)
    return [
        _tree(content, 1 if scores == 1 else output, weight, f"{where}[{i}]")
        for i, (content, output, weight) in enumerate(zip(contents, outputs, weights, strict=True))
    ]


def _tree(content: Object, output: int, weight: float, where: str) -> ForeignTree:
    """Read the nodes of a tree; a number below the threshold goes left, and the categories of a set go right."""
    condition = _reals(content, "split_conditions", where)
    arrays = {name: _integers(content, name, where) for name in _ARRAYS}
    if len({len(condition), *map(len, arrays.values())}) > 1:
        raise error("as many entries in all arrays of a tree", "others", where=where, kind=FileError)
    if _integer(fields.get(content, "tree_param", dict, where), "size_leaf_vector", where) > 1:
        raise error("one value in a leaf", "several", where=where, kind=FileError)
    if (arrays["split_indices"][arrays["left_children"] >= 0] < 0).any():
        raise error("features from 0 on", -1, where=f"{where}.split_indices", kind=FileError)
    leaf, turned = arrays["left_children"] < 0, arrays["split_type"] != 0  # here, the categories of a set go left
    left, right = arrays["left_children"], arrays["right_children"]
    with np.errstate(over="ignore"):
        single = condition.astype(np.float32).astype(np.float64)
    with fields.sound("tree", where):
        return ForeignTree(
            feature=np.where(leaf, -1, arrays["split_indices"]),
            cut=np.where(turned, 0.0, single),
            left=np.where(turned, right, left),
            right=np.where(turned, left, right),
            missing=(arrays["default_left"] != 0) ^ turned,
            value=np.where(leaf, single * weight, 0.0)[:, None],
            output=output,
            sets=_sets(content, np.flatnonzero(~leaf & turned), where),
        )


def _sets(content: Object, nodes: np.ndarray, where: str) -> dict[int, np.ndarray]:
    """Return the categories of the sets, by node."""
    if not len(nodes):
        return {}
    codes = _integers(content, "categories", where)
    parts = [_integers(content, f"categories_{name}", where) for name in ("nodes", "segments", "sizes")]
    if len({len(part) for part in parts}) > 1 or sorted(parts[0].tolist()) != sorted(nodes.tolist()):
        raise error("a set for each test of categories", "others", where=f"{where}.categories_nodes", kind=FileError)
    first, size = parts[1], parts[2]
    apart = (first[1:] >= first[:-1] + size[:-1]).all()  # or a small file would be sets without end
    if not (apart and min(first.min(), size.min()) >= 0 and first[-1] + size[-1] <= len(codes)):
        expected = f"sets one after another, of {len(codes)} categories in all"
        raise error(expected, "others", where=f"{where}.categories_segments", kind=FileError)
    if codes.min(initial=0) < 0 or codes.max(initial=0) >= MOST_STATES:
        raise error(f"categories below {MOST_STATES}", "others", where=f"{where}.categories", kind=FileError)
    return {
        node: codes[begin : begin + length] for node, begin, length in zip(*map(np.ndarray.tolist, parts), strict=True)
    }


def _reals(content: Object, name: str, where: str) -> np.ndarray:
    try:
        return np.array([float(number) for number in fields.values(content, name, (int, float), where)])
    except OverflowError as problem:
        raise error("numbers that a double holds", f"{problem}", where=f"{where}.{name}", kind=FileError) from problem


def _integers(content: Object, name: str, where: str) -> np.ndarray:
    numbers = fields.values(content, name, (int, bool), where)
    if any(not -1 <= number < 2**31 for number in numbers):
        raise error("integers from -1 on", "others", where=f"{where}.{name}", kind=FileError)
    return np.array(numbers, dtype=np.int64)


def _features(learner: Object, model: Object, trees: list[ForeignTree], count: int, where: str) -> Features:
    """Return the names of the features, and the states of categories: numbers, or what the file says they are."""
    names = fields.values(learner, "feature_names", (str,), where) or [f"f{i}" for i in range(count)]
    types = fields.values(learner, "feature_types", (str,), where) or [""] * count
    if not len(names) == len(types) == count:
        raise error(f"{count} names and types", len(names), where=f"{where}.feature_names", kind=FileError)
    highest = {f: 0 for f, kind in enumerate(types) if kind == "c"}
    for tree in trees:
        for node, codes in tree.sets.items():
            f = int(tree.feature[node])
            highest[f] = max(highest.get(f, 0), int(codes.max(initial=0)))
    encodings = model.get("cats", {}).get("enc", []) if isinstance(model.get("cats", {}), dict) else []
    check_states(top + 1 for top in highest.values())
    states: dict[int, Sequence[State]] = {f: range(top + 1) for f, top in highest.items()}
    if isinstance(encodings, list) and len(encodings) == count:
        for f in highest:
            known = _states(encodings[f])
            states[f] = [*known, *states[f][len(known) :]] if known else states[f]
    return [(name, states.get(f)) for f, name in enumerate(names)]


def _states(encoding: Any) -> list[State]:
    """Return the states of categories: numbers, or texts as their bytes, one after another; none if it is damaged."""
    values = encoding.get("values", []) if isinstance(encoding, dict) else []
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        return []
    offsets = encoding.get("offsets") if isinstance(encoding, dict) else None
    if offsets is None:
        return list(values)
    try:
        content = bytes(values)
        if any(start > stop for start, stop in pairwise(offsets)):  # texts that overlap could be any number of bytes
            return []
        return [content[start:stop].decode() for start, stop in pairwise(offsets)]
    except (TypeError, ValueError):
        return []
