"""Data sets by name, ready to learn from: ``train, test = tinybayes.datasets.load("digits")``.

The rows come from scikit-learn, from a local directory, or from their public source through a cache; the page
``docs/datasets.md`` says which, and how each set is split and discretised.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import SupportsIndex

import numpy as np
import pandas as pd

from tinybayes.data._sources import binary_rows, in_data_dir, raw_rows, reference_fold
from tinybayes.data.discretize import learn_encodings
from tinybayes.data.encode import encode_matrix
from tinybayes.errors import FileError, error, near
from tinybayes.extras import require
from tinybayes.model import Dataset, State, Variable


@dataclass(frozen=True, eq=False)
class Split:
    """A data set in its parts; unpacks as ``train, test = split``.

    Parameters
    ----------
    train, test
        The rows to learn from and those to evaluate on.
    valid
        Rows for choosing settings, where the set comes with such a part.
    name
        The name it was loaded by.
    source
        One line: where the rows came from, how they were split and discretised.
    image_shape
        Rows and columns of the images, where the features are pixels. The pixels are in row-major order, except those
        of usps, which are in column-major order (as published): transpose its reshaped images.
    """

    train: Dataset
    test: Dataset
    valid: Dataset | None
    name: str
    source: str
    image_shape: tuple[int, int] | None = None

    def __iter__(self) -> Iterator[Dataset]:
        return iter((self.train, self.test))


@dataclass(frozen=True)
class _Table:
    """The columns and classes of a published table of integers."""

    columns: tuple[str, ...]
    labels: tuple[int, ...]  # as published, in the order of the classes
    classes: tuple[State, ...]
    image_shape: tuple[int, int] | None = None


_BUNDLED = {"digits": (8, 8), "breast_cancer": None, "wine": None, "iris": None}
_DIGITS = tuple(range(10))
_USPS_DIGITS = (*_DIGITS[1:], 0)  # the order of the file, by which the reference discretisation numbers its classes
_LETTER_COLUMNS = "x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"
_SOILS = ("red soil", "cotton crop", "grey soil", "damp grey soil", "vegetation stubble", "very damp grey soil")
_TABLES = {
    "letter": _Table(tuple(_LETTER_COLUMNS.split()), tuple(range(26)), tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    "satimage": _Table(tuple(f"pixel{p}_band{b}" for p in range(9) for b in range(4)), (1, 2, 3, 4, 5, 7), _SOILS),
    "usps": _Table(tuple(f"pixel_{r}_{c}" for c in range(16) for r in range(16)), _USPS_DIGITS, _USPS_DIGITS, (16, 16)),
    "mnist": _Table(tuple(f"pixel_{r}_{c}" for r in range(14) for c in range(14)), _DIGITS, _DIGITS, (14, 14)),
}
_DENSITY = (
    *("nltcs", "msnbc", "kdd", "plants", "baudio", "jester", "bnetflix", "accidents", "tretail", "pumsb_star"),
    *("dna", "kosarek", "msweb", "book", "tmovie", "cwebkb", "cr52", "c20ng", "bbc", "ad"),
)
_FOLDS = {"satimage": 5}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return (*_BUNDLED, *_TABLES, *_DENSITY)


def n_folds(name: str) -> int:
    """Return the number of splits into training and test rows: 5 for satimage, 1 for all others."""
    _require_name(name)
    return _FOLDS.get(name, 1)


def load(
    name: str, *, fold: int = 0, seed: int = 0, discretizer: str | None = None, n_bins: int = 8, progress: bool = False
) -> Split:
    """Load a data set, split and discretised.

    Parameters
    ----------
    name
        One of `names`.
    fold
        Which split, from 0 to ``n_folds(name) - 1``.
    seed
        Of the split, where the data come without one.
    discretizer, n_bins
        ``"mdlp"``, ``"uniform"`` or ``"quantile"``, the latter two with that many bins; by default the papers'
        discretisation where it is available, and MDLP otherwise.
    progress
        Show a bar on standard error while a file is downloaded.

    Returns
    -------
    Split
        For classification, numeric features are discretised on the training rows alone, and the variables
        carry the cut points. The density sets have binary variables, no target, and a part ``valid``.

    Examples
    --------
    >>> train, test = load("iris")
    >>> len(train), len(test), train.target.states
    (100, 50, ('setosa', 'versicolor', 'virginica'))
    """
    fold = _integer(fold, n_folds(name), f"fold of {name}")
    seed = _integer(seed, 2**32, "seed")
    if name in _DENSITY:
        return _density(name, progress)
    given = discretizer is not None or name in (*_BUNDLED, "mnist")
    path = None if given else in_data_dir(f"classification/{name}.npz")
    if path is not None:
        return _reference(name, path, fold)
    return _discretised(name, fold, seed, discretizer or "mdlp", n_bins, progress)


def load_raw(name: str, *, progress: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """Load the numbers of a classification set, neither split nor discretised, and the class of each row.

    The columns are those that `load` discretises, so a model learned from its parts takes these rows; mnist is
    already scaled to 14 by 14 pixels. The arguments are those of `load`.
    """
    _require_name(name)
    if name in _DENSITY:
        raise error("a data set with classes", repr(name), where="load_raw", remedy="use load: it has no raw numbers")
    X, y, columns, classes, _ = _numbers(name, progress)
    return pd.DataFrame(X, columns=list(columns)), np.array(classes)[y]


def _require_name(name: str) -> None:
    if name not in names():
        known = ", ".join(names())
        raise error(f"one of {known}", repr(name), where="name of a data set", remedy=near(name, names()))


def _integer(value: SupportsIndex, limit: int, where: str) -> int:
    try:
        number = index(value)
    except TypeError:
        number = -1
    if not 0 <= number < limit:
        raise error(f"an integer from 0 to {limit - 1}", repr(value), where=where)
    return number


def _density(name: str, progress: bool) -> Split:
    parts, origins = [], []
    for part in ("train", "valid", "test"):
        X, origin = binary_rows(name, part, progress)
        variables = tuple(Variable(f"x{i}", (0, 1)) for i in range(X.shape[1]))
        parts.append(Dataset(variables, None, X))
        origins.append(origin)
    train, valid, test = parts
    return Split(train, test, valid, name, f"{origins[0]} and its valid and test parts, as published")


def _reference(name: str, path: Path, fold: int) -> Split:
    """Use the discretisation and the folds of the papers; their cut points are not known."""
    table = _TABLES[name]
    train_x, train_y, test_x, test_y = reference_fold(path, fold)
    for X, y in ((train_x, train_y), (test_x, test_y)):
        if X.shape != (len(y), len(table.columns)) or X.min() < 1 or y.max() >= len(table.classes):
            expected = f"{len(table.columns)} columns of numbers from 1 and labels below {len(table.classes)}"
            raise error(expected, f"shapes {X.shape} and {y.shape}", where=str(path), kind=FileError)
    largest = np.maximum(train_x.max(axis=0), test_x.max(axis=0)).tolist()
    variables = tuple(Variable(c, tuple(range(1, k + 1))) for c, k in zip(table.columns, largest, strict=True))
    target = Variable("class", table.classes)
    train, test = Dataset(variables, target, train_x - 1, train_y), Dataset(variables, target, test_x - 1, test_y)
    source = f"{path}, fold {fold + 1} of {n_folds(name)}: the reference discretisation and split"
    return Split(train, test, None, name, source, table.image_shape)


def _discretised(name: str, fold: int, seed: int, discretizer: str, n_bins: int, progress: bool) -> Split:
    require("sklearn")
    from sklearn.model_selection import StratifiedKFold, train_test_split

    X, y, columns, classes, origin = _numbers(name, progress)
    folds = n_folds(name)
    if folds == 1:
        train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=seed)
        how = "stratified split 2/3-1/3"
    else:
        splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y)
        train, test = list(splits)[fold]
        how = f"stratified fold {fold + 1} of {folds}"
    train, test = np.sort(train), np.sort(test)
    encodings = learn_encodings(list(X[train].T), discretizer, y[train], n_bins=n_bins)
    variables = tuple(map(Variable.from_encoding, columns, encodings))
    rows = Dataset(variables, Variable("class", classes), encode_matrix(X, variables), y)
    cut = "MDLP cut points" if discretizer == "mdlp" else f"{n_bins} bins ({discretizer})"
    source = f"{origin}; {how}, seed {seed}; {cut} of the training rows"
    shape = _BUNDLED[name] if name in _BUNDLED else _TABLES[name].image_shape
    return Split(rows.rows(train), rows.rows(test), None, name, source, shape)


def _halved(images: np.ndarray) -> np.ndarray:
    """Return images of half the width and height, scaled linearly with antialiasing, as the papers have them.

    A pixel is a weighted mean of 4x4 pixels, with weights 1, 3, 3, 1 in both directions: the linear kernel, twice as
    wide. The border is repeated outside of the image. Results are multiples of 1/64, which float32 holds exactly.
    """
    for axis in (1, 2):
        images = np.moveaxis(images, axis, 0).astype(np.float32)
        outer = np.concatenate([images[:1], images, images[-1:]])
        images = np.moveaxis((outer[:-3:2] + 3 * (outer[1:-2:2] + outer[2:-1:2]) + outer[3::2]) / 8, 0, axis)
    return images


def _numbers(name: str, progress: bool) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[State, ...], str]:
    """Return features, class codes, the names of the columns and of the classes, and where they came from."""
    if name in _BUNDLED:
        require("sklearn")
        import sklearn.datasets

        bunch = getattr(sklearn.datasets, f"load_{name}")()
        columns = tuple(str(column) for column in bunch.feature_names)
        return bunch.data, bunch.target, columns, tuple(bunch.target_names.tolist()), f"scikit-learn's load_{name}"
    table = _TABLES[name]
    X, labels, origin = raw_rows(name, progress)
    if name == "mnist":
        X = _halved(X.reshape(-1, 28, 28)).reshape(-1, 196)
        origin = f"{origin}, scaled to 14x14 with antialiasing"
    code = np.empty(256, dtype=np.int64)
    code[list(table.labels)] = np.arange(len(table.labels))
    return X, code[labels], table.columns, table.classes, origin
