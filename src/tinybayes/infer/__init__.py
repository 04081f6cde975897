"""Asking a model: class scores and labels, how good they are, and exact queries of circuits."""

from tinybayes.infer._gibbs_estimates import GibbsEstimate
from tinybayes.infer.ask import Answer, as_circuit, ask
from tinybayes.infer.circuit import conditional, expected_counts, log_evidence, marginals, most_probable, sample
from tinybayes.infer.circuit_properties import Property, is_decomposable, is_deterministic, is_smooth
from tinybayes.infer.compile_circuit import compile_circuit
from tinybayes.infer.elimination import Estimate, estimate
from tinybayes.infer.evaluate import Evaluation, evaluate
from tinybayes.infer.gibbs import GIBBS_SETTINGS, GibbsAnswers, gibbs
from tinybayes.infer.log_linear import compile_log_linear, log_partition, with_weights
from tinybayes.infer.queries import Queries, random_queries
from tinybayes.infer.scores import class_scores, integer_scores, normalize_scores, predict_codes, score_blocks

__all__ = [
    "GIBBS_SETTINGS",
    "Answer",
    "Estimate",
    "Evaluation",
    "GibbsAnswers",
    "GibbsEstimate",
    "Property",
    "Queries",
    "as_circuit",
    "ask",
    "class_scores",
    "compile_circuit",
    "compile_log_linear",
    "conditional",
    "estimate",
    "evaluate",
    "expected_counts",
    "gibbs",
    "integer_scores",
    "is_decomposable",
    "is_deterministic",
    "is_smooth",
    "log_evidence",
    "log_partition",
    "marginals",
    "most_probable",
    "normalize_scores",
    "predict_codes",
    "random_queries",
    "sample",
    "score_blocks",
    "with_weights",
]
