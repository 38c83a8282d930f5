"""The briefing of a call that rings: whatever is found within its time limit, and never later."""

import asyncio

from aftercall.briefing.compose import Composer, Gathering
from aftercall.clock import Clock
from aftercall.journal.store import ResumeState
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall

log = get_logger("briefing")


async def brief(composer: Composer, call: LiveCall, clock: Clock) -> tuple[ResumeState | None, Briefing]:
    """The call this one picks up, if any, and what it is told. What comes too late is left out; the caller does not wait for it."""
    found = Gathering(party=call.caller)
    gathering = asyncio.create_task(asyncio.to_thread(composer.gather, call, found))
    gathering.add_done_callback(lambda task: _tell_trouble(task, call))
    alarm = asyncio.ensure_future(clock.sleep(composer.settings.briefing.timeout_ms / 1000))
    try:
        await asyncio.wait({gathering, alarm}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
    if not gathering.done():
        log.warning("the call begins with what is there", call=call.id, missing=found.missing)
    state = found.state
    return state, composer.tell(call, found)


def _tell_trouble(gathering: "asyncio.Task[None]", call: LiveCall) -> None:
    if not gathering.cancelled() and (error := gathering.exception()):
        log.error("the briefing broke", call=call.id, error=type(error).__name__)
