"""What the caller asked for, from the whole conversation and from what the agent wrote down
during it: one draft a request.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, get_args

from aftercall.model.followups import FollowUpDraft
from aftercall.model.instants import format_instant, parse_instant
from aftercall.model.reading import Request, RequestKind, RequestsReading, WithdrawnRequest
from aftercall.work.conversation import JoinedConversation
from aftercall.work.likeness import is_same_title

MAX_TITLE_CHARS = 200
MAX_DETAILS_CHARS = 4000
MAX_WORDS_CHARS = 1000
IN_THE_PAST = "the date that was said lay in the past"
NO_DATE = "the date that was said is none"
DUE_TOLERANCE = timedelta(days=1)  # where the caller is, it may still be yesterday
NOTED_SEQ = 0  # the turn number of what the agent wrote down: it rests on the call, not on one turn

_UNSEEN = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def draft_requests(
    conversation: JoinedConversation, asked: RequestsReading, mask: Callable[[str], str] = str
) -> list[FollowUpDraft]:
    """`mask` takes out what must not be kept; a reading has been masked already, what the agent
    wrote down has not.
    """
    today = conversation.merged_call.started_at.date()
    drafts = [_from_reading(conversation, request, today) for request in asked.requests]
    drafts += [_from_withdrawn(conversation, withdrawn) for withdrawn in asked.withdrawn]
    drafts += [
        _from_event(call_id, event.data, today, mask)
        for call_id, event in conversation.noted_requests
    ]
    return merge_duplicates(draft for draft in drafts if draft.title)


def merge_duplicates(drafts: Iterable[FollowUpDraft]) -> list[FollowUpDraft]:
    """The same thing once.

    What was read from the whole comes first and has the last word; later drafts fill its gaps.
    """
    kept: list[FollowUpDraft] = []
    for draft in drafts:
        index = next((number for number, other in enumerate(kept) if _are_one(other, draft)), None)
        if index is None:
            kept.append(draft)
        else:
            kept[index] = _fill(kept[index], draft)
    return kept


def _are_one(first: FollowUpDraft, second: FollowUpDraft) -> bool:
    is_note = (
        bool(second.turn_refs) and second.turn_refs[0][1] == NOTED_SEQ
    )  # written down before a date or a name was put right
    if not is_note and first.due and second.due and first.due != second.due:
        return False
    if (
        not is_note
        and first.person
        and second.person
        and first.person.casefold() != second.person.casefold()
    ):
        return False
    kind = second.request_kind if first.is_withdrawn else first.request_kind
    return is_same_title(first.title, kind, second.title, second.request_kind)


def _fill(draft: FollowUpDraft, other: FollowUpDraft) -> FollowUpDraft:
    return replace(
        draft,
        details=draft.details or other.details,
        person=draft.person or other.person,
        due=draft.due or other.due,
        turn_refs=tuple(dict.fromkeys((*draft.turn_refs, *other.turn_refs))),
        words=draft.words or other.words,
        note=draft.note or other.note,
    )


def _from_reading(conversation: JoinedConversation, request: Request, today: date) -> FollowUpDraft:
    due, note = read_due(request.due, today)
    return FollowUpDraft(
        kind="request",
        request_kind=request.kind,
        title=to_one_line(request.title, MAX_TITLE_CHARS),
        details=to_plain_text(request.details, MAX_DETAILS_CHARS),
        person=to_one_line(request.person or "", MAX_TITLE_CHARS) or None,
        due=due,
        turn_refs=conversation.to_spots(request.turns),
        words=to_plain_text(request.words, MAX_WORDS_CHARS),
        note=note,
    )


def _from_withdrawn(conversation: JoinedConversation, withdrawn: WithdrawnRequest) -> FollowUpDraft:
    title = to_one_line(withdrawn.title, MAX_TITLE_CHARS)
    return FollowUpDraft(
        "request",
        "other",
        title,
        turn_refs=conversation.to_spots(withdrawn.turns),
        is_withdrawn=True,
    )


def _from_event(
    call_id: str, data: dict[str, Any], today: date, mask: Callable[[str], str]
) -> FollowUpDraft:
    kind: RequestKind = data["kind"] if data.get("kind") in get_args(RequestKind) else "other"
    due, note = read_due(data.get("due"), today)
    return FollowUpDraft(
        kind="request",
        request_kind=kind,
        title=to_one_line(mask(_text(data.get("title"))), MAX_TITLE_CHARS),
        details=to_plain_text(mask(_text(data.get("details"))), MAX_DETAILS_CHARS),
        person=to_one_line(mask(_text(data.get("person"))), MAX_TITLE_CHARS) or None,
        due=due,
        turn_refs=((call_id, NOTED_SEQ),),
        note=note,
    )


def read_due(value: object, today: date) -> tuple[str | None, str]:
    """A day or an instant that has not passed; else nothing, and why."""
    if value is None or value == "":
        return None, ""
    day: date
    if isinstance(value, date) and not isinstance(value, datetime):
        day, text = value, value.isoformat()
    else:
        try:
            day, text = _parse_due(value)
        except ValueError:
            return None, NO_DATE
    return (text, "") if day >= today - DUE_TOLERANCE else (None, IN_THE_PAST)


def _parse_due(value: object) -> tuple[date, str]:
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value.strip()):
        day = date.fromisoformat(value.strip())
        return day, day.isoformat()
    instant = parse_instant(value)
    return instant.date(), format_instant(instant)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def to_one_line(text: str, max_chars: int) -> str:
    """Without what breaks or turns lines; cut with a mark that shows it."""
    line = " ".join(_UNSEEN.sub(" ", text).split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def to_plain_text(text: str, max_chars: int) -> str:
    lines = [to_one_line(line, max_chars) for line in text.splitlines()]
    whole = "\n".join(line for line in lines if line)
    return whole if len(whole) <= max_chars else whole[: max_chars - 1].rstrip() + "…"
