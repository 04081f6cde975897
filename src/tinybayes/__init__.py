"""tinybayes: discrete probabilistic models learned under a price, and shipped at that price.

This module is the index of the public names. Nothing heavy is loaded until a name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from tinybayes.compress import Tied, TiedCircuit, mean_log_likelihood, quantize, tie, tie_circuit
    from tinybayes.cost import bayes_net_cost, circuit_cost, model_cost, neural_net_cost
    from tinybayes.data import named as datasets
    from tinybayes.data.mdlp import MDLPDiscretizer
    from tinybayes.data.tables import open_dataset, read_dataset
    from tinybayes.data.variables import Discretization
    from tinybayes.deploy import load, read_model, save, to_c, write_model
    from tinybayes.deploy.export import export, write_files
    from tinybayes.errors import FileError, TinybayesError
    from tinybayes.estimators import BayesNetClassifier, CircuitClassifier, CircuitDensity, QuantizedNetClassifier
    from tinybayes.infer import (
        GIBBS_SETTINGS,
        Explanation,
        Marginals,
        Queries,
        as_circuit,
        ask,
        class_scores,
        compile_circuit,
        compile_log_linear,
        conditional,
        estimate_width,
        evaluate,
        expected_counts,
        explain,
        gibbs,
        hellinger,
        integer_log_joint,
        integer_posterior,
        is_decomposable,
        is_deterministic,
        is_smooth,
        log_evidence,
        log_likelihood,
        log_partition,
        marginals,
        most_probable,
        predict_codes,
        random_queries,
        sample,
    )
    from tinybayes.learn import (
        Relearned,
        chow_liu,
        learn_circuit,
        learn_classifier,
        learn_tree_cpds,
        maximum_likelihood,
        naive_bayes,
        random_tan,
        relearn,
        relearn_rows,
    )
    from tinybayes.learn.training.nets import NetConfiguration, train_nets
    from tinybayes.model import (
        CPD,
        BayesNet,
        Circuit,
        Codebook,
        Cost,
        Dataset,
        DecisionTree,
        Factor,
        Fixed,
        Float,
        Inputs,
        Layer,
        LogLinear,
        NeuralNet,
        Structure,
        Variable,
        with_target,
    )
    from tinybayes.search.explore import Exploration, explore

_HOMES = {
    "compress": ["Tied", "TiedCircuit", "mean_log_likelihood", "tie", "tie_circuit", "quantize"],
    "cost": ["bayes_net_cost", "circuit_cost", "model_cost", "neural_net_cost"],
    "data.mdlp": ["MDLPDiscretizer"],
    "data.tables": ["open_dataset", "read_dataset"],
    "data.variables": ["Discretization"],
    "deploy": ["load", "read_model", "save", "to_c", "write_model"],
    "deploy.export": ["export", "write_files"],
    "errors": ["FileError", "TinybayesError"],
    "estimators": ["BayesNetClassifier", "CircuitClassifier", "CircuitDensity", "QuantizedNetClassifier"],
    "infer": [
        "GIBBS_SETTINGS",
        "Explanation",
        "Marginals",
        "Queries",
        "as_circuit",
        "ask",
        "class_scores",
        "compile_circuit",
        "compile_log_linear",
        "conditional",
        "estimate_width",
        "evaluate",
        "expected_counts",
        "explain",
        "gibbs",
        "hellinger",
        "integer_log_joint",
        "integer_posterior",
        "is_decomposable",
        "is_deterministic",
        "is_smooth",
        "log_evidence",
        "log_likelihood",
        "log_partition",
        "marginals",
        "most_probable",
        "predict_codes",
        "random_queries",
        "sample",
    ],
    "learn": [
        "Relearned",
        "chow_liu",
        "learn_circuit",
        "learn_classifier",
        "learn_tree_cpds",
        "maximum_likelihood",
        "naive_bayes",
        "random_tan",
        "relearn",
        "relearn_rows",
    ],
    "learn.training.nets": ["NetConfiguration", "train_nets"],
    "model": [
        "CPD",
        "BayesNet",
        "Circuit",
        "Codebook",
        "Cost",
        "Dataset",
        "DecisionTree",
        "Factor",
        "Fixed",
        "Float",
        "Inputs",
        "Layer",
        "LogLinear",
        "NeuralNet",
        "Structure",
        "Variable",
        "with_target",
    ],
    "search.explore": ["Exploration", "explore"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CPD",
    "GIBBS_SETTINGS",
    "BayesNet",
    "BayesNetClassifier",
    "Circuit",
    "CircuitClassifier",
    "CircuitDensity",
    "Codebook",
    "Cost",
    "Dataset",
    "DecisionTree",
    "Discretization",
    "Explanation",
    "Exploration",
    "Factor",
    "FileError",
    "Fixed",
    "Float",
    "Inputs",
    "Layer",
    "LogLinear",
    "MDLPDiscretizer",
    "Marginals",
    "NetConfiguration",
    "NeuralNet",
    "QuantizedNetClassifier",
    "Queries",
    "Relearned",
    "Structure",
    "Tied",
    "TiedCircuit",
    "TinybayesError",
    "Variable",
    "as_circuit",
    "ask",
    "bayes_net_cost",
    "chow_liu",
    "circuit_cost",
    "class_scores",
    "compile_circuit",
    "compile_log_linear",
    "conditional",
    "datasets",
    "estimate_width",
    "evaluate",
    "expected_counts",
    "explain",
    "explore",
    "export",
    "gibbs",
    "hellinger",
    "integer_log_joint",
    "integer_posterior",
    "is_decomposable",
    "is_deterministic",
    "is_smooth",
    "learn_circuit",
    "learn_classifier",
    "learn_tree_cpds",
    "load",
    "log_evidence",
    "log_likelihood",
    "log_partition",
    "marginals",
    "maximum_likelihood",
    "mean_log_likelihood",
    "model_cost",
    "most_probable",
    "naive_bayes",
    "neural_net_cost",
    "open_dataset",
    "predict_codes",
    "quantize",
    "random_queries",
    "random_tan",
    "read_dataset",
    "read_model",
    "relearn",
    "relearn_rows",
    "sample",
    "save",
    "tie",
    "tie_circuit",
    "to_c",
    "train_nets",
    "with_target",
    "write_files",
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
