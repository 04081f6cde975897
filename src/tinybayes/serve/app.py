"""The app: a page, answers as JSON, and one request that changes something (stop the search).

The page asks for the inside of a model only when the user opens it, so that a growing front costs a few kB per
update.
"""

import hmac
import json
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinybayes.errors import TinybayesError, error, visible
from tinybayes.report.finite import finite
from tinybayes.report.html import page_part, page_text
from tinybayes.serve.answers import answer, parse_known, questions
from tinybayes.serve.connections import patient_protocol
from tinybayes.serve.guard import HEADER, App, Guard, address_in
from tinybayes.serve.source import Source, page_front

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

NEEDED = "pip install 'tinybayes[serve]'"


def make_app(directory: Path | str, *, host: str = "127.0.0.1", token: str | None = None) -> App:
    """Return the app over the directory of a search, as an ASGI callable.

    The host at which it listens decides which Host headers are believed. The token, random by default, is required in
    every request.
    """
    token = token or secrets.token_urlsafe(32)
    starlette = _needed("starlette.applications")
    routing = _needed("starlette.routing")
    pages = Pages(Source(Path(directory)), token)
    routes = [
        routing.Route("/", pages.page, methods=["GET"]),
        routing.Route("/state", _safely(pages.state), methods=["GET"]),
        routing.Route("/front", _safely(pages.front), methods=["GET"]),
        routing.Route("/model", _safely(pages.model), methods=["GET"]),
        routing.Route("/ask", _safely(pages.ask), methods=["GET"]),
        routing.Route("/stop", _safely(pages.stop), methods=["POST"]),
    ]
    return Guard(starlette.Starlette(routes=routes), host, token)


class Pages:
    """The routes; each answer is computed in a thread."""

    def __init__(self, source: Source, token: str) -> None:
        self.source, self.token = source, token

    def page(self, request: "Request") -> "Response":
        """Return the page."""
        from starlette.responses import HTMLResponse, PlainTextResponse

        try:
            version, front = self.source.front()
        except TinybayesError as problem:
            return PlainTextResponse(f"{visible(problem)}\n", 500)
        data = {**page_front(front), "directory": self.source.name, "serve": {"token": self.token, "version": version}}
        live, style = (page_part(name, "tinybayes.serve") for name in ("live.js", "serve.css"))
        return HTMLResponse(page_text(data, live=live, style=style))

    def state(self, request: "Request") -> Any:
        """Return how far the search is, and which front is the newest."""
        return {"progress": self.source.progress(), "version": self.source.front()[0]}

    def front(self, request: "Request") -> Any:
        """Return the front."""
        version, front = self.source.front()
        return {"version": version, "data": page_front(front) | {"directory": self.source.name}}

    def model(self, request: "Request") -> Any:
        """Return the content of the page about a model, and its possible queries."""
        key = _parameter(request, "id")
        model = self.source.model(key)
        return {"card": self.source.card(key), "ask": questions(model)}

    def ask(self, request: "Request") -> Any:
        """Return the answer of a model."""
        key = _parameter(request, "id")
        model = self.source.model(key)
        known = parse_known(request.query_params.get("known", ""), model)
        return answer(model, self.source.circuit(key), known, _class(request, model))

    def stop(self, request: "Request") -> Any:
        """Ask the running search to end; only the page can set the header, where other pages may send a cookie."""
        if not hmac.compare_digest(request.headers.get(HEADER, "").encode(), self.token.encode()):
            raise RefusedError(403, "the token of this page is missing or old: reload it")
        said = self.source.progress()
        if said is None or not said["running"]:
            raise RefusedError(409, "no search is running here")
        self.source.stop()
        return {"stopping": True}


class RefusedError(TinybayesError):
    """An error with its own HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def _safely(act: "Callable[[Request], Any]") -> "Callable[[Request], Response]":
    """Turn values into JSON, and errors of a request into a status and one line."""

    def endpoint(request: "Request") -> "Response":
        try:
            return _json(act(request))
        except TinybayesError as problem:
            return _json({"error": visible(problem)}, getattr(problem, "status", 400))

    return endpoint


def _json(content: Any, status: int = 200) -> "Response":
    """Return an answer in ASCII: a name may hold half a character, which UTF-8 does not have."""
    from starlette.responses import Response

    text = json.dumps(finite(content), allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def _parameter(request: "Request", name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise error(f"a parameter {name}", "none", where=request.url.path)
    return value


def _class(request: "Request", model: Any) -> int | None:
    text = request.query_params.get("against", "")
    if not text or model.target is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) < model.target.cardinality):
        raise error("the number of a class", repr(text[:40]), where="against")
    return int(text)


def serve(
    directory: Path | str, *, host: str = "127.0.0.1", port: int = 0, started: Callable[[str], None] | None = None
) -> None:
    """Serve the directory of a search until Ctrl-C; port 0 takes a free one.

    When the page can be opened, `started` is called with its link, which holds the token.
    """
    uvicorn, token = _needed("uvicorn"), secrets.token_urlsafe(32)
    app = make_app(directory, host=host, token=token)
    with listening(host, port) as listener:
        server = make_server(uvicorn, app)
        if started is not None:
            started(link_of(listener, host, token))
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return


def make_server(uvicorn: Any, app: App) -> Any:
    """Return an HTTP-only server with short time-outs and no log output."""
    settings = uvicorn.Config(
        app,
        http=patient_protocol(),
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(settings)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(kind, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except (OSError, OverflowError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        remedy = "choose another port; 0 takes a free one"
        raise error("an address to listen at", reason, where=f"{host}:{port}", remedy=remedy) from problem
    return listener


def address_of(listener: socket.socket, host: str) -> str:
    """Return the address of the page."""
    port = listener.getsockname()[1]
    address = address_in(host)
    if address is not None and address.is_unspecified:  # it listens on all interfaces; the page is opened locally
        host = "::1" if address.version == 6 else "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def link_of(listener: socket.socket, host: str, token: str) -> str:
    """Return the link that opens the page; whoever has it may look and stop."""
    return f"{address_of(listener, host)}?token={token}"


def _needed(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as problem:
        package = module.split(".")[0]
        raise error(f"the package {package}", "none", where="tinybayes serve", remedy=NEEDED) from problem
