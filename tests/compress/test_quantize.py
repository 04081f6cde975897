"""Networks in other formats: every entry is the nearest value of the format, everything else stays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networks import codebook
from tinybayes import Fixed, Float, quantize
from tinybayes.compress.quantize import with_tables
from zoo import naive_bayes, random_net


def values_of(form):
    codes = np.arange(2**form.bits if isinstance(form, Fixed) else len(form.values))
    return [float(value) for value in form.decode(codes)]


@pytest.mark.parametrize("form", [Fixed(1, 0), Fixed(3, 1), Fixed(5, -2), codebook(2), codebook(13)], ids=str)
@given(seed=st.integers(0, 2**32 - 1))
def test_entries_are_the_nearest_values_and_the_rest_stays(form, seed):
    net = random_net(np.random.default_rng(seed), 4, trees=True)
    quantized = quantize(net, form)
    assert (quantized.variables, quantized.target, quantized.structure) == (net.variables, net.target, net.structure)
    levels = values_of(form)
    for before, after in zip(net.cpds, quantized.cpds, strict=True):
        assert after.format == form
        assert after.tree is before.tree
        for exact, stored in zip(before.log_parameters.flat, after.log_parameters.flat, strict=True):
            assert stored in levels
            assert abs(stored - exact) == min(abs(level - exact) for level in levels)


def test_each_table_gets_its_own_values_and_format():
    net = naive_bayes()
    forms = [Fixed(3, i) for i in range(len(net.cpds) - 1)] + [Float(64)]
    tables = [np.full_like(cpd.log_parameters, -i) for i, cpd in enumerate(net.cpds)]
    changed = with_tables(net, tables, forms)
    assert [cpd.format for cpd in changed.cpds] == forms
    for table, cpd in zip(tables, changed.cpds, strict=True):
        np.testing.assert_array_equal(cpd.log_parameters, table)
    with pytest.raises(ValueError, match="zip"):
        with_tables(net, tables[:-1], forms)
