"""Access control: only who has the link that the app printed, and only with this app's own page.

Every user of a machine reaches its loopback device. So each start of the app has a random token, which is part of the
link that only the starting user sees. Opening the link gives the browser a cookie; requests without the token in the
cookie or in a header learn and change nothing.

A browser also runs pages of other sites. Such a page can send requests here, with the cookie, and with a name that
suddenly points here (DNS rebinding) it could even read the answers. So a request must also name a host that only this
app can have, and must not come from another page; what changes something needs the token in a header.
"""

import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 0  # bytes of a body: no request needs one
MAX_TARGET = 32_768  # bytes of path and query
MAX_REQUESTS = 256  # that are answered or wait for a thread at the same time
HEADER = "x-tinybayes-token"
NO_ACCESS = "Open the link with the token that tinybayes serve printed when it was started."
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
    """Passes only valid requests with the token on to an app at `host`, and adds headers to its responses."""

    def __init__(self, app: App, host: str, token: str) -> None:
        self._app, self._host, self._token = app, host, token.encode()
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(guarded, *refusal, {"connection": "close"})
        elif scope["path"] == "/" and self._is_token(_query_token(scope)):
            # The token leaves the address bar and the history; Lax, because a link is followed from elsewhere.
            cookie = f"{_cookie_name(scope)}={self._token.decode()}; Path=/; HttpOnly; SameSite=Lax"
            await _answer(guarded, 303, "", {"location": "/", "set-cookie": cookie})
        elif not any(self._is_token(token) for token in _tokens(scope, headers)):
            await _answer(guarded, 403, NO_ACCESS, {"connection": "close"})
        elif self._requests >= MAX_REQUESTS:
            await _answer(guarded, 503, "Too many requests at once: try again.", {"retry-after": "1"})
        else:
            self._requests += 1
            try:
                await self._app(scope, receive, guarded)
            finally:
                self._requests -= 1

    def _is_token(self, token: bytes) -> bool:
        return hmac.compare_digest(token, self._token)

    def _refusal(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> tuple[int, str] | None:
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


async def _answer(send: Send, status: int, text: str, headers: dict[str, str]) -> None:
    both = {"content-type": "text/plain; charset=utf-8", **headers}
    coded = [(name.encode(), value.encode()) for name, value in both.items()]
    await send({"type": "http.response.start", "status": status, "headers": coded})
    await send({"type": "http.response.body", "body": text.encode()})


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def _query_token(scope: Scope) -> bytes:
    given = parse_qs(scope.get("query_string") or b"").get(b"token", [])
    return given[0] if len(given) == 1 else b""


def _tokens(scope: Scope, headers: dict[bytes, list[bytes]]) -> list[bytes]:
    """Return the tokens of a request's header and cookie."""
    tokens, name = list(headers.get(HEADER.encode(), [])), _cookie_name(scope).encode()
    for part in b";".join(headers.get(b"cookie", [])).split(b";"):
        key, _, value = part.strip().partition(b"=")
        if key == name:
            tokens.append(value)
    return tokens


def _cookie_name(scope: Scope) -> str:
    """Return a name with the port: all apps of a machine share the cookies of 127.0.0.1."""
    server = scope.get("server") or ("", 0)
    return f"tinybayes-{server[1]}"


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
