"""What the media sockets of all carriers have in common: JSON frames around base64 audio, one stream to a socket.

A carrier's own file names the fields; here are the states, the order and the refusals, so that they are the same for all.
The path of an audio frame is written for speed: fifty a second arrive for every call.
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
from aftercall.phone.marks import Marks
from aftercall.phone.order import AudioOrder
from aftercall.phone.wire import (
    LONGEST_AUDIO,
    MULAW,
    AudioIn,
    AudioOut,
    Connected,
    Digit,
    Mark,
    Odd,
    Oddity,
    Refusal,
    Refused,
    Started,
    Stopped,
    StopReason,
    WireCommand,
    WireEvent,
)

MAX_FRAME = 65_536  # characters; an ordinary frame of 20 ms has about 350
KEYS = frozenset("0123456789*#ABCD")
REMEMBERED_KEYS = 64

Message = dict[str, Any]
Events = Sequence[WireEvent]

_decode = json.JSONDecoder().raw_decode  # a third faster than json.loads, which looks for whitespace by regular expression
_ODD: dict[Oddity, Events] = {reason: (Odd(reason),) for reason in Oddity}


@dataclass(frozen=True, slots=True)
class Opening:
    """What a start frame announces, as it came: nothing in it has been believed yet."""

    call_sid: Any
    stream_sid: Any
    encoding: Any
    rate_hz: Any
    channels: Any
    parameters: Mapping[str, str]


class MediaStream(ABC):
    stream_key: ClassVar[str]
    sequence_key: ClassVar[str]
    encodings: ClassVar[Mapping[str, bytes | None]]
    """Encodings this carrier may announce, each with the table that makes μ-law of it (None: it is μ-law)."""

    def __init__(self) -> None:
        self._stream_sid: str | None = None
        self._is_open = False
        self._is_connected = False
        self._closed_to: Oddity = Oddity.BEFORE_START
        self._table: bytes | None = None
        self._order = AudioOrder()
        self._marks = Marks()
        self._pressed: deque[tuple[int | None, int]] = deque(maxlen=REMEMBERED_KEYS)
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
            heard = self._unpack(message)
            return _ODD[heard] if isinstance(heard, Oddity) else self._order.take(AudioIn(*heard))
        return self._read(event, message)

    def hear(self, frame: str | bytes) -> bytes | None:
        message = _parse(frame)
        if isinstance(message, Oddity) or message.get("event") != "media":
            return None
        heard = self._unpack(message)
        return None if isinstance(heard, Oddity) or not self._order.passes(heard[2]) else heard[0]

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
    def _read_opening(self, message: Message, start: Message) -> Opening: ...

    @abstractmethod
    def _address_of(self, stream_sid: str) -> str:
        """How a frame to the carrier names its stream: a JSON member with a leading comma, or nothing."""

    @abstractmethod
    def _order_of_key(self, message: Message) -> int: ...

    def _pad(self, payload: bytes) -> bytes:
        return payload

    def _complain(self, message: Message) -> Events:
        """A carrier that reports what it could not use says so here; to others the event is unknown."""
        return _ODD[Oddity.UNKNOWN_EVENT]

    def _unpack(self, message: Message) -> tuple[bytes, int, int] | Oddity:
        """Payload, timestamp and number of a piece of the caller's voice."""
        if not self._is_open or message.get(self.stream_key) != self._stream_sid:
            return self._misplaced()
        media = message.get("media")
        if type(media) is not dict:
            return Oddity.SHAPE
        if media.get("track", "inbound") != "inbound":
            return Oddity.OWN_VOICE
        sequence, timestamp_ms = whole(media.get("chunk")), whole(media.get("timestamp"))
        if sequence is None or timestamp_ms is None:
            return Oddity.SHAPE
        try:
            payload = a2b_base64(media.get("payload", ""), strict_mode=True)
        except (ValueError, TypeError):
            return Oddity.NOT_BASE64
        if not payload:
            return Oddity.NO_AUDIO
        return payload.translate(self._table) if self._table else payload, timestamp_ms, sequence

    def _read(self, event: object, message: Message) -> Events:
        if event == "connected":
            return self._connect()
        if event == "start":
            return self._start(message)
        if event == "error":
            return self._complain(message)
        if event == "stop":
            return self._end(message)
        if event not in ("dtmf", "mark"):
            return _ODD[Oddity.UNKNOWN_EVENT]
        if not self._is_open or message.get(self.stream_key) != self._stream_sid:
            return _ODD[self._misplaced()]
        return self._press(message) if event == "dtmf" else self._return_mark(message)

    def _connect(self) -> Events:
        if self._is_connected or self._stream_sid is not None:
            return _ODD[Oddity.REPEATED]
        self._is_connected = True
        return (Connected(),)

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
        if not self._understands(opening):
            self._closed_to = Oddity.AFTER_REFUSAL
            return (Refused(Refusal.FORMAT),)
        self._is_open = True
        self._table = self.encodings[opening.encoding]
        self._address = self._address_of(opening.stream_sid)
        self._media_prefix = f'{{"event":"media"{self._address},"media":{{"payload":"'
        return (Started(opening.call_sid, opening.stream_sid, opening.parameters),)

    def _understands(self, opening: Opening) -> bool:
        if not isinstance(opening.encoding, str) or opening.encoding not in self.encodings:
            return False
        return (whole(opening.rate_hz), whole(opening.channels)) == (MULAW.rate_hz, MULAW.channels)

    def _press(self, message: Message) -> Events:
        dtmf = message.get("dtmf")
        if type(dtmf) is not dict or not isinstance(dtmf.get("digit"), str) or dtmf["digit"] not in KEYS:
            return _ODD[Oddity.SHAPE]
        if dtmf.get("track", "inbound_track") not in ("inbound_track", "inbound"):
            return _ODD[Oddity.OWN_VOICE]
        order = self._order_of_key(message)
        press = (whole(message.get(self.sequence_key)), order)
        if press[0] is not None and press in self._pressed:
            return _ODD[Oddity.REPEATED]
        self._pressed.append(press)
        return (Digit(dtmf["digit"], order),)

    def _return_mark(self, message: Message) -> Events:
        mark = message.get("mark")
        if type(mark) is not dict or not isinstance(mark.get("name"), str):
            return _ODD[Oddity.SHAPE]
        return (self._marks.take_back(mark["name"]),)

    def _end(self, message: Message) -> Events:
        """A stop counts even before the start: the caller may hang up while the stream is being set up."""
        if self._stream_sid is not None and message.get(self.stream_key) != self._stream_sid:
            return _ODD[Oddity.OTHER_STREAM]
        return self._stop(StopReason.ENDED)

    def _stop(self, reason: StopReason) -> Events:
        if self._closed_to is Oddity.AFTER_STOP:
            return () if reason is StopReason.LOST else _ODD[Oddity.AFTER_STOP]
        self._is_open = False
        self._closed_to = Oddity.AFTER_STOP
        return (*self._order.flush(), Stopped(reason))

    def _misplaced(self) -> Oddity:
        return Oddity.OTHER_STREAM if self._is_open else self._closed_to

    def _pack(self, payload: bytes) -> str:
        if len(payload) > LONGEST_AUDIO:
            raise AudioTooLong("one frame carries at most 30 seconds of audio; cut it into pieces")
        return b2a_base64(self._pad(payload), newline=False).decode("ascii")


def _parse(frame: str | bytes) -> Message | Oddity:
    if len(frame) > MAX_FRAME:
        return Oddity.TOO_LARGE
    try:
        text = (frame if isinstance(frame, str) else frame.decode()).strip()
        message, end = _decode(text)
    except (ValueError, RecursionError):
        return Oddity.NOT_JSON
    return message if end == len(text) and type(message) is dict else Oddity.NOT_JSON


def whole(value: object) -> int | None:
    """A whole number, which carriers send as text or as a number; None for anything else."""
    if type(value) is str:
        return int(value) if len(value) <= 18 and value.isdecimal() else None
    return value if type(value) is int and 0 <= value < 10**18 else None


def only_text(parameters: object) -> dict[str, str]:
    """The pairs of text out of something that should be an object of them."""
    if type(parameters) is not dict:
        return {}
    return {name: value for name, value in parameters.items() if isinstance(value, str)}
