"""Shifted images as training rows on usps: python -m experiments.input_noise.shifted. About 20 minutes on one core.

Raw images (``TINYBAYES_DATA/classification/raw``) with the reference split, MDLP's cut points of the training rows.
Each image is a training row five times: as it is, and shifted by a pixel in four directions. A tenth of the training
rows chooses structure and margin; the chosen setting learns from all training rows, and its test error is measured
once.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.images import with_moved
from experiments.provenance import provenance
from experiments.store import Record, write_report
from experiments.training import train_tables
from tinybayes.data import named
from tinybayes.data._sources import in_data_dir
from tinybayes.data.discretize import learn_encodings
from tinybayes.data.encode import encode_matrix
from tinybayes.errors import FileError, error
from tinybayes.learn.closed_form.chow_liu import chow_liu
from tinybayes.learn.hybrid import hold_out
from tinybayes.learn.training import candidates
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.tables import TableConfiguration, Trained
from tinybayes.model import Dataset, Variable

SPLITS = "classification/raw/split_indices.npz"
RESULTS = Path(__file__).parent / "results" / "shifted.json"
SEED, VALIDATION, IMAGE, SHORT, EPOCHS = 0, 0.1, (16, 16), 40, 80
COMMON: dict[str, Any] = {"lam": 100.0, "learning_rate": 0.03, "input_noise": 0.05}
STRUCTURES, GAMMAS = ("chow-liu", "heuristic", "subset"), (10.0, 30.0)


def load() -> tuple[Dataset, Dataset]:
    """Return training and test rows, with cut points."""
    frame, labels = named.load_raw("usps")
    path = in_data_dir(SPLITS)
    if path is None:
        raise error(f"{SPLITS} under TINYBAYES_DATA", "none", where="usps", kind=FileError)
    classes, y = np.unique(labels, return_inverse=True)
    X, target = frame.to_numpy().astype(np.float64), Variable("class", tuple(classes.tolist()))
    with np.load(path) as parts:
        train, test = parts["usps_tr"], parts["usps_te"]
    encodings = learn_encodings(list(X[train].T), "mdlp", y[train])
    variables = tuple(map(Variable.from_encoding, frame.columns, encodings))
    made = (Dataset(variables, target, encode_matrix(X[rows], variables), y[rows]) for rows in (train, test))
    return next(made), next(made)


def trained(data: Dataset, structure: str, gammas: tuple[float, ...], epochs: int, **others: Any) -> list[Trained]:
    """Train networks of one structure on images and shifted images."""
    moved = with_moved(data, IMAGE)
    if structure == "chow-liu":
        space = candidates.fixed(chow_liu(moved))
    else:
        space = (
            candidates.heuristic(IMAGE, 8) if structure == "heuristic" else candidates.subset(len(data.variables), 8)
        )
    runs = [TableConfiguration(candidates=space, gamma=gamma, seed=SEED, **COMMON) for gamma in gammas]
    return train_tables(moved, runs, TrainingOptions(epochs=epochs, shuffle_seed=SEED), **others)


def main() -> None:
    began = time.perf_counter()
    train, test = load()
    rows, held_out = hold_out(train, VALIDATION, SEED)
    tried: list[Record] = []
    for structure in STRUCTURES:
        results = trained(rows, structure, GAMMAS, SHORT, validation=held_out)
        for gamma, result in zip(GAMMAS, results, strict=True):
            tried.append({"structure": structure, "gamma": gamma, "validation_error": result.validation_error})
        print(tried[-len(GAMMAS) :], flush=True)
    best = min(tried, key=lambda one: one["validation_error"])
    result = trained(train, best["structure"], (best["gamma"],), EPOCHS, test=test)[0]
    found = {"chosen": best, "epochs": EPOCHS, "test_error": result.test_error}
    head = {"command": "python -m experiments.input_noise.shifted", "seed": SEED, "setting": COMMON, "tried": tried}
    write_report(RESULTS, head | {"provenance": [provenance(time.perf_counter() - began)], "results": [found]})
    print(found)


if __name__ == "__main__":
    main()
