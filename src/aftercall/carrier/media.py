"""Fetching a recording: from allowed hosts only, behind what is already there, and no more than it may hold. Blocks."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import urljoin, urlsplit

import httpx2

from aftercall.carrier.hosts import MediaHosts
from aftercall.errors import CarrierUnreachable, RecordingError, RecordingExpired, RecordingNotYet, RecordingRefused, tell_network_trouble

TIMEOUT_S = 30.0
MOST_REDIRECTS = 5
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Sink(Protocol):
    """Where the audio goes; `size` says how much of it is there already."""

    @property
    def size(self) -> int: ...

    def restart(self) -> None: ...

    def append(self, data: bytes) -> None: ...


class MediaClient:
    def __init__(
        self, hosts: MediaHosts, credentials: Mapping[str, str], max_bytes: int, transport: httpx2.BaseTransport | None = None
    ) -> None:
        """`credentials` are headers, sent to the carrier's API host and to no other."""
        self._hosts = hosts
        self._credentials = dict(credentials)
        self._max_bytes = max_bytes
        self._transport = transport

    def fetch(self, url: str, sink: Sink) -> None:
        """The rest of the recording into `sink`. Raises RecordingNotYet, RecordingExpired, RecordingRefused, CarrierUnreachable."""
        self._follow(url, lambda: {"Range": f"bytes={sink.size}-"} if sink.size else {}, lambda answer: self._take(answer, sink))

    def ask(self, url: str) -> object:
        """A JSON document of the carrier's API."""
        answers: list[object] = []

        def take(answer: httpx2.Response) -> None:
            _raise_for(answer)
            try:
                answers.append(json.loads(answer.read()))
            except (ValueError, RecursionError):
                raise RecordingError("the carrier's answer about the recording cannot be read") from None

        self._follow(url, lambda: {"Accept": "application/json"}, take)
        return answers[0]

    def _follow(self, url: str, headers: Callable[[], Mapping[str, str]], take: Callable[[httpx2.Response], None]) -> None:
        with httpx2.Client(timeout=TIMEOUT_S, trust_env=False, follow_redirects=False, transport=self._transport) as http:
            for _ in range(MOST_REDIRECTS + 1):
                target = self._hosts.check(url)
                sent = {"Host": target.netloc, "Accept-Encoding": "identity", **headers(), **(self._credentials if target.is_api else {})}
                try:
                    with http.stream("GET", target.url, headers=sent, extensions={"sni_hostname": target.host}) as answer:
                        if not answer.is_redirect:
                            take(answer)
                            return
                        url = urljoin(url, answer.headers.get("location", ""))
                except httpx2.HTTPError as error:
                    raise CarrierUnreachable(
                        f"{target.host}: the recording did not come through ({tell_network_trouble(error)})"
                    ) from error
        raise RecordingRefused(f"the recording's address was redirected more than {MOST_REDIRECTS} times")

    def _take(self, answer: httpx2.Response, sink: Sink) -> None:
        if answer.status_code == 416:
            if answer.headers.get("content-range") == f"bytes */{sink.size}":
                return  # a crash came between the last byte and the name: nothing is missing
            sink.restart()
            raise CarrierUnreachable("what was fetched before is no part of the recording; it is fetched anew")
        _raise_for(answer)
        if answer.status_code != 206 or not _goes_on_at(answer, sink.size):
            sink.restart()
            if answer.status_code == 206:
                raise CarrierUnreachable("the carrier sent another part than was asked for; it is fetched anew")
        promised = answer.headers.get("content-length", "")
        self._check_size(sink.size + (int(promised) if promised.isascii() and promised.isdigit() else 0), sink)
        for piece in answer.iter_bytes():  # as they come: what was received before a break is kept
            self._check_size(sink.size + len(piece), sink)
            sink.append(piece)
        if sink.size == 0:
            raise RecordingNotYet("the carrier's recording is still empty")

    def _check_size(self, size: int, sink: Sink) -> None:
        if size > self._max_bytes:
            sink.restart()
            raise RecordingRefused(f"the recording is larger than {self._max_bytes:,} bytes (recordings.max_bytes)")


def _raise_for(answer: httpx2.Response) -> None:
    status = answer.status_code
    if status in (200, 206):
        return
    if status == 404:
        raise RecordingNotYet("the carrier does not have the recording")
    if status in (401, 403, 410):
        raise RecordingExpired(f"the carrier refused the recording with {status}: its address has run out, or the credentials are wrong")
    if status == 429 or status >= 500:
        raise CarrierUnreachable(f"the carrier answered {status} where the recording should be")
    raise RecordingError(f"the carrier answered {status} where the recording should be")


def _goes_on_at(answer: httpx2.Response, offset: int) -> bool:
    found = _CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
    return found is not None and int(found[1]) == offset


def audio_url(carrier: str, url: str) -> str:
    """Twilio names the recording; the ending says which form of it, and both channels have to be asked for."""
    path = urlsplit(url).path
    is_bare = carrier == "twilio" and "." not in path.rpartition("/")[2]
    return f"{url}.wav?RequestedChannels=2" if is_bare else url
