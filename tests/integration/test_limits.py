"""What a stranger can make the server read, keep and wait for, with plain sockets."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.lab.engine import reply_in_order
from aftercall.log import configure_logs
from aftercall.settings import Settings
from aftercall.web import limits, uvicorn_server
from aftercall.web.server import make_server
from aftercall.web.uvicorn_server import count_places, raise_open_files_limit
from opened_apps import OpenApp
from voice_server import emulate, listening, serving, told

TOKEN = "limits-token"
HEAD = "{method} {path} HTTP/1.1\r\nHost: calls.example\r\n{headers}\r\n"


@pytest.fixture(autouse=True)
def logs_at_info() -> None:
    """Another test of this process may have set a higher level."""
    configure_logs()


@pytest.fixture
def guarded(tmp_path: Path, open_app: OpenApp) -> App:
    settings = Settings(home=tmp_path / "home", api_token=SecretStr(TOKEN))
    return open_app(settings, SystemClock())


class Client:
    """One connection, byte by byte."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes | str) -> None:
        self.writer.write(data.encode() if isinstance(data, str) else data)
        await self.writer.drain()

    async def ask(
        self, method: str, path: str, *headers: str, body: bytes = b""
    ) -> None:
        lines = "".join(f"{header}\r\n" for header in headers)
        head = HEAD.format(method=method, path=path, headers=lines)
        await self.send(head.encode() + body)

    async def read_status(self) -> int:
        """0 if the server closes without an answer."""
        try:
            line = await self.reader.readline()
        except ConnectionError:
            return 0
        return int(line.split()[1]) if line else 0


@asynccontextmanager
async def dialled(address: str) -> AsyncIterator[Client]:
    host, _, port = address.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def post_status(address: str, path: str, *headers: str, body: bytes = b"") -> int:
    async with dialled(address) as client:
        await client.ask("POST", path, *headers, body=body)
        return await client.read_status()


@pytest.mark.parametrize("path", ["/api/pins", "/api/calls", "/v1/documents"])
async def test_a_stranger_is_refused_before_a_byte_of_the_body_is_read(
    guarded: App, path: str
) -> None:
    async with listening(make_server(guarded)) as address:
        json_type, length = "Content-Type: application/json", "Content-Length: 45000000"
        assert await post_status(address, path, json_type, length) == 401


async def test_the_owner_is_told_the_length_of_each_route_before_sending(
    guarded: App,
) -> None:
    owner = f"Authorization: Bearer {TOKEN}"
    async with listening(make_server(guarded)) as address:
        for path, length in (("/api/pins", 5_000_000), ("/v1/query", 9_000_000)):
            status = await post_status(
                address, path, owner, f"Content-Length: {length}"
            )
            assert status == 413


async def test_a_login_cannot_fill_the_disk_with_files(guarded: App) -> None:
    async with listening(make_server(guarded)) as address:
        form = "Content-Type: multipart/form-data; boundary=x"
        assert await post_status(address, "/login", form, "Content-Length: 9") == 415
        form = "Content-Type: application/x-www-form-urlencoded"
        long = "Content-Length: 300000000"
        assert await post_status(address, "/login", form, long) == 413


async def test_a_body_without_a_length_is_counted_while_it_comes(guarded: App) -> None:
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        await client.ask("POST", "/twilio/voice", "Transfer-Encoding: chunked")
        piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        for _ in range(5):
            await client.send(piece)
        assert await client.read_status() == 413


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 300 + b"\r\n",
    ],
    ids=["address", "one header", "many headers"],
)
async def test_a_head_has_an_end(guarded: App, head: bytes) -> None:
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        await client.send(head)
        assert await client.read_status() == 431


async def test_a_long_body_in_one_piece_is_not_taken_for_a_head(guarded: App) -> None:
    size = 100_000
    async with listening(make_server(guarded)) as address:
        length = f"Content-Length: {size}"
        status = await post_status(address, "/twilio/voice", length, body=b"x" * size)
        assert status == 503  # nothing of Twilio is set up here


async def test_a_head_that_arrives_in_drops_has_an_end_too(guarded: App) -> None:
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        await client.send("GET / HTTP/1.1\r\nX: ")
        for _ in range(33):
            await client.send(b"a" * 1_000)
            await asyncio.sleep(0)
        assert await client.read_status() == 431


async def test_headers_after_the_body_have_an_end(guarded: App) -> None:
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        await client.ask("POST", "/twilio/voice", "Transfer-Encoding: chunked")
        await client.send("1\r\nx\r\n0\r\n")
        for _ in range(34):
            await client.send(b"X: " + b"a" * 1_000 + b"\r\n")
            await asyncio.sleep(0)
        assert await client.read_status() in (0, 431)


async def test_a_head_that_never_ends_loses_its_connection(
    guarded: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_server, "HEAD_TIMEOUT_S", 0.1)
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        await client.send("GET / HTTP/1.1\r\nHost: ")
        assert await client.read_status() == 408
        assert await client.reader.read() != b""


async def test_a_body_that_never_comes_is_given_up(
    guarded: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_server, "BODY_TIMEOUT_S", 0.1)
    async with listening(make_server(guarded)) as address:
        assert await post_status(address, "/twilio/voice", "Content-Length: 9") == 408


async def test_long_bodies_wait_for_each_other(
    guarded: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LARGE_BODY_WAIT_S", 0.2)
    head = (
        f"Authorization: Bearer {TOKEN}",
        "Content-Type: application/json",
        "Content-Length: 9000000",
    )
    async with listening(make_server(guarded)) as address:
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(dialled(address)) for _ in range(3)
            ]
            for client in clients:
                await client.ask("POST", "/api/calls", *head, body=b" " * 2_000_000)
            answers = {
                asyncio.create_task(client.read_status()): client for client in clients
            }
            (refused,), waiting = await asyncio.wait(
                answers, return_when=asyncio.FIRST_COMPLETED
            )
            assert await refused == 503
            for answer in waiting:
                await answers[answer].send(b" " * 7_000_000)
                assert await answer == 422
        whole = b" " * 9_000_000
        assert await post_status(address, "/api/calls", *head, body=whole) == 422


async def test_a_client_that_goes_away_leaves_one_line_and_no_traceback(
    guarded: App, capfd: pytest.CaptureFixture[str]
) -> None:
    async with listening(make_server(guarded)) as address:
        async with dialled(address) as client:
            await client.ask("POST", "/twilio/voice", "Content-Length: 9", body=b"To=")
        shown = ""
        async with asyncio.timeout(20):
            while "client went away" not in shown:
                await asyncio.sleep(0.01)
                shown += "".join(capfd.readouterr())
    shown += "".join(capfd.readouterr())
    assert shown.count("client went away") == 1
    assert "Traceback" not in shown


async def test_bodies_that_never_come_cost_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_server, "MAX_CONNECTIONS", 100)
    engine = emulate("deepgram", reply_in_order("I have taken that down."))
    async with serving(tmp_path / "home", engine) as stage:
        with ExitStack() as held:
            await asyncio.to_thread(send_240_heads, stage.address, held)
            ring, phone = await stage.ring()
            await phone.wait_for_words("What can I do")
            await phone.say("Please ring me back.")
            await phone.wait_for_words("taken that down")
            await stage.twilio.hang_up(ring)
            call = await stage.sealed()
    assert told(call)[1:] == [
        ("caller", "Please ring me back."),
        ("agent", "I have taken that down."),
    ]


def send_240_heads(address: str, held: ExitStack) -> None:
    host, _, port = address.removeprefix("http://").partition(":")
    for number in range(240):
        path = ("/twilio/voice", "/login", "/hosted/vapi")[number % 3]
        client = held.enter_context(socket.create_connection((host, int(port))))
        head = HEAD.format(method="POST", path=path, headers="Content-Length: 9\r\n")
        client.sendall(head.encode())


def test_half_of_the_file_descriptors_are_kept_for_calls() -> None:
    assert (count_places(256), count_places(1_000_000)) == (128, 4_096)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        raised = raise_open_files_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (raised, before[1])
        assert raised > 256 or before[1] == 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_pipelined_requests_are_few(guarded: App) -> None:
    one = HEAD.format(method="GET", path="/healthz", headers="")
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        await client.send(one * 3)
        for _ in range(3):
            assert await client.read_status() == 200
            await client.reader.readuntil(b"}")
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        await client.send(one * 500)
        assert await client.read_status() == 400


async def test_a_connection_serves_one_request_after_the_other(guarded: App) -> None:
    async with listening(make_server(guarded)) as address, dialled(address) as client:
        for _ in range(3):
            await client.ask("GET", "/healthz")
            assert await client.read_status() == 200
            await client.reader.readuntil(b"}")
