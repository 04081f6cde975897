"""What may be chosen when circuits and tree CPDs are learned. No kernels are imported."""

import math
from dataclasses import dataclass

from tinybayes.options import check_options, documented, option


@documented
@dataclass(frozen=True, kw_only=True)
class CircuitOptions:
    """The score ``log-likelihood - edge_price * edges - parameter_price * parameters``, and how far it is climbed."""

    edge_price: float | None = option(0.1, "Price of an edge (k_e).", low=0)  # None: a network without a circuit
    parameter_price: float = option(
        0.0, "Price of a parameter (k_p). A split of v values in the tree of a variable of k adds (v-1)(k-1).", low=0
    )
    method: str = option(
        "quick",
        "quick assumes that the edges that a split costs never become fewer; greedy always takes the best split.",
        choices=("quick", "greedy"),
    )
    smoothing: float = option(1.0, "Spread uniformly over the states of each leaf's distribution.", above=0)
    bayesian: bool = option(False, "Score leaves by their marginal likelihood under a Dirichlet prior of that weight.")
    max_edges: int | None = option(None, "Stop before the circuit has more edges.", low=1)
    seconds: float = option(math.inf, "Stop after this time; the circuit so far is returned.", above=0, high=math.inf)

    def __post_init__(self) -> None:
        check_options(self)
