"""The shorter way for audio loses nothing of what `websockets` promises: whole messages, in
order, to the last one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.utils import accept_key

from aftercall.errors import EngineLost, EngineRefused
from aftercall.sockets.client import EngineSocket
from aftercall.sockets.frames import make_frame
from aftercall.sockets.mailbox import MAX_QUEUED_MESSAGES

BODY = b'{"err_code":"INVALID_AUTH"}'
HEAD = (
    b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    % len(BODY)
)
Talk = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def connected(talk: Talk) -> AsyncIterator[EngineSocket]:
    async with serve(
        talk, "127.0.0.1", 0, close_timeout=0.5, compression=None
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        socket = await EngineSocket.open(f"ws://127.0.0.1:{port}/", {}, "engine")
        yield socket
        socket.abort()


async def test_messages_come_whole_and_in_order_and_then_the_end() -> None:
    count = 20 * MAX_QUEUED_MESSAGES

    async def talk(connection: ServerConnection) -> None:
        await connection.send(["Grüß ", "Gott"])
        await connection.send([b"a", b"b", b"c"])
        for number in range(count):
            await connection.send(number.to_bytes(2) * 500)
        await connection.send("bye")

    async with connected(talk) as socket:
        await asyncio.sleep(0.1)  # let more arrive than is kept waiting
        assert [await socket.receive(), await socket.receive()] == ["Grüß Gott", b"abc"]
        assert [await socket.receive() for _ in range(count)] == [
            number.to_bytes(2) * 500 for number in range(count)
        ]
        assert await socket.receive() == "bye"
        for _ in range(2):
            with pytest.raises(EngineLost):
                await socket.receive()
        with pytest.raises(EngineLost):
            socket.send("anybody?")


async def test_what_nobody_takes_stays_with_the_sender() -> None:
    sent = 0

    async def talk(connection: ServerConnection) -> None:
        nonlocal sent
        for _ in range(100_000):
            await connection.send(b"\x55" * 8_000)
            sent += 1

    async with connected(talk) as socket:
        last = -1
        while sent != last:
            last = sent
            await asyncio.sleep(0.1)
        assert sent < 10_000
        assert len(await socket.receive()) == 8_000


async def test_both_kinds_are_sent_and_a_goodbye_is_answered() -> None:
    got: list[str | bytes] = []

    async def talk(connection: ServerConnection) -> None:
        got.extend([await connection.recv(), await connection.recv()])
        await connection.send("ok")
        await connection.wait_closed()

    async with connected(talk) as socket:
        socket.send("ä")
        socket.send(b"\x00")
        assert await socket.receive() == "ok"
        await socket.close()
    assert got == ["ä", b"\x00"]


@asynccontextmanager
async def served(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server that does nothing but what it is told; its address."""
    is_done = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()
            is_done.set()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await asyncio.wait_for(is_done.wait(), 5)


@pytest.mark.parametrize(
    "pieces",
    [[HEAD + BODY], [HEAD, BODY], [HEAD[:20], HEAD[20:], BODY[:3], BODY[3:]]],
    ids=["whole", "two", "four"],
)
async def test_a_refusal_is_known_as_soon_as_it_is_told_however_it_is_cut_up(
    pieces: list[bytes],
) -> None:
    """A server that keeps the line open after it must not cost the caller the patience meant
    for silence.
    """

    async def refuse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)  # a segment of its own
        await reader.read()

    async with served(refuse) as address:
        with pytest.raises(EngineRefused, match="401"):
            await EngineSocket.open(address, {}, "engine")


async def test_words_that_come_with_the_handshake_are_not_lost() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        key = next(
            line.split(b": ")[1]
            for line in request.split(b"\r\n")
            if line.lower().startswith(b"sec-websocket-key")
        )
        accept = b"Sec-WebSocket-Accept: " + accept_key(key.decode()).encode()
        head = (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + accept
            + b"\r\n\r\n"
        )
        frames = make_frame("Welcome") + make_frame(b"voice")
        writer.write(head + frames[:-2])
        await writer.drain()
        await asyncio.sleep(0.02)  # a segment of its own
        writer.write(frames[-2:])
        await reader.read()

    async with served(greet) as address:
        socket = await EngineSocket.open(address, {}, "engine")
        assert [await socket.receive(), await socket.receive()] == ["Welcome", b"voice"]
        socket.abort()
