"""Classifiers that predict by the scores of their model."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tinybayes.estimators._tables import allow_states, encode, validated
from tinybayes.infer.scores import class_scores, normalize_scores, predict_codes
from tinybayes.model import BayesNet, NeuralNet


class ScoredClassifier(ClassifierMixin, BaseEstimator):
    """What all of them do once `fit` has found `model_` and `classes_`."""

    classes_: np.ndarray
    model_: BayesNet | NeuralNet

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        codes = self._codes(X)
        return np.asarray(self.classes_[predict_codes(self.model_, codes)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the class posteriors, shape (n_samples, n_classes)."""
        codes = self._codes(X)
        return normalize_scores(class_scores(self.model_, codes))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class posteriors, shape (n_samples, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def _codes(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return encode(validated(self, X, reset=False), self.model_.variables)

    def __sklearn_tags__(self) -> Tags:
        return allow_states(super().__sklearn_tags__())
