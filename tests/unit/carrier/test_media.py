"""Fetching a recording: goes on where it stopped, stops where it must, and shows its
credentials to one host only.
"""

from collections.abc import Callable

import httpx2
import pytest

from aftercall.carrier.media import MediaClient, MediaHosts, audio_url
from aftercall.errors import (
    CarrierUnreachable,
    RecordingError,
    RecordingExpired,
    RecordingNotYet,
    RecordingRefused,
)

AUDIO = bytes(range(256)) * 400
URL = "https://api.twilio.com/RE1.wav"
KEY = {"Authorization": "Basic c2VjcmV0"}

Answer = Callable[[httpx2.Request], httpx2.Response]


class Memory:
    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    @property
    def size(self) -> int:
        return len(self.data)

    def restart(self) -> None:
        self.data = b""

    def append(self, data: bytes) -> None:
        self.data += data


def fetch(answer: Answer, sink: Memory | None = None, limit: int = 10**7) -> Memory:
    sink = sink or Memory()
    hosts = MediaHosts(
        "twilio", "https://api.twilio.com", lambda host, port: ["54.172.60.1"]
    )
    MediaClient(hosts, KEY, limit, httpx2.MockTransport(answer)).fetch(URL, sink)
    return sink


def ranged(request: httpx2.Request) -> httpx2.Response:
    wanted = request.headers.get("range", "")
    if not wanted:
        return httpx2.Response(200, content=AUDIO)
    start = int(wanted.removeprefix("bytes=").removesuffix("-"))
    return httpx2.Response(
        206,
        content=AUDIO[start:],
        headers={"Content-Range": f"bytes {start}-{len(AUDIO) - 1}/{len(AUDIO)}"},
    )


def test_a_recording_arrives_whole() -> None:
    assert fetch(ranged).data == AUDIO


def test_an_attempt_goes_on_behind_what_is_there() -> None:
    sent: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers["range"])
        return ranged(request)

    assert fetch(answer, Memory(AUDIO[:5000])).data == AUDIO
    assert sent == ["bytes=5000-"]


def test_a_recording_that_was_already_whole_is_not_fetched_again() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(416, headers={"Content-Range": f"bytes */{len(AUDIO)}"})

    assert fetch(answer, Memory(AUDIO)).data == AUDIO
    with pytest.raises(CarrierUnreachable):
        fetch(answer, Memory(AUDIO + b"more"))


def test_a_host_that_knows_no_parts_sends_it_all_and_nothing_is_there_twice() -> None:
    assert (
        fetch(
            lambda request: httpx2.Response(200, content=AUDIO), Memory(AUDIO[:5000])
        ).data
        == AUDIO
    )


@pytest.mark.parametrize(
    "headers", [{}, {"Content-Range": "bytes 7-9/10"}, {"Content-Range": "nonsense"}]
)
def test_another_part_than_was_asked_for_is_thrown_away(
    headers: dict[str, str],
) -> None:
    sink = Memory(AUDIO[:5000])
    with pytest.raises(CarrierUnreachable):
        fetch(
            lambda request: httpx2.Response(206, content=b"xyz", headers=headers), sink
        )
    assert sink.data == b""


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, RecordingNotYet),
        (403, RecordingExpired),
        (401, RecordingExpired),
        (429, CarrierUnreachable),
        (500, CarrierUnreachable),
        (416, CarrierUnreachable),
        (418, RecordingError),
    ],
)
def test_each_refusal_is_told_apart(status: int, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        fetch(lambda request: httpx2.Response(status))
    assert type(raised.value) is error


def test_an_empty_recording_is_not_there_yet() -> None:
    with pytest.raises(RecordingNotYet):
        fetch(lambda request: httpx2.Response(200, content=b""))


def test_more_than_the_limit_is_refused_whether_it_is_told_or_not() -> None:
    def untold(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=iter([AUDIO[:1000]] * 3))

    for answer in (ranged, untold):
        sink = Memory()
        with pytest.raises(RecordingRefused, match="max_bytes"):
            fetch(answer, sink, limit=2500)
        assert sink.data == b""


def test_redirects_are_judged_each_and_credentials_stay_with_the_api() -> None:
    seen: list[tuple[str, bool]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        host = request.headers["host"]
        seen.append((host, "authorization" in request.headers))
        return (
            ranged(request)
            if host == "media.twiliocdn.com"
            else httpx2.Response(
                302, headers={"Location": "https://media.twiliocdn.com/x"}
            )
        )

    assert fetch(answer).data == AUDIO
    assert seen == [("api.twilio.com", True), ("media.twiliocdn.com", False)]
    for bad in (
        "https://evil.example/x",
        "http://169.254.169.254/latest",
        "/../..",
        "https://api.twilio.com/loop",
    ):
        redirect = httpx2.Response(302, headers={"Location": bad})
        with pytest.raises(RecordingRefused):
            fetch(lambda request, answer=redirect: answer)  # type: ignore[misc]


def test_a_line_that_breaks_keeps_what_came() -> None:
    def pieces() -> object:
        yield AUDIO[:70_000]
        raise httpx2.ReadError("gone")

    sink = Memory()
    with pytest.raises(CarrierUnreachable):
        fetch(lambda request: httpx2.Response(200, content=pieces()), sink)  # type: ignore[arg-type]
    assert sink.data == AUDIO[:70_000]
    assert fetch(ranged, sink).data == AUDIO


def test_twilios_recordings_are_asked_for_with_both_channels() -> None:
    bare = "https://api.twilio.com/2010-04-01/Accounts/AC1/Recordings/RE1"
    assert audio_url("twilio", bare) == f"{bare}.wav?RequestedChannels=2"
    assert audio_url("twilio", f"{bare}.mp3") == f"{bare}.mp3"
    assert audio_url("telnyx", "https://api.telnyx.com/x") == "https://api.telnyx.com/x"
