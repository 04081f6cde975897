"""Quantised neural networks for scikit-learn."""

from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from tinybayes.data.variables import Discretization, Discretizer
from tinybayes.errors import error
from tinybayes.estimators._base import ScoredClassifier, options_of_estimator, store_parameters
from tinybayes.learn.training.net_sizes import hidden_within, image_of
from tinybayes.learn.training.options import TrainingOptions, default_epochs
from tinybayes.model import Dataset, NeuralNet
from tinybayes.report.progress import training_progress


class QuantizedNetClassifier(ScoredClassifier):
    """Dense or convolutional network with weights of 1 to 8 bits, which runs on integers alone.

    Numeric columns are cut into fine bins, whose numbers enter the network; text and categories enter as indicators.
    Missing values enter as the mean.

    Parameters
    ----------
    kind : {"dense", "conv"}, default="dense"
        Fully connected layers, or one or two 3x3 convolutions with 2x2 pooling for images.
    bits : int, default=4
        Of a weight.
    hidden : int, tuple of int or None, default=None
        Units, or channels, of the hidden layers. By default as many as a budget allows, or 64 units (8 and 16
        channels) without one. An empty tuple is logistic regression.
    layers : int, default=2
        Of a budget: weight matrices of a dense network (2 has one hidden layer), or convolutions (1 or 2).
    budget_bits, budget_ops : int or None, default=None
        Derive `hidden` from the bits of all parameters, or from the operations of a prediction, as the paper does.
    activation : {"relu", "sign"}, default="relu"
        Of hidden units.
    batch_norm : bool, default=True
        Normalise hidden sums; folded into integers afterwards.
    inputs : {"standard", "shared", "one-hot"} or None, default=None
        How numbers enter: each feature with a variance of one, all with one factor (the default of "conv"), or
        indicators of bins.
    epochs : int or None, default=None
        Passes over the data; by default as many as make 6,000 mini-batches.
    learning_rate, batch_size, label_smoothing, input_noise, mixup, image_shift
        Of the optimiser.
    image_shape : tuple of int or None, default=None
        Rows and columns of "conv"; by default a square.
    discretizer : {"grid", "uniform", "quantile", "mdlp"}, scikit-learn discretiser or None, default="grid"
        How numbers are read; "grid" takes steps of a power of two, and integers of a small range as they are.
    n_bins : int, default=128
        Bins of the discretiser, at most.
    max_states : int, default=1000
        A text column with more distinct states is refused.
    random_state : int, RandomState or None, default=None
        For everything drawn at random.
    device : {"cpu", "gpu"} or None, default=None
        By default what JAX finds best.
    deterministic : bool, default=False
        On a GPU: equal runs give equal bytes, several times as slow. A CPU always does that.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    model_ : NeuralNet
        The fitted network in integers.
    classes_ : ndarray
        The class labels.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray
        Names of the features, when `X` had string names for all of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> net = QuantizedNetClassifier(bits=3, hidden=8, epochs=40, random_state=0).fit(X, y)
    >>> float(net.score(X, y)) > 0.9
    True
    """

    model_: NeuralNet

    def __init__(
        self,
        kind: str = "dense",
        *,
        bits: int = 4,
        hidden: int | tuple[int, ...] | None = None,
        layers: int = 2,
        budget_bits: int | None = None,
        budget_ops: int | None = None,
        activation: str = "relu",
        batch_norm: bool = True,
        inputs: str | None = None,
        epochs: int | None = None,
        learning_rate: float = 1e-2,
        batch_size: int = 50,
        label_smoothing: float = 0.0,
        input_noise: float = 0.0,
        mixup: float = 0.0,
        image_shift: int = 0,
        image_shape: tuple[int, int] | None = None,
        discretizer: Discretizer = "grid",
        n_bins: int = 128,
        max_states: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        device: str | None = None,
        deterministic: bool = False,
        verbose: bool = False,
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "QuantizedNetClassifier":
        """Learn from a table.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_samples, n_features)
            The features.
        y : array-like, shape (n_samples,)
            The classes.
        sample_weight : array-like, shape (n_samples,), optional
            Row weights.
        """
        from tinybayes.learn.training.nets import NetConfiguration, train_nets

        # The cut points are those of the rows as they are: weights change what is learned, not how numbers are seen.
        discretization = options_of_estimator(self, Discretization)
        data = self._learning_set(X, y, sample_weight, discretization)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        run = options_of_estimator(self, NetConfiguration, hidden=self._hidden(data), seed=seed)
        epochs = default_epochs(len(data), self.batch_size) if self.epochs is None else self.epochs
        options = options_of_estimator(self, TrainingOptions, epochs=epochs, shuffle_seed=seed)
        with training_progress(self.verbose) as report:
            (trained,) = train_nets(data, [run], options, report=report)
        assert trained.net is not None
        self.model_ = trained.net
        return self

    def _hidden(self, data: Dataset) -> tuple[int, ...]:
        """Return the widths of the hidden layers: as given, or as a budget allows."""
        budgets = [b for b in (self.budget_bits, self.budget_ops) if b is not None]
        if self.hidden is not None:
            if budgets:
                remedy = "leave one of them out"
                raise error("either hidden units or a budget", "both", where="hidden", remedy=remedy)
            return (int(self.hidden),) if isinstance(self.hidden, int | np.integer) else tuple(self.hidden)
        if not budgets:
            return (8, 16)[: self.layers] if self.kind == "conv" else (64,) * (self.layers - 1)
        states = [v.cardinality for v in data.variables]
        within = partial(
            hidden_within,
            layers=self.layers,
            weight_bits=self.bits,
            inputs=sum(states) if self.inputs == "one-hot" else len(states),
            classes=len(self.classes_),
            image=image_of(self.image_shape, len(states), self.layers) if self.kind == "conv" else None,
            batch_norm=self.batch_norm,
        )
        prices: tuple[tuple[Literal["bits", "operations"], int | None], ...]
        prices = (("bits", self.budget_bits), ("operations", self.budget_ops))
        return min((within(budget, price) for price, budget in prices if budget is not None), key=sum)
