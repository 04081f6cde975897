"""Asking a model: class scores and labels, how good they are, exact queries by circuits and join trees; sampling."""

from tinybayes.infer.ask import Answer, ask, ask_codes
from tinybayes.infer.choose import InferenceCost, inference_costs
from tinybayes.infer.circuit import (
    conditional,
    expected_counts,
    log_conditionals,
    log_evidence,
    most_probable,
    posteriors,
    sample,
)
from tinybayes.infer.circuit_properties import Property, is_decomposable, is_deterministic, is_smooth
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.infer.elimination import Estimate, estimate_width
from tinybayes.infer.evaluate import Evaluation, evaluate
from tinybayes.infer.explain import Contribution, Explanation, explain
from tinybayes.infer.gibbs import GibbsAnswers, GibbsEstimate, Queries, gibbs
from tinybayes.infer.integer_circuit import integer_posterior
from tinybayes.infer.integers import integer_log_joint
from tinybayes.infer.join.queries import MostProbable, joint_marginals, log_z, mpe
from tinybayes.infer.likelihood import log_likelihood, log_partition
from tinybayes.infer.log_linear import with_weights
from tinybayes.infer.sampling.methods import METHODS, marginals, slices
from tinybayes.infer.sampling.result import Marginals, hellinger
from tinybayes.infer.scores import class_scores, integer_scores, normalize_scores, predict_codes, score_blocks

__all__ = [
    "METHODS",
    "Answer",
    "Contribution",
    "Estimate",
    "Evaluation",
    "Explanation",
    "GibbsAnswers",
    "GibbsEstimate",
    "InferenceCost",
    "Marginals",
    "MostProbable",
    "Property",
    "Queries",
    "ask",
    "ask_codes",
    "class_scores",
    "compile_circuit",
    "conditional",
    "estimate_width",
    "evaluate",
    "expected_counts",
    "explain",
    "gibbs",
    "hellinger",
    "inference_costs",
    "integer_log_joint",
    "integer_posterior",
    "integer_scores",
    "is_decomposable",
    "is_deterministic",
    "is_smooth",
    "joint_marginals",
    "log_conditionals",
    "log_evidence",
    "log_likelihood",
    "log_partition",
    "log_z",
    "marginals",
    "most_probable",
    "mpe",
    "normalize_scores",
    "posteriors",
    "predict_codes",
    "sample",
    "score_blocks",
    "slices",
    "with_weights",
]
