"""Splits by groups and by time: what must never be in two parts, and what must never come before."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinybayes.errors import TinybayesError, TinybayesWarning
from tinybayes.search.prepare import make_views
from tinybayes.search.roles import Roles
from tinybayes.search.splits import Order, order_of


def table(rows=200, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, rows)
    frame = pd.DataFrame({"a": y + random.normal(size=rows), "b": random.choice(["u", "v"], rows), "y": y})
    return frame.assign(
        who=random.integers(0, 25, rows),
        when=pd.Timestamp("2021-03-01") + pd.to_timedelta(random.permutation(rows) // 3, unit="D"),
        w=random.uniform(0, 2, rows),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(20, 120), st.sampled_from([0.2, 0.25, 1 / 3]))
def test_no_group_is_in_two_parts(seed, count, rows, fraction):
    random = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(count), random.integers(0, count, rows)])
    y, order = random.integers(0, 3, len(groups)), Order(groups=groups)
    marked = order.share(y, fraction, random)
    assert 0 < marked.sum() < len(y)
    assert not set(groups[marked]) & set(groups[~marked])
    parts = order.parts(y, 4, random)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(y)))
    owners = [set(groups[part]) for part in parts]
    assert sum(map(len, owners)) == count
    assert all(len(part) for part in parts)


def test_groups_are_stratified_where_they_can_be():
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(100), 10)
    y = (random.random(1000) < 0.2).astype(int)
    marked = Order(groups=groups).share(y, 0.2, random)
    assert marked.mean() == pytest.approx(0.2, abs=0.03)
    assert y[marked].mean() == pytest.approx(y.mean(), abs=0.03)


def test_a_class_of_one_group_stays_among_the_training_rows():
    groups = np.repeat(np.arange(20), 5)
    y = np.arange(100) % 2
    y[groups == 7] = 2
    for seed in range(10):
        marked = Order(groups=groups).share(y, 0.2, np.random.default_rng(seed))
        assert 2 not in y[marked]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=10, max_size=100), st.floats(0.1, 0.5))
def test_no_training_row_is_later_than_a_validation_row(times, fraction):
    times, random = np.array(times), np.random.default_rng(0)
    order, y = Order(times=np.unique(times, return_inverse=True)[1]), np.zeros(len(times), dtype=int)
    if len(np.unique(times)) < 2:
        with pytest.raises(TinybayesError, match="too few times"):
            order.share(y, fraction, random)
        return
    marked = order.share(y, fraction, random)
    assert times[~marked].max() < times[marked].min()
    parts = order.parts(y, 3, random)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(times)))
    for before, after in pairwise(parts):
        assert times[before].max() <= times[after].min()


def test_parts_of_a_search_keep_groups_together_and_the_column_is_no_feature():
    frame = table().drop(columns="when")
    views = make_views(frame, "y", roles=Roles(groups="who", weight="w"), seed=2)
    seen = views.by_name["mdlp"].seen
    assert [v.name for v in seen.variables] == ["a", "b"]
    groups, split = views.order.groups, views.splits
    assert len(groups) == len(seen)
    owners = [set(groups[part]) for part in split]
    assert sum(map(len, owners)) == len(set(groups))
    assert len(set(groups)) < frame["who"].nunique()  # the test rows have the others
    assert len(seen) + len(views.by_name["mdlp"].test) == len(frame)


def test_the_latest_rows_are_the_test_rows():
    frame = table()
    views = make_views(frame, "y", roles=Roles(time_order="when"))
    seen, test = views.by_name["fine"].seen, views.by_name["fine"].test
    assert [v.name for v in seen.variables] == ["a", "b", "who", "w"]
    place = np.unique(frame["when"], return_inverse=True)[1]
    latest = np.sort(place)[-len(test) :]
    assert 0.15 < len(test) / len(frame) < 0.25
    np.testing.assert_array_equal(views.order.times, place[place < latest.min()])
    assert views.order.times[views.train].max() < views.order.times[views.valid].min()


def test_dates_numbers_and_texts_have_the_same_order():
    when = table()["when"]
    orders = [when, when.dt.strftime("%Y-%m-%dT%H:%M:%S"), when.dt.strftime("%Y-%m-%d"), when.astype("int64")]
    places = [order_of(pd.DataFrame({"t": column}), None, "t").times for column in orders]
    for place in places[1:]:
        np.testing.assert_array_equal(place, places[0])


def test_a_test_table_leaves_only_the_validation_to_split():
    frame, test = table(), table(seed=1).drop(columns="when")
    with pytest.warns(TinybayesWarning, match="groups of the test table are in the table, too"):
        make_views(frame.drop(columns="when"), "y", test=test, roles=Roles(groups="who"))
    views = make_views(frame, "y", test=test, roles=Roles(time_order="when"))
    assert len(views.by_name["fine"].seen) == len(frame)
    assert views.order.times[views.train].max() < views.order.times[views.valid].min()


def test_classes_that_come_later_count_as_wrong():
    frame = table().sort_values("when")
    frame["y"] = np.where(np.arange(200) > 150, 2, np.arange(200) % 2)
    with pytest.warns(TinybayesWarning, match="1 of 3 classes have no training rows"):
        views = make_views(frame, "y", roles=Roles(time_order="when"))
    assert views.target.cardinality == 3
    assert set(views.by_name["mdlp"].test.y) == {2}


@pytest.mark.parametrize(
    ("roles", "change", "said"),
    [
        ({"groups": "whom"}, {}, "groups: expected a column 'whom', got a table without it; did you mean 'who'"),
        ({"groups": "y"}, {}, "'y' in two"),
        ({"groups": "who", "weight": "who"}, {}, "'who' in two"),
        ({"groups": "who", "time_order": "when"}, {}, "splits by groups or by time, got both"),
        ({"groups": "who"}, {"who": 1}, "too few groups"),
        ({"groups": "who"}, {"who": np.arange(200) % 2}, "too few groups"),
        ({"groups": "who"}, {"who": np.where(np.arange(200) < 3, np.nan, 1.0)}, "a group in every row, got 3 gaps"),
        ({"time_order": "when"}, {"when": "soon"}, "dates of ISO 8601, got 'soon'; write times"),
        ({"time_order": "when"}, {"when": 1.5}, "too few times"),
        (
            {"time_order": "when"},
            {"when": np.arange(200), "y": np.arange(200) > 120},
            "training rows of 2 classes, got 1",
        ),
        ({"weight": "w"}, {"w": 0.0}, "a weight above 0"),
        ({"weight": "w"}, {"w": -1.0}, "finite numbers that are not negative"),
        ({"weight": "w"}, {"w": np.nan}, "finite numbers that are not negative"),
        ({"weight": "b"}, {}, "finite numbers that are not negative"),
    ],
)
def test_columns_that_cannot_split_or_weigh_are_refused(roles, change, said):
    with pytest.raises(TinybayesError, match=said):
        make_views(table().assign(**change), "y", roles=Roles(**roles))


def test_a_test_table_needs_the_weights_too():
    with pytest.raises(TinybayesError, match="a test table without it"):
        make_views(table(), "y", test=table().drop(columns="w"), roles=Roles(weight="w"))
