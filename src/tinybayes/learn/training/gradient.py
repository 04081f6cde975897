"""The one training loop: arrays in, arrays out, many configurations at once, in JAX.

All tables that a run may use lie in one array ``theta[x, group, class]``: a *group* is one parent context of one
candidate table, and holds ``log p(x | parent value, class)`` for all its ``x`` (padded with `PAD` up to the largest
number of states). So one gather finds the entries of a batch, one sum over the first axis normalises every table, and
one scatter adds up the gradient, whatever the structure: naive Bayes has one candidate a feature, a fixed TAN too, a
search several.

Two facts keep a step cheap. Adding a constant to a group changes no normalised table, so that theta is stored
normalised and the optimiser works on it directly. And only the chosen tables get a gradient from the data: the other
candidates are read for the gradient of the structure, but never written to by the scatter.

Beyond the papers, all groups of a feature may share a part: ``theta[x, g, c] = own[x, g, c] + common[x, feature, c]``.
A context that the data rarely shows then follows the others instead of staying where it started. Since only
differences count, the steps of the common part are added to theta, and the two parts are never stored apart.

Numbers in brackets are equations of differentiable_tan; numbers with R of resource_efficient_bn_classifiers.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from tinybayes.learn.training.losses import hybrid

Array = jax.Array
PAD = -1e30  # log-probability of a state that does not exist
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7


class Rows(NamedTuple):
    """Rows of data: codes (-1 where missing), classes, weights."""

    X: Array
    y: Array
    weight: Array


class Space(NamedTuple):
    """The tables of a run; each array may carry a leading axis of configurations.

    ``parent[i, k]`` is the k-th candidate parent of feature i, -1 for none; ``offset[i, k]`` the first group of that
    table; ``size[i, k]`` its number of entries; ``states[g]`` the number of states in group g, ``owner[g]`` its
    feature.
    """

    parent: Array
    offset: Array
    size: Array
    states: Array
    owner: Array


class Hyper(NamedTuple):
    """What a configuration may choose, one scalar each (or a leading axis of configurations)."""

    lam: Array
    gamma: Array
    eta: Array
    conditional: Array  # weight of the conditional loss
    learning_rate: Array
    structure_rate: Array
    size_penalty: Array  # lambda_MS
    structure_noise: Array  # probability that a feature loses its extra parent for one draw
    sharing: Array  # learning rate of what the groups of a feature have in common, as a multiple of the other one
    scale: Array  # 2**fraction of the fixed-point format
    limit: Array  # largest magnitude it can represent


class Moments(NamedTuple):
    """A parameter with its two Adam moments."""

    value: Array
    first: Array
    second: Array


class Parameters(NamedTuple):
    """What a network is made of: tables, class prior, structure."""

    theta: Array
    prior: Array
    logits: Array


class State(NamedTuple):
    """What training changes."""

    theta: Moments
    prior: Moments
    logits: Moments
    common: Moments  # the sum of the steps of the common parts; without features where nothing is shared
    key: Array
    step: Array

    @property
    def parameters(self) -> Parameters:
        """The values without their moments."""
        return Parameters(self.theta.value, self.prior.value, self.logits.value)


def initial_state(
    key: Array, space: Space, max_states: int, classes: int, spread: float = 0.1, sharing: bool = False
) -> State:
    """Draw the parameters from U(-spread, spread), normalised; all structures start equally likely."""
    draw, draw_prior, key = jax.random.split(key, 3)
    groups = space.states.shape[0]
    rho = jax.random.uniform(draw, (max_states, groups, classes), minval=-spread, maxval=spread)
    exists = jnp.arange(max_states)[:, None] < space.states[None, :]
    theta = _normalized(jnp.where(exists[:, :, None], rho, PAD))
    prior = _normalized(jax.random.uniform(draw_prior, (classes,), minval=-spread, maxval=spread))
    logits = jnp.zeros(space.parent.shape)
    common = jnp.zeros((max_states, space.parent.shape[0] if sharing else 0, classes))
    start = [Moments(p, jnp.zeros_like(p), jnp.zeros_like(p)) for p in (theta, prior, logits, common)]
    return State(start[0], start[1], start[2], start[3], key, jnp.zeros((), jnp.int32))


def train_step(
    state: State,
    rows: Rows,
    space: Space,
    mask: Array,
    hyper: Hyper,
    rate: Array,
    tau: Array,
    quantized: bool,
    per_row: bool,
) -> State:
    """Take one step on one mini-batch for one configuration.

    `mask` says which candidates may be chosen; with a single one there is nothing to search. `per_row` draws a
    structure for every row; the paper draws one for the whole batch, and so do states with a common part.
    """
    theta, prior, logits = state.parameters
    key, noise, loss = jax.random.split(state.key, 3)
    entries = theta.reshape(-1, theta.shape[-1])
    cell = cells(rows.X, space, theta.shape)
    search = mask.shape[1] > 1
    z = logits
    choice = jnp.zeros((1, mask.shape[0]), jnp.int32)
    selected = cell[:, :, 0]
    if search:
        draws = len(rows.y) if per_row else 1
        z = jnp.where(mask, logits + jax.random.gumbel(noise, (draws, *mask.shape)), -jnp.inf)
        kept = jax.random.uniform(loss, z.shape[:2]) >= hyper.structure_noise
        choice = jnp.where(kept, jnp.argmax(z, axis=2), 0)  # (11); choice 0 is no extra parent
        selected = jnp.take_along_axis(cell, choice[:, :, None], axis=2)[:, :, 0]
    scores = class_scores(entries, prior, selected, hyper, quantized)
    g = jax.grad(hybrid)(scores, rows.y, hyper.lam, hyper.gamma, hyper.eta, hyper.conditional, rows.weight)
    d_entries = jnp.zeros_like(entries).at[selected].add(g[:, None, :], mode="drop")
    step = state.step + 1
    d_theta = _through_softmax(theta, d_entries.reshape(theta.shape))
    new_theta = _adam(state.theta, d_theta, rate, step)
    new_common = state.common
    if state.common.value.size:
        new_common = _adam(state.common, _of_features(d_theta, space, choice[0]), rate * hyper.sharing, step)
        moved = (new_common.value - state.common.value)[:, space.owner, :]
        new_theta = new_theta._replace(value=new_theta.value + moved)
    new_prior = _adam(state.prior, _through_softmax(prior, g.sum(axis=0)), rate, step)
    new_logits = state.logits
    if search:
        read = _read(entries, cell, hyper, quantized)
        d_choice = jnp.einsum("bc,bikc->bik", g, read) if per_row else jnp.einsum("bc,bikc->ik", g, read)[None]
        soft = jax.nn.softmax(z / tau, axis=2) * kept[:, :, None]  # (13)
        d_logits = (soft * (d_choice - (soft * d_choice).sum(axis=2, keepdims=True))).sum(axis=0) / tau
        p = jax.nn.softmax(jnp.where(mask, logits, -jnp.inf), axis=1)
        d_size = p * (space.size - (p * space.size).sum(axis=1, keepdims=True))  # R18
        new_logits = _adam(state.logits, d_logits + hyper.size_penalty * d_size, hyper.structure_rate, step)
    return State(
        new_theta._replace(value=_renormalized(new_theta.value)),
        new_prior._replace(value=_normalized(new_prior.value)),
        new_logits,
        new_common,
        key,
        step,
    )


def cells(X: Array, space: Space, shape: tuple[int, ...]) -> Array:
    """Return the row of ``theta.reshape(-1, classes)`` for each data row, feature and candidate.

    Where the feature or the parent is missing, the row is past the end: it reads as zero and is never written.
    """
    states, groups, _ = shape
    above = jnp.where(space.parent >= 0, X[:, space.parent], 0)
    found = X[:, :, None] * groups + space.offset + above
    return jnp.where((X[:, :, None] < 0) | (above < 0), states * groups, found)


def _of_features(gradient: Array, space: Space, choice: Array) -> Array:
    """Add up the gradient over the groups of each feature; only those of the chosen table have one."""
    first = jnp.take_along_axis(space.offset, choice[:, None], axis=1)
    group = first + jnp.arange(gradient.shape[0])  # a parent has no more values than the largest number of states
    owner = space.owner.at[group].get(mode="fill", fill_value=-1)
    found = gradient.at[:, group].get(mode="fill", fill_value=0.0)
    return jnp.where((owner == jnp.arange(len(first))[:, None])[:, :, None], found, 0.0).sum(axis=2)


def class_scores(entries: Array, prior: Array, selected: Array, hyper: Hyper, quantized: bool) -> Array:
    """Add up the prior and the selected entries (9), (R3), as they are stored."""
    first = fixed_point(prior, hyper) if quantized else prior
    return first + _read(entries, selected, hyper, quantized).sum(axis=1)


def _read(entries: Array, cell: Array, hyper: Hyper, quantized: bool) -> Array:
    found = entries.at[cell].get(mode="fill", fill_value=0.0)
    return fixed_point(found, hyper) if quantized else found


def fixed_point(theta: Array, hyper: Hyper) -> Array:
    """Quantise (R11): round half to even, then clip. In training its derivative is taken to be one everywhere."""
    return jnp.clip(jnp.round(theta * hyper.scale) / hyper.scale, -hyper.limit, 0.0)


def best_choice(logits: Array, mask: Array) -> Array:
    """Return the most probable candidate of each feature."""
    return jnp.argmax(jnp.where(mask, logits, -jnp.inf), axis=-1)


@partial(jax.jit, static_argnames=("batch", "quantized", "per_row"), donate_argnums=0)
def run_epochs(
    states: State,
    data: Rows,
    spaces: Space,
    masks: Array,
    hypers: Hyper,
    first: Array,
    last: Array,
    total: Array,
    shuffle: Array,
    *,
    batch: int,
    quantized: bool,
    per_row: bool = False,
) -> State:
    """Train all configurations from epoch `first` up to `last`, in one compiled call.

    Parameters
    ----------
    states, spaces, masks, hypers
        With a leading axis of configurations.
    data
        The training rows, shared by all.
    first, last, total
        Epochs of this call, and of the whole run, for the schedules.
    shuffle
        Key of the shuffling; epoch e uses ``fold_in(shuffle, e)``.
    batch
        Rows of a mini-batch; what does not fill one is left out of the epoch.
    quantized
        Whether the tables are seen through the fixed-point format.
    per_row
        Whether a structure is drawn for every row, not for every mini-batch.
    """
    count = data.X.shape[0]
    steps = count // batch

    def epoch(e: Array, states: State) -> State:
        progress = e / jnp.maximum(total - 1, 1)
        decay, tau = 10.0 ** (-3.0 * progress), 10.0 ** (1.0 - 2.0 * progress)
        order = jax.random.permutation(jax.random.fold_in(shuffle, e), count)[: steps * batch]

        def step(states: State, index: Array) -> tuple[State, None]:
            rows = Rows(*(part[index] for part in data))

            def one(state: State, space: Space, mask: Array, hyper: Hyper) -> State:
                rate = hyper.learning_rate * decay
                return train_step(state, rows, space, mask, hyper, rate, tau, quantized, per_row)

            return jax.vmap(one)(states, spaces, masks, hypers), None

        return jax.lax.scan(step, states, order.reshape(steps, batch))[0]

    return jax.lax.fori_loop(first, last, epoch, states)


@partial(jax.jit, static_argnames=("quantized",))
def error_rates(
    parameters: Parameters, data: Rows, spaces: Space, masks: Array, hypers: Hyper, *, quantized: bool
) -> Array:
    """Return the weighted share of wrong labels of every configuration, under its most probable structure.

    `data` comes in blocks: its arrays have a leading axis of blocks, and rows that only fill a block weigh nothing.
    """

    def one(parameters: Parameters, space: Space, mask: Array, hyper: Hyper) -> Array:
        theta, prior, logits = parameters
        choice = best_choice(logits, mask)[:, None]
        chosen = space._replace(
            parent=jnp.take_along_axis(space.parent, choice, axis=1),
            offset=jnp.take_along_axis(space.offset, choice, axis=1),
        )
        entries = theta.reshape(-1, theta.shape[-1])

        def wrong(rows: Rows) -> Array:
            selected = cells(rows.X, chosen, theta.shape)[:, :, 0]
            scores = class_scores(entries, prior, selected, hyper, quantized)
            return jnp.sum(rows.weight * (jnp.argmax(scores, axis=1) != rows.y))

        return jax.lax.map(wrong, data).sum() / data.weight.sum()

    return jax.vmap(one)(parameters, spaces, masks, hypers)


def _adam(moments: Moments, gradient: Array, rate: Array, step: Array) -> Moments:
    value, first, second = moments
    first = BETA1 * first + (1 - BETA1) * gradient
    second = BETA2 * second + (1 - BETA2) * gradient**2
    t = step.astype(jnp.float32)
    corrected = rate * jnp.sqrt(1 - BETA2**t) / (1 - BETA1**t)
    return Moments(value - corrected * first / (jnp.sqrt(second) + EPSILON), first, second)


def _through_softmax(theta: Array, gradient: Array) -> Array:
    """Gradient with respect to unnormalised log-probabilities (R9), theta being the normalised ones."""
    return gradient - jnp.exp(theta) * _sum_first(gradient)


def _normalized(rho: Array) -> Array:
    return rho - jax.scipy.special.logsumexp(rho, axis=0, keepdims=True)


def _renormalized(rho: Array) -> Array:
    """Normalise values that a small step moved away from normalised ones: no maximum is needed against overflow."""
    return rho - jnp.log(_sum_first(jnp.exp(rho)))


def _sum_first(values: Array) -> Array:
    """Sum over the first axis. Written out when it is short: XLA's reduction is several times slower on a CPU."""
    if values.ndim == 1 or values.shape[0] > 64:
        return values.sum(axis=0, keepdims=True)
    total = values[0]
    for k in range(1, values.shape[0]):
        total = total + values[k]
    return total[None]
