"""Widths of networks from budgets, against networks that are built and priced."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural_nets import neural_net
from tinybayes import TinybayesError
from tinybayes.cost.neural_net import paper_cost
from tinybayes.learn.training.net_sizes import hidden_within, image_of, smallest_bits


def nearest(price, budget, widths):
    return min(widths, key=lambda width: (abs(price(width) - budget), width))


sizes = st.fixed_dictionaries({"classes": st.integers(2, 8), "batch_norm": st.booleans()})


@given(sizes, st.integers(1, 8), st.integers(2, 4), st.floats(1, 12))
def test_units_from_bits_and_operations_come_nearest_the_budget(size, bits, layers, about):
    """Real networks are built and priced; `about` so many units are asked for."""

    def price(units, of):
        hidden = (units,) * (layers - 1)
        net = neural_net(hidden, bits=bits, classes=size["classes"])
        return getattr(paper_cost(net, batch_norm=size["batch_norm"]), of)

    for of in ("bits", "operations"):

        def solve(budget, of=of):
            found = hidden_within(budget, of, layers=layers, weight_bits=bits, inputs=7, image=None, **size)
            assert found == found[:1] * (layers - 1)
            return found[0]

        low, high = price(int(about), of), price(int(about) + 1, of)
        budget = round(low + (high - low) * (about % 1))
        found, best = solve(budget), nearest(lambda units, of=of: price(units, of), budget, range(1, 15))
        # Prices of more layers bend upwards, so that the middle between two widths lies below that of their prices.
        as_near = abs(price(found, of) - budget) == abs(price(best, of) - budget)
        assert as_near or (layers > 2 and found == best + 1)
        assert solve(price(5, of)) == 5


@given(sizes, st.integers(1, 8), st.integers(1, 9))
def test_channels_from_bits_and_operations_meet_exact_budgets(size, bits, channels):
    image = (8, 6)
    for convolutions in (1, 2):
        hidden = (channels, 2 * channels)[:convolutions]
        layers = tuple((c,) for c in hidden)
        price = paper_cost(
            neural_net(layers, bits=bits, classes=size["classes"], image=image), batch_norm=size["batch_norm"]
        )
        common = {"image": image, "inputs": 48, "layers": convolutions, "weight_bits": bits, **size}
        assert hidden_within(price.bits, "bits", **common) == hidden
        assert hidden_within(price.operations, "operations", **common) == hidden


def test_budgets_too_small_give_the_smallest_network():
    size = {"inputs": 64, "classes": 10, "weight_bits": 8, "image": None, "batch_norm": True}
    assert [hidden_within(10, "bits", layers=layers, **size) for layers in (1, 2, 4)] == [(), (1,), (1, 1, 1)]
    assert hidden_within(10, "bits", layers=2, **size | {"image": (8, 8)}) == (1, 1)
    smallest = smallest_bits(inputs=7, classes=3, weight_bits=4)
    assert smallest == paper_cost(neural_net((1,), bits=4, classes=3), batch_norm=False).bits


def test_the_root_is_that_of_the_polynomial_of_the_paper():
    # b (L-2) x^2 + (b (n + C) + (L-1) beta) x + 32 C - T = 0
    budget, b, layers, n, classes = 60_000, 3, 4, 40, 10
    roots = np.roots([b * (layers - 2), b * (n + classes) + (layers - 1) * 64, 32 * classes - budget])
    size = {"inputs": n, "classes": classes, "weight_bits": b, "image": None, "batch_norm": True}
    assert hidden_within(budget, "bits", layers=layers, **size) == (round(max(roots.real)),) * 3


@pytest.mark.parametrize("shape", [(rows, columns) for rows in range(1, 10) for columns in (1, 2, 3, 4, 7, 8)])
def test_images_are_accepted_exactly_where_pooling_leaves_pixels(shape):
    rows, columns = shape
    for convolutions in (1, 2, 3):
        rows, columns = rows // 2, columns // 2
        if rows * columns:
            assert image_of(shape, math.prod(shape), convolutions) == shape
        else:
            with pytest.raises(TinybayesError, match=f"image_shape: expected at least {2**convolutions}x"):
                image_of(shape, math.prod(shape), convolutions)


def test_images_have_as_many_pixels_as_there_are_features():
    assert image_of(None, 16, 2) == (4, 4)
    with pytest.raises(TinybayesError, match="a square number of pixels, got 15; give image_shape"):
        image_of(None, 15, 1)
    with pytest.raises(TinybayesError, match=r"an image of 15 pixels, got \(4, 4\)"):
        image_of((4, 4), 15, 1)
