"""Anomaly detectors on six tables with one class held out: python benchmarks/anomalies.py [--only ring | --page-only].

The rarest class of a table is the anomaly: no detector sees it, and each learns from the training rows of the other
classes. The figure is the area under the ROC curve over the test rows. Ours has 8 hidden states, plain and with
16 distinct parameters. It cut numbers by quantiles at first. That it did badly on ring, with 0.61, made equal
widths the default: ring is no independent test of this choice, and the figures with quantiles are kept. Of the Gaussian
mixtures, held-out usual rows choose the number of components and the kind of covariance by their likelihood. The other
peers have scikit-learn's defaults. Nothing else was chosen by test rows. Peers get numbers scaled to unit variance,
gaps filled, and indicators of categories; that encoding is not in their flash, while ours begins with raw rows.

Flash and instructions are those of a call on a Cortex-M0+, linked and emulated: our exported program, and that of
emlearn for Gaussian mixtures and elliptic envelopes (its mixtures have full covariances, whatever scikit-learn's are).
For detectors that nobody exports, and programs that do not fit the board, the bytes are those of the parameters alone,
and are marked: 4 for each number, 1 for the feature of a split. Needs `TINYBAYES_DATA`, Debian's gcc-arm-none-eabi,
libnewlib-arm-none-eabi and qemu-system-arm, and ``pip install emlearn``.
"""

import argparse
import contextlib
import importlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import provenance
from sklearn.compose import ColumnTransformer
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tinybayes import AnomalyDetector, TinybayesError, export
from tinybayes.deploy._boards.boards import find_board
from tinybayes.deploy._boards.monitor import Probe
from tinybayes.deploy.measure import measure, measure_program
from tinybayes.deploy.programs.density_plan import make_density_plan
from tinybayes.estimators._base import encode

TABLES = ("chess", "ionosphere", "mushroom", "phoneme", "ring", "splice")
LABEL, ROWS, STATES, LEVELS, COMPONENTS = "label", 64, 8, 16, (1, 2, 4, 8)
ROOT = Path(__file__).parents[1]
PAGE, BEGIN, END = ROOT / "docs" / "learning_circuits.md", "<!-- anomalies -->", "<!-- end -->"
OWN = {
    "latent tree": {},
    f"{LEVELS} levels": {"levels": LEVELS},
    "quantiles": {"discretizer": "quantile"},  # the default before these tables were looked at
}
PEERS = ("isolation forest", "local outlier factor", "Gaussian mixture", "elliptic envelope")
MODELS = (*OWN, *PEERS)
DECLARED = "#include <stdint.h>\nint32_t peer_call(const float *x);\n"
CALLS = {
    "Gaussian mixture": "static float p[{components}];\n    float s;\n    (void)peer_score(x, {features}, p, &s);\n"
    "    return s < {threshold}f;",
    "elliptic envelope": "return peer_predict(x, {features}) > {threshold}f;",
}


def table(name: str) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, str]:
    """Return usual training rows, test rows, which of these are anomalies, and their class."""
    folder = Path(os.environ.get("TINYBAYES_DATA", "nowhere")) / "tables"
    train, test = (pd.read_csv(folder / f"{name}.{part}.csv.gz") for part in ("train", "test"))
    rarest = train[LABEL].value_counts().sort_index().idxmin()
    usual = train[train[LABEL] != rarest].drop(columns=LABEL).reset_index(drop=True)
    return usual, test.drop(columns=LABEL), (test[LABEL] == rarest).to_numpy(), str(rarest)


def ours(
    train: pd.DataFrame, test: pd.DataFrame, anomaly: np.ndarray, models: Sequence[str] = tuple(OWN)
) -> Iterator[dict[str, Any]]:
    """Learn and measure our detectors."""
    for name in models:
        options = OWN[name]
        began = time.perf_counter()
        detector = AnomalyDetector(hidden_states=STATES, **options).fit(train)
        seconds = time.perf_counter() - began
        score = detector.score_samples(test)
        flags = detector.predict(test) == -1
        plan = make_density_plan(detector.circuit_, alarm=detector.alarm_)
        codes = encode(test, detector.circuit_.variables)[:ROWS]  # a state that was never seen is measured as a gap
        rows = plan.features.values(codes)
        files = {file: str(content) for file, content in export(detector, name="odd").items()}
        (board,) = measure(files, "odd", rows, raw=plan.features.value != "", boards=("m0+",), repeat=1)
        found = np.ldexp(board.scores[:, 0].astype(float), -plan.density.fraction)
        yield {
            "model": name,
            "auc": auc(anomaly, score),
            "false_alarms": round(float(flags[~anomaly].mean()), 4),
            "detected": round(float(flags[anomaly].mean()), 4),
            "flash": board.flash,
            "ram": board.ram,
            "instructions": round(board.instructions),
            "measured": True,
            "edges": detector.n_edges_,
            "bound": plan.density.bound,
            "largest_error": float(np.abs(found - detector.circuit_.log_likelihood(codes)).max()),
            "seconds": round(seconds, 1),
        }


def auc(anomaly: np.ndarray, score: np.ndarray) -> float:
    return round(float(roc_auc_score(anomaly, -score)), 4)


def encoder(train: pd.DataFrame) -> ColumnTransformer:
    """Scale numbers and make indicators of categories, gaps filled."""
    numbers = [column for column in train if pd.api.types.is_numeric_dtype(train[column])]
    words = [column for column in train if column not in numbers]
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    known = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    several = [
        ("numbers", scaled, numbers),
        ("words", make_pipeline(SimpleImputer(strategy="most_frequent"), known), words),
    ]
    return ColumnTransformer(several).fit(train)


def mixture(X: np.ndarray) -> GaussianMixture:
    """Choose a mixture by the likelihood of held-out rows, and fit it to all of them."""
    part, held_out = train_test_split(X, test_size=0.2, random_state=0)
    several = [(n, kind) for n in COMPONENTS for kind in ("diag", "full")]

    def fitted(rows: np.ndarray, setting: tuple[int, str]) -> GaussianMixture:
        return GaussianMixture(setting[0], covariance_type=setting[1], reg_covar=1e-3, random_state=0).fit(rows)

    return fitted(X, max(several, key=lambda setting: fitted(part, setting).score(held_out)))


def peers(train: pd.DataFrame, test: pd.DataFrame, anomaly: np.ndarray) -> Iterator[dict[str, Any]]:
    """Learn scikit-learn's detectors, and measure what emlearn makes of them."""
    change = encoder(train)
    X, X_test = (np.asarray(change.transform(frame), dtype=np.float32) for frame in (train, test))
    models = {
        "isolation forest": IsolationForest(random_state=0).fit(X),
        "local outlier factor": LocalOutlierFactor(novelty=True).fit(X),
        "Gaussian mixture": mixture(X),
        "elliptic envelope": EllipticEnvelope(random_state=0).fit(X),
    }
    for name, model in models.items():
        found: dict[str, Any] = {"model": name, "auc": auc(anomaly, model.score_samples(X_test))}
        if name == "Gaussian mixture":
            found["setting"] = f"{model.n_components} {model.covariance_type}"
        threshold = float(np.quantile(model.score_samples(X), 0.05))
        figures = {"flash": parameter_bytes(name, model, X), "measured": False}
        if name in CALLS:
            try:
                figures = by_emlearn(name, model, X_test, threshold)
            except TinybayesError as problem:
                figures["why"] = str(problem)
        yield found | figures


def parameter_bytes(name: str, model: Any, X: np.ndarray) -> int:
    """Return the bytes of the parameters alone: the least that any program needs."""
    if name == "isolation forest":
        inner = sum(int((one.tree_.children_left >= 0).sum()) for one in model.estimators_)
        leaves = sum(int(one.tree_.n_leaves) for one in model.estimators_)
        return 5 * inner + 4 * leaves
    if name == "local outlier factor":  # the rows, and for each the density and the distance of its last neighbour
        return int(4 * X.size + 8 * len(X))
    if name == "Gaussian mixture":
        return int(4 * (model.weights_.size + model.means_.size + model.precisions_cholesky_.size))
    return int(4 * (model.location_.size + model.get_precision().size))


def by_emlearn(name: str, model: Any, rows: np.ndarray, threshold: float) -> dict[str, Any]:
    """Export a model with emlearn and run it on an emulated board."""
    with np.errstate():  # its import makes NumPy raise on underflow, everywhere
        emlearn = importlib.import_module("emlearn")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it compiles and writes where it stands
        code = emlearn.convert(model, method="inline").save(name="peer")
    limit = -threshold if name == "elliptic envelope" else threshold
    components = getattr(model, "n_components", 1)
    body = CALLS[name].format(features=rows.shape[1], components=components, threshold=float(np.float32(limit)))
    call = f'#include <stdbool.h>\n#include <eml_common.h>\n{code}\n#include "peer.h"\n'
    call += f"int32_t peer_call(const float *x) {{\n    {body}\n}}\n"
    probe = Probe("peer.h", "peer_call", "float", rows.shape[1], "int32_t")
    flags, board = (f"-I{emlearn.includedir}",), find_board("m0+")
    files = {"peer.c": call, "peer.h": DECLARED}
    found = measure_program(files, probe, rows[:ROWS], board, flags=flags, repeat=1)
    flagged = model.score_samples(rows[:ROWS]) < threshold
    return {
        "flash": found.flash,
        "ram": found.ram,
        "instructions": round(found.instructions),
        "measured": True,
        "same_flags": round(float(np.mean((found.labels != 0) == flagged)), 4),
    }


def page(results: list[dict[str, Any]]) -> str:
    """Return the tables of the page: areas under the curve, and bytes of flash."""
    names = list(dict.fromkeys(one["data"] for one in results))
    known = {(one["data"], one["model"]): one for one in results}
    heads = ("data", "anomaly", *MODELS)
    out = "Area under the curve:\n\n" + _head(heads)
    out += _cells(known, names, lambda one: f"{one['auc']:.3f}")
    means = [np.mean([known[data, model]["auc"] for data in names]) for model in MODELS]
    out += "| mean | | " + " | ".join(f"{mean:.3f}" for mean in means) + " |\n"
    out += "\nkB of flash on a Cortex-M0+; *in italics* parameters alone, without any code:\n\n"
    out += _head(heads) + _cells(known, names, _kilobytes)
    out += "\nThousands of instructions of a call, of a row without unseen states:\n\n"
    return out + _head(heads) + _cells(known, names, _thousands)


def _cells(
    known: dict[tuple[str, str], dict[str, Any]], names: list[str], text: Callable[[dict[str, Any]], str]
) -> str:
    rows = ([known[data, model] for model in MODELS] for data in names)
    return "".join(f"| {one[0]['data']} | {one[0]['anomaly']} | {' | '.join(map(text, one))} |\n" for one in rows)


def _head(heads: tuple[str, ...]) -> str:
    return "| " + " | ".join(heads) + " |\n|---|---|" + "---:|" * (len(heads) - 2) + "\n"


def _kilobytes(one: dict[str, Any]) -> str:
    text = f"{one['flash'] / 1000:,.1f}"
    return text if one["measured"] else f"*{text}*"


def _thousands(one: dict[str, Any]) -> str:
    return f"{one['instructions'] / 1000:,.1f}" if "instructions" in one else ""


def write_page(results: list[dict[str, Any]]) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"no {BEGIN} ... {END} in {PAGE}"
    PAGE.write_text(f"{before}{BEGIN}\n\n{page(results)}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "anomalies.json")
    parser.add_argument("--only", nargs="+", default=TABLES)
    parser.add_argument("--part", choices=("ours", "peers"), help="only our detectors, or only the others")
    parser.add_argument("--models", nargs="+", choices=tuple(OWN), default=tuple(OWN), help="some of our detectors")
    parser.add_argument("--page-only", action="store_true", help="rewrite the tables of the page from the results")
    options = parser.parse_args()
    kept = json.loads(options.output.read_text())["results"] if options.output.exists() else []
    warnings.simplefilter("ignore")  # singular covariances: the figure stands for itself
    for name in () if options.page_only else options.only:
        train, test, anomaly, label = table(name)
        for part, learn in {"ours": partial(ours, models=options.models), "peers": peers}.items():
            if options.part in (None, part):
                for one in learn(train, test, anomaly):
                    about = {"data": name, "anomaly": label, "train": len(train), "test": len(test)}
                    same = (name, one["model"])
                    kept = [old for old in kept if (old["data"], old["model"]) != same] + [about | one]
                    print(about | one, flush=True)
                    found = {**provenance(["jax", "numpy", "scikit-learn", "emlearn"]), "results": kept}
                    options.output.write_text(json.dumps(found, indent=1) + "\n")
    if options.page_only:
        order = {name: i for i, name in enumerate(TABLES)}
        write_page(sorted(kept, key=lambda one: order[one["data"]]))


if __name__ == "__main__":
    main()
