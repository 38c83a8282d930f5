"""Several servers on one Postgres behind a load balancer, and links between them that a test
can cut.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2

from aftercall.lab.media import MediaPhone
from crash.killable_server import MortalServer
from voice_server import TOKEN

OnRoute = Callable[[str], Awaitable[None]]
ListServers = Callable[[str], Sequence[MortalServer]]


class Balancer:
    """Sends each connection to a server, by the path that it asks for or by chance."""

    def __init__(self) -> None:
        self.list_servers: ListServers = lambda path: []
        """The servers that may get a connection to this path; the first that listens does."""
        self.on_route: OnRoute | None = None
        """Runs before a connection is passed on, with its path."""
        self.address = ""

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        async with listening:
            yield

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.readline()
        path = head.split()[1].decode()
        if self.on_route is not None:
            await self.on_route(path)
        for server in self.list_servers(path):
            port = int(server.address.rpartition(":")[2])
            with suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", port)
                back.write(head)
                await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
                return
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


class Link:
    """A port that leads to the socket of a Postgres server, and can be cut.

    While it is cut, nothing passes and nobody is told, as in a network that lost its way. What
    was connected then is closed when it is mended, and goes on when it is resumed.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = listening.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            listening.close()
            self.mend()

    def cut(self) -> None:
        self._is_open.clear()

    def mend(self) -> None:
        for writer in self._writers:
            writer.close()
        self.resume()

    def resume(self) -> None:
        self._is_open.set()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writers.add(writer)
        try:
            await self._is_open.wait()
            there, back = await asyncio.open_unix_connection(str(self._target))
        except OSError:  # the server is down
            writer.close()
        else:
            self._writers.add(back)
            passing = (self._pass(reader, back), self._pass(there, writer))
            await asyncio.gather(*passing)
            self._writers.discard(back)
        self._writers.discard(writer)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._is_open.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


class Fleet:
    def __init__(self, servers: list[MortalServer], balancer: Balancer) -> None:
        self.servers = servers
        self.balancer = balancer
        self._dead = list(servers)

    async def start_dead(self) -> None:
        """Returns when all servers can take calls."""
        dead, self._dead = self._dead, []
        await asyncio.gather(*(server.start() for server in dead))
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
            for server in dead:
                ready = await http.get(f"{server.address}/readyz")
                assert ready.status_code == 200

    async def kill(self, server: MortalServer) -> None:
        self._dead.append(server)
        await server.kill()

    def route(self, webhook: int, stream: int, end: int) -> None:
        a, b, c = (self.servers[number] for number in (webhook, stream, end))
        routes = {
            "/twilio/voice": a,
            "/twilio/media": b,
            "/twilio/stream-ended": c,
            "/twilio/status": c,
            "/telnyx/media": b,
            "/telnyx/events": a,
        }
        self.balancer.list_servers = lambda path: [
            server for start, server in routes.items() if path.startswith(start)
        ]


def make_server(
    home: Path, balancer: Balancer, database_url: str, **keys: str
) -> MortalServer:
    return MortalServer(
        home,
        AFTERCALL_PUBLIC_URL=balancer.address,
        AFTERCALL_DATABASE_URL=database_url,
        AFTERCALL_BRIDGE_DRAIN_S="0.2",
        AFTERCALL_BRIDGE_FINISH_S="60",
        TWILIO_AUTH_TOKEN=TOKEN,
        **keys,
    )


@asynccontextmanager
async def running_fleet(
    home: Path, database_urls: Sequence[str], **keys: str
) -> AsyncIterator[Fleet]:
    balancer = Balancer()
    async with balancer.listen():
        servers = [make_server(home, balancer, url, **keys) for url in database_urls]
        fleet = Fleet(servers, balancer)
        await fleet.start_dead()
        try:
            yield fleet
        finally:
            await asyncio.gather(*(server.stop() for server in servers))


async def speak(phone: MediaPhone | None, number: int) -> None:
    assert phone is not None
    await phone.wait_for_words("What can I do")
    phone.queue_text(f"Please call plumber {number}.")
    await phone.wait_for_words("Taken down")
