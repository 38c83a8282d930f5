"""Who may use API and pages: whoever has the token; without one configured, only this machine."""

import hmac
import ipaddress
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from pydantic import SecretStr
from starlette.requests import HTTPConnection

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "testserver"})
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class ApiAuth:
    """A FastAPI dependency that lets a request through or refuses it."""

    def __init__(self, token: SecretStr | None) -> None:
        self._token = token.get_secret_value().encode() if token else None

    def __call__(self, request: Request) -> None:
        if self.is_allowed(request):
            return
        if self._token is None:
            raise HTTPException(403, "without AFTERCALL_API_TOKEN only this machine is served")
        raise HTTPException(
            401, "a bearer token is needed: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"}
        )

    def is_allowed(self, connection: HTTPConnection) -> bool:
        if self._token is None:
            return is_local(connection)
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        bearer = given.strip() if scheme.lower() == "bearer" else ""
        return any(
            hmac.compare_digest(word.encode(), self._token)
            for word in (bearer, connection.headers.get("x-api-key", ""))
            if word
        )


def is_local(connection: HTTPConnection) -> bool:
    """From this machine, by its own name, through no proxy: a web page elsewhere cannot make
    the browser ask for us.
    """
    host = (connection.url.hostname or "").lower()
    client = connection.client.host if connection.client else ""
    return (
        host in _LOCAL_NAMES
        and _is_loopback(client)
        and not any(name in connection.headers for name in _FORWARDED)
    )


def is_same_origin(connection: HTTPConnection) -> bool:
    """Browsers let any page ask anybody and tell us which page it was; others send no origin."""
    origin = connection.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == connection.headers.get("host")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
