"""Ending long work at the user's wish without losing it.

An interrupt sets a flag that the driver checks between two compiled calls, so the parameters are never lost.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that a compiled call ends and nothing is lost; a second one raises.

    Work within other work is ended together with it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield threading.Event()
        return
    stop = _Stop(signal.getsignal(signal.SIGINT))
    signal.signal(signal.SIGINT, stop)
    try:
        yield stop.event
    finally:
        if not stop.event.is_set():  # else this was done when it was set
            signal.signal(signal.SIGINT, stop.before)


class _Stop:
    """A handler that sets an event, for one signal; the one before it takes over."""

    def __init__(self, before: Any) -> None:
        self.event, self.before = threading.Event(), before

    def __call__(self, number: int, frame: object) -> None:
        self.event.set()
        signal.signal(signal.SIGINT, self.before)
        if isinstance(self.before, _Stop):
            self.before(number, frame)
