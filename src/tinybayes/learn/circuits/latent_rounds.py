"""Latent trees under a price: transitions that little flows through are cut, and EM goes on, in rounds.

A limit of edges is kept in any case. A price is paid: a round counts only if it raises the score of LearnAC,

    log-likelihood of all rows - edge_price * edges

with the likelihood of held-out rows where there are any, since cutting also helps against overfitting.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tinybayes.learn.circuits.latent_mixture import Structure
from tinybayes.learn.circuits.latent_pruning import count_edges, cut, fewest_edges, strongest
from tinybayes.learn.circuits.latent_start import Tables
from tinybayes.learn.circuits.latent_structure import Tree
from tinybayes.learn.circuits.options import FIRST_STEP
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.model import Dataset

if TYPE_CHECKING:
    from tinybayes.learn.circuits.latent_training import TrainedTables

PRUNING = 0.5  # edges that a round leaves on the way to a limit
SHARES = (0.6, 0.85)  # edges that a round leaves under a price: the second where the first does not pay
EPOCHS, STEPS = 0.25, 5.0  # of a round: its share of the epochs, and its first step as a multiple of the last,
REACH = 10.0  # or larger, where mini-batches are few: all steps of a round together should forget the start


@dataclass(frozen=True)
class Rounds:
    """What all rounds of a training share; `stopped` tells whether an interrupt or the deadline has come."""

    rows: Dataset
    held_out: Dataset | None
    structure: Structure
    prior: Tables
    training: TrainingOptions
    last_step: float
    stopped: Callable[[], bool]

    @property
    def tree(self) -> Tree:
        """The tree, or the trees."""
        return self.structure.tree

    def edges(self, tables: Tables) -> int:
        """Return the edges of the circuit."""
        return count_edges(self.tree, tables.transition > 0, self._cards)

    def within(self, trained: "TrainedTables", max_edges: int) -> "TrainedTables":
        """Cut transitions until the circuit has at most so many edges; after an interrupt at once, without EM."""
        while (edges := self.edges(trained.tables)) > max_edges:
            early, counts = self.stopped() or not trained.complete, self._counts(trained.tables)
            in_vain = fewest_edges(self.tree, counts.transition, self._cards) > max_edges  # refused at once
            limit = max_edges if early or in_vain else max(max_edges, int(PRUNING * edges))
            allowed = strongest(self.tree, counts.transition, self._cards, limit)
            trained = self._only_cut(trained, allowed) if early else self._again(trained, counts, allowed)
        return trained

    def priced(self, trained: "TrainedTables", edge_price: float) -> "TrainedTables":
        """Cut transitions while the score rises; nothing more after an interrupt."""
        best, shares = trained, list(SHARES)
        while shares and best.complete and not self.stopped():
            counts, edges = self._counts(best.tables), self.edges(best.tables)
            limit = max(int(shares[0] * edges), fewest_edges(self.tree, counts.transition, self._cards))
            if limit >= edges:
                break
            again = self._again(best, counts, strongest(self.tree, counts.transition, self._cards, limit))
            if self.score(again, edge_price) > self.score(best, edge_price):
                best = again
            else:
                best, shares = replace(best, complete=again.complete), shares[1:]
        return best

    def quantized(self, trained: "TrainedTables", levels: int) -> "TrainedTables":
        """Go on with EM through the quantiser, to few distinct parameters; after an interrupt for one epoch."""
        from tinybayes.learn.circuits.latent_levels import train_levels

        tables, options = trained.tables, self._shorter
        if self.stopped() or not trained.complete:
            options = replace(options, epochs=1)
        counts, prior = self._counts(tables), self._prior(tables.transition > 0)
        rates, held_out = self._rates, self.held_out
        again = train_levels(
            self.rows, self.tree, tables, counts, prior, levels, options, rates=rates, validation=held_out
        )
        return replace(again, complete=trained.complete and again.complete)

    def score(self, trained: "TrainedTables", edge_price: float) -> float:
        """Return the log-likelihood of all rows less the price of the edges."""
        weight = float(len(self.rows) if self.rows.weight is None else self.rows.weight.sum())
        value = trained.validation_log_likelihood
        if self.held_out is None:
            value = self._likelihood(self.rows, trained.tables)
        return weight * value - edge_price * self.edges(trained.tables)

    @property
    def _shorter(self) -> TrainingOptions:
        return replace(self.training, epochs=max(1, round(EPOCHS * self.training.epochs)))

    @property
    def _rates(self) -> tuple[float, float]:
        options = self._shorter
        batches = options.epochs * max(1, len(self.rows) // options.batch_size)
        return min(FIRST_STEP, max(STEPS * self.last_step, REACH / batches)), self.last_step

    @property
    def _cards(self) -> list[int]:
        return [variable.cardinality for variable in self.rows.variables] * self.tree.roots

    def _counts(self, tables: Tables) -> Tables:
        """Return the expected counts of all rows."""
        from tinybayes.learn.circuits.latent_training import counts_and_log_likelihood

        same = self.training.deterministic
        return counts_and_log_likelihood(self.rows, self.tree, tables, deterministic=same)[0]

    def _likelihood(self, rows: Dataset, tables: Tables) -> float:
        from tinybayes.learn.circuits.latent_training import counts_and_log_likelihood

        return counts_and_log_likelihood(rows, self.tree, tables, deterministic=self.training.deterministic)[1]

    def _again(self, trained: "TrainedTables", counts: Tables, allowed: np.ndarray) -> "TrainedTables":
        """Train with the allowed transitions only, from the expected counts."""
        from tinybayes.learn.circuits.latent_training import train_latent

        start, prior = cut(trained.tables, allowed, self.tree.roots), self._prior(allowed)
        left = Tables(counts.transition * allowed, counts.emission)
        rates, held_out = self._rates, self.held_out
        (again,) = train_latent(
            self.rows, self.tree, [start], prior, self._shorter, rates=rates, counts=left, validation=held_out
        )
        return replace(again, complete=trained.complete and again.complete)

    def _prior(self, allowed: np.ndarray) -> Tables:
        return Tables(self.prior.transition * allowed, self.prior.emission)

    def _only_cut(self, trained: "TrainedTables", allowed: np.ndarray) -> "TrainedTables":
        tables = cut(trained.tables, allowed, self.tree.roots)
        value = np.nan if self.held_out is None else self._likelihood(self.held_out, tables)
        return replace(trained, tables=tables, validation_log_likelihood=value, complete=False)
