"""Resuming a dropped call: short-lived state, apart from the archive, that one call consumes.

The new call peeks while it connects and consumes when it is connected: a failed connect loses
nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, bindparam, delete, select, update

from aftercall.db.connect import Database
from aftercall.db.statements import PreparedStatement
from aftercall.db.tables import calls, resume_states
from aftercall.ids import hash_caller
from aftercall.model.calls import LiveCall

_PEEK = PreparedStatement(
    select(resume_states).where(
        resume_states.c.agent_id == bindparam("agent"),
        resume_states.c.caller_hash == bindparam("hash"),
        resume_states.c.ended_at
        >= bindparam("not_before", type_=resume_states.c.ended_at.type),
    )
)


@dataclass(frozen=True)
class ResumeState:
    """A sealed call that its caller may still resume."""

    agent_id: str
    caller_hash: str
    call_id: str
    conversation: str
    ended_at: datetime


class ResumeStates:
    def __init__(self, database: Database, window_s: float) -> None:
        self._database = database
        self._window = timedelta(seconds=window_s)

    def peek(self, call: LiveCall) -> ResumeState | None:
        """The call that this caller may be resuming; both ends of the window count."""
        if call.caller is None:
            return None
        values = {
            "agent": call.agent_id,
            "hash": hash_caller(call.caller),
            "not_before": call.started_at - self._window,
        }
        with self._database.read() as connection:
            rows = _PEEK.fetch(connection, values)
        return ResumeState(*rows[0]) if rows else None

    def consume(self, state: ResumeState, call: LiveCall) -> LiveCall | None:
        """Joins the live call to the conversation; returns None if another call was first."""
        joined = {"resumes": state.call_id, "conversation": state.conversation}
        with self._database.write() as connection:
            taken = connection.execute(delete(resume_states).where(_is_same(state)))
            if taken.rowcount != 1:
                return None
            is_live = and_(calls.c.id == call.id, calls.c.state == "live")
            connection.execute(update(calls).where(is_live).values(joined))
        return call.model_copy(update=joined)

    def delete_expired(self, now: datetime) -> int:
        expired = resume_states.c.ended_at < now - self._window
        with self._database.write() as connection:
            return connection.execute(delete(resume_states).where(expired)).rowcount


def _is_same(state: ResumeState) -> ColumnElement[bool]:
    return and_(
        resume_states.c.agent_id == state.agent_id,
        resume_states.c.caller_hash == state.caller_hash,
        resume_states.c.call_id == state.call_id,
    )
