"""kill -9 in the middle of calls, on both carriers: what was written down is archived, and who
rings back is picked up.
"""

import asyncio
from pathlib import Path

import pytest

from aftercall.app import App, build
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.media import MediaPhone
from aftercall.lab.twilio import EmulatedTwilio
from aftercall.model.calls import Call
from aftercall.settings import Settings
from aftercall.settings.providers import TelnyxSettings
from aftercall.settings.sections import DatabaseSettings, ReceptionistSettings
from crash.killable_server import MortalServer
from voice_server import KEY, SPEED, TOKEN, open_stream, telnyx_network, told
from waiting import until

GREETING = ReceptionistSettings().greeting
ON_TWILIO, ON_TELNYX = "+15550100", "+15550111"
ANSWERS = {
    "Call the plumber.": "Which plumber?",
    "Water the plants.": "Which plants?",
    "Jim.": "Noted.",
    "The roses.": "Noted.",
}


class Onlooker:
    """The same home and database, seen by a process that outlives the server."""

    def __init__(self, home: Path, database_url: str) -> None:
        self.app: App = build(
            Settings(home=home, database=DatabaseSettings(url=database_url))
        )

    async def wait_written(self, caller: str, turns: int) -> None:
        """Until so many turns of the caller's newest call are in the journal."""

        def is_so() -> bool:
            rows = [
                row
                for row in self.app.store.list_page(limit=9)
                if row.live.caller == caller
            ]
            return (
                bool(rows)
                and [
                    entry.kind for entry in self.app.store.list_entries(rows[0].live.id)
                ].count("turn")
                >= turns
            )

        await until(is_so)

    async def wait_sealed(self, caller: str, calls: int) -> list[Call]:
        """The caller's calls, oldest first, once there are so many and all of them are archived."""
        found: list[Call] = []

        def is_so() -> bool:
            rows = [
                row
                for row in self.app.store.list_page(limit=9)
                if row.live.caller == caller
            ]
            names = [row.archive_name for row in rows if row.archive_name is not None]
            if len(names) == calls == len(rows):
                found.extend(self.app.archive.read(name)[0] for name in reversed(names))
            return bool(found)

        await until(is_so)
        return found


def environment_of(telnyx: TelnyxSettings) -> dict[str, str]:
    assert telnyx.api_key is not None
    key = telnyx.api_key.get_secret_value()
    return {
        "TELNYX_API_KEY": key,
        "TELNYX_PUBLIC_KEY": telnyx.public_key or "",
        "AFTERCALL_TELNYX_API_URL": telnyx.api_url,
    }


@pytest.mark.timeout(300)
async def test_streamed_calls_survive_the_death_of_the_server_and_are_picked_up(
    tmp_path: Path, database_url: str
) -> None:
    engine = EmulatedDeepgram(KEY, lambda heard: ANSWERS[heard])
    async with (
        engine,
        EmulatedTwilio(TOKEN, speed=SPEED) as twilio,
        telnyx_network() as (telnyx, number),
    ):
        keys = environment_of(number) | {
            "AFTERCALL_ENGINE": "deepgram",
            "DEEPGRAM_API_KEY": KEY,
            "AFTERCALL_DEEPGRAM_URL": engine.url,
            "TWILIO_AUTH_TOKEN": TOKEN,
        }
        home = tmp_path / "home"
        home.mkdir()
        onlooker = Onlooker(home, database_url)
        server = MortalServer(home, AFTERCALL_DATABASE_URL=database_url, **keys)

        async def ring_twilio() -> MediaPhone:
            ring = await twilio.ring(f"{server.address}/twilio/voice", caller=ON_TWILIO)
            assert ring.phone is not None, ring.fault
            return ring.phone

        async def ring_telnyx() -> MediaPhone:
            return await open_stream(
                await telnyx.ring(f"{server.address}/telnyx/events", caller=ON_TELNYX)
            )

        async def talk(phone: MediaPhone, first: str, says: str) -> None:
            await phone.wait_for_words(first)
            await phone.say(says)
            await phone.wait_for_words(ANSWERS[says])

        try:
            await server.start()
            phones = [await ring_twilio(), await ring_telnyx()]
            await asyncio.gather(
                talk(phones[0], GREETING, "Call the plumber."),
                talk(phones[1], GREETING, "Water the plants."),
            )
            await asyncio.gather(
                onlooker.wait_written(ON_TWILIO, 3), onlooker.wait_written(ON_TELNYX, 3)
            )
            await server.kill()
            for phone in phones:
                await phone.wait_closed()
            await server.start()
            phones = [await ring_twilio(), await ring_telnyx()]
            await asyncio.gather(
                talk(phones[0], "Welcome back.", "Jim."),
                talk(phones[1], "Welcome back.", "The roses."),
            )
            for phone in phones:
                await phone.hang_up()
            kept = [
                await onlooker.wait_sealed(ON_TWILIO, 2),
                await onlooker.wait_sealed(ON_TELNYX, 2),
            ]
        finally:
            await server.stop()
            onlooker.app.close()
    for (first, second), (asked, replied), source in zip(
        kept,
        (("Call the plumber.", "Jim."), ("Water the plants.", "The roses.")),
        ("twilio", "telnyx"),
        strict=True,
    ):
        assert (first.source, first.end_reason, second.end_reason) == (
            source,
            "interrupted",
            "caller_hung_up",
        )
        assert told(first) == [
            ("agent", GREETING),
            ("caller", asked),
            ("agent", ANSWERS[asked]),
        ]
        assert (second.resumes, second.conversation) == (first.id, first.id)
        assert told(second)[1:] == [("caller", replied), ("agent", "Noted.")]
        assert [turn.at for turn in first.turns] == sorted(
            turn.at for turn in first.turns
        )
    openings = [str(call.settings) for call in engine.calls[2:]]
    assert sorted(
        ["Which plumber?" in opening, "Which plants?" in opening]
        for opening in openings
    ) == [[False, True], [True, False]]


@pytest.mark.timeout(300)
async def test_a_telnyx_call_of_the_receptionist_survives_the_death_of_the_server(
    tmp_path: Path,
) -> None:
    async with telnyx_network() as (telnyx, number):
        home = tmp_path / "home"
        home.mkdir()
        onlooker = Onlooker(home, f"sqlite:///{home / 'aftercall.db'}")
        server = MortalServer(home, **environment_of(number))
        try:
            await server.start()
            call = await telnyx.ring(
                f"{server.address}/telnyx/events", caller=ON_TELNYX
            )
            await until(lambda: len(call.heard) == 1)
            await telnyx.say(call, "Please call the plumber.")
            await until(lambda: len(call.heard) == 2)
            await onlooker.wait_written(ON_TELNYX, 3)
            await server.kill()
            await server.start()
            # the carrier's line is still open
            await telnyx.say(call, "And remind me to water the plants.")
            await until(lambda: len(call.heard) == 3)
            await telnyx.hang_up(call)
            await onlooker.wait_sealed(ON_TELNYX, 2)
            again = await telnyx.ring(
                f"{server.address}/telnyx/events", caller=ON_TELNYX
            )
            await until(lambda: len(again.heard) == 1)
            await telnyx.hang_up(again)
            first, second, third = await onlooker.wait_sealed(ON_TELNYX, 3)
        finally:
            await server.stop()
            onlooker.app.close()
    assert first.end_reason == "interrupted"
    assert told(first) == [
        ("agent", GREETING),
        ("caller", "Please call the plumber."),
        ("agent", call.heard[1]),
    ]
    assert [text for speaker, text in told(second) if speaker == "caller"] == [
        "And remind me to water the plants."
    ]
    assert told(second)[-1] == ("agent", call.heard[2])
    assert second.metadata["call_sid"] == call.control_id
    assert (second.resumes, third.resumes) == (first.id, second.id)
    assert {second.conversation, third.conversation} == {first.id}
    assert told(third) == [("agent", again.heard[0])]
    assert "Welcome back" in again.heard[0]
