"""The lab's hosted platforms beside an app: they ring it, and it lists their calls."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx2
from fastapi import FastAPI
from pydantic import SecretStr

from aftercall.app import App
from aftercall.lab.hosted import (
    EmulatedBland,
    EmulatedElevenLabs,
    EmulatedPlatform,
    EmulatedRetell,
    EmulatedVapi,
    LabHostedCall,
)
from aftercall.lab.rest import REFUSALS
from aftercall.model.calls import Call
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.providers import (
    BlandSettings,
    ElevenLabsSettings,
    RetellSettings,
    VapiSettings,
)
from aftercall.web.server import make_server

PUBLIC, LAB = "https://calls.example", "http://lab.example"
SECRET = "a-secret-0123456789abcdef"
CALLER = "+15550100"
NAMES = ("elevenlabs", "vapi", "retell", "bland")


def add_platforms(settings: Settings) -> Settings:
    secret = SecretStr(SECRET)
    key = {"api_key": secret, "api_url": LAB}
    signed = {"webhook_secret": secret}
    with_start = signed | {"start_secret": secret}
    return settings.model_copy(
        update={
            "elevenlabs": ElevenLabsSettings.model_validate(key | with_start),
            "vapi": VapiSettings.model_validate(
                key | signed | {"assistant_id": "assistant-1"}
            ),
            "retell": RetellSettings.model_validate(key),
            "bland": BlandSettings.model_validate(key | with_start),
        }
    )


@dataclass
class Platforms:
    app: App
    by_name: dict[str, EmulatedPlatform]

    async def ring(self, name: str, *says: str, caller: str = CALLER) -> LabHostedCall:
        call = await self.by_name[name].ring(PUBLIC, caller=caller)
        for text in says:
            await self.by_name[name].say(call, text)
        return call

    async def hang_up(self, call: LabHostedCall) -> None:
        for platform in self.by_name.values():
            if call.id in platform.calls:
                await platform.hang_up(call)

    async def close(self) -> None:
        for platform in self.by_name.values():
            await platform.__aexit__(None, None, None)

    def read_stored(self, name: str, call: LabHostedCall) -> Call:
        row = self.app.store.find(name, call.id)
        assert row is not None
        return self.app.archive.read(str(row.archive_name))[0]

    def run_steps(self, name: str, call: LabHostedCall) -> None:
        row = self.app.store.find(name, call.id)
        assert row is not None
        for step in STEPS:
            rerun(self.app.step_runner, row.live.id, step)


def connect_platforms(
    app: App, more: Callable[[FastAPI], None] | None = None
) -> Platforms:
    """The app's REST requests go to the platforms, and their webhooks to the app's server."""
    lab = FastAPI(exception_handlers=REFUSALS)
    reached = replace(app, transport=httpx2.ASGITransport(lab))
    to_app = httpx2.ASGITransport(make_server(reached))
    makers = (EmulatedElevenLabs, EmulatedVapi, EmulatedRetell, EmulatedBland)
    by_name: dict[str, EmulatedPlatform] = {}
    for make in makers:
        platform = make(SECRET, SECRET, SECRET, clock=app.clock, transport=to_app)
        by_name[platform.name] = platform
        lab.include_router(platform.make_router())
    if more is not None:
        more(lab)
    return Platforms(reached, by_name)
