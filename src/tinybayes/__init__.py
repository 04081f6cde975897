"""tinybayes: discrete probabilistic models learned under a price, and shipped at that price.

This module is the index of the public names. Nothing heavy is loaded until a name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from tinybayes.compress import to_format
    from tinybayes.cost import bayes_net_cost
    from tinybayes.data import named as datasets
    from tinybayes.data.mdlp import MDLPDiscretizer
    from tinybayes.data.tables import open_dataset, read_dataset
    from tinybayes.data.variables import Rules
    from tinybayes.deploy import load, read_model, save, write_model
    from tinybayes.errors import FileError, TinybayesError
    from tinybayes.estimators import BayesNetClassifier
    from tinybayes.infer import class_scores, evaluate, predict_codes
    from tinybayes.learn import chow_liu, learn_classifier, maximum_likelihood, naive_bayes, random_tan
    from tinybayes.model import (
        CPD,
        BayesNet,
        Codebook,
        Cost,
        Dataset,
        DecisionTree,
        Fixed,
        Float,
        Structure,
        Variable,
        with_target,
    )

_HOMES = {
    "compress": ["to_format"],
    "cost": ["bayes_net_cost"],
    "data.mdlp": ["MDLPDiscretizer"],
    "data.tables": ["open_dataset", "read_dataset"],
    "data.variables": ["Rules"],
    "deploy": ["load", "read_model", "save", "write_model"],
    "errors": ["FileError", "TinybayesError"],
    "estimators": ["BayesNetClassifier"],
    "infer": ["class_scores", "evaluate", "predict_codes"],
    "learn": ["chow_liu", "learn_classifier", "maximum_likelihood", "naive_bayes", "random_tan"],
    "model": [
        "CPD",
        "BayesNet",
        "Codebook",
        "Cost",
        "Dataset",
        "DecisionTree",
        "Fixed",
        "Float",
        "Structure",
        "Variable",
        "with_target",
    ],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CPD",
    "BayesNet",
    "BayesNetClassifier",
    "Codebook",
    "Cost",
    "Dataset",
    "DecisionTree",
    "FileError",
    "Fixed",
    "Float",
    "MDLPDiscretizer",
    "Rules",
    "Structure",
    "TinybayesError",
    "Variable",
    "bayes_net_cost",
    "chow_liu",
    "class_scores",
    "datasets",
    "evaluate",
    "learn_classifier",
    "load",
    "maximum_likelihood",
    "naive_bayes",
    "open_dataset",
    "predict_codes",
    "random_tan",
    "read_dataset",
    "read_model",
    "save",
    "to_format",
    "with_target",
    "write_model",
]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("tinybayes.data.named")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tinybayes' has no attribute {name!r}")
    value = getattr(import_module(f"tinybayes.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
