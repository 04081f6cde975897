"""Progress of long work, drawn on standard error. Each function gives a reporter, or None when nothing is shown."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tinybayes.infer import Marginals
    from tinybayes.learn.circuits.learn_ac import Growth
    from tinybayes.learn.ties.relearn import RelearnProgress
    from tinybayes.learn.training.tables import Progress

S = TypeVar("S")
Drawn = tuple[float, float | None, str]  # completed, total (None: unknown), text


@contextmanager
def drawn(show: bool, label: str, text_of: Callable[[S], Drawn], *, bar: bool) -> Iterator[Callable[[S], None] | None]:
    """Draw states as a line of text, behind a bar or, where the end is unknown, a spinner."""
    if not show:
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    mark = rich_progress.BarColumn() if bar else rich_progress.SpinnerColumn()
    columns = (rich_progress.TextColumn(label), mark, rich_progress.TextColumn("{task.fields[text]}"))
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task(label, total=None, text="")

        def report(state: S) -> None:
            completed, total, text = text_of(state)
            line.update(task, completed=completed, total=total, text=text)

        yield report


Reporter = AbstractContextManager[Callable[[S], None] | None]


def training_progress(show: bool) -> "Reporter[Progress]":
    """Draw epochs, error and time left."""

    def text(state: "Progress") -> Drawn:
        wrong = "" if state.best_error != state.best_error else f", {100 * state.best_error:.2f} % error"
        epochs = f"{state.done}/{state.total} epochs{wrong}, {state.seconds_left:.0f} s left"
        return state.done, state.total, epochs

    return drawn(show, "training", text, bar=True)


def density_progress(show: bool) -> "Reporter[Progress]":
    """Draw epochs, the log-likelihood of the held-out rows and time left."""

    def text(state: "Progress") -> Drawn:
        fit = "" if state.best_error != state.best_error else f", log p {-state.best_error:.4f} a row"
        return state.done, state.total, f"{state.done}/{state.total} epochs{fit}, {state.seconds_left:.0f} s left"

    return drawn(show, "training", text, bar=True)


def rounds_progress(show: bool) -> "Reporter[tuple[int, int]]":
    """Draw the rounds of boosting: done, and all."""
    return drawn(show, "boosting", lambda state: (*state, f"{state[0]:,}/{state[1]:,} rounds"), bar=True)


def growth_progress(show: bool) -> "Reporter[Growth]":
    """Draw splits, edges, score, log-likelihood and time; the number of splits is not known in advance."""
    return drawn(show, "growing", lambda state: (0, None, growth_text(state)), bar=False)


def growth_text(state: "Growth") -> str:
    """Summarise a growth in one line; trees without a circuit have no edges."""
    edges = f"{state.edges:,} edges, " if state.edges else ""
    likelihood = f"log p {state.log_likelihood:.4f} a row"
    return f"{state.splits:,} splits, {edges}score {state.score:,.0f}, {likelihood}, {state.seconds:.0f} s"


def relearning_progress(show: bool) -> "Reporter[RelearnProgress]":
    """Draw steps, log-likelihood and how close the expected counts are."""

    def text(state: "RelearnProgress") -> Drawn:
        likelihood = "" if state.log_likelihood is None else f"log p {state.log_likelihood:.6f} a row, "
        return 0, None, f"step {state.step}, {likelihood}counts within {state.gradient:.2g}, {state.seconds:.0f} s"

    return drawn(show, "relearning", text, bar=False)


def inference_progress(show: bool, seconds: float | None, samples: int | None) -> "Reporter[Marginals | float]":
    """Draw samples, effective sample size and the largest error; or the share of exact work that is done."""

    def text(state: "Marginals | float") -> Drawn:
        if isinstance(state, float):
            return state, 1.0, f"exact, {100 * state:.0f} %"
        done = max(state.seconds / seconds if seconds else 0.0, state.samples / samples if samples else 0.0)
        worth = f"{state.samples:,} samples, worth {state.effective:,.0f}, error up to {state.largest_error:.2g}"
        return done, 1.0, worth

    return drawn(show, "inference", text, bar=True)
