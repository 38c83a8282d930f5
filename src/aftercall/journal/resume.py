"""Picking up a dropped call: short-lived state, apart from the archive, consumed once.

Peek while the new call connects; consume only when it really is connected, so that a failed
connect loses nothing.
"""

from datetime import datetime, timedelta

from aftercall.journal.store import CallStore, ResumeState
from aftercall.model.calls import LiveCall


class ResumeStates:
    def __init__(self, store: CallStore, window_s: float) -> None:
        self._store = store
        self._window = timedelta(seconds=window_s)

    def peek(self, call: LiveCall) -> ResumeState | None:
        """The call that this caller may be picking up; the window's last millisecond counts."""
        if call.caller is None:
            return None
        return self._store.peek_resume(
            call.agent_id, call.caller, not_before=call.started_at - self._window
        )

    def consume(self, state: ResumeState, call: LiveCall) -> LiveCall | None:
        """Join the connected call to the conversation; None if another call won the state."""
        if not self._store.consume_resume(state, into=call.id):
            return None
        return call.model_copy(
            update={"resumes": state.call_id, "conversation": state.conversation}
        )

    def delete_expired(self, now: datetime) -> int:
        return self._store.delete_expired_resumes(ended_before=now - self._window)
