"""Ending long work at the user's wish without losing it.

An interrupt sets a flag that the driver checks between two compiled calls, so the parameters are never lost.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_running: list[threading.Event] = []  # of the outermost work, in the main thread


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that a compiled call ends and nothing is lost; a second one raises.

    Work within other work has the same event: it is ended together with it, also when it begins after the Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield threading.Event()
        return
    if _running:
        yield _running[-1]
        return
    event, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: object) -> None:
        event.set()
        signal.signal(signal.SIGINT, before)

    _running.append(event)
    signal.signal(signal.SIGINT, stop)
    try:
        yield event
    finally:
        _running.pop()
        if not event.is_set():  # else this was done when it was set
            signal.signal(signal.SIGINT, before)
