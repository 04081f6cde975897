"""Relearning tied parameters so that the result stays a Bayesian network.

An entry's log-parameter is the weight of its tie class less the logarithm of the sum over its row: ``log theta = w_c -
log sum exp w_c'``. So every row sums to one whatever the weights are, the likelihood of complete rows needs no
inference, and it is concave in the weights: a sum of linear terms less logarithms of sums of exponentials.

As a prior the first network counts as some rows more, in each table spread evenly over its rows, so that no weight goes
to infinity; Proposition 1 holds with it as it does for `relearn`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from tinybayes.cost import cheapest_format
from tinybayes.learn.ties._ascent import Ascent, Options, Relearned, Relearning
from tinybayes.learn.ties.relearn import complete_rows
from tinybayes.model import BayesNet, Dataset, LogLinear


def relearn_rows(
    net: BayesNet,
    data: Dataset,
    *,
    prior: float | Literal["auto"] = "auto",
    tolerance: float = 1e-6,
    steps: int = 1000,
    report: Callable[[Relearning], None] | None = None,
) -> Relearned[BayesNet]:
    """Find the weights of the tie classes for which a network with normalised rows makes data most likely.

    The result has as many free weights as there are tie classes, but more distinct parameters, since the same weight
    means another probability in a row with other weights. It is stored in a codebook of all of them, or in 32-bit
    floats, whichever is cheaper. `before` is the likelihood of `net` with its rows normalised.

    Parameters
    ----------
    net
        A network with its tables in a `Codebook`, such as `tie` makes.
    data
        Rows of its variables without unknown values.
    prior, tolerance, steps, report
        As for `relearn`.

    Raises
    ------
    TinybayesError
        When rows have unknown values, or one is impossible under the network.
    """
    source = LogLinear.from_bayes_net(net)
    rows, weight = complete_rows(source.variables, data)
    counts, total = source.counts(rows, weight), float(weight.sum())
    ties, classes = source.classes, len(source.weights)
    options = Options(prior, tolerance, steps, report)
    ascent = Ascent(source.weights, np.bincount(ties, counts, classes), total, options)
    sizes = [cpd.table.shape for cpd in net.cpds]
    widths = np.repeat([columns for _, columns in sizes], [lines for lines, _ in sizes])
    first = np.cumsum(widths) - widths

    def logs(w: np.ndarray) -> np.ndarray:
        values = w[ties]
        top = np.maximum.reduceat(values, first)
        values = values - np.repeat(np.where(np.isneginf(top), 0.0, top), widths)
        with np.errstate(divide="ignore"):
            sums = np.log(np.add.reduceat(np.exp(values), first))
        return np.asarray(values - np.repeat(np.where(np.isneginf(sums), 0.0, sums), widths))

    def likelihood(w: np.ndarray, mean: np.ndarray) -> tuple[float, np.ndarray]:
        values, used = logs(w), mean > 0
        slope = mean - np.repeat(np.add.reduceat(mean, first), widths) * np.exp(values)
        return float(mean[used] @ values[used]), np.bincount(ties, slope, classes)

    lines = np.repeat([1 / lines for lines, _ in sizes], [math.prod(size) for size in sizes])
    aims = (1 - ascent.share) * counts / total + ascent.share * np.exp(logs(source.weights)) * lines
    found = ascent.climb(lambda w: likelihood(w, aims))
    before, after = (likelihood(w, counts / total)[0] for w in (source.weights, found))
    if after < before:
        found, after = source.weights, before
    stored = logs(found).astype(np.float32).astype(np.float64)
    parts = np.split(stored, np.cumsum([cpd.table.size for cpd in net.cpds])[:-1])
    form = cheapest_format(parts)
    cpds = [
        replace(cpd, table=form.encode(part.reshape(cpd.table.shape)), format=form)
        for cpd, part in zip(net.cpds, parts, strict=True)
    ]
    return ascent.result(BayesNet(net.variables, net.target, tuple(cpds)), "rows", before, after, 0.0)
