"""Streamed calls from callers and carriers that are not as they should be."""

import asyncio
import json
from pathlib import Path
from typing import Any

from aftercall.lab.engine import reply_in_order
from aftercall.model.calls import Call
from aftercall.settings.sections import ReceptionistSettings
from aftercall.web.uvicorn_server import MAX_FRAME_BYTES
from voice_server import (
    Stage,
    emulate,
    noted,
    open_stream,
    serving,
    telnyx_network,
    told,
)
from waiting import until

GREETING = ReceptionistSettings().greeting
KINDS = {
    "anonymous": None,
    "+266696687": None,
    "": None,
    "garbage": None,
    "client:alice": "client:alice",
    "sip:bob@example.com": "sip:bob@example.com",
    "+15550100": "+15550100",
}


async def keep_all(stage: Stage, count: int) -> dict[str, Call]:
    """The calls by their sid, once so many are in the archive."""
    page = stage.app.store.list_page
    await until(
        lambda: len([row for row in page(limit=20) if row.archive_name]) >= count
    )
    return {
        row.live.sid: stage.app.archive.read(str(row.archive_name))[0]
        for row in page(limit=20)
    }


async def test_callers_of_every_kind_are_greeted_and_kept_as_who_they_are(
    tmp_path: Path,
) -> None:
    async with (
        telnyx_network() as (telnyx, number),
        serving(
            tmp_path, emulate("deepgram", reply_in_order()), telnyx=number
        ) as stage,
    ):

        async def ring_twilio(caller: str) -> str:
            ring, phone = await stage.ring(caller)
            await phone.wait_for_words(GREETING)
            await stage.twilio.hang_up(ring)
            return ring.sid

        async def ring_telnyx(caller: str) -> str:
            call = await telnyx.ring(f"{stage.address}/telnyx/events", caller=caller)
            phone = await open_stream(call)
            await phone.wait_for_words(GREETING)
            await phone.hang_up()
            await telnyx.hang_up(call)
            return call.control_id

        twilio_sids = await asyncio.gather(*(ring_twilio(caller) for caller in KINDS))
        telnyx_sids = await asyncio.gather(
            *(ring_telnyx(caller) for caller in ("anonymous", "sip:carol@example.com"))
        )
        kept = await keep_all(stage, len(KINDS) + 2)
    assert [kept[sid].caller for sid in twilio_sids] == list(KINDS.values())
    assert [kept[sid].caller for sid in telnyx_sids] == [None, "sip:carol@example.com"]
    assert all(
        told(call) == [("agent", GREETING)] and call.resumes is None
        for call in kept.values()
    )


async def test_a_stream_out_of_order_goes_on_and_the_archive_says_so(
    tmp_path: Path,
) -> None:
    """A second start is out of order, too."""
    async with serving(
        tmp_path, emulate("deepgram", reply_in_order("Noted."))
    ) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words(GREETING)
        stream = {
            "streamSid": stage.app.journal.live_recorders[0].call.metadata["stream_sid"]
        }
        media = {"track": "inbound", "chunk": "1", "timestamp": "1", "payload": "AAAA"}
        odd: list[dict[str, Any]] = [
            {"event": "media", "sequenceNumber": "2", "media": media, **stream},
            {"event": "media", "media": "x", **stream},
            {
                "event": "media",
                "sequenceNumber": "3",
                "media": media,
                "streamSid": "MZ" + "9" * 32,
            },
            {"event": "start", "start": {"callSid": "CA1"}, **stream},
        ]
        for frame in ("{", *(json.dumps(message) for message in odd)):
            await phone.send_raw(frame)
        await phone.say("Call Jim.")
        await phone.wait_for_words("Noted.")
        await stage.twilio.hang_up(ring)
        call = await stage.sealed()
    assert told(call) == [
        ("agent", GREETING),
        ("caller", "Call Jim."),
        ("agent", "Noted."),
    ]
    assert (call.sid, call.end_reason) == (ring.sid, "caller_hung_up")
    assert noted(call, "line.oddities") == [
        {"not_json": 1, "late": 1, "shape": 1, "other_stream": 1, "second_start": 1}
    ]


async def test_a_frame_larger_than_any_carriers_ends_the_stream_and_the_call_is_kept(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, emulate("deepgram", reply_in_order())) as stage:
        _, phone = await stage.ring()
        await phone.wait_for_words(GREETING)
        await phone.send_raw("x" * (MAX_FRAME_BYTES + 1))
        await phone.wait_closed()
        call = await stage.sealed()
    assert (told(call), call.end_reason) == ([("agent", GREETING)], "line_lost")
