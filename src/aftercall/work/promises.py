"""What the agent promised, and which request keeps it.

A promise that no request keeps is unknown until its day has passed, then broken.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, tzinfo

from aftercall.english.dates import latest_day
from aftercall.model.followups import FollowUp, FollowUpDraft, FollowUpState
from aftercall.model.reading import RequestsReading
from aftercall.work.requests import (
    MAX_TITLE_CHARS,
    MAX_WORDS_CHARS,
    JoinedConversation,
    is_same_title,
    overlap,
    read_due,
    to_one_line,
    to_plain_text,
)

NO_WORK = "no work was asked for or done that keeps it"
NO_SINK_REASON = "no sink can do that"
MIN_TITLE_OVERLAP = 0.5

# A promise to contact the caller needs a sink that can: a task in a file is not an email.
_REACHES_OUT = re.compile(
    r"\b(?:e-?mail|mail|text|sms|message|send|forward|call|ring|phone)(?:ing|ed"
    r"|s)?\s+(?:it\s+(?:over\s+)?to\s+)?you\b"
    r"|\b(?:get|getting|come|be)\s+back\s+(?:to|in touch with)\s+you\b"
    r"|\blet(?:ting)?\s+you\s+know\b",
    re.IGNORECASE,
)
_ACTING_SINKS = frozenset({"agent", "mcp", "webhook", "message"})


@dataclass(frozen=True)
class PromiseOutcome:
    state: FollowUpState
    reason: str = ""
    fulfilled_by: str | None = None
    link: str | None = None
    sink: str = ""


def draft_promises(
    conversation: JoinedConversation, asked: RequestsReading
) -> list[FollowUpDraft]:
    drafts: list[FollowUpDraft] = []
    today = conversation.merged_call.started_at.date()
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
        return PromiseOutcome(unkept, NO_SINK_REASON, work.id)
    match work.state:
        case "done":
            return PromiseOutcome("done", "", work.id, work.link, work.sink)
        case "held":
            return PromiseOutcome("held", work.reason, work.id)
        case "open" | "doing":
            return PromiseOutcome("open", work.reason, work.id)
        case _:
            reason = f"what it promised is {work.state}: {work.reason}"
            return PromiseOutcome(unkept, reason, work.id)


def _find_work(promise: FollowUp, requests: Sequence[FollowUp]) -> FollowUp | None:
    fits = [
        (overlap(promise.title, _topic(request, promise)), request)
        for request in requests
    ]
    best = max(fits, key=lambda fit: fit[0], default=None)
    if best and best[0] >= MIN_TITLE_OVERLAP:
        return best[1]
    if overlap(promise.title, promise.title) > 0:
        return None
    # "I'll do that" names nothing: it means the request just before it.
    said = promise.turns[-1:]
    before = [
        (spot, request)
        for request in requests
        for spot in request.turns
        if (spot,) <= said
    ]
    return max(before, key=lambda found: found[0])[1] if before else None


def _topic(request: FollowUp, promise: FollowUp) -> str:
    """The request without the promise, which readers sometimes keep in its details."""
    lines = re.split(r"[.\n]+", request.details)
    return " ".join(
        [request.title, *(line for line in lines if overlap(line, promise.title) < 1)]
    )
