"""Predictions as tables, batch by batch."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from tinybayes.errors import error
from tinybayes.infer.scores import Classifier, class_scores, normalize_scores, predict_codes
from tinybayes.model import Dataset


def prediction_frames(net: Classifier, data: Iterable[Dataset], *, proba: bool = False) -> Iterator[pd.DataFrame]:
    """Yield for each batch a frame with the predicted class, named like the target.

    Parameters
    ----------
    net
        A classifier.
    data
        Batches of rows.
    proba
        Add a column ``p(STATE)`` for each class.
    """
    if net.target is None:
        raise error("a network with a class variable", "none", where="predict", remedy="name a target")
    states = np.array(net.target.states)
    for batch in data:
        if not proba:
            yield pd.DataFrame({net.target.name: states[predict_codes(net, batch.X)]})
            continue
        scores = class_scores(net, batch.X)
        posterior = np.exp(normalize_scores(scores))
        labels = {net.target.name: states[scores.argmax(axis=1)]}
        yield pd.DataFrame(labels | {f"p({s})": posterior[:, k] for k, s in enumerate(net.target.states)})
