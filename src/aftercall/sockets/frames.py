"""Websocket frames: reads and writes whole messages; everything else goes to the library.

The library takes 20 µs for a message that needs three. So the stream is cut into frames here.
Pings, closes, messages in parts and invalid frames go to the library as raw bytes.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform without the compiled part
    from websockets.utils import apply_mask

TEXT, BINARY = 0x81, 0x82  # whole, and no bit set that an extension would need
_WHOLE = frozenset({TEXT, BINARY})
_MASKED = 0x80
_MASK_POOL_BYTES = 4_096


class Message(NamedTuple):
    """A whole message, unmasked. `raw` is its frame, for a library that has to judge it."""

    is_text: bool
    payload: bytes
    raw: bytes


class UnhandledBytes(NamedTuple):
    """Bytes for the library."""

    raw: bytes


class FrameParser:
    """Cuts the bytes after the handshake into frames.

    A frame longer than `max_bytes` goes to the library, with all that follows.
    """

    def __init__(self, *, is_masked: bool, max_bytes: int) -> None:
        self._is_masked = is_masked
        self._flag, self._start = (_MASKED, 6) if is_masked else (0, 2)
        self._max_bytes = max_bytes
        self._rest = bytearray()
        self._needed = 0
        self._is_in_parts = False
        self._is_passing_on = False

    def feed(self, data: bytes) -> Sequence[Message | UnhandledBytes]:
        if self._is_passing_on:
            return (UnhandledBytes(data),)
        if not self._rest:
            message = self._read_single(data)
            if message is not None:
                return (message,)
        else:
            self._rest += data
            if len(self._rest) < self._needed:
                return ()
            data = bytes(self._rest)
            self._rest.clear()
        return self._cut(data)

    def _read_single(self, data: bytes) -> Message | None:
        """The usual case: the bytes are one message of ordinary length and nothing else."""
        size = len(data)
        if size < 8 or data[0] not in _WHOLE or self._is_in_parts:
            return None
        length, start = data[1] ^ self._flag, self._start
        if length > 126:  # very long, or the mask bit is wrong
            return None
        if length == 126:
            length, start = data[2] << 8 | data[3], start + 2
        if size != start + length or length > self._max_bytes:
            return None
        return self._make_message(data, 0, start, size)

    def _cut(self, data: bytes) -> list[Message | UnhandledBytes]:
        """Whole frames. What we do not handle ends the cutting and is passed on as it is."""
        pieces: list[Message | UnhandledBytes] = []
        at, size = 0, len(data)
        while at < size:
            start, length = self._measure(data, at, size)
            end = start + length
            if length > self._max_bytes or (
                size - at > 1 and (data[at + 1] >= _MASKED) is not self._is_masked
            ):
                self._is_passing_on = True
                pieces.append(UnhandledBytes(data[at:]))
                return pieces
            if end > size:
                self._rest += data[at:]
                self._needed = end - at
                return pieces
            pieces.append(self._read(data, at, start, end))
            at = end
        return pieces

    def _measure(self, data: bytes, at: int, size: int) -> tuple[int, int]:
        """Where the payload of the frame at `at` starts, and its length.

        For an incomplete head: the end of the head, and 0.
        """
        masked = 4 if self._is_masked else 0
        if size - at < 2:
            return at + 2, 0
        length = data[at + 1] & 0x7F
        if length < 126:
            return at + 2 + masked, length
        wide = 2 if length == 126 else 8
        if size - at < 2 + wide:
            return at + 2 + wide, 0
        return at + 2 + wide + masked, int.from_bytes(data[at + 2 : at + 2 + wide])

    def _read(
        self, data: bytes, at: int, start: int, end: int
    ) -> Message | UnhandledBytes:
        head = data[at]
        if head in _WHOLE and not self._is_in_parts:
            return self._make_message(data, at, start, end)
        opcode = head & 0x0F
        if opcode < 8:  # pings and closes may come between the parts
            self._is_in_parts = head < 0x80
        return UnhandledBytes(data[at:end])

    def _make_message(self, data: bytes, at: int, start: int, end: int) -> Message:
        payload = data[start:end]
        if self._is_masked:
            payload = apply_mask(payload, data[start - 4 : start])
        return Message(data[at] == TEXT, payload, data[at:end])


class Masks:
    """Random masks for a client's frames, fetched from the system many at a time."""

    def __init__(self) -> None:
        self._drawn = b""
        self._at = 0

    def next_mask(self) -> bytes:
        if self._at >= len(self._drawn):
            self._drawn, self._at = os.urandom(_MASK_POOL_BYTES), 0
        mask = self._drawn[self._at : self._at + 4]
        self._at += 4
        return mask


def make_frame(message: str | bytes, mask: bytes = b"") -> bytes:
    """A whole message in one frame. A client's frame needs a mask."""
    kind, payload = (
        (TEXT, message.encode()) if isinstance(message, str) else (BINARY, message)
    )
    length, flag = len(payload), _MASKED if mask else 0
    if length < 126:
        head = bytes((kind, flag | length))
    elif length < 65_536:
        head = bytes((kind, flag | 126, length >> 8, length & 0xFF))
    else:
        head = bytes((kind, flag | 127)) + length.to_bytes(8)
    return b"".join((head, mask, apply_mask(payload, mask))) if mask else head + payload
