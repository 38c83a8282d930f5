"""Recordings: where a carrier or a hosted platform has them, and how their audio is fetched.

A carrier names a recording's address in its notice, a platform in its report of the call. An
address that is missing or has expired is asked for in the service's API. Audio comes from allowed
hosts only, resuming, up to a maximum size; fetching it blocks.
"""

import ipaddress
import json
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import httpx2

from aftercall.errors import (
    CarrierUnreachable,
    RecordingError,
    RecordingExpired,
    RecordingNotYet,
    RecordingRefused,
)
from aftercall.hosted.platform import get_object
from aftercall.model.json_fields import Json
from aftercall.phone.telnyx import TelnyxControl
from aftercall.rest import Headers, basic_auth, describe_network_error
from aftercall.settings import Settings
from aftercall.settings.providers import TwilioSettings, make_key_headers

_DEFAULT_PORTS = {"https": 443, "http": 80}
# Hosts by name or by suffix. Telnyx keeps recordings in an Amazon bucket and in its storage,
# Retell in one of Amazon's caches; ElevenLabs serves them from its API.
_HOSTS = {
    "twilio": ("api.twilio.com", ".twilio.com", "media.twiliocdn.com"),
    "telnyx": (
        "api.telnyx.com",
        ".telnyx.com",
        ".telnyxstorage.com",
        "telephony-recorder-prod.s3.amazonaws.com",
    ),
    "vapi": (".vapi.ai",),
    "retell": (
        ".retellai.com",
        "retellai.s3.us-west-2.amazonaws.com",
        "dxc03zgurdly9.cloudfront.net",
    ),
    "elevenlabs": (".elevenlabs.io",),
    "bland": (".bland.ai",),
}
_BUCKETS = {"telnyx": (("s3.amazonaws.com", "/telephony-recorder-prod/"),)}

# The standard library calls some reserved addresses global: site-local ones (fec0::), IPv4 in
# the last bits (::127.0.0.1), and on older Pythons most of 192.0.0.0/24.
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
_RESERVED_IPV4 = ipaddress.IPv4Network("192.0.0.0/24")
# the well-known prefix and the one for local use
_NAT64 = ipaddress.IPv6Network("64:ff9b::/32")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
TIMEOUT_S = 30.0
MAX_REDIRECTS = 5

Resolve = Callable[[str, int], list[str]]


@dataclass(frozen=True)
class MediaAddress:
    """Where to connect, and the host to ask for. `is_api`: our credentials are for this host."""

    url: str = field(repr=False)
    host: str
    netloc: str
    is_api: bool


class MediaHosts:
    """The hosts that a carrier or platform serves recordings from."""

    def __init__(
        self,
        carrier: str,
        api_url: str,
        resolve: Resolve | None = None,
        more_hosts: Sequence[str] = (),
    ) -> None:
        """`more_hosts` are the user's own buckets, where some platforms put recordings."""
        self._carrier = carrier
        self._names = (*_HOSTS.get(carrier, ()), *more_hosts)
        self._api = split_origin(api_url)
        self._resolve = resolve or resolve_host

    def check(self, url: str) -> MediaAddress:
        """Raises RecordingRefused for an address that is not the carrier's, or not public."""
        try:
            origin = split_origin(url)
            parts = urlsplit(url)
        except ValueError:
            raise RecordingRefused("the recording's address cannot be read") from None
        scheme, host, port = origin
        is_api = origin == self._api
        is_theirs = (
            scheme == "https" and port == 443 and self._is_known(host, parts.path)
        )
        if parts.username is not None or not (is_api or is_theirs):
            carrier = self._carrier.capitalize()
            raise RecordingRefused(
                f"the recording lies at {host}, which is not {carrier}'s"
            )
        address = self._pick(host, port, may_be_loopback=is_api and _is_loopback(host))
        return pin_address(url, address, is_api=is_api)

    def _is_known(self, host: str, path: str) -> bool:
        if any(
            host == name or (name.startswith(".") and host.endswith(name))
            for name in self._names
        ):
            return True
        clean = "/../" not in path and "%2e" not in path.lower()
        return any(
            host == name and path.startswith(prefix) and clean
            for name, prefix in _BUCKETS.get(self._carrier, ())
        )

    def _pick(self, host: str, port: int, *, may_be_loopback: bool) -> str:
        found = self._resolve(host, port)
        if not found:
            raise CarrierUnreachable(f"{host}: no such host, or no name service")
        for address in found:
            if not (is_public(address) or (may_be_loopback and _is_loopback(address))):
                raise RecordingRefused(f"{host} leads to an address that is not public")
        return found[0]


def split_origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises ValueError."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").rstrip(".")
    if scheme not in _DEFAULT_PORTS or not host:
        raise ValueError("no address of a page")
    return scheme, host, parts.port or _DEFAULT_PORTS[scheme]


def pin_address(url: str, address: str, *, is_api: bool = False) -> MediaAddress:
    """The URL with the address that was checked: its name may lead elsewhere a moment later."""
    (scheme, host, port) = split_origin(url)
    parts = urlsplit(url)
    numeric = f"[{address}]" if ":" in address else address
    query = f"?{parts.query}" if parts.query else ""
    target = f"{scheme}://{numeric}:{port}{parts.path or '/'}{query}"
    netloc = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    return MediaAddress(target, host, netloc, is_api)


def resolve_host(host: str, port: int) -> list[str]:
    """Its addresses; none if there is no such host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[4][0]) for address in found]


def _is_loopback(host: str) -> bool:
    """By name: another name that only resolves to loopback may be an attack."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return _is_public_ipv4(ip)
    if not ip.is_global or not (ip in _GLOBAL_IPV6 or ip in _NAT64):
        return False
    return all(_is_public_ipv4(inner) for inner in _inner_addresses(ip))


def _is_public_ipv4(ip: ipaddress.IPv4Address) -> bool:
    return ip.is_global and not ip.is_multicast and ip not in _RESERVED_IPV4


def _inner_addresses(ip: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses inside an IPv6 address."""
    found = [ip.sixtofour, *(ip.teredo or ())]
    if ip in _NAT64:
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF))
    return [inner for inner in found if inner is not None]


class AudioSink(Protocol):
    """Where the audio goes. `size` is how much of it is there already."""

    @property
    def size(self) -> int: ...

    def restart(self) -> None: ...

    def append(self, data: bytes) -> None: ...


class MediaClient:
    """Downloads recordings; follows no redirect to a host it does not know."""

    def __init__(
        self,
        hosts: MediaHosts,
        credentials: Mapping[str, str],
        max_bytes: int,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """`credentials` are headers for the carrier's API host only."""
        self._hosts = hosts
        self._credentials = dict(credentials)
        self._max_bytes = max_bytes
        self._transport = transport

    def fetch(self, url: str, sink: AudioSink) -> None:
        """Append the rest of the recording to the sink.

        Raises RecordingNotYet, RecordingExpired, RecordingRefused, CarrierUnreachable.
        """
        self._follow(
            url,
            lambda: {"Range": f"bytes={sink.size}-"} if sink.size else {},
            lambda answer: self._save_audio(answer, sink),
        )

    def fetch_json(self, url: str) -> object:
        """A JSON document of the carrier's API."""
        answers: list[object] = []

        def read(answer: httpx2.Response) -> None:
            _raise_for(answer)
            try:
                answers.append(json.loads(answer.read()))
            except (ValueError, RecursionError):
                message = "the carrier's answer about the recording cannot be read"
                raise RecordingError(message) from None

        self._follow(url, lambda: {"Accept": "application/json"}, read)
        return answers[0]

    def _follow(
        self,
        url: str,
        headers: Callable[[], Headers],
        use: Callable[[httpx2.Response], None],
    ) -> None:
        """Fetches through redirects; each host is checked, and only the API gets the key."""
        with httpx2.Client(
            timeout=TIMEOUT_S,
            trust_env=False,
            follow_redirects=False,
            transport=self._transport,
        ) as http:
            for _ in range(MAX_REDIRECTS + 1):
                target = self._hosts.check(url)
                sent = {
                    "Host": target.netloc,
                    "Accept-Encoding": "identity",
                    **headers(),
                }
                if target.is_api:
                    sent |= self._credentials
                sni = {"sni_hostname": target.host}
                try:
                    with http.stream(
                        "GET", target.url, headers=sent, extensions=sni
                    ) as answer:
                        if not answer.is_redirect:
                            use(answer)
                            return
                        url = urljoin(url, answer.headers.get("location", ""))
                except httpx2.HTTPError as error:
                    reason = describe_network_error(error)
                    message = (
                        f"{target.host}: the recording could not be fetched ({reason})"
                    )
                    raise CarrierUnreachable(message) from error
        raise RecordingRefused(
            f"the recording's address was redirected more than {MAX_REDIRECTS} times"
        )

    def _save_audio(self, answer: httpx2.Response, sink: AudioSink) -> None:
        if answer.status_code == 416:
            if answer.headers.get("content-range") == f"bytes */{sink.size}":
                return  # complete: a crash came after the last byte
            sink.restart()
            raise CarrierUnreachable(
                "the part fetched before does not fit; fetching it again"
            )
        _raise_for(answer)
        if answer.status_code != 206 or not _goes_on_at(answer, sink.size):
            sink.restart()
            if answer.status_code == 206:
                raise CarrierUnreachable(
                    "the carrier sent another part; fetching it again"
                )
        length = answer.headers.get("content-length", "")
        announced = int(length) if length.isascii() and length.isdigit() else 0
        self._check_size(sink.size + announced, sink)
        for piece in answer.iter_bytes():  # one by one: a break keeps what came before
            self._check_size(sink.size + len(piece), sink)
            sink.append(piece)
        if sink.size == 0:
            raise RecordingNotYet("the carrier's recording is still empty")

    def _check_size(self, size: int, sink: AudioSink) -> None:
        if size > self._max_bytes:
            sink.restart()
            raise RecordingRefused(
                f"the recording is larger than {self._max_bytes:,} bytes (recordings.max_bytes)"
            )


def _raise_for(answer: httpx2.Response) -> None:
    status = answer.status_code
    if status in (200, 206):
        return
    if status == 404:
        raise RecordingNotYet("the carrier does not have the recording")
    if status in (401, 403, 410):
        raise RecordingExpired(
            f"the carrier refused the recording with {status}: its address has expired, or "
            "the credentials are wrong"
        )
    if status == 429 or status >= 500:
        raise CarrierUnreachable(
            f"the carrier answered {status} where the recording should be"
        )
    raise RecordingError(f"the carrier answered {status} where the recording should be")


def _goes_on_at(answer: httpx2.Response, offset: int) -> bool:
    found = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
    return found is not None and int(found[1]) == offset


def audio_url(carrier: str, url: str) -> str:
    """Twilio's address names the recording; the suffix and query ask for a two-channel WAV."""
    path = urlsplit(url).path
    is_bare = carrier == "twilio" and "." not in path.rpartition("/")[2]
    return f"{url}.wav?RequestedChannels=2" if is_bare else url


PLATFORMS = ("elevenlabs", "vapi", "retell", "bland")
_INNER_REPORTS = {"vapi": "message", "retell": "call"}
"""Where a platform's webhook holds what its API answers alone."""
_TITLES = {"elevenlabs": "ElevenLabs"}
# Addresses expire: Telnyx' after ten minutes, Retell's after a day, or ten minutes if signed.
_LOOKUP_PATHS = {
    "vapi": "/call/{sid}",
    "retell": "/v2/get-call/{sid}",
    "bland": "/v1/calls/{sid}",
}
# ElevenLabs names no address: the audio of a conversation is part of its API.
_AUDIO_PATHS = {"elevenlabs": "/v1/convai/conversations/{sid}/audio"}


@dataclass(frozen=True)
class RecordingApi:
    """The API of one service. Without a key it has no headers."""

    title: str
    url: str
    headers: Headers = field(repr=False)
    settings: str
    """The settings that hold the key, to name in an error."""
    lookup_path: str = ""
    """What answers with the recording's address."""
    audio_path: str = ""
    """What answers with the audio itself."""

    @property
    def can_ask(self) -> bool:
        return bool(self.headers and (self.lookup_path or self.audio_path))

    def make_url(self, path: str) -> str:
        return self.url.rstrip("/") + path


def open_recording_api(settings: Settings, service: str, sid: str) -> RecordingApi:
    """`sid` is the recording's at a carrier, and the call's at a platform."""
    if service == "twilio":
        return _open_twilio(settings.twilio)
    section = getattr(settings, service)
    path = _LOOKUP_PATHS.get(service, "").format(sid=sid)
    if service == "telnyx":
        path = TelnyxControl().find_recording(sid).path
    return RecordingApi(
        _TITLES.get(service, service.capitalize()),
        section.api_url,
        make_key_headers(service, section.api_key),
        f"{service.upper()}_API_KEY",
        path,
        _AUDIO_PATHS.get(service, "").format(sid=sid),
    )


def _open_twilio(section: TwilioSettings) -> RecordingApi:
    headers = {}
    if section.account_sid and section.auth_token:
        token = section.auth_token.get_secret_value()
        headers["Authorization"] = basic_auth(section.account_sid, token)
    keys = "TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN"
    return RecordingApi("Twilio", section.api_url, headers, keys)


def find_recording_url(service: str, answer: Json) -> str | None:
    """The address in an answer of the service's API; of two, the one with both sides apart."""
    candidates: list[Any] = []
    if service == "telnyx":
        urls = get_object(get_object(answer, "data"), "download_urls")
        candidates = [urls.get("wav"), urls.get("mp3")]
    elif service == "vapi":
        artifact = get_object(answer, "artifact")
        recording = get_object(artifact, "recording")
        candidates = [
            recording.get("stereoUrl"),
            artifact.get("stereoRecordingUrl"),
            get_object(recording, "mono").get("combinedUrl"),
            artifact.get("recordingUrl"),
        ]
    elif service == "retell":
        names = ("recording_multi_channel_url", "recording_url")
        candidates = [answer.get(name) for name in names]
    elif service == "bland":
        candidates = [answer.get("recording_url")]
    found = (url for url in candidates if isinstance(url, str) and url)
    return next(found, None)


def find_reported_url(platform: str, event: Json) -> str | None:
    """The address in a platform's report of a finished call."""
    inner = _INNER_REPORTS.get(platform)
    return find_recording_url(platform, get_object(event, inner) if inner else event)
