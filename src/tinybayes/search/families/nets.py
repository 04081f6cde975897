"""Neural networks with weights of a few bits: dense and convolutional."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinybayes.cost.neural_net import layer_sizes, layers_cost
from tinybayes.learn.training.net_sizes import halvings, smallest_bits
from tinybayes.learn.training.options import NetOptions
from tinybayes.model import Dataset
from tinybayes.search.budget import Budget
from tinybayes.search.families.family import Sampled, Setting, distributions, hyper_parameters, in_bits
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

UNIT_BITS = 48  # of a hidden unit: a bias of 32 bits and a multiplier of 16


@dataclass(frozen=True, eq=False)
class Nets(Sampled):
    """Quantised networks with batch normalisation."""

    # Units of a hidden layer of size 0; each further size doubles them. Layers of one size are compiled once.
    narrowest: int
    sizes: int  # the largest size that is drawn
    layers: tuple[int, int]  # the least and the most hidden layers that are drawn

    def image(self, views: Views) -> tuple[int, int] | None:
        """Return the shape of the image, for convolutions."""
        return None

    def depths(self, views: Views) -> tuple[int, int]:
        """Return the least and the most hidden layers for a table."""
        return self.layers

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw the bits, the widths and the training."""
        from optuna.distributions import FloatDistribution, IntDistribution

        return {
            **distributions(NetOptions, "bits"),
            "share": FloatDistribution(0.3, 1.0),
            **distributions(NetOptions, "learning_rate", "label_smoothing"),
            "size": IntDistribution(0, self.sizes),
            **distributions(NetOptions, "activation"),
            "layers": IntDistribution(*self.depths(views)),
        }

    def first_guess(self, views: Views, budget: Budget) -> Setting:
        """Begin with ReLU and 4 bits, in the widest layers that the budget allows."""
        least, most = self.depths(views)
        layers = min(least + 1, most)
        guess = {"activation": "relu", "bits": 4, "share": 1.0, "learning_rate": 0.03, "label_smoothing": 0.05}
        for size in (3, 2, 1, 0):
            hidden = [self.narrowest * 2**size * (layer + 1) for layer in range(layers)]
            if budget.allows(*self.price(hidden, 4, views, scaled=False)):
                break
        return {**guess, "layers": layers, "size": size}

    def fitted(self, setting: Setting, views: Views, budget: Budget) -> Setting | None:
        """Make the layers narrower; at one unit, take fewer bits."""
        hidden = self.widths(max(1, round(setting["share"] * self.narrowest * 2 ** setting["size"])), setting["layers"])
        scaled = setting.get("inputs") == "standard"
        while not budget.allows(*self.price(hidden, setting["bits"], views, scaled=scaled)):
            if max(hidden, default=1) == 1:
                if setting["bits"] == 1:
                    return None
                setting = {**setting, "bits": setting["bits"] - 1}
            hidden = [max(1, min(units - 1, int(units * 0.95))) for units in hidden]
        return {**setting, "hidden": hidden}

    def widths(self, units: int, layers: int) -> list[int]:
        """Return the units of the hidden layers."""
        return [units] * layers

    def price(self, hidden: Sequence[int], bits: int, views: Views, *, scaled: bool) -> tuple[int, int]:
        """Return bits, at most, and operations of a network, each input scaled or not."""
        features = len(views.by_name["fine"].seen.variables)
        sizes = layer_sizes(hidden, inputs=features, classes=views.target.cardinality, image=self.image(views))
        cost = layers_cost(sizes, [bits] * len(sizes), batch_norm=True, unit_bits=UNIT_BITS)
        return cost.bits + 16 * features * scaled, cost.operations

    def describe(self, setting: Setting) -> str:
        """Name widths, bits and activation."""
        widths = "x".join(map(str, setting["hidden"])) or "linear"
        sign = ", sign" if setting["activation"] == "sign" and setting["hidden"] else ""
        return f"{self.name} {widths}, {in_bits(setting['bits'])}{sign}"

    def train_runs(self, rows: Dataset, settings: Sequence[Setting], views: Views, **options: Any) -> Sequence[Any]:
        """Train the networks of all settings at once."""
        from tinybayes.learn.training.nets import NetConfiguration, train_nets

        kind: dict[str, Any] = {"kind": self.name, "image_shape": self.image(views)}
        chosen = [hyper_parameters(setting, NetConfiguration) for setting in settings]
        runs = [NetConfiguration(**kind, **values | {"hidden": tuple(values["hidden"])}) for values in chosen]
        return train_nets(rows, runs, **options)


class Dense(Nets):
    """Fully connected networks; without hidden layers it is logistic regression."""

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw how numbers enter, too."""
        from optuna.distributions import CategoricalDistribution

        return super().space(views) | {"inputs": CategoricalDistribution(["standard", "shared"])}

    def first_guess(self, views: Views, budget: Budget) -> Setting:
        """Begin with inputs that share a scale, which costs nothing."""
        return super().first_guess(views, budget) | {"inputs": "shared"}

    def shape(self, setting: Setting) -> str:
        """Sizes and activations are those of hidden layers, which a linear network has none of."""
        linear = setting.get("layers") == 0
        return json.dumps([self.name, 0, setting.get("inputs")]) if linear else super().shape(setting)

    def smallest_bits(self, views: Views) -> int:
        """Return the bits of a network with one hidden unit."""
        inputs, classes = len(views.by_name["fine"].seen.variables), views.target.cardinality
        return smallest_bits(inputs=inputs, classes=classes, weight_bits=1) + UNIT_BITS


class Conv(Nets):
    """Convolutional networks, for images."""

    def possible(self, views: Views) -> bool:
        """Require an image that has pixels left after a pooling."""
        return views.image_shape is not None and halvings(views.image_shape) > 0

    def image(self, views: Views) -> tuple[int, int] | None:
        """Return the shape of the image."""
        return views.image_shape

    def depths(self, views: Views) -> tuple[int, int]:
        """Take at most as many convolutions as a small image allows poolings."""
        assert views.image_shape is not None
        least, most = self.layers
        return least, min(most, halvings(views.image_shape))

    def widths(self, units: int, layers: int) -> list[int]:
        """Double the channels of the second convolution."""
        return [units, 2 * units][:layers]

    def smallest_bits(self, views: Views) -> int:
        """Return the bits of a network with one channel."""
        return self.price([1], 1, views, scaled=False)[0]


DENSE = Dense("dense", ("layers", "size", "activation", "inputs"), narrowest=16, sizes=5, layers=(0, 2))
CONV = Conv("conv", ("layers", "size", "activation"), narrowest=4, sizes=3, layers=(1, 2))
