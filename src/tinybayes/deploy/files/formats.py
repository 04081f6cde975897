"""Models by the name of their file: one table from suffix to reader and writer."""

import os
from collections.abc import Callable
from pathlib import Path

from tinybayes.deploy.files.ac import read_ac, write_ac
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.files.native import load, save
from tinybayes.deploy.files.uai import read_uai, write_uai
from tinybayes.deploy.files.xmlbif import read_xmlbif, write_xmlbif
from tinybayes.errors import FileError, TinybayesError, error
from tinybayes.infer import compile_circuit
from tinybayes.model import BayesNet, Circuit, LogLinear, NeuralNet

PathLike = str | os.PathLike[str]
Model = BayesNet | Circuit | NeuralNet
FORMATS: dict[str, tuple[Callable[..., Model | LogLinear], Callable[..., None]]] = {
    ".tb": (load, save),
    ".bif": (read_bif, write_bif),
    ".xmlbif": (read_xmlbif, write_xmlbif),
    ".xml": (read_xmlbif, write_xmlbif),
    ".bifxml": (read_xmlbif, write_xmlbif),
    ".uai": (read_uai, write_uai),
    ".ac": (read_ac, write_ac),
}


def read_model(path: PathLike) -> Model:
    """Read a network, a circuit or a neural net; the suffix tells the format, and text may be gzipped."""
    model = read_any(path)
    if isinstance(model, LogLinear):
        remedy = "ask it with: tinybayes query"
        raise error("a network or a circuit", "a log-linear model", where=str(path), remedy=remedy)
    return model


def read_any(path: PathLike) -> Model | LogLinear:
    """Read a model of any kind; log-linear models and neural nets are in native files only."""
    return FORMATS[_suffix(path)][0](path)


def read_joint(path: PathLike) -> BayesNet | Circuit:
    """Read a model of the joint distribution of its variables, which a neural net is not."""
    model = read_model(path)
    if isinstance(model, NeuralNet):
        raise _no_distribution(path)
    return model


def read_distribution(path: PathLike) -> BayesNet | Circuit | LogLinear:
    """Read whatever can be asked for probabilities of any of its variables."""
    model = read_any(path)
    if isinstance(model, NeuralNet):
        raise _no_distribution(path)
    return model


def _no_distribution(path: PathLike) -> TinybayesError:
    remedy = "it only predicts its class: tinybayes predict"
    return error("a model of a distribution over its variables", "a neural net", where=str(path), remedy=remedy)


def write_model(model: Model | LogLinear, path: PathLike, *, normalize: bool = False) -> None:
    """Write a model to a file whose suffix tells the format; text formats may be gzipped.

    Parameters
    ----------
    model
        The model. A network is compiled for a format of circuits; a circuit cannot be written as a network.
    path
        The file.
    normalize
        For the text formats, which hold probabilities: divide each row of a quantised network by its sum. The
        native format keeps every model as it is.
    """
    suffix = _suffix(path)
    if suffix == ".tb":
        save(model, path)
    elif isinstance(model, LogLinear):
        remedy = "write it as .tb; a network with tied tables can be written in all formats"
        raise error("a network or a circuit", "a log-linear model", where=str(path), remedy=remedy)
    elif isinstance(model, NeuralNet):
        remedy = "write it as .tb, or as code with: tinybayes export"
        raise error("a network or a circuit", "a neural net", where=str(path), remedy=remedy)
    elif suffix == ".ac":
        write_ac(compile_circuit(model) if isinstance(model, BayesNet) else model, path)
    elif isinstance(model, Circuit):
        raise error("a Bayesian network", "a circuit", where=str(path), remedy="write it as .tb or .ac")
    else:
        FORMATS[suffix][1](model, path, normalize=normalize)


def _suffix(path: PathLike) -> str:
    name = Path(path).name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in FORMATS or (suffix == ".tb" and name.endswith(".gz")):
        known = ", ".join(FORMATS)
        raise error(f"a model file ({known}; text also with .gz)", name, where=str(path), kind=FileError)
    return suffix


def read_network(path: PathLike) -> BayesNet:
    """Read a model that must be a Bayesian network."""
    model = read_joint(path)
    if not isinstance(model, BayesNet):
        raise error("a Bayesian network", "a circuit", where=str(path), remedy="ask it with: tinybayes query")
    return model
