"""What the caller asked for: one draft a request, from the whole conversation.

Drafts come from the reading and from what the agent noted during the calls.

What the agent promised is kept by a request. A promise that no request keeps is unknown until its
day has passed, then broken.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from hashlib import sha256
from typing import get_args

from aftercall.clock import format_instant, parse_instant
from aftercall.english.clauses import EMPTY_VERBS, POINTERS
from aftercall.english.dates import latest_day
from aftercall.english.text import is_other_amount
from aftercall.english.words import jaccard_similarity, overlap_coefficient, stems
from aftercall.model.calls import MAX_TURNS, REQUEST_EVENT, Call, Event
from aftercall.model.followups import (
    PERSON,
    FollowUp,
    FollowUpDraft,
    FollowUpState,
    TurnRef,
)
from aftercall.model.json_fields import Json
from aftercall.model.reading import (
    Request,
    RequestKind,
    RequestsReading,
    UnclearRequest,
    WithdrawnRequest,
)

MAX_TITLE_CHARS = 200
MAX_DETAILS_CHARS = 4000
MAX_WORDS_CHARS = 1000
IN_THE_PAST = "the date that was said lay in the past"
NO_DATE = "the date that was said is none"
MAX_DUE_YEARS = 100
DUE_TOLERANCE = timedelta(days=1)  # in the caller's zone it may still be yesterday
NOTED_SEQ = (
    0  # the turn number of what the agent noted: it belongs to the call, not to a turn
)
MIN_SIMILARITY = 0.5  # of two readings of the same words
MIN_SIMILARITY_ANY_KIND = 0.67
# Words that name the action, not its object: two bugs are two bugs.
_ACTION_STEMS = stems(
    "open opened bug issue ticket problem file report create make add write note task "
    "remember follow message email text fix check"
)
_NOT_WORDS = re.compile(r"[\W_]+")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


@dataclass(frozen=True)
class JoinedConversation:
    """The legs of a conversation as one transcript.

    `merged_call` numbers all turns through; `spots` names the leg and turn behind each of them.
    """

    id: str
    legs: tuple[Call, ...]
    merged_call: Call
    spots: tuple[TurnRef, ...]

    @property
    def noted_requests(self) -> list[tuple[str, Event]]:
        """Requests that the agent noted during a call, with the call's id."""
        events = [(leg.id, event) for leg in self.legs for event in leg.events]
        return [
            (call_id, event) for call_id, event in events if event.kind == REQUEST_EVENT
        ]

    def to_spots(self, turns: Sequence[int]) -> tuple[TurnRef, ...]:
        return tuple(self.spots[seq - 1] for seq in turns if 0 < seq <= len(self.spots))

    def count_caller_turns(self, call_id: str) -> int:
        pairs = zip(self.spots, self.merged_call.turns, strict=True)
        turns = [turn for spot, turn in pairs if spot[0] == call_id]
        return sum(
            turn.speaker == "caller" and bool(turn.text.strip()) for turn in turns
        )


def join_legs(conversation: str, calls: Sequence[Call]) -> JoinedConversation:
    """Legs in the order they began, each with its late words.

    Legs that two processes recorded side by side are told in the order of time.
    """
    spoken = [(call.id, turn) for call in calls for turn in call.turns]
    ends = {call.id: call.ended_at for call in calls}
    if any(
        call.resumes in ends and call.started_at < ends[call.resumes] for call in calls
    ):
        spoken.sort(key=lambda told: told[1].at)
    spoken = spoken[-MAX_TURNS:]
    turns = [
        turn.model_copy(update={"seq": seq}) for seq, (_, turn) in enumerate(spoken, 1)
    ]
    merged: Json = {
        "id": conversation,
        "turns": tuple(turns),
        "events": (),
        "ended_at": max(call.ended_at for call in calls),
    }
    spots = tuple((call_id, turn.seq) for call_id, turn in spoken)
    return JoinedConversation(
        conversation, tuple(calls), calls[0].model_copy(update=merged), spots
    )


def normalise_title(title: str) -> str:
    return _NOT_WORDS.sub(" ", title.casefold()).strip()


def key_of(conversation: str, kind: str, request_kind: str, title: str) -> str:
    """The key of a follow-up. It stays the same when a lost database is rebuilt."""
    parts = (conversation, kind, request_kind, normalise_title(title))
    return sha256("\0".join(parts).encode()).hexdigest()[:32]


def is_same_title(title: str, kind: str, other: str, other_kind: str) -> bool:
    """Whether one title says what the other says, or more.

    Ten chairs and ten tables are two things, however much else the titles share; so are two boxes
    and three.
    """
    if normalise_title(title) == normalise_title(other):
        return True
    if is_other_amount(title, other):
        return False
    first = _topic_stems(title)
    second = _topic_stems(other)
    is_told = min(len(first), len(second)) > 1
    is_within = is_told and overlap_coefficient(first, second) == 1
    is_near = jaccard_similarity(first, second) >= MIN_SIMILARITY_ANY_KIND
    return is_within and (kind == other_kind or is_near)


def is_like(title: str, other: str) -> bool:
    """Whether two titles may be two readings of the same words."""
    first = _topic_stems(title)
    second = _topic_stems(other)
    return jaccard_similarity(first, second) >= MIN_SIMILARITY


def overlap(first: str, second: str) -> float:
    """The share of the shorter text's topic that the other has, too."""
    return overlap_coefficient(_topic_stems(first), _topic_stems(second))


def _topic_stems(text: str) -> frozenset[str]:
    return stems(text) - _ACTION_STEMS or stems(text)


def topic_words(title: str) -> set[str]:
    """The words of a title that name its object, in lower case."""
    words = set(_NOT_WORDS.sub(" ", title.casefold()).split())
    topic = _topic_stems(title)
    return {word for word in words if stems(word) & topic}


def draft_requests(
    conversation: JoinedConversation,
    asked: RequestsReading,
    zone: tzinfo,
    mask: Callable[[str], str] = str,
) -> list[FollowUpDraft]:
    """`mask` removes the passcode from what the agent noted; a reading is masked already."""
    today = conversation.merged_call.started_at.astimezone(zone).date()
    drafts = [_from_reading(conversation, request, today) for request in asked.requests]
    drafts += [
        _from_withdrawn(conversation, withdrawn) for withdrawn in asked.withdrawn
    ]
    drafts += [
        _from_event(call_id, event.data, today, mask)
        for call_id, event in conversation.noted_requests
    ]
    drafts += [_from_unclear(conversation, unclear) for unclear in asked.unclear]
    return merge_duplicates(draft for draft in drafts if draft.title)


def merge_duplicates(drafts: Iterable[FollowUpDraft]) -> list[FollowUpDraft]:
    """Earlier drafts win; later ones of the same request only fill their gaps."""
    merged: list[FollowUpDraft] = []
    for draft in drafts:
        index = next(
            (at for at, other in enumerate(merged) if _are_one(other, draft)), None
        )
        if index is None:
            merged.append(draft)
        else:
            merged[index] = _fill(merged[index], draft)
    return merged


def _are_one(first: FollowUpDraft, second: FollowUpDraft) -> bool:
    # A note may be older than the correction of its date or person.
    """Whether two drafts ask for the same: title and kind, no other date, no other person."""
    is_note = bool(second.turn_refs) and second.turn_refs[0][1] == NOTED_SEQ
    if not is_note:
        if first.due and second.due and first.due != second.due:
            return False
        persons = {draft.person.casefold() for draft in (first, second) if draft.person}
        if len(persons) > 1:
            return False
    has_no_kind = first.is_withdrawn or second.is_unclear
    kind = second.request_kind if has_no_kind else first.request_kind
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


def _from_reading(
    conversation: JoinedConversation, request: Request, today: date
) -> FollowUpDraft:
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


def _from_withdrawn(
    conversation: JoinedConversation, withdrawn: WithdrawnRequest
) -> FollowUpDraft:
    title = to_one_line(withdrawn.title, MAX_TITLE_CHARS)
    spots = conversation.to_spots(withdrawn.turns)
    return FollowUpDraft("request", "other", title, turn_refs=spots, is_withdrawn=True)


def _from_unclear(
    conversation: JoinedConversation, unclear: UnclearRequest
) -> FollowUpDraft:
    return FollowUpDraft(
        kind="request",
        request_kind="task",
        title=to_one_line(unclear.title, MAX_TITLE_CHARS),
        turn_refs=conversation.to_spots(unclear.turns),
        words=to_plain_text(unclear.words, MAX_WORDS_CHARS),
        is_unclear=True,
    )


def _from_event(
    call_id: str, data: Json, today: date, mask: Callable[[str], str]
) -> FollowUpDraft:
    kind: RequestKind = (
        data["kind"] if data.get("kind") in get_args(RequestKind) else "other"
    )
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
    """A day or an instant that has not passed; else None and the reason."""
    if value is None or value == "":
        return None, ""
    try:
        day, text = _parse_due(value)
    except ValueError:
        return None, NO_DATE
    if day.year > today.year + MAX_DUE_YEARS:
        return None, NO_DATE
    return (text, "") if day >= today - DUE_TOLERANCE else (None, IN_THE_PAST)


def _parse_due(value: object) -> tuple[date, str]:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value, value.isoformat()
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value.strip()):
        day = date.fromisoformat(value.strip())
        return day, day.isoformat()
    instant = parse_instant(value)
    return instant.date(), format_instant(instant)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def to_one_line(text: str, max_chars: int) -> str:
    """Without control and direction characters; an ellipsis marks a cut."""
    line = " ".join(_UNSEEN.sub(" ", text).split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def to_plain_text(text: str, max_chars: int) -> str:
    lines = [to_one_line(line, max_chars) for line in text.splitlines()]
    whole = "\n".join(line for line in lines if line)
    return whole if len(whole) <= max_chars else whole[: max_chars - 1].rstrip() + "…"


NO_WORK = "nothing here tells whether it was kept"
SAME_WORDS = "waits until the request is done"
ONLY_NOTED = "it is written down, but nothing here can reach the caller"
MIN_TITLE_OVERLAP = 0.5
NOT_WANTED: tuple[FollowUpState, ...] = ("withdrawn", "refused")

# A promise to contact the caller needs a sink that can: a task in a file is not an email.
_REACHES_OUT = re.compile(
    r"\b(?:e-?mail|mail|text|sms|message|send|forward|call|ring|phone)(?:ing|ed"
    r"|s)?\s+(?:it\s+(?:over\s+)?to\s+)?you\b"
    r"|\b(?:get|getting|come|be)\s+back\s+(?:to|in touch with)\s+you\b"
    r"|\blet(?:ting)?\s+you\s+know\b",
    re.IGNORECASE,
)
_REACHES_CALLER = re.compile(
    r"\b(?:call|ring|phone|text|e-?mail|tell|let) (?:me|us)\b|\bcall ?back\b"
    r"|\b(?:give|drop) (?:me|us) an? ",
    re.IGNORECASE,
)
_ACTING_SINKS = frozenset({"agent", "mcp", "webhook", "message", PERSON})


@dataclass(frozen=True)
class PromiseOutcome:
    state: FollowUpState
    reason: str = field(default="", repr=False)
    fulfilled_by: str | None = None
    link: str | None = None
    sink: str = ""


def draft_promises(
    conversation: JoinedConversation, asked: RequestsReading, zone: tzinfo
) -> list[FollowUpDraft]:
    drafts: list[FollowUpDraft] = []
    today = conversation.merged_call.started_at.astimezone(zone).date()
    for promise in asked.promises:
        title = to_one_line(promise.title, MAX_TITLE_CHARS)
        is_known = any(
            is_same_title(title, "other", draft.title, "other") for draft in drafts
        )
        if not title or is_known:
            continue
        words = to_plain_text(promise.words, MAX_WORDS_CHARS)
        due, _ = read_due(latest_day(words, today), today)
        spots = conversation.to_spots(promise.turns)
        drafts.append(
            FollowUpDraft(
                "promise", "other", title, due=due, turn_refs=spots, words=words
            )
        )
    return drafts


def is_overdue(promise: FollowUp, today: date, zone: tzinfo) -> bool:
    """Its day has passed. A day that had passed before the promise was read proves nothing."""
    known_since = promise.created_at.astimezone(zone).date()
    return promise.due is not None and f"{known_since}" <= promise.due[:10] < f"{today}"


def judge_promise(
    promise: FollowUp, requests: Sequence[FollowUp], *, is_late: bool
) -> PromiseOutcome:
    """The promise stands as the request behind it. `is_late`: it should be kept by now."""
    unkept: FollowUpState = "broken" if is_late else "unknown"
    work = _find_work(promise, requests)
    if work is None:
        return PromiseOutcome(unkept, NO_WORK)
    if work.state == "withdrawn":
        reason = "what it promised is not wanted any more"
        return PromiseOutcome("withdrawn", reason, work.id)
    if work.state == "refused":
        return PromiseOutcome("withdrawn", work.reason, work.id)
    if _REACHES_OUT.search(promise.title) and not _ACTING_SINKS & set(work.sinks):
        return PromiseOutcome(unkept, ONLY_NOTED, work.id)
    is_named = normalise_title(work.title) != normalise_title(promise.title)
    waits = f"waits for: {work.title}" if is_named else SAME_WORDS
    match work.state:
        case "done":
            return PromiseOutcome("done", "", work.id, work.link, work.sink)
        case "held":
            return PromiseOutcome("held", waits, work.id)
        case "open" | "doing":
            return PromiseOutcome("open", waits, work.id)
        case "unclear":
            return PromiseOutcome(unkept, waits, work.id)
        case _:
            reason = f"what it promised is {work.state}: {work.reason}"
            return PromiseOutcome(unkept, reason, work.id)


def _find_work(promise: FollowUp, requests: Sequence[FollowUp]) -> FollowUp | None:
    """The request that says the same; else one that stands and that the promise answers."""

    def measure(request: FollowUp) -> float:
        return overlap(promise.title, _topic(request, promise))

    nearest = sorted(requests, key=measure, reverse=True)
    if nearest and measure(nearest[0]) >= MIN_TITLE_OVERLAP:
        return nearest[0]
    asked = {(call_id, seq - 1) for call_id, seq in promise.turns}
    for request in nearest:
        is_answered = not asked.isdisjoint(request.turns)
        is_wanted = request.state not in NOT_WANTED
        if is_answered and is_wanted and _shares_topic(promise, request):
            return request
    return None


def _shares_topic(promise: FollowUp, request: FollowUp) -> bool:
    """Whether a promise names anything of a request, or points ("I'll do that")."""
    is_pointing = not POINTERS.isdisjoint(normalise_title(promise.words).split())
    is_contact = _REACHES_CALLER.search(request.title) is not None
    if is_pointing or (is_contact and _REACHES_OUT.search(promise.title)):
        return True
    named = stems(promise.title) - EMPTY_VERBS
    shared = named & stems(_topic(request, promise))
    return bool(shared) or not named


def _topic(request: FollowUp, promise: FollowUp) -> str:
    """The request without the promise, which readers sometimes keep in its details."""
    promised = normalise_title(f"{promise.words} {promise.title}")
    about = _topic_stems(promise.title)
    told = [
        line
        for line in re.split(r"[.\n]+", request.details)
        if normalise_title(line) not in promised and not about <= stems(line)
    ]
    return " ".join([request.title, *told])
