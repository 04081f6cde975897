"""The few frozen types that everything else passes around."""

from tinybayes.model.bayes_net import CPD, BayesNet, DecisionTree, with_target
from tinybayes.model.circuit import Circuit
from tinybayes.model.cost import Cost
from tinybayes.model.dataset import Dataset
from tinybayes.model.encoding import MISSING, Categories, Cuts, Encoding, Grid, Integers
from tinybayes.model.log_linear import Factor, LogLinear
from tinybayes.model.neural_net import Inputs, Layer, NeuralNet
from tinybayes.model.number_format import Codebook, Fixed, Float, NumberFormat
from tinybayes.model.structure import Structure
from tinybayes.model.tree_ensemble import TreeEnsemble, Trees
from tinybayes.model.variable import State, Variable

Classifier = BayesNet | Circuit | NeuralNet | TreeEnsemble

__all__ = [
    "CPD",
    "MISSING",
    "BayesNet",
    "Categories",
    "Circuit",
    "Classifier",
    "Codebook",
    "Cost",
    "Cuts",
    "Dataset",
    "DecisionTree",
    "Encoding",
    "Factor",
    "Fixed",
    "Float",
    "Grid",
    "Inputs",
    "Integers",
    "Layer",
    "LogLinear",
    "NeuralNet",
    "NumberFormat",
    "State",
    "Structure",
    "TreeEnsemble",
    "Trees",
    "Variable",
    "with_target",
]
