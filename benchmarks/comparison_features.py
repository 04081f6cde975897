"""What each library can do, for the page of `run_all.py`: claims by hand, checked where they can be.

A claim is a word, what it means, and names ``module:attribute`` that must exist for it to be true.
"""

import importlib
import warnings
from dataclasses import dataclass

DOCUMENTATION = {
    "tinybayes": "index.md",
    "scikit-learn": "https://scikit-learn.org/stable/modules/naive_bayes.html",
    "pyAgrum": "https://pyagrum.readthedocs.io/",
    "pgmpy": "https://pgmpy.org/",
    "pomegranate": "https://pomegranate.readthedocs.io/",
    "emlearn": "https://emlearn.readthedocs.io/",
    "m2cgen": "https://github.com/BayesWitnesses/m2cgen",
    "micromlgen": "https://github.com/eloquentarduino/micromlgen",
}


@dataclass(frozen=True)
class Claim:
    """``yes`` or ``partly``, in what way, and where to see it."""

    word: str
    note: str = ""
    names: tuple[str, ...] = ()


def yes(note: str = "", *names: str) -> Claim:
    return Claim("yes", note, names)


def partly(note: str, *names: str) -> Claim:
    return Claim("partly", note, names)


# What is not listed is a no.
FEATURES: dict[str, dict[str, Claim]] = {
    "Naive Bayes over discrete features": {
        "tinybayes": yes("", "tinybayes:BayesNetClassifier"),
        "scikit-learn": yes("CategoricalNB", "sklearn.naive_bayes:CategoricalNB"),
        "pyAgrum": yes("BNClassifier", "pyagrum.skbn:BNClassifier"),
        "pgmpy": yes("", "pgmpy.models:NaiveBayes"),
        "pomegranate": yes("BayesClassifier", "pomegranate.bayes_classifier:BayesClassifier"),
        "emlearn": partly("Gaussian only"),
        "micromlgen": partly("Gaussian only"),
    },
    "Trees: Chow-Liu and TAN": {
        "tinybayes": yes("", "tinybayes:chow_liu"),
        "pyAgrum": yes("", "pyagrum.skbn:BNClassifier"),
        "pgmpy": yes("TreeSearch", "pgmpy.estimators:TreeSearch"),
        "pomegranate": partly("Chow-Liu", "pomegranate.bayesian_network:BayesianNetwork"),
    },
    "Other structures from data": {
        "tinybayes": partly(
            "circuits and networks of decision trees; no constraint tests",
            "tinybayes:learn_circuit",
            "tinybayes.learn:learn_tree_cpds",
        ),
        "pyAgrum": yes("hill climbing, tabu, MIIC, PC", "pyagrum:BNLearner"),
        "pgmpy": yes(
            "PC, hill climbing, GES", "pgmpy.estimators:PC", "pgmpy.estimators:HillClimbSearch", "pgmpy.estimators:GES"
        ),
        "pomegranate": partly("exact search for few variables", "pomegranate.bayesian_network:BayesianNetwork"),
    },
    "Classifiers under a budget of bits or operations": {
        "tinybayes": yes("search for the Pareto front", "tinybayes:explore", "tinybayes:model_cost"),
        "emlearn": partly(
            "estimates of cost, Pareto fronts of given models", "emlearn.evaluate.pareto:find_pareto_front"
        ),
    },
    "Parameters of few bits, trained as such": {"tinybayes": yes("", "tinybayes:QuantizedNetClassifier")},
    "Exact inference": {
        "tinybayes": yes("circuits, elimination", "tinybayes:compile_circuit"),
        "pyAgrum": yes("lazy propagation and others", "pyagrum:LazyPropagation"),
        "pgmpy": yes("variable elimination", "pgmpy.inference:VariableElimination"),
        "pomegranate": partly("where the network is a tree", "pomegranate.bayesian_network:BayesianNetwork"),
    },
    "Approximate inference": {
        "tinybayes": yes("importance sampling, Gibbs, MC-SAT", "tinybayes:marginals"),
        "pyAgrum": yes("Gibbs, importance, loopy", "pyagrum:GibbsSampling", "pyagrum:LoopyBeliefPropagation"),
        "pgmpy": yes("", "pgmpy.inference:ApproxInference"),
        "pomegranate": partly("loopy propagation", "pomegranate.factor_graph:FactorGraph"),
    },
    "Causal effects (do)": {
        "pyAgrum": yes("", "pyagrum.causal:CausalModel"),
        "pgmpy": yes("", "pgmpy.inference:CausalInference"),
    },
    "Dynamic networks, influence diagrams, hidden Markov models": {
        "pyAgrum": yes("", "pyagrum:InfluenceDiagram", "pyagrum.lib.dynamicBN:getTimeSlices"),
        "pgmpy": partly("dynamic", "pgmpy.models:DynamicBayesianNetwork"),
        "pomegranate": partly("hidden Markov", "pomegranate.hmm:DenseHMM"),
    },
    "Numbers without cutting them into states": {
        "tinybayes": partly("neural nets alone", "tinybayes:NeuralNet"),
        "scikit-learn": yes("GaussianNB", "sklearn.naive_bayes:GaussianNB"),
        "pyAgrum": partly("linear Gaussian", "pyagrum.clg:CLG"),
        "pgmpy": partly("linear Gaussian", "pgmpy.models:LinearGaussianBayesianNetwork"),
        "pomegranate": yes("many distributions", "pomegranate.distributions:Normal"),
        "emlearn": yes(),
        "m2cgen": yes(),
        "micromlgen": yes(),
    },
    "Learning with missing values": {
        "tinybayes": partly("left out of counts; expected counts for circuits", "tinybayes.infer:expected_counts"),
        "pyAgrum": yes("EM", "pyagrum:BNLearner"),
        "pgmpy": yes("EM", "pgmpy.estimators:ExpectationMaximization"),
        "pomegranate": yes("masked tensors"),
    },
    "Tables larger than memory": {
        "tinybayes": yes("Parquet, Dask", "tinybayes:open_dataset"),
        "scikit-learn": yes("partial_fit", "sklearn.naive_bayes:CategoricalNB.partial_fit"),
        "pomegranate": yes("summarize", "pomegranate.bayes_classifier:BayesClassifier.summarize"),
    },
    "Trees, forests, boosting, SVM": {
        "tinybayes": partly("no SVM; imports LightGBM, XGBoost", "tinybayes:TreeEnsembleClassifier"),
        "scikit-learn": yes("", "sklearn.ensemble:RandomForestClassifier"),
        "emlearn": partly("trees, forests", "emlearn:convert"),
        "m2cgen": yes("also XGBoost, LightGBM", "m2cgen:export_to_c"),
        "micromlgen": yes("", "micromlgen:port"),
    },
    "Neural nets in integers": {
        "tinybayes": yes("", "tinybayes:NeuralNet"),
        "scikit-learn": partly("floats", "sklearn.neural_network:MLPClassifier"),
        "emlearn": partly("floats, or 32-bit fixed point after training", "emlearn.fixedpoint:FixedPointFormat"),
    },
    "Code for microcontrollers": {
        "tinybayes": yes("C, C++, Arduino, MicroPython", "tinybayes:export"),
        "emlearn": yes("C", "emlearn:convert"),
        "m2cgen": yes("C", "m2cgen:export_to_c"),
        "micromlgen": yes("Arduino C++", "micromlgen:port"),
    },
    "... in integers alone": {
        "tinybayes": yes("", "tinybayes.infer:integer_log_joint"),
        "emlearn": partly("trees; fixed point"),
    },
    "... with the discretisation inside": {
        "tinybayes": yes("", "tinybayes:export"),
        "emlearn": partly("a linear quantiser beside the model", "emlearn.preprocessing:Quantizer"),
    },
    "Code in other languages": {
        "tinybayes": partly("ONNX, Verilog", "tinybayes:export"),
        "m2cgen": yes("Java, Go, Rust and a dozen more", "m2cgen:export_to_java"),
    },
    "Exchange of networks": {
        "tinybayes": yes("BIF, XMLBIF, UAI", "tinybayes:load"),
        "pyAgrum": yes("BIF, XMLBIF, UAI, NET, DSL, XDSL", "pyagrum:loadBN"),
        "pgmpy": yes("BIF, XMLBIF, NET, XDSL, XBN; UAI in an order of its own", "pgmpy.readwrite:BIFReader"),
    },
    "GPU": {
        "tinybayes": partly("training by gradient (JAX)"),
        "pgmpy": partly("with torch"),
        "pomegranate": yes("torch"),
    },
}


def probe(library: str) -> dict[str, bool]:
    """Look for all names that the claims about a library need."""
    names = {n for claims in FEATURES.values() if library in claims for n in claims[library].names}
    return {name: exists(name) for name in sorted(names)}


def exists(name: str) -> bool:
    module, _, attributes = name.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = importlib.import_module(module)
            for attribute in attributes.split("."):
                found = getattr(found, attribute)
        except (ImportError, AttributeError):
            return False
    return True
