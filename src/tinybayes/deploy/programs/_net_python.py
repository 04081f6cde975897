"""Neural networks as plain Python for MicroPython: loops over integers, weights packed to the bit."""

import numpy as np

from tinybayes.deploy.files._native.tensors import pack_bits
from tinybayes.deploy.programs._net_plan import NetPlan
from tinybayes.model.neural_net import Layer

CHUNK = 24  # bytes of a table in one line

FUNCTIONS = '''
def _add(sums, layer, row, value):
    """Add a row of weights times a value to the sums of all units."""
    table, bits = layer[0], layer[1]
    k, held, count = row * layer[2], 0, 0
    for u in range(len(sums)):
        while count < bits:
            held |= table[k] << count
            count += 8
            k += 1
        sums[u] += (held & (1 << bits) - 1) * value
        held >>= bits
        count -= bits


def _weigh(layer, rows):
    """Return the sums of all units over pairs (row, value); a weight is twice its code less the largest code."""
    sums, total = [0] * len(layer[3]), 0
    for row, value in rows:
        if value:
            _add(sums, layer, row, value)
            total += value
    total *= (1 << layer[1]) - 1
    return [2 * s - total for s in sums]


def _activate(layer, sums):
    """Add the biases, then return sums as they are, signs, or numbers from 0 to 255."""
    sums = [s + b for s, b in zip(sums, layer[3])]
    if layer[4] == "none":
        return sums
    if layer[4] == "sign":
        return [1 if s >= 0 else -1 for s in sums]
    before, after = layer[6]
    half = 1 << after >> 1
    return [min(255, ((max(0, s) >> before) * m + half) >> after) for s, m in zip(sums, layer[5])]


{image}
def scores(x):
    """Return the scores of all classes for a row of states; the largest wins."""
{inputs}
    for layer in _LAYERS:
{step}
    return values


def predict(x):
    """Return the number of the most probable class; of equally probable ones the first."""
    found = scores(x)
    return found.index(max(found))
'''

IMAGE = '''def _window(values, image, top, left):
    """Yield the values of 3 x 3 pixels with the rows of their weights; there are zeros around the image."""
    rows, columns, channels = image
    for r in range(3):
        for c in range(3):
            if 0 <= top + r < rows and 0 <= left + c < columns:
                first = ((top + r) * columns + left + c) * channels
                for i in range(channels):
                    yield (3 * r + c) * channels + i, values[first + i]


def _convolve(layer, values):
    """Return the largest sums of each 2 x 2 pixels, after the activation."""
    image, found = layer[7], []
    for row in range(0, image[0] - 1, 2):
        for column in range(0, image[1] - 1, 2):
            best = _weigh(layer, _window(values, image, row - 1, column - 1))
            for k in range(1, 4):
                sums = _weigh(layer, _window(values, image, row - 1 + k // 2, column - 1 + k % 2))
                best = [max(pair) for pair in zip(best, sums)]
            found += _activate(layer, best)
    return found


'''
DENSE = "        values = _activate(layer, _weigh(layer, enumerate(values)))"
EITHER = """        if layer[7]:
            values = _convolve(layer, values)
        else:
            values = _activate(layer, _weigh(layer, enumerate(values)))"""


def net_body(found: NetPlan) -> str:
    """Write the constants and the functions ``scores`` and ``predict``."""
    net = found.net
    data, inputs = _inputs(found)
    out = data + "# Each layer: weights, their bits, bytes of a row, biases, activation, multipliers, shifts, image.\n"
    out += "_LAYERS = (\n"
    for layer, shape in zip(net.layers, net.shapes, strict=True):
        out += f"    (\n{_layer(layer, shape)}    ),\n"
    images = any(layer.convolution for layer in net.layers)
    functions = FUNCTIONS.format(image=IMAGE if images else "", inputs=inputs, step=EITHER if images else DENSE)
    return out + ")\n\n" + functions.replace("\n\n\n\n", "\n\n\n")


def _inputs(found: NetPlan) -> tuple[str, str]:
    """Return constants, and the line from states to values."""
    inputs = found.net.inputs
    in_order = inputs.feature.tolist() == list(range(len(found.variables))) and (inputs.state < 0).all()
    if in_order and len(np.unique(inputs.multiplier)) == len(np.unique(inputs.center)) == 1:
        return "", f"    values = [{inputs.multiplier[0]} * s - {inputs.center[0]} for s in x]"
    columns = zip(*(a.tolist() for a in (inputs.feature, inputs.state, inputs.multiplier, inputs.center)), strict=True)
    data = "# Each column: its feature, its state or -1, its multiplier, its centre.\n_COLUMNS = (\n"
    data += "".join(f"    {column},\n" for column in columns) + ")\n"
    return data, "    values = [m * (x[f] if s < 0 else x[f] == s) - c for f, s, m, c in _COLUMNS]"


def _layer(layer: Layer, shape: tuple[int, ...]) -> str:
    codes = layer.codes.reshape(-1, layer.units)
    table = b"".join(pack_bits(row, layer.bits).tobytes() for row in codes)
    width = len(table) // len(codes)
    lines = [repr(table[i : i + CHUNK]) for i in range(0, len(table), CHUNK)]
    out = "        (\n" + "".join(f"            {line}\n" for line in lines) + "        ),\n"
    multiplier = None if layer.multiplier is None else tuple(layer.multiplier.tolist())
    rest = (layer.bits, width, tuple(layer.bias.tolist()), layer.activation, multiplier, (layer.before, layer.after))
    image = tuple(shape) if layer.convolution else None
    return out + "".join(f"        {part!r},\n" for part in (*rest, image))
