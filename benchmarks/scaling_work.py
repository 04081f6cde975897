"""The calls that `scaling.py` measures, on tables and models of any size.

Each function makes its table and its model and returns the call to measure, with the bytes of the table.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

BLOCK = 2**18  # rows that are drawn; more are repetitions


class Size(NamedTuple):
    """The size of a table."""

    rows: int = 100_000
    features: int = 20
    states: int = 4
    classes: int = 4


class Work(NamedTuple):
    """A call to measure, and the bytes of the table that it is given."""

    call: Callable[[], object]
    table: int


# Tables and models.


def codes(size: Size, dtype: Any = np.int8) -> tuple[np.ndarray, np.ndarray]:
    """Draw features that depend on their neighbour and on the class, and the class."""
    generator = np.random.default_rng(0)
    drawn = min(size.rows, BLOCK)
    y = generator.integers(0, size.classes, drawn)
    block = generator.integers(0, size.states, (drawn, size.features), dtype=np.int16)
    before = y % size.states
    for j in range(size.features):
        same = generator.random(drawn, dtype=np.float32) < 0.5
        block[same, j] = before[same]
        before = block[:, j]
    block[: size.states, :] = np.arange(size.states)[: len(block), None]  # every state is there
    y[: size.classes] = np.arange(size.classes)[: len(y)]
    X = np.empty((size.rows, size.features), dtype=dtype)
    for start in range(0, size.rows, drawn):
        X[start : start + drawn] = block[: size.rows - start]
    return X, np.resize(y, size.rows)


def dataset(size: Size) -> Any:
    """Make a table of codes."""
    from tinybayes.model import Dataset, Variable
    from tinybayes.model.dataset import code_dtype

    X, y = codes(size, code_dtype(size.states))
    states = tuple(range(size.states))
    variables = [Variable(f"x{j}", states) for j in range(size.features)]
    target = Variable("class", tuple(range(size.classes)))
    return Dataset(tuple(variables), target, X, y.astype(code_dtype(size.classes)))


def classifier(size: Size, structure: str, fixed: bool = False) -> Any:
    """Learn a classifier from few rows."""
    from tinybayes import Fixed, learn_classifier, quantize

    net = learn_classifier(dataset(size._replace(rows=max(1_000, size.states, size.classes))), structure=structure)
    return quantize(net, Fixed(4, 4)) if fixed else net


def chain(size: Size) -> Any:
    """Make a chain of variables with random tables, without a class."""
    from tinybayes.model import CPD, BayesNet, Float, Variable

    generator, states = np.random.default_rng(0), size.states
    variables = [Variable(f"x{j}", tuple(range(states))) for j in range(size.features)]
    tables = [np.log(generator.dirichlet(np.ones(states), states if j else 1)) for j in range(size.features)]
    cpds = [CPD((j - 1,) if j else (), table, Float(64)) for j, table in enumerate(tables)]
    return BayesNet(tuple(variables), None, tuple(cpds))


# Work.


def learn(structure: str) -> Callable[[Size], Work]:
    def make(size: Size) -> Work:
        from tinybayes import learn_classifier

        data = dataset(size)
        return Work(lambda: learn_classifier(data, structure=structure), data.X.nbytes)

    return make


def mdlp(size: Size) -> Work:
    from tinybayes.data.mdlp import mdlp_all

    generator = np.random.default_rng(0)
    y = generator.integers(0, size.classes, size.rows)
    columns = generator.standard_normal((size.features, size.rows), dtype=np.float32)
    columns += (y % 5).astype(np.float32)
    return Work(lambda: mdlp_all(columns, y, size.classes), columns.nbytes)


def learn_circuit(size: Size) -> Work:
    from tinybayes import learn_circuit

    data = dataset(size)
    price = size.rows / 300  # in proportion, so that the same splits pay
    return Work(lambda: learn_circuit(data, edge_price=price, parameter_price=price), data.X.nbytes)


def compile_net(structure: str) -> Callable[[Size], Work]:
    def make(size: Size) -> Work:
        from tinybayes import compile_circuit

        net = chain(size) if structure == "chain" else classifier(size, structure)
        return Work(lambda: compile_circuit(net, max_edges=10**9), 0)

    return make


def predict(structure: str, asked: str = "predict_codes", *, fixed: bool = False) -> Callable[[Size], Work]:
    def make(size: Size) -> Work:
        import tinybayes

        net, data = classifier(size, structure, fixed), dataset(size)
        function = getattr(tinybayes, asked)
        given = data if asked == "evaluate" else data.X
        return Work(lambda: function(net, given), data.X.nbytes)

    return make


def ask_circuit(asked: str) -> Callable[[Size], Work]:
    def make(size: Size) -> Work:
        import tinybayes

        circuit, X = tinybayes.compile_circuit(classifier(size, "chow-liu"), max_edges=10**9), dataset(size).X
        function = getattr(tinybayes, asked)
        function(circuit, X[:8])  # the plan is made once
        return Work(lambda: function(circuit, X), X.nbytes)

    return make


def write_c(size: Size) -> Work:
    from tinybayes.deploy.programs.c import to_c

    net = classifier(size, "naive", fixed=True)
    return Work(lambda: to_c(net), 0)


def file(step: str) -> Callable[[Size], Work]:
    def make(size: Size) -> Work:
        from tinybayes import load, save

        net = classifier(size, "naive")
        path = Path(tempfile.mkdtemp()) / "model.tb"
        save(net, path)
        return Work((lambda: save(net, path)) if step == "save" else (lambda: load(path)), 0)

    return make


def estimator(step: str, kind: str, structure: str = "naive") -> Callable[[Size], Work]:
    """Fit or ask scikit-learn's face of a classifier with a table of some kind."""

    def make(size: Size) -> Work:
        from tinybayes import BayesNetClassifier

        X, y = table(kind, size)
        face = BayesNetClassifier(structure, discretizer="mdlp" if "float" in kind else None)
        if step == "fit":
            return Work(lambda: face.fit(X, y), table_bytes(X))
        face.fit(X[: min(size.rows, 20_000)], y[: min(size.rows, 20_000)])
        return Work(lambda: face.predict(X), table_bytes(X))

    return make


def discretizer(step: str) -> Callable[[Size], Work]:
    def make(size: Size) -> Work:
        from tinybayes.data import MDLPDiscretizer

        X, y = table("float64 matrix", size)
        face = MDLPDiscretizer(dtype=np.int8)
        if step == "fit":
            return Work(lambda: face.fit(X, y), X.nbytes)
        face.fit(X[:20_000], y[:20_000])
        return Work(lambda: face.transform(X), X.nbytes)

    return make


def table(kind: str, size: Size) -> tuple[Any, np.ndarray]:
    """Make a table as users have them."""
    import pandas as pd

    X, y = codes(size, np.float64 if "float" in kind else np.int64)
    if "float" in kind:
        X += np.random.default_rng(1).random((min(len(X), BLOCK), 1))[np.arange(len(X)) % BLOCK]
    if "frame" not in kind:
        return X, y
    names = [f"x{j}" for j in range(size.features)]
    if kind == "category frame":
        texts = [f"s{k}" for k in range(size.states)]
        return pd.DataFrame({n: pd.Categorical.from_codes(X[:, j], texts) for j, n in enumerate(names)}), y
    return pd.DataFrame({name: X[:, j] for j, name in enumerate(names)}), y


def table_bytes(X: Any) -> int:
    return int(X.nbytes) if isinstance(X, np.ndarray) else int(X.memory_usage(index=False).sum())
