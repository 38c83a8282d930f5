"""Requests that other web pages make a browser send, and bodies that are not JSON.

A page anywhere can make a browser post to this server. Browsers say so: in `Origin`, and in
`Sec-Fetch-Site`, which no script can change.
"""

from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

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
