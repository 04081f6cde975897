"""Progress of long learning, drawn on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinybayes.infer import Marginals
    from tinybayes.learn.circuits.learn_ac import Growth
    from tinybayes.learn.ties.relearn import RelearnProgress
    from tinybayes.learn.training.tables import Progress


@contextmanager
def training_progress(show: bool) -> Iterator["Callable[[Progress], None] | None"]:
    """Give a function that draws epochs, error and time left on standard error; None when it is not to be shown."""
    if not show:
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    text = rich_progress.TextColumn("{task.completed}/{task.total} epochs{task.fields[text]}")
    columns = (rich_progress.TextColumn("training"), rich_progress.BarColumn(), text)
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=None, text="")

        def report(state: "Progress") -> None:
            wrong = "" if state.best_error != state.best_error else f", {100 * state.best_error:.2f} % error"
            text = f"{wrong}, {state.seconds_left:.0f} s left"
            bar.update(task, completed=state.done, total=state.total, text=text)

        yield report


@contextmanager
def growth_progress(show: bool) -> Iterator["Callable[[Growth], None] | None"]:
    """Give a function that draws how far a circuit or trees have grown; None when it is not to be shown.

    Nobody knows how many splits there will be, so there is no bar: splits, edges, score, log-likelihood and time.
    """
    if not show:
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (rich_progress.SpinnerColumn(), rich_progress.TextColumn("growing {task.fields[text]}"))
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("growing", total=None, text="")

        def report(state: "Growth") -> None:
            line.update(task, text=growth_text(state))

        yield report


def growth_text(state: "Growth") -> str:
    """Say in a narrow line how far a growth has come; without a circuit there are no edges to tell."""
    edges = f"{state.edges:,} edges, " if state.edges else ""
    likelihood = f"log p {state.log_likelihood:.4f} a row"
    return f"{state.splits:,} splits, {edges}score {state.score:,.0f}, {likelihood}, {state.seconds:.0f} s"


@contextmanager
def relearning_progress(show: bool) -> Iterator["Callable[[RelearnProgress], None] | None"]:
    """Give a function that draws how far relearning has come; None when it is not to be shown."""
    if not show:
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (rich_progress.SpinnerColumn(), rich_progress.TextColumn("relearning {task.fields[text]}"))
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("relearning", total=None, text="")

        def report(state: "RelearnProgress") -> None:
            likelihood = "" if state.log_likelihood is None else f"log p {state.log_likelihood:.6f} a row, "
            text = f"step {state.step}, {likelihood}counts within {state.gradient:.2g}, {state.seconds:.0f} s"
            line.update(task, text=text)

        yield report


@contextmanager
def sampling_progress(
    show: bool, seconds: float | None, samples: int | None
) -> Iterator["Callable[[Marginals], None] | None"]:
    """Give a function that draws samples, their worth and the largest error; None when it is not to be shown."""
    from rich.console import Console

    console = Console(stderr=True)
    if not show or not console.is_terminal:
        yield None
        return
    from rich import progress as rich_progress

    text = rich_progress.TextColumn("{task.fields[text]}")
    columns = (rich_progress.TextColumn("sampling"), rich_progress.BarColumn(), text)
    with rich_progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sampling", total=1.0, text="")

        def report(state: "Marginals") -> None:
            parts = [state.seconds / seconds if seconds else 0.0, state.samples / samples if samples else 0.0]
            text = f"{state.samples:,} samples, worth {state.effective:,.0f}, error up to {state.largest_error:.2g}"
            bar.update(task, completed=max(parts), text=text)

        yield report
