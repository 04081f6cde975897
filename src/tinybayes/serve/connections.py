"""Connections that do not wait for ever: whoever sends half a request is dropped after seconds."""

from typing import Any

PATIENCE = 5.0  # seconds from the first byte of a request, or from the connection, to the end of its headers


def patient_protocol() -> type:
    """Return uvicorn's protocol of a connection, with a time limit for the arrival of each request."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _timer: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._arm()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._busy():
                self._disarm()
            elif self._timer is None:  # more bytes of the same request do not extend its time
                self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def _busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _arm(self) -> None:
            self._timer = self.loop.call_later(PATIENCE, self._drop)

        def _disarm(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _drop(self) -> None:
            self._timer = None
            if not self._busy() and not self.transport.is_closing():
                self.transport.close()

    return Patient
