"""Asking a model: class scores, labels, and how good they are."""

from tinybayes.infer.evaluate import Evaluation, evaluate
from tinybayes.infer.scores import class_scores, integer_scores, normalize_scores, predict_codes, score_blocks

__all__ = [
    "Evaluation",
    "class_scores",
    "evaluate",
    "integer_scores",
    "normalize_scores",
    "predict_codes",
    "score_blocks",
]
