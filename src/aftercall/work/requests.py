"""What the caller asked for, from the whole conversation and from what the agent wrote down during it: one draft a request."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, get_args

from aftercall.model.followups import Draft
from aftercall.model.instants import format_instant, parse_instant
from aftercall.model.reading import Asked, Request, RequestKind, Withdrawn
from aftercall.work.conversation import Conversation
from aftercall.work.likeness import is_same

LONGEST_TITLE = 200
LONGEST_DETAILS = 4000
LONGEST_WORDS = 1000
IN_THE_PAST = "the date that was said lay in the past"
NO_DATE = "the date that was said is none"
SLACK = timedelta(days=1)  # where the caller is, it may still be yesterday
NOTED = 0  # the turn number of what the agent wrote down: it rests on the call, not on one turn

_UNSEEN = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def draft_requests(conversation: Conversation, asked: Asked, mask: Callable[[str], str] = str) -> list[Draft]:
    """`mask` takes out what must not be kept; a reading has been masked already, what the agent wrote down has not."""
    today = conversation.whole.started_at.date()
    drafts = [_from_reading(conversation, request, today) for request in asked.requests]
    drafts += [_from_withdrawn(conversation, withdrawn) for withdrawn in asked.withdrawn]
    drafts += [_from_event(call_id, event.data, today, mask) for call_id, event in conversation.taken]
    return fold_same(draft for draft in drafts if draft.title)


def fold_same(drafts: Iterable[Draft]) -> list[Draft]:
    """The same thing once. What was read from the whole comes first and has the last word; later drafts fill its gaps."""
    kept: list[Draft] = []
    for draft in drafts:
        index = next((number for number, other in enumerate(kept) if _are_one(other, draft)), None)
        if index is None:
            kept.append(draft)
        else:
            kept[index] = _fill(kept[index], draft)
    return kept


def _are_one(first: Draft, second: Draft) -> bool:
    is_note = bool(second.spots) and second.spots[0][1] == NOTED  # written down before a date or a name was put right
    if not is_note and first.due and second.due and first.due != second.due:
        return False
    if not is_note and first.person and second.person and first.person.casefold() != second.person.casefold():
        return False
    kind = second.request_kind if first.is_withdrawn else first.request_kind
    return is_same(first.title, kind, second.title, second.request_kind)


def _fill(draft: Draft, other: Draft) -> Draft:
    return replace(
        draft,
        details=draft.details or other.details,
        person=draft.person or other.person,
        due=draft.due or other.due,
        spots=tuple(dict.fromkeys((*draft.spots, *other.spots))),
        words=draft.words or other.words,
        note=draft.note or other.note,
    )


def _from_reading(conversation: Conversation, request: Request, today: date) -> Draft:
    due, note = read_due(request.due, today)
    return Draft(
        kind="request",
        request_kind=request.kind,
        title=one_line(request.title, LONGEST_TITLE),
        details=plain(request.details, LONGEST_DETAILS),
        person=one_line(request.person or "", LONGEST_TITLE) or None,
        due=due,
        spots=conversation.place(request.turns),
        words=plain(request.words, LONGEST_WORDS),
        note=note,
    )


def _from_withdrawn(conversation: Conversation, withdrawn: Withdrawn) -> Draft:
    title = one_line(withdrawn.title, LONGEST_TITLE)
    return Draft("request", "other", title, spots=conversation.place(withdrawn.turns), is_withdrawn=True)


def _from_event(call_id: str, data: dict[str, Any], today: date, mask: Callable[[str], str]) -> Draft:
    kind: RequestKind = data["kind"] if data.get("kind") in get_args(RequestKind) else "other"
    due, note = read_due(data.get("due"), today)
    return Draft(
        kind="request",
        request_kind=kind,
        title=one_line(mask(_text(data.get("title"))), LONGEST_TITLE),
        details=plain(mask(_text(data.get("details"))), LONGEST_DETAILS),
        person=one_line(mask(_text(data.get("person"))), LONGEST_TITLE) or None,
        due=due,
        spots=((call_id, NOTED),),
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
    return (text, "") if day >= today - SLACK else (None, IN_THE_PAST)


def _parse_due(value: object) -> tuple[date, str]:
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value.strip()):
        day = date.fromisoformat(value.strip())
        return day, day.isoformat()
    instant = parse_instant(value)
    return instant.date(), format_instant(instant)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def one_line(text: str, longest: int) -> str:
    """Without what breaks or turns lines; cut with a mark that shows it."""
    line = " ".join(_UNSEEN.sub(" ", text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def plain(text: str, longest: int) -> str:
    lines = [one_line(line, longest) for line in text.splitlines()]
    whole = "\n".join(line for line in lines if line)
    return whole if len(whole) <= longest else whole[: longest - 1].rstrip() + "…"
