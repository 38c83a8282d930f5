"""After hang-up: late words are waited for a moment, the call is sealed, and what comes later still is attached to it."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from aftercall.bridge.conversation import Conversation
from aftercall.bridge.minutes import Minutes
from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.journal.record import Journal, Record
from aftercall.log import get_logger
from aftercall.model.turns import Turn

LATE_S = 5.0
LOOK_EVERY_S = 0.1

log = get_logger("bridge")


@dataclass(frozen=True)
class Ending:
    reason: str
    at: datetime
    drain_s: float


async def wind_up(journal: Journal, record: Record, minutes: Minutes, talk: Conversation, ending: Ending, clock: Clock) -> None:
    talk.mute()
    await _drain(minutes, talk, ending.drain_s, clock)
    is_missing_words = minutes.is_missing_words and talk.is_on
    await minutes.close()
    is_sealed = await _seal(journal, record, ending)
    if is_sealed and is_missing_words:
        await _attach_late(journal, record, minutes, talk, clock)
    await talk.close()


async def _drain(minutes: Minutes, talk: Conversation, drain_s: float, clock: Clock) -> None:
    """Always the whole while when a session is on: words may be under way that nothing has announced."""
    until_s = clock.monotonic() + drain_s
    while talk.is_on and clock.monotonic() < until_s:
        await clock.sleep(min(LOOK_EVERY_S, drain_s))
        minutes.write_ready()


async def _seal(journal: Journal, record: Record, ending: Ending) -> bool:
    try:
        await journal.seal(record, end_reason=ending.reason, ended_at=ending.at)
    except AftercallError as error:
        log.error("could not seal the call yet", call=record.call.id, error=error.code)  # noqa: TRY400 - recovery tries again
        return False
    return True


async def _attach_late(journal: Journal, record: Record, minutes: Minutes, talk: Conversation, clock: Clock) -> None:
    until_s = clock.monotonic() + LATE_S
    drafts = minutes.take_late()
    while not drafts and talk.is_on and clock.monotonic() < until_s:
        await clock.sleep(LOOK_EVERY_S)
        drafts = minutes.take_late()
    if not drafts:
        return
    late = [
        Turn(seq=seq, speaker=draft.speaker, text=draft.text, at=draft.at, confidence=draft.confidence)
        for seq, draft in enumerate(drafts, record.next_turn)
    ]
    try:
        row = await asyncio.to_thread(journal.store.get, record.call.id)
        await asyncio.to_thread(journal.attach, row, late)
    except AftercallError as error:
        log.error("late words could not be attached", call=record.call.id, error=error.code)  # noqa: TRY400 - no trace: speech
