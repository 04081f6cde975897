"""Model to `Cost`: bits, operations as the papers count them, edges of circuits; the cheapest format."""

from tinybayes.cost.model import model_cost
from tinybayes.cost.neural_net import paper_cost
from tinybayes.cost.storage import cheapest_format

__all__ = ["cheapest_format", "model_cost", "paper_cost"]
