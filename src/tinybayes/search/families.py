"""What a search may try: families of models, the settings of each, and what they would cost.

A setting is a JSON object. Its *shape* is what must be equal for settings to be trained at once; everything else is
data of the compiled loop.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinybayes.errors import error
from tinybayes.learn.training import net_sizes
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Setting = dict[str, Any]
SAMPLED = ("fc", "cnn", "tan", "nb", "tan-learned")  # trained by gradient, settings drawn; what compiles soon first
LISTED = ("closed-form", "tied", "circuit", "tree", "forest")  # quick to learn, settings listed
FAMILIES = (*SAMPLED, *LISTED)
BASELINES = ("tree", "forest")  # of scikit-learn: priced, so that one sees where they win, but not deployed
SHAPES = {
    "nb": ("view",),
    "tan": ("view", "sharing"),
    "tan-learned": ("view", "k"),
    "fc": ("layers", "size", "activation", "inputs"),
    "cnn": ("layers", "size", "activation"),
}
NARROWEST = {"fc": 16, "cnn": 4}


@dataclass(frozen=True)
class Limits:
    """What may be spent; None for no limit."""

    bits: int | None = None
    operations: int | None = None

    def allows(self, bits: int, operations: int) -> bool:
        """Tell whether a price is within the limits."""
        within_bits = self.bits is None or bits <= self.bits
        return within_bits and (self.operations is None or operations <= self.operations)


def parse_families(text: str | None, views: Views) -> tuple[str, ...]:
    """Return the families to try: those named, or all that the table allows."""
    names = [name.strip() for name in text.split(",")] if text else [f for f in FAMILIES if _possible(f, views)]
    for name in names:
        if name not in FAMILIES:
            raise error(f"some of {', '.join(FAMILIES)}", repr(name), where="families")
        if not _possible(name, views):
            remedy = "give the image's rows and columns, or leave the family out"
            raise error("images", f"{len(views.by_name['mdlp'].seen.variables)} features", where=name, remedy=remedy)
    return tuple(dict.fromkeys(names))


def _possible(family: str, views: Views) -> bool:
    seen = views.by_name["mdlp"].seen
    if family == "tan-learned" or family == "tan":
        return len(seen.variables) > 1
    if family == "circuit":
        return len(seen.variables) <= 300
    return family != "cnn" or views.image_shape is not None


def distributions(family: str, views: Views) -> "dict[str, BaseDistribution]":
    """Return what is drawn for a family, by name."""
    from optuna.distributions import CategoricalDistribution as Choice
    from optuna.distributions import FloatDistribution as Real
    from optuna.distributions import IntDistribution as Whole

    found: dict[str, BaseDistribution]
    if family in ("fc", "cnn"):
        found = {
            "bits": Whole(1, 8),
            "share": Real(0.3, 1.0),
            "learning_rate": Real(2e-3, 6e-2, log=True),
            "smoothing": Real(0.0, 0.2),
            "size": Whole(0, 5 if family == "fc" else 3),
            "activation": Choice(["relu", "sign"]),
            "layers": Whole(0 if family == "fc" else 1, 2),  # hidden ones; without any it is logistic regression
        }
        return found | ({"inputs": Choice(["standard", "shared"])} if family == "fc" else {})
    found = {
        "bits": Whole(1, 8),
        "integer": Whole(1, 6),
        "lam": Real(10.0, 1000.0, log=True),
        "gamma": Real(0.3, 100.0, log=True),
        "learning_rate": Real(3e-3, 3e-2, log=True),
        "view": Choice(["mdlp", "coarse"]),
    }
    if family == "tan":
        found |= {"sharing": Choice([0, 1]), "noise": Real(0.0, 0.3)}
    if family == "tan-learned":
        most = min(8, len(views.by_name["mdlp"].seen.variables) - 1)
        found |= {"k": Choice(sorted({min(4, most), most})), "size_penalty": Real(1e-7, 1e-1, log=True)}
    return found


def first_guess(family: str, views: Views, limits: Limits) -> Setting:
    """Return where a search of a family begins: what has been good elsewhere, as wide as the limits allow."""
    if family not in NARROWEST:
        return {"view": "mdlp", "bits": 4, "integer": 3, "lam": 50.0, "gamma": 10.0, "learning_rate": 0.02}
    guess: Setting = {"activation": "relu", "bits": 4, "share": 1.0, "learning_rate": 0.03, "smoothing": 0.05}
    guess |= {"layers": 1, "inputs": "shared"} if family == "fc" else {"layers": 2}
    features = len(views.by_name["fine"].seen.variables)
    for size in (3, 2, 1):
        hidden = [NARROWEST[family] * 2**size * (layer + 1) for layer in range(guess["layers"])]
        price = net_price(family, hidden, 4, features, views.target.cardinality, views.image_shape, scaled=False)
        if limits.allows(*price):
            return {**guess, "size": size}
    return {**guess, "size": 0}


def shape(setting: Setting) -> str:
    """Return what settings trained at once have in common."""
    family = setting["family"]
    names = ("layers", "inputs") if setting.get("layers") == 0 else SHAPES.get(family, ())
    return json.dumps([family, *(setting.get(name) for name in names)])


def fitted(setting: Setting, views: Views, limits: Limits) -> Setting | None:
    """Cut a setting down to what the limits allow, or return None when nothing is left of it."""
    family = setting["family"]
    if family in ("fc", "cnn"):
        return _fitted_net(setting, views, limits)
    if family not in ("nb", "tan", "tan-learned") or limits.bits is None:
        return setting
    data = views.by_name[setting["view"]].seen
    classes = views.target.cardinality
    least = sum(v.cardinality for v in data.variables) * classes + classes  # entries of naive Bayes
    bits = min(setting["bits"], limits.bits // least)
    return replace_bits(setting, bits) if bits >= 1 else None


def replace_bits(setting: Setting, bits: int) -> Setting:
    """Return the setting with so many bits."""
    return {**setting, "bits": bits}


def _fitted_net(setting: Setting, views: Views, limits: Limits) -> Setting | None:
    family, classes = setting["family"], views.target.cardinality
    widest = NARROWEST[family] * 2 ** setting["size"]
    hidden = [max(1, round(setting["share"] * widest))] * setting["layers"]
    if family == "cnn" and len(hidden) == 2:
        hidden[1] *= 2
    features = len(views.by_name["fine"].seen.variables)
    image, scaled = views.image_shape, setting.get("inputs") == "standard"
    while not limits.allows(*net_price(family, hidden, setting["bits"], features, classes, image, scaled=scaled)):
        if max(hidden, default=1) == 1:
            if setting["bits"] == 1:
                return None
            setting = replace_bits(setting, setting["bits"] - 1)
        hidden = [max(1, min(units - 1, int(units * 0.95))) for units in hidden]
    return {**setting, "hidden": hidden}


def net_price(
    family: str,
    hidden: list[int],
    bits: int,
    features: int,
    classes: int,
    image: tuple[int, int] | None,
    *,
    scaled: bool,
) -> tuple[int, int]:
    """Return bits, at most, and operations of a network with batch normalisation, each input scaled or not."""
    weights = operations = 0
    if family == "cnn":
        assert image is not None
        rows, columns, channels = *image, 1
        for units in hidden:
            weights += 9 * channels * units
            operations += rows * columns * units * (9 * channels + 1)
            rows, columns, channels = rows // 2, columns // 2, units
        entering = rows * columns * channels
    else:
        entering = features
        for units in hidden:
            weights += entering * units
            operations += (entering + 1) * units
            entering = units
    weights += entering * classes
    operations += entering * classes + classes
    return weights * bits + 48 * sum(hidden) + 32 * classes + 16 * features * scaled, operations


def listed(family: str, views: Views) -> list[Setting]:
    """Return the settings of families that are quick to learn."""
    if family == "closed-form":
        return [
            {"family": family, "view": view, "structure": structure, "bits": bits}
            for view in ("mdlp", "coarse")
            for structure in ("naive", "chow-liu")
            for bits in (2, 3, 4, 6, 8)
        ]
    if family == "tied":
        return [
            {"family": family, "view": "mdlp", "structure": structure, "levels": levels}
            for structure in ("naive", "chow-liu")
            for levels in (4, 8, 16, 32)
        ]
    if family == "circuit":
        return [{"family": family, "view": "mdlp", "edge_price": price, "levels": 16} for price in (3.0, 1.0, 0.3)]
    if family == "tree":
        return [{"family": family, "leaves": leaves} for leaves in (8, 16, 32, 64, 128, 256, 512)]
    return [{"family": family, "trees": trees, "leaves": leaves} for trees in (5, 10, 30) for leaves in (32, 128, 512)]


def smallest_bits(families: tuple[str, ...], views: Views) -> int:
    """Return the fewest bits that any deployable model of these families takes."""
    classes, found = views.target.cardinality, []
    coarse = sum(v.cardinality for v in views.by_name["coarse"].seen.variables) * classes + classes
    fine = len(views.by_name["fine"].seen.variables)
    for family in families:
        if family == "fc":
            found.append(net_sizes.smallest_bits(inputs=fine, classes=classes, weight_bits=1) + 48)
        elif family == "cnn":
            found.append(net_price("cnn", [1], 1, fine, classes, views.image_shape, scaled=False)[0])
        elif family not in BASELINES:
            found.append(coarse)
    return min(found, default=0)


def describe(setting: Setting) -> str:
    """Name a model plainly: its family and what matters most of its setting."""
    family = setting["family"]
    if family in ("fc", "cnn"):
        what = "x".join(map(str, setting["hidden"])) or "linear"
        sign = ", sign" if setting["activation"] == "sign" and setting["hidden"] else ""
        return f"{family} {what}, {_bits(setting['bits'])}{sign}"
    if family == "closed-form":
        return f"{'nb' if setting['structure'] == 'naive' else 'tan'} in closed form, {_bits(setting['bits'])}"
    if family == "tied":
        return f"{'nb' if setting['structure'] == 'naive' else 'tan'}, {setting['levels']} levels"
    if family == "circuit":
        return f"circuit, edge price {setting['edge_price']:g}"
    if family == "tree":
        return f"decision tree, {setting['leaves']} leaves"
    if family == "forest":
        return f"{setting['trees']} trees of {setting['leaves']} leaves"
    return f"{family}, {_bits(setting['bits'])}"


def _bits(bits: int) -> str:
    return f"{bits} bit{'s' if bits > 1 else ''}"
