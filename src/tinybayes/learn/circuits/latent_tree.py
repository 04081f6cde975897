"""Latent trees: hidden variables along the Chow-Liu tree, learned by EM; the result is a circuit.

A mixture has one hidden variable for all observed ones, a latent tree many that depend on each other. For its number of
edges it is the best density of this package (docs/learning_circuits.md).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.errors import error
from tinybayes.learn.circuits.latent_circuit import latent_circuit, used_states, with_codebook
from tinybayes.learn.circuits.latent_mixture import average_of, find_structure
from tinybayes.learn.circuits.latent_rounds import Rounds
from tinybayes.learn.circuits.latent_rows import learning_rows
from tinybayes.learn.circuits.latent_start import draw_start, pseudocounts
from tinybayes.learn.circuits.options import FIRST_STEP, LatentOptions
from tinybayes.learn.interrupts import interruptible
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Circuit, Dataset

if TYPE_CHECKING:
    from tinybayes.learn.circuits.latent_training import TrainedTables
    from tinybayes.learn.training.engine import Progress

STEPS, FEWEST, MOST = 10_000, 10, 80  # mini-batches of a training by default, and bounds of its epochs


@dataclass(frozen=True)
class LatentTree:
    """What was learned.

    Parameters
    ----------
    circuit
        The density over the observed variables, hidden ones summed out.
    variables, parents
        The observed variable beside which each hidden one stands, and the hidden parent of each, -1 for the root of a
        tree. The leaves of the Chow-Liu tree have no hidden variable of their own.
    homes
        The hidden variable on which each observed one depends; of a mixture, for each tree in turn.
    hidden_states
        How many states each hidden variable has.
    log_likelihood, validation_log_likelihood
        Of a row on average, in nats: of the training rows, and of the held-out ones (NaN without them).
    history
        Epochs, and the log-likelihood of the held-out rows after each; empty for an average of several starts.
    complete
        False when an interrupt or a limit of time ended the training early.
    """

    circuit: Circuit
    variables: tuple[int, ...]
    parents: tuple[int, ...]
    homes: tuple[int, ...]
    hidden_states: tuple[int, ...]
    log_likelihood: float
    validation_log_likelihood: float
    history: tuple[tuple[int, float], ...]
    complete: bool


def learn_latent_tree(
    data: Dataset,
    *,
    hidden_states: int | Sequence[int] = LatentOptions.hidden_states,
    components: int = LatentOptions.components,
    epochs: int | None = LatentOptions.epochs,
    batch_size: int = LatentOptions.batch_size,
    last_step: float = LatentOptions.last_step,
    smoothing: float = LatentOptions.smoothing,
    restarts: int = LatentOptions.restarts,
    average: bool = LatentOptions.average,
    validation: Dataset | None = None,
    validation_fraction: float = LatentOptions.validation_fraction,
    edge_price: float = LatentOptions.edge_price,
    max_edges: int | None = LatentOptions.max_edges,
    levels: int | None = LatentOptions.levels,
    seconds: float = LatentOptions.seconds,
    seed: int = LatentOptions.seed,
    device: str | None = LatentOptions.device,
    deterministic: bool = LatentOptions.deterministic,
    report: "Callable[[Progress], None] | None" = None,
) -> LatentTree:
    """Learn a tree of hidden variables over the observed ones.

    The tree is the Chow-Liu tree of the observed variables, rooted at its centre. A hidden variable stands beside every
    variable that is not a leaf. With several `components`, the rows are clustered, every cluster has its own tree, and
    the result is their mixture. Parameters are learned by EM on mini-batches: average expected counts move towards
    those of each batch, by a step that falls. The epoch that was best on held-out rows is returned. Of several
    `restarts`, the best one is returned, or with `average` the mixture of all. With `max_edges` or `edge_price`,
    transitions are then cut by the expected counts that flow through them, and EM goes on with the others: until few
    enough are left, and as long as ``log-likelihood - edge_price * edges`` rises. With `levels`, EM then goes on
    through a quantiser, and the parameters of the circuit are in a codebook.

    Parameters
    ----------
    data
        The rows. A class, if there is one, is one more variable. Missing values are summed out.
    hidden_states
        How many states the hidden variables have: one number for all, or one for each observed variable, beside which
        they stand.
    components, epochs, batch_size, last_step, smoothing, restarts, average, validation_fraction, edge_price, \
max_edges, levels, seconds, seed, device, deterministic
        See `LatentOptions`.
    validation
        Rows that choose the best epoch and start; by default a share of the rows is held out.
    report
        Called after epochs. An interrupt (Ctrl-C) ends the training; what has been learned so far is returned, cut to
        `max_edges`.

    Examples
    --------
    >>> from tinybayes.model import Variable
    >>> generator = np.random.default_rng(0)
    >>> rows = generator.integers(0, 2, (300, 1)) ^ (generator.random((300, 5)) < 0.1)
    >>> data = Dataset(tuple(Variable(f"x{i}", (0, 1)) for i in range(5)), None, rows.astype(np.int8))
    >>> learned = learn_latent_tree(data, hidden_states=2)
    >>> bool(learned.log_likelihood > -2.6)
    True
    """
    states = _states_of(hidden_states, data)
    options = LatentOptions(
        hidden_states=int(states.max()),
        components=components,
        epochs=epochs,
        batch_size=batch_size,
        last_step=last_step,
        smoothing=smoothing,
        restarts=restarts,
        average=average,
        validation_fraction=validation_fraction,
        edge_price=edge_price,
        max_edges=max_edges,
        levels=levels,
        seconds=seconds,
        seed=seed,
        device=device,
        deterministic=deterministic,
    )
    return learn_latent_tree_with(data, options, validation, report, states=states)


def learn_latent_tree_with(
    data: Dataset,
    options: LatentOptions,
    validation: Dataset | None = None,
    report: "Callable[[Progress], None] | None" = None,
    *,
    states: np.ndarray | None = None,
) -> LatentTree:
    """Do what `learn_latent_tree` does, with the options in one record."""
    rounds, trained = learn_tables(data, options, validation, report, states=states)
    return finish(data, rounds, trained, levels=options.levels)


def learn_tables(
    data: Dataset,
    options: LatentOptions,
    validation: Dataset | None = None,
    report: "Callable[[Progress], None] | None" = None,
    *,
    states: np.ndarray | None = None,
) -> "tuple[Rounds, TrainedTables]":
    """Learn the parameters under the price, without building the circuit."""
    with interruptible() as interrupted:  # also between two trainings
        rounds, trained = begin(data, options, validation, report, states=states, interrupted=interrupted)
        if options.max_edges is not None:
            trained = rounds.within(trained, options.max_edges)
        if options.edge_price > 0:
            trained = rounds.priced(trained, options.edge_price)
        if options.levels is not None:
            trained = rounds.quantized(trained, options.levels)
    return rounds, trained


def begin(
    data: Dataset,
    options: LatentOptions,
    validation: Dataset | None = None,
    report: "Callable[[Progress], None] | None" = None,
    *,
    states: np.ndarray | None = None,
    interrupted: Event | None = None,
) -> "tuple[Rounds, TrainedTables]":
    """Find the structure and learn the parameters; return what further rounds need, and the result to begin with."""
    deadline = time.time() + options.seconds
    if states is None:
        states = _states_of(options.hidden_states, data)
    rows, held_out = learning_rows(data, validation, options.validation_fraction, options.seed)
    structure = find_structure(rows, options.components, options.seed)
    tree = structure.tree
    prior = pseudocounts(rows, tree, states[structure.variables], options.smoothing)
    starts = [draw_start(prior, options.seed + i, tree.roots, structure.near) for i in range(options.restarts)]
    training = TrainingOptions(
        epochs=options.epochs or default_epochs(len(rows), options.batch_size),
        batch_size=options.batch_size,
        keep_best=True,
        shuffle_seed=options.seed,
        device=options.device,
        deterministic=options.deterministic,
        deadline=deadline,
    )
    from tinybayes.learn.circuits.latent_training import TrainedTables, counts_and_log_likelihood, train_latent

    def stopped() -> bool:
        return time.time() > deadline or (interrupted is not None and interrupted.is_set())

    rates = FIRST_STEP, options.last_step
    measured = partial(counts_and_log_likelihood, deterministic=options.deterministic)
    trained = train_latent(rows, tree, starts, prior, training, rates=rates, validation=held_out, report=report)
    if options.average and len(trained) > 1:
        structure, tables = average_of(structure, [one.tables for one in trained])
        prior = pseudocounts(rows, structure.tree, states[structure.variables], options.smoothing)
        value = np.nan if held_out is None else measured(held_out, structure.tree, tables)[1]
        chosen = TrainedTables(tables, value, (), all(one.complete for one in trained))
    else:
        fits = [measured(rows, tree, one.tables)[1] for one in trained]
        scores = fits if held_out is None else [one.validation_log_likelihood for one in trained]
        chosen = trained[int(np.argmax(scores))]
    return Rounds(rows, held_out, structure, prior, training, options.last_step, stopped), chosen


def finish(data: Dataset, rounds: Rounds, trained: "TrainedTables", levels: int | None = None) -> LatentTree:
    """Return the circuit of tables; those of a few levels in a codebook."""
    from tinybayes.learn.circuits.latent_training import counts_and_log_likelihood

    rows, tree, tables = rounds.rows, rounds.tree, trained.tables
    circuit = latent_circuit(data.variables, data.target, tree, tables.transition, tables.emission)
    if levels is None:
        fit = counts_and_log_likelihood(rows, tree, tables, deterministic=rounds.training.deterministic)[1]
    else:  # they do not sum to one
        circuit = with_codebook(circuit)
        fit = float(np.average(circuit.log_likelihood(rows.X), weights=rows.weight))
    return LatentTree(
        circuit,
        tuple(rounds.structure.variables),
        tree.parent,
        tree.home,
        tuple(used_states(tree, tables.transition).sum(axis=1).tolist()),
        fit,
        trained.validation_log_likelihood,
        trained.history,
        trained.complete,
    )


def default_epochs(rows: int, batch_size: int) -> int:
    """Return as many epochs as make `STEPS` mini-batches, within bounds."""
    return int(np.clip(ceil(STEPS / max(1, rows // batch_size)), FEWEST, MOST))


def _states_of(hidden_states: int | Sequence[int], data: Dataset) -> np.ndarray:
    """Return the hidden states beside each variable."""
    count = len(data.nodes)
    states = np.array(hidden_states)
    states = np.full(count, states) if states.ndim == 0 else states
    if states.shape != (count,) or states.dtype.kind not in "iu" or (states < 1).any():
        expected = f"a number of states, or {count} of them, one for each variable"
        raise error(expected, hidden_states, where="hidden_states")
    return states.astype(np.int64)
