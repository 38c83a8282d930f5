"""Which facts a call was told: kept with the call, as an event of its journal and so of its archive."""

from collections.abc import Sequence
from datetime import datetime

from aftercall.model.calls import Call
from aftercall.model.turns import Event

TOLD = "briefing.told"


def told_event(seq: int, at: datetime, fact_ids: Sequence[str]) -> Event:
    """For whoever briefs a call: append this to its record."""
    return Event(seq=seq, kind=TOLD, at=at, data={"facts": list(fact_ids)})


def facts_told(call: Call) -> frozenset[str]:
    return frozenset(str(fact_id) for event in call.events if event.kind == TOLD for fact_id in event.data.get("facts", ()))
