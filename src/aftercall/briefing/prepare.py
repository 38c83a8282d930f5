"""Briefings are put together before the phone rings: after a call, and whenever something they
rest on changes.

A row without a body is the order to prepare it, and survives whoever was at it.
"""

import asyncio

from aftercall.briefing.compose import BriefingParts, Composer
from aftercall.briefing.store import BriefingStore, DueBriefing
from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.faults import fault_point
from aftercall.journal.resume import ResumeState
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall

PREPARE_INTERVAL_S = 1.0
BATCH_SIZE = 100

log = get_logger("briefing")


def prepare_due(composer: Composer, store: BriefingStore) -> int:
    """Prepare what is out of date; how many. One caller's trouble never stops another's."""
    prepared = 0
    for due in store.list_due(BATCH_SIZE):
        try:
            prepared += prepare_briefing(composer, store, due)
        except AftercallError as error:
            log.warning("a briefing could not be prepared", error=error.code)
    return prepared


def prepare_briefing(composer: Composer, store: BriefingStore, due: DueBriefing) -> bool:
    """False if what it rests on changed meanwhile: then it is due again."""
    rests_on_all = composer.settings.memory.scope == "shared"
    if due.rests_on_all != rests_on_all:
        due = store.start(due.agent_id, due.caller, rests_on_all=rests_on_all)
    remembered = composer.load_remembered(due.agent_id, due.caller)
    fault_point("briefing.before_keep")
    return store.save(due, composer.settings_hash, remembered, composer.clock.now())


async def brief_ring(
    composer: Composer, call: LiveCall, clock: Clock
) -> tuple[ResumeState | None, Briefing]:
    """The call this one picks up, if any, and what it is told.

    What comes too late is left out; the caller does not wait for it.
    """
    found = BriefingParts(party=call.caller)
    gathering = asyncio.create_task(asyncio.to_thread(composer.gather, call, found))
    gathering.add_done_callback(lambda task: _log_failure(task, call))
    alarm = asyncio.ensure_future(clock.sleep(composer.settings.briefing.timeout_ms / 1000))
    try:
        await asyncio.wait({gathering, alarm}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
    if not gathering.done():
        log.warning("the call begins with what is there", call=call.id, missing=found.missing)
    state = found.resume_state
    return state, composer.make_briefing(call, found)


def _log_failure(gathering: "asyncio.Task[None]", call: LiveCall) -> None:
    if not gathering.cancelled() and (error := gathering.exception()):
        log.error("the briefing broke", call=call.id, error=type(error).__name__)
