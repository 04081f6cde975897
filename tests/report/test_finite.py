"""Values for JSON: what it has stays, what it does not have becomes null."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from tinybayes.report.finite import finite

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(values)
def test_values_of_json_stay(value):
    assert finite(value) == value == json.loads(json.dumps(finite(value), allow_nan=False))


def test_other_numbers_become_null_at_any_depth():
    value = {"loss": math.inf, "rows": [1.5, (math.nan, {7: -math.inf})]}
    assert finite(value) == {"loss": None, "rows": [1.5, [None, {"7": None}]]}
