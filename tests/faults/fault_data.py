"""The tables and models that faults are tried on, made from a seed."""

from pathlib import Path

import numpy as np
import pandas as pd


def table(path: Path, rows: int, features: int = 8, seed: int = 0) -> Path:
    """Write a table of numbers with three classes, which overlap a little."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, rows)
    means = generator.normal(0, 1, (3, features))
    X = np.round(means[y] + generator.normal(0, 1, (rows, features)), 3)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(features)]).assign(label=np.array(["a", "b", "c"])[y])
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=max(1, rows // 20))
    else:
        frame.to_csv(path, index=False)
    return path


def states(path: Path, rows: int, features: int = 12, seed: int = 0) -> Path:
    """Write a table of states in a chain, in which a circuit finds many splits."""
    generator = np.random.default_rng(seed)
    X = np.empty((rows, features), dtype=int)
    X[:, 0] = generator.integers(0, 3, rows)
    for i in range(1, features):
        stay = generator.random(rows) < 0.7
        X[:, i] = np.where(stay, X[:, i - 1], generator.integers(0, 3, rows))
    pd.DataFrame(X, columns=[f"v{i}" for i in range(features)]).to_csv(path, index=False)
    return path
