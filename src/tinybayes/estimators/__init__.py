"""scikit-learn faces: thin wrappers around the functions of the package. Each is loaded when it is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tinybayes.extras import require

if TYPE_CHECKING:
    from tinybayes.estimators.anomalies import AnomalyDetector
    from tinybayes.estimators.bayes_net import BayesNetClassifier
    from tinybayes.estimators.circuits import CircuitClassifier, CircuitDensity
    from tinybayes.estimators.nets import QuantizedNetClassifier
    from tinybayes.estimators.trees import TreeEnsembleClassifier

__all__ = [
    "AnomalyDetector",
    "BayesNetClassifier",
    "CircuitClassifier",
    "CircuitDensity",
    "QuantizedNetClassifier",
    "TreeEnsembleClassifier",
]

_HOME_OF = {
    "AnomalyDetector": "anomalies",
    "BayesNetClassifier": "bayes_net",
    "CircuitClassifier": "circuits",
    "CircuitDensity": "circuits",
    "QuantizedNetClassifier": "nets",
    "TreeEnsembleClassifier": "trees",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tinybayes.estimators' has no attribute {name!r}")
    require("sklearn")
    value = getattr(import_module(f"tinybayes.estimators.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
