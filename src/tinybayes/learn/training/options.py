"""What may be chosen when models are trained by gradient. Without JAX: command line and estimators import it."""

import math
from dataclasses import dataclass

from tinybayes.errors import error
from tinybayes.learn.training.net_inputs import KINDS
from tinybayes.options import MOST_SEED, check_options, documented, option, same_option

STEPS = 6000  # mini-batches of a training by default


@documented
@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What the engine needs to know beside the configurations."""

    epochs: int = option(500, "Passes over the data.", low=1, high=10**9)
    batch_size: int = option(100, "Rows of a mini-batch.", low=1)
    keep_best: bool = option(False, "Return the parameters with the least validation error, not the last ones.")
    every: int = option(1, "Epochs between two measurements on the validation rows, at least.", low=1)
    shuffle_seed: int = option(
        0, "Seed of the order of the rows, the same for all configurations.", low=0, high=MOST_SEED
    )
    memory: int | None = option(None, "Bytes that the configurations trained at once may take.", low=1)
    device: str | None = option(None, "cpu or gpu; by default the one that JAX prefers.")
    deterministic: bool = option(
        False, "On a GPU: equal runs give equal bytes, several times as slow. A CPU always does that."
    )
    deadline: float = option(math.inf, "Of the wall clock, in seconds: training ends early then, as by an interrupt.")

    def __post_init__(self) -> None:
        check_options(self)


def default_epochs(rows: int, batch_size: int) -> int:
    """Return as many epochs as make `STEPS` mini-batches."""
    return math.ceil(STEPS / max(1, rows // max(1, batch_size)))


@documented
@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """The hybrid loss: ``NLL + lam * margin loss + conditional * conditional loss`` (differentiable_tan, eq. 6-8)."""

    lam: float = option(30.0, "Weight of the margin loss.", low=0, search=(10.0, 1000.0), log=True)
    gamma: float = option(10.0, "Log-margin to be reached.", above=0, search=(0.3, 100.0), log=True)
    eta: float = option(10.0, "Hardness of the maximum over the wrong classes in the margin.", above=0)
    conditional: float = option(0.0, "Weight of the conditional log-likelihood.", low=0)

    def __post_init__(self) -> None:
        check_options(self)


@documented
@dataclass(frozen=True, kw_only=True)
class TableOptions(LossOptions):
    """Training of tables, and of the structure with them."""

    learning_rate: float = option(
        3e-2, "Of the tables, at the start; it falls by a factor of 1000.", above=0, search=(3e-3, 3e-2), log=True
    )
    structure_rate: float = option(1e-3, "Constant learning rate of the structure; 0 keeps it.", low=0)
    size_penalty: float = option(
        0.0, "Price of a table entry in the structure search (lambda_MS).", low=0, search=(1e-7, 1e-1), log=True
    )
    structure_noise: float = option(
        0.0,
        "Probability that a feature loses its extra parent for a mini-batch, as in dropout.",
        low=0,
        below=1,
        search=(0.0, 0.3),
    )
    input_noise: float = option(
        0.0,
        "Probability that a code moves to a neighbouring bin in training; without an order, to any state.",
        low=0,
        below=1,
        search=(0.0, 0.5),
    )
    noise_reach: float = option(
        0.0, "Standard deviation of these moves in bins, by the distance of their middles; 0: to the next bin.", low=0
    )
    noise_end: float = option(
        1.0, "Share of the input noise at the end of training; it changes evenly from the start.", low=0, high=1
    )
    sharing: float = option(
        0.0,
        "Multiple of the learning rate at which the contexts of a feature learn together; 0: on their own.",
        low=0,
        search=(0.0, 1.0),
    )


@documented
@dataclass(frozen=True, kw_only=True)
class CodebookOptions(LossOptions):
    """Training of a codebook."""

    reassign: bool = option(True, "Let entries move to other levels.")
    move_levels: bool = option(True, "Let the levels move.")
    learning_rate: float = same_option(TableOptions, "learning_rate", default=3e-3, search=None)
    epochs: int = same_option(TrainingOptions, "epochs", default=50, low=0)
    batch_size: int = same_option(TrainingOptions, "batch_size")
    seed: int = option(0, "Seed of the order of the rows.", low=0, high=MOST_SEED)


@documented
@dataclass(frozen=True, kw_only=True)
class NetOptions:
    """A quantised neural network and its training."""

    kind: str = option(
        "dense", "dense, or conv: 3x3 convolutions, each followed by 2x2 max pooling.", choices=("dense", "conv")
    )
    hidden: tuple[int, ...] = option((32,), "Units or channels of the hidden layers; none: logistic regression.", low=1)
    bits: int | None = option(
        4, "Bits of a weight; without a number, weights are floats.", low=1, high=8, search=(1, 8)
    )
    activation: str = option("relu", "Of the hidden layers.", choices=("relu", "sign"))
    batch_norm: bool = option(True, "Normalise the sums of hidden layers.")
    inputs: str | None = option(
        None,
        "How codes enter: scaled each, all by one factor, or as indicators; default: shared for conv, else standard.",
        choices=KINDS,
    )
    learning_rate: float = option(
        3e-3, "At the start; it falls by a factor of 10,000.", above=0, search=(2e-3, 6e-2), log=True
    )
    label_smoothing: float = option(
        0.0, "Share of a label that is spread over all classes.", low=0, below=1, search=(0.0, 0.2)
    )
    input_noise: float = option(
        0.0,
        "Standard deviation of Gaussian noise on inputs of deviation 1; indicators change with a quarter of it.",
        low=0,
        search=(0.0, 0.6),
    )
    mixup: float = option(
        0.0, "Rows and labels are mixed with those of others, up to half of this.", low=0, high=1, search=(0.0, 0.6)
    )
    image_shift: int = option(0, "Pixels by which images of convolutions move in training, at most.", low=0, high=8)
    image_shape: tuple[int, int] | None = option(None, "Rows and columns of the image; a square by default.", low=1)

    def __post_init__(self) -> None:
        check_options(self)
        if self.kind == "conv" and len(self.hidden) not in (1, 2):
            raise error("one or two convolutions", self.hidden, where="hidden")
        if self.kind == "dense" and self.image_shift:
            raise error("convolutions", "a dense network", where="image_shift", remedy="leave image_shift out")

    @property
    def input_kind(self) -> str:
        """How codes enter, the default filled in."""
        return self.inputs or ("shared" if self.kind == "conv" else "standard")
