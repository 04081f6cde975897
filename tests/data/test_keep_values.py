"""`Discretization(keep_values=...)`: integers of few values are states as they stand."""

import numpy as np
import pandas as pd
import pytest

from tinybayes import TinybayesError
from tinybayes.data import Discretization, open_dataset
from tinybayes.data.variables import learn_variables, matrix_variables

RULES = Discretization(discretizer="quantile", n_bins=4, keep_values=4)


def states(frame, discretization=RULES):
    variables, _ = learn_variables([(frame, None, None)], discretization)
    return {v.name: (len(v.encoding.points) if v.has_intervals else v.states) for v in variables}


def test_few_whole_numbers_are_states_and_others_are_cut():
    frame = pd.DataFrame(
        {
            "bit": [0, 1] * 50,
            "bit as float": [0.0, 1.0] * 50,
            "gaps": [0.0, np.nan, 3.0, 7.0] * 25,
            "four": [-1, 5, 2, 9] * 25,
            "five": [0, 1, 2, 3, 4] * 20,
            "halves": [0.5, 1.0] * 50,
            "constant": [7] * 100,
            "number": np.arange(100),
            "none": [np.nan] * 100,
            "flag": [True, False] * 50,
        }
    )
    assert states(frame) == {
        "bit": (0, 1),
        "bit as float": (0, 1),
        "gaps": (0, 3, 7),
        "four": (-1, 2, 5, 9),
        "five": 3,
        "halves": 1,
        "constant": (7,),
        "number": 3,
        "none": 0,
        "flag": (False, True),
    }
    assert states(frame[["bit", "constant"]], Discretization(discretizer="quantile")) == {"bit": 1, "constant": 0}


def test_batches_are_seen_as_one_table():
    first, second = (
        pd.DataFrame({"a": [0, 1], "b": [0, 1], "c": [0, 1]}),
        pd.DataFrame({"a": [2, 1], "b": [2.5, 1.0], "c": [2, 3]}),
    )
    variables, _ = learn_variables(
        [(first, None, None), (second, None, None)], Discretization(discretizer="uniform", keep_values=3)
    )
    by_name = {v.name: v for v in variables}
    assert by_name["a"].states == (0, 1, 2)
    assert by_name["b"].encoding.points
    assert by_name["c"].encoding.points


@pytest.mark.parametrize("keep", [0, 2, 3, 4])
def test_the_fast_way_for_matrices_agrees(keep):
    X = np.array([[0, 1, 0], [1, 2, 0], [0, 3, 0], [1, 1, 0]])
    discretization = Discretization(discretizer="quantile", n_bins=2, keep_values=keep)
    fast = matrix_variables(X, None, discretization)
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    slow, _ = learn_variables([(frame, None, None)], discretization)
    assert fast == (slow if keep == 4 else None)


def test_a_whole_table_and_bad_numbers():
    data = open_dataset(
        pd.DataFrame({"a": [0, 1, 1], "y": ["p", "q", "p"]}), target="y", discretization=Discretization(keep_values=2)
    )
    assert data.variables[0].states == (0, 1)
    for bad in (-1, 1.5, "2"):
        with pytest.raises(TinybayesError, match="keep_values"):
            Discretization(keep_values=bad)
