"""Arithmetic circuits for scikit-learn: densities with exact queries, and classifiers."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tinybayes.data.variables import Discretization, Discretizer
from tinybayes.errors import error
from tinybayes.estimators._base import (
    TableEstimator,
    complete_rows,
    dataset,
    options_of_estimator,
    states_table,
    store_parameters,
    validated,
)
from tinybayes.infer import circuit as circuits
from tinybayes.infer import log_likelihood
from tinybayes.infer.ask import parse_query, state_code
from tinybayes.learn.circuits.latent_classifier import LatentClassifier, learn_latent_classifier
from tinybayes.learn.circuits.latent_tree import LatentTree, learn_latent_tree_with
from tinybayes.learn.circuits.learn_ac import learn_circuit
from tinybayes.learn.circuits.options import CircuitOptions, LatentOptions
from tinybayes.model import BayesNet, Circuit, Dataset
from tinybayes.report.progress import density_progress, growth_progress

Learner = TypeVar("Learner", CircuitOptions, LatentOptions)
BLOCK = 2**12  # rows whose posteriors are held at a time


class _CircuitEstimator(TableEstimator):
    """The options of both estimators, and learning with them."""

    circuit_: Circuit
    model_: BayesNet | Circuit
    n_edges_: int
    complete_: bool
    _ties = False  # whether circuits of other methods than "latent" may have levels, too

    def __init__(
        self,
        edge_price: float | None = None,
        parameter_price: float = 0.0,
        *,
        method: str = "quick",
        smoothing: float = 1.0,
        max_edges: int | None = None,
        levels: int | None = None,
        seconds: float = float("inf"),
        hidden_states: int = 16,
        components: int = 1,
        epochs: int | None = None,
        batch_size: int = 64,
        restarts: int = 1,
        average: bool = False,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        device: str | None = None,
        deterministic: bool = False,
        discretizer: Discretizer = "auto",
        n_bins: int = 8,
        max_states: int = 62,
        verbose: bool = False,
    ) -> None:
        store_parameters(self, locals())

    def _discretization(self, discretizer: str) -> Discretization:
        """Return how columns become variables; the discretiser given is what "auto" stands for."""
        self._options(CircuitOptions), self._options(LatentOptions)  # refuse bad ones before the table is read
        if self.method != "latent" and self.levels is not None and not self._ties:
            raise error("None with this method", self.levels, where="levels", remedy="tie(model.circuit_, 16)")
        if self.method == "latent" and self.parameter_price != 0:
            remedy = "use edge_price: a transition is three edges and a parameter"
            raise error("0 with method='latent'", self.parameter_price, where="parameter_price", remedy=remedy)
        asked = self.discretizer
        cuts = discretizer if isinstance(asked, str) and asked == "auto" else asked
        return options_of_estimator(self, Discretization, discretizer=cuts, keep_values=self.n_bins)

    def _options(self, learner: type[Learner], **others: Any) -> Learner:
        """Return the options of a learner, with its own price of an edge where none is given."""
        if self.edge_price is None:
            others["edge_price"] = learner.edge_price
        return options_of_estimator(self, learner, **others)

    def _learn(self, data: Dataset) -> None:
        """Learn by the chosen method."""
        if self.method == "latent":
            self._learn_latent(data)
        else:
            self._grow(complete_rows(data))
        self.n_edges_ = self.circuit_.n_edges

    def _grow(self, data: Dataset) -> None:
        options = self._options(CircuitOptions)
        with growth_progress(self.verbose) as report:
            grown = learn_circuit(data, **asdict(options), report=report)
        assert grown.circuit is not None
        self.circuit_, self.model_, self.complete_ = grown.circuit, grown.net, grown.complete

    def _learn_latent(self, data: Dataset) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        options = self._options(LatentOptions, seed=seed)
        learned: LatentClassifier | LatentTree
        with density_progress(self.verbose) as report:
            if data.target is None:
                learned = learn_latent_tree_with(data, options, report=report)
            else:
                learned = learn_latent_classifier(data, options, report=report)
        self.circuit_ = self.model_ = learned.circuit
        self.complete_ = learned.complete


class CircuitDensity(DensityMixin, _CircuitEstimator):
    """Density over discrete variables with exact answers: an arithmetic circuit, learned with its price in the score.

    The learner is LearnAC of *Learning arithmetic circuits*, or with `method="latent"` a tree of hidden variables,
    which usually has the higher likelihood. Every query takes time linear in the edges of the circuit; `edge_price`
    says what an edge may cost, `max_edges` how many there may be. Integers with at most `n_bins` distinct values in a
    column, text, categories and booleans are states as they are; other numbers are cut. In queries missing values are
    summed out exactly. A latent tree sums them out in learning, too; LearnAC leaves rows with missing values out of
    learning, with a warning.

    Parameters
    ----------
    edge_price : float or None, default=None
        Price of an edge of the circuit, in units of log-likelihood: the price of inference. None is 0.1, and for
        "latent" 0: transitions are cut only for a price.
    parameter_price : float, default=0.0
        Price of a free parameter; not of "latent".
    method : {"quick", "greedy", "latent"}, default="quick"
        "greedy" takes the best split every time, "quick" assumes that the cost of a split never falls; "latent" learns
        a tree of hidden variables.
    smoothing : float, default=1.0
        Spread over the states of each distribution; above zero.
    max_edges : int or None, default=None
        The circuit gets no more edges than these.
    levels : int or None, default=None
        Of "latent", not of classifiers: how many distinct parameters the circuit has; they are stored in a codebook.
    seconds : float, default=inf
        After this time the circuit so far is taken.
    hidden_states : int, default=16
        Of "latent": states of each hidden variable.
    components : int, default=1
        Of "latent": trees, each from a cluster of the rows; the density is their mixture.
    epochs : int or None, default=None
        Of "latent": passes over the data; by default as many as make 10,000 mini-batches, in 10 to 80.
    batch_size : int, default=64
        Of "latent": rows of a mini-batch.
    restarts : int, default=1
        Of "latent": trainings from different starts, of which the best on held-out rows is taken.
    average : bool, default=False
        Of "latent": the mixture of the trees of all restarts instead, which has the higher likelihood and more edges.
    validation_fraction : float, default=0.1
        Of "latent": share of the rows held out to choose the epoch and the start, if these are 50 rows or more.
    random_state : int, RandomState or None, default=0
        Of "latent": seed of the start, of the held-out rows and of the order of the others.
    device : {"cpu", "gpu"} or None, default=None
        Of "latent": by default the device that JAX prefers.
    deterministic : bool, default=False
        Of "latent", on a GPU: equal runs give equal bytes, several times as slow. A CPU always does that.
    discretizer : {"auto", "quantile", "uniform"}, scikit-learn discretiser or None, default="auto"
        What cuts other numbers: "auto" is "quantile"; with None every distinct number is a state.
    n_bins : int, default=8
        Bins of the discretiser, and the most integers that are states as they are.
    max_states : int, default=62
        A column with more distinct states is refused; the learner takes 62 at most.
    verbose : bool, default=False
        Show how the circuit grows.

    Attributes
    ----------
    circuit_ : Circuit
        The circuit, for everything in `tinybayes.infer`.
    model_ : BayesNet or Circuit
        The Bayesian network with decision trees that the circuit computes; of "latent" the circuit itself.
    n_edges_ : int
        Edges of the circuit.
    complete_ : bool
        False when a limit or an interrupt ended the growth or the training.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray
        Names of the features, when `X` had string names for all of them.

    Examples
    --------
    >>> X = np.array([[0, 0], [1, 1]] * 50 + [[0, 1]])
    >>> density = CircuitDensity().fit(X)
    >>> bool(density.query({"x0": 1}, {"x1": 1}) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "CircuitDensity":
        """Learn from a table; rows with missing values are left out, with a warning, unless the method is "latent".

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_samples, n_features)
            The rows.
        y : None
            Not looked at; the class, if there is one, may be a column of `X`.
        sample_weight : array-like, shape (n_samples,), optional
            Row weights; an integer weight counts as that many rows.
        """
        table = validated(self, X, reset=True)
        self._learn(dataset(table, sample_weight, self._discretization("quantile")))
        self._from_frame = isinstance(table, pd.DataFrame)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row; missing values and states never seen are summed out exactly."""
        return log_likelihood(self.circuit_, self._codes(X))  # few levels do not sum to one

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Any:
        """Draw rows exactly from the distribution.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            The same number gives the same rows.

        Returns
        -------
        ndarray or DataFrame, shape (n_samples, n_features)
            States, of the kind of table that was fitted: the values themselves, and for a column that was cut the names
            of its intervals, such as ``"150 to 180"``. States that are all numbers make an array of numbers, others
            one of objects.
        """
        check_is_fitted(self)
        if not (isinstance(n_samples, int | np.integer) and n_samples >= 1):
            raise error("at least 1", repr(n_samples), where="n_samples")
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        codes = circuits.sample(self.circuit_, int(n_samples), seed)
        return states_table(codes, self.circuit_.variables, as_frame=self._from_frame)

    def query(self, event: str | Mapping[Any, Any], evidence: Mapping[Any, Any] | None = None) -> float:
        """Return the exact conditional probability ``P(event | evidence)``.

        Parameters
        ----------
        event : dict or str
            Values by column: its name (``x0``, ``x1``, ... for arrays) or its number. A number of a column that was cut
            stands for its interval, which may also be named. Or the whole question as text:
            ``"rain=yes, wind=3 | season=autumn"``.
        evidence : dict, optional
            What is known, likewise.

        Examples
        --------
        ``density.query({"rain": "yes", "wind": 3}, {"season": "autumn"})``
        """
        check_is_fitted(self)
        if isinstance(event, str):
            if evidence is not None:
                raise error("the evidence behind a bar in the text", "both", where="query")
            asked, known = parse_query(event, self.circuit_.nodes)
        else:
            asked, known = self._row(event, "event"), self._row(evidence or {}, "evidence")
        return float(circuits.conditional(self.circuit_, asked[None], known[None])[0])

    def _row(self, values: Mapping[Any, Any], where: str) -> np.ndarray:
        """Encode the values of some columns; the others are -1."""
        variables = self.circuit_.variables
        position = {variable.name: i for i, variable in enumerate(variables)}
        row = np.full(len(variables), -1)
        for name, value in values.items():
            number = isinstance(name, int | np.integer) and 0 <= name < len(variables)
            i = int(name) if number else position.get(str(name), -1)
            if i < 0:
                known = ", ".join(list(position)[:10]) + (", ..." if len(position) > 10 else "")
                raise error(f"one of the columns {known}", repr(name), where=where)
            row[i] = state_code(variables[i], str(value))
        return row


class CircuitClassifier(ClassifierMixin, _CircuitEstimator):
    """Classifier by an arithmetic circuit over the features and the class.

    The class is one more variable of the density that `CircuitDensity` learns. With `method="latent"`, each class may
    also have a tree of its own, if that is better on held-out rows. A prediction is the exact posterior of the class
    given what is known of a row: missing values and states never seen are summed out. LearnAC leaves rows with missing
    values out of learning, with a warning; latent trees sum them out. `model_cost(model.circuit_)` is the price.

    Parameters
    ----------
    edge_price, parameter_price, method, smoothing, max_edges, levels, seconds, hidden_states, components, epochs, \
batch_size, restarts, average, validation_fraction, random_state, device, deterministic, n_bins, max_states, \
verbose
        As for `CircuitDensity`.
    discriminative : bool, default=True
        Of "latent": after EM, the trees are trained by gradient to predict the class. Otherwise they remain those of
        EM, for the joint density of features and class.
    discretizer : {"auto", "mdlp", "quantile", "uniform"}, scikit-learn discretiser or None, default="auto"
        What cuts numbers, except integers with at most `n_bins` distinct values in a column: "auto" is "mdlp".

    Attributes
    ----------
    circuit_, model_, n_edges_, complete_, n_features_in_, feature_names_in_
        As for `CircuitDensity`; the class is the target of the circuit.
    classes_ : ndarray
        The class labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> float(CircuitClassifier().fit(X, y).score(X, y)) > 0.9
    True
    """

    def __init__(
        self,
        edge_price: float | None = None,
        parameter_price: float = 0.0,
        *,
        method: str = "quick",
        smoothing: float = 1.0,
        max_edges: int | None = None,
        levels: int | None = None,
        seconds: float = float("inf"),
        hidden_states: int = 16,
        components: int = 1,
        epochs: int | None = None,
        batch_size: int = 64,
        restarts: int = 1,
        average: bool = False,
        discriminative: bool = True,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        device: str | None = None,
        deterministic: bool = False,
        discretizer: Discretizer = "auto",
        n_bins: int = 8,
        max_states: int = 62,
        verbose: bool = False,
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "CircuitClassifier":
        """Learn from a table; rows with missing values are left out, with a warning, unless the method is "latent".

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_samples, n_features)
            The features.
        y : array-like, shape (n_samples,)
            The classes.
        sample_weight : array-like, shape (n_samples,), optional
            Row weights; an integer weight counts as that many rows.
        """
        self._learn(self._learning_set(X, y, sample_weight, self._discretization("mdlp")))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        posteriors = self.predict_proba(X)
        return np.asarray(self.classes_[posteriors.argmax(axis=1)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the class posteriors, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the exact class posteriors, shape (n_samples, n_classes)."""
        codes, first = self._codes(X), int(self.circuit_.first_state[-2])  # the class is the last variable
        blocks = (codes[start : start + BLOCK] for start in range(0, len(codes), BLOCK))
        return np.concatenate([circuits.posteriors(self.circuit_, block)[:, first:] for block in blocks])
