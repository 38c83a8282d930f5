"""How a party's calls are found: by what was decided of each, and until then by the number it came from."""

from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, true

from aftercall.db.tables import calls


def is_of(party: str) -> ColumnElement[bool]:
    """Calls that were decided to be theirs, by an index that has them in order of time."""
    return calls.c.whose == party


def may_be_of(party: str | None) -> ColumnElement[bool]:
    """Those, and calls from their number of which nothing is decided yet. None: everybody's."""
    if not party:
        return true()
    return or_(is_of(party), and_(calls.c.whose.is_(None), calls.c.caller == party))


def last_end(agent_id: str, party: str | None) -> Select[tuple[datetime]]:
    """When their last call ended in which something was said.

    Of one party's few calls the latest; of everybody's the newest, by the index of starts.

    Neither does for the other: a maximum over everybody reads every call, and who looks through the newest for one party's may
    find it last.
    """
    spoken = and_(calls.c.agent_id == agent_id, calls.c.state == "sealed", ~calls.c.is_silent, may_be_of(party))
    if party:
        return select(func.max(calls.c.ended_at)).where(spoken)
    return select(calls.c.ended_at).where(spoken).order_by(calls.c.started_at.desc()).limit(1)
