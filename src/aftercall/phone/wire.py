"""What a carrier's media socket means: the events it gives, the commands it takes, the same on
every carrier.

Audio on this side is 8 kHz μ-law, mono. A wire opens no socket and keeps no clock; nobody above
asks which one it is. What a caller said, pressed or dialled stays out of every `repr`, so that
it cannot slip into a log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

BYTES_PER_MS = 8
SILENCE = b"\xff"
MIN_AUDIO_BYTES = 20 * BYTES_PER_MS
MAX_AUDIO_BYTES = 30_000 * BYTES_PER_MS  # what the strictest carrier takes in one frame


class Oddity(StrEnum):
    """Why a frame was skipped. A closed list: nothing of the frame itself can get in."""

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

    FORMAT = "the carrier announced audio that is neither 8 kHz μ-law nor translatable to it"


class StopReason(StrEnum):
    ENDED = "the carrier ended the stream"
    LOST = "the socket closed without a goodbye"


@dataclass(frozen=True, slots=True)
class MediaFormat:
    encoding: str
    rate_hz: int
    channels: int


MULAW = MediaFormat("audio/x-mulaw", 8_000, 1)


@dataclass(frozen=True, slots=True)
class StreamConnected:
    """The carrier is on the socket; which call it brings is not known yet."""


@dataclass(frozen=True, slots=True)
class StreamStarted:
    """The stream belongs to this call; audio may flow both ways, in `media`."""

    call_sid: str
    stream_sid: str
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    media: MediaFormat = MULAW


@dataclass(frozen=True, slots=True)
class AudioIn:
    """What the caller said: in order, each piece once.

    A gap in `sequence` is audio that never arrived.
    """

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
    """Everything sent before this mark has reached the caller's ear."""

    name: str


@dataclass(frozen=True, slots=True)
class MarkDropped:
    """A `Clear` overtook this mark: what was sent before it may not have been heard."""

    name: str


@dataclass(frozen=True, slots=True)
class StreamStopped:
    """The stream is over. Comes once, whether the carrier said so or the socket just went."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class StreamRefused:
    """This stream cannot be used; hang up with an explanation rather than play static."""

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
    """Ask to be told when everything sent so far has been played."""

    name: str


@dataclass(frozen=True, slots=True)
class Clear:
    """Stop playing now and forget what is queued: without it, an interrupted agent talks on
    from the buffer.
    """


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

    def try_read_audio(self, frame: str | bytes) -> bytes | None:
        """The caller's voice, of a frame that is nothing but the next piece of it; any other
        must be received, and has changed nothing.
        """
        ...

    def close(self) -> Sequence[WireEvent]:
        """The socket is gone: the rest of the audio, and `Stopped` unless it was said before."""
        ...

    def send(self, command: WireCommand) -> str | bytes:
        """The frame that carries this command. Raises StreamNotOpen or AudioTooLong."""
        ...
