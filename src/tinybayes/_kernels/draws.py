"""Drawing complete assignments, variable by variable or from a lattice of count vectors; sums over weighted samples."""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import inlined, plain
from tinybayes._kernels.streams import start_stream, uniform

REFERENCE, TOTAL, SQUARES, IMPOSSIBLE = 0, 1, 2, 3  # indices in `Weighted.weights`


class Sampler(NamedTuple):
    """Variables in the order in which they are drawn, and the tables that their chances are the product of.

    A row of a table is found by values drawn before; it was divided by a number, its row's message. Where messages have
    been passed on to variables that are drawn before, they cancel in the weight.
    """

    variable: np.ndarray  # (n,)
    states: np.ndarray  # (n,)
    known: np.ndarray  # (n,) the observed state, -1 for none
    reject: np.ndarray  # (1,) draw also what was observed, and give other values the weight zero
    average: np.ndarray  # (n,) what is drawn later does not change the weight: chances may be averaged, not values
    first_state: np.ndarray  # (variables + 1,)
    first_table: np.ndarray  # (n + 1,) into the arrays of tables
    row: np.ndarray  # (tables,) where the rows begin in `ratio`
    message: np.ndarray  # (tables,) where the logarithms of the messages begin in `log_message`, -1: they cancel
    first_context: np.ndarray  # (tables + 1,)
    context: np.ndarray
    stride: np.ndarray  # in rows
    ratio: np.ndarray
    log_message: np.ndarray


class Shape(NamedTuple):
    """The factors of all variables: where their tables are, and who is in them."""

    states: np.ndarray  # (n,)
    first_state: np.ndarray  # (n + 1,)
    first_scope: np.ndarray  # (factors + 1,)
    scope: np.ndarray
    stride: np.ndarray
    first_entry: np.ndarray  # (factors + 1,)
    first_use: np.ndarray  # (n + 1,) the factors of a variable, and its stride in each
    use: np.ndarray
    use_stride: np.ndarray


class Weighted(NamedTuple):
    """Sums over weighted samples; weights are divided by the exponential of a reference, the largest so far."""

    weights: np.ndarray  # (4,): the reference, the sum of weights, of their squares, samples of weight zero
    first: np.ndarray  # (states of all variables,): the sum of weight times chance
    second: np.ndarray  # of squared weight times chance
    third: np.ndarray  # of squared weight times squared chance


@inlined
def pick(chance, begin, states, total, random):
    """Draw a state with the given chances, which sum to `total`."""
    u = uniform(random) * total
    s, last = 0, 0
    while s < states:
        if chance[begin + s] > 0.0:
            last = s
            u -= chance[begin + s]
            if u < 0.0:
                break
        s += 1
    return last


@plain
def _draw(net, x, chance, random):
    """Draw one assignment; return the logarithm of its weight."""
    log_weight, weight = 0.0, 1.0
    for k in range(len(net.variable)):
        v, states = net.variable[k], net.states[k]
        begin = net.first_state[v]
        tables, total = 0, 0.0
        for t in range(net.first_table[k], net.first_table[k + 1]):
            row = np.int64(0)
            for c in range(net.first_context[t], net.first_context[t + 1]):
                row += net.stride[c] * x[net.context[c]]
            if net.message[t] >= 0:
                log_weight += net.log_message[net.message[t] + row]
            at = net.row[t] + row * states
            total = 0.0
            for s in range(states):
                value = net.ratio[at + s] if tables == 0 else chance[begin + s] * net.ratio[at + s]
                chance[begin + s] = value
                total += value
            tables += 1
        if tables == 0:
            total = np.float64(states)
            chance[begin : begin + states] = 1.0
        seen = net.known[k]
        if seen >= 0 and not net.reject[0]:
            total = chance[begin + seen]
            x[v] = seen
            if total <= 0.0:
                return -np.inf
            weight *= total
        else:
            if not total > 0.0:
                return -np.inf
            x[v] = pick(chance, begin, states, total, random)
            if seen >= 0 and x[v] != seen:
                return -np.inf
            weight *= total
            if total != 1.0:
                for s in range(states):
                    chance[begin + s] /= total
        if weight < 1e-200:
            log_weight += np.log(weight)
            weight = 1.0
    return log_weight + np.log(weight)


@inlined
def _rescale(sums, log_weight):
    """Make a larger weight the reference."""
    factor = np.exp(sums.weights[REFERENCE] - log_weight) if sums.weights[REFERENCE] > -np.inf else 0.0
    sums.weights[TOTAL] *= factor
    sums.weights[SQUARES] *= factor * factor
    for s in range(len(sums.first)):
        sums.first[s] *= factor
        sums.second[s] *= factor * factor
        sums.third[s] *= factor * factor
    sums.weights[REFERENCE] = log_weight


@plain
def _smooth(net, shape, values, entries, x, chance, smoothed):
    """Replace the chances of variables that matter by those given all others; others keep what they were drawn from."""
    for f in range(len(shape.first_entry) - 1):
        at = shape.first_entry[f]
        for k in range(shape.first_scope[f], shape.first_scope[f + 1]):
            at += shape.stride[k] * x[shape.scope[k]]
        entries[f] = at
    for k in range(len(net.variable)):
        smoothed[k] = net.average[k]
        if smoothed[k]:
            continue
        v, states = net.variable[k], net.states[k]
        begin, total = net.first_state[v], 0.0
        for s in range(states):
            value = 1.0
            for u in range(shape.first_use[v], shape.first_use[v + 1]):
                value *= values[entries[shape.use[u]] + (s - x[v]) * shape.use_stride[u]]
            chance[begin + s] = value
            total += value
        smoothed[k] = total > 0.0  # else they left the range of doubles
        if smoothed[k]:
            for s in range(states):
                chance[begin + s] /= total


@plain
def row_chances(net, k, x, chance, log_message):
    """Multiply the tables of the k-th variable, given the values drawn so far; add the messages of their rows."""
    states = net.states[k]
    chance[:states] = 1.0
    for t in range(net.first_table[k], net.first_table[k + 1]):
        row = np.int64(0)
        for c in range(net.first_context[t], net.first_context[t + 1]):
            row += net.stride[c] * x[net.context[c]]
        if net.message[t] >= 0:
            log_message[0] += net.log_message[net.message[t] + row]
        for s in range(states):
            chance[s] *= net.ratio[net.row[t] + row * states + s]


@plain
def draw_weighted(net, shape, values, count, seed, x, chance, random, entries, smoothed, sums):
    """Draw assignments and add them to the sums; with values of the factors, chances given all others are averaged."""
    start_stream(seed, random)
    for k in range(len(net.variable)):
        smoothed[k] = net.average[k]
    for _ in range(count):
        log_weight = _draw(net, x, chance, random)
        if log_weight == -np.inf:
            sums.weights[IMPOSSIBLE] += 1.0
            continue
        if log_weight > sums.weights[REFERENCE]:
            _rescale(sums, log_weight)
        weight = np.exp(log_weight - sums.weights[REFERENCE])
        square = weight * weight
        sums.weights[TOTAL] += weight
        sums.weights[SQUARES] += square
        if len(values) > 0:
            _smooth(net, shape, values, entries, x, chance, smoothed)
        for k in range(len(net.variable)):
            v = net.variable[k]
            begin = net.first_state[v]
            if smoothed[k]:
                for s in range(begin, begin + net.states[k]):
                    part = chance[s]
                    sums.first[s] += weight * part
                    sums.second[s] += square * part
                    sums.third[s] += square * part * part
            else:
                s = begin + x[v]
                sums.first[s] += weight
                sums.second[s] += square
                sums.third[s] += square


@plain
def draw_rows(net, seed, x, chance, random, rows, log_weights):
    """Draw assignments and keep them, with the logarithms of their weights."""
    start_stream(seed, random)
    for i in range(len(rows)):
        log_weights[i] = _draw(net, x, chance, random)
        for k in range(len(net.variable)):
            rows[i, net.variable[k]] = x[net.variable[k]]


@plain
def draw_slices(last, first_edge, source, state, upto, variables, first_state, count, seed, x, random, sums):
    """Draw a slice, then a way back through the lattice to the beginning, and add the values to the sums.

    `last` holds the cumulative chances of the nodes of the last layer; edges lie by their target, with their cumulative
    chances in `upto`.
    """
    start_stream(seed, random)
    nodes = len(first_edge) - 1
    for _ in range(count):
        u = uniform(random) * last[-1]
        node = nodes - len(last) + min(np.searchsorted(last, u, side="right"), len(last) - 1)
        for k in range(len(variables) - 1, -1, -1):
            begin, end = first_edge[node], first_edge[node + 1]
            u = uniform(random) * upto[end - 1]
            while end - begin > 1:
                middle = (begin + end) // 2
                if upto[middle - 1] > u:
                    end = middle
                else:
                    begin = middle
            x[variables[k]] = state[begin]
            node = source[begin]
        sums.weights[REFERENCE] = 0.0
        sums.weights[TOTAL] += 1.0
        sums.weights[SQUARES] += 1.0
        for v in range(len(variables)):
            drawn = first_state[v] + x[v]
            sums.first[drawn] += 1.0
            sums.second[drawn] += 1.0
            sums.third[drawn] += 1.0
