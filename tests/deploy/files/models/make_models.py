"""Make the small models of LightGBM and XGBoost in this folder, with rows and the raw scores that the libraries give.

Needs both libraries, which the tests do not: ``python make_models.py``. The files were made with LightGBM 4.7.0 and
XGBoost 3.2.0. Parameters of the training are left out of LightGBM's files.
"""

import json
import re
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import xgboost

HERE = Path(__file__).parent
LIGHT = {"verbosity": -1, "num_leaves": 6, "min_data_in_leaf": 10, "num_threads": 1, "deterministic": True, "seed": 1}
CATEGORIES = {"min_data_per_group": 5, "cat_smooth": 1, "max_cat_to_onehot": 1}
BOOST = {"max_depth": 3, "nthread": 1, "seed": 1, "max_bin": 16}


def table(classes=2, gaps=0.15, categories=False):
    """Rows of float32: two real columns, one of integers, and one of reals or of 40 categories."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1] * 3)
    if categories:
        X[:, 2] = rng.integers(0, 40, len(X))
    more = np.isin(X[:, 2], [1, 3, 20, 21, 33, 37]) * 3 if categories else X[:, 2] * X[:, 3]
    score = X[:, 0] + 0.5 * X[:, 1] + more
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


def frame():
    rng = np.random.default_rng(3)
    colour = pd.Categorical(rng.choice(["red", "green", "blue", "grey"], 300))
    X = pd.DataFrame({"x": rng.normal(size=300).astype(np.float32), "colour": colour})
    return X, (X.colour.isin(["red", "grey"]) ^ (X.x > 0.3)).astype(int)


def shown(X):
    """Some rows, one without any value and one of zeros."""
    if isinstance(X, pd.DataFrame):
        return X[:40]
    ends = np.stack([np.full(X.shape[1], np.nan), np.zeros(X.shape[1])]).astype(np.float32)
    return np.concatenate([X[:40], ends])


def write_rows(name, rows, scores):
    columns = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=list("abcd"))
    plain = {c: [None if v != v else v for v in columns[c].astype(object).tolist()] for c in columns}
    (HERE / f"{name}.rows.json").write_text(json.dumps({"columns": plain, "scores": np.asarray(scores).tolist()}))


def light(name, X, y, rounds=4, categorical="auto", **settings):
    names = "auto" if isinstance(X, pd.DataFrame) else list("abcd")
    data = lightgbm.Dataset(X, y, params={"max_bin": 15}, feature_name=names, categorical_feature=categorical)
    booster = lightgbm.train(LIGHT | {"objective": "binary"} | settings, data, rounds)
    text = re.sub(r"\nparameters:.*end of parameters\n", "", booster.model_to_string(), flags=re.DOTALL)
    (HERE / f"{name}.txt").write_text(text)
    scores = booster.predict(shown(X), raw_score=True)
    write_rows(name, shown(X), scores / rounds if settings.get("boosting") == "rf" else scores)


def boost(name, X, y, rounds=4, types=None, **settings):
    def matrix(X, y=None):
        names = None if isinstance(X, pd.DataFrame) else list("abcd")
        return xgboost.DMatrix(X, y, feature_types=types, feature_names=names, enable_categorical=True)

    booster = xgboost.train(BOOST | {"objective": "binary:logistic"} | settings, matrix(X, y), rounds)
    booster.save_model(HERE / f"{name}.json")
    write_rows(name, shown(X), booster.predict(matrix(shown(X)), output_margin=True))


if __name__ == "__main__":
    light("lightgbm_binary", *table())
    light("lightgbm_multiclass", *table(3, gaps=0.0), 3, objective="multiclass", num_class=3)
    light("lightgbm_categories", *table(categories=True), categorical=[2], **CATEGORIES)
    light("lightgbm_text", *frame(), **CATEGORIES)
    light("lightgbm_forest", *table(), boosting="rf", bagging_freq=1, bagging_fraction=0.7)
    boost("xgboost_binary", *table())
    boost("xgboost_multiclass", *table(3, gaps=0.0), 3, objective="multi:softprob", num_class=3)
    boost("xgboost_categories", *table(categories=True), types=["q", "q", "c", "q"], max_cat_to_onehot=1)
    boost("xgboost_text", *frame(), max_cat_to_onehot=1)
    boost("xgboost_dart", *table(), booster="dart", rate_drop=0.5, base_score=0.3)
