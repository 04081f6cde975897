"""tinybayes: discrete probabilistic models learned under a price, and shipped at that price.

This module is the index of the public names; ``__init__.pyi`` is the same index for type checkers. Nothing is loaded
until a name is used. Types of results and names that few users need are in the rooms: ``tinybayes.infer.Marginals``.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "compress": "quantize tie",
    "data": "Discretization open_dataset read_dataset",
    "deploy": "from_sklearn load save",
    "deploy.export": "export",
    "deploy.price": "model_cost",
    "errors": "TinybayesError",
    "estimators": "AnomalyDetector BayesNetClassifier CircuitClassifier CircuitDensity QuantizedNetClassifier "
    "TreeEnsembleClassifier",
    "infer": "ask class_scores compile_circuit estimate_width evaluate explain log_likelihood marginals predict_codes",
    "learn": "chow_liu learn_circuit learn_classifier learn_latent_tree maximum_likelihood naive_bayes relearn",
    "model": "CPD BayesNet Circuit Codebook Dataset Fixed Float LogLinear NeuralNet Structure TreeEnsemble Variable",
    "search.budget": "Budget",
    "search.explore": "explore",
    "search.goal": "Goal",
}
_HOME_OF = {name: f"tinybayes.{home}" for home, names in _HOMES.items() for name in names.split()}
_ROOMS = {"cost", *(home.split(".")[0] for home in _HOMES)}

__all__ = sorted([*_HOME_OF, "datasets"])


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("tinybayes.data.named")
    if name in _ROOMS:
        return import_module(f"tinybayes.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tinybayes' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
