"""Factors as constraints, laid out for the kernels."""

import numpy as np

from tinybayes._kernels.constraints import Way
from tinybayes._kernels.draws import Shape
from tinybayes.infer.sampling._problem import Problem
from tinybayes.infer.sampling._schedule import Units


def shape_of(problem: Problem) -> Shape:
    """Lay out the scopes of all factors."""
    states = problem.states
    strides: list[list[int]] = []
    uses: list[list[tuple[int, int]]] = [[] for _ in states]
    for f, scope in enumerate(problem.scopes):
        step, own = 1, []
        for v in reversed(scope):
            own.append(step)
            uses[v].append((f, step))
            step *= int(states[v])
        strides.append(own[::-1])
    pairs = np.array([pair for mine in uses for pair in mine], dtype=np.int64).reshape(-1, 2)
    return Shape(
        states=states,
        first_state=problem.first_state,
        first_scope=_starts([len(scope) for scope in problem.scopes]),
        scope=np.array([v for scope in problem.scopes for v in scope], dtype=np.int64),
        stride=np.array([step for own in strides for step in own], dtype=np.int64),
        first_entry=_starts([len(feature) for feature in problem.features]),
        first_use=_starts([len(mine) for mine in uses]),
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


def _starts(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
