import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import zoo
from tinybayes import TinybayesError
from tinybayes.infer import compile_circuit, log_evidence, log_likelihood
from tinybayes.model import Codebook, Fixed, Float

FORMATS = (Float(64), Float(), Fixed(3, 2), Codebook((-math.inf, -2.0, -1.0, -0.5, 0.0)))


@given(st.integers(0, 10**6), st.booleans())
def test_log_likelihood_adds_up_an_entry_of_each_table(seed, target):
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, int(rng.integers(1, 6)), target=target, trees=True, formats=FORMATS)
    rows = np.column_stack([rng.integers(0, node.cardinality, 20) for node in net.nodes])
    wanted = [oracle.log_joint(net, row) for row in rows.tolist()]
    np.testing.assert_allclose(log_likelihood(net, rows), wanted, rtol=1e-12)


def test_log_likelihood_is_that_of_the_circuit():
    net = zoo.random_net(np.random.default_rng(4), 6, trees=True, formats=(Float(64),))
    rows = np.column_stack([np.random.default_rng(5).integers(0, node.cardinality, 50) for node in net.nodes])
    np.testing.assert_allclose(log_likelihood(net, rows), log_evidence(compile_circuit(net), rows), rtol=1e-12)
    assert log_likelihood(net, rows[:0]).shape == (0,)


@pytest.mark.parametrize("rows", [[[0, 0]], [[0, 0, -1]], [[0, 0, 2]], [[0.0, 0.0, 0.0]]])
def test_rows_that_do_not_fit_are_refused(rows):
    with pytest.raises(TinybayesError, match="codes"):
        log_likelihood(zoo.sprinkler(), np.array(rows))


def test_what_cannot_be_has_no_probability():
    assert log_likelihood(zoo.sprinkler(), np.array([[0, 0, 1]])).tolist() == [-math.inf]
