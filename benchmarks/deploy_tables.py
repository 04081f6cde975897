"""The tables of `deploy.py`: raw rows as a CSV holds them, in a fixed split, and test rows with gaps."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, train_test_split

from tinybayes import datasets

MIXED = ("crx", "german", "phoneme", "splice")  # files of TINYBAYES_DATA/tables
DATA = ("digits", "letter", "satimage", *MIXED)
LABEL = "label"
GAPS = 0.05  # share of the entries


@dataclass(frozen=True, eq=False)
class Table:
    """Training and test rows with the column `label`."""

    train: pd.DataFrame
    test: pd.DataFrame
    source: str

    @property
    def features(self) -> list[str]:
        return [column for column in self.train.columns if column != LABEL]

    @property
    def numbers(self) -> list[str]:
        return [column for column in self.features if pd.api.types.is_numeric_dtype(self.train[column])]

    @property
    def categories(self) -> list[str]:
        return [column for column in self.features if column not in self.numbers]

    @property
    def integers(self) -> bool:
        """Whether all numbers are integers."""
        return all(self.train[column].dtype.kind == "i" for column in self.numbers)

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the classes of some rows as 0, 1, ... in the order of their names."""
        return np.searchsorted(np.unique(self.train[LABEL]), frame[LABEL].to_numpy())

    def with_gaps(self) -> pd.DataFrame:
        """Return the test rows with a share of their entries missing, the same in every run."""
        drawn = np.random.default_rng(0).random((len(self.test), len(self.features))) < GAPS
        gaps = {
            column: self.test[column].astype(float if column in self.numbers else object).mask(drawn[:, i])
            for i, column in enumerate(self.features)
        }
        return self.test.assign(**gaps)

    def about(self) -> dict[str, int | str]:
        return {
            "train": len(self.train),
            "test": len(self.test),
            "numbers": len(self.numbers),
            "categories": len(self.categories),
            "classes": int(self.train[LABEL].nunique()),
            "source": self.source,
        }


def load(name: str) -> Table:
    """Load a table by name."""
    if name in MIXED:
        return load_files(name)
    frame, y = datasets.load_raw(name)
    frame = frame.assign(**{LABEL: y})
    if datasets.n_folds(name) == 1:
        train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=0)
        words = "stratified split 2/3-1/3, seed 0"
    else:
        folds = StratifiedKFold(datasets.n_folds(name), shuffle=True, random_state=0)
        train, test = next(iter(folds.split(frame, y)))
        words = f"stratified fold 1 of {datasets.n_folds(name)}, seed 0"
    parts = [frame.iloc[np.sort(rows)].reset_index(drop=True) for rows in (train, test)]
    return Table(*(_whole(part) for part in parts), f"`tinybayes.datasets.load_raw`; {words}")


def load_files(name: str) -> Table:
    """Load a table of the directory `tables`."""
    folder = Path(os.environ.get("TINYBAYES_DATA", "nowhere")) / "tables"
    if not folder.is_dir():
        raise SystemExit(f"{name} is a file of the directory tables in TINYBAYES_DATA")
    train, test = (pd.read_csv(folder / f"{name}.{part}.csv.gz") for part in ("train", "test"))
    return Table(train, test, f"$TINYBAYES_DATA/tables/{name}, its own split")


def _whole(frame: pd.DataFrame) -> pd.DataFrame:
    """Give columns of integers a type of integers."""
    types = {c: int for c in frame.columns if frame[c].dtype.kind == "f" and (frame[c] % 1 == 0).all()}
    return frame.astype(types)
