"""The protocol of a carrier's media socket: events in, commands out, the same for every carrier.

Audio on this side is 8 kHz μ-law, mono. A wire opens no socket and keeps no clock. What a caller
said, pressed or dialled stays out of every `repr`, so it cannot get into a log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from aftercall.speech.sound import BYTES_PER_MS

SILENCE = b"\xff"
MIN_AUDIO_BYTES = 20 * BYTES_PER_MS
MAX_AUDIO_BYTES = 30_000 * BYTES_PER_MS  # what the strictest carrier takes in one frame


class Oddity(StrEnum):
    """Why a frame was skipped. A fixed list: nothing of the frame itself gets into a log."""

    TOO_LARGE = "longer than a frame may be"
    NOT_JSON = "not a JSON object"
    SHAPE = "a field is missing or of the wrong kind"
    UNKNOWN_EVENT = "an event this wire does not know"
    NOT_BASE64 = "audio that is not base64"
    NO_AUDIO = "audio without a single sample"
    OWN_VOICE = "the agent's own side of the call"
    BEFORE_START = "came before the stream started"
    AFTER_STOP = "came after the stream stopped"
    AFTER_REFUSAL = "came on a stream that was refused"
    OTHER_STREAM = "belongs to another stream"
    REPEATED = "came twice"
    LATE = "came too late to be put in order"
    SECOND_START = "a second start on one socket"
    UNKNOWN_MARK = "a mark that is not outstanding"
    COMPLAINT = "the carrier could not use a frame of ours"
    TOO_FAST = "the carrier says that we send too fast"


class WireRefusal(StrEnum):
    """Why a stream cannot be used at all."""

    FORMAT = (
        "the carrier announced audio that is neither 8 kHz μ-law nor translatable to it"
    )


class StopReason(StrEnum):
    ENDED = "the carrier ended the stream"
    LOST = "the socket closed without a stop"


@dataclass(frozen=True, slots=True)
class StreamConnected:
    """The carrier connected; its call is not known yet."""


@dataclass(frozen=True, slots=True)
class StreamStarted:
    """The stream belongs to this call; audio may flow both ways."""

    call_sid: str
    stream_sid: str
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class AudioIn:
    """The caller's voice: in order, each piece once. A gap in `sequence` is lost audio."""

    payload: bytes = field(repr=False)
    timestamp_ms: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Digit:
    """A key the caller pressed. Of two, the one with the lower `order` was pressed first."""

    digit: str = field(repr=False)
    order: int


@dataclass(frozen=True, slots=True)
class MarkPlayed:
    """Everything sent before this mark was played to the caller."""

    name: str


@dataclass(frozen=True, slots=True)
class MarkDropped:
    """A `Clear` dropped this mark: what was sent before it may not have been heard."""

    name: str


@dataclass(frozen=True, slots=True)
class StreamStopped:
    """The stream is over. Comes once, even if the socket just closed."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class StreamRefused:
    """This stream cannot be used; the call must end."""

    reason: WireRefusal


@dataclass(frozen=True, slots=True)
class OddMessage:
    """A frame was skipped; the call goes on."""

    reason: Oddity


WireEvent = (
    StreamConnected
    | StreamStarted
    | AudioIn
    | Digit
    | MarkPlayed
    | MarkDropped
    | StreamStopped
    | StreamRefused
    | OddMessage
)


@dataclass(frozen=True, slots=True)
class AudioOut:
    """Audio for the caller, queued behind what was sent before; 30 seconds at most."""

    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """Asks the carrier to report when everything sent so far was played."""

    name: str


@dataclass(frozen=True, slots=True)
class Clear:
    """Stops playing and drops what is queued: else an interrupted agent talks on."""


WireCommand = AudioOut | Mark | Clear


class Wire(Protocol):
    """One media socket, from its first frame to its last."""

    @property
    def is_open(self) -> bool:
        """Whether commands can be sent."""
        ...

    def receive(self, frame: str | bytes) -> Sequence[WireEvent]:
        """What a frame means. Never raises, whatever the frame holds."""
        ...

    def close(self) -> Sequence[WireEvent]:
        """The socket closed. Returns the rest of the audio and the stop, unless it came before."""
        ...

    def send(self, command: WireCommand) -> str | bytes:
        """The frame that carries this command. Raises StreamNotOpen or AudioTooLong."""
        ...
