"""Asking a model: class scores and labels, how good they are, exact queries by circuits and join trees; sampling."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

# The index of the public names; __init__.pyi is the same index for type checkers. A module is loaded when one of its
# names is used, so that a first prediction does not wait for samplers and join trees.
_HOMES = {
    "ask": "Answer ask ask_codes",
    "choose": "InferenceCost inference_costs",
    "circuit": "conditional expected_counts log_conditionals log_evidence most_probable posteriors sample",
    "circuit_properties": "Property is_decomposable is_deterministic is_smooth",
    "compile_circuit": "compile_circuit",
    "elimination": "Estimate estimate_width",
    "evaluate": "Evaluation evaluate",
    "explain": "Contribution Explanation explain",
    "gibbs": "GibbsAnswers GibbsEstimate Queries gibbs",
    "integer_circuit": "integer_posterior",
    "integers": "integer_log_joint",
    "join.queries": "MostProbable joint_marginals log_z mpe",
    "likelihood": "log_likelihood log_partition",
    "log_linear": "with_weights",
    "sampling.methods": "METHODS marginals slices",
    "sampling.result": "Marginals hellinger",
    "scores": "class_scores integer_scores normalize_scores predict_codes score_blocks",
}
_HOME_OF = {name: f"tinybayes.infer.{home}" for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


class _Index(ModuleType):
    """Python stores each module that it loads in its package: there, a function goes before its module of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Index


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tinybayes.infer' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
