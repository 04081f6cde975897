"""Steps of tables and structure by gradient: arrays in, arrays out, in JAX.

All tables that a run may use lie in one array ``theta[entry, class]``: a *group* is one parent context of one
candidate table, and has an entry ``log p(x | parent value, class)`` for each of its ``x``; where it lies says
`table_layout.py`. So one gather finds the entries of a batch, sums over the states normalise every table, and one
scatter adds up the gradient, whatever the structure: naive Bayes has one candidate a feature, a fixed TAN too, a search
several.

Two facts keep a step cheap. Adding a constant to a group changes no normalised table, so that theta is stored
normalised and the optimiser works on it directly. And only the chosen tables get a gradient from the data: the other
candidates are read for the gradient of the structure, but never written to by the scatter.

Beyond the papers, all groups of a feature may share a part: ``theta[x, g, c] = own[x, g, c] + common[x, feature, c]``
(their tables lie in one bucket).
A context that the data rarely shows then follows the others instead of staying where it started. Since only
differences count, the steps of the common part are added to theta, and the two parts are never stored apart.

Numbers in brackets are equations of differentiable_tan; numbers with R of resource_efficient_bn_classifiers.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tinybayes.learn.training._jax import jax, jnp
from tinybayes.learn.training.compiling import compiled
from tinybayes.learn.training.engine import ClassSteps, Rows
from tinybayes.learn.training.input_noise import Moves, jitter
from tinybayes.learn.training.losses import hybrid
from tinybayes.learn.training.optimizer import Moments, adam, decay, start
from tinybayes.learn.training.table_layout import Layout

Array = jax.Array
PAD = -1e30  # log-probability of a state that does not exist
MOVES, LABELS = 0, 1  # numbers of the random streams of a mini-batch


class Space(NamedTuple):
    """The tables of a run; each array may carry a leading axis of configurations.

    ``parent[i, k]`` is the k-th candidate parent of feature i, -1 for none; ``offset[i, k]`` the first entry of that
    table, ``size[i, k]`` its number of parameters; ``stride[i]`` the entries from one state of feature i to the next,
    and ``shift[i]`` the number of its first entry less that of its first group; ``states[g]`` the number of states in
    group g, ``owner[g]`` its feature.
    """

    parent: Array
    offset: Array
    size: Array
    stride: Array
    shift: Array
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
    input_noise: Array  # probability that a code moves to another state
    noise_end: Array  # its share at the end of training
    sharing: Array  # learning rate of what the groups of a feature have in common, as a multiple of the other one
    scale: Array  # 2**fraction of the fixed-point format
    limit: Array  # largest magnitude it can represent


class Tables(NamedTuple):
    """What training does not change: the tables, which candidates may be chosen, the hyper-parameters."""

    space: Space
    mask: Array
    hyper: Hyper
    moves: Moves | Array | None = None  # with input noise: where codes move to


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


@compiled(static_argnames=("layout", "classes", "spread", "sharing"))
def initial_state(
    key: Array, space: Space, layout: Layout, classes: int, spread: float = 0.1, sharing: bool = False
) -> State:
    """Draw the parameters from U(-spread, spread), normalised; all structures start equally likely."""
    draw, draw_prior, key = jax.random.split(key, 3)
    rho = jax.random.uniform(draw, (layout.entries, classes), minval=-spread, maxval=spread)
    rho = layout.shaped(jnp.where(layout.exists(space.states)[:, None], rho, PAD))
    theta = _renormalized(rho, layout)
    prior = _normalized(jax.random.uniform(draw_prior, (classes,), minval=-spread, maxval=spread))
    logits = jnp.zeros(space.parent.shape)
    common = jnp.zeros((layout.buckets[-1][0], space.parent.shape[0] if sharing else 0, classes))
    return State(start(theta), start(prior), start(logits), start(common), key, jnp.zeros((), jnp.int32))


class Schedule(NamedTuple):
    """Within an epoch: the factor of the learning rate, the temperature of the structure's softmax, the progress."""

    decay: Array
    tau: Array
    progress: Array


@dataclass(frozen=True)
class TableSteps(ClassSteps):
    """The steps that the engine takes.

    `layout`: where the tables lie. `quantized`: they are seen through the fixed-point format. `per_row`: a structure is
    drawn for every row; the paper draws one for the whole mini-batch, and so do states with a common part.
    """

    layout: Layout
    quantized: bool
    per_row: bool = False

    def schedule(self, progress: Array) -> Schedule:
        """Let the rate fall by a factor of 1000, the temperature from 10 to 0.1."""
        return Schedule(decay(progress, 3.0), 10.0 ** (1.0 - 2.0 * progress), progress)

    def step(self, state: State, fixed: Tables, rows: Rows, schedule: Schedule) -> State:
        """Take one step on one mini-batch; with a single candidate there is no structure to search."""
        (space, mask, hyper, moves), layout, quantized, per_row = fixed, self.layout, self.quantized, self.per_row
        rate, tau = hyper.learning_rate * schedule.decay, schedule.tau
        theta, prior, logits = state.parameters
        entries = theta.reshape(-1, len(prior))
        key, gumbel, loss = jax.random.split(state.key, 3)
        X = rows.X
        if moves is not None:
            noise = hyper.input_noise * (1.0 - (1.0 - hyper.noise_end) * schedule.progress)
            assert rows.key is not None
            X = jitter(jax.random.fold_in(rows.key, MOVES), X, noise, moves)
        cell = cells(X, space, layout.entries)
        choice = jnp.zeros((1, mask.shape[0]), jnp.int32)
        selected = cell[:, :, 0]
        search = mask.shape[1] > 1
        if search:
            draws = len(rows.y) if per_row else 1
            z = jnp.where(mask, logits + jax.random.gumbel(gumbel, (draws, *mask.shape)), -jnp.inf)
            kept = jax.random.uniform(loss, z.shape[:2]) >= hyper.structure_noise
            choice = jnp.where(kept, jnp.argmax(z, axis=2), 0)  # (11); choice 0 is no extra parent
            selected = jnp.take_along_axis(cell, choice[:, :, None], axis=2)[:, :, 0]
        scores = class_scores(entries, prior, selected, hyper, quantized)
        y = rows.y
        if rows.soft is not None:  # the class is drawn as the teacher says
            assert rows.key is not None
            y = jax.random.categorical(jax.random.fold_in(rows.key, LABELS), jnp.log(rows.soft + 1e-9))
        g = jax.grad(hybrid)(scores, y, hyper.lam, hyper.gamma, hyper.eta, hyper.conditional, rows.weight)
        d_entries = jnp.zeros_like(entries).at[selected].add(g[:, None, :], mode="drop")
        step = state.step + 1
        # The sum over the states of a group is counted again: XLA would add up d_entries for each of the states.
        group = jnp.where(selected < layout.entries, selected - X * space.stride - space.shift, layout.groups)
        total = jnp.zeros((layout.groups, len(prior))).at[group].add(g[:, None, :], mode="drop")
        d_theta = _through_softmax(theta, d_entries.reshape(theta.shape), layout.to_entries(total))
        new_theta = adam(state.theta, d_theta, rate, step)
        new_common, new_logits = state.common, state.logits
        if state.common.value.size:
            new_common = adam(state.common, _of_features(d_theta, space, choice[0]), rate * hyper.sharing, step)
            moved = (new_common.value - state.common.value)[:, space.owner, :]
            new_theta = new_theta._replace(value=new_theta.value + moved)
        new_prior = adam(state.prior, _through_softmax(prior, g.sum(axis=0), g.sum()), rate, step)
        if search:
            read = _read(entries, cell, hyper, quantized)
            # A product and a sum, which XLA fuses with the read; as a matrix product it takes 3 times as long on a CPU.
            d_choice = (g[:, None, None, :] * read).sum(axis=3)
            d_choice = d_choice if per_row else d_choice.sum(axis=0, keepdims=True)
            soft = jax.nn.softmax(z / tau, axis=2) * kept[:, :, None]  # (13)
            d_logits = (soft * (d_choice - (soft * d_choice).sum(axis=2, keepdims=True))).sum(axis=0) / tau
            d_logits += hyper.size_penalty * _of_sizes(logits, fixed)
            new_logits = adam(state.logits, d_logits, hyper.structure_rate, step)
        new_theta = new_theta._replace(value=_renormalized(new_theta.value, layout))
        new_prior = new_prior._replace(value=_normalized(new_prior.value))
        return State(new_theta, new_prior, new_logits, new_common, key, step)

    def scores(self, parameters: Parameters, fixed: Tables, X: Array) -> Array:
        """Return the class scores of rows under the most probable structure."""
        theta, prior, logits = parameters
        space = fixed.space
        choice = best_choice(logits, fixed.mask)[:, None]
        chosen = space._replace(
            parent=jnp.take_along_axis(space.parent, choice, axis=1),
            offset=jnp.take_along_axis(space.offset, choice, axis=1),
        )
        selected = cells(X, chosen, self.layout.entries)[:, :, 0]
        return class_scores(theta.reshape(-1, len(prior)), prior, selected, fixed.hyper, self.quantized)


def cells(X: Array, space: Space, entries: int) -> Array:
    """Return the entry of theta for each data row, feature and candidate.

    Where the feature or the parent is missing, it is past the end: it reads as zero and is never written.
    """
    above = jnp.where(space.parent >= 0, X[:, space.parent], 0)
    missing = (X[:, :, None] < 0) | (above < 0)
    return jnp.where(missing, entries, X[:, :, None] * space.stride[:, None] + space.offset + above)


def _of_features(gradient: Array, space: Space, choice: Array) -> Array:
    """Add up the gradient over the groups of each feature; only those of the chosen table have one."""
    first = jnp.take_along_axis(space.offset, choice[:, None], axis=1)
    group = first + jnp.arange(gradient.shape[0])  # a parent has no more values than the largest number of states
    owner = space.owner.at[group].get(mode="fill", fill_value=-1)
    own = gradient.at[:, group].get(mode="fill", fill_value=0.0)
    return jnp.where((owner == jnp.arange(len(first))[:, None])[:, :, None], own, 0.0).sum(axis=2)


def _of_sizes(logits: Array, fixed: Tables) -> Array:
    """Return the gradient of the expected number of entries (R18)."""
    p = jax.nn.softmax(jnp.where(fixed.mask, logits, -jnp.inf), axis=1)
    size = fixed.space.size
    return p * (size - (p * size).sum(axis=1, keepdims=True))


def class_scores(entries: Array, prior: Array, selected: Array, hyper: Hyper, quantized: bool) -> Array:
    """Add up the prior and the selected entries (9), (R3), as they are stored."""
    first = fixed_point(prior, hyper) if quantized else prior
    return first + _read(entries, selected, hyper, quantized).sum(axis=1)


def _read(entries: Array, cell: Array, hyper: Hyper, quantized: bool) -> Array:
    read = entries.at[cell].get(mode="fill", fill_value=0.0)
    return fixed_point(read, hyper) if quantized else read


def fixed_point(theta: Array, hyper: Hyper) -> Array:
    """Quantise (R11): round half to even, then clip. In training its derivative is taken to be one everywhere."""
    return jnp.clip(jnp.round(theta * hyper.scale) / hyper.scale, -hyper.limit, 0.0)


def best_choice(logits: Array, mask: Array) -> Array:
    """Return the most probable candidate of each feature."""
    return jnp.argmax(jnp.where(mask, logits, -jnp.inf), axis=-1)


def _through_softmax(theta: Array, gradient: Array, total: Array) -> Array:
    """Gradient with respect to unnormalised log-probabilities (R9); `total` is its sum over the states of a table."""
    return gradient - jnp.exp(theta) * total


def _normalized(rho: Array) -> Array:
    return rho - jax.scipy.special.logsumexp(rho, axis=0, keepdims=True)


def _renormalized(rho: Array, layout: Layout) -> Array:
    """Normalise each group; its values are near zero or nearly normalised: no maximum is needed against overflow."""
    return rho - layout.to_entries(jnp.log(layout.over_states(jnp.exp(rho))))
