"""The shorter way for audio loses nothing of what `websockets` promises: whole messages, in order, to the last one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from aftercall.engine.socket import EngineSocket
from aftercall.errors import EngineLost
from aftercall.sockets.mailbox import MOST_WAITING

Talk = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def connected(talk: Talk) -> AsyncIterator[EngineSocket]:
    async with serve(talk, "127.0.0.1", 0, close_timeout=0.5, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        socket = await EngineSocket.open(f"ws://127.0.0.1:{port}/", {}, "engine")
        yield socket
        socket.abort()


async def test_messages_come_whole_and_in_order_and_then_the_end() -> None:
    count = 20 * MOST_WAITING

    async def talk(connection: ServerConnection) -> None:
        await connection.send(["Grüß ", "Gott"])
        await connection.send([b"a", b"b", b"c"])
        for number in range(count):
            await connection.send(number.to_bytes(2) * 500)
        await connection.send("bye")

    async with connected(talk) as socket:
        await asyncio.sleep(0.1)  # let more arrive than is kept waiting
        assert [await socket.receive(), await socket.receive()] == ["Grüß Gott", b"abc"]
        assert [await socket.receive() for _ in range(count)] == [number.to_bytes(2) * 500 for number in range(count)]
        assert await socket.receive() == "bye"
        for _ in range(2):
            with pytest.raises(EngineLost):
                await socket.receive()
        with pytest.raises(EngineLost):
            await socket.send("anybody?")


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
        await socket.send("ä")
        await socket.send(b"\x00")
        assert await socket.receive() == "ok"
        await socket.close()
    assert got == ["ä", b"\x00"]
