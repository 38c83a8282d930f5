"""After hang-up: late words are waited for a moment, the call is sealed, and what comes later
still is attached to it.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from aftercall.bridge.conversation import EngineConversation
from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.journal.record import CallRecorder, Journal
from aftercall.log import get_logger
from aftercall.model.turns import Turn

LATE_WORDS_TIMEOUT_S = 5.0
POLL_INTERVAL_S = 0.1

log = get_logger("bridge")


@dataclass(frozen=True)
class CallEnding:
    reason: str
    at: datetime
    drain_s: float


async def finish_call(
    journal: Journal,
    record: CallRecorder,
    turn_log: TurnLog,
    conversation: EngineConversation,
    ending: CallEnding,
    clock: Clock,
) -> None:
    conversation.mute()
    await _drain(turn_log, conversation, ending.drain_s, clock)
    is_missing_words = turn_log.is_missing_words and conversation.is_connected
    await turn_log.close()
    is_sealed = await _seal(journal, record, ending)
    if is_sealed and is_missing_words:
        await _attach_late(journal, record, turn_log, conversation, clock)
    await conversation.close()


async def _drain(
    turn_log: TurnLog, conversation: EngineConversation, drain_s: float, clock: Clock
) -> None:
    """Always the whole while when a session is on: words may be under way that nothing has
    announced.
    """
    until_s = clock.monotonic() + drain_s
    while conversation.is_connected and clock.monotonic() < until_s:
        await clock.sleep(min(POLL_INTERVAL_S, drain_s))
        turn_log.flush_ready()


async def _seal(journal: Journal, record: CallRecorder, ending: CallEnding) -> bool:
    try:
        await journal.seal(record, end_reason=ending.reason, ended_at=ending.at)
    except AftercallError as error:
        log.error("could not seal the call yet", call=record.call.id, error=error.code)
        return False
    return True


async def _attach_late(
    journal: Journal,
    record: CallRecorder,
    turn_log: TurnLog,
    conversation: EngineConversation,
    clock: Clock,
) -> None:
    until_s = clock.monotonic() + LATE_WORDS_TIMEOUT_S
    drafts = turn_log.pop_late()
    while not drafts and conversation.is_connected and clock.monotonic() < until_s:
        await clock.sleep(POLL_INTERVAL_S)
        drafts = turn_log.pop_late()
    if not drafts:
        return
    late = [
        Turn(
            seq=seq,
            speaker=draft.speaker,
            text=draft.text,
            at=draft.at,
            confidence=draft.confidence,
        )
        for seq, draft in enumerate(drafts, record.next_turn_seq)
    ]
    try:
        row = await asyncio.to_thread(journal.store.get, record.call.id)
        await asyncio.to_thread(journal.add_addendum, row, late)
    except AftercallError as error:
        log.error("late words could not be attached", call=record.call.id, error=error.code)
