"""What may be chosen when circuits, tree CPDs and latent trees are learned. Neither kernels nor JAX are imported."""

import math
from dataclasses import dataclass

from tinybayes.errors import error
from tinybayes.options import MOST_SEED, check_options, documented, option, same_option

FIRST_STEP = 0.5  # of EM, towards the expected counts of a mini-batch


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
        "quick assumes that the edges that a split costs never become fewer; greedy always takes the best split; "
        "latent: no splits, a tree of hidden variables.",
        choices=("quick", "greedy", "latent"),
    )
    smoothing: float = option(1.0, "Spread uniformly over the states of each leaf's distribution.", above=0)
    bayesian: bool = option(False, "Score leaves by their marginal likelihood under a Dirichlet prior of that weight.")
    max_edges: int | None = option(None, "Stop before the circuit has more edges.", low=1)
    seconds: float = option(math.inf, "Stop after this time; the circuit so far is returned.", above=0, high=math.inf)

    def __post_init__(self) -> None:
        check_options(self)


@documented
@dataclass(frozen=True, kw_only=True)
class LatentOptions:
    """A latent tree, and its training by EM."""

    hidden_states: int = option(16, "States of each hidden variable.", low=1, high=1024)
    components: int = option(1, "Trees, each from a cluster of the rows; the density is their mixture.", low=1, high=64)
    epochs: int | None = option(
        None, "Passes over the data; by default 10,000 mini-batches, in 10 to 80.", low=1, high=10**9
    )
    batch_size: int = option(64, "Rows of a mini-batch.", low=1)
    last_step: float = option(0.01, f"Step of EM at the end; it falls from {FIRST_STEP}.", above=0, high=FIRST_STEP)
    smoothing: float = same_option(CircuitOptions, "smoothing")
    restarts: int = option(
        1, "Trainings from different starts, at once; the best on held-out rows is taken.", low=1, high=1000
    )
    average: bool = option(False, "Keep the trees of all restarts, as a mixture, instead of the best one.")
    validation_fraction: float = option(
        0.1, "Share of the rows held out to choose the best epoch and start; none of fewer than 500.", low=0, below=1
    )
    edge_price: float = option(0.0, "Price of an edge: transitions are cut while the score rises.", low=0)
    max_edges: int | None = same_option(CircuitOptions, "max_edges")
    levels: int | None = option(
        None, "Distinct parameters of the circuit, at most: EM goes on through the quantiser.", low=2, high=256
    )
    discriminative: bool = option(
        True, "With a class: trained further, by gradient, to predict it; otherwise EM alone, for the joint density."
    )
    seconds: float = same_option(CircuitOptions, "seconds")
    seed: int = option(0, "Of the start and of the order of the rows.", low=0, high=MOST_SEED)
    device: str | None = option(None, "cpu or gpu; by default the one that JAX prefers.")
    deterministic: bool = option(
        False, "On a GPU: equal runs give equal bytes, several times as slow. A CPU always does that."
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.average and self.restarts == 1:
            raise error("several restarts to average", 1, where="restarts", remedy="restarts=4")
