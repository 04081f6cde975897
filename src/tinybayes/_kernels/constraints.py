"""Uniform draws among the assignments that a set of constraints allows, and what is built on them.

A constraint is a factor's table of ones and zeros. Exact draws count the solutions by elimination (`count_up`) and go
back along the units. SampleSAT walks instead: it repairs violated constraints and, in between, moves as simulated
annealing would; its draws are near uniform, no more.
"""

from typing import NamedTuple

import numpy as np

from tinybayes._kernels import inlined, plain
from tinybayes._kernels.buckets import count_up
from tinybayes._kernels.draws import pick
from tinybayes._kernels.streams import uniform


class Way(NamedTuple):
    """The units of a schedule from the last to the first, for going back."""

    variable: np.ndarray  # (units,)
    first_axis: np.ndarray
    axis: np.ndarray  # the variables of the context, then the variable


class Groups(NamedTuple):
    """The features that have constraints of their own; without groups each factor has one constraint."""

    group: np.ndarray  # (entries,) the number of the feature within its factor
    top: np.ndarray  # (factors,) the largest weight
    allowed: np.ndarray  # (the most features of a factor,) room for the kernel


class Violations(NamedTuple):
    """Where an assignment stands in each factor, and the factors that it violates."""

    cell: np.ndarray  # (factors,) the entry of the assignment
    listed: np.ndarray  # (factors,) the violated factors, ``size[0]`` of them
    position: np.ndarray  # (factors,) of a violated factor in the list
    size: np.ndarray  # (1,)


@plain
def go_back(plan, way, joint, first_state, x, chance, random):
    """Draw a solution after `count_up`; `chance` holds what each value was drawn from."""
    for u in range(len(way.variable) - 1, -1, -1):
        v, states = way.variable[u], plan.states[u]
        row = np.int64(0)
        for a in range(way.first_axis[u], way.first_axis[u + 1] - 1):
            row = row * plan.axis_card[a] + x[way.axis[a]]
        at, begin = plan.first_joint[u] + row * states, first_state[v]
        for s in range(states):
            chance[begin + s] = joint[at + s]
        x[v] = pick(chance, begin, states, 1.0, random)


@plain
def _thresholds(shape, logs, x, tables, random):
    """Allow the entries of each factor that are at least as large as a number below the present one."""
    for f in range(len(shape.first_entry) - 1):
        begin = shape.first_entry[f]
        at = begin
        for k in range(shape.first_scope[f], shape.first_scope[f + 1]):
            at += shape.stride[k] * x[shape.scope[k]]
        level = logs[at] + np.log(1.0 - uniform(random))
        for e in range(begin, shape.first_entry[f + 1]):
            tables[e] = 1.0 if logs[e] >= level else 0.0
        tables[at] = 1.0


@plain
def _features(shape, logs, group, tops, allowed, x, tables, random):
    """Forbid each feature of a factor but the present one with the chance one less its value, the largest being one.

    Weights are taken relative to the largest of the factor, so that all are negative: a feature that is false satisfies
    its negation, which becomes a constraint with the chance that Poon and Domingos give.
    """
    for f in range(len(shape.first_entry) - 1):
        begin, end = shape.first_entry[f], shape.first_entry[f + 1]
        at = begin
        for k in range(shape.first_scope[f], shape.first_scope[f + 1]):
            at += shape.stride[k] * x[shape.scope[k]]
        allowed[:] = -1.0
        for e in range(begin, end):
            g = group[e]
            if allowed[g] < 0.0:
                allowed[g] = 1.0 if uniform(random) < np.exp(logs[e] - tops[f]) else 0.0
        allowed[group[at]] = 1.0
        for e in range(begin, end):
            tables[e] = allowed[group[e]] if logs[e] > -np.inf else 0.0


@inlined
def _constrain(shape, logs, group, tops, allowed, x, tables, random):
    """Draw the constraints of a slice: one of each factor, or with groups of entries one of each feature."""
    if len(group) > 0:
        _features(shape, logs, group, tops, allowed, x, tables, random)
    else:
        _thresholds(shape, logs, x, tables, random)


@plain
def mcsat_exact(shape, plan, way, logs, groups, tables, joint, digits, x, chance, random, sweeps, total):
    """Do sweeps of MC-SAT with exact uniform draws; add up the chances that values were drawn from."""
    group, tops, allowed = groups
    for _ in range(sweeps):
        _constrain(shape, logs, group, tops, allowed, x, tables, random)
        count_up(plan, tables, joint, digits)
        go_back(plan, way, joint, shape.first_state, x, chance, random)
        for s in range(len(total)):
            total[s] += chance[s]


@plain
def mcsat_walk(shape, logs, groups, tables, x, trial, broken, random, flips, noise, walk, cold, sweeps, total, failed):
    """Do sweeps of MC-SAT with SampleSAT; where it finds no solution the chain stays where it is."""
    group, tops, allowed = groups
    for _ in range(sweeps):
        _constrain(shape, logs, group, tops, allowed, x, tables, random)
        for v in range(len(x)):
            trial[v] = np.int32(uniform(random) * shape.states[v])
        if _sample_sat(shape, tables, trial, broken, random, flips, noise, walk, cold):
            for v in range(len(x)):
                x[v] = trial[v]
        else:
            failed[0] += 1
        for v in range(len(x)):
            total[shape.first_state[v] + x[v]] += 1.0


@inlined
def _change(shape, tables, broken, v, old, new):
    """Return by how much the number of violated constraints grows when a variable changes."""
    delta = 0
    for k in range(shape.first_use[v], shape.first_use[v + 1]):
        f = shape.use[k]
        now = broken.cell[f]
        delta += np.int64(tables[now]) - np.int64(tables[now + (new - old) * shape.use_stride[k]])
    return delta


@inlined
def _set(shape, tables, broken, x, v, new):
    """Change a variable; keep the list of violated constraints."""
    cell, listed, position, size = broken
    step = new - x[v]
    x[v] = new
    for k in range(shape.first_use[v], shape.first_use[v + 1]):
        f = shape.use[k]
        before = tables[cell[f]]
        cell[f] += step * shape.use_stride[k]
        after = tables[cell[f]]
        if before > after:
            position[f] = size[0]
            listed[size[0]] = f
            size[0] += 1
        elif before < after:
            size[0] -= 1
            last = listed[size[0]]
            listed[position[f]] = last
            position[last] = position[f]


@plain
def _sample_sat(shape, tables, x, broken, random, flips, noise, walk, cold):
    """Look for a solution from `x`; return whether one was found within `flips` steps.

    With the chance `walk` a step repairs a violated constraint: with the chance `noise` by a random change, else by the
    one that violates the fewest. Other steps are those of simulated annealing at the inverse temperature `cold`, and so
    are those for a while after the first solution, among solutions.
    """
    cell, listed, position, size = broken
    size[0] = 0
    for f in range(len(shape.first_entry) - 1):
        at = shape.first_entry[f]
        for k in range(shape.first_scope[f], shape.first_scope[f + 1]):
            at += shape.stride[k] * x[shape.scope[k]]
        cell[f] = at
        if tables[at] == 0.0:
            position[f] = size[0]
            listed[size[0]] = f
            size[0] += 1
    n = len(x)
    for _ in range(flips):
        if size[0] == 0:
            break
        if uniform(random) >= walk:
            v = np.int64(uniform(random) * n)
            new = _other(shape, x, v, random)
            delta = _change(shape, tables, broken, v, x[v], new)
            if delta <= 0 or uniform(random) < np.exp(-cold * delta):
                _set(shape, tables, broken, x, v, new)
            continue
        f = listed[np.int64(uniform(random) * size[0])]
        begin, width = shape.first_scope[f], shape.first_scope[f + 1] - shape.first_scope[f]
        v = shape.scope[begin + np.int64(uniform(random) * width)]
        new = _other(shape, x, v, random)
        if uniform(random) >= noise:
            least = np.int64(1 << 40)
            for k in range(begin, begin + width):
                u = shape.scope[k]
                for s in range(shape.states[u]):
                    if s != x[u]:
                        delta = _change(shape, tables, broken, u, x[u], s)
                        if delta < least:
                            least, v, new = delta, u, s
        _set(shape, tables, broken, x, v, new)
    if size[0] > 0:
        return False
    for _ in range(n):
        v = np.int64(uniform(random) * n)
        new = _other(shape, x, v, random)
        if _change(shape, tables, broken, v, x[v], new) <= 0:
            _set(shape, tables, broken, x, v, new)
    return True


@inlined
def _other(shape, x, v, random):
    """Draw another state of a variable."""
    new = np.int64(uniform(random) * (shape.states[v] - 1))
    return new + 1 if new >= x[v] else new
