"""Asking a model: class scores and labels."""

from tinybayes.infer.scores import class_scores, integer_scores, normalize_scores, predict_codes, score_blocks

__all__ = ["class_scores", "integer_scores", "normalize_scores", "predict_codes", "score_blocks"]
