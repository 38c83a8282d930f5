"""Finished calls from outside: refused whole, or sealed."""

from datetime import timedelta

from aftercall.errors import RefusedInput
from aftercall.journal.record import Journal
from aftercall.journal.store import CallRow
from aftercall.model.calls import Call, parse_call_json

MAX_CLOCK_SKEW = timedelta(days=1)  # another machine's clock may be wrong, but not by more


def ingest_json(journal: Journal, raw: bytes) -> tuple[CallRow, bool]:
    """Seal a finished call given as JSON; returns it and whether it is new.

    Nothing is stored of one that does not fit.
    """
    return ingest_call(journal, parse_call_json(raw))


def ingest_call(journal: Journal, call: Call) -> tuple[CallRow, bool]:
    if call.ended_at > journal.clock.now() + MAX_CLOCK_SKEW:
        raise RefusedInput("ended_at", "lies in the future")
    return journal.ingest(call, is_handed_in=True)
