"""Moving frames between a carrier's socket and its wire, without keeping any.

Memory stays bounded by making the fast side wait: who sends to a slow carrier is held up by its
socket, stops reading from the engine, and so holds up the engine. The caller's voice never
waits: an engine that cannot take it loses it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from aftercall.clock import Clock
from aftercall.errors import StreamNotOpen
from aftercall.phone.wire import (
    MAX_AUDIO_BYTES,
    AudioOut,
    Clear,
    Mark,
    Oddity,
    OddMessage,
    StopReason,
    StreamStopped,
    Wire,
    WireCommand,
    WireEvent,
)


class MediaSocket(Protocol):
    """A carrier's media socket."""

    async def receive(self) -> str | bytes | None:
        """The next frame; None when the socket is gone."""
        ...

    def set_fast_path(self, on_frame: Callable[[str | bytes], bool]) -> None:
        """Offer frames to `take` the moment they come, while no other waits to be received.

        One that it does not take is received.
        """
        ...

    @property
    def can_send_now(self) -> bool:
        """Whether the next frame will be sent when it is offered."""
        ...

    def try_send(self, frame: str | bytes) -> bool:
        """Send it if that needs no waiting.

        A socket that is gone takes everything and keeps nothing.
        """
        ...

    async def send(self, frame: str | bytes) -> None:
        """Waits while the carrier is slow."""
        ...

    async def close(self) -> None: ...


class MediaPump:
    def __init__(self, socket: MediaSocket, wire: Wire, clock: Clock) -> None:
        self._socket = socket
        self._wire = wire
        self._clock = clock
        self._stuck_since_s: float | None = None
        self.oddities: Counter[Oddity] = Counter()

    async def receive(self) -> Sequence[WireEvent]:
        """What the carrier's next frame tells, `Stopped` when there is none; what cannot be
        used is counted beside.
        """
        frame = await self._socket.receive()
        if frame is None:
            return self._wire.close() or (StreamStopped(StopReason.LOST),)
        events = self._wire.receive(frame)
        for event in events:
            if isinstance(event, OddMessage):
                self.oddities[event.reason] += 1
        return events

    def set_audio_callback(self, on_audio: Callable[[bytes], None]) -> None:
        """Give the caller's voice to `hear` the moment it comes, where the line can do that;
        else it is received, with all the rest.
        """

        def take(frame: str | bytes) -> bool:
            payload = self._wire.try_read_audio(frame)
            if payload is not None:
                on_audio(payload)
            return payload is not None

        self._socket.set_fast_path(take)

    @property
    def can_play_now(self) -> bool:
        """Whether a piece that is offered will be played."""
        return self._socket.can_send_now and self._wire.is_open

    def play_now(self, payload: bytes, mark: str | None = None) -> None:
        """Play a piece of ordinary length without waiting, on a line that is free."""
        self._socket.try_send(self._wire.send(AudioOut(payload)))
        if mark:
            self._socket.try_send(self._wire.send(Mark(mark)))

    async def play(self, payload: bytes) -> None:
        for start in range(0, len(payload), MAX_AUDIO_BYTES):
            await self._send(AudioOut(payload[start : start + MAX_AUDIO_BYTES]))

    async def mark(self, name: str) -> None:
        await self._send(Mark(name))

    async def clear(self) -> None:
        await self._send(Clear())

    async def close(self) -> None:
        await self._socket.close()

    def stuck_s(self) -> float:
        """For how long the carrier has not taken what we want to send."""
        return 0.0 if self._stuck_since_s is None else self._clock.monotonic() - self._stuck_since_s

    async def _send(self, command: WireCommand) -> None:
        try:
            frame = self._wire.send(command)
        except StreamNotOpen:  # the caller hung up a moment ago
            return
        if self._socket.try_send(frame):
            return
        self._stuck_since_s = self._clock.monotonic()
        await self._socket.send(frame)
        self._stuck_since_s = None
