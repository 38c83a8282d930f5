"""Briefings are put together before the phone rings: after a call, and whenever something they rest on changes.

A row without a body is the order to prepare it, and survives whoever was at it.
"""

from aftercall.briefing.compose import Composer
from aftercall.briefing.store import BriefingStore, Due
from aftercall.errors import AftercallError
from aftercall.faults import reach
from aftercall.log import get_logger

EVERY_S = 1.0
SOME = 100

log = get_logger("briefing")


def prepare_due(composer: Composer, store: BriefingStore) -> int:
    """Prepare what is out of date; how many. One caller's trouble never stops another's."""
    prepared = 0
    for due in store.due(SOME):
        try:
            prepared += prepare(composer, store, due)
        except AftercallError as error:
            log.warning("a briefing could not be prepared", error=error.code)
    return prepared


def prepare(composer: Composer, store: BriefingStore, due: Due) -> bool:
    """False if what it rests on changed meanwhile: then it is due again."""
    rests_on_all = composer.settings.memory.scope == "shared"
    if due.rests_on_all != rests_on_all:
        due = store.begin(due.agent_id, due.caller, rests_on_all=rests_on_all)
    remembered = composer.remember(due.agent_id, due.caller)
    reach("briefing.before_keep")
    return store.keep(due, composer.form, remembered, composer.clock.now())
