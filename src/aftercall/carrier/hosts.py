"""Where a recording may be fetched from: the carrier's own hosts, at public addresses, and nowhere else.

An address comes with a webhook. Signed or not, it could lead into our own network, so every one is judged, those that a
redirect names, too. The connection then goes to the very address that was judged: a name cannot be turned in between.
"""

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aftercall.errors import CarrierUnreachable, RecordingRefused

_DEFAULT_PORTS = {"https": 443, "http": 80}
# Hosts by name or by ending; Telnyx keeps recordings in a bucket of its own at Amazon and in its own storage.
_HOSTS = {
    "twilio": ("api.twilio.com", ".twilio.com", "media.twiliocdn.com"),
    "telnyx": ("api.telnyx.com", ".telnyx.com", ".telnyxstorage.com", "telephony-recorder-prod.s3.amazonaws.com"),
}
_BUCKETS = {"telnyx": (("s3.amazonaws.com", "/telephony-recorder-prod/"),)}

_NAT64 = ipaddress.ip_network("64:ff9b::/32")  # the well-known prefix and the one for local use

Resolve = Callable[[str, int], list[str]]


@dataclass(frozen=True)
class Target:
    """Where to connect, and as whom to ask. `is_api`: the host that our credentials are for."""

    url: str = field(repr=False)
    host: str
    netloc: str
    is_api: bool


class MediaHosts:
    def __init__(self, carrier: str, api_url: str, resolve: Resolve | None = None) -> None:
        self._carrier = carrier
        self._api = _origin(api_url)
        self._resolve = resolve or _resolve

    def check(self, url: str) -> Target:
        """Raises RecordingRefused for an address that is not the carrier's, or lies in a network of ours."""
        try:
            origin, parts = _origin(url), urlsplit(url)
        except ValueError:
            raise RecordingRefused("the recording's address cannot be read") from None
        scheme, host, port = origin
        is_api = origin == self._api
        if parts.username is not None or not (is_api or (scheme == "https" and port == 443 and self._is_known(host, parts.path))):
            raise RecordingRefused(f"the recording lies at {host or 'no host'}, which is not {self._carrier.capitalize()}'s")
        address = self._pick(host, port, may_be_loopback=is_api and _is_loopback(host))
        numeric = f"[{address}]" if ":" in address else address
        target = f"{scheme}://{numeric}:{port}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
        return Target(target, host, host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}", is_api)

    def _is_known(self, host: str, path: str) -> bool:
        names = _HOSTS.get(self._carrier, ())
        if any(host == name or (name.startswith(".") and host.endswith(name)) for name in names):
            return True
        clean = "/../" not in path and "%2e" not in path.lower()
        return any(host == name and path.startswith(prefix) and clean for name, prefix in _BUCKETS.get(self._carrier, ()))

    def _pick(self, host: str, port: int, *, may_be_loopback: bool) -> str:
        found = self._resolve(host, port)
        if not found:
            raise CarrierUnreachable(f"{host}: no such host, or no name service")
        for address in found:
            if not (_is_public(address) or (may_be_loopback and _is_loopback(address))):
                raise RecordingRefused(f"{host} leads to an address that is not public")
        return found[0]


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    if scheme not in _DEFAULT_PORTS or not host:
        raise ValueError("no address of a page")
    return scheme, host, parts.port or _DEFAULT_PORTS[scheme]


def _resolve(host: str, port: int) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError:
        return []


def _is_loopback(host: str) -> bool:
    """By its own name: one that only leads to loopback is somebody's trick."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if not ip.is_global or ip.is_multicast:
        return False
    return isinstance(ip, ipaddress.IPv4Address) or all(inner.is_global for inner in _inner_addresses(ip))


def _inner_addresses(ip: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that some IPv6 addresses stand for."""
    found = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
    if ip in _NAT64:
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF))
    return [inner for inner in found if inner is not None]
