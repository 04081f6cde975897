"""Access control: only this app's own page may send requests, from this machine unless the user allows others.

A browser on this machine also runs pages of other sites. Such a page can send requests here, and with a name that
suddenly points here (DNS rebinding) it can even read the answers. So a request must name a host that only this app can
have, must not come from another page, and must carry the token of this start of the app when it changes something.
"""

import ipaddress
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 0  # bytes of a body: no request needs one
MAX_TARGET = 32_768  # bytes of path and query
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_HOST = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<name>[^:\[][^:]*))(?::[0-9]{1,5})?")


class Guard:
    """Passes only valid requests on to an app that listens at `host`, and adds headers to its responses."""

    def __init__(self, app: App, host: str) -> None:
        self._app, self._host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, guarded)
            return
        status, text = refusal
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await guarded({"type": "http.response.start", "status": status, "headers": headers})
        await guarded({"type": "http.response.body", "body": text.encode()})

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not allowed_host(hosts[0].decode("latin-1"), self._host):
            return 403, "This host name is not allowed: open the address that tinybayes serve printed."
        own = b"http://" + hosts[0].lower()
        if any(origin.lower() != own for origin in headers.get(b"origin", [])):
            return 403, "Requests from other pages are not allowed."
        sites = headers.get(b"sec-fetch-site", [])
        opened = scope["path"] == "/" and headers.get(b"sec-fetch-mode") == [b"navigate"]  # a link to this page
        if any(site not in (b"same-origin", b"none") for site in sites) and not opened:
            return 403, "Requests from other pages are not allowed."
        length = headers.get(b"content-length", [b"0"])
        if b"transfer-encoding" in headers or not all(n.isdigit() and int(n) <= MAX_BODY for n in length):
            return 413, "A request has no body here."
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MAX_TARGET:
            return 414, "This address is too long."
        return None


def allowed_host(header: str, bound: str) -> bool:
    """Return whether a Host header can only mean this app.

    Unlike names, IP addresses cannot be redirected. On the loopback device only its own names are allowed; where the
    user opened the app to others, any IP address and the given name are.
    """
    match = _HOST.fullmatch(header.strip().lower())
    if match is None:
        return False
    name = match["name"] or match["bracketed"]
    address = address_in(name)
    if match["bracketed"] and address is None:
        return False
    if is_loopback(name):
        return True
    return not is_loopback(bound) and (address is not None or name == bound.lower())


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    address = address_in(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def address_in(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
