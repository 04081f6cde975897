"""The price of a circuit, counted in edges as in learning_arithmetic_circuits."""

import numpy as np

from tinybayes.model import Circuit, Cost
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT, SUM


def circuit_cost(circuit: Circuit) -> Cost:
    """Price a circuit.

    An evaluation does one operation for each edge: an addition below a sum, a multiplication below a product. It reads
    each parameter and each indicator once. A prediction evaluates the circuit once for each class, and takes C - 1
    comparisons for the arg max; without a class the price is that of one query ``P(evidence)``. Bits are the entries of
    the table times the bits of their format; the graph of the circuit is not counted, as the structure of a Bayesian
    network is not.
    """
    answers = 1 if circuit.target is None else circuit.target.cardinality
    edges = np.bincount(np.repeat(circuit.kind, np.diff(circuit.offsets)), minlength=4)
    nodes = np.bincount(circuit.kind, minlength=4)
    number_format = circuit.format
    return Cost(
        bits=len(circuit.table) * number_format.bits + number_format.shared_bits,
        parameters=len(circuit.table),
        additions=answers * int(edges[SUM]),
        multiplications=answers * int(edges[PRODUCT]),
        lookups=answers * int(nodes[PARAMETER] + nodes[INDICATOR]),
        comparisons=answers - 1,
        edges=circuit.n_edges,
    )
