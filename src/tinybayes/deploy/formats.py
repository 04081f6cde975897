"""Models by the name of their file: one table from suffix to reader and writer."""

import os
from collections.abc import Callable
from pathlib import Path

from tinybayes.deploy.bif import read_bif, write_bif
from tinybayes.deploy.native import load, save
from tinybayes.deploy.uai import read_uai, write_uai
from tinybayes.deploy.xmlbif import read_xmlbif, write_xmlbif
from tinybayes.errors import FileError, error
from tinybayes.model import BayesNet

PathLike = str | os.PathLike[str]
FORMATS: dict[str, tuple[Callable[..., BayesNet], Callable[..., None]]] = {
    ".tb": (load, save),
    ".bif": (read_bif, write_bif),
    ".xmlbif": (read_xmlbif, write_xmlbif),
    ".xml": (read_xmlbif, write_xmlbif),
    ".uai": (read_uai, write_uai),
}


def read_model(path: PathLike) -> BayesNet:
    """Read a model from a file whose suffix tells its format; text formats may be gzipped."""
    return FORMATS[_suffix(path)][0](path)


def write_model(model: BayesNet, path: PathLike, *, normalize: bool = False) -> None:
    """Write a model to a file whose suffix tells the format; text formats may be gzipped.

    Parameters
    ----------
    model
        The model.
    path
        The file.
    normalize
        For the text formats, which hold probabilities: divide each row of a quantised network by its sum. The
        native format keeps every model as it is.
    """
    suffix = _suffix(path)
    if suffix == ".tb":
        save(model, path)
    else:
        FORMATS[suffix][1](model, path, normalize=normalize)


def _suffix(path: PathLike) -> str:
    name = Path(path).name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in FORMATS or (suffix == ".tb" and name.endswith(".gz")):
        known = ", ".join(FORMATS)
        raise error(f"a model file ({known}; text also with .gz)", name, where=str(path), kind=FileError)
    return suffix
