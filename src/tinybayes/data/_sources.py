"""Where the rows of the named data sets come from: ``TINYBAYES_DATA``, the cache, or their public source.

A public file is downloaded once, over https, into the cache. Nothing enters the cache, and nothing is used, before its
content has been checked: a file by the SHA-256 of its (decompressed) bytes, a table that comes in several formats by
the order-independent sum of `content_sum`.
"""

import gzip
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
import pandas as pd

from tinybayes.data._table import DAMAGE
from tinybayes.errors import FileError, TinybayesError, error
from tinybayes.extras import require
from tinybayes.files import atomic_path, exists, is_directory, is_file

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
ROWEIS = "https://cs.nyu.edu/~roweis/data"
DENSITY = "https://raw.githubusercontent.com/UCLA-StarAI/Density-Estimation-Datasets/v1.0.1/datasets"
MNIST_ID = 554  # of mnist_784 on OpenML

SCHEMES = ("https",)
TIMEOUT = 30.0  # seconds without a byte
LIMIT = 64 << 20  # bytes of a file, decompressed

_CHECKSUMS = json.loads(Path(__file__).with_name("checksums.json").read_text(encoding="utf-8"))
SHA256: dict[str, str] = _CHECKSUMS["files"]  # of the bytes of each public file
CONTENT: dict[str, str] = _CHECKSUMS["tables"]  # `content_sum` of raw integers, labels as published (letter: A is 0)

# Variables, and rows of the parts, of density sets whose files we have not seen: they have no checksum.
UNSEEN = {
    "bnetflix": (100, {"train": 15000, "valid": 2000, "test": 3000}),
    "accidents": (111, {"train": 12758, "valid": 1700, "test": 2551}),
    "dna": (180, {"train": 1600, "valid": 400, "test": 1186}),
    "cr52": (889, {"train": 6532, "valid": 1028, "test": 1540}),
    "c20ng": (910, {"train": 11293, "valid": 3764, "test": 3764}),
    "ad": (1556, {"train": 2461, "valid": 327, "test": 491}),
}

Rows = tuple[np.ndarray, np.ndarray]  # uint8 features, uint8 labels
T = TypeVar("T")


@dataclass(frozen=True)
class Origin:
    """Where bytes came from, and the remedy when they are wrong."""

    name: str
    remedy: str

    def error(self, expected: str, got: object) -> TinybayesError:
        """Build the error for wrong bytes."""
        return error(expected, got, where=self.name, remedy=self.remedy, kind=FileError)


def content_sum(X: np.ndarray, y: np.ndarray) -> str:
    """Return the SHA-256 of the rows (bytes of the features, then of the label), sorted as byte strings and joined."""
    rows = np.column_stack([X.astype(np.uint8, copy=False), y.astype(np.uint8, copy=False)])
    return hashlib.sha256(b"".join(sorted(row.tobytes() for row in rows))).hexdigest()


def in_data_dir(relative: str) -> Path | None:
    """Return the file under the directory ``TINYBAYES_DATA``, or None where there is none."""
    directory = os.environ.get("TINYBAYES_DATA", "")
    if not directory:
        return None
    if not is_directory(directory):
        raise error("a directory", repr(directory), where="environment variable TINYBAYES_DATA", remedy="unset it")
    path = Path(directory, relative)
    return path if is_file(path) else None


def cache_dir() -> Path:
    """Return ``TINYBAYES_CACHE``, or the directory ``tinybayes`` in the platform's cache directory."""
    if os.environ.get("TINYBAYES_CACHE"):
        return Path(os.environ["TINYBAYES_CACHE"])
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "tinybayes")


def binary_rows(name: str, part: str, progress: bool) -> tuple[np.ndarray, str]:
    """Return one part (train, valid, test) of a density set as zeros and ones, and where it came from."""
    file = f"{name}.{part}.data"
    path = in_data_dir(f"density/{file}.gz")
    if path is not None:
        with _reading(_local(path)), gzip.open(path) as stream:
            content = stream.read(LIMIT + 1)
        if name in UNSEEN:
            return _plausible(name, part, content, _local(path)), str(path)
        return _zeros_and_ones(file, content, _local(path)), str(path)
    url = f"{DENSITY}/{name}/{file}"
    if name in UNSEEN:  # nothing is downloaded that cannot be checked
        remedy = f"download {url}, compress it with gzip, and set TINYBAYES_DATA to the directory above density"
        expected = f"the file density/{file}.gz in the directory TINYBAYES_DATA"
        raise error(expected, "none", where=f"data set {name}", remedy=remedy, kind=FileError)
    return _published(url, partial(_zeros_and_ones, file), progress), url


def raw_rows(name: str, progress: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the raw features and labels of letter, satimage, usps or mnist, and where they came from."""
    path = in_data_dir(f"classification/raw/{name}.npz")
    if path is not None:
        return *_npz_rows(name, path, _local(path)), str(path)
    if name == "mnist":
        return *_mnist(), f"OpenML data set {MNIST_ID}"
    if name == "letter":
        url = f"{UCI}/letter-recognition/letter-recognition.data"
        return *_published(url, _letter, progress), url
    if name == "usps":
        url = f"{ROWEIS}/usps_all.mat"
        return *_published(url, _usps, progress), url
    url = f"{UCI}/statlog/satimage"
    parts = [_published(f"{url}/{file}", partial(_satimage, file), progress) for file in ("sat.trn", "sat.tst")]
    X, y = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return X, y, f"{url}/sat.trn and sat.tst"


def reference_fold(path: Path, fold: int) -> list[np.ndarray]:
    """Return training features and labels, test features and labels of a fold (from 0) of a reference file."""
    origin = _local(path)
    keys = [f"{kind}_{part}_fold{fold + 1}" for part in ("tr", "te") for kind in ("x", "t")]
    with _reading(origin), open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        parts = [arrays[key] for key in keys]
    for key, array, axes in zip(keys, parts, (2, 1, 2, 1), strict=True):
        _require_bytes(array, axes, f"{path}, array {key}")
    return parts


def _published(url: str, read: Callable[[bytes, Origin], T], progress: bool) -> T:
    """Read a public file from the cache; download it first where it is not there yet."""
    path = cache_dir() / url.rpartition("/")[2]
    if exists(path):
        origin = _cached(path)
        with _reading(origin):
            content = path.read_bytes()
        return read(content, origin)
    content = _download(url, path, progress)
    result = read(content, Origin(url, f"try again, or put the right file at {path}"))
    with _entering_cache(path) as temporary:
        temporary.write_bytes(content)
    return result


def _download(url: str, path: Path, progress: bool) -> bytes:
    _require_scheme(url)
    remedy = f"go online, download it by hand to {path}, or set TINYBAYES_DATA to a directory that holds the data"
    try:
        request = Request(url, headers={"User-Agent": "tinybayes"})  # noqa: S310 - the scheme was checked
        with build_opener(_Redirects).open(request, timeout=TIMEOUT) as response:
            size = int(response.headers.get("Content-Length") or -1)
            with _shown(response, size, path.name) if progress else nullcontext(response) as stream:
                content = b"".join(_blocks(stream))
    except TinybayesError:
        raise
    except (OSError, HTTPException, ValueError) as problem:
        raise Origin(url, remedy).error("to download it", _reason(problem)) from problem
    if len(content) > LIMIT:
        raise error(f"at most {LIMIT:,} bytes", "more", where=url, kind=FileError)
    if len(content) < size:
        raise error(f"{size:,} bytes", f"only {len(content):,}", where=url, remedy="try again", kind=FileError)
    return content


def _blocks(stream: Any) -> Iterator[bytes]:
    """Read to the end, or a little past `LIMIT`."""
    total = 0
    while total <= LIMIT and (block := stream.read(1 << 16)):
        total += len(block)
        yield block


class _Redirects(HTTPRedirectHandler):
    """Follow redirections to secure addresses only."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Check where the redirection leads."""
        _require_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _require_scheme(url: str) -> None:
    if urlsplit(url).scheme not in SCHEMES:
        raise error(f"an address that begins with {SCHEMES[0]}://", url, where="download", kind=FileError)


def _shown(response: Any, size: int, name: str) -> Any:
    from rich.console import Console
    from rich.progress import wrap_file

    return wrap_file(response, max(size, 0), description=name, console=Console(stderr=True))


def _entering_cache(path: Path) -> Any:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        origin = Origin(str(path.parent), "set TINYBAYES_CACHE to one that can be written to")
        raise origin.error("a directory for the cache", problem.strerror or problem) from problem
    return atomic_path(path)


def _local(path: Path) -> Origin:
    return Origin(str(path), "restore the file, or unset TINYBAYES_DATA to use the public one")


def _cached(path: Path) -> Origin:
    return Origin(str(path), "delete the file and load again")


def _reason(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


@contextmanager
def _reading(origin: Origin) -> Iterator[None]:
    """Turn the exceptions of decoders on damaged bytes into our error."""
    try:
        yield
    except DAMAGE as problem:
        raise origin.error("a readable file", _reason(problem)) from problem


def _require_sum(actual: str, expected: str, origin: Origin) -> None:
    if actual != expected:
        raise origin.error(f"content with the SHA-256 sum {expected}", actual)


def _require_bytes(array: np.ndarray, axes: int, where: str) -> None:
    if array.dtype != np.uint8 or array.ndim != axes or not array.size:
        got = f"{array.dtype} of shape {array.shape}"
        raise error(f"uint8 numbers with {axes} axes", got, where=where, kind=FileError)


def _npz_rows(name: str, path: Path, origin: Origin) -> Rows:
    parts = [("x_train", "y_train"), ("x_test", "y_test")] if name == "mnist" else [("x", "y")]
    with _reading(origin), open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        X = np.concatenate([arrays[x] for x, _ in parts])
        y = np.concatenate([arrays[y] for _, y in parts])
    X = X.reshape(len(X), -1) if X.ndim > 2 else X
    _require_bytes(X, 2, str(path))
    _require_bytes(y, 1, str(path))
    if len(X) != len(y):
        raise error(f"a label for each of {len(X)} rows", len(y), where=str(path), kind=FileError)
    _require_sum(content_sum(X, y), CONTENT[name], origin)
    return X, y


def _zeros_and_ones(file: str, content: bytes, origin: Origin) -> np.ndarray:
    _require_sum(hashlib.sha256(content).hexdigest(), SHA256[file], origin)
    width = content.index(b"\n") + 1  # a digit and a comma, or the end of the line, for each variable
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, width)[:, ::2] - ord("0")


def _plausible(name: str, part: str, content: bytes, origin: Origin) -> np.ndarray:
    """Read rows that have no checksum: zeros and ones, as many as were published."""
    columns, rows = UNSEEN[name][0], UNSEEN[name][1][part]
    content = content.replace(b"\r", b"").rstrip(b"\n") + b"\n"
    expected = f"{rows:,} rows of {columns:,} zeros and ones, separated by commas"
    if len(content) != rows * 2 * columns:
        raise origin.error(expected, f"{len(content):,} bytes")
    table = np.frombuffer(content, dtype=np.uint8).reshape(rows, 2 * columns)
    values = table[:, ::2] - ord("0")
    if (values > 1).any() or (table[:, 1:-1:2] != ord(",")).any() or (table[:, -1] != ord("\n")).any():
        raise origin.error(expected, "other bytes")
    return values


def _letter(content: bytes, origin: Origin) -> Rows:
    _require_sum(hashlib.sha256(content).hexdigest(), SHA256["letter-recognition.data"], origin)
    table = pd.read_csv(io.BytesIO(content), header=None)
    return table.iloc[:, 1:].to_numpy(np.uint8), table[0].map(ord).to_numpy(np.uint8) - ord("A")


def _satimage(file: str, content: bytes, origin: Origin) -> Rows:
    _require_sum(hashlib.sha256(content).hexdigest(), SHA256[file], origin)
    table = pd.read_csv(io.BytesIO(content), header=None, sep=" ").to_numpy(np.uint8)
    return table[:, :-1], table[:, -1]


def _usps(content: bytes, origin: Origin) -> Rows:
    """Read Roweis's MATLAB file: pixels by images by digits, the digits in the order 1, 2, ..., 9, 0."""
    require("scipy")
    from scipy.io import loadmat

    try:
        data = np.asarray(loadmat(io.BytesIO(content), variable_names=["data"])["data"], dtype=np.uint8)
        pixels, images, digits = data.shape
    except Exception as problem:  # SciPy raises almost anything on damaged bytes
        raise origin.error("a MATLAB file", _reason(problem)) from problem
    X = data.transpose(2, 1, 0).reshape(-1, pixels)
    y = np.repeat((np.arange(digits, dtype=np.uint8) + 1) % 10, images)
    _require_sum(content_sum(X, y), CONTENT["usps"], origin)
    return X, y


def _mnist() -> Rows:
    path = cache_dir() / "mnist.npz"
    if exists(path):
        return _npz_rows("mnist", path, _cached(path))
    require("sklearn")
    from sklearn import datasets

    remedy = "go online, or set TINYBAYES_DATA to a directory that holds classification/raw/mnist.npz"
    origin = Origin(f"OpenML data set {MNIST_ID}", remedy)
    try:
        # Not in scikit-learn's cache: ours takes a tenth of the space, and holds only checked content.
        bunch = datasets.fetch_openml(data_id=MNIST_ID, as_frame=False, cache=False)
        X, y = np.asarray(bunch.data).astype(np.uint8), np.asarray(bunch.target).astype(np.uint8)
    except (OSError, HTTPException, ValueError) as problem:
        raise origin.error("to download it", _reason(problem)) from problem
    _require_sum(content_sum(X, y), CONTENT["mnist"], origin)
    with _entering_cache(path) as temporary:
        np.savez_compressed(temporary, x_train=X[:60_000], y_train=y[:60_000], x_test=X[60_000:], y_test=y[60_000:])
    return X, y
