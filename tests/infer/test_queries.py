import numpy as np
import pytest

import zoo
from tinybayes.errors import TinybayesError
from tinybayes.infer import Queries, gibbs


def test_queries_that_make_no_sense_are_refused():
    nothing = np.full((2, 3), -1)
    both = nothing.copy()
    both[1, 2] = 0
    with pytest.raises(TinybayesError, match=r"query 1: expected variables that are asked for or observed, not both"):
        Queries(both, both)
    with pytest.raises(TinybayesError, match="the shape"):
        Queries(nothing, nothing[:1])
    with pytest.raises(TinybayesError, match="evidence: expected integer codes"):
        Queries(nothing.astype(float), nothing)
    net, unknown, below = zoo.sprinkler(), nothing.copy(), nothing.copy()
    unknown[0, 1], below[0, 0] = 2, -2
    for queries, message in [
        (Queries(nothing[:, :2], nothing[:, :2]), "3 columns, one per variable"),
        (Queries(nothing, unknown), "asked, query 0, variable 'sprinkler': expected a code from -1 to 1, got 2"),
        (unknown, "evidence, query 0, variable 'sprinkler'"),
        (below, "evidence, query 0, variable 'rain'"),
    ]:
        with pytest.raises(TinybayesError, match=message):
            gibbs(net, queries)
