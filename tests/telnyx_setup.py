"""An agent and an emulated carrier that reach each other without a socket."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx2
from fastapi import FastAPI
from pydantic import SecretStr

from aftercall.app import App
from aftercall.clock import Clock
from aftercall.lab import telnyx_rest
from aftercall.lab.carrier import NO_DELIVERY_FAULTS, DeliveryFaults
from aftercall.lab.rest import REFUSALS
from aftercall.lab.telnyx import EmulatedTelnyx
from aftercall.settings import Settings
from aftercall.settings.providers import TelnyxSettings
from aftercall.web.server import make_server

KEY = "KEY0123456789"
PUBLIC = "https://calls.example"
EVENTS = f"{PUBLIC}/telnyx/events"


@dataclass
class TelnyxTown:
    """`lab` is the carrier, `app` the agent, `answers` what the carrier's REST address answered;
    the carrier reaches the agent by `to_agent`.
    """

    lab: EmulatedTelnyx
    app: App
    server: FastAPI
    answers: list[int]
    to_agent: "Line"


class Line(httpx2.AsyncBaseTransport):
    """The way to a server that is made later, and that may be down."""

    def __init__(self) -> None:
        self.inner: httpx2.AsyncBaseTransport | None = None
        self.answers: list[int] = []
        self.faults: list[int | Exception] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert self.inner is not None
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        refusal = (
            None
            if fault is None
            else httpx2.Response(fault, json={"errors": [{"code": "1"}]})
        )
        answer = refusal or await self.inner.handle_async_request(request)
        self.answers.append(answer.status_code)
        return answer


@asynccontextmanager
async def telnyx_town(
    app: App,
    line: Line,
    *,
    habits: DeliveryFaults = NO_DELIVERY_FAULTS,
    clock: Clock | None = None,
) -> AsyncIterator[TelnyxTown]:
    """`app` must have been built with `telnyx_settings`, and with `line` as its transport."""
    to_agent = Line()
    async with EmulatedTelnyx(
        KEY,
        signing_key=bytes(range(32)),
        delivery_faults=habits,
        clock=clock or app.clock,
        transport=to_agent,
    ) as lab:
        carrier = FastAPI(exception_handlers=REFUSALS)
        carrier.include_router(telnyx_rest.make_router(lab))
        line.inner = httpx2.ASGITransport(carrier)
        server = make_server(app)
        to_agent.inner = httpx2.ASGITransport(server)
        yield TelnyxTown(lab, app, server, line.answers, to_agent)
        await app.phone.close()


def telnyx_settings(settings: Settings) -> Settings:
    """The public key belongs to the bytes 0 to 31."""
    keys = TelnyxSettings(
        api_key=SecretStr(KEY),
        public_key="A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
        api_url="http://telnyx.lab",
    )
    return settings.model_copy(update={"public_url": PUBLIC, "telnyx": keys})


async def until(is_so: Callable[[], bool]) -> None:
    """What threads and other servers do, they do in their own time."""
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.01)


def reach(app: App, line: Line) -> App:
    return replace(app, transport=line)
