"""Model to `Cost`: bits, operations as the papers count them, edges of circuits; the cheapest format."""

from tinybayes.cost.model import cheapest_format, model_cost
from tinybayes.cost.neural_net import paper_cost

__all__ = ["cheapest_format", "model_cost", "paper_cost"]
