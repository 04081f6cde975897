import numpy as np
import pytest

from experiments.images import with_moved
from tinybayes.errors import TinybayesError
from tinybayes.model import Cuts, Dataset, Variable


def images(edges, rows=6, side=(4, 3), seed=0):
    rng = np.random.default_rng(seed)
    variables = tuple(Variable.from_encoding(f"p{i}", Cuts(edges(i))) for i in range(side[0] * side[1]))
    X = np.column_stack([rng.integers(0, v.cardinality, rows) for v in variables]).astype(np.int8)
    return Dataset(variables, Variable("class", (0, 1)), X, rng.integers(0, 2, rows).astype(np.int32))


def test_images_are_moved_each_way():
    data = images(lambda i: [1.0, 2.0, 3.0])
    found = with_moved(data, (4, 3))
    assert len(found) == 5 * len(data)
    assert found.X.dtype == data.X.dtype
    np.testing.assert_array_equal(found.y, np.tile(data.y, 5))
    own, right, left, down, up = found.X.reshape(5, -1, 4, 3)
    np.testing.assert_array_equal(own.reshape(-1, 12), data.X)
    np.testing.assert_array_equal(right[:, :, 1:], own[:, :, :-1])
    np.testing.assert_array_equal(left[:, :, :-1], own[:, :, 1:])
    np.testing.assert_array_equal(down[:, 1:], own[:, :-1])
    np.testing.assert_array_equal(up[:, :-1], own[:, 1:])
    for outside in (right[:, :, 0], left[:, :, -1], down[:, 0], up[:, -1]):
        assert not outside.any()


def test_codes_follow_the_cut_points_of_their_new_place():
    # Pixels in the second column have finer levels: state 1 of the others, from 10 to 20, is there 15, in state 3.
    data = images(lambda i: [5.0, 10.0, 15.0, 18.0] if i % 3 == 1 else [10.0, 20.0])
    data = Dataset(
        data.variables, data.target, np.where(np.arange(12) % 3 == 1, 4, 1) * np.ones((1, 1), int), data.y[:1]
    )
    right, left = with_moved(data, (4, 3)).X.reshape(5, 4, 3)[1:3]
    assert (right[:, 1] == 3).all()
    assert (left[:, 1] == 3).all()
    assert (right[:, 2] == 1).all()  # 19.5, below 20


def test_missing_pixels_stay_missing_and_constant_ones_dark():
    data = images(lambda i: [] if i == 0 else [1.0])
    data.X[0, 4] = -1
    found = with_moved(data, (4, 3)).X.reshape(5, -1, 4, 3)
    assert found[1, 0, 1, 2] == -1
    assert (found[:, :, 0, 0] == 0).all()


def test_only_images_are_moved():
    with pytest.raises(TinybayesError, match="5 x 5 pixels"):
        with_moved(images(lambda i: [1.0]), (5, 5))
