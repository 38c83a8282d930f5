"""What a conversation's drafts change in the ledger: new rows, changed ones. Plans only; the store carries it out whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aftercall.ids import new_id
from aftercall.model.followups import Draft, FollowUp, State, Trust
from aftercall.work.likeness import is_same, key_of
from aftercall.work.policy import Ruling
from aftercall.work.store import Transition

WHO = "follow-up"
TAKEN_BACK = "the caller took it back"
TAKEN_BACK_LATE = "the caller took it back after it was done"
ASKED_AGAIN = "the caller asked for it again"

_STATES: dict[str, State] = {"do": "open", "hold": "held", "refuse": "refused"}


@dataclass(frozen=True)
class Judged:
    """A draft with what policy and routes say of it."""

    draft: Draft
    trust: Trust
    sinks: tuple[str, ...]
    ruling: Ruling
    remind_at: datetime | None = None

    @property
    def state(self) -> State:
        return "withdrawn" if self.draft.is_withdrawn else _STATES[self.ruling.verdict]

    @property
    def reason(self) -> str:
        return TAKEN_BACK if self.draft.is_withdrawn else self.ruling.reason


@dataclass(frozen=True)
class Origin:
    """Whose conversation it is."""

    conversation: str
    call_id: str
    agent_id: str
    caller: str | None = field(repr=False)


@dataclass
class Plan:
    fresh: list[FollowUp] = field(default_factory=list)
    changes: list[tuple[str, Transition]] = field(default_factory=list)

    @property
    def reminders(self) -> set[str]:
        return {row.id for row in self.fresh if row.remind_at and row.state != "withdrawn"}


def plan(drafts: Sequence[Draft], known: Sequence[FollowUp], origin: Origin, judge: Callable[[Draft], Judged], now: datetime) -> Plan:
    """A draft that the ledger knows, however phrased, is the row it has; only what is new or taken back changes anything."""
    made = Plan()
    for draft in drafts:
        row = _find(draft, [*known, *made.fresh], origin.conversation)
        if row is None:
            made.fresh.append(_make_row(judge(draft), origin, now))
        elif transition := _change(row, judge(draft)):
            made.changes.append((row.id, transition))
    return made


def _find(draft: Draft, rows: Sequence[FollowUp], conversation: str) -> FollowUp | None:
    key = key_of(conversation, draft.kind, draft.request_kind, draft.title)
    same = [row for row in rows if row.key == key]
    own = [row for row in rows if row.kind == draft.kind]
    like = [
        row
        for row in own
        if is_same(draft.title, row.request_kind if draft.is_withdrawn else draft.request_kind, row.title, row.request_kind)
    ]
    return next(iter(same or like), None)


def _make_row(judged: Judged, origin: Origin, now: datetime) -> FollowUp:
    draft = judged.draft
    return FollowUp(
        id=new_id(),
        key=key_of(origin.conversation, draft.kind, draft.request_kind, draft.title),
        kind=draft.kind,
        request_kind=draft.request_kind,
        title=draft.title,
        details=draft.details,
        person=draft.person,
        due=draft.due,
        conversation=origin.conversation,
        call_id=draft.spots[0][0] if draft.spots else origin.call_id,
        agent_id=origin.agent_id,
        caller=origin.caller,
        turns=draft.spots,
        words=draft.words,
        state=judged.state,
        reason="; ".join(part for part in (judged.reason, draft.note) if part),
        link=None,
        trust=judged.trust,
        sink="+".join(judged.sinks),
        fulfilled_by=None,
        round=0,
        remind_at=judged.remind_at,
        created_at=now,
        changed_at=now,
    )


def _change(row: FollowUp, judged: Judged) -> Transition | None:
    draft = judged.draft
    if draft.is_withdrawn:
        if row.state in ("open", "held", "failed", "unknown", "broken", "expired"):
            return Transition("withdrawn", WHO, TAKEN_BACK)
        if row.state in ("done", "doing") and row.reason != TAKEN_BACK_LATE:
            return Transition(row.state, WHO, TAKEN_BACK_LATE)
        return None
    if row.state == "withdrawn" and draft.kind == "request":
        kept = (("trust", judged.trust), ("sink", "+".join(judged.sinks)), *_dates(judged))
        return Transition(judged.state, WHO, judged.reason, ASKED_AGAIN, kept)
    if draft.due and draft.due != row.due and row.state in ("open", "held"):
        return Transition(row.state, WHO, row.reason, "another date", _dates(judged))
    return None


def _dates(judged: Judged) -> tuple[tuple[str, Any], ...]:
    return (("due", judged.draft.due), ("remind_at", judged.remind_at), ("reminder", "due" if judged.remind_at else None))
