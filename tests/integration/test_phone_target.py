"""`--agent +1…` as the command wires it: REST over HTTP, webhooks on a port of our own, money
counted, turns kept.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from aftercall.clock import SystemClock
from aftercall.settings import Settings
from aftercall.tester.agents import open_target
from aftercall.tester.results import RunResults, StartedRun
from aftercall.tester.suite import SuiteParts, run_once
from aftercall.tester.target import CallSetup
from fakes import VirtualClock
from unit.tester.test_twilio_gather import BOOK, FakeTwilio


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def served(twilio: FakeTwilio, port: int) -> AsyncIterator[None]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive()).get("body", b"")
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        answer = twilio.rest(
            httpx2.Request(
                scope["method"],
                f"http://127.0.0.1{scope['path']}",
                headers=headers,
                content=body,
            )
        )
        await send(
            {
                "type": "http.response.start",
                "status": answer.status_code,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": answer.content})

    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="warning", lifespan="off")
    )
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield
    server.should_exit = True
    await task


async def test_a_number_is_called_through_twilios_own_forms(tmp_path: Path) -> None:
    api, hooks = free_port(), free_port()
    twilio = FakeTwilio(VirtualClock(), api=f"http://127.0.0.1:{api}")
    settings = Settings.model_validate(
        {
            "home": tmp_path,
            "public_url": f"http://127.0.0.1:{hooks}",
            "twilio": {
                "account_sid": "AC1",
                "auth_token": "12345",
                "phone_number": "+15550199",
                "api_url": twilio.api,
            },
            "tester": {"allow_numbers": "+15550101, +15550102", "port": hooks},
        }
    )
    clock = SystemClock()
    results = RunResults(tmp_path)
    results.start_run(StartedRun("01RUN", "phone", clock.now(), (BOOK,), (), {}))
    async with (
        served(twilio, api),
        open_target(settings, "+15550101", CallSetup(clock)) as target,
    ):
        with results.open_log("01RUN") as log:
            scored = await run_once(BOOK, target, SuiteParts(clock), log=log)
        assert twilio.task
        await twilio.task
    assert (target.name, target.is_live) == ("phone +1555…", True)
    assert [checked.state for checked in scored.criteria] == ["met"]
    assert scored.records[0].agent_sound
    kept = results.read_call(scored.records[0].id)
    assert kept is not None
    assert [turn["text"] for turn in kept["turns"]] == [
        span.text for span in scored.records[0].spans
    ]
    assert kept["sid"] == scored.records[0].sid
    assert (
        sum(json.loads((tmp_path / "tests" / "spent.json").read_text()).values())
        <= 0.05
    )
