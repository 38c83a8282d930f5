"""The short way through a websocket says what the library would have said, of any stream and
however it is cut up.
"""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from aftercall.sockets.frames import (
    FrameParser,
    Masks,
    Message,
    UnhandledBytes,
    make_frame,
)

LARGEST = 2_000
PAYLOADS = st.one_of(
    st.binary(max_size=140), st.integers(0, 40).map(lambda size: b"a" * 60 * size)
)


def protocol(side: Side) -> Protocol:
    """The library after its handshake."""
    made: Protocol = ServerProtocol(state=State.OPEN, max_size=LARGEST)
    if side is Side.CLIENT:
        made = ClientProtocol(
            parse_uri("ws://localhost/"), state=State.OPEN, max_size=LARGEST
        )
    return made


def heard(library: Protocol) -> list[tuple[int, bytes]]:
    return [
        (frame.opcode, bytes(frame.data))
        for frame in library.events_received()
        if isinstance(frame, Frame)
    ]


def read_by_library(
    library: Protocol, chunks: Sequence[bytes]
) -> list[tuple[int, bytes]]:
    for chunk in chunks:
        library.receive_data(chunk)
    return heard(library)


def read_by_cutter(
    library: Protocol, chunks: Sequence[bytes]
) -> list[tuple[int, bytes]]:
    """As the sockets do it: messages are taken while the connection is open, the rest is the
    library's.
    """
    cutter = FrameParser(is_masked=library.side is Side.SERVER, max_bytes=LARGEST)
    read: list[tuple[int, bytes]] = []
    for chunk in chunks:
        for piece in cutter.feed(chunk):
            if isinstance(piece, UnhandledBytes):
                library.receive_data(piece.raw)
                read += heard(library)
            elif library.state is State.OPEN:
                read.append(
                    (Opcode.TEXT if piece.is_text else Opcode.BINARY, piece.payload)
                )
    return read


@st.composite
def frames(draw: st.DrawFn, side: Side) -> bytes:
    """Mostly what is sent in earnest, now and then what breaks a rule."""
    is_strange = draw(st.integers(0, 15)) == 0
    opcode = draw(
        st.sampled_from(
            [
                Opcode.TEXT,
                Opcode.BINARY,
                Opcode.BINARY,
                Opcode.CONT,
                Opcode.PING,
                Opcode.PONG,
            ]
        )
    )
    if is_strange and draw(st.booleans()):
        return draw(st.binary(min_size=1, max_size=30))
    payload = draw(PAYLOADS)[: None if opcode in DATA_OPCODES else 125]
    fin = opcode not in DATA_OPCODES or draw(st.integers(0, 4)) > 0
    masked = (side is Side.SERVER) is not (is_strange and draw(st.booleans()))
    return Frame(opcode, payload, fin, rsv1=False).serialize(mask=masked)


@st.composite
def streams(draw: st.DrawFn) -> tuple[Side, list[bytes]]:
    side = draw(st.sampled_from(list(Side)))
    stream = b"".join(draw(st.lists(frames(side), max_size=12)))
    if draw(st.booleans()):
        stream += Frame(Opcode.CLOSE, b"\x03\xe8").serialize(
            mask=side is Side.SERVER
        ) + draw(frames(side))
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=8))
    return side, [
        stream[start:end] for start, end in pairwise(sorted({0, *cuts, len(stream)}))
    ]


@given(streams())
def test_a_stream_says_the_same_on_the_short_way_as_on_the_long_one(
    told: tuple[Side, list[bytes]],
) -> None:
    side, chunks = told
    long, short = protocol(side), protocol(side)
    expected, read = read_by_library(long, chunks), read_by_cutter(short, chunks)
    if long.state is State.OPEN and short.state is State.OPEN:
        assert read == expected
    else:  # of a frame that breaks a rule the library does not wait for the end
        assert read == expected[: len(read)]
    assert short.state is long.state or short.state is State.OPEN


@given(streams())
def test_what_is_answered_is_the_same_too(told: tuple[Side, list[bytes]]) -> None:
    side, chunks = told
    if side is Side.CLIENT:
        return  # its answers are under random masks
    long, short = protocol(side), protocol(side)
    read_by_library(long, chunks)
    read_by_cutter(short, chunks)
    answered = b"".join(short.data_to_send())
    assert b"".join(long.data_to_send())[: len(answered)] == answered


@given(
    st.one_of(
        st.text(),
        st.binary(max_size=300),
        st.sampled_from([b"x" * 126, b"x" * 65_535, b"x" * 65_536, "ü" * 40_000]),
    ),
    st.booleans(),
)
def test_what_is_written_is_what_the_library_reads(
    message: str | bytes, is_client: bool
) -> None:
    raw = make_frame(message, b"\x01\xf2\x03\xe4" if is_client else b"")
    library: Protocol = (
        ServerProtocol(state=State.OPEN)
        if is_client
        else ClientProtocol(parse_uri("ws://localhost/"), state=State.OPEN)
    )
    library.receive_data(raw)
    kind = Opcode.TEXT if isinstance(message, str) else Opcode.BINARY
    assert heard(library) == [
        (kind, message.encode() if isinstance(message, str) else message)
    ]


def test_a_frame_that_comes_byte_by_byte_is_read_once_it_is_whole() -> None:
    cutter = FrameParser(is_masked=True, max_bytes=LARGEST)
    raw = make_frame(b"x" * 500, b"abcd")
    pieces = [piece for byte in raw for piece in cutter.feed(bytes((byte,)))]
    assert [
        (piece.payload, piece.raw) for piece in pieces if isinstance(piece, Message)
    ] == [(b"x" * 500, raw)]


@pytest.mark.parametrize(
    "head", [b"\x82\xfe\xff\xff", b"\x82\xff" + b"\xff" * 8, b"\x82\x05", b"\x82\x00"]
)
def test_who_declares_too_much_or_wears_no_mask_is_the_librarys_at_once(
    head: bytes,
) -> None:
    library = protocol(Side.SERVER)
    assert read_by_cutter(library, [head, make_frame("hello", b"abcd")]) == []
    assert library.parser_exc is not None


@pytest.mark.parametrize("side", list(Side))
def test_a_head_is_not_taken_for_another_because_the_length_would_fit(
    side: Side,
) -> None:
    """127 stands for a length of eight bytes; a mask's flag is no length either."""
    flag = 0x80 if side is Side.SERVER else 0
    for head in (127 | flag, *((size | flag) ^ 0x80 for size in range(126))):
        for size in range(270):
            chunks = [bytes((0x82, head)) + b"\0" * size]
            long, short = protocol(side), protocol(side)
            assert read_by_cutter(short, chunks) == read_by_library(long, chunks)


def test_masks_are_four_bytes_and_hardly_ever_the_same() -> None:
    masks = Masks()
    drawn = [masks.next_mask() for _ in range(3_000)]
    assert {len(mask) for mask in drawn} == {4}
    assert len(set(drawn)) > 2_990
