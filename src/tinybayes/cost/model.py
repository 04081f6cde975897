"""The price of any model."""

from tinybayes.cost.bayes_net import bayes_net_cost
from tinybayes.cost.circuit import circuit_cost
from tinybayes.cost.neural_net import neural_net_cost
from tinybayes.model import BayesNet, Circuit, Cost, NeuralNet


def model_cost(model: BayesNet | Circuit | NeuralNet) -> Cost:
    """Price a model of any kind."""
    if isinstance(model, Circuit):
        return circuit_cost(model)
    return neural_net_cost(model) if isinstance(model, NeuralNet) else bayes_net_cost(model)
