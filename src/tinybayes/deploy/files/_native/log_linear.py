"""Log-linear models in the native model file."""

from typing import Any

import numpy as np

from tinybayes.deploy.files._native.bayes_net import TREES, pack_variable, unpack_tree, unpack_variable
from tinybayes.deploy.files._native.fields import integer, items, sound
from tinybayes.deploy.files._native.tensors import Storage, Tensors
from tinybayes.model import Factor, LogLinear

_INTEGERS = ("int8", "int16", "int32")
_FEATURES = Storage("factors.features", _INTEGERS)
_TIES = Storage("ties", _INTEGERS)
_WEIGHTS = Storage("weights", ("float64",))


def pack_log_linear(model: LogLinear) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON object and the tensors that describe a log-linear model."""
    factors: list[dict[str, Any]] = []
    parts: dict[Storage, list[np.ndarray]] = {_WEIGHTS: [model.weights], _TIES: [model.classes]}
    for factor in model.factors:
        factors.append({"scope": list(factor.scope), "entries": len(factor.feature)})
        parts.setdefault(_FEATURES, []).append(factor.feature)
        if factor.tree is not None:
            factors[-1]["tree"] = [len(factor.tree.split), len(factor.tree.children)]
            for name, storage in TREES.items():
                parts.setdefault(storage, []).append(getattr(factor.tree, name))
    content = {
        "variables": [pack_variable(variable) for variable in model.variables],
        "factors": factors,
        "features": model.n_features,
        "classes": len(model.weights),
    }
    return content, {s.name: s.pack(some) for s, some in parts.items() if any(len(part) for part in some)}


def unpack_log_linear(content: dict[str, Any], tensors: Tensors) -> LogLinear:
    """Return the log-linear model that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = [
        unpack_variable(item, f"{where}.variables[{index}]")
        for index, item in enumerate(items(content, "variables", (dict,), where))
    ]
    factors = [
        _unpack_factor(item, tensors, f"{where}.factors[{index}]")
        for index, item in enumerate(items(content, "factors", (dict,), where))
    ]
    weights = tensors.take(_WEIGHTS, integer(content, "classes", where, low=0), where)
    ties = tensors.take(_TIES, integer(content, "features", where, low=0), where)
    with sound("log-linear model", where):
        return LogLinear(tuple(variables), tuple(factors), weights, ties)


def _unpack_factor(item: dict[str, Any], tensors: Tensors, where: str) -> Factor:
    scope = items(item, "scope", (int,), where)
    feature = tensors.take(_FEATURES, integer(item, "entries", where, low=1), where)
    tree = unpack_tree(item, tensors, where) if "tree" in item else None
    with sound("factor", where):
        return Factor(tuple(scope), feature, tree)
