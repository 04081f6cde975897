"""Models by the name of their file: one table from suffix to reader and writer."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinybayes.deploy.files.ac import read_ac, write_ac
from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.deploy.files.fields import JSON
from tinybayes.deploy.files.native import Model, read_native, write_native
from tinybayes.deploy.files.uai import read_uai, write_uai
from tinybayes.deploy.files.xmlbif import read_xmlbif, write_xmlbif
from tinybayes.deploy.imports.lightgbm import read_lightgbm
from tinybayes.deploy.imports.scikit_learn import as_model
from tinybayes.deploy.imports.xgboost import read_xgboost
from tinybayes.errors import FileError, TinybayesError, error
from tinybayes.infer import compile_circuit
from tinybayes.infer.alarm import Alarm
from tinybayes.model import BayesNet, Circuit, Classifier, LogLinear, NeuralNet, TreeEnsemble

PathLike = str | os.PathLike[str]
IMPORTS: dict[str, Callable[..., Model]] = {".txt": read_lightgbm, ".json": read_xgboost}  # read, but not written
FORMATS: dict[str, tuple[Callable[..., Model], Callable[..., None]]] = {
    ".tb": (read_native, write_native),
    ".bif": (read_bif, write_bif),
    ".xmlbif": (read_xmlbif, write_xmlbif),
    ".xml": (read_xmlbif, write_xmlbif),
    ".bifxml": (read_xmlbif, write_xmlbif),
    ".uai": (read_uai, write_uai),
    ".ac": (read_ac, write_ac),
}


def load(path: PathLike) -> Model:
    """Read a model; the suffix of the file selects the format.

    Parameters
    ----------
    path
        ``.tb``, the native format, holds models of every kind. ``.bif``, ``.xmlbif``, ``.xml``, ``.bifxml`` and
        ``.uai`` hold Bayesian networks, ``.ac`` circuits; these are text and may be compressed (``.bif.gz``). A
        ``.txt`` is a text model of LightGBM, a ``.json`` a model of XGBoost: their trees are read as a `TreeEnsemble`.

    Raises
    ------
    FileError
        Names the place in the file when it is not a sound model file.
    """
    suffix = _suffix(path)
    return IMPORTS[suffix](path) if suffix in IMPORTS else FORMATS[suffix][0](path)


def save(
    model: Model | Any, path: PathLike, *, metadata: dict[str, JSON] | None = None, normalize: bool = False
) -> None:
    """Write a model; the suffix of the file selects the format, as for `load`.

    Parameters
    ----------
    model
        The model; a fitted estimator of this package, of which an `AnomalyDetector` brings its alarm as metadata; or a
        fitted tree model of scikit-learn (see `from_sklearn`). For ``.ac`` a network is compiled; a
        circuit cannot be written as a network.
    path
        The file. It is replaced only when the new one is complete. The same model and metadata always give the same
        bytes.
    metadata
        For ``.tb``: a JSON object to keep beside the model, such as how it was trained.
    normalize
        For text formats, which hold probabilities: divide each row of a quantised network by its sum. The native format
        keeps every model as it is.
    """
    suffix, where = _suffix(path), str(path)
    alarm = getattr(model, "alarm_", None)
    model = as_model(model)
    if isinstance(alarm, Alarm) and suffix == ".tb":
        metadata = {"alarm": alarm.to_metadata(), **(metadata or {})}
    if suffix in IMPORTS:
        raise error(f"a model file ({', '.join(FORMATS)})", suffix, where=where, remedy="write it as .tb")
    if suffix == ".tb":
        write_native(model, path, metadata=metadata)
    elif metadata is not None:
        raise error("a .tb file", where, where="metadata", remedy="other formats cannot hold metadata")
    elif isinstance(model, LogLinear):
        remedy = "write it as .tb; a network with tied tables can be written in all formats"
        raise error("a network or a circuit", "a log-linear model", where=where, remedy=remedy)
    elif isinstance(model, NeuralNet | TreeEnsemble):
        remedy = "write it as .tb, or as code with: tinybayes export"
        raise error("a network or a circuit", _name(model), where=where, remedy=remedy)
    elif suffix == ".ac":
        write_ac(compile_circuit(model) if isinstance(model, BayesNet) else model, path)
    elif isinstance(model, Circuit):
        raise error("a Bayesian network", "a circuit", where=where, remedy="write it as .tb or .ac")
    else:
        FORMATS[suffix][1](model, path, normalize=normalize)


def read_classifier(path: PathLike) -> Classifier:
    """Read a model that has a price and can be exported, which a log-linear model is not."""
    model = load(path)
    if isinstance(model, LogLinear):
        remedy = "ask it with: tinybayes query"
        raise error("a network or a circuit", "a log-linear model", where=str(path), remedy=remedy)
    return model


def read_distribution(path: PathLike) -> BayesNet | Circuit | LogLinear:
    """Read a model that answers for any of its variables, which neural nets and trees do not."""
    model = load(path)
    if isinstance(model, NeuralNet | TreeEnsemble):
        raise _no_distribution(path, model)
    return model


def read_joint(path: PathLike) -> BayesNet | Circuit:
    """Read a network or a circuit."""
    model = read_classifier(path)
    if isinstance(model, NeuralNet | TreeEnsemble):
        raise _no_distribution(path, model)
    return model


def read_network(path: PathLike) -> BayesNet:
    """Read a model that must be a Bayesian network."""
    model = read_joint(path)
    if not isinstance(model, BayesNet):
        raise error("a Bayesian network", "a circuit", where=str(path), remedy="ask it with: tinybayes query")
    return model


def _no_distribution(path: PathLike, model: NeuralNet | TreeEnsemble) -> TinybayesError:
    remedy = "it only predicts its class: tinybayes predict"
    return error("a model of a distribution over its variables", _name(model), where=str(path), remedy=remedy)


def _name(model: NeuralNet | TreeEnsemble) -> str:
    return "a neural net" if isinstance(model, NeuralNet) else "decision trees"


def _suffix(path: PathLike) -> str:
    name = Path(path).name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in FORMATS | IMPORTS or (suffix == ".tb" and name.endswith(".gz")):
        known = ", ".join(FORMATS | IMPORTS)
        raise error(f"a model file ({known}; text also with .gz)", name, where=str(path), kind=FileError)
    return suffix
