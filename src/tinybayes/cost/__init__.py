"""Model to `Cost`: bits, operations as the papers count them, edges of circuits."""

from tinybayes.cost.bayes_net import bayes_net_cost
from tinybayes.cost.circuit import circuit_cost

__all__ = ["bayes_net_cost", "circuit_cost"]
