"""Post-training conversion: the same network with its tables in another number format."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinybayes.model import BayesNet, NumberFormat


def quantize(net: BayesNet, number_format: NumberFormat) -> BayesNet:
    """Round every table of a network to a format; the structure and the trees stay."""
    return with_tables(net, [cpd.log_parameters for cpd in net.cpds], [number_format] * len(net.cpds))


def with_tables(net: BayesNet, tables: Sequence[np.ndarray], formats: Sequence[NumberFormat]) -> BayesNet:
    """Return a network with other log-parameters, each table in its own format."""
    parts = zip(net.cpds, tables, formats, strict=True)
    cpds = tuple(replace(cpd, table=form.encode(table), format=form) for cpd, table, form in parts)
    return BayesNet(net.variables, net.target, cpds)
