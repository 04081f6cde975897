"""What is left of a model once something was observed: small tables over the variables that are still open."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tinybayes._kernels.buckets import propagate
from tinybayes._kernels.draws import Shape
from tinybayes.errors import TinybayesError, error
from tinybayes.model import BayesNet, Factor, LogLinear, Variable
from tinybayes.model.layout import starts, strides

MOST_ENTRIES = 2**24  # of one factor as a full table
Evidence = Mapping[str, object] | Mapping[int, int] | np.ndarray | None


class ImpossibleError(TinybayesError):
    """No assignment agrees with the evidence and the zeros of the model."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A log-linear model restricted to evidence; its open variables have numbers of their own."""

    variables: tuple[Variable, ...]  # all variables of the model
    domains: tuple[np.ndarray, ...]  # the states that are left of each variable of the model
    free: tuple[int, ...]  # the open variables: more than one state is left
    scopes: tuple[tuple[int, ...], ...]  # the open variables of each factor, as indices into `free`
    features: tuple[np.ndarray, ...]  # the feature of each entry of each factor (row-major), -1 for none
    ties: np.ndarray  # the tie class of each feature, and -1 at the end for no feature
    weights: np.ndarray  # of each tie class
    constant: float  # the sum of the weights that hold in every assignment that is left

    @cached_property
    def states(self) -> np.ndarray:
        """The number of states of each open variable."""
        return np.array([len(self.domains[v]) for v in self.free], dtype=np.int64)

    @cached_property
    def first_state(self) -> np.ndarray:
        """Where the states of each open variable begin in arrays over all of them."""
        return starts(self.states)

    @cached_property
    def classes(self) -> tuple[np.ndarray, ...]:
        """The tie class of each entry of each factor, -1 for none."""
        return tuple(self.ties[feature] for feature in self.features)

    @cached_property
    def logs(self) -> tuple[np.ndarray, ...]:
        """The weight of each entry of each factor."""
        weights = np.append(self.weights, 0.0)
        return tuple(weights[entries] for entries in self.classes)

    @cached_property
    def shape(self) -> Shape:
        """The scopes of all factors, laid out for the kernels."""
        steps = [strides(self.states[list(scope)].tolist()) for scope in self.scopes]
        uses: list[list[tuple[int, int]]] = [[] for _ in self.free]
        for f, (scope, own) in enumerate(zip(self.scopes, steps, strict=True)):
            for v, step in zip(scope, own, strict=True):
                uses[v].append((f, step))
        pairs = np.array([pair for mine in uses for pair in mine], dtype=np.int64).reshape(-1, 2)
        return Shape(
            states=self.states,
            first_state=self.first_state,
            first_scope=starts(len(scope) for scope in self.scopes),
            scope=np.array([v for scope in self.scopes for v in scope], dtype=np.int64),
            stride=np.array([step for own in steps for step in own], dtype=np.int64),
            first_entry=starts(len(feature) for feature in self.features),
            first_use=starts(len(mine) for mine in uses),
            use=pairs[:, 0].copy(),
            use_stride=pairs[:, 1].copy(),
        )

    def spread(self, values: np.ndarray, fixed: float) -> tuple[np.ndarray, ...]:
        """Put values of the states of open variables where they are in the model; others get `fixed` or zero."""
        out = []
        index = {v: k for k, v in enumerate(self.free)}
        for v, variable in enumerate(self.variables):
            array = np.zeros(variable.cardinality)
            at = index.get(v)
            array[self.domains[v]] = fixed if at is None else values[self.first_state[at] : self.first_state[at + 1]]
            out.append(array)
        return tuple(out)


def as_log_linear(model: BayesNet | LogLinear) -> LogLinear:
    """See a network as a log-linear model; it is kept with the network, which never changes."""
    if isinstance(model, LogLinear):
        return model
    kept: LogLinear | None = model.__dict__.get("_log_linear")
    if kept is None:
        kept = model.__dict__["_log_linear"] = LogLinear.from_bayes_net(model)
    return kept


def observed(variables: tuple[Variable, ...], evidence: Evidence) -> dict[int, int]:
    """Return evidence as numbers of states by numbers of variables, checked.

    A variable goes by its name or number, a state by its value or number; a row of codes has -1 for what was not seen.
    """
    if evidence is None:
        return {}
    if isinstance(evidence, np.ndarray):
        row = evidence.reshape(-1)
        if evidence.size != len(variables) or row.dtype.kind not in "iu":
            got = f"{evidence.dtype} of shape {evidence.shape}"
            raise error(f"{len(variables)} integer codes, one for each variable", got, where="evidence")
        evidence = {v: int(code) for v, code in enumerate(row.tolist()) if code != -1}
    if not isinstance(evidence, Mapping):
        expected = "a mapping from variables to states, or one row of codes as an array"
        raise error(expected, type(evidence).__name__, where="evidence")
    named = any(isinstance(key, str) for key in evidence)
    names = {variable.name: v for v, variable in enumerate(variables)} if named else {}
    states: dict[int, int] = {}
    for key, value in evidence.items():
        v = names.get(key) if isinstance(key, str) else key if isinstance(key, int | np.integer) else None
        if v is None or not 0 <= v < len(variables):
            raise error("the name or the number of a variable", repr(key), where="evidence")
        variable = variables[v]
        number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if isinstance(key, str) and value in variable.states:
            code = variable.states.index(value)
        elif number and 0 <= int(value) < variable.cardinality:  # type: ignore[call-overload]
            code = int(value)  # type: ignore[call-overload]
        else:
            shown = ", ".join(map(str, variable.states[:8])) + (", ..." if variable.cardinality > 8 else "")
            raise error(f"a state of {variable.name!r} ({shown})", repr(value), where="evidence")
        if states.setdefault(int(v), code) != code:
            raise error(f"one state of {variable.name!r}", "two", where="evidence")
    return states


def dense_entries(model: LogLinear) -> float:
    """Return how many entries the factors of a model have as full tables."""
    return sum(math.prod(float(model.cardinalities[v]) for v in factor.scope) for factor in model.factors)


def impossible(where: str = "evidence") -> TinybayesError:
    """Return the error for evidence, or a model, that leaves no assignment."""
    return error(
        "something that can occur",
        "probability zero: no assignment agrees with the evidence and the zeros or hard clauses of the model",
        where=where,
        remedy="take back one of the observations",
        kind=ImpossibleError,
    )


def restrict(model: LogLinear, known: Mapping[int, int], *, closed: bool = True, apart: bool = False) -> Problem:
    """Restrict a model to evidence, given as codes by the indices of variables.

    With `closed`, states that some factor rules out are removed as well, until nothing changes. With `apart`, factors
    whose features are all tied are kept, although they change no probability.
    """
    cards, whole = model.cardinalities, facts(model)
    tables, ties, weights = whole.tables, whole.ties, whole.weights
    domain = _domain(model, whole, known, closed)
    domains = tuple(np.flatnonzero(part) for part in np.split(domain, np.cumsum(cards)[:-1]))
    free = tuple(v for v, left in enumerate(domains) if len(left) > 1)
    less = {v for v, left in enumerate(domains) if len(left) < cards[v]}
    index = {v: k for k, v in enumerate(free)}
    scopes, features, constant = [], [], 0.0
    for factor, table in zip(model.factors, tables, strict=True):
        scope = factor.scope
        left = tuple(index[v] for v in scope if v in index)
        if not less.isdisjoint(scope):
            table = table.reshape([cards[v] for v in scope])[np.ix_(*(domains[v] for v in scope))].reshape(-1)
            same = table if apart else ties[table]
            if (same == same[0]).all():
                left = ()  # the evidence decides it
        if left:
            scopes.append(left)
            features.append(table)
        else:
            constant += float(weights[table[0]])
    if constant == -math.inf:
        raise impossible()
    return Problem(model.variables, domains, free, tuple(scopes), tuple(features), ties, model.weights, constant)


@dataclass(frozen=True, eq=False)
class Facts:
    """What restricting a model takes of it, whatever the evidence."""

    tables: list[np.ndarray]  # the feature of each entry of each factor
    ties: np.ndarray  # the tie class of each feature, and -1 at the end for no feature
    weights: np.ndarray  # of each feature, and 0 at the end
    hard: list[tuple[tuple[int, ...], np.ndarray]]  # scopes of factors with zeros, and which entries are possible
    domain: np.ndarray  # which states of all variables the zeros leave without evidence


def facts(model: LogLinear) -> Facts:
    """Return the facts about a model; they are kept with it, since it never changes."""
    kept: Facts | None = model.__dict__.get("_facts")
    if kept is None:
        tables = [_full(model, factor) for factor in model.factors]
        ties = np.append(model.classes, -1)
        weights = np.append(model.weights, 0.0)[ties]
        zero = np.isneginf(weights)
        hard = [(factor.scope, ~zero[table]) for factor, table in zip(model.factors, tables, strict=True)]
        hard = [(scope, possible) for scope, possible in hard if not possible.all()]
        cards = np.array(model.cardinalities, dtype=np.int64)
        domain = np.ones(int(cards.sum()), dtype=np.bool_)
        if not _supported(hard, cards, domain, np.ones(len(hard), dtype=np.bool_)):
            raise impossible("model")
        kept = model.__dict__["_facts"] = Facts(tables, ties, weights, hard, domain)
    return kept


def _domain(model: LogLinear, whole: Facts, known: Mapping[int, int], closed: bool) -> np.ndarray:
    """Return which states of all variables are left."""
    cards = np.array(model.cardinalities, dtype=np.int64)
    first_state = starts(cards)
    domain = whole.domain.copy() if closed else np.ones(first_state[-1], dtype=np.bool_)
    for v, state in known.items():
        own = domain[first_state[v] : first_state[v + 1]]
        fits = own[state]
        own[:] = False
        own[state] = True
        if not fits:
            raise impossible()
    if not closed or not known:
        return domain
    # What no evidence changed supports all states that are left already.
    changed = [not known.keys().isdisjoint(scope) for scope, _ in whole.hard]
    hard = [_given(scope, possible, cards, known) for scope, possible in whole.hard]
    if not _supported(hard, cards, domain, np.array(changed, dtype=np.bool_)):
        raise impossible()
    return domain


def _supported(
    hard: list[tuple[tuple[int, ...], np.ndarray]], cards: np.ndarray, domain: np.ndarray, waiting: np.ndarray
) -> bool:
    """Take away states that no factor supports; return False when nothing is possible."""
    if any(not possible.any() for (_, possible), first in zip(hard, waiting, strict=True) if first):
        return False
    if not waiting.any():
        return True
    first_scope = starts(len(scope) for scope, _ in hard)
    scopes = np.array([v for scope, _ in hard for v in scope], dtype=np.int64)
    entries = starts(len(possible) for _, possible in hard)
    possible = np.concatenate([part for _, part in hard])
    return bool(propagate(first_scope, scopes, entries, possible, cards, starts(cards), domain, waiting))


def _given(
    scope: tuple[int, ...], possible: np.ndarray, cards: np.ndarray, known: Mapping[int, int]
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the part of a table that agrees with evidence, over the variables that were not observed."""
    if known.keys().isdisjoint(scope):
        return scope, possible
    part = possible.reshape([int(cards[v]) for v in scope])[tuple(known.get(v, slice(None)) for v in scope)]
    return tuple(v for v in scope if v not in known), np.ascontiguousarray(part).reshape(-1)


def _full(model: LogLinear, factor: Factor) -> np.ndarray:
    """Return the feature of each entry of a factor's full table, -1 for none."""
    entries = math.prod(model.cardinalities[v] for v in factor.scope)
    if entries > MOST_ENTRIES:
        raise error(
            f"factors of at most {MOST_ENTRIES:,} entries",
            f"one over {len(factor.scope)} variables with {entries:,}",
            where="model",
            remedy="Gibbs sampling takes it as it is: method='gibbs'",
        )
    if factor.tree is None:
        return factor.feature
    grid = np.indices([model.cardinalities[v] for v in factor.scope]).reshape(len(factor.scope), -1)
    at = np.full(len(model.variables), -1)
    at[list(factor.scope)] = range(len(factor.scope))
    inner = factor.tree.split >= 0
    renamed = replace(factor.tree, split=np.where(inner, at[factor.tree.split], -1))
    local = Factor(tuple(range(len(factor.scope))), factor.feature, renamed)
    return local.find(grid.T, model.cardinalities)
