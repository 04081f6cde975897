"""Model to `Cost`: bits, and operations as the papers count them."""

from tinybayes.cost.bayes_net import bayes_net_cost

__all__ = ["bayes_net_cost"]
