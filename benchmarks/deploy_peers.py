"""The peers of `deploy.py`: scikit-learn models, and what other generators of C make of them.

All of them get the raw numbers, in the type that their code takes. emlearn cuts the thresholds of trees to integers,
which turns 34 % error of a small tree into 68 % on digits; so its trees are learned from, and get, the doubled numbers,
whose thresholds are whole. What stands around their code to call it is a function of one line, or for m2cgen the arg
max over its output.
"""

import contextlib
import importlib
import re
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinybayes.deploy._boards.monitor import Probe

DECLARED = '#include <stdint.h>\n#ifdef __cplusplus\nextern "C"\n#endif\nint32_t peer_call(const {element} *x);\n'
CPP = ("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")


@dataclass(frozen=True)
class Exported:
    """Code of a peer, how to call it, and what it needs from the compiler."""

    files: dict[str, str]
    probe: Probe
    flags: tuple[str, ...] = ()


def models() -> dict[str, Callable[[], Any]]:
    """Return the scikit-learn models by name; small and large ones of each kind."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "tree, depth 5": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
        "tree, depth 8": lambda: DecisionTreeClassifier(max_depth=8, random_state=0),
        "tree": lambda: DecisionTreeClassifier(random_state=0),
        "forest of 10, depth 8": lambda: RandomForestClassifier(10, max_depth=8, random_state=0),
        "forest of 10": lambda: RandomForestClassifier(10, random_state=0),
        "forest of 30": lambda: RandomForestClassifier(30, random_state=0),
        "MLP of 32": lambda: MLPClassifier((32,), max_iter=300, random_state=0),
        "Gaussian NB": lambda: GaussianNB(var_smoothing=1e-3),
        "logistic regression": lambda: LogisticRegression(max_iter=300),
    }


def emlearn_inline(model: Any, features: int, classes: int) -> Exported:
    return _emlearn(model, features, "inline")


def emlearn_loadable(model: Any, features: int, classes: int) -> Exported:
    return _emlearn(model, features, "loadable")


def _emlearn(model: Any, features: int, method: str) -> Exported:
    with np.errstate():  # its import makes NumPy raise on underflow, everywhere
        emlearn = importlib.import_module("emlearn")
    trees = hasattr(model, "tree_") or hasattr(model, "estimators_")
    options = {"dtype": "int16_t"} if trees else {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it compiles and writes where it stands
        converted = emlearn.convert(model, method=method, **options)
        code = converted.save(name="peer", inference=[method]) if trees else converted.save(name="peer")
    element = "int16_t" if trees else "float"
    call = f'#include <eml_common.h>\n{code}\n#include "peer.h"\n'
    call += f"int32_t peer_call(const {element} *x) {{ return (int32_t)peer_predict(x, {features}); }}\n"
    files = {"peer.c": call, "peer.h": DECLARED.format(element=element)}
    return Exported(files, Probe("peer.h", "peer_call", element, features, "int32_t"), (f"-I{emlearn.includedir}",))


def micromlgen(model: Any, features: int, classes: int) -> Exported:
    if hasattr(model, "var_"):
        model.sigma_ = model.var_  # as older versions of scikit-learn called it
    code = importlib.import_module("micromlgen").port(model)
    kind = re.search(r"class (\w+) \{", code)
    assert kind is not None
    arduino = "#define abs(x) ((x) > 0 ? (x) : -(x))\n"  # as Arduino has it
    call = f'#include <stdint.h>\n#include <math.h>\n{arduino}{code}\n#include "peer.h"\n'
    call += "int32_t peer_call(const float *x) {\n"
    call += f"    Eloquent::ML::Port::{kind[1]} model;\n    return model.predict(const_cast<float *>(x));\n}}\n"
    files = {"peer.cpp": call, "peer.h": DECLARED.format(element="float"), "cstdarg": "#include <stdarg.h>\n"}
    return Exported(files, Probe("peer.h", "peer_call", "float", features, "int32_t"), (*CPP, "-I."))


def m2cgen(model: Any, features: int, classes: int) -> Exported:
    code = importlib.import_module("m2cgen").export_to_c(model)
    call = f'{code}\n#include "peer.h"\nint32_t peer_call(const double *x) {{\n    double s[{classes}];\n'
    call += "    int32_t c, best = 0;\n    score((double *)x, s);\n"
    call += f"    for (c = 1; c < {classes}; ++c) {{ if (s[c] > s[best]) {{ best = c; }} }}\n    return best;\n}}\n"
    files = {"peer.c": call, "peer.h": DECLARED.format(element="double")}
    return Exported(files, Probe("peer.h", "peer_call", "double", features, "int32_t"))


TREES = ("tree, depth 5", "tree, depth 8", "tree", "forest of 10, depth 8", "forest of 10", "forest of 30")
Exporters = dict[str, tuple[Callable[[Any, int, int], Exported], tuple[str, ...]]]
EXPORTERS: Exporters = {
    "emlearn inline": (emlearn_inline, TREES),
    "emlearn": (emlearn_loadable, (*TREES, "MLP of 32", "Gaussian NB")),
    "micromlgen": (micromlgen, (*TREES[:-1], "Gaussian NB", "logistic regression")),
    "m2cgen": (m2cgen, (*TREES[:4], "logistic regression")),
}


def scale(library: str, name: str) -> int:
    """Return by what the numbers are multiplied."""
    return 2 if library.startswith("emlearn") and name in TREES else 1


def fit(name: str, X: np.ndarray, y: np.ndarray) -> Any:
    """Fit a model on raw numbers as float32, which is what trees compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged: the figure stands for itself
        return models()[name]().fit(X.astype(np.float32), y)
