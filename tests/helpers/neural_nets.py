"""Random neural networks of every shape that files and exporters must handle."""

import numpy as np

from tinybayes.model import NeuralNet, Variable
from tinybayes.model.neural_net import Inputs, Layer


def neural_net(
    hidden=(), *, bits=4, activation="relu", inputs="ordinal", classes=3, states=None, seed=0, scaled=False, image=None
):
    """Draw a network.

    `hidden` are units; with an `image` those in a tuple are channels of convolutions. `inputs` are "ordinal",
    "one-hot", "mixed", or "some" for indicators of some states only. `scaled` gives the columns multipliers, some of
    them negative, and centres.
    """
    rng = np.random.default_rng(seed)
    count = image[0] * image[1] if image else 7
    cards = states or [int(k) for k in rng.integers(1, 7, count)]
    variables = tuple(Variable(f"f {i}", tuple(range(k))) for i, k in enumerate(cards))
    target = Variable("the class", tuple(f"c{i}" for i in range(classes)))
    layers = []
    enters = _inputs(rng, cards, inputs, scaled)
    shape = (*image, 1) if image else (len(enters),)
    for channels in hidden:
        convolution = isinstance(channels, tuple)
        units = channels[0] if convolution else channels
        codes = (3, 3, shape[-1], units) if convolution else (int(np.prod(shape)), units)
        layers.append(_layer(rng, codes, bits, activation, _peak(enters, cards) if not layers else activation))
        shape = (shape[0] // 2, shape[1] // 2, units) if convolution else (units,)
    codes = (int(np.prod(shape)), classes)
    layers.append(_layer(rng, codes, bits, "none", _peak(enters, cards) if not layers else activation))
    return NeuralNet(variables, target, enters, tuple(layers), 0.01, image)


def rows_of(net, rows=60, seed=1):
    """Draw rows in which every state occurs, after the lowest and the highest states everywhere."""
    rng = np.random.default_rng(seed)
    cards = [v.cardinality for v in net.variables]
    count = max(rows, *cards)
    found = np.array([rng.permutation(np.arange(count) % k) for k in cards], dtype=np.int32).T
    return np.vstack([np.zeros(len(cards), np.int32), np.array(cards, np.int32) - 1, found])


def kinds():
    """Networks of every kind, with a name for each."""
    found = {
        f"dense {bits} bits": neural_net((9,), bits=bits, seed=bits, classes=[2, 3, 5, 10, 26][bits % 5])
        for bits in range(1, 9)
    }
    found |= {
        f"{kind} {activation}": neural_net((6, 5), bits=b, inputs=kind, activation=activation, seed=b, scaled=b > 4)
        for b, (kind, activation) in enumerate(
            [(k, a) for k in ("ordinal", "one-hot", "mixed", "some") for a in ("relu", "sign")], start=1
        )
    }
    return found | {
        "linear": neural_net(bits=3, classes=10, scaled=True),
        "linear one-hot": neural_net(bits=2, classes=7, inputs="one-hot"),
        "deep": neural_net((11, 4, 17), bits=5, seed=3),
        "deep signs": neural_net((33, 12, 8), bits=1, activation="sign", seed=4),
        "wide": neural_net((70, 50), bits=3, seed=5, states=[17] * 40, classes=10),
        "wide 8 bits": neural_net((50,), bits=8, seed=6, states=[256] * 30, classes=4),
        "many states": neural_net((5,), bits=2, inputs="mixed", states=[300, 4, 2]),
        "many classes": neural_net((5,), bits=4, classes=300),
        "constant": neural_net((4,), bits=4, states=[1, 1]),
        "one class": neural_net((4,), bits=4, classes=1),
        "conv": neural_net(((6,),), bits=4, image=(6, 7), seed=7),
        "conv scaled": neural_net(((5,), 9), bits=3, image=(5, 4), seed=8, scaled=True),
        "conv conv": neural_net(((8,), (12,), 20), bits=2, image=(8, 8), states=[17] * 64, seed=9, classes=10),
        "conv signs": neural_net(((9,), (7,)), bits=1, activation="sign", image=(9, 8), seed=10, scaled=True),
        "conv 8 bits": neural_net(((3,), (5,)), bits=8, image=(4, 6), states=[256] * 24, seed=11),
        "conv one-hot": neural_net(((4,),), bits=5, inputs="one-hot", image=(4, 4), states=[2] * 8, seed=12),
    }


def _inputs(rng, cards, kind, scaled):
    columns = []
    for f, k in enumerate(cards):
        one_hot = kind in ("one-hot", "some") or (kind == "mixed" and f % 2)
        states = list(range(k))
        if kind == "some":
            states = [int(s) for s in rng.permutation(k)[: 1 + k // 2]]
        columns += [(f, s) for s in states] if one_hot else [(f, -1)]
    size = len(columns)
    multiplier = rng.integers(-3, 6, size) if scaled else np.full(size, 1 if len(cards) % 2 else 3)
    center = rng.integers(-4, 9, size) if scaled else np.zeros(size, dtype=int)
    return Inputs(*np.array(columns).T, multiplier, center)


def _peak(inputs, cards):
    top = np.where(inputs.state >= 0, 1, np.array(cards)[inputs.feature] - 1)
    return max(1, int(np.abs(top * inputs.multiplier - inputs.center).max()))


def _layer(rng, shape, bits, activation, before):
    """Draw a layer whose values are neither all zero nor all at their ends."""
    peak = {"relu": 255, "sign": 1}.get(before, before)
    codes = rng.integers(0, 2**bits, shape)
    spread = 0.6 * peak * (2**bits - 1) * np.sqrt(codes[..., 0].size)
    bias = np.rint(rng.normal(0, spread / (3 if activation != "none" else 20), shape[-1])).astype(int)
    if activation != "relu":
        return Layer(codes, bits, bias, activation)
    shift = max(0, int(np.log2(spread / 2000)))
    multiplier = np.rint(rng.uniform(0.3, 12, shape[-1]) * 120 * 2**14 / (spread / 2**shift)).clip(0, 65535)
    return Layer(codes, bits, bias, activation, multiplier.astype(int), shift, 14)
