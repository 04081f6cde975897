"""Integer scores of neural networks against plain loops over Python's integers."""

import numpy as np
import pytest

import neural_nets
from tinybayes import TinybayesError, class_scores, predict_codes
from tinybayes.cost import model_cost, paper_cost
from tinybayes.infer.neural_net import net_scores


def enter(net, row):
    found = []
    columns = zip(*(getattr(net.inputs, n).tolist() for n in ("feature", "state", "multiplier", "center")), strict=True)
    for feature, state, multiplier, center in columns:
        code = int(row[feature])
        value = code if state < 0 else int(code == state)
        found.append(0 if code < 0 else multiplier * value - center)
    return found


def after(layer, unit, total):
    total += int(layer.bias[unit])
    if layer.activation == "none":
        return total
    if layer.activation == "sign":
        return 1 if total >= 0 else -1
    half = 2 ** (layer.after - 1) if layer.after else 0
    return min(255, ((max(0, total) >> layer.before) * int(layer.multiplier[unit]) + half) >> layer.after)


def by_hand(net, row):
    values, image = enter(net, row), net.image_shape
    if net.layers[0].convolution:
        values = [[[values[r * image[1] + c]] for c in range(image[1])] for r in range(image[0])]
    for layer in net.layers:
        weights = (2 * layer.codes.astype(int) - (2**layer.bits - 1)).tolist()
        if not layer.convolution:
            flat = values
            if isinstance(values[0], list):
                flat = [v for line in values for pixel in line for v in pixel]
            values = [after(layer, u, sum(x * weights[i][u] for i, x in enumerate(flat))) for u in range(layer.units)]
            continue
        rows, columns = len(values), len(values[0])

        def convolved(r, c, u, values=values, weights=weights, rows=rows, columns=columns):
            total = 0
            for dr in range(3):
                for dc in range(3):
                    if 0 <= r + dr - 1 < rows and 0 <= c + dc - 1 < columns:
                        pixel = values[r + dr - 1][c + dc - 1]
                        total += sum(x * weights[dr][dc][k][u] for k, x in enumerate(pixel))
            return total

        values = [
            [
                [
                    max(after(layer, u, convolved(2 * r + a, 2 * c + b, u)) for a in (0, 1) for b in (0, 1))
                    for u in range(layer.units)
                ]
                for c in range(columns // 2)
            ]
            for r in range(rows // 2)
        ]
    return values


@pytest.mark.parametrize("key", sorted(neural_nets.kinds()))
def test_scores_are_those_worked_out_by_hand(key):
    net = neural_nets.kinds()[key]
    X = neural_nets.rows_of(net, rows=6)[:6].astype(int)
    X[0, ::2] = -1  # gaps
    found = net_scores(net, X)
    assert found.tolist() == [by_hand(net, row) for row in X]
    np.testing.assert_allclose(class_scores(net, X), found * net.scale)
    assert predict_codes(net, X).tolist() == found.argmax(axis=1).tolist()
    assert max(net.reach) < 2**31
    assert np.abs(found).max() <= net.reach[-1]


def test_rows_of_another_shape_are_refused():
    net = next(iter(neural_nets.kinds().values()))
    with pytest.raises(TinybayesError, match="integer codes with"):
        net_scores(net, np.zeros((2, len(net.variables) + 1), int))
    with pytest.raises(TinybayesError, match="codes from -1"):
        net_scores(net, np.full((2, len(net.variables)), 99))


@pytest.mark.parametrize("key", sorted(neural_nets.kinds()))
def test_prices_count_what_is_there(key):
    net = neural_nets.kinds()[key]
    ours, paper = model_cost(net), paper_cost(net, batch_norm=True)
    weights = sum(layer.codes.size * layer.bits for layer in net.layers)
    hidden = sum(layer.units for layer in net.layers[:-1])
    assert paper.bits == weights + 32 * net.target.cardinality + 64 * hidden
    assert weights <= ours.bits <= weights + 32 * net.target.cardinality + 48 * hidden + 32 * len(net.inputs)
    first = net.layers[0]
    if len(net.layers) == 1 and (net.inputs.state < 0).all():
        assert paper.multiplications == first.codes.size
        assert paper.additions == first.units
