"""The contenders of `closed_form.py`: each fits and predicts through the interface its own users would take.

All of them get the same integer codes. What a library needs to be told (states that a split happens to lack, one
thread or all) is told before the clock starts, and so are the tables that only it needs (pandas frames).
"""

import os
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Training and test rows as codes 0, 1, ... (int64), and the number of states of each feature."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    states: np.ndarray

    @property
    def classes(self) -> int:
        return int(max(self.y.max(), self.y_test.max())) + 1

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(self.X.shape[1])]


class Contender:
    """A way to learn and to apply a classifier; `load`, `prepare` and `save` are not timed as fit or predict."""

    library: ClassVar[str]
    package: ClassVar[str]  # as installed
    file: ClassVar[str]  # what `save` writes
    note: ClassVar[str] = ""
    structure: str

    def load(self) -> None:
        """Import the library."""

    def prepare(self, rows: Rows, one_thread: bool) -> None:
        """Take the rows."""
        self.rows = rows

    def fit(self) -> None:
        raise NotImplementedError

    def predict(self) -> np.ndarray:
        raise NotImplementedError

    def settle(self) -> None:
        """End the processes it started, so that their CPU time can be read."""

    def save(self, path: Path) -> dict[str, int]:
        """Write the model; return sizes that are not the file's own."""
        raise NotImplementedError


@dataclass
class Ours(Contender):
    """The scikit-learn face: validation, finding the states and encoding are part of the time."""

    structure: str
    library: ClassVar[str] = "tinybayes"
    package: ClassVar[str] = "tinybayes"
    file: ClassVar[str] = "tb"
    note: ClassVar[str] = "BayesNetClassifier(structure, discretizer=None), smoothing 1 on the joint cells"

    def load(self) -> None:
        from tinybayes import BayesNetClassifier

        self.new: Callable[[], Any] = lambda: BayesNetClassifier(self.structure, discretizer=None)

    def fit(self) -> None:
        self.model = self.new().fit(self.rows.X, self.rows.y)

    def predict(self) -> np.ndarray:
        return self.model.predict(self.rows.X_test)

    def save(self, path: Path) -> dict[str, int]:
        from tinybayes import model_cost, save

        save(self.model.model_, path)
        return {"priced_bytes": model_cost(self.model.model_).bytes}


class OursCoded(Ours):
    """The functions below that face, on rows that are a `Dataset` already."""

    note: ClassVar[str] = "learn_classifier and predict_codes on a Dataset"

    def load(self) -> None:
        from tinybayes import learn_classifier, predict_codes

        self.learn, self.codes = learn_classifier, predict_codes

    def prepare(self, rows: Rows, one_thread: bool) -> None:
        from tinybayes import Dataset, Variable

        variables = tuple(Variable(name, tuple(range(k))) for name, k in zip(rows.names, rows.states, strict=True))
        target = Variable("class", tuple(range(rows.classes)))
        self.train = Dataset(variables, target, rows.X, rows.y)
        self.test = Dataset(variables, target, rows.X_test, rows.y_test)

    def fit(self) -> None:
        self.net = self.learn(self.train, structure=self.structure)

    def predict(self) -> np.ndarray:
        return self.codes(self.net, self.test.X)

    def save(self, path: Path) -> dict[str, int]:
        from tinybayes import model_cost, save

        save(self.net, path)
        return {"priced_bytes": model_cost(self.net).bytes}


class Categorical(Contender):
    structure = "naive"
    library: ClassVar[str] = "scikit-learn"
    package: ClassVar[str] = "scikit-learn"
    file: ClassVar[str] = "pickle"
    note: ClassVar[str] = "CategoricalNB(alpha=1, min_categories=states); its class prior is not smoothed"

    def load(self) -> None:
        from sklearn.naive_bayes import CategoricalNB

        self.kind = CategoricalNB

    def fit(self) -> None:
        self.model = self.kind(alpha=1.0, min_categories=self.rows.states).fit(self.rows.X, self.rows.y)

    def predict(self) -> np.ndarray:
        return self.model.predict(self.rows.X_test)

    def save(self, path: Path) -> dict[str, int]:
        path.write_bytes(pickle.dumps(self.model))
        return {}


@dataclass
class Agrum(Contender):
    method: str
    structure: str
    library: ClassVar[str] = "pyAgrum"
    package: ClassVar[str] = "pyAgrum"
    file: ClassVar[str] = "bif"
    note: ClassVar[str] = (
        "skbn.BNClassifier(learningMethod, prior='Smoothing', priorWeight=1), states declared; its TAN drops weak "
        "edges; its Chow-Liu is one tree over features and class, another model than TAN"
    )

    def load(self) -> None:
        import pyagrum
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        self.gum, self.types, self.kind = pyagrum, DiscreteTypeProcessor, BNClassifier

    def prepare(self, rows: Rows, one_thread: bool) -> None:
        super().prepare(rows, one_thread)
        if one_thread:
            self.gum.setNumberOfThreads(1)
        # It warns of more than ten classes; a declared range must have at least two states.
        warnings.simplefilter("ignore")
        self.processor = self.types(discretizationThreshold=int(rows.states.max()) + 1)
        for name, k in zip(rows.names, rows.states.tolist(), strict=True):
            if k > 1:
                self.processor.setDiscretizationParameters(name, "NoDiscretization", f"[0,{k - 1}]")

    def fit(self) -> None:
        options = {"learningMethod": self.method, "prior": "Smoothing", "priorWeight": 1}
        self.model = self.kind(type_processor=self.processor, **options).fit(self.rows.X, self.rows.y)

    def predict(self) -> np.ndarray:
        return self.model.predict(self.rows.X_test).astype(np.int64)

    def save(self, path: Path) -> dict[str, int]:
        self.gum.saveBN(self.model.bn_, str(path))
        return {}


@dataclass
class Pgmpy(Contender):
    structure: str
    jobs: int = 1
    library: ClassVar[str] = "pgmpy"
    package: ClassVar[str] = "pgmpy"
    file: ClassVar[str] = "bif"
    note: ClassVar[str] = (
        "DiscreteBayesianNetwork with TreeSearch('tan', root first feature) or the arcs of naive Bayes (the predict of "
        "its class NaiveBayes raises in 1.1.2), Dirichlet prior 1, state names given"
    )

    def load(self) -> None:
        os.environ["TQDM_DISABLE"] = "1"  # progress bars would count as its time
        import pandas
        from pgmpy.estimators import TreeSearch
        from pgmpy.models import DiscreteBayesianNetwork
        from pgmpy.parameter_estimator import DiscreteBayesianEstimator

        self.frame, self.search, self.network = pandas.DataFrame, TreeSearch, DiscreteBayesianNetwork
        self.estimator = DiscreteBayesianEstimator

    def prepare(self, rows: Rows, one_thread: bool) -> None:
        super().prepare(rows, one_thread)
        self.jobs = 1 if one_thread else -1  # -1 is its default
        self.train = self.frame(rows.X, columns=rows.names).assign(y=rows.y)
        self.test = self.frame(rows.X_test, columns=rows.names)
        self.names = {name: list(range(k)) for name, k in zip(rows.names, rows.states.tolist(), strict=True)}
        self.names["y"] = list(range(rows.classes))

    def fit(self) -> None:
        arcs = [("y", name) for name in self.rows.names]
        if self.structure == "chow-liu":
            search = self.search(self.train, root_node=self.rows.names[0], n_jobs=self.jobs)
            arcs = search.estimate("tan", class_node="y", show_progress=False).edges()
        self.model = self.network(arcs)
        prior = {"prior_type": "dirichlet", "pseudo_counts": 1}
        self.model.fit(self.train, estimator=self.estimator(state_names=self.names, **prior))

    def predict(self) -> np.ndarray:
        return self.model.predict(self.test, n_jobs=self.jobs)["y"].to_numpy()

    def settle(self) -> None:
        from joblib.externals.loky import get_reusable_executor

        if self.jobs != 1:
            get_reusable_executor().shutdown(wait=True)

    def save(self, path: Path) -> dict[str, int]:
        self.model.save(str(path), filetype="bif")
        return {}


class Pomegranate(Contender):
    structure = "naive"
    library: ClassVar[str] = "pomegranate"
    package: ClassVar[str] = "pomegranate"
    file: ClassVar[str] = "pickle"
    note: ClassVar[str] = (
        "BayesClassifier of IndependentComponents of Categorical(pseudocount=1); int32 tensors of torch"
    )

    def load(self) -> None:
        import torch
        from pomegranate.bayes_classifier import BayesClassifier
        from pomegranate.distributions import Categorical as Column
        from pomegranate.distributions import IndependentComponents

        self.torch, self.kind, self.column, self.components = torch, BayesClassifier, Column, IndependentComponents

    def prepare(self, rows: Rows, one_thread: bool) -> None:
        super().prepare(rows, one_thread)
        if one_thread:
            self.torch.set_num_threads(1)
        tensors = (self.torch.tensor(part, dtype=self.torch.int32) for part in (rows.X, rows.y, rows.X_test))
        self.X, self.y, self.X_test = tensors

    def fit(self) -> None:
        states = self.rows.states.tolist()
        columns = [[self.column(n_categories=k, pseudocount=1.0) for k in states] for _ in range(self.rows.classes)]
        self.model = self.kind([self.components(part) for part in columns]).fit(self.X, self.y)

    def predict(self) -> np.ndarray:
        return self.model.predict(self.X_test).numpy()

    def save(self, path: Path) -> dict[str, int]:
        self.torch.save(self.model.state_dict(), path)
        return {}


CONTENDERS: dict[str, Contender] = {
    "tinybayes NB": Ours("naive"),
    "tinybayes NB, coded rows": OursCoded("naive"),
    "scikit-learn CategoricalNB": Categorical(),
    "pyAgrum NB": Agrum("NaiveBayes", "naive"),
    "pgmpy NB": Pgmpy("naive"),
    "tinybayes TAN": Ours("chow-liu"),
    "tinybayes TAN, coded rows": OursCoded("chow-liu"),
    "pyAgrum TAN": Agrum("TAN", "chow-liu"),
    "pyAgrum Chow-Liu": Agrum("Chow-Liu", "chow-liu"),
    "pgmpy TAN": Pgmpy("chow-liu"),
}
QUICK = ("tinybayes", "scikit-learn")
YARDSTICK = {"naive": "tinybayes NB", "chow-liu": "tinybayes TAN"}  # what the others are compared with
OTHERS: dict[str, Contender] = {"pomegranate NB": Pomegranate()}  # in `run_all.py` alone: it brings torch
