"""Our neural nets of `deploy.py`: how they are learned, from raw numbers that are states as they are."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinybayes.deploy import load, save
from tinybayes.model import Dataset, NeuralNet, Variable


@dataclass(frozen=True)
class NetRecipe:
    """A neural net: units of the hidden layers, or with an image the channels of convolutions, and bits of a weight."""

    hidden: tuple[int, ...]
    bits: int
    image: tuple[int, int] | None = None
    steps: int = 12_000  # mini-batches
    inputs: str = "shared"  # one factor for all numbers, so that no multiplication is needed where they enter

    @property
    def name(self) -> str:
        kind = "convolutions" if self.image else "net"
        sizes = "-".join(map(str, self.hidden)) or "no hidden units"
        return f"tinybayes {kind} of {sizes}, {self.bits} bits"


IMAGE, BATCH = (8, 8), 50
NETS = {
    "digits": [
        *(NetRecipe((), b) for b in (3, 5)),
        *(NetRecipe((units,), b) for units in (6, 8, 12, 16, 24, 32) for b in (2, 3, 4)),
        *(NetRecipe((8, 16), b, IMAGE) for b in (2, 4)),
    ],
    "letter": [NetRecipe((units,), b) for units in (12, 16, 24, 40, 64, 128) for b in (3, 4, 6)],
    "satimage": [NetRecipe((units,), b) for units in (8, 16, 32) for b in (3, 4)],
}
NETS["letter-codes"] = NETS["letter"]


def whole(X: np.ndarray, like: Dataset, highest: np.ndarray) -> Dataset:
    """Take whole numbers as states, from 0 to the highest that a column holds."""
    names = [v.name for v in like.variables]
    variables = tuple(Variable(n, tuple(range(int(top) + 1))) for n, top in zip(names, highest, strict=True))
    return Dataset(variables, like.target, np.ascontiguousarray(X, dtype=np.int32), like.y)


def learn_net(recipe: NetRecipe, train: Dataset, quick: bool, file: Path | None) -> NeuralNet:
    """Learn a net, or take it from the last run."""
    from tinybayes.learn.nets import NetConfiguration, train_nets

    if file is not None and file.exists():
        found = load(file)
        if not isinstance(found, NeuralNet):
            raise SystemExit(f"{file} holds no neural net")
        return found
    configuration = NetConfiguration(
        kind="conv" if recipe.image else "dense",
        hidden=recipe.hidden,
        bits=recipe.bits,
        inputs=recipe.inputs,
        image_shape=recipe.image,
        learning_rate=1e-2,
    )
    epochs = 3 if quick else -(-recipe.steps * BATCH // len(train))
    (trained,) = train_nets(train, [configuration], epochs=epochs, batch_size=BATCH)
    net = trained.net
    if net is None:
        raise SystemExit(f"{recipe.name} could not be learned")
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        save(net, file)
    return net
