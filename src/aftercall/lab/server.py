"""The whole phone network in a box as one ASGI app: Twilio's and Telnyx' REST addresses, and OpenAI's audio address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256

from fastapi import FastAPI

from aftercall.lab import openai_audio, telnyx_rest, twilio_rest
from aftercall.lab.exchange import Exchange
from aftercall.lab.habits import Habits
from aftercall.lab.openai_audio import EmulatedAudio
from aftercall.lab.telnyx import EmulatedTelnyx


@dataclass
class Lab:
    """`address` is where the box itself is reached: recordings are fetched from there."""

    address: str
    exchange: Exchange
    telnyx: EmulatedTelnyx
    audio: EmulatedAudio = field(default_factory=EmulatedAudio)

    def take_on(self, habits: Habits) -> None:
        """Both carriers deliver like this from now on."""
        self.exchange.office.postman.habits = self.telnyx.habits = habits


def make_lab(address: str, auth_token: str, account_sid: str, telnyx_key: str, *, in_real_time: bool = False) -> Lab:
    key = sha256(f"lab {telnyx_key}".encode()).digest()  # the same at every start, so that an agent need not be told anew
    telnyx = EmulatedTelnyx(telnyx_key, key=key, pace=1.0 if in_real_time else 0.0)
    telnyx.address = address
    exchange = Exchange(auth_token, account_sid, in_real_time=in_real_time, address=address)
    return Lab(address, exchange, telnyx)


def make_server(lab: Lab) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with lab.exchange, lab.telnyx:
            yield

    server = FastAPI(title="Aftercall's lab", summary="A phone network in a box; nothing here reaches a real phone.", lifespan=lifespan)
    server.include_router(twilio_rest.make_router(lab.exchange))
    outcomes = {number: plan.outcome for number, plan in lab.exchange.numbers.items() if plan.outcome}
    server.include_router(telnyx_rest.make_router(lab.telnyx, dict(outcomes)))
    server.include_router(openai_audio.make_router(lab.audio))
    return server
