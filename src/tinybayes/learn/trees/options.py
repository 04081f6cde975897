"""What may be chosen when trees are learned. No kernels are imported."""

from dataclasses import dataclass

from tinybayes.options import MOST_SEED, check_options, documented, option, same_option


@documented
@dataclass(frozen=True, kw_only=True)
class TreeOptions:
    """The size of trees, and the price of their tests."""

    leaves: int = option(31, "Leaves of a tree, at most.", low=1, search=(2, 64), log=True)
    depth: int | None = option(None, "Tests from the root to a leaf, at most.", low=1)
    leaf_rows: int = option(20, "Rows of a leaf, at least.", low=1, search=(1, 100), log=True)
    node_price: float = option(0.0, "Price of a test, in nats of the training rows.", low=0)
    threshold_price: float = option(0.0, "Price of a threshold that no test has used so far, in nats.", low=0)
    feature_price: float = option(0.0, "Price of a feature that no test has used so far, in nats.", low=0)
    feature_share: float = option(1.0, "Share of the features that are looked at for a test.", above=0, high=1)
    tests: int | None = option(
        None, "Different tests of all trees together; once there are as many, trees use no others.", low=1
    )
    row_share: float = option(1.0, "Share of the rows that a tree is grown from.", above=0, high=1)
    seed: int = option(0, "Seed of what is drawn.", low=0, high=MOST_SEED)

    def __post_init__(self) -> None:
        check_options(self)


@documented
@dataclass(frozen=True, kw_only=True)
class BoostingOptions(TreeOptions):
    """Boosted trees: each one follows the gradient of the log loss of those before it."""

    rounds: int = option(
        100, "Trees for each class; for two classes trees in all.", low=1, high=100_000, search=(4, 400), log=True
    )
    learning_rate: float = option(0.1, "Share of a tree that is added.", above=0, search=(0.03, 0.5), log=True)
    symmetric: bool = option(False, "Ask the same question of all nodes of a level; leaves are a power of two.")
    ridge: float = option(0.0, "Added to the second derivatives of a leaf: values stay small.", low=0)


@documented
@dataclass(frozen=True, kw_only=True)
class ForestOptions(TreeOptions):
    """A decision tree, or a forest of trees that are grown from rows drawn with replacement."""

    trees: int = option(1, "Trees; one is grown from the rows as they are.", low=1, search=(1, 64), log=True)
    votes: bool = option(False, "Let each tree vote for one class, instead of adding the shares of its leaf.")
    leaves: int = same_option(TreeOptions, "leaves", default=512)
    leaf_rows: int = same_option(TreeOptions, "leaf_rows", default=1)
