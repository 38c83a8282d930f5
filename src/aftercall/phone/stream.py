"""What all media sockets share: JSON frames around base64 audio, one stream to a socket; and the
wire of our own softphone, whose audio is plain bytes.

The file of a carrier names its fields; states, order and refusals are here. The code for an
audio frame is written for speed: fifty a second arrive for every call.
"""

import json
from abc import ABC, abstractmethod
from binascii import a2b_base64, b2a_base64
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from aftercall.errors import AudioTooLong, StreamNotOpen
from aftercall.model.calls import is_sid
from aftercall.model.json_fields import Json
from aftercall.phone.wire import (
    MAX_AUDIO_BYTES,
    AudioIn,
    AudioOut,
    Digit,
    Mark,
    MarkDropped,
    MarkPlayed,
    Oddity,
    OddMessage,
    StopReason,
    StreamConnected,
    StreamRefused,
    StreamStarted,
    StreamStopped,
    WireCommand,
    WireEvent,
    WireRefusal,
)
from aftercall.speech.sound import BYTES_PER_MS, SAMPLE_RATE_HZ

MAX_HELD_FRAMES = 5  # 100 ms: longer than a network reorders, too short to be noticed
RESTART_AFTER_FRAMES = (
    50  # after a second of old numbers the carrier has restarted its count
)
MAX_OUTSTANDING_MARKS = (
    1_000  # a carrier that never returns a mark must not fill the memory
)
MAX_FRAME_CHARS = 65_536  # an ordinary frame of 20 ms has about 350
DTMF_KEYS = frozenset("0123456789*#ABCD")
MAX_REMEMBERED_KEYS = 64

Message = Json
Events = Sequence[WireEvent]

# a third faster than json.loads, which skips whitespace
_decode = json.JSONDecoder().raw_decode
_ODD: dict[Oddity, Events] = {reason: (OddMessage(reason),) for reason in Oddity}
_LATE = (OddMessage(Oddity.LATE),)
_REPEATED = (OddMessage(Oddity.REPEATED),)


class AudioOrder:
    """Puts frames back in order; goes on without one that does not come."""

    def __init__(self) -> None:
        self._next = 1
        self._held: dict[int, AudioIn] = {}
        self._late = 0

    def add(self, audio: AudioIn) -> Sequence[AudioIn | OddMessage]:
        """The audio that is in order now."""
        if audio.sequence != self._next or self._held:
            return self._sort(audio)
        self._next += 1
        self._late = 0
        return (audio,)

    def flush(self) -> list[AudioIn]:
        """What is still held back, with its gaps: nothing more will come."""
        rest = [self._held[number] for number in sorted(self._held)]
        self._held.clear()
        return rest

    def _sort(self, audio: AudioIn) -> Sequence[AudioIn | OddMessage]:
        if audio.sequence in self._held:
            return _REPEATED
        if audio.sequence < self._next:
            self._late += 1
            if self._late < RESTART_AFTER_FRAMES:
                return _LATE
            return self._restart_at(audio)
        self._late = 0
        self._held[audio.sequence] = audio
        if len(self._held) > MAX_HELD_FRAMES:
            self._next = min(self._held)
        return self._release()

    def _release(self) -> list[AudioIn]:
        ready = []
        while self._next in self._held:
            ready.append(self._held.pop(self._next))
            self._next += 1
        return ready

    def _restart_at(self, audio: AudioIn) -> list[AudioIn]:
        """One wrong number must not mute the caller for the rest of the call."""
        rest = self.flush()
        self._next = audio.sequence + 1
        self._late = 0
        return [*rest, audio]


class PlayedMarks:
    """The marks that were sent and have not come back."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque(maxlen=MAX_OUTSTANDING_MARKS)
        self._cleared: deque[str] = deque(maxlen=MAX_OUTSTANDING_MARKS)

    def add(self, name: str) -> None:
        self._waiting.append(name)

    def clear(self) -> None:
        self._cleared.extend(self._waiting)
        self._waiting.clear()

    def on_mark_returned(self, name: str) -> MarkPlayed | MarkDropped | OddMessage:
        """Of two marks with one name the earlier returns first, so a cleared one comes first."""
        if name in self._cleared:
            self._cleared.remove(name)
            return MarkDropped(name)
        if name in self._waiting:
            self._waiting.remove(name)
            return MarkPlayed(name)
        return OddMessage(Oddity.UNKNOWN_MARK)


@dataclass(frozen=True, slots=True)
class StreamOpening:
    """What a start frame announces, unchecked."""

    call_sid: Any
    stream_sid: Any
    encoding: Any
    rate_hz: Any
    channels: Any
    parameters: Mapping[str, str]


class MediaStream(ABC):
    """A media stream as values: frames in order, marks, and what was heard of what was sent."""

    stream_key: ClassVar[str]
    sequence_key: ClassVar[str]
    encodings: ClassVar[Mapping[str, bytes | None]]
    """Each encoding that the carrier may announce, with its table to μ-law, if it is another."""

    def __init__(self) -> None:
        self._stream_sid: str | None = None
        self._is_open = False
        self._is_connected = False
        self._closed_to: Oddity = Oddity.BEFORE_START
        self._table: bytes | None = None
        self._order = AudioOrder()
        self._marks = PlayedMarks()
        self._pressed: deque[tuple[int | None, int]] = deque(maxlen=MAX_REMEMBERED_KEYS)
        self._media_prefix = self._address = ""

    @property
    def is_open(self) -> bool:
        return self._is_open

    def receive(self, frame: str | bytes) -> Events:
        message = _parse(frame)
        if isinstance(message, Oddity):
            return _ODD[message]
        event = message.get("event")
        if event == "media":
            audio = self._unpack(message)
            return _ODD[audio] if isinstance(audio, Oddity) else self._order.add(audio)
        return self._read(event, message)

    def close(self) -> Events:
        return self._stop(StopReason.LOST)

    def send(self, command: WireCommand) -> str:
        if not self._is_open:
            raise StreamNotOpen("the stream has not started, was refused or is over")
        if isinstance(command, AudioOut):
            return f'{self._media_prefix}{self._pack(command.payload)}"}}}}'
        if isinstance(command, Mark):
            self._marks.add(command.name)
            return f'{{"event":"mark"{self._address},"mark":{{"name":{json.dumps(command.name)}}}}}'
        self._marks.clear()
        return f'{{"event":"clear"{self._address}}}'

    @abstractmethod
    def _read_opening(self, message: Message, start: Message) -> StreamOpening: ...

    @abstractmethod
    def _address_of(self, stream_sid: str) -> str:
        """How a frame names its stream: a JSON member with a leading comma, or nothing."""

    @abstractmethod
    def _digit_order(self, message: Message) -> int: ...

    def _pad(self, payload: bytes) -> bytes:
        return payload

    def _read_error(self, message: Message) -> Events:
        """For carriers that report frames they could not use."""
        return _ODD[Oddity.UNKNOWN_EVENT]

    def _unpack(self, message: Message) -> AudioIn | Oddity:
        if not self._is_open or message.get(self.stream_key) != self._stream_sid:
            return self._misplaced()
        media = message.get("media")
        if type(media) is not dict:
            return Oddity.SHAPE
        if media.get("track", "inbound") != "inbound":
            return Oddity.OWN_VOICE
        sequence = parse_whole_number(media.get("chunk"))
        timestamp_ms = parse_whole_number(media.get("timestamp"))
        if sequence is None or timestamp_ms is None:
            return Oddity.SHAPE
        try:
            payload = a2b_base64(media.get("payload", ""), strict_mode=True)
        except (ValueError, TypeError):
            return Oddity.NOT_BASE64
        if not payload:
            return Oddity.NO_AUDIO
        if self._table:
            payload = payload.translate(self._table)
        return AudioIn(payload, timestamp_ms, sequence)

    def _read(self, event: object, message: Message) -> Events:
        if event == "connected":
            return self._connect()
        if event == "start":
            return self._start(message)
        if event == "error":
            return self._read_error(message)
        if event == "stop":
            return self._end(message)
        if event not in ("dtmf", "mark"):
            return _ODD[Oddity.UNKNOWN_EVENT]
        if not self._is_open or message.get(self.stream_key) != self._stream_sid:
            return _ODD[self._misplaced()]
        return (
            self._read_digit(message) if event == "dtmf" else self._read_mark(message)
        )

    def _connect(self) -> Events:
        if self._is_connected or self._stream_sid is not None:
            return _ODD[Oddity.REPEATED]
        self._is_connected = True
        return (StreamConnected(),)

    def _start(self, message: Message) -> Events:
        if self._stream_sid is not None:
            return _ODD[Oddity.SECOND_START]
        if self._closed_to is Oddity.AFTER_STOP:
            return _ODD[Oddity.AFTER_STOP]
        start = message.get("start")
        if type(start) is not dict:
            return _ODD[Oddity.SHAPE]
        opening = self._read_opening(message, start)
        if not (is_sid(opening.call_sid) and is_sid(opening.stream_sid)):
            return _ODD[Oddity.SHAPE]
        self._stream_sid = opening.stream_sid
        if not self._is_supported(opening):
            self._closed_to = Oddity.AFTER_REFUSAL
            return (StreamRefused(WireRefusal.FORMAT),)
        self._is_open = True
        self._table = self.encodings[opening.encoding]
        self._address = self._address_of(opening.stream_sid)
        self._media_prefix = f'{{"event":"media"{self._address},"media":{{"payload":"'
        return (
            StreamStarted(opening.call_sid, opening.stream_sid, opening.parameters),
        )

    def _is_supported(self, opening: StreamOpening) -> bool:
        if (
            not isinstance(opening.encoding, str)
            or opening.encoding not in self.encodings
        ):
            return False
        rate_hz, channels = map(parse_whole_number, (opening.rate_hz, opening.channels))
        return (rate_hz, channels) == (SAMPLE_RATE_HZ, 1)

    def _read_digit(self, message: Message) -> Events:
        dtmf = message.get("dtmf")
        digit = dtmf.get("digit") if type(dtmf) is dict else None
        if (
            type(dtmf) is not dict
            or not isinstance(digit, str)
            or digit not in DTMF_KEYS
        ):
            return _ODD[Oddity.SHAPE]
        if dtmf.get("track", "inbound_track") not in ("inbound_track", "inbound"):
            return _ODD[Oddity.OWN_VOICE]
        order = self._digit_order(message)
        press = (parse_whole_number(message.get(self.sequence_key)), order)
        if press[0] is not None and press in self._pressed:
            return _ODD[Oddity.REPEATED]
        self._pressed.append(press)
        return (Digit(digit, order),)

    def _read_mark(self, message: Message) -> Events:
        mark = message.get("mark")
        if type(mark) is not dict or not isinstance(mark.get("name"), str):
            return _ODD[Oddity.SHAPE]
        return (self._marks.on_mark_returned(mark["name"]),)

    def _end(self, message: Message) -> Events:
        """A stop counts even before the start: the caller may hang up meanwhile."""
        if (
            self._stream_sid is not None
            and message.get(self.stream_key) != self._stream_sid
        ):
            return _ODD[Oddity.OTHER_STREAM]
        return self._stop(StopReason.ENDED)

    def _stop(self, reason: StopReason) -> Events:
        if self._closed_to is Oddity.AFTER_STOP:
            return () if reason is StopReason.LOST else _ODD[Oddity.AFTER_STOP]
        self._is_open = False
        self._closed_to = Oddity.AFTER_STOP
        return (*self._order.flush(), StreamStopped(reason))

    def _misplaced(self) -> Oddity:
        return Oddity.OTHER_STREAM if self._is_open else self._closed_to

    def _pack(self, payload: bytes) -> str:
        if len(payload) > MAX_AUDIO_BYTES:
            raise AudioTooLong(
                "one frame carries at most 30 seconds of audio; cut it into pieces"
            )
        return b2a_base64(self._pad(payload), newline=False).decode("ascii")


class BrowserWire:
    """The socket of a page: bytes are μ-law, texts are JSON.

    From the page: `{"type": "played", "mark": …}`, `{"type": "key", "digit": …}` and
    `{"type": "hang_up"}`. To the page: `{"type": "mark", "name": …}` and `{"type": "clear"}`.
    """

    def __init__(self) -> None:
        self.is_open = True
        self._marks = PlayedMarks()
        self._received_bytes = 0
        self._frames = 0

    def receive(self, frame: str | bytes) -> Events:
        if not self.is_open:
            return _ODD[Oddity.AFTER_STOP]
        if isinstance(frame, str):
            return self._read_text(frame)
        if not frame or len(frame) > MAX_FRAME_CHARS:
            return _ODD[Oddity.TOO_LARGE if frame else Oddity.NO_AUDIO]
        at_ms = self._received_bytes // BYTES_PER_MS
        self._received_bytes += len(frame)
        self._frames += 1
        return (AudioIn(frame, at_ms, self._frames),)

    def close(self) -> Events:
        return self._stop(StopReason.LOST)

    def send(self, command: WireCommand) -> str | bytes:
        if not self.is_open:
            raise StreamNotOpen("the page has hung up")
        if isinstance(command, AudioOut):
            return command.payload
        if isinstance(command, Mark):
            self._marks.add(command.name)
            return json.dumps({"type": "mark", "name": command.name})
        self._marks.clear()
        return '{"type": "clear"}'

    def _read_text(self, frame: str) -> Events:
        """A message of the page: a mark was played, a key, or the end."""
        message = _parse(frame)
        if isinstance(message, Oddity):
            return _ODD[message]
        kind = message.get("type")
        if kind == "hang_up":
            return self._stop(StopReason.ENDED)
        value = message.get({"played": "mark", "key": "digit"}.get(str(kind), ""))
        if kind == "played" and isinstance(value, str):
            return (self._marks.on_mark_returned(value),)
        if kind == "key" and isinstance(value, str) and value in DTMF_KEYS:
            return (Digit(value, self._frames),)
        return _ODD[Oddity.SHAPE]

    def _stop(self, reason: StopReason) -> Events:
        if not self.is_open:
            return ()
        self.is_open = False
        return (StreamStopped(reason),)


def _parse(frame: str | bytes) -> Message | Oddity:
    if len(frame) > MAX_FRAME_CHARS:
        return Oddity.TOO_LARGE
    try:
        text = (frame if isinstance(frame, str) else frame.decode()).strip()
        message, end = _decode(text)
    except (ValueError, RecursionError):
        return Oddity.NOT_JSON
    return message if end == len(text) and type(message) is dict else Oddity.NOT_JSON


def parse_whole_number(value: object) -> int | None:
    """A whole number, sent as text or as a number; None for anything else."""
    if type(value) is str:
        return int(value) if len(value) <= 18 and value.isdecimal() else None
    return value if type(value) is int and 0 <= value < 10**18 else None


def text_values(parameters: object) -> dict[str, str]:
    """The pairs whose value is text."""
    if type(parameters) is not dict:
        return {}
    return {name: value for name, value in parameters.items() if isinstance(value, str)}
