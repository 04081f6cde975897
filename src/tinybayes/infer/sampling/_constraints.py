"""Factors as constraints, laid out for the kernels."""

import numpy as np

from tinybayes._kernels.constraints import Way
from tinybayes._kernels.draws import Shape
from tinybayes.infer.sampling._problem import Problem
from tinybayes.infer.sampling._schedule import Units
from tinybayes.model.layout import starts, strides


def shape_of(problem: Problem) -> Shape:
    """Lay out the scopes of all factors."""
    states = problem.states
    steps: list[list[int]] = []
    uses: list[list[tuple[int, int]]] = [[] for _ in states]
    for f, scope in enumerate(problem.scopes):
        own = strides([states[v] for v in scope])
        for v, step in zip(scope, own, strict=True):
            uses[v].append((f, step))
        steps.append(own)
    pairs = np.array([pair for mine in uses for pair in mine], dtype=np.int64).reshape(-1, 2)
    return Shape(
        states=states,
        first_state=problem.first_state,
        first_scope=starts([len(scope) for scope in problem.scopes]),
        scope=np.array([v for scope in problem.scopes for v in scope], dtype=np.int64),
        stride=np.array([step for own in steps for step in own], dtype=np.int64),
        first_entry=starts([len(feature) for feature in problem.features]),
        first_use=starts([len(mine) for mine in uses]),
        use=pairs[:, 0].copy(),
        use_stride=pairs[:, 1].copy(),
    )


def way_of(units: Units) -> Way:
    """Lay out the way back along a schedule."""
    axes = [(*context, v) for context, v in zip(units.contexts, units.variable.tolist(), strict=True)]
    return Way(units.variable, units.plan.first_axis, np.array([v for axis in axes for v in axis], dtype=np.int64))


def digits_of(units: Units) -> np.ndarray:
    """Return room for the digits of the widest unit."""
    return np.zeros(int(np.diff(units.plan.first_axis).max(initial=1)), dtype=np.int64)
