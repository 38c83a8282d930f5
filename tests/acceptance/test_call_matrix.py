"""Carriers, engines and databases together: a call with a barge-in and a hang-up is kept
exactly as it was said and heard.

The receptionist's calls (over Twilio's own ears and voice, over Telnyx', in the browser) run on
both databases in tests/integration; streamed calls on SQLite are in test_voice_calls.py as well.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aftercall.lab.engine import EmulatedEngine, reply_in_order
from aftercall.lab.media import MediaPhone
from aftercall.settings.sections import ReceptionistSettings
from voice_server import (
    Stage,
    emulate,
    noted,
    open_stream,
    serving,
    telnyx_network,
    told,
)

GREETING = ReceptionistSettings().greeting
CALLER = "+15550100"


@asynccontextmanager
async def ringing(
    carrier: str, home: Path, engine: EmulatedEngine, database_url: str
) -> AsyncIterator[tuple[Stage, MediaPhone, str]]:
    """A call that was rung through the carrier's own webhooks: everything behind it, its phone
    and its sid.
    """
    if carrier == "twilio":
        async with serving(home, engine, speed=1.0, database_url=database_url) as stage:
            ring, phone = await stage.ring(CALLER)
            yield stage, phone, ring.sid
        return
    async with (
        telnyx_network() as (telnyx, number),
        serving(home, engine, database_url=database_url, telnyx=number) as stage,
    ):
        call = await telnyx.ring(f"{stage.address}/telnyx/events", caller=CALLER)
        yield stage, await open_stream(call, speed=1.0), call.control_id
        await telnyx.hang_up(call)


COMBINATIONS = [
    ("twilio", "deepgram", "postgres"),
    ("twilio", "openai", "postgres"),
    ("telnyx", "deepgram", "postgres"),
    ("telnyx", "deepgram", "sqlite"),
]


@pytest.mark.parametrize(
    ("carrier", "name", "database_url"), COMBINATIONS, indirect=["database_url"]
)
async def test_a_call_with_an_interruption_is_kept_as_it_was_said_and_heard(
    tmp_path: Path, carrier: str, name: str, database_url: str
) -> None:
    engine = emulate(name, reply_in_order("All right.", "Noted."))
    async with ringing(carrier, tmp_path / "home", engine, database_url) as (
        stage,
        phone,
        sid,
    ):
        await phone.wait_for_audio(8_000)
        phone.queue_text("Stop.")
        await phone.wait_for_words("All right.")
        await phone.say("Call Jim.")
        await phone.wait_for_words("Noted.")
        await phone.hang_up()
        call = await stage.sealed()
    assert phone.clear_count == 1
    (speaker, kept), *rest = told(call)
    assert rest == [
        ("caller", "Stop."),
        ("agent", "All right."),
        ("caller", "Call Jim."),
        ("agent", "Noted."),
    ]
    assert speaker == "agent"
    assert GREETING.startswith(kept)
    assert abs(len(kept.split()) - len(phone.heard[0].split())) <= 1
    assert len(kept) < len(GREETING)
    assert phone.heard[1:] == ["All right.", "Noted."]
    assert [event["said"] for event in noted(call, "barge_in")] == [GREETING]
    assert engine.calls[0].heard == ["Stop.", "Call Jim."]
    assert (call.source, call.sid, call.caller, call.end_reason) == (
        carrier,
        sid,
        CALLER,
        "caller_hung_up",
    )
    times = [call.started_at, *(turn.at for turn in call.turns), call.ended_at]
    assert times == sorted(times)
    assert len(set(times[1:-1])) == len(call.turns)
    assert stage.app.database.dialect == (
        "postgresql" if database_url.startswith("postgresql") else "sqlite"
    )
