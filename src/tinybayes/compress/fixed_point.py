"""Post-training conversion: the same network with its tables in another number format."""

from dataclasses import replace

from tinybayes.model import BayesNet, NumberFormat


def quantize(net: BayesNet, number_format: NumberFormat) -> BayesNet:
    """Round every table of a network to a format; the structure and the trees stay."""
    cpds = [replace(cpd, table=number_format.encode(cpd.log_parameters), format=number_format) for cpd in net.cpds]
    return BayesNet(net.variables, net.target, tuple(cpds))
