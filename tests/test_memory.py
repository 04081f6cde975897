"""Nothing copies the table: the arrays made by a call beside its table, which NumPy reports to tracemalloc."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tinybayes import (
    BayesNetClassifier,
    Fixed,
    class_scores,
    compile_circuit,
    evaluate,
    learn_classifier,
    predict_codes,
    quantize,
)
from tinybayes.data.mdlp import mdlp_all
from tinybayes.infer.scores import integer_scores
from tinybayes.model import Dataset, Variable

ROWS, FEATURES = 600_000, 40


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    X = generator.integers(0, 3, (ROWS, FEATURES), dtype=np.int8)
    variables = tuple(Variable(f"x{j}", (0, 1, 2)) for j in range(FEATURES))
    return Dataset(variables, Variable("class", (0, 1)), X, generator.integers(0, 2, ROWS, dtype=np.int8))


@pytest.fixture(scope="module")
def tan(data):
    return learn_classifier(data.rows(slice(0, 2000)))


def peak(call):
    """Return the bytes that a call holds at most beside what was there, its result apart from views included."""
    call()  # compiles, and lays models out
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "share"), [("naive", 0.02), ("chow-liu", 0.9), ("labels", 0.12), ("evaluate", 0.5), ("integers", 0.75)]
)
def test_codes(data, tan, name, share):
    fixed = quantize(tan, Fixed(3, 2))
    calls = {
        "naive": lambda: learn_classifier(data, structure="naive"),
        "chow-liu": lambda: learn_classifier(data),
        "labels": lambda: predict_codes(tan, data.X),
        "evaluate": lambda: evaluate(fixed, data),
        "integers": lambda: integer_scores(fixed, data.X),  # the result is two thirds of the table
    }
    assert peak(calls[name]) < share * data.X.nbytes


def test_the_memory_of_chow_liu_does_not_grow_with_the_rows(data):
    half = data.rows(slice(0, ROWS - 2**16))  # both are longer than a piece
    assert peak(lambda: learn_classifier(data)) < peak(lambda: learn_classifier(half)) + 2**16 * 4


def test_circuits(data):
    circuit = compile_circuit(learn_classifier(data.rows(slice(0, 2000)), structure="naive"))
    some = data.X[:200_000]
    assert peak(lambda: predict_codes(circuit, some)) < 0.9 * some.nbytes
    assert peak(lambda: class_scores(circuit, some)) < 1.2 * some.nbytes  # the result is 0.4


PANDAS = int(pd.__version__.split(".")[0])
COPIES = pytest.mark.skipif(PANDAS < 3, reason="pandas 2 copies a frame, unless copy_on_write is on")


@pytest.mark.parametrize("kind", ["matrix", pytest.param("frame", marks=COPIES)])
def test_tables_of_users(data, kind):
    wide = data.X[:100_000].astype(np.int64)
    table = wide if kind == "matrix" else pd.DataFrame(wide).add_prefix("x")
    face = BayesNetClassifier("naive", discretizer=None).fit(table, data.y[: len(wide)])
    assert peak(lambda: face.predict(table)) < 0.25 * wide.nbytes  # codes: an eighth
    assert peak(lambda: face.fit(table, data.y[: len(wide)])) < 0.4 * wide.nbytes
    numbers = wide + np.linspace(0, 1, len(wide))[:, None]
    table = numbers if kind == "matrix" else pd.DataFrame(numbers).add_prefix("x")
    by_cuts = BayesNetClassifier("naive")
    # What sorting takes of a column or two at a time is small beside forty of them.
    assert peak(lambda: by_cuts.fit(table, data.y[: len(wide)])) < 0.75 * wide.nbytes
    assert peak(lambda: mdlp_all(numbers.T, data.y[: len(wide)], 2)) < 0.6 * wide.nbytes
