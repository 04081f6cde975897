"""The peers of `deploy.py`: scikit-learn models, and what other generators of C make of them.

Trees get the numbers and the codes of categories; the other models get indicators of the categories, and their
scaling of the numbers is folded into the weights, so that it costs nothing on the device. emlearn cuts the thresholds
of trees to integers; so its trees are learned from, and get, 16-bit integers that are doubled, whose thresholds are
integers. Code around the peers' to call it is a function of one line, or the arg max over the output of m2cgen.
"""

import contextlib
import copy
import importlib
import re
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from deploy_tables import Table
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tinybayes.data.encode import encode_matrix
from tinybayes.deploy._boards.monitor import Probe
from tinybayes.deploy.imports.scikit_learn import from_sklearn
from tinybayes.deploy.programs.c import to_c
from tinybayes.infer import predict_codes

DECLARED = '#include <stdint.h>\n#ifdef __cplusplus\nextern "C"\n#endif\nint32_t peer_call(const {element} *x);\n'
CPP = ("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
HALF = 2**14 - 1  # so that the double fits 16 bits

# Each size of each kind, and the settings among which validation rows choose.
LEAVES = ("min_samples_leaf", (1, 4, 16))
MODELS: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "tree, depth 5": (DecisionTreeClassifier(max_depth=5, random_state=0), *LEAVES),
    "tree, depth 8": (DecisionTreeClassifier(max_depth=8, random_state=0), *LEAVES),
    "tree": (DecisionTreeClassifier(random_state=0), *LEAVES),
    "forest of 10, depth 8": (RandomForestClassifier(10, max_depth=8, random_state=0), *LEAVES),
    "forest of 10": (RandomForestClassifier(10, random_state=0), *LEAVES),
    "forest of 30": (RandomForestClassifier(30, random_state=0), *LEAVES),
    "MLP of 32": (MLPClassifier((32,), max_iter=200, random_state=0), "alpha", (1e-4, 1e-1)),
    "Gaussian NB": (GaussianNB(), "var_smoothing", (1e-9, 1e-6, 1e-3)),
    "logistic regression": (LogisticRegression(max_iter=300), "C", (0.03, 1.0, 30.0)),
}
TREES = tuple(MODELS)[:6]
OWN = tuple(f"tinybayes of scikit-learn's{how}" for how in ("", ", nested", ", votes", ", votes, nested"))  # by us
SCALED = ("MLP of 32", "logistic regression")


@dataclass(frozen=True)
class Exported:
    """Code of a peer, how to call it, and what it needs from the compiler."""

    files: dict[str, str]
    probe: Probe
    flags: tuple[str, ...] = ()
    labels: Callable[[np.ndarray], np.ndarray] | None = None  # what the code should say, if not what the model says


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table as the peers get it."""

    table: Table

    @cached_property
    def encoders(self) -> dict[str, ColumnTransformer]:
        """Fill gaps by the median or the most frequent category, and make numbers of categories."""
        ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        kinds = {"ordinal": ordinal, "one-hot": OneHotEncoder(handle_unknown="ignore", sparse_output=False)}
        return {
            kind: ColumnTransformer(
                [
                    ("numbers", SimpleImputer(strategy="median"), self.table.numbers),
                    ("words", make_pipeline(SimpleImputer(strategy="most_frequent"), encoder), self.table.categories),
                ]
            ).fit(self.table.train)
            for kind, encoder in kinds.items()
        }

    def rows(self, name: str, frame: pd.DataFrame, element: str = "float") -> np.ndarray:
        """Return rows for a model by name, as float32 or, for trees, as integers, those of 16 bits doubled."""
        encoder = self.encoders["ordinal" if name in TREES else "one-hot"]
        rows = np.asarray(encoder.transform(frame), dtype=np.float32)
        if element == "int32_t":
            return np.rint(rows).astype(np.int32)
        return (
            rows if element == "float" else (2 * np.rint(rows * self.steps)).clip(-(2**15), 2**15 - 1).astype(np.int16)
        )

    @cached_property
    def steps(self) -> np.ndarray:
        """Factors, powers of two, that make 15-bit integers of the columns; 1 for small integers."""
        rows = self.rows("tree", self.table.train)
        room = np.floor(np.log2(HALF / np.maximum(np.abs(rows).max(axis=0), 1e-9)))
        return np.exp2(np.where((rows % 1 == 0).all(axis=0), np.minimum(room, 0), room))

    @property
    def small(self) -> bool:
        """Whether all raw values are 15-bit integers."""
        return bool((self.steps == 1).all())


@dataclass(eq=False)
class Fitter:
    """Fits models by name; validation rows, a fifth of the training rows, choose their settings."""

    data: Encoded

    def __post_init__(self) -> None:
        self.y = self.data.table.codes(self.data.table.train)
        parts = train_test_split(np.arange(len(self.y)), test_size=0.2, stratify=self.y, random_state=0)
        self.part, self.held_out = parts
        self.chosen: dict[str, tuple[Any, float]] = {}
        self.fitted: dict[tuple[str, str], Any] = {}

    def choose(self, name: str) -> tuple[Any, float]:
        """Return the best setting of a model and its validation error."""
        if name not in self.chosen:
            _, parameter, values = MODELS[name]
            X = self.data.rows(name, self.data.table.train)
            wrong = {}
            for value in values:
                model = fit(name, {parameter: value}, X[self.part], self.y[self.part])
                wrong[value] = float(np.mean(model.predict(X[self.held_out]) != self.y[self.held_out]))
            best = min(wrong, key=lambda value: wrong[value])
            self.chosen[name] = best, wrong[best]
        return self.chosen[name]

    def model(self, name: str, element: str) -> Any:
        """Return a model with the chosen setting, fitted on all training rows."""
        if (name, element) not in self.fitted:
            setting = {MODELS[name][1]: self.choose(name)[0]}
            self.fitted[name, element] = fit(
                name, setting, self.data.rows(name, self.data.table.train, element), self.y
            )
        return self.fitted[name, element]


def fit(name: str, setting: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Any:
    """Fit a model; one that wants scaled numbers takes raw ones afterwards."""
    model = copy.deepcopy(MODELS[name][0]).set_params(**setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged: the figure stands for itself
        if name not in SCALED:
            return model.fit(X, y)
        scaler = StandardScaler().fit(X)
        return fold(model.fit(scaler.transform(X), y), scaler)


def fold(model: Any, scaler: StandardScaler) -> Any:
    """Fold the scaling into the first weights."""
    if isinstance(model, MLPClassifier):
        model.coefs_[0] = model.coefs_[0] / scaler.scale_[:, None]
        model.intercepts_[0] = model.intercepts_[0] - scaler.mean_ @ model.coefs_[0]
    else:
        model.coef_ = model.coef_ / scaler.scale_
        model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_
    return model


def emlearn_inline(model: Any, element: str, features: int, classes: int) -> Exported:
    return _emlearn(model, element, features, "inline")


def emlearn_loadable(model: Any, element: str, features: int, classes: int) -> Exported:
    return _emlearn(model, element, features, "loadable")


def _emlearn(model: Any, element: str, features: int, method: str) -> Exported:
    with np.errstate():  # its import makes NumPy raise on underflow, everywhere
        emlearn = importlib.import_module("emlearn")
    trees = hasattr(model, "tree_") or hasattr(model, "estimators_")
    options = {"dtype": element} if trees else {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it compiles and writes where it stands
        converted = emlearn.convert(model, method=method, **options)
        code = converted.save(name="peer", inference=[method]) if trees else converted.save(name="peer")
    call = f'#include <eml_common.h>\n{code}\n#include "peer.h"\n'
    call += f"int32_t peer_call(const {element} *x) {{ return (int32_t)peer_predict(x, {features}); }}\n"
    files = {"peer.c": call, "peer.h": DECLARED.format(element=element)}
    return Exported(files, Probe("peer.h", "peer_call", element, features, "int32_t"), (f"-I{emlearn.includedir}",))


def micromlgen(model: Any, element: str, features: int, classes: int) -> Exported:
    if hasattr(model, "var_"):
        model.sigma_ = model.var_  # as older versions of scikit-learn called it
    if hasattr(model, "coef_") and classes == 2:  # its code takes the one row of weights as those of the first class
        model = copy.deepcopy(model)
        model.coef_, model.intercept_ = -model.coef_, -model.intercept_
    code = importlib.import_module("micromlgen").port(model)
    kind = re.search(r"class (\w+) \{", code)
    assert kind is not None
    arduino = "#define abs(x) ((x) > 0 ? (x) : -(x))\n"  # as Arduino has it
    call = f'#include <stdint.h>\n#include <math.h>\n{arduino}{code}\n#include "peer.h"\n'
    call += "int32_t peer_call(const float *x) {\n"
    call += f"    Eloquent::ML::Port::{kind[1]} model;\n    return model.predict(const_cast<float *>(x));\n}}\n"
    files = {"peer.cpp": call, "peer.h": DECLARED.format(element="float"), "cstdarg": "#include <stdarg.h>\n"}
    return Exported(files, Probe("peer.h", "peer_call", "float", features, "int32_t"), (*CPP, "-I."))


def m2cgen(model: Any, element: str, features: int, classes: int) -> Exported:
    code = importlib.import_module("m2cgen").export_to_c(model)
    call = f'{code}\n#include "peer.h"\nint32_t peer_call(const double *x) {{\n'
    if "double score(" in code:  # one number for two classes
        call += "    return score((double *)x) > 0;\n}\n"
    else:
        call += f"    double s[{classes}];\n    int32_t c, best = 0;\n    score((double *)x, s);\n"
        call += f"    for (c = 1; c < {classes}; ++c) {{ if (s[c] > s[best]) {{ best = c; }} }}\n    return best;\n}}\n"
    files = {"peer.c": call, "peer.h": DECLARED.format(element="double")}
    return Exported(files, Probe("peer.h", "peer_call", "double", features, "int32_t"))


def tinybayes(
    model: Any, element: str, features: int, classes: int, form: str | None = None, votes: bool = False
) -> Exported:
    """Return our code of a peer's tree or forest: the smallest form, or nested comparisons; shares, or votes."""
    trees = from_sklearn(model, votes=votes)
    raw = "float" if element == "float" else "int"
    files = to_c(trees, name="own", raw=raw, gaps=False, extras=False, form=form)
    probe = Probe("own.h", "own_predict_raw", element, features, "uint8_t" if classes <= 256 else "uint16_t")

    def labels(rows: np.ndarray) -> np.ndarray:
        return predict_codes(trees, encode_matrix(rows, trees.variables))

    return Exported(files, probe, labels=labels if votes else None)


Export = Callable[[Any, str, int, int], Exported]
EXPORTERS: dict[str, tuple[Export, tuple[str, ...]]] = {
    "emlearn inline": (emlearn_inline, TREES),
    "emlearn": (emlearn_loadable, (*TREES, "MLP of 32", "Gaussian NB")),
    "micromlgen": (micromlgen, (*TREES[:-1], "Gaussian NB", "logistic regression")),
    "m2cgen": (m2cgen, (*TREES[:4], "logistic regression")),
    OWN[0]: (tinybayes, TREES),
    OWN[1]: (partial(tinybayes, form="nested"), TREES[3:]),
    OWN[2]: (partial(tinybayes, votes=True), TREES[3:]),
    OWN[3]: (partial(tinybayes, form="nested", votes=True), TREES[3:]),
}


def element_of(library: str, name: str, data: Encoded) -> str:
    """Return the type of the numbers that trees take.

    For emlearn's, 16 bits, but floats inline where these lose digits; for ours, integers where all values are integers.
    """
    if library in OWN:
        return "int32_t" if data.small else "float"
    if name not in TREES or not library.startswith("emlearn"):
        return "float"
    return "int16_t" if library == "emlearn" or data.small else "float"
