"""The Fayyad-Irani discretiser against a slow oracle, its own invariances, scikit-learn's checks, real data."""

from collections import Counter
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tinybayes.data.mdlp import mdlp_all
from tinybayes.data.mdlp_discretizer import MDLPDiscretizer
from tinybayes.errors import TinybayesError

EQUAL = Decimal("1e-30")  # far above the rounding of 50 digits, far below any true difference


def mdlp_cut_points(column, *arguments, **options):
    return mdlp_all([column], *arguments, **options)[0]


# The oracle: recursion over a list of groups, every entropy from its definition, in 50 digits.


@cache
def log2(number: Decimal) -> Decimal:
    return number.ln() / Decimal(2).ln()


def entropy(counts: Counter) -> Decimal:
    total = sum(counts.values())
    return -sum(n / total * log2(n / total) for n in counts.values())


def merge(groups: list[tuple[float, Counter]]) -> Counter:
    return sum((counts for _, counts in groups), Counter())


def mdlp_accepts(whole: Counter, left: Counter, right: Counter, conditional: Decimal) -> bool:
    n = sum(whole.values())
    loss = len(whole) * entropy(whole) - len(left) * entropy(left) - len(right) * entropy(right)
    delta = log2(Decimal(3 ** len(whole) - 2)) - loss
    return entropy(whole) - conditional > (log2(max(n - 1, Decimal(1))) + delta) / n


def oracle_cuts(groups: list[tuple[float, Counter]], *, boundary_only: bool, fallback: bool) -> list[float]:
    whole = merge(groups)
    n = sum(whole.values())
    if n <= 1:
        return []
    best = None
    for i in range(1, len(groups)):
        if boundary_only and len(groups[i][1]) == 1 and groups[i][1].keys() == groups[i - 1][1].keys():
            continue  # pure on both sides, and of one class
        left, right = merge(groups[:i]), merge(groups[i:])
        conditional = sum(sum(side.values()) / n * entropy(side) for side in (left, right))
        accepted = mdlp_accepts(whole, left, right, conditional)
        if (accepted or not fallback) and (best is None or conditional < best[0] - EQUAL):
            best = (conditional, i, accepted)
    if best is None or not best[2]:
        return []
    i = best[1]
    middle = (groups[i - 1][0] + groups[i][0]) / 2
    options = {"boundary_only": boundary_only, "fallback": fallback}
    return [*oracle_cuts(groups[:i], **options), middle, *oracle_cuts(groups[i:], **options)]


def oracle(x, y, weight=None, *, boundary_only=False, fallback=False) -> list[float]:
    """Every midpoint is tried unless `boundary_only`."""
    table: dict[float, Counter] = {}
    for value, code, w in zip(x, y, np.ones(len(x)) if weight is None else weight, strict=True):
        if w > 0 and not np.isnan(value):
            table.setdefault(float(value), Counter())[int(code)] += Decimal(float(w))
    with localcontext(prec=50):
        return oracle_cuts(sorted(table.items()), boundary_only=boundary_only, fallback=fallback)


WHOLE = st.integers(0, 9)


@st.composite
def columns(draw, weights=WHOLE):
    """Runs of rows: each at the value of the run before or the next one, so that classes hang on values."""
    runs = draw(st.lists(st.tuples(st.sampled_from([0, 1, 1, 2]), st.integers(0, 3), weights), max_size=12))
    steps, y, weight = (np.array(part) for part in zip(*runs, strict=True)) if runs else (np.empty(0),) * 3
    kind = draw(st.sampled_from(["integer", "negative", "fraction"]))
    x = np.cumsum(steps).astype(np.int64)
    x = {"integer": x, "negative": x.astype(np.int8) - np.int8(9), "fraction": x / 8.0 + 0.1}[kind]
    order = np.array(draw(st.permutations(range(len(x)))), dtype=int)
    return x[order], y[order].astype(np.int64), weight[order]


def test_hand_worked_example():
    # N = 4, one bit of entropy, none left: 4 bits gained, log2(3) + log2(7) - 2 = 2.39 to pay.
    x = np.array([1, 2, 3, 4])
    assert mdlp_cut_points(x, np.array([0, 0, 1, 1]), 2).tolist() == [2.5]
    # 4 * (1 - 0.75 * 0.918) = 1.25 bits gained, 1.58 + 2.81 - 2 + 2 * 0.918 = 4.2 to pay.
    assert mdlp_cut_points(x, np.array([0, 1, 0, 1]), 2).tolist() == []


@given(columns(), st.booleans())
def test_repeated_rows_match_the_oracle(column, fallback):
    x, y, weight = column
    x, y = np.repeat(x, weight.astype(int)), np.repeat(y, weight.astype(int))
    expected = oracle(x, y, boundary_only=fallback, fallback=fallback)
    np.testing.assert_allclose(mdlp_cut_points(x, y, 4, fallback=fallback), expected, rtol=1e-15)


@given(columns(st.sampled_from([0.0, 0.25, 0.5, 1.5, 3.0, 7.75])), st.booleans())
def test_fractional_weights_match_the_oracle(column, fallback):
    x, y, weight = column
    expected = oracle(x, y, weight, boundary_only=fallback, fallback=fallback)
    cuts = mdlp_cut_points(x, y, 4, weight.astype(float), fallback=fallback)
    np.testing.assert_allclose(cuts, expected, rtol=1e-15)


@pytest.mark.exhaustive
def test_larger_columns_match_the_oracle():
    """Seeded, so that it is known to reach deep trees; the small examples above seldom have many cuts."""
    sizes = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 5, 300)
        x = np.round(rng.normal(size=300) + 1.5 * y, seed % 3)
        weight = rng.integers(0, 6, 300).astype(float)
        for fallback in (False, True):
            cuts = mdlp_cut_points(x, y, 5, weight, fallback=fallback)
            np.testing.assert_allclose(cuts, oracle(x, y, weight, boundary_only=fallback, fallback=fallback))
            sizes.append(len(cuts))
    assert max(sizes) >= 6


def test_fallback_takes_the_best_cut_that_passes():
    # Small samples are tried until the cut of least entropy fails where another one passes.
    for seed in range(400):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 40)
        x = rng.integers(0, 6, 40) + y
        strict, loose = mdlp_cut_points(x, y, 3), mdlp_cut_points(x, y, 3, fallback=True)
        if len(strict) == 0 and len(loose):
            assert oracle(x, y) == []
            assert oracle(x, y, boundary_only=True, fallback=True) == loose.tolist()
            return
    pytest.fail("no example found")


@given(columns())
def test_boundary_points_are_enough(column):
    """Theorem 1 of Fayyad and Irani: trying every midpoint finds the same cuts."""
    x, y, weight = column
    assert oracle(x, y, weight, boundary_only=True) == oracle(x, y, weight, boundary_only=False)


@given(columns())
def test_weights_are_repetitions(column):
    x, y, weight = column
    repeated = mdlp_cut_points(np.repeat(x, weight.astype(int)), np.repeat(y, weight.astype(int)), 4).tolist()
    assert mdlp_cut_points(x, y, 4, weight).tolist() == repeated
    x, y, weight = x[weight > 0], y[weight > 0], weight[weight > 0]
    assert mdlp_cut_points(x, y, 4, weight).tolist() == repeated


@given(columns(), st.sampled_from([np.cbrt, np.sinh, lambda v: 1e-200 * v, lambda v: 3 * v - 1e6]))
def test_bins_survive_monotone_transforms(column, transform):
    x, y, _ = column
    x = x.astype(float)
    codes = [np.searchsorted(mdlp_cut_points(v, y, 4), v, side="right").tolist() for v in (x, transform(x))]
    assert codes[0] == codes[1]


@given(columns())
def test_counting_equals_sorting(column):
    """Integers in a small range are counted, all other columns are sorted."""
    x, y, weight = column
    counted = mdlp_cut_points(x.astype(float).round(), y, 4, weight)
    sorted_ = mdlp_cut_points(x.astype(float).round() * 2.0**40, y, 4, weight)
    assert (counted * 2.0**40).tolist() == sorted_.tolist()


@given(columns())
def test_order_and_unknown_rows_do_not_matter(column):
    x, y, _ = column
    x = x.astype(float)
    cuts = mdlp_cut_points(x, y, 4).tolist()
    assert mdlp_cut_points(x[::-1], y[::-1], 4).tolist() == cuts
    missing = mdlp_cut_points(np.append(x, [np.nan, -9.0]), np.append(y, [0, -1]), 4)
    assert missing.tolist() == cuts


def test_of_equal_cuts_the_first_wins():
    # Classes by value; the same read backwards, so cuts come in pairs of equal entropy. Taking the upper one
    # of the first pair would end with the mirror image, 1.5 and 4.5.
    table = np.array([[0, 7], [1, 2], [9, 0], [9, 0], [1, 2], [0, 7]])
    x, y = np.nonzero(table)
    assert oracle(x, y, table[x, y]) == [0.5, 3.5]
    assert mdlp_cut_points(x, y, 2, table[x, y]).tolist() == [0.5, 3.5]
    # The sums on the way differ with the order of the rows and with the scale, the choice must not.
    for scale in (3, 7, 1001):
        rows = np.random.default_rng(scale).permutation(np.repeat(np.arange(len(x)), scale * table[x, y]))
        assert mdlp_cut_points(x[rows] / 3, y[rows], 2)[0] == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([5.0], [1]),
        ([2.0, 2.0, 2.0, 2.0], [0, 1, 0, 1]),
        ([np.nan, np.nan], [0, 1]),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1]),
        ([1.0, 2.0, 3.0, 4.0], [-1, -1, 1, 1]),
    ],
    ids=["no row", "one row", "constant", "all missing", "one class", "class unknown"],
)
def test_columns_without_a_cut(x, y):
    assert mdlp_cut_points(np.array(x, dtype=float), np.array(y, dtype=int), 2).tolist() == []


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (np.nextafter(0.0, 1.0), 2 * np.nextafter(0.0, 1.0)),
        (0.0, np.nextafter(0.0, 1.0)),
        (-np.finfo(float).max, np.finfo(float).max),
        (np.nextafter(np.finfo(float).max, 0.0), np.finfo(float).max),
        (1e308, 1.5e308),
        (-1e300, 1e-300),
        (2.0**53, 2.0**53 + 2),
    ],
)
def test_a_cut_lies_above_the_lower_value_and_is_finite(low, high):
    cuts = mdlp_cut_points(np.array([low] * 9 + [high] * 9), np.repeat([0, 1], 9), 2)
    assert len(cuts) == 1
    assert low < cuts[0] <= high
    assert np.isfinite(cuts[0])
    nothing_between = np.nextafter(low, high) == high
    assert cuts[0] == (high if nothing_between else low / 2 + high / 2)


def test_many_classes():
    y = np.repeat(np.arange(700), 30)
    assert len(mdlp_cut_points(y + 0.5, y, 700)) == 699
    mixed = np.random.default_rng(0).permutation(y)
    assert len(mdlp_cut_points(np.arange(y.size) / 7, mixed, 700)) == 0


def test_many_cuts_need_no_recursion():
    y = np.arange(40_000) // 25 % 2
    cuts = mdlp_cut_points(np.arange(40_000.0), y, 2)
    np.testing.assert_array_equal(cuts, np.arange(25, 40_000, 25) - 0.5)


def test_tiny_and_huge_weights_are_harmless():
    x, y = np.arange(6.0), np.array([0, 0, 0, 1, 1, 1])
    assert mdlp_cut_points(x, y, 2, np.full(6, 1 / 6)).tolist() == []  # all rows together weigh one row
    assert mdlp_cut_points(x, y, 2, np.full(6, 1e200)).tolist() == [2.5]
    # The last row is lost in the rounding of the sum: no weight is left to its side of the last cut.
    assert mdlp_cut_points(x, y[::-1] ^ (x == 5), 2, np.array([1, 1e30, 1e30, 1e30, 1, 1e-30])).tolist() == [2.5]


def test_all_columns_at_once_and_threads(monkeypatch):
    X, y = load_iris(return_X_y=True)
    one_by_one = [mdlp_cut_points(column, y, 3).tolist() for column in X.T]
    for threads in ("1", "3"):
        monkeypatch.setenv("TINYBAYES_THREADS", threads)
        assert [cuts.tolist() for cuts in mdlp_all(X.T, y, 3)] == one_by_one
    assert all(oracle(column, y) == pytest.approx(cuts) for column, cuts in zip(X.T, one_by_one, strict=True))


@pytest.mark.parametrize(
    ("x", "y", "weight", "message"),
    [
        ([1.0, np.inf], [0, 1], None, "column 0: expected finite numbers"),
        (["a", "b"], [0, 1], None, "vector of numbers"),
        ([1.0, 2.0, 3.0], [0, 1], None, "one number for each of 2 rows, got 3"),
        ([1.0, 2.0], [0, 2], None, "class codes below 2, got 2"),
        ([1.0, 2.0], [0.0, 1.0], None, "vector of integers"),
        ([1.0, 2.0], [0, 1], [1.0], "weight: expected one entry for each of 2 rows"),
        ([1.0, 2.0], [0, 1], [1.0, -1.0], "not negative"),
        ([1.0, 2.0], [0, 1], [1.0, np.nan], "finite weights"),
    ],
)
def test_bad_input_is_named(x, y, weight, message):
    with pytest.raises(TinybayesError, match=message):
        mdlp_cut_points(np.array(x), np.array(y), 2, None if weight is None else np.array(weight))


# The scikit-learn transformer.


@parametrize_with_checks([MDLPDiscretizer(), MDLPDiscretizer(fallback=True, dtype=np.int32)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_transform_follows_the_rule_for_edges():
    X, y = load_iris(return_X_y=True)
    model = MDLPDiscretizer().fit(X, y)
    codes = model.transform(X)
    assert codes.dtype == np.float64
    assert model.n_bins_.tolist() == [len(cuts) + 1 for cuts in model.cut_points_] == [3, 3, 3, 3]
    for j, cuts in enumerate(model.cut_points_):
        assert codes[:, j].tolist() == [int((cuts <= v).sum()) for v in X[:, j]]
        on_the_cuts = np.repeat(cuts[:, None], 4, axis=1)
        assert model.transform(on_the_cuts)[:, j].tolist() == [1, 2]


def test_missing_values_stay_missing():
    X, y = load_iris(return_X_y=True)
    holes = X.copy()
    holes[::7, 1] = np.nan
    model = MDLPDiscretizer().fit(holes, y)
    np.testing.assert_array_equal(np.isnan(model.transform(holes)), np.isnan(holes))
    known = ~np.isnan(holes[:, 1])
    assert model.cut_points_[1].tolist() == mdlp_cut_points(X[known, 1], y[known], 3).tolist()
    whole = clone(model).set_params(dtype=np.int8).fit(holes, y).transform(holes)
    assert whole.dtype == np.int8
    np.testing.assert_array_equal(whole, np.nan_to_num(model.transform(holes), nan=-1))


def test_names_pandas_pipeline_and_column_transformer():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    labels = y.map({0: "setosa", 1: "versicolor", 2: "virginica"})
    table = MDLPDiscretizer(dtype=np.int64).set_output(transform="pandas").fit_transform(frame, labels)
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == frame.columns.tolist()
    assert (table.dtypes == np.int64).all()
    pipeline = make_pipeline(MDLPDiscretizer(), CategoricalNB(min_categories=3))
    assert pipeline.fit(frame, labels).score(frame, labels) > 0.9
    some = ColumnTransformer([("cut", MDLPDiscretizer(), ["petal width (cm)"])]).fit(frame, labels)
    assert some.get_feature_names_out().tolist() == ["cut__petal width (cm)"]
    np.testing.assert_array_equal(some.transform(frame)[:, 0], table["petal width (cm)"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "requires y"),
        ({"X": [[1.0], [np.inf]]}, "infinity"),
        ({"y": [0.5, 1.7]}, "Unknown label type"),
        ({"sample_weight": [1.0, -1.0]}, "[Nn]egative"),
    ],
)
def test_fit_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        MDLPDiscretizer().fit(**{"X": [[1.0], [2.0]], "y": [0, 1], **change})


def test_fit_refuses_a_type_that_cannot_hold_the_codes():
    y = np.repeat(np.arange(200), 10)
    with pytest.raises(TinybayesError, match="expected a floating-point or signed integer type, got uint8"):
        MDLPDiscretizer(dtype=np.uint8).fit(y[:, None], y)
    with pytest.raises(TinybayesError, match="codes up to 199, got int8"):
        MDLPDiscretizer(dtype=np.int8).fit(y[:, None], y)
    assert MDLPDiscretizer(dtype=np.int16).fit_transform(y[:, None], y).max() == 199


# Real data, against the reference discretisation (codes there start at 1).


def reproduced(X, y, rows, reference, **options) -> list[int]:
    """Return the features whose codes on the reference rows are those of the reference."""
    codes = MDLPDiscretizer(**options).fit(X, y).transform(rows)
    return np.flatnonzero((codes + 1 == reference).all(axis=0)).tolist()


def load(data_dir, name):
    folder = data_dir / "classification"
    raw, split = np.load(folder / "raw" / f"{name}.npz"), np.load(folder / "raw" / "split_indices.npz")
    return raw["x"], raw["y"], np.load(folder / f"{name}.npz"), split


def test_letter_like_the_reference(data_dir):
    x, y, ready, split = load(data_dir, "letter")
    X, y, reference = x[split["letter_tr"]], y[split["letter_tr"]], ready["x_tr_fold1"]
    np.testing.assert_array_equal(y, ready["t_tr_fold1"])
    assert reference.max(axis=0).tolist() == [5, 1, 5, 3, 4, 13, 14, 13, 13, 14, 14, 13, 9, 9, 8, 8]
    assert set(range(16)) - set(reproduced(X, y, X, reference)) == {2, 7, 15}
    assert set(range(16)) - set(reproduced(X, y, X, reference, fallback=True)) == {2, 7}


@pytest.mark.parametrize(("fold", "count"), [(1, 36), (2, 35), (3, 35), (4, 35), (5, 35)])
def test_satimage_like_the_reference(data_dir, fold, count):
    x, y, ready, split = load(data_dir, "satimage")
    rows, reference = split[f"satimage_tr{fold}"], ready[f"x_tr_fold{fold}"]
    assert len(reproduced(x[rows], y[rows], x[rows], reference)) == count
    assert len(reproduced(x[rows], y[rows], x[rows], reference, fallback=True)) == 36


def test_usps_like_the_reference(data_dir):
    """The reference cut usps on the first 800 images of each class; its images are stored column by column."""
    x, y, ready, split = load(data_dir, "usps")
    X = x.reshape(-1, 16, 16).transpose(0, 2, 1).reshape(-1, 256)
    seen = np.concatenate([np.flatnonzero(y == c)[:800] for c in range(10)])
    for part in ("tr", "te"):
        rows = split[f"usps_{part}"]
        assert len(reproduced(X[seen], y[seen], X[rows], ready[f"x_{part}_fold1"])) == 256
