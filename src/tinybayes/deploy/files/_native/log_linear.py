"""Log-linear models in the native model file."""

from functools import partial
from typing import Any

import numpy as np

from tinybayes.deploy.files._native.fields import each, integer, sound, values
from tinybayes.deploy.files._native.parts import pack_tree, pack_variable, unpack_tree, unpack_variable
from tinybayes.deploy.files._native.tensors import INTEGERS, Storage, Tensors, pack_parts
from tinybayes.model import Factor, LogLinear

_FEATURES = Storage("factors.features", INTEGERS)
_TIES = Storage("ties", INTEGERS)
_WEIGHTS = Storage("weights", ("float64",))


def pack_log_linear(model: LogLinear) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON object and the tensors that describe a log-linear model."""
    factors: list[dict[str, Any]] = []
    parts: dict[Storage, list[np.ndarray]] = {_WEIGHTS: [model.weights], _TIES: [model.classes]}
    for factor in model.factors:
        factors.append({"scope": list(factor.scope), "entries": len(factor.feature)})
        parts.setdefault(_FEATURES, []).append(factor.feature)
        if factor.tree is not None:
            factors[-1]["tree"] = pack_tree(factor.tree, parts)
    content = {
        "variables": [pack_variable(variable) for variable in model.variables],
        "factors": factors,
        "features": model.n_features,
        "classes": len(model.weights),
    }
    return content, pack_parts(parts)


def unpack_log_linear(content: dict[str, Any], tensors: Tensors) -> LogLinear:
    """Return the log-linear model that a JSON object and tensors describe."""
    where = f"{tensors.path}, model"
    variables = each(content, "variables", where, unpack_variable)
    factors = each(content, "factors", where, partial(_unpack_factor, tensors))
    weights = tensors.take(_WEIGHTS, integer(content, "classes", where, low=0), where)
    ties = tensors.take(_TIES, integer(content, "features", where, low=0), where)
    with sound("log-linear model", where):
        return LogLinear(variables, factors, weights, ties)


def _unpack_factor(tensors: Tensors, content: dict[str, Any], where: str) -> Factor:
    scope = values(content, "scope", (int,), where)
    feature = tensors.take(_FEATURES, integer(content, "entries", where, low=1), where)
    tree = unpack_tree(content, tensors, where) if "tree" in content else None
    with sound("factor", where):
        return Factor(tuple(scope), feature, tree)
