"""Random programs of every family and size, for the calibration of prices."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinybayes.errors import TinybayesError
from tinybayes.model import (
    CPD,
    BayesNet,
    Codebook,
    Cuts,
    Fixed,
    Float,
    Grid,
    Integers,
    NeuralNet,
    NumberFormat,
    Variable,
)
from tinybayes.model.neural_net import Inputs, Layer

FAMILIES = ("naive", "tree", "dense", "codebook", "naive", "tree", "dense", "one-hot", "convolution", "float")
STYLES = ("short", "long", "grid", "integers", "categories", "mixed", "shared")
Model = BayesNet | NeuralNet


def draw(seed: int) -> tuple[Model, dict[str, Any], str]:
    """Draw a model, the options of its export, and a few words about it; the family is that of the seed's turn."""
    rng = np.random.default_rng(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    integer = bool(rng.random() < 0.35)
    style = str(rng.choice(("grid", "integers") if family == "convolution" else STYLES))
    options = {"raw": "int" if integer else "float", "gaps": bool(rng.random() < 0.5)}
    while True:
        classes = int(rng.choice([2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 26, 30]))
        count = round(2 ** rng.uniform(1, 6))
        target = Variable("class", tuple(range(classes)))
        try:
            if family in ("dense", "one-hot", "convolution"):
                model, words = _net(rng, family, style, integer, count, target)
            else:
                model, words = draw_tables(rng, family, style, integer, count, target)
        except TinybayesError:
            continue
        size = sum(c.table.size for c in model.cpds) if isinstance(model, BayesNet) else 0
        if size <= 40_000:
            words = f"{words}, {len(model.variables)} features ({style}, {options['raw']}), {classes} classes"
            return model, options, words + (", gaps" if options["gaps"] else "")


def rows_of(variables: Sequence[Variable], count: int, seed: int) -> np.ndarray:
    """Draw rows of codes; all states are equally likely."""
    cards = [v.cardinality for v in variables]
    return np.random.default_rng(seed).integers(0, cards, (count, len(cards)))


def _encoding(rng: np.random.Generator, style: str, integer: bool) -> Cuts | Grid | Integers | None:
    if style == "mixed":
        style = str(rng.choice(["short", "grid", "integers", "categories"]))
    if style in ("short", "long"):
        count = int(rng.integers(1, 8) if style == "short" else rng.integers(13, 60))
        points = np.unique(rng.integers(-300, 1000, count)) if integer else np.unique(rng.normal(0, 3, count))
        return Cuts(points.tolist(), integer)
    if style == "grid":
        step = 2.0 ** int(rng.integers(0, 5) if integer else rng.integers(-6, 3))
        return Grid(step * int(rng.integers(-9, 9)), step, int(rng.integers(3, 17)), integer)
    if style == "integers":
        low = int(rng.integers(-3, 4))
        return Integers(low, low + int(rng.integers(1, 9)))
    return None


def _variables(rng: np.random.Generator, style: str, integer: bool, count: int) -> tuple[Variable, ...]:
    if style == "shared":  # all features have one of two lists
        lists = [_encoding(rng, "short", integer) for _ in range(2)]
        encodings = [lists[int(rng.integers(2))] for _ in range(count)]
    else:
        encodings = [_encoding(rng, style, integer) for _ in range(count)]
    return tuple(
        Variable(f"f{i}", tuple(range(int(rng.integers(2, 7))))) if e is None else Variable.from_encoding(f"f{i}", e)
        for i, e in enumerate(encodings)
    )


def draw_tables(
    rng: np.random.Generator, family: str, style: str, integer: bool, count: int, target: Variable
) -> tuple[BayesNet, str]:
    """Draw a Bayesian network, and a few words about it."""
    bits = int(rng.integers(1, 9))
    form: NumberFormat = Fixed(min(bits, 3), bits - min(bits, 3))
    if family == "codebook":
        levels = int(rng.integers(2, 64))
        form = Codebook(tuple(np.unique(np.round(-rng.exponential(8 / levels, levels).cumsum(), 5)).tolist()))
    elif family == "float":
        form = Float(32)
    structure = family if family in ("naive", "tree") else str(rng.choice(["naive", "tree"]))
    variables = _variables(rng, style, integer, count)
    cpds = []
    for i, variable in enumerate(variables):
        parents: tuple[int, ...] = (int(rng.integers(i)), count) if structure == "tree" and i else (count,)
        contexts = math.prod((*variables, target)[p].cardinality for p in parents)
        cpds.append(CPD(parents, form.encode(np.log(rng.dirichlet(np.ones(variable.cardinality), contexts))), form))
    prior = np.log(rng.dirichlet(np.ones(target.cardinality), 1))
    return BayesNet(variables, target, (*cpds, CPD((), form.encode(prior), form))), f"{structure}, {form}"


def _net(
    rng: np.random.Generator, family: str, style: str, integer: bool, count: int, target: Variable
) -> tuple[NeuralNet, str]:
    bits, activation = int(rng.integers(1, 9)), str(rng.choice(["relu", "relu", "sign"]))
    image: tuple[int, int] | None = None
    if family == "convolution":
        image = (int(rng.integers(4, 11)), int(rng.integers(4, 11)))
        count = image[0] * image[1]
    variables = _variables(rng, style, integer, count)
    if family == "one-hot":
        columns = [(f, s) for f, v in enumerate(variables) for s in range(v.cardinality)]
    else:
        columns = [(f, -1) for f in range(count)]
    scaled = bool(rng.random() < 0.3)
    size = len(columns)
    multiplier = rng.integers(1, 6, size) if scaled else np.ones(size, int)
    center = rng.integers(0, 5, size) if scaled else np.zeros(size, int)
    inputs = Inputs(*np.array(columns).T, multiplier, center)
    top = np.where(inputs.state >= 0, 1, np.array([v.cardinality for v in variables])[inputs.feature] - 1)
    peak = max(1, int(np.abs(top * multiplier - center).max()))
    hidden = [round(2 ** rng.uniform(1, 5.5)) for _ in range(int(rng.integers(0, 3)))]
    convolutions = int(rng.integers(1, 3)) if image else 0
    shape: tuple[int, ...] = (*image, 1) if image else (size,)
    layers = []
    for number, units in enumerate([*(round(2 ** rng.uniform(1, 3.5)) for _ in range(convolutions)), *hidden]):
        convolution = number < convolutions
        codes = (3, 3, shape[-1], units) if convolution else (math.prod(shape), units)
        layers.append(_layer(rng, codes, bits, activation, peak))
        shape = (shape[0] // 2, shape[1] // 2, units) if convolution else (units,)
        peak = 255 if activation == "relu" else 1
    layers.append(_layer(rng, (math.prod(shape), target.cardinality), bits, "none", peak))
    units_of = "-".join(f"{'c' if layer.convolution else ''}{layer.units}" for layer in layers)
    return NeuralNet(
        variables, target, inputs, tuple(layers), 0.01, image
    ), f"net {units_of}, {bits} bits, {activation}"


def _layer(rng: np.random.Generator, shape: tuple[int, ...], bits: int, activation: str, peak: int) -> Layer:
    """Draw a layer whose outputs are neither all zero nor all at their ends."""
    codes = rng.integers(0, 2**bits, shape)
    spread = 0.6 * peak * (2**bits - 1) * np.sqrt(codes[..., 0].size)
    bias = np.rint(rng.normal(0, spread / (3 if activation != "none" else 20), shape[-1])).astype(int)
    if activation != "relu":
        return Layer(codes, bits, bias, activation)
    shift = max(0, int(np.log2(spread / 2000)))
    multiplier = np.rint(rng.uniform(0.3, 12, shape[-1]) * 120 * 2**14 / (spread / 2**shift)).clip(0, 65535)
    return Layer(codes, bits, bias, activation, multiplier.astype(int), shift, 14)
