"""The plan of what a conversation's drafts change in the ledger. The store carries it out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from aftercall.db.corrections import Correction
from aftercall.errors import NotWaiting
from aftercall.ids import new_id
from aftercall.model.followups import (
    PERSON,
    FollowUp,
    FollowUpDraft,
    FollowUpState,
    Trust,
    to_state,
)
from aftercall.who.trust import PolicyRuling
from aftercall.work.requests import is_like, is_same_title, judge_promise, key_of
from aftercall.work.store import FollowUpTransition

FOLLOWUP_ACTOR = "follow-up"
TAKEN_BACK = "the caller took it back"
TAKEN_BACK_LATE = "the caller took it back after it was done"
ASKED_AGAIN = "the caller asked for it again"
READ_CLEARLY = "another reading is sure of it"
UNCLEAR = "may be a request; say yes or no"
OTHER_KIND = "a person gave it another kind; approve or reject it"

REBUILT = (
    "rebuilt from the archive: whether it was delivered is not known; not done again"
)
HELD_AGAIN = "rebuilt from the archive: it may have been approved and done before"
REBUILT_SINK = "tasks"  # written down, and nothing more is claimed

NOT_ASKED = "it was not asked for"
NOT_ASKED_LATE = "it was not asked for, but was done"
DONE_BY_PERSON = "a person said that it is done"
UNDONE = "a correction was undone"
PUT_BACK = "a correction was undone; approve or reject it"

_UNFINISHED = ("noted", "passed on", "held", "failed", "expired", "unknown", "broken")
_STATES: dict[str, FollowUpState] = {"do": "open", "hold": "held", "refuse": "refused"}


@dataclass(frozen=True)
class JudgedDraft:
    """A draft with its trust, its sinks and the policy's ruling."""

    draft: FollowUpDraft
    trust: Trust
    sinks: tuple[str, ...]
    ruling: PolicyRuling
    remind_at: datetime | None = None

    @property
    def state(self) -> FollowUpState:
        if self.draft.is_unclear:
            return "unclear"
        return "withdrawn" if self.draft.is_withdrawn else _STATES[self.ruling.verdict]

    @property
    def reason(self) -> str:
        if self.draft.is_unclear:
            return UNCLEAR
        return TAKEN_BACK if self.draft.is_withdrawn else self.ruling.reason


@dataclass(frozen=True)
class CorrectedFollowUp:
    """What a person put right in a row; a reading does not change it again."""

    titles: tuple[str, ...] = field(default=(), repr=False)  # that it had before
    is_removed: bool = False
    things: frozenset[str] = frozenset()


def index_corrections(
    chains: Iterable[Sequence[Correction]],
) -> dict[str, CorrectedFollowUp]:
    """By the key of the row."""
    found: dict[str, CorrectedFollowUp] = {}
    for chain in chains:
        newest = chain[-1]
        known = found.get(newest.key, CorrectedFollowUp())
        known = replace(known, things=known.things | {newest.what})
        if newest.what == "request":
            titles = tuple(one.old for one in chain if one.old)
            known = replace(known, titles=titles, is_removed=newest.is_removal)
        found[newest.key] = known
    return found


@dataclass(frozen=True)
class DraftOrigin:
    conversation: str
    call_id: str
    agent_id: str
    caller: str | None = field(repr=False)


@dataclass
class FollowUpPlan:
    new_rows: list[FollowUp] = field(default_factory=list)
    changes: list[tuple[str, FollowUpTransition]] = field(default_factory=list)

    @property
    def reminders(self) -> set[str]:
        return {
            row.id
            for row in self.new_rows
            if row.remind_at and row.state != "withdrawn"
        }


def plan_followups(
    drafts: Sequence[FollowUpDraft],
    known: Sequence[FollowUp],
    origin: DraftOrigin,
    judge: Callable[[FollowUpDraft], JudgedDraft],
    now: datetime,
    corrected: Mapping[str, CorrectedFollowUp] = MappingProxyType({}),
) -> FollowUpPlan:
    """A draft of a known follow-up changes its row at most; any other draft is a new row.

    A row may be read otherwise now. Then a draft of its turns is its draft if their titles are
    alike, or if a person put the row right.
    """
    made = FollowUpPlan()
    found = [_find(draft, known, origin.conversation, corrected) for draft in drafts]
    claimed = {row.id for row in found if row}
    for draft, named in zip(drafts, found, strict=True):
        row = named or _find(draft, made.new_rows, origin.conversation, corrected)
        if row is None:
            left = [
                each
                for each in known
                if is_like(draft.title, each.title)
                or (each.key in corrected and not draft.is_withdrawn)
            ]
            row = _find_by_turns(draft, left, claimed)
        if row is None:
            made.new_rows.append(make_row(judge(draft), origin, now))
        elif transition := _change(
            row, judge(draft), corrected.get(row.key, CorrectedFollowUp())
        ):
            made.changes.append((row.id, transition))
    return made


def settle_rebuilt(
    plan: FollowUpPlan, known: Sequence[FollowUp], now: datetime
) -> FollowUpPlan:
    """The plan of a conversation whose rows were lost: nothing in it waits to be delivered.

    What has been delivered is not known. A promise whose day has passed is not called broken.
    """
    requests = [
        _settle_request(row, now) for row in plan.new_rows if row.kind == "request"
    ]
    asked = [*(row for row in known if row.kind == "request"), *requests]
    promises = []
    for row in plan.new_rows:
        if row.kind == "promise":
            told = judge_promise(row, asked, is_late=False)
            promise = replace(row, state=told.state, reason=told.reason)
            promise = replace(promise, fulfilled_by=told.fulfilled_by, sink=told.sink)
            promises.append(replace(promise, created_at=now))
    withdrawn = [change for change in plan.changes if change[1].state == "withdrawn"]
    return FollowUpPlan([*requests, *promises], withdrawn)


def _settle_request(row: FollowUp, now: datetime) -> FollowUp:
    """A reminder that is still to come is kept; an earlier one may have been sent."""
    if row.remind_at and row.remind_at <= now:
        row = replace(row, remind_at=None)
    if row.state == "open":
        return replace(row, state="done", reason=REBUILT, sink=REBUILT_SINK)
    if row.state == "held":
        return replace(row, reason=f"{row.reason}; {HELD_AGAIN}")
    return row


def _find(
    draft: FollowUpDraft,
    rows: Sequence[FollowUp],
    conversation: str,
    corrected: Mapping[str, CorrectedFollowUp],
) -> FollowUp | None:
    key = key_of(conversation, draft.kind, draft.request_kind, draft.title)
    for row in rows:
        if row.key == key:
            return row
    for row in rows:
        has_no_kind = draft.is_withdrawn or draft.is_unclear or row.state == "unclear"
        kind = row.request_kind if has_no_kind else draft.request_kind
        before = corrected.get(row.key, CorrectedFollowUp()).titles
        if row.kind == draft.kind and any(
            is_same_title(draft.title, kind, title, row.request_kind)
            for title in (row.title, *before)
        ):
            return row
    return None


def _find_by_turns(
    draft: FollowUpDraft, rows: Sequence[FollowUp], claimed: set[str]
) -> FollowUp | None:
    """Claims the row, so that a second request of the same turn is a row of its own."""
    for row in rows:
        is_free = row.kind == draft.kind and row.id not in claimed
        if is_free and not set(row.turns).isdisjoint(draft.turn_refs):
            claimed.add(row.id)
            return row
    return None


def make_row(judged: JudgedDraft, origin: DraftOrigin, now: datetime) -> FollowUp:
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
        call_id=draft.turn_refs[0][0] if draft.turn_refs else origin.call_id,
        agent_id=origin.agent_id,
        caller=origin.caller,
        turns=draft.turn_refs,
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


def _change(
    row: FollowUp, judged: JudgedDraft, corrected: CorrectedFollowUp
) -> FollowUpTransition | None:
    """What a new reading changes in a row that exists; what people corrected stays."""
    draft = judged.draft
    if corrected.is_removed or draft.is_unclear:
        return None
    if draft.is_withdrawn:
        return _take_back(row)
    dates = () if "due" in corrected.things else _dates(judged)
    if row.state in ("withdrawn", "unclear") and draft.kind == "request":
        note = ASKED_AGAIN
        sink = ("sink", "+".join(judged.sinks))
        values = (("trust", judged.trust), sink, *dates)
        state = judged.state
        reason = judged.reason
        if row.state == "unclear":
            note = READ_CLEARLY
            values += (("request_kind", draft.request_kind), ("person", draft.person))
        if "kind" in corrected.things:
            state = "held"
            reason = OTHER_KIND
            values = dates
        return FollowUpTransition(state, FOLLOWUP_ACTOR, reason, note, values)
    if dates and draft.due and draft.due != row.due and row.state in ("open", "held"):
        return FollowUpTransition(
            row.state, FOLLOWUP_ACTOR, row.reason, "another date", dates
        )
    return None


def _take_back(row: FollowUp) -> FollowUpTransition | None:
    if row.is_only_here or row.state not in ("doing", "done", "refused", "withdrawn"):
        return FollowUpTransition("withdrawn", FOLLOWUP_ACTOR, TAKEN_BACK)
    if row.state in ("done", "doing") and row.reason != TAKEN_BACK_LATE:
        silent = (("remind_at", None), ("reminder", None))
        return FollowUpTransition(
            row.state, FOLLOWUP_ACTOR, TAKEN_BACK_LATE, values=silent
        )
    return None


def _dates(judged: JudgedDraft) -> tuple[tuple[str, Any], ...]:
    return (
        ("due", judged.draft.due),
        ("remind_at", judged.remind_at),
        ("reminder", "due" if judged.remind_at else None),
    )


def plan_removal(row: FollowUp, who: str) -> FollowUpTransition:
    """A person says that it was not asked for. What a sink has done stays done."""
    if row.state in ("done", "doing") and not row.is_only_here:
        return FollowUpTransition(row.state, who, NOT_ASKED_LATE)
    gone = (("queued", None), ("reminder", None))
    # The next call is told of refused requests, not of withdrawn ones.
    state: FollowUpState = "withdrawn" if row.kind == "request" else "refused"
    return FollowUpTransition(state, who, NOT_ASKED, values=gone)


def plan_return(row: FollowUp, who: str) -> FollowUpTransition:
    """What was removed is back."""
    if row.state == "withdrawn":
        return FollowUpTransition("held", who, PUT_BACK)
    if row.state == "refused" and row.kind == "promise":
        return FollowUpTransition("open", who, "")
    return FollowUpTransition(row.state, who, "", UNDONE)


def plan_done(
    row: FollowUp, standing: str, who: str, reminder: Mapping[str, Any]
) -> FollowUpTransition:
    """A person has done it; with a `standing` other than done, it stands as before.

    The person stands beside the sinks of a request, which show where it was written down. Of a
    promise nobody else is told: its sinks are those of the request behind it, and it is settled
    anew by that request when a person takes it back.
    """
    kept = [name for name in row.sinks if name != PERSON]
    if row.kind == "promise":
        kept = []
    if standing != "done":
        state: FollowUpState = "unknown"
        if row.kind == "request":
            state = to_state(standing)
        values = (("sink", "+".join(kept)), *reminder.items())
        reason = "" if state == "done" else UNDONE
        return FollowUpTransition(state, who, reason, UNDONE, values)
    if row.standing not in _UNFINISHED:
        raise NotWaiting(
            f"follow-up {row.id} is {row.standing}; it cannot be marked as done"
        )
    values = (("sink", "+".join([*kept, PERSON])), *reminder.items())
    return FollowUpTransition("done", who, "", DONE_BY_PERSON, values)
