"""A progress bar for training by gradient."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinybayes.learn.hybrid import Progress


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
