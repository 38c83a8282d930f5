"""Limits on HTTP requests, applied before routing: who may send a body, and how long.

FastAPI reads and parses a body before it asks who sent it. So this ASGI layer asks first, and
counts the bytes while they arrive; `uvicorn_server.py` times them. It is also the edge of a
request: what goes wrong inside becomes one line in the log and one answer. Websockets pass
through: no call waits here.

Requests that other web pages make a browser send are refused, too. A page anywhere can make a
browser post to this server. Browsers say so: in `Origin`, and in `Sec-Fetch-Site`, which no
script can change.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose, WebSocketDisconnect

from aftercall.errors import UNEXPECTED, error_code
from aftercall.log import get_logger, get_place

CLOSE_REFUSED = 1008
FOREIGN = "a page of another site sent this request; open Aftercall's own page"
# Carriers and platforms sign what they send; what their clients put into `Origin` is theirs.
SIGNED_PATHS = ("/twilio/", "/telnyx/", "/hosted/")
_PORTS = {"http": 80, "https": 443}


class OriginFilter:
    """ASGI middleware that refuses requests of foreign pages on every unsigned route."""

    def __init__(self, app: ASGIApp, public_url: str | None) -> None:
        self._app = app
        self._public = _parse_origin(public_url) if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] not in ("http", "websocket")
            or scope["path"].startswith(SIGNED_PATHS)
            or not self._is_foreign(HTTPConnection(scope))
        ):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(CLOSE_REFUSED)(scope, receive, send)
        else:
            problem = {"code": "http.403", "message": FOREIGN}
            await JSONResponse({"error": problem}, 403)(scope, receive, send)

    def _is_foreign(self, connection: HTTPConnection) -> bool:
        headers = connection.headers
        sites = set(headers.getlist("sec-fetch-site"))
        if sites - {"none", "same-origin"} and not _is_navigation(connection):
            return True
        origins = headers.getlist("origin")
        return not all(self._is_own(connection, origin) for origin in origins)

    def _is_own(self, connection: HTTPConnection, origin: str) -> bool:
        """A proxy may speak https for us and may change `Host`, but knows no other name for us
        than the public address.
        """
        found = _parse_origin(origin)
        if found is not None and found == self._public:
            return True
        host = connection.headers.get("host", "")
        schemes = {"https", connection.url.scheme.replace("ws", "http")}
        own = (_parse_origin(f"{scheme}://{host}") for scheme in schemes)
        return found is not None and found in own


def _is_navigation(connection: HTTPConnection) -> bool:
    """Someone follows a link on another site: the browser shows our page and that site learns
    nothing.
    """
    headers = connection.headers
    return (
        connection.scope.get("method") == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _parse_origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for `null` and what is no address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def require_json(request: Request) -> None:
    """A dependency of JSON routes. A foreign page can send text or a form without asking the
    server first, but not JSON.
    """
    given = request.headers.get("content-type")
    has_body = (
        request.headers.get("content-length", "0") != "0"
        or "transfer-encoding" in request.headers
    )
    if given is None and not has_body:
        return
    if (given or "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(
            415, "the body is not sent as Content-Type: application/json"
        )


MAX_ANONYMOUS_BYTES = 16 * 1024  # enough for a login
MAX_PAGE_BYTES = 3 * 1024 * 1024  # a profile of 200,000 characters, percent-encoded
LARGE_BODY_BYTES = 1024 * 1024
MAX_LARGE_BODIES = 2  # at a time, for each rule
LARGE_BODY_WAIT_S = 10.0
CLOSE_FAILED = 1011
HSTS = b"max-age=31536000"
STATIC_PATH = "/static/"

log = get_logger("web")


@dataclass(frozen=True)
class BodyRule:
    """How the requests below a path are limited. The first rule that fits counts.

    `check` raises HTTPException for a request that may not go on; it sees the head only.
    """

    path: str
    max_bytes: int
    check: Callable[[Request], Awaitable[None]] | None = None
    large_bodies: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAX_LARGE_BODIES)
    )


class RequestLimits:
    """The ASGI layer. `is_known` tells whether the sender of a page's form is logged in."""

    def __init__(
        self,
        app: ASGIApp,
        rules: Iterable[BodyRule],
        is_known: Callable[[HTTPConnection], Awaitable[bool]],
        *,
        is_https: bool,
        show_error: Callable[[Request, int, str], Response],
    ) -> None:
        self._app = app
        self._show_error = show_error
        self._rules = tuple(rules)
        self._pages = BodyRule("/", MAX_PAGE_BYTES)
        self._strangers = BodyRule("/", MAX_ANONYMOUS_BYTES)
        self._is_known = is_known
        self._static_headers = [(b"x-content-type-options", b"nosniff")]
        if is_https:
            self._static_headers.append((b"strict-transport-security", HSTS))
        # Everything but our own scripts and styles may hold words of a caller.
        self._headers = [*self._static_headers, (b"cache-control", b"no-store")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._run_socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._run_request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _run_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_static = scope["path"].startswith(STATIC_PATH)
        answer = _AnswerSender(
            send, self._static_headers if is_static else self._headers
        )
        body: _LimitedBody | None = None
        try:
            head = _read_head(scope)
            rule = await self._find_rule(scope, head)
            if head.has_body:
                body = _LimitedBody(scope, receive, rule, head.length)
            await self._app(scope, body.receive if body else receive, answer.send)
        except HTTPException as error:
            shown = answer_http_error(scope, error, self._show_error)
            await shown(scope, receive, answer.send)
        except ClientDisconnect:
            pass  # logged when it was noticed
        except Exception as error:  # noqa: BLE001 - the edge of a request
            _log_failure(scope, error)
            if not answer.is_started:
                shown = self._answer_unexpected(scope)
                await shown(scope, receive, answer.send)
        finally:
            if body is not None:
                body.close()

    def _answer_unexpected(self, scope: Scope) -> Response:
        if wants_page(scope):
            return self._show_error(Request(scope), 500, UNEXPECTED)
        problem = {"code": "unexpected", "message": UNEXPECTED}
        return JSONResponse({"error": problem}, 500)

    async def _run_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except WebSocketDisconnect:
            log.info("client went away", route=get_route(scope))
        except Exception as error:  # noqa: BLE001 - the edge of a request
            _log_failure(scope, error)
            with suppress(RuntimeError, OSError):  # it is closed already
                await send({"type": "websocket.close", "code": CLOSE_FAILED})

    async def _find_rule(self, scope: Scope, head: "_Head") -> BodyRule:
        """The rule of this request. Raises HTTPException for one that is refused unread."""
        path = scope["path"]
        for rule in self._rules:
            if path.startswith(rule.path):
                if rule.check is not None:
                    await rule.check(Request(scope))
                return rule
        if head.has_body and not await self._is_known(HTTPConnection(scope)):
            return self._strangers
        return self._pages


class _LimitedBody:
    """The body of a request: counted, and with a place among the large ones."""

    def __init__(
        self, scope: Scope, receive: Receive, rule: BodyRule, announced: int
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._rule = rule
        self._received = 0
        self._is_complete = False
        self._is_large = False
        if announced > rule.max_bytes:
            raise self._too_long()

    async def receive(self) -> Message:
        if self._is_complete:
            return await self._receive()
        message = await self._receive()
        if message["type"] != "http.request":
            self._is_complete = True
            log.info("client went away", route=get_route(self._scope))
            return message
        self._received += len(message.get("body", b""))
        if self._received > self._rule.max_bytes:
            raise self._too_long()
        if self._received > LARGE_BODY_BYTES and not self._is_large:
            await self._wait_for_place()
        self._is_complete = not message.get("more_body", False)
        return message

    async def _wait_for_place(self) -> None:
        """The sender waits, since nothing more is read meanwhile."""
        try:
            async with asyncio.timeout(LARGE_BODY_WAIT_S):
                await self._rule.large_bodies.acquire()
        except TimeoutError:
            retry = {"Retry-After": str(int(LARGE_BODY_WAIT_S))}
            raise HTTPException(503, "too many long bodies at a time", retry) from None
        self._is_large = True

    def close(self) -> None:
        if self._is_large:
            self._rule.large_bodies.release()

    def _too_long(self) -> HTTPException:
        return HTTPException(
            413, f"the body is longer than {self._rule.max_bytes:,} bytes"
        )


class _AnswerSender:
    """Sends the answer with the headers that every answer has."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._send = send
        self._headers = headers
        self.is_started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_started = True
            given = message.get("headers", ())
            names = [name for name, _ in given]
            ours = (header for header in self._headers if header[0] not in names)
            message["headers"] = [*given, *ours]
        await self._send(message)


class _Head(NamedTuple):
    has_body: bool
    length: int


def _read_head(scope: Scope) -> _Head:
    """Reads the raw headers once. No route takes files, and no database stores a NUL."""
    if b"%00" in scope.get("raw_path", b"") or b"%00" in scope["query_string"]:
        raise HTTPException(422, "the address holds a NUL character")
    has_body = False
    length = 0
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            length = int(value)
            has_body = has_body or length > 0
        elif name == b"transfer-encoding":
            has_body = True
        elif name == b"content-type" and value[:10].lower() == b"multipart/":
            raise HTTPException(415, "send forms as application/x-www-form-urlencoded")
    return _Head(has_body, length)


def get_route(scope: Scope) -> str:
    """The template of the route for logs: the path itself may hold a number."""
    path: str = scope["path"]
    if "endpoint" not in scope:
        return "none"
    if path.startswith(STATIC_PATH):
        return STATIC_PATH
    names = {value: name for name, value in scope.get("path_params", {}).items()}
    parts = [
        f"{{{names[part]}}}" if part in names else part for part in path.split("/")
    ]
    return "/".join(parts)


def answer_http_error(
    scope: Scope,
    error: HTTPException,
    show_error: Callable[[Request, int, str], Response],
) -> Response:
    problem = {"code": f"http.{error.status_code}", "message": error.detail}
    log.info("request refused", route=get_route(scope), code=problem["code"])
    if not wants_page(scope):
        return JSONResponse({"error": problem}, error.status_code, error.headers)
    shown = show_error(Request(scope), error.status_code, error.detail)
    shown.headers.update(error.headers or {})
    return shown


def wants_page(scope: Scope) -> bool:
    """Whether a person reads the answer: a browser asks for a page, a program for JSON."""
    accepted = Headers(scope=scope).get("accept", "")
    is_program = scope["path"].startswith(("/api/", "/v1/", *SIGNED_PATHS))
    return "text/html" in accepted and not is_program


def _log_failure(scope: Scope, error: Exception) -> None:
    """Names the class and the place of an error. Its text may hold speech."""
    log.error(
        "request failed",
        route=get_route(scope),
        error=error_code(error),
        place=get_place(error),
    )
