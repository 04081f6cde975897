"""Raw values to codes in C, C++, MicroPython and ONNX, against the encodings in Python."""

import numpy as np
import pytest

from encoders import codes_in_c, codes_in_micropython, codes_in_onnx
from raw_values import expected_codes
from tinybayes.deploy.programs.encoding import float_keys, make_features
from tinybayes.errors import TinybayesError
from tinybayes.model import Cuts, Grid, Integers, Variable
from tinybayes.model.encoding import LOWEST, uniform_grid

TARGETS = {"c": codes_in_c, "micropython": codes_in_micropython, "onnx": codes_in_onnx}
SPECIAL = [0.0, -0.0, np.nan, 1e-45, -1e-45, 1e38, -1e38, 3.4e38, 0.1, 255, 256, 2.5, -2.5, 1e-39]


def variables_of(rng, number):
    """Features of every kind, in any order."""
    kinds = [
        lambda: Cuts(np.unique(rng.normal(0, 10.0 ** rng.integers(-3, 6), rng.integers(0, 40)).astype(np.float32))),
        lambda: Cuts(np.unique(rng.integers(-8, 8, 5) * 2.0 ** rng.integers(-4, 3))),
        lambda: uniform_grid(*np.sort(rng.normal(0, 10.0 ** rng.integers(-9, 9), 2)), int(rng.integers(2, 300))),
        lambda: Integers(int(rng.integers(-5, 5)), int(rng.integers(5, 300))),
        lambda: None,
    ]
    chosen = [kinds[k]() for k in (rng.integers(0, len(kinds), 8) if number else [number] * 3)]
    return tuple(
        Variable(f"v{i}", ("a", "b", "c")) if kind is None else Variable.from_encoding(f"v{i}", kind)
        for i, kind in enumerate(chosen)
    )


def rows_around(variables, rng, rows=300):
    """Values on the cut points, next to them, special ones, and random ones."""
    values = np.empty((rows, len(variables)), dtype=np.float32)
    for j, variable in enumerate(variables):
        near = [np.float32(v) for v in SPECIAL]
        if variable.has_intervals:
            cuts = variable.encoding.cuts.astype(np.float32)
            near += [*cuts, *np.nextafter(cuts, np.float32(-np.inf)), *np.nextafter(cuts, np.float32(np.inf))]
        near += [*rng.integers(-3, variable.cardinality + 3, 30), *rng.normal(0, 100, 30)]
        values[:, j] = rng.choice(np.array(near, dtype=np.float32), rows)
    return values


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(6))
def test_floats_get_the_codes_of_python(tmp_path, target, seed):
    rng = np.random.default_rng(seed)
    variables = variables_of(rng, seed)
    values = rows_around(variables, rng)
    features = make_features(variables, "float", gaps=True)
    codes = TARGETS[target](tmp_path, features, values)
    np.testing.assert_array_equal(codes, expected_codes(variables, values.astype(np.float64)))


@pytest.mark.parametrize("target", TARGETS)
def test_integers_get_the_codes_of_python(tmp_path, target):
    rng = np.random.default_rng(1)
    encodings = [
        Cuts([-5, 3, 200], integer=True),
        Cuts([2**24 + 1, 2**30 + 1], integer=True),
        Grid(-16, 1, 40, integer=True),
        Grid(0, 1024, 9, integer=True),
        Integers(-3, 6),
        Cuts([0.5, 7.25]),
    ]
    variables = tuple(Variable.from_encoding(f"v{i}", encoding) for i, encoding in enumerate(encodings))
    near = [-6, -5, -4, 2, 3, 199, 200, 2**24, 2**24 + 1, 2**30, 2**30 + 1, 7, 8, 0, 1, 2**31 - 1, -(2**31) + 1]
    values = rng.choice(np.array([*near, *range(-20, 40), LOWEST]), (400, len(variables)))
    features = make_features(variables, "int", gaps=True)
    codes = TARGETS[target](tmp_path, features, values)
    np.testing.assert_array_equal(codes, expected_codes(variables, np.where(values == LOWEST, np.nan, values)))


@pytest.mark.parametrize("target", TARGETS)
def test_without_gaps_every_code_is_a_state(tmp_path, target):
    rng = np.random.default_rng(2)
    variables = variables_of(rng, 1)
    values = rows_around(variables, rng)
    values[::7] = np.inf
    values[::11] = -np.inf
    codes = TARGETS[target](tmp_path, make_features(variables, "float"), values)
    assert (codes >= 0).all()
    assert (codes < [v.cardinality for v in variables]).all()


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("raw", ["float", "int"])
@pytest.mark.parametrize("encoding", [Cuts([]), Grid(-8, 4, 1)], ids=["cuts", "grid"])
def test_one_interval(tmp_path, encoding, raw, gaps):
    """A missing value once got the code 0, and there were functions and variables without a use."""
    variables = (Variable.from_encoding("a", encoding), Variable.from_encoding("b", encoding))
    values = np.array([[0, np.nan], [np.nan, 7]] if raw == "float" else [[0, LOWEST], [LOWEST, 7]])
    codes = codes_in_c(tmp_path, make_features(variables, raw, gaps=gaps), values)
    assert codes.tolist() == ([[0, -1], [-1, 0]] if gaps else [[0, 0], [0, 0]])


def test_known_values_are_never_the_missing_one():
    """The lowest interval of a grid once was tried with the integer that stands for a missing value."""
    grid = Grid(-(2**31), 2**30, 4, integer=True)
    features = make_features((Variable.from_encoding("a", grid),), "int", gaps=True)
    codes = np.array([[-1], [0], [1], [2], [3]])
    values = features.values(codes)
    assert values[0] == LOWEST
    assert (values[1:] > LOWEST).all()
    np.testing.assert_array_equal(grid.codes(values[1:, 0]), codes[1:, 0])


def test_keys_are_in_the_order_of_numbers():
    numbers = np.array([-np.inf, -1e30, -1.5, -1e-45, 0.0, 1e-45, 1.5, 1e30, np.inf], dtype=np.float32)
    keys = float_keys(numbers)
    assert (np.diff(keys) > 0).all()
    assert float_keys(np.array([-0.0])) == float_keys(np.array([0.0])) == 0


def test_short_cut_points_take_two_bytes_and_equal_lists_stand_once():
    same = Cuts([0.5, 2.5])
    variables = (Variable.from_encoding("a", same), Variable.from_encoding("b", same))
    keys, lists = make_features(variables, "float").lists
    assert keys.dtype == np.int16 or keys.dtype == np.uint16
    assert (len(keys), lists) == (2, {0: (0, 2), 1: (0, 2)})
    long, _ = make_features((Variable.from_encoding("a", Cuts([0.1])),), "float").lists
    assert long.dtype == np.int32


def test_raw_values_of_the_wrong_type_are_refused():
    wide = (Variable.from_encoding("wide", Cuts([2**30 + 1], integer=True)),)
    assert make_features(wide, None).raw == "int"
    with pytest.raises(TinybayesError, match="--raw int"):
        make_features(wide, "float")
    fine = (Variable.from_encoding("fine", Grid(0, 0.5, 3)),)
    assert make_features(fine, None).raw == "float"
    with pytest.raises(TinybayesError, match="--raw float"):
        make_features(fine, "int")
    with pytest.raises(TinybayesError, match="one of float, int, none"):
        make_features(fine, "double")


@pytest.mark.parametrize(
    ("encoding", "good", "bad"),
    [
        (Integers(1 - 2**24, 3 - 2**24), "float", None),
        (Integers(2**24 - 2, 2**24 - 1), "float", None),
        (Integers(2**24 - 1, 2**24), "int", "float"),  # 2**24 + 1 becomes the float 2**24
        (Integers(-(2**24), 1 - 2**24), "int", "float"),
        (Integers(2**31 - 3, 2**31 - 1), "int", "float"),  # 3e9 as a float once was the state 2**31 - 1
        (Integers(-(2**31), 1 - 2**31), "none", "int"),  # the lowest one is a missing value
        (Cuts([1 - 2**31], integer=True), "none", "int"),  # no other integer is below the cut point
        (Cuts([2 - 2**31], integer=True), "int", None),
        (Cuts([2.0**24]), "int", None),
        (Cuts([2.0**25]), "float", "int"),  # 2**25 - 1 becomes the float 2**25
        (Grid(2.0**25, 4, 3), "float", "int"),
    ],
)
def test_integers_and_floats_that_differ_beyond_single_precision(encoding, good, bad):
    variables = (Variable.from_encoding("a", encoding),)
    assert make_features(variables, good).raw == good
    if bad:
        with pytest.raises(TinybayesError, match=r"variable 'a': expected (integers|cut points|values)"):
            make_features(variables, bad)
