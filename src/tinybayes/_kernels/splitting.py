"""Splitting a distribution of a growing circuit, after `split_cost.edge_cost` has listed what must be copied.

See `growing_circuit.py` for the names.
"""

import numpy as np

from tinybayes._kernels import jit
from tinybayes._kernels.circuit_graph import INDICATOR, PARAMETER, PRODUCT, SUM
from tinybayes._kernels.growing_circuit import (
    ANCESTORS,
    SIDE_D,
    SIDE_V,
    STAMP,
    add_node,
    count_bits,
    has,
    link,
    list_below,
    replace,
    set_children,
    unlink,
)


@jit
def split(g, s, first_parameter, states, variable, first_state, cardinality, new_parameters):
    """Split a distribution on a variable; `new_parameters[v]` is the first parameter node of the part with value v.

    `edge_cost` must have been called for the same split just before, and the pools must have room for what it said.
    """
    stamp = g.numbers[STAMP]
    length = 0  # the side of D is listed anew, children first
    for a in range(s.numbers[ANCESTORS]):
        top = s.ancestors[a, 1]
        if g.kind[top] != PARAMETER and s.seen[top] != stamp:
            length = list_below(g, s, top, length, stamp, False)
    _copy_side_d(g, s, first_parameter, states, cardinality, new_parameters, stamp)
    _copy_side_v(g, s, variable, cardinality, stamp)
    for a in range(s.numbers[ANCESTORS]):
        _join(g, s, a, first_parameter, first_state, cardinality, new_parameters)
    for i in range(s.numbers[SIDE_D] - 1, -1, -1):
        if count_bits(s.values[s.side_d[i]]) > 1:
            _cut_off(g, s.side_d[i])
    for i in range(s.numbers[SIDE_V] - 1, -1, -1):
        if g.above[s.side_v[i]] == 0:
            _cut_off(g, s.side_v[i])


@jit
def _copy_side_d(g, s, first_parameter, states, cardinality, new_parameters, stamp):
    for i in range(s.numbers[SIDE_D]):
        n = s.side_d[i]
        single = count_bits(s.values[n]) == 1
        for v in range(cardinality):
            if not (s.values[n] >> v) & 1:
                continue
            if single:  # the node stays; only its children may be replaced
                _replace_children(g, s, n, v, first_parameter, states, cardinality, new_parameters, stamp)
                s.copies[i * cardinality + v] = n
                continue
            children = s.stack[: g.degree[n]]
            for k in range(g.degree[n]):
                c = g.child[g.start[n] + k]
                if first_parameter <= c < first_parameter + states:
                    c = new_parameters[v] + c - first_parameter
                elif g.kind[c] >= SUM and s.mark[c] == stamp:
                    c = s.copies[s.position[c] * cardinality + v]
                children[k] = c
            s.copies[i * cardinality + v] = add_node(g, g.kind[n], -1, children)


@jit
def _replace_children(g, s, n, v, first_parameter, states, cardinality, new_parameters, stamp):
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        c = g.child[e]
        if first_parameter <= c < first_parameter + states:
            replace(g, e, n, new_parameters[v] + c - first_parameter)
        elif g.kind[c] >= SUM and s.mark[c] == stamp:
            replace(g, e, n, s.copies[s.position[c] * cardinality + v])


@jit
def _copy_side_v(g, s, variable, cardinality, stamp):
    base = s.numbers[SIDE_D] * cardinality
    for i in range(s.numbers[SIDE_V]):
        n = s.side_v[i]
        if s.asked[n] != stamp:
            continue
        for v in range(cardinality):
            if not (s.values[n] >> v) & 1:
                continue
            kept = 0
            for e in range(g.start[n], g.start[n] + g.degree[n]):
                c = g.child[e]
                if not has(g, c, variable):
                    s.stack[kept] = c
                    kept += 1
                elif g.kind[c] != INDICATOR and (s.values[c] >> v) & 1:
                    s.stack[kept] = s.copies[base + s.position[c] * cardinality + v]
                    kept += 1
            made = s.stack[0] if kept == 1 else add_node(g, g.kind[n], -1, s.stack[:kept])
            s.copies[base + i * cardinality + v] = made


@jit
def _join(g, s, a, first_parameter, first_state, cardinality, new_parameters):
    """Put a sum over the values of the variable in the place of the two children of a mutual ancestor."""
    m, d, v_node = s.ancestors[a, 0], s.ancestors[a, 1], s.ancestors[a, 2]
    values = s.values[m]
    single = count_bits(values) == 1
    terms = 0
    base = s.numbers[SIDE_D] * cardinality
    below = 0
    products = np.empty(cardinality, np.int32)
    three = np.empty(3, np.int32)
    for v in range(cardinality):
        if not (values >> v) & 1:
            continue
        if g.kind[d] == PARAMETER:
            below = new_parameters[v] + d - first_parameter
        else:
            below = s.copies[s.position[d] * cardinality + v]
        if not single:
            three[0], three[1] = first_state + v, s.copies[base + s.position[v_node] * cardinality + v]
            three[2] = below
            products[terms] = add_node(g, PRODUCT, -1, three)
            terms += 1
    if not single and g.degree[m] == 2:
        for e in range(g.start[m], g.start[m] + 2):
            unlink(g, e)
        g.kind[m] = SUM
        set_children(g, m, products[:terms])
        return
    joined = below if single else add_node(g, SUM, -1, products[:terms])
    last = g.start[m] + g.degree[m] - 1
    for e in range(g.start[m], last + 1):
        if g.child[e] == d:
            replace(g, e, m, joined)
            break
    if single:
        return
    for e in range(g.start[m], last + 1):
        if g.child[e] == v_node:
            unlink(g, e)
            if e != last:
                moved = g.child[last]
                unlink(g, last)
                link(g, e, m, moved)
            g.degree[m] -= 1
            break


@jit
def _cut_off(g, n):
    """Take away the edges to the children of a node that nothing leads to any more."""
    for e in range(g.start[n], g.start[n] + g.degree[n]):
        unlink(g, e)
    g.degree[n] = 0
