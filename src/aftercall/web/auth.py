"""Who may use API and pages: whoever has the token; without one configured, only this machine."""

import hmac
import ipaddress
from typing import NoReturn

from fastapi import HTTPException, Request
from pydantic import SecretStr

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "testserver"})
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class Guard:
    """A FastAPI dependency that lets a request through or refuses it."""

    def __init__(self, token: SecretStr | None) -> None:
        self._token = token.get_secret_value().encode() if token else None

    def __call__(self, request: Request) -> None:
        if self._token is not None:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
                raise HTTPException(401, "a bearer token is needed: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})
        elif not is_local(request):
            _refuse()


def is_local(request: Request) -> bool:
    """From this machine, by its own name, through no proxy: a web page elsewhere cannot make the browser ask for us."""
    host = (request.url.hostname or "").lower()
    client = request.client.host if request.client else ""
    return host in _LOCAL_NAMES and _is_loopback(client) and not any(name in request.headers for name in _FORWARDED)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _refuse() -> NoReturn:
    raise HTTPException(403, "without AFTERCALL_API_TOKEN only this machine is served")
