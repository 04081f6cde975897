"""tinybayes among others: scikit-learn's tools, frames of pandas and polars, the wheel; models of others: peers/."""

import io
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

import tinybayes as tb
from tinybayes import BayesNetClassifier, CircuitClassifier, CircuitDensity, QuantizedNetClassifier, read_dataset
from tinybayes.data import MDLPDiscretizer

ROOT = Path(__file__).parent.parent
CLASSIFIERS = [
    BayesNetClassifier("chow-liu"),
    CircuitClassifier(edge_price=1.0),
    QuantizedNetClassifier(epochs=2, random_state=0),
]


def name_of(estimator):
    return type(estimator).__name__


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X.assign(place=np.array(["north", "south"])[np.arange(150) % 2]), y


def test_a_pipeline_learns_what_its_steps_learn(iris):
    X, y = iris
    numbers = X.drop(columns="place")
    steps = make_pipeline(MDLPDiscretizer().set_output(transform="pandas"), BayesNetClassifier(discretizer=None))
    alone = BayesNetClassifier().fit(numbers, y)
    np.testing.assert_allclose(steps.fit(numbers, y).predict_proba(numbers), alone.predict_proba(numbers), atol=1e-6)
    cut = KBinsDiscretizer(4, encode="ordinal", strategy="uniform")
    columns = make_column_transformer((cut, list(numbers.columns)), remainder="passthrough")
    mixed = make_pipeline(columns.set_output(transform="pandas"), BayesNetClassifier("naive", discretizer=None))
    assert cross_val_score(mixed, X, y, cv=3).mean() > 0.85


def test_a_grid_search_chooses(iris):
    X, y = iris
    grid = {"structure": ["naive", "chow-liu"], "smoothing": [0.1, 1000.0]}
    found = GridSearchCV(BayesNetClassifier(), grid, cv=3).fit(X, y)
    assert found.best_params_["smoothing"] == 0.1
    assert found.best_score_ > 0.9
    scores = dict(zip(map(str, found.cv_results_["params"]), found.cv_results_["mean_test_score"], strict=True))
    each = cross_val_score(BayesNetClassifier(**found.best_params_), X, y, cv=3).mean()
    assert scores[str(found.best_params_)] == pytest.approx(each)
    prices = GridSearchCV(CircuitDensity(), {"edge_price": [0.1, 1000.0]}, cv=3).fit(X)
    assert prices.best_params_ == {"edge_price": 0.1}


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_frames_of_polars_are_frames_of_pandas(iris, estimator):
    polars = pytest.importorskip("polars")
    X, y = iris
    X = X.assign(kind=pd.Categorical(np.array(["a", "b", "c"])[np.arange(150) % 3]))
    other = polars.from_pandas(X)
    assert other["kind"].dtype in (polars.Categorical, polars.Enum)
    one, two = clone(estimator).fit(X, y), clone(estimator).fit(other, polars.Series(y.to_numpy()))
    assert two.feature_names_in_.tolist() == X.columns.tolist()
    assert two.model_.variables == one.model_.variables
    assert [v.name for v in two.model_.variables] == X.columns.tolist()
    np.testing.assert_array_equal(two.predict_proba(other), one.predict_proba(X))
    np.testing.assert_array_equal(two.predict(X), one.predict(other))
    with pytest.raises(ValueError, match="feature names"):
        two.predict(other.rename({"place": "elsewhere"}))


def test_tables_of_polars_are_read(iris):
    polars = pytest.importorskip("polars")
    X, y = iris
    frame = X.assign(kind=pd.Categorical(np.array(["a", "b", "c"])[np.arange(150) % 3]), y=y)
    data = read_dataset(polars.from_pandas(frame), target="y")
    expected = read_dataset(frame, target="y")
    assert data.variables == expected.variables
    np.testing.assert_array_equal(data.X, expected.X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(iris, library):
    frames = pytest.importorskip(library)
    X, y = iris[0].drop(columns="place"), iris[1]
    plain = MDLPDiscretizer().fit(X, y).transform(X)
    framed = MDLPDiscretizer().set_output(transform=library).fit(X, y).transform(X)
    assert isinstance(framed, frames.DataFrame)
    assert list(framed.columns) == X.columns.tolist()
    np.testing.assert_array_equal(framed.to_numpy(), plain)


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, CircuitDensity(), MDLPDiscretizer()], ids=name_of)
def test_estimators_are_cloned_and_pickled_as_scikit_learn_does(iris, estimator):
    X, y = iris[0].drop(columns="place"), iris[1]
    assert clone(estimator).get_params() == estimator.get_params()
    fitted = clone(estimator).fit(X, y)
    stored = io.BytesIO()
    joblib.dump(fitted, stored)
    stored.seek(0)
    ask_it = next(m for m in ("predict_proba", "score_samples", "transform") if hasattr(fitted, m))
    for again in (pickle.loads(pickle.dumps(fitted)), joblib.load(stored)):
        np.testing.assert_array_equal(getattr(again, ask_it)(X), getattr(fitted, ask_it)(X))


# The package itself.


def test_type_information_is_shipped():
    assert (Path(tb.__file__).parent / "py.typed").is_file()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Wheels of two copies of the tree, whose files have other times and other permissions."""
    pytest.importorskip("hatchling")
    code = "import hatchling.build as b; print(b.build_wheel('dist'))"
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    found = []
    for number in (1, 2):
        folder = tmp_path_factory.mktemp(f"tree{number}")
        for name in ("src", "README.md", "LICENSE", "pyproject.toml"):
            source = ROOT / name
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / name, ignore=ignored) if source.is_dir() else shutil.copy(source, folder)
        for path in folder.rglob("*"):
            os.utime(path, (1e9 + 1e8 * number, 1e9 + 1e8 * number))
            path.chmod((0o755 if path.is_dir() else 0o644) | (0o020 if number == 2 else 0))
        (folder / "dist").mkdir()
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, env=environment)
        found += (folder / "dist").glob("*.whl")
    return found


def test_the_wheel_has_all_files_of_the_package(wheels):
    packed = {n for n in zipfile.ZipFile(wheels[0]).namelist() if n.startswith("tinybayes/")}
    package = ROOT / "src" / "tinybayes"
    files = (p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    assert {f"tinybayes/{p.relative_to(package).as_posix()}" for p in files} == packed


def test_the_wheel_is_reproducible(wheels):
    one, two = wheels
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()
