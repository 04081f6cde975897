"""Our neural nets of `deploy.py`: how they are learned, from raw numbers that are states as they are.

Every setting is chosen on rows held out of the training rows; then the net is learned again from all of these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression

from tinybayes.deploy import load, save
from tinybayes.learn.classifier import hold_out
from tinybayes.learn.training.nets import NetConfiguration, train_nets
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset, NeuralNet, Variable


@dataclass(frozen=True)
class NetRecipe:
    """A neural net: units of the hidden layers, or with an image the channels of convolutions, and bits of a weight."""

    hidden: tuple[int, ...]
    bits: int
    image: tuple[int, int] | None = None
    activation: str = "relu"
    features: int | None = None  # keep so many, those that recursive elimination leaves

    @property
    def name(self) -> str:
        kind = "convolutions of " if self.image else "net of " if self.activation == "relu" else "sign net of "
        sizes = kind + "-".join(map(str, self.hidden)) if self.hidden else "linear net"
        return f"tinybayes {sizes}, {self.bits} bits" + (f", {self.features} features" if self.features else "")

    def configuration(self, choice: "Choice", seed: int) -> NetConfiguration:
        return NetConfiguration(
            kind="conv" if self.image else "dense",
            hidden=self.hidden,
            bits=self.bits,
            activation=self.activation,
            inputs="shared",  # one factor for all numbers, so that none is needed where they enter
            image_shape=self.image,
            learning_rate=choice.learning_rate,
            label_smoothing=choice.smoothing,
            seed=seed,
        )


class Choice(NamedTuple):
    """What validation rows decide, for every net apart."""

    learning_rate: float
    smoothing: float


class Effort(NamedTuple):
    """Epochs, rows of a mini-batch, choices, and the seeds over which the validation error of a choice is averaged."""

    epochs: int
    batch: int
    choices: tuple[Choice, ...]
    seeds: tuple[int, ...]


HELD_OUT = 0.2
GRID = tuple(Choice(*pair) for pair in product((1e-2, 3e-2), (0.0, 0.1)))
EFFORTS = {
    "digits": Effort(300, 50, GRID, (0, 1)),
    "letter": Effort(600, 100, GRID[::2], (0,)),  # many rows: in trials on validation rows, smoothing only did harm
    "letter-codes": Effort(400, 100, GRID[::2], (0,)),
    "satimage": Effort(150, 50, GRID, (0,)),
}
IMAGE = (8, 8)
WIDE = [
    NetRecipe((), 4),
    NetRecipe((16,), 4),
    *(NetRecipe((units,), 6) for units in (32, 40, 48, 64)),
    NetRecipe((64,), 4),
    NetRecipe((64,), 4, activation="sign"),
    *(NetRecipe((units, units), 6) for units in (24, 32)),
    NetRecipe((48, 48), 4),
    NetRecipe((64, 64), 3),
]
NETS = {
    "digits": [
        *(NetRecipe((), b, features=k) for k in range(8, 49, 4) for b in (3, 5)),
        *(NetRecipe((), b) for b in (1, 2, 3, 5, 8)),
        *(NetRecipe((units,), b) for units in (8, 16, 32) for b in (2, 3, 4)),
        *(NetRecipe((units,), 2, activation="sign") for units in (16, 32)),
        NetRecipe((8, 16), 4, IMAGE),
    ],
    "letter": [*WIDE, NetRecipe((36,), 6), NetRecipe((96,), 4)],
    "letter-codes": WIDE,
    "satimage": [
        *(NetRecipe((), 4, features=k) for k in (4, 8, 16)),
        *(NetRecipe((), b) for b in (3, 4, 6)),
        *(NetRecipe((units,), b) for units in (8, 16, 32) for b in (3, 4, 6)),
        NetRecipe((32, 32), 4),
    ],
}
HIGHEST = {"digits": 16, "letter": 15, "satimage": 255}  # as their descriptions say; codes have their own numbers


def whole(X: np.ndarray, like: Dataset, data: str) -> Dataset:
    """Take integers as states, from 0 to the highest there is."""
    tops = [HIGHEST.get(data, v.cardinality - 1) for v in like.variables]
    variables = tuple(Variable(v.name, tuple(range(top + 1))) for v, top in zip(like.variables, tops, strict=True))
    return Dataset(variables, like.target, np.ascontiguousarray(X, dtype=np.int32), like.y)


def columns(data: Dataset, keep: Sequence[int]) -> Dataset:
    """Keep some features."""
    variables = tuple(data.variables[i] for i in keep)
    return Dataset(variables, data.target, np.ascontiguousarray(data.X[:, keep]), data.y)


def constant(train: Dataset) -> np.ndarray:
    """Tell which features have one value in all training rows."""
    return np.asarray(train.X.min(axis=0) == train.X.max(axis=0))


def elimination_order(train: Dataset) -> list[int]:
    """Order the features that are not constant, from the last to the first that recursive elimination drops."""
    vary = np.flatnonzero(~constant(train))
    values = (train.X[:, vary] - train.X[:, vary].mean(axis=0)) / train.X[:, vary].std(axis=0)
    ranks = RFE(LogisticRegression(max_iter=200), n_features_to_select=1).fit(values, train.y).ranking_
    return list(vary[np.argsort(ranks)].tolist())


def learn_nets(
    recipes: Sequence[NetRecipe], data: str, train: Dataset, quick: bool, kept: Path | None
) -> Iterator[tuple[NetRecipe, list[int], NeuralNet]]:
    """Learn nets, those of the same features at once, or take them from the last run."""
    effort = small(EFFORTS[data]) if quick else EFFORTS[data]
    order = np.flatnonzero(~constant(train)).tolist()
    if any(recipe.features for recipe in recipes):
        order = elimination_order(train)
    groups: dict[tuple[int, ...], list[NetRecipe]] = {}
    for recipe in recipes:
        keep = range(len(train.variables)) if recipe.image else sorted(order[: recipe.features])
        groups.setdefault(tuple(keep), []).append(recipe)
    for keep, some in groups.items():
        files = [None if kept is None else kept / f"{data} {recipe.name}.tb" for recipe in some]
        missing = [r for r, file in zip(some, files, strict=True) if file is None or not file.exists()]
        learned = dict(zip(missing, learn(missing, columns(train, keep), effort), strict=True)) if missing else {}
        for recipe, file in zip(some, files, strict=True):
            net = learned[recipe] if recipe in learned else load(file)
            if not isinstance(net, NeuralNet):
                raise SystemExit(f"{file} holds no neural net")
            if recipe in learned and file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                save(net, file)
            yield recipe, list(keep), net


def small(effort: Effort) -> Effort:
    """Return a small effort, to see that everything works."""
    return effort._replace(epochs=3, choices=effort.choices[:2], seeds=effort.seeds[:1])


def learn(recipes: Sequence[NetRecipe], train: Dataset, effort: Effort) -> list[NeuralNet]:
    """Choose the settings of every net on rows held out, then learn it from all rows with the first seed."""
    part, held_out = hold_out(train, HELD_OUT, 0)
    trials = [(recipe, choice, seed) for recipe in recipes for choice in effort.choices for seed in effort.seeds]
    configurations = [recipe.configuration(choice, seed) for recipe, choice, seed in trials]
    found = train_nets(
        part,
        configurations,
        TrainingOptions(epochs=effort.epochs, batch_size=effort.batch, every=effort.epochs),
        validation=held_out,
    )
    wrong: dict[tuple[NetRecipe, Choice], float] = {}
    for (recipe, choice, _), trained in zip(trials, found, strict=True):
        wrong[recipe, choice] = wrong.get((recipe, choice), 0.0) + trained.validation_error
    best = [min(effort.choices, key=lambda choice, recipe=recipe: wrong[recipe, choice]) for recipe in recipes]
    final = [recipe.configuration(choice, effort.seeds[0]) for recipe, choice in zip(recipes, best, strict=True)]
    nets = [
        trained.net
        for trained in train_nets(train, final, TrainingOptions(epochs=effort.epochs, batch_size=effort.batch))
    ]
    if any(net is None for net in nets):
        raise SystemExit("a net could not be learned")
    return [net for net in nets if net is not None]
