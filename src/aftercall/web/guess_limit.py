"""Limits guesses of the token and of the password."""

import ipaddress
from collections import OrderedDict
from threading import Lock

from fastapi import HTTPException
from starlette.requests import HTTPConnection

from aftercall.clock import Clock

GUESS_WINDOW_S = 60
MAX_TRACKED_KEYS = 10_000
IPV6_HOME_BITS = 64  # a home or a machine has so long a prefix to itself


class GuessLimit:
    """Counts guesses by a key, such as an address, within a window of time.

    A guess is counted before it is looked at, so that guesses in parallel count, too.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._times: OrderedDict[str, list[float]] = OrderedDict()

    def count(self, key: str, most: int) -> None:
        """Counts a guess; refuses it if there were `most` within the window."""
        now = self._clock.monotonic()
        with self._lock:
            oldest = now - GUESS_WINDOW_S
            recent = [at for at in self._times.pop(key, []) if at > oldest]
            is_refused = len(recent) >= most
            self._times[key] = recent if is_refused else [*recent, now]
            if len(self._times) > MAX_TRACKED_KEYS:
                self._times.popitem(last=False)
        if is_refused:
            raise HTTPException(
                429,
                f"too many wrong tokens or passwords; wait {GUESS_WINDOW_S} seconds",
                {"Retry-After": str(GUESS_WINDOW_S)},
            )

    def take_back(self, key: str) -> None:
        """The last guess was right and does not count."""
        with self._lock:
            if times := self._times.get(key):
                times.pop()

    def forget(self, key: str) -> None:
        with self._lock:
            self._times.pop(key, None)


def get_client_key(connection: HTTPConnection) -> str:
    """The address of the client. uvicorn takes it from `X-Forwarded-For` if a trusted proxy
    sent that.
    """
    host = connection.client.host if connection.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    home = ipaddress.IPv6Network((address.packed, IPV6_HOME_BITS), strict=False)
    return str(home)
