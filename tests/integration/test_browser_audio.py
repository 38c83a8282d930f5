"""A spoken call from a web page: its sound goes through the server to the engine and back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from aftercall.lab.engine import reply_in_order
from aftercall.lab.speech import recognise_words, utter
from aftercall.phone.stream import BrowserWire
from aftercall.phone.wire import (
    AudioIn,
    AudioOut,
    Clear,
    Digit,
    Mark,
    MarkDropped,
    MarkPlayed,
    StopReason,
    StreamStopped,
)
from api_client import bearer
from voice_server import Stage, emulate, noted, serving, told

FRAME_BYTES, SILENCE = 160, b"\xff"


class PagePhone:
    """What the page does: sends its microphone, plays what comes and returns the marks."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.heard = b""
        self.call_id = ""

    async def listen(self) -> None:
        async for message in self._socket:
            if isinstance(message, bytes):
                self.heard += message
                continue
            event = json.loads(message)
            if event["type"] == "mark":
                await self.send(type="played", mark=event["name"])
            self.call_id = event.get("call", self.call_id)

    async def send(self, **message: str) -> None:
        await self._socket.send(json.dumps(message))

    async def leave(self) -> None:
        await self._socket.close()

    async def say(self, text: str) -> None:
        sound = utter(text, 4) + SILENCE * FRAME_BYTES * 60
        for start in range(0, len(sound), FRAME_BYTES):
            await self._socket.send(sound[start : start + FRAME_BYTES])

    async def hear(self, words: str) -> None:
        async with asyncio.timeout(20):
            while words not in recognise_words(self.heard):
                await asyncio.sleep(0.02)


@asynccontextmanager
async def calling(
    stage: Stage, caller: str = "%2B15550100"
) -> AsyncIterator[PagePhone]:
    address = stage.address.replace("http", "ws")
    headers = bearer(stage.app.settings)
    async with connect(
        f"{address}/browser/audio?caller={caller}", additional_headers=headers
    ) as socket:
        phone = PagePhone(socket)
        listening = asyncio.create_task(phone.listen())
        yield phone
        await listening


async def test_a_page_speaks_with_the_engine_that_callers_speak_with(
    tmp_path: Path,
) -> None:
    engine = emulate("deepgram", reply_in_order("The shop opens at nine."))
    async with serving(tmp_path, engine) as stage:
        async with calling(stage) as phone:
            await phone.hear("do for you?")
            await phone.send(type="key", digit="7")
            await phone.say("When do you open?")
            await phone.hear("The shop opens at nine.")
            await phone.send(type="hang_up")
        call = await stage.sealed()
    assert (call.id, call.source, call.caller) == (
        phone.call_id,
        "browser",
        "+15550100",
    )
    assert ("caller", "When do you open?") in told(call)
    assert told(call)[-1] == ("agent", "The shop opens at nine.")
    assert call.end_reason == "caller_hung_up"
    assert noted(call, "key.pressed") == [{"digit": "7"}]


async def test_a_page_that_is_closed_ends_its_call_which_is_kept(
    tmp_path: Path,
) -> None:
    engine = emulate("deepgram", reply_in_order())
    async with serving(tmp_path, engine) as stage:
        async with calling(stage, caller="") as phone:
            await phone.hear("do for you?")
            await phone.leave()
        call = await stage.sealed()
    assert (call.end_reason, call.caller) == ("line_lost", None)


async def test_strangers_and_callers_without_a_number_are_refused(
    tmp_path: Path,
) -> None:
    engine = emulate("deepgram", reply_in_order())
    async with serving(tmp_path, engine) as stage:
        address = f"{stage.address.replace('http', 'ws')}/browser/audio"
        with pytest.raises(InvalidStatus, match="403"):
            async with connect(address):
                pass
        headers = bearer(stage.app.settings)
        async with connect(
            f"{address}?caller=Bob", additional_headers=headers
        ) as socket:
            refusal: dict[str, Any] = json.loads(await socket.recv())
            with pytest.raises(ConnectionClosed):
                await socket.recv()
        assert refusal["type"] == "refused"
        assert refusal["reason"].startswith("caller: is not a phone number")
        assert stage.app.store.list_page(limit=1) == []


def test_the_wire_of_a_page_tells_what_was_played_and_what_was_dropped() -> None:
    wire = BrowserWire()
    assert wire.send(AudioOut(b"abc")) == b"abc"
    assert json.loads(wire.send(Mark("one"))) == {"type": "mark", "name": "one"}
    wire.send(Mark("two"))
    assert wire.receive('{"type": "played", "mark": "one"}') == (MarkPlayed("one"),)
    assert json.loads(wire.send(Clear())) == {"type": "clear"}
    assert wire.receive('{"type": "played", "mark": "two"}') == (MarkDropped("two"),)
    assert wire.receive(b"\x00" * 80) == (AudioIn(b"\x00" * 80, 0, 1),)
    assert wire.receive(b"\x01" * 80) == (AudioIn(b"\x01" * 80, 10, 2),)
    assert wire.receive('{"type": "key", "digit": "#"}') == (Digit("#", 2),)
    assert wire.receive('{"type": "hang_up"}') == (StreamStopped(StopReason.ENDED),)
    assert not wire.is_open
    assert wire.close() == ()


@settings(max_examples=30)
@given(st.lists(st.text() | st.binary() | st.sampled_from(['{"type": "key"}', "[]"])))
def test_no_frame_of_a_page_breaks_its_wire(frames: list[str | bytes]) -> None:
    wire = BrowserWire()
    for frame in frames:
        wire.receive(frame)
    assert wire.close() == (StreamStopped(StopReason.LOST),)
