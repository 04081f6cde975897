"""Model to `Cost`: bits, operations as the papers count them, edges of circuits; the cheapest format."""

from tinybayes.cost.bayes_net import bayes_net_cost
from tinybayes.cost.circuit import circuit_cost
from tinybayes.cost.model import model_cost
from tinybayes.cost.neural_net import neural_net_cost, paper_cost
from tinybayes.cost.storage import cheapest_format

__all__ = ["bayes_net_cost", "cheapest_format", "circuit_cost", "model_cost", "neural_net_cost", "paper_cost"]
