"""Moves frames between a carrier's socket and its wire, and keeps none.

A slow side slows the other down, so memory stays bounded: audio for a slow carrier waits for
`drain`, which stops reading from the engine. The caller's voice never waits: an engine that
cannot take it loses it.
"""

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from aftercall.clock import Clock
from aftercall.phone.wire import (
    MAX_AUDIO_BYTES,
    AudioIn,
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
from aftercall.sockets.mailbox import MediaSocket, Work, handle_each

OnWireEvent = Callable[[WireEvent], Coroutine[Any, Any, None]]


class MediaPump:
    def __init__(self, socket: MediaSocket, wire: Wire, clock: Clock) -> None:
        self._socket = socket
        self._wire = wire
        self._clock = clock
        self._stuck_since_s: float | None = None
        self.oddities: Counter[Oddity] = Counter()

    async def run(
        self, on_audio: Callable[[bytes], None], on_event: OnWireEvent
    ) -> None:
        """Pass on the caller's voice and every other event, up to the end of the stream."""

        def handle_event(event: WireEvent) -> Work | None:
            if isinstance(event, AudioIn):
                on_audio(event.payload)
                return None
            if isinstance(event, OddMessage):
                self.oddities[event.reason] += 1
                return None
            return on_event(event)

        def handle_frame(frame: str | bytes) -> Work | None:
            return handle_each(self._wire.receive(frame), handle_event)

        await self._socket.deliver(handle_frame)
        rest = handle_each(
            self._wire.close() or (StreamStopped(StopReason.LOST),), handle_event
        )
        if rest is not None:
            await rest

    def play(self, payload: bytes, mark: str | None = None) -> None:
        for start in range(0, len(payload), MAX_AUDIO_BYTES):
            self._send(AudioOut(payload[start : start + MAX_AUDIO_BYTES]))
        if mark:
            self._send(Mark(mark))

    def mark(self, name: str) -> None:
        self._send(Mark(name))

    def clear(self) -> None:
        self._send(Clear())

    def wait_if_slow(self) -> Work | None:
        """What to await before more audio is played; None while the carrier keeps up."""
        return None if self._socket.is_writable else self._drain()

    async def close(self) -> None:
        await self._socket.close()

    def stuck_s(self) -> float:
        """For how long the carrier has taken nothing."""
        return (
            0.0
            if self._stuck_since_s is None
            else self._clock.monotonic() - self._stuck_since_s
        )

    def _send(self, command: WireCommand) -> None:
        if self._wire.is_open:  # else the caller hung up a moment ago
            self._socket.write(self._wire.send(command))

    async def _drain(self) -> None:
        self._stuck_since_s = self._clock.monotonic()
        await self._socket.drain()
        self._stuck_since_s = None
