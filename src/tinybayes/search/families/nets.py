"""Neural networks with weights of a few bits: dense and convolutional."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from tinybayes.cost.neural_net import layer_sizes, layers_cost
from tinybayes.learn.training.net_sizes import halvings, smallest_bits
from tinybayes.learn.training.options import NetOptions
from tinybayes.model import Cost, Dataset, NeuralNet
from tinybayes.search.budget import Budget
from tinybayes.search.families.family import Setting, Trained, distributions, hyper_parameters, in_bits, with_settings
from tinybayes.search.price import Price, price_of
from tinybayes.search.skeletons import net_skeleton, skeleton_price
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

FEW_UNITS = 6  # of a layer; fewer are no guess
UNIT_BITS = 48  # of a hidden unit: a bias of 32 bits and a multiplier of 16


@dataclass(frozen=True, eq=False)
class Nets(Trained):
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
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        return {
            **distributions(NetOptions, "bits"),
            "share": FloatDistribution(0.3, 1.0),
            **distributions(NetOptions, "learning_rate", "label_smoothing", "input_noise", "mixup"),
            "size": IntDistribution(0, self.sizes),
            **distributions(NetOptions, "activation"),
            "layers": IntDistribution(*self.depths(views)),
            "taught": CategoricalDistribution([False, True]),
        }

    sizing: ClassVar[tuple[str, ...]] = ("bits",)

    def whole(self) -> Setting:
        """Take the widest layers: they are cut down to the budget."""
        return {"size": self.sizes, "share": 1.0}

    def guesses(self, views: Views, budget: Budget) -> list[Setting]:
        """Begin with ReLU in the widest layers that the budget allows: many layers, then fewer, of 6 bits or of less.

        Where layers of 6 bits would have hardly any unit, they have 4 or 3 bits.
        """
        least, most = self.depths(views)
        noise = 0.4 if views.image_shape is not None else 0.12
        guess = {
            "activation": "relu",
            "learning_rate": 0.02,
            "label_smoothing": 0.0,
            "input_noise": noise,
            "mixup": 0.0,
        }
        found = []
        for layers, wanted in {most: 6, min(max(1, least), most): 4 if most > 1 else 6}.items():
            sized = [guess | self._sized(layers, bits, guess, views, budget) for bits in (wanted, 4, 3)]
            wide = [one for one in sized if self._units(one) >= min(FEW_UNITS, self.narrowest)]
            found += wide[:1]
        return found or [guess | self._sized(min(1, most), 4, guess, views, budget)]

    def _units(self, setting: Setting) -> int:
        """Return the units of a layer."""
        return max(1, round(setting["share"] * self.narrowest * 2 ** setting["size"]))

    def _sized(self, layers: int, bits: int, guess: Setting, views: Views, budget: Budget) -> Setting:
        """Return the size of the widest layers within the budget, of at most half of the most units."""
        most, setting = self.narrowest * 2 ** (self.sizes - 1), {**guess, "bits": bits, "layers": layers}
        units = max(1, min(most, self._widest(setting, views, budget))) if budget.limited else most
        size = max(0, math.ceil(math.log2(units / self.narrowest)))
        return {"bits": bits, "layers": layers, "size": size, "share": max(0.3, units / (self.narrowest * 2**size))}

    def fitted(self, setting: Setting, views: Views, budget: Budget) -> Setting | None:
        """Make the layers narrower, and take fewer bits where they would be narrower than the output."""
        layers = setting["layers"]
        wanted = self._units(setting)
        narrow = min(wanted, self.narrowest, views.target.cardinality)
        settings = [{**setting, "bits": bits} for bits in range(setting["bits"], 0, -1)]
        settings = [cut for cut in settings if self._possible(cut, views, budget)]
        for least, cut in product((narrow, 1), settings):
            fits = self.allowed(cut, self.widths(wanted, layers), views, budget)
            units = wanted if fits else min(wanted - 1, self._widest(cut, views, budget)) if layers else 0
            if units >= least:
                return {**cut, "hidden": self.widths(units, layers)}
        return None

    def _possible(self, setting: Setting, views: Views, budget: Budget) -> bool:
        """Tell whether the budget allows any width; small networks take less flash, but more RAM than others."""
        one = self.widths(1, setting["layers"])
        return self.allowed(setting, one, views, budget) or (
            budget.ram is not None and bool(one) and self._widest(setting, views, budget) > 0
        )

    def _widest(self, setting: Setting, views: Views, budget: Budget) -> int:
        """Return the most units that the budget allows, 0 for none.

        The search begins with the widest layers of all settings, so that it prices the same few widths again.
        """
        low, high = 0, self.narrowest * 2**self.sizes + 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = self.allowed(setting, self.widths(middle, setting["layers"]), views, budget)
            low, high = (middle, high) if fits else (low, middle)
        return low

    def allowed(self, setting: Setting, hidden: Sequence[int], views: Views, budget: Budget) -> bool:
        """Return whether a network is within the budget: its parameters, at most, and the program of a skeleton."""
        cost = self.cost(hidden, setting["bits"], views, scaled=setting.get("inputs") == "standard")
        weights = self.cost(hidden, setting["bits"], views, scaled=False, units=0).bytes
        # The least that a program takes: weights in flash, and the values of a layer in RAM.
        price, values = price_of(None, cost, budget.core), max(hidden, default=0)
        if not budget.allows(replace(price, flash=weights, tables=weights, stack=values, instructions=0.0)):
            return False
        return not budget.of_program or budget.allows(self.skeleton(setting, hidden, views, budget))

    def skeleton(self, setting: Setting, hidden: Sequence[int], views: Views, budget: Budget) -> Price:
        """Price a network with random weights."""
        inputs, image = setting.get("inputs", "shared"), self.image(views)
        size = (tuple(hidden), setting["bits"], setting["activation"], inputs)

        def make() -> NeuralNet:
            return net_skeleton(views.rows("fine")[0], *size, image)

        return skeleton_price(views, (self.name, *size), make, budget.core, rows=1 if budget.microseconds else 0)

    def widths(self, units: int, layers: int) -> list[int]:
        """Return the units of the hidden layers."""
        return [units] * layers

    def cost(self, hidden: Sequence[int], bits: int, views: Views, *, scaled: bool, units: int = UNIT_BITS) -> Cost:
        """Return what the papers count of a network, bits at most, each input scaled or not."""
        features = len(views.by_name["fine"].seen.variables)
        sizes = layer_sizes(hidden, inputs=features, classes=views.target.cardinality, image=self.image(views))
        cost = layers_cost(sizes, [bits] * len(sizes), batch_norm=True, unit_bits=units)
        return cost + Cost(bits=16 * features * scaled)

    def smallest_flash(self, views: Views, core: str) -> int:
        """Return the bytes of a network of few bits with one hidden unit in each layer."""
        least, most = self.depths(views)
        prices = [
            self.skeleton({"bits": bits, "activation": "sign"}, [1] * layers, views, Budget(core=core))
            for bits, layers in product((1, 4), range(least, most + 1))
        ]
        return min(price.flash for price in prices)

    def describe(self, setting: Setting) -> str:
        """Name widths, bits and activation."""
        widths = "x".join(map(str, setting["hidden"])) or "linear"
        sign = ", sign" if setting["activation"] == "sign" and setting["hidden"] else ""
        return f"{self.name} {widths}, {in_bits(setting['bits'])}{sign}"

    def train_runs(
        self, rows: Dataset, settings: Sequence[Setting], views: Views, **options: Any
    ) -> list[tuple[Setting, Any]]:
        """Train the networks of all settings at once."""
        from tinybayes.learn.training.nets import NetConfiguration, train_nets

        kind: dict[str, Any] = {"kind": self.name, "image_shape": self.image(views)}
        chosen = [hyper_parameters(setting, NetConfiguration) for setting in settings]
        runs = [NetConfiguration(**kind, **values | {"hidden": tuple(values["hidden"])}) for values in chosen]
        return with_settings(settings, runs, train_nets(rows, runs, **options))


class Dense(Nets):
    """Fully connected networks; without hidden layers it is logistic regression."""

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw how numbers enter, too."""
        from optuna.distributions import CategoricalDistribution

        return super().space(views) | {"inputs": CategoricalDistribution(["standard", "shared"])}

    def guesses(self, views: Views, budget: Budget) -> list[Setting]:
        """Begin with inputs that share a scale, which costs nothing, for images; else each input has its own."""
        inputs = "shared" if views.image_shape is not None else "standard"
        return [guess | {"inputs": inputs} for guess in super().guesses(views, budget)]

    def shape(self, setting: Setting) -> str:
        """Sizes and activations are those of hidden layers, which a linear network has none of."""
        linear = setting.get("layers") == 0
        return super().shape({**setting, "size": None, "activation": None} if linear else setting)

    def smallest_bits(self, views: Views) -> int:
        """Return the bits of a network with one hidden unit."""
        inputs, classes = len(views.by_name["fine"].seen.variables), views.target.cardinality
        return smallest_bits(inputs=inputs, classes=classes, weight_bits=1) + UNIT_BITS


class Conv(Nets):
    """Convolutional networks, for images."""

    selects: ClassVar[bool] = False

    def possible(self, views: Views) -> bool:
        """Require an image that has pixels left after a pooling, all of which can be paid."""
        paid = views.prices is None or views.prices.affordable == len(views.prices.costs)
        return views.image_shape is not None and halvings(views.image_shape) > 0 and paid

    def image(self, views: Views) -> tuple[int, int] | None:
        """Return the shape of the image."""
        return views.image_shape

    def depths(self, views: Views) -> tuple[int, int]:
        """Take at most as many convolutions as a small image allows poolings."""
        assert views.image_shape is not None
        least, most = self.layers
        return least, min(most, halvings(views.image_shape))

    def space(self, views: Views) -> "dict[str, BaseDistribution]":
        """Draw whether images move, too."""
        from optuna.distributions import IntDistribution

        return super().space(views) | {"image_shift": IntDistribution(0, 1)}

    def guesses(self, views: Views, budget: Budget) -> list[Setting]:
        """Let images move in the second guess."""
        return [guess | {"image_shift": min(1, i)} for i, guess in enumerate(super().guesses(views, budget))]

    def widths(self, units: int, layers: int) -> list[int]:
        """Double the channels of the second convolution."""
        return [units, 2 * units][:layers]

    def smallest_bits(self, views: Views) -> int:
        """Return the bits of a network with one channel."""
        return self.cost([1], 1, views, scaled=False).bits


DENSE = Dense("dense", ("layers", "size", "activation", "inputs"), narrowest=16, sizes=5, layers=(0, 2))
CONV = Conv("conv", ("layers", "size", "activation", "image_shift"), narrowest=4, sizes=3, layers=(1, 2))
