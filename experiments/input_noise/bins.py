"""Finer bins and turned images on satimage: python -m experiments.input_noise.bins [--folds 1 2 3 4 5].

A row of satimage is a square of 3 by 3 pixels in four bands; its class is that of the middle pixel. Turned and mirrored
squares, eight of each, have the same class. Chow-Liu trees with input noise, on the reference folds, from raw values
(``TINYBAYES_DATA/classification/raw``). In each fold a fifth of the training rows chooses; the chosen setting learns
from all training rows, and only its test error is measured. Two minutes a fold on one core.

The list of ways is not free of test rows. It was made after a prototype on folds 1 and 2, whose fold 1 was read with
row numbers one too low: 231 of its 1,030 validation rows, and 817 of the others, are test rows of fold 1. Fold 2 was
right.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.provenance import provenance
from experiments.store import Record, read_report, write_report
from experiments.training import train_tables
from tinybayes.data import named
from tinybayes.data._sources import in_data_dir
from tinybayes.data.discretize import learn_encodings
from tinybayes.data.encode import encode_matrix
from tinybayes.errors import FileError, error
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.training.candidates import fixed
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, Trained
from tinybayes.model import Dataset, Variable

RESULTS = Path(__file__).parent / "results" / "bins.json"
SPLITS = "classification/raw/split_indices.npz"
SEED, VALIDATION = 0, 0.2
SHORT, EPOCHS = 200, 300  # passes over as many rows as there are training rows, to choose and at the end
COMMON: dict[str, Any] = {"lam": 100.0, "learning_rate": 0.03, "input_noise": 0.3}


@dataclass(frozen=True)
class Way:
    """How rows are cut into bins, from which rows the cut points are learned, and which rows are trained on."""

    discretizer: str
    turned_cuts: bool
    turned_rows: bool
    gammas: tuple[float, ...] = (5.0, 20.0)


WAYS = (
    Way("mdlp", False, False),
    Way("quantile", False, False),
    Way("mdlp", True, False, (20.0,)),
    Way("quantile", True, True),
    Way("mdlp", True, True),
)


class Satimage:
    """The raw values and their folds."""

    def __init__(self) -> None:
        frame, labels = named.load_raw("satimage")
        path = in_data_dir(SPLITS)
        if path is None:
            raise error(f"{SPLITS} under TINYBAYES_DATA", "none", where="satimage", kind=FileError)
        self.X, self.columns = frame.to_numpy().astype(np.float64), tuple(frame.columns)
        classes, self.y = np.unique(labels, return_inverse=True)
        self.target = Variable("class", tuple(classes.tolist()))
        with np.load(path) as parts:
            self.folds = [(parts[f"satimage_tr{k}"], parts[f"satimage_te{k}"]) for k in range(1, 6)]

    def coded(self, way: Way, train: np.ndarray, other: np.ndarray) -> tuple[Dataset, Dataset]:
        """Return training rows and others in bins that the training rows give."""
        given, y = self.X[train], self.y[train]
        every, every_y = np.concatenate(turned(given)), np.tile(y, 8)
        cut, cut_y = (every, every_y) if way.turned_cuts else (given, y)
        encodings = learn_encodings(list(cut.T), way.discretizer, cut_y, n_bins=16)
        variables = tuple(map(Variable.from_encoding, self.columns, encodings))
        rows, rows_y = (every, every_y) if way.turned_rows else (given, y)
        data = Dataset(variables, self.target, encode_matrix(rows, variables), rows_y)
        return data, Dataset(variables, self.target, encode_matrix(self.X[other], variables), self.y[other])


def turned(X: np.ndarray) -> list[np.ndarray]:
    """Return the squares in their eight positions, the given one first."""
    squares = X.reshape(-1, 3, 3, 4)
    positions = []
    for quarter in range(4):
        square = np.rot90(squares, quarter, axes=(1, 2))
        positions += [square.reshape(X.shape), square[:, :, ::-1].reshape(X.shape)]
    return positions


def trained(data: Dataset, way: Way, gammas: tuple[float, ...], epochs: int, **others: Any) -> list[Trained]:
    """Train trees: as many steps with turned rows as without."""
    tree = fixed(chow_liu(data))
    runs = [TableConfiguration(candidates=tree, gamma=gamma, seed=SEED, **COMMON) for gamma in gammas]
    passes = -(-epochs // 8) if way.turned_rows else epochs
    return train_tables(data, runs, TrainingOptions(epochs=passes, shuffle_seed=SEED), **others)


def measured(source: Satimage, fold: int) -> Record:
    """Choose on validation rows; measure the test rows once, with the chosen setting."""
    train, test = source.folds[fold - 1]
    order = np.random.default_rng([SEED, fold - 1]).permutation(train)
    held = round(VALIDATION * len(order))
    tried: list[Record] = []
    for number, way in enumerate(WAYS):
        data, validation = source.coded(way, order[held:], order[:held])
        results = trained(data, way, way.gammas, SHORT, validation=validation)
        bins = float(np.mean([v.cardinality for v in data.variables]))
        for gamma, result in zip(way.gammas, results, strict=True):
            known = {"way": number, "gamma": gamma, "bins": round(bins, 1)}
            tried.append(known | {"validation_error": result.validation_error})
            print(fold, way, tried[-1], flush=True)
    best = min(tried, key=lambda one: one["validation_error"])
    way = WAYS[best["way"]]
    data, rows = source.coded(way, train, test)
    error_rate = trained(data, way, (best["gamma"],), EPOCHS, test=rows)[0].test_error
    print(fold, best, error_rate, flush=True)
    return {"fold": fold, "tried": tried, "chosen": best, "test_error": error_rate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", nargs="+", type=int, choices=range(1, 6), default=[1, 2, 3, 4, 5])
    folds, source = parser.parse_args().folds, Satimage()
    for fold in folds:
        began = time.perf_counter()
        made = measured(source, fold)
        made["provenance"] = provenance(time.perf_counter() - began)
        before = [r for r in (read_report(RESULTS) or {"results": []})["results"] if r["fold"] != fold]
        ways = [{"discretizer": w.discretizer, "cuts": w.turned_cuts, "rows": w.turned_rows} for w in WAYS]
        head = {"command": " ".join(["python -m experiments.input_noise.bins", *sys.argv[1:]]), "seed": SEED}
        write_report(RESULTS, head | {"ways": ways, "results": sorted([*before, made], key=lambda r: r["fold"])})


if __name__ == "__main__":
    main()
