"""Data for tests: random data sets, data in batches, the folds of the real data sets."""

import numpy as np

from tinybayes.model import Dataset, Variable


def random_data(
    seed: int,
    *,
    rows: int = 40,
    features: int = 4,
    classes: int | None = 3,
    missing: float = 0.0,
    weighted: bool = False,
) -> Dataset:
    generator = np.random.default_rng(seed)
    states = generator.integers(1, 5, size=features)
    X = np.stack([generator.integers(0, k, size=rows) for k in states], axis=1)
    X[generator.random(X.shape) < missing] = -1
    variables = tuple(Variable(f"f{i}", tuple(range(k))) for i, k in enumerate(states.tolist()))
    y, target = None, None
    if classes is not None:
        target = Variable("class", tuple("abcdefgh"[:classes]))
        y = generator.integers(0, classes, size=rows)
        y[generator.random(rows) < missing] = -1
    weight = generator.integers(0, 4, size=rows).astype(float) if weighted else None
    return Dataset(variables, target, X, y, weight)


def easy(rows=600, features=6, seed=0, classes=3):
    """Classes that show in pairs of features only, so that a structure helps."""
    generator = np.random.default_rng(seed)
    data = random_data(seed, rows=rows, features=features, classes=classes)
    variables = [type(v)(v.name, (0, 1, 2)) for v in data.variables]
    X = generator.integers(0, 3, size=(rows, features))
    X[:, 1] = (X[:, 0] + data.y) % 3
    X[:, 3] = (X[:, 2] + 2 * data.y) % 3
    flip = generator.random(X.shape) < 0.1
    X[flip] = generator.integers(0, 3, flip.sum())
    return Dataset(variables, data.target, X, data.y)


class Pieces:
    """A data set in batches, as a reader of a large file would give it."""

    def __init__(self, data, rows):
        self.data, self.rows = data, rows
        self.variables, self.target, self.nodes = data.variables, data.target, data.nodes

    def __iter__(self):
        for start in range(0, len(self.data), self.rows):
            yield self.data.rows(slice(start, start + self.rows))


def folds(path):
    arrays = np.load(path)
    for fold in range(1, int(arrays["n_folds"]) + 1):
        X, y, X_test, y_test = (arrays[f"{key}_fold{fold}"] for key in ("x_tr", "t_tr", "x_te", "t_te"))
        states = np.maximum(X.max(axis=0), X_test.max(axis=0))
        variables = [Variable(f"x{i}", tuple(range(1, k + 1))) for i, k in enumerate(states.tolist())]
        target = Variable("y", tuple(range(int(y.max()) + 1)))
        yield (
            Dataset(variables, target, X.astype(int) - 1, y),
            Dataset(variables, target, X_test.astype(int) - 1, y_test),
        )
