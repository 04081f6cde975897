"""A circuit as steps that share memory: the order in which a program computes its values."""

import heapq
from dataclasses import dataclass

import numpy as np

from tinybayes.model import Circuit
from tinybayes.model.circuit import INDICATOR, PARAMETER, PRODUCT


@dataclass(frozen=True, eq=False)
class Steps:
    """A circuit as steps: each multiplies or adds operands and writes a slot that is free by then.

    An operand is the number of a parameter, then of an indicator, then of a slot. Parameters of equal value are one:
    tied parameters take the memory of their levels.
    """

    parameters: np.ndarray  # the logarithms of the distinct ones
    indicators: int
    begin: np.ndarray
    operand: np.ndarray
    product: np.ndarray
    slot: np.ndarray
    slots: int
    root: int  # the operand that holds the result


def make_steps(circuit: Circuit) -> Steps:
    """Give numbers to all operands; values share slots, since a slot is free after the last step that reads it."""
    used = circuit.kind == PARAMETER
    values, number = np.unique(circuit.log_parameters[circuit.leaf[used]], return_inverse=True)
    parameters, indicators = len(values), int(circuit.first_state[-1])
    inner = circuit.kind >= 2
    last = np.zeros(circuit.n_nodes, dtype=np.int64)
    np.maximum.at(last, circuit.children, np.repeat(np.arange(circuit.n_nodes), np.diff(circuit.offsets)))
    position = parameters + circuit.leaf.astype(np.int64)
    position[used] = number
    free: list[int] = []
    slots, begin, operand, slot = 0, [0], [], []
    for n in np.flatnonzero(inner).tolist():
        below = circuit.children[circuit.offsets[n] : circuit.offsets[n + 1]].tolist()
        if circuit.kind[n] == PRODUCT:  # indicators first: they are zero or one, so that no bit depends on their place
            below.sort(key=lambda child: circuit.kind[child] != INDICATOR)
        operand += position[below].tolist()
        begin.append(len(operand))
        for child in sorted({c for c in below if inner[c] and last[c] == n}):
            heapq.heappush(free, int(position[child]) - parameters - indicators)
        if not free:
            heapq.heappush(free, slots)
            slots += 1
        slot.append(heapq.heappop(free))
        position[n] = parameters + indicators + slot[-1]
    product = circuit.kind[inner] == PRODUCT
    if not slot:  # a single leaf: one step, a product of one operand
        begin, operand, product, slot, slots = [0, 1], [int(position[-1])], np.array([True]), [0], 1
        position[-1] = parameters + indicators
    arrays = (np.array(begin), np.array(operand), product, np.array(slot))
    return Steps(values, indicators, *arrays, slots, int(position[-1]))
