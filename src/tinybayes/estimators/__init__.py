"""scikit-learn faces: thin wrappers around the functions of the package."""

from tinybayes.extras import missing

try:
    import sklearn as _  # noqa: F401 - its absence is told here, in one place
except ImportError:
    raise missing("sklearn") from None

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
