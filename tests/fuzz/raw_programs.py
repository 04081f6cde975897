"""Fifty classifiers and sixteen tree ensembles for raw rows: all families and encodings, with and without gaps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from networks import classifier, codebook
from neural_nets import neural_net
from raw_values import states_of, with_encodings
from tinybayes.model import Cuts, Fixed, Float, Grid, Integers
from tree_ensembles import tree_ensemble

States = list[int]
Encodings = list[Any]
SIZES = (0, 255, 256, 257, 1000)  # states of the widest feature; 0 where all are small
SAME = Cuts([-1.5, 0.1, 2.3, 7.75])
SAME_INTEGERS = Cuts([-70, 3, 90], integer=True)


def _tables(structure: str, form: Any, **options: Any) -> Callable[[States, int], Any]:
    return lambda states, seed: classifier(structure, form, states=list(states), seed=seed, **options)


def _layers(*hidden: Any, **options: Any) -> Callable[[States, int], Any]:
    return lambda states, seed: neural_net(hidden, states=list(states), seed=seed, **options)


FAMILIES: dict[str, Callable[[States, int], Any]] = {
    "naive fixed3.1": _tables("naive", Fixed(3, 1)),
    "naive fixed1.0": _tables("naive", Fixed(1, 0), classes=2),
    "naive fixed6.10": _tables("naive", Fixed(6, 10), classes=5),
    "naive codebook2": _tables("naive", codebook(2), classes=10),
    "naive codebook13": _tables("naive", codebook(13)),
    "naive float": _tables("naive", Float(32)),
    "forest fixed3.2": _tables("forest", Fixed(3, 2), classes=5),
    "forest fixed8.8": _tables("forest", Fixed(8, 8)),
    "forest codebook300": _tables("forest", codebook(300)),
    "forest impossible levels": _tables("forest", codebook(9, zeros=True), zeros=True),
    "forest float": _tables("forest", Float(32), classes=4),
    "forest impossible floats": _tables("forest", Float(32), zeros=True),
    "tree fixed3.1": _tables("tree", Fixed(3, 1), classes=10),
    "general fixed3.1": _tables("general", Fixed(3, 1)),
    "general codebook13": _tables("general", codebook(13), classes=4),
    "general float": _tables("general", Float(32)),
    "tree CPDs fixed3.1": _tables("trees", Fixed(3, 1)),
    "tree CPDs float": _tables("trees", Float(32)),
    "net linear": _layers(bits=3, classes=7, scaled=True),
    "net ordinal": _layers(6, bits=4),
    "net one-hot": _layers(6, 5, bits=2, inputs="one-hot"),
    "net mixed, signs": _layers(6, bits=1, inputs="mixed", activation="sign"),
    "net some states": _layers(5, bits=8, inputs="some", scaled=True),
    "net convolution": _layers((4,), 5, bits=3, image=(4, 4), scaled=True),
    "net convolution, one-hot": _layers((3,), bits=5, inputs="one-hot", image=(4, 4)),
}


# Forms of the code, kinds of trees, and whether all features are numbers, so that there is no encoder.
TREES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "one tree nested": ("nested", {"trees": 1, "kind": "votes", "sets": 0, "leaves": 80, "start": False}, True),
    "boosted nested": ("nested", {"trees": 4, "leaves": 12, "sets": 0}, True),
    "boosted nodes": ("nodes", {"trees": 12, "leaves": 12, "sets": 0, "values": 20}, True),
    "votes nodes": ("nodes", {"trees": 6, "kind": "votes", "leaves": 40, "sets": 0}, True),
    "symmetric levels": ("levels", {"trees": 12, "leaves": 8, "sets": 0, "values": 12, "symmetric": True}, True),
    "sets nested": ("nested", {"trees": 4, "leaves": 12, "sets": 0.4}, False),
    "sets nodes": ("nodes", {"trees": 8, "kind": "all", "leaves": 12, "sets": 0.4}, False),
    "sets levels": ("levels", {"trees": 8, "leaves": 8, "sets": 0.4, "values": 40, "symmetric": True}, False),
}


@dataclass(frozen=True, eq=False)
class Program:
    """A classifier with encodings, the type of its raw values, and whether its code takes missing ones."""

    name: str
    net: Any
    raw: str
    gaps: bool
    form: str | None = None  # of trees


def programs() -> list[Program]:
    """Every family once with the code for missing values, if it has any, and once without."""
    found = []
    for number in range(2 * len(FAMILIES)):
        second, index = divmod(number, len(FAMILIES))
        family = list(FAMILIES)[index]
        raw = "int" if (number + second) % 3 == 2 else "float"
        size = 0 if "one-hot" in family and "convolution" in family else SIZES[(index + 2 * second) % len(SIZES)]
        theme = ("long", "shared", "short", "extreme")[(index + second) % 4]
        encodings = (_floats if raw == "float" else _integers)(theme, size, np.random.default_rng(number))
        if family.startswith("net convolution"):
            encodings = _pixels(encodings, two="one-hot" in family)
        net = with_encodings(FAMILIES[family]([states_of(e) for e in encodings], number), encodings)
        name = f"{family}, {raw}, {theme}, {size or 'few'} states, {'no gaps' if second else 'gaps'}"
        found.append(Program(name, net, raw, not second))
    return found + _trees(len(found))


def _trees(first: int) -> list[Program]:
    """Every kind of trees once with the code for missing values, and once without."""
    made = []
    for number in range(2 * len(TREES)):
        second, index = divmod(number, len(TREES))
        kind, (form, options, numbers) = list(TREES.items())[index]
        raw = "int" if (number + second) % 3 == 2 else "float"
        theme = ("long", "shared", "short", "extreme")[(index + second) % 4]
        encodings = (_floats if raw == "float" else _integers)(theme, 0, np.random.default_rng(first + number))
        encodings = [e for e in encodings if isinstance(e, Cuts | Grid) or not numbers]
        states = [states_of(e) for e in encodings]
        net = with_encodings(tree_ensemble(**options, states=states, seed=number), encodings)
        name = f"trees {kind}, {raw}, {theme}, {'no gaps' if second else 'gaps'}"
        made.append(Program(name, net, raw, not second, form))
    return made


def _wide(raw: str, size: int, rng: np.random.Generator) -> Encodings:
    """Return a feature with so many states, of any kind of encoding."""
    if not size:
        return []
    grid = Grid(-64, 2, size, integer=True) if raw == "int" else Grid(-3, 2.0**-5, size)
    points = np.unique(rng.normal(0, 100, 2 * size).astype(np.float32))[: size - 1]
    cuts = Cuts(np.arange(size - 1) * 3 - 700, integer=True) if raw == "int" else Cuts(points)
    low = int(rng.integers(-300, 300))
    return [(cuts, grid, Integers(low, low + size - 1), size)[int(rng.integers(4))]]


def _floats(theme: str, size: int, rng: np.random.Generator) -> Encodings:
    """Return encodings of floats around a theme, then small ones of every kind."""
    points = np.unique(rng.normal(0, 10, 60).astype(np.float32))
    small = [Grid(-1, 0.25, 5), Integers(-1, 1), 2, Integers(0, 1), 3, Cuts([0.1])]
    if theme == "shared":
        return [SAME, 3, SAME, *_wide("float", size, rng), Cuts([]), SAME, *small]
    if theme == "short":  # all keys fit in 16 bits, and with them the wide feature has no cut points
        wide = [Grid(0, 1, size)] if size else []
        return [Cuts([-2.5, 0, 0.5, 3]), *wide, Cuts([1024, 65536]), Grid(-1, 0.25, 5), 2, 3, Integers(2, 4)]
    if theme == "extreme":
        cuts = [Cuts([-3e38, -1e-45, 0, 1e-45, 3e38]), Cuts([1e-39, 2e-38])]
        far = [Grid(0, 2.0**-126, 7), Grid(-3 * 2.0**100, 2.0**100, 6), Grid(-(2.0**24), 1, 4), Grid(0, 2.0**127, 2)]
        return [*far[:2], *cuts, *_wide("float", size, rng), *far[2:], Integers(1 - 2**24, 3 - 2**24), 2, Grid(5, 1, 1)]
    return [Cuts(points[:12]), *small, *_wide("float", size, rng), Cuts(points[:13]), Cuts(points[20:60])]


def _integers(theme: str, size: int, rng: np.random.Generator) -> Encodings:
    """Return encodings of integers around a theme, then small ones of every kind."""
    small = [Grid(-16, 4, 5, integer=True), Integers(-1, 1), 2, Integers(0, 1), 3, Cuts([7], integer=True)]
    if theme == "shared":
        return [SAME_INTEGERS, 3, SAME_INTEGERS, *_wide("int", size, rng), SAME_INTEGERS, *small]
    if theme == "short":  # cut points of 8 bits
        return [Cuts([0, 3, 200, 255], integer=True), *([size] if size else []), Cuts([5, 9], integer=True), *small]
    if theme == "extreme":
        cuts = [Cuts([-(2**31) + 2, -5, 2**24 + 1, 2**31 - 2], integer=True), Cuts([-0.5, 7.25])]
        far = [
            Grid(-(2**30), 1, 4, integer=True),
            Grid(0, 2**30, 2, integer=True),
            Grid(-(2**31), 2**30, 4, integer=True),
        ]
        whole = [Integers(2**31 - 3, 2**31 - 1), Integers(-(2**31) + 1, -(2**31) + 2), 2, Grid(4, 1, 1, integer=True)]
        return [*cuts, *_wide("int", size, rng), *far, *whole]
    many = Cuts(np.unique(rng.integers(-30_000, 30_000, 40)), integer=True)
    return [many, *small, *_wide("int", size, rng), Cuts([-100, 100], integer=True)]


def _pixels(encodings: Encodings, *, two: bool) -> Encodings:
    """Return one encoding for each pixel of an image; with `two` half as many, of two states each."""
    if two:
        found = [e for e in encodings if states_of(e) == 2]
        return [found[k % len(found)] for k in range(8)]
    return [encodings[k % len(encodings)] for k in range(16)]
