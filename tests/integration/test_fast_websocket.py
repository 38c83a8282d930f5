"""The server's short way for audio, with the official client at the other end: what a websocket
promises stays promised.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from fastapi import FastAPI, WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from aftercall.sockets.mailbox import MAX_QUEUED_MESSAGES
from aftercall.sockets.server import (
    MAX_FRAMES_A_SECOND,
    AsgiMediaSocket,
    FastMediaSocket,
    open_media_socket,
)
from aftercall.web.uvicorn_server import MAX_FRAME_BYTES
from voice_server import listening

Meet = Callable[[AsgiMediaSocket], Awaitable[None]]


async def hold(
    meet: Meet, visit: Callable[[ClientConnection], Awaitable[None]]
) -> None:
    """A server that meets one visitor; what goes wrong on either side is raised here."""
    met: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    app = FastAPI()

    @app.websocket("/")
    async def door(socket: WebSocket) -> None:
        await socket.accept()
        line = open_media_socket(socket)
        try:
            assert isinstance(line, FastMediaSocket)
            await meet(line)
        except BaseException as error:
            met.set_exception(error)
            raise
        met.set_result(None)

    async with (
        listening(app) as address,
        connect(
            f"ws{address.removeprefix('http')}/", proxy=None, ping_interval=None
        ) as client,
    ):
        await visit(client)
        await asyncio.wait_for(met, 10)


async def receive_all(line: AsgiMediaSocket) -> list[str | bytes]:
    got = []
    while (frame := await line.receive()) is not None:
        got.append(frame)
    return got


async def test_messages_of_all_kinds_arrive_whole_and_in_order_and_then_the_end() -> (
    None
):
    count = 10 * MAX_QUEUED_MESSAGES
    sent: list[str | bytes] = [
        "Grüß Gott",
        b"",
        "in parts",
        b"abc",
        *(number.to_bytes(2) * 100 for number in range(count)),
        "bye",
    ]

    async def meet(line: AsgiMediaSocket) -> None:
        await asyncio.sleep(0.1)  # let more arrive than is kept waiting
        assert await receive_all(line) == sent
        assert await line.receive() is None
        line.write("to nobody")
        await line.close()

    async def visit(client: ClientConnection) -> None:
        await client.send("Grüß Gott")
        await client.send(b"")
        await client.send(["in ", "parts"])
        await client.ping()
        await client.send([b"a", b"b", b"c"])
        for message in sent[4:]:
            await client.send(message)
        await client.close()

    await hold(meet, visit)


async def test_what_is_sent_is_received_and_a_ping_is_answered() -> None:
    async def meet(line: AsgiMediaSocket) -> None:
        for frame in ("ä", b"\x00", "x" * 200, b"y" * 70_000):
            line.write(frame)
        await line.receive()
        await line.close(1008)
        assert await line.receive() is None

    async def visit(client: ClientConnection) -> None:
        assert [await client.recv() for _ in range(4)] == [
            "ä",
            b"\x00",
            "x" * 200,
            b"y" * 70_000,
        ]
        await (await client.ping(b"are you there?"))
        await client.send("go")
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1008

    await hold(meet, visit)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (Frame(Opcode.TEXT, b"\xff\xfe").serialize(mask=True), 1007),
        (Frame(Opcode.TEXT, b"no mask").serialize(mask=False), 1002),
        (Frame(Opcode.CONT, b"of nothing").serialize(mask=True), 1002),
        (Frame(Opcode.BINARY, b"x" * (MAX_FRAME_BYTES + 1)).serialize(mask=True), 1009),
        (b"\xc2\x81abcd!", 1002),
        (b"\x8f\x80abcd", 1002),
    ],
    ids=[
        "not UTF-8",
        "no mask",
        "a part of nothing",
        "too large",
        "a reserved bit",
        "an unknown kind",
    ],
)
async def test_who_breaks_the_rules_is_told_so_and_nothing_that_follows_is_heard(
    raw: bytes, code: int
) -> None:
    async def meet(line: AsgiMediaSocket) -> None:
        assert await receive_all(line) == ["before"]

    async def visit(client: ClientConnection) -> None:
        await client.send("before")
        client.transport.write(raw + Frame(Opcode.TEXT, b"after").serialize(mask=True))
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == code

    await hold(meet, visit)


async def test_nothing_is_heard_behind_a_goodbye() -> None:
    async def meet(line: AsgiMediaSocket) -> None:
        assert await receive_all(line) == ["before"]

    async def visit(client: ClientConnection) -> None:
        goodbye = Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=True)
        before, after = (
            Frame(Opcode.TEXT, text).serialize(mask=True)
            for text in (b"before", b"after")
        )
        client.transport.write(before + goodbye + after)
        with pytest.raises(ConnectionClosed):
            await client.recv()

    await hold(meet, visit)


async def test_a_slow_reader_holds_up_who_sends_and_a_reader_that_goes_lets_go() -> (
    None
):
    sent = 0

    async def meet(line: AsgiMediaSocket) -> None:
        nonlocal sent
        while await asyncio.wait_for(_send(line), 5):
            sent += 1

    async def _send(line: AsgiMediaSocket) -> bool:
        line.write(b"x" * 50_000)
        sending = asyncio.create_task(line.drain())
        receiving = asyncio.create_task(line.receive())
        done, _ = await asyncio.wait(
            {sending, receiving}, return_when=asyncio.FIRST_COMPLETED
        )
        if receiving in done:
            await sending
            return False
        receiving.cancel()
        return True

    async def visit(client: ClientConnection) -> None:
        client.transport.pause_reading()
        last = -1
        while sent != last:
            last = sent
            await asyncio.sleep(0.1)
        assert sent * 50_000 < 50_000_000
        client.transport.abort()

    await hold(meet, visit)


async def test_what_nobody_takes_stays_with_the_sender() -> None:
    is_full = asyncio.Event()

    async def meet(line: AsgiMediaSocket) -> None:
        await is_full.wait()
        assert len(await receive_all(line)) > MAX_QUEUED_MESSAGES

    async def visit(client: ClientConnection) -> None:
        async def pour() -> None:
            for _ in range(2_000):
                await asyncio.wait_for(client.send(b"x" * 50_000), 0.5)

        with pytest.raises(TimeoutError):
            await pour()
        is_full.set()
        await client.close()

    await hold(meet, visit)


async def test_a_flood_of_frames_ends_the_socket_before_it_holds_up_others() -> None:
    got: list[str | bytes] = []

    async def meet(line: AsgiMediaSocket) -> None:
        got.extend(await receive_all(line))

    async def visit(client: ClientConnection) -> None:
        frame = Frame(Opcode.TEXT, b"x").serialize(mask=True)
        client.transport.write(frame * 20 * MAX_FRAMES_A_SECOND)
        with pytest.raises(ConnectionClosed):
            await client.recv()

    await hold(meet, visit)
    assert len(got) <= MAX_FRAMES_A_SECOND
