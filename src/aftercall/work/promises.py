"""What the agent said it would do, and which piece of work keeps it.

A promise that no work here keeps is broken once its time has passed, and unknown until then.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, tzinfo

from aftercall.llm.rules.dates import latest_day
from aftercall.model.followups import FollowUp, FollowUpDraft, FollowUpState
from aftercall.model.reading import RequestsReading
from aftercall.work.conversation import JoinedConversation
from aftercall.work.likeness import is_same_title, overlap
from aftercall.work.requests import (
    MAX_TITLE_CHARS,
    MAX_WORDS_CHARS,
    read_due,
    to_one_line,
    to_plain_text,
)

NO_WORK = "no work was asked for or done that keeps it"
NO_SINK_REASON = "no sink can do that"
MIN_TITLE_OVERLAP = 0.5

# What reaches the caller from outside needs a sink that acts in the world; a task in a file is
# not an email.
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
    """How a promise stands, and what it rests on."""

    state: FollowUpState
    reason: str = ""
    fulfilled_by: str | None = None
    link: str | None = None
    sink: str = ""
    """Where the work behind it went: what a promise is worth."""


def draft_promises(conversation: JoinedConversation, asked: RequestsReading) -> list[FollowUpDraft]:
    drafts: list[FollowUpDraft] = []
    today = conversation.merged_call.started_at.date()
    for promise in asked.promises:
        title = to_one_line(promise.title, MAX_TITLE_CHARS)
        spots = conversation.to_spots(promise.turns)
        if title and not any(
            is_same_title(title, "other", draft.title, "other") for draft in drafts
        ):
            words = to_plain_text(promise.words, MAX_WORDS_CHARS)
            due, _ = read_due(latest_day(words, today), today)
            drafts.append(
                FollowUpDraft("promise", "other", title, due=due, turn_refs=spots, words=words)
            )
    return drafts


def is_overdue(promise: FollowUp, today: date, zone: tzinfo) -> bool:
    """Its day has passed. A day that had passed when we first read of it proves nothing."""
    known_since = promise.created_at.astimezone(zone).date()
    return promise.due is not None and f"{known_since}" <= promise.due[:10] < f"{today}"


def judge_promise(
    promise: FollowUp, requests: Sequence[FollowUp], *, is_late: bool
) -> PromiseOutcome:
    """A promise is as good as the work behind it. `is_late`: it should have been kept by now."""
    unkept: FollowUpState = "broken" if is_late else "unknown"
    work = _find_work(promise, requests)
    if work is None:
        return PromiseOutcome(unkept, NO_WORK)
    if (
        _REACHES_OUT.search(promise.title)
        and work.state not in ("withdrawn", "refused")
        and not _ACTING_SINKS & set(work.sinks)
    ):
        return PromiseOutcome(unkept, NO_SINK_REASON, work.id)
    match work.state:
        case "done":
            return PromiseOutcome("done", "", work.id, work.link, work.sink)
        case "open" | "doing" | "held":
            return PromiseOutcome("held" if work.state == "held" else "open", work.reason, work.id)
        case "withdrawn" | "refused":
            return PromiseOutcome(
                "withdrawn",
                "what it promised is not wanted any more"
                if work.state == "withdrawn"
                else work.reason,
                work.id,
            )
        case _:
            return PromiseOutcome(
                unkept, f"what it promised is {work.state}: {work.reason}", work.id
            )


def _find_work(promise: FollowUp, requests: Sequence[FollowUp]) -> FollowUp | None:
    fits = [(overlap(promise.title, _matter(request, promise)), request) for request in requests]
    best = max(fits, key=lambda fit: fit[0], default=None)
    if best and best[0] >= MIN_TITLE_OVERLAP:
        return best[1]
    if (
        overlap(promise.title, promise.title) == 0
    ):  # "I'll do that": it means what was asked just before
        said = promise.turns[-1:]
        before = [
            (spot, request) for request in requests for spot in request.turns if (spot,) <= said
        ]
        return max(before, key=lambda found: found[0])[1] if before else None
    return None


def _matter(request: FollowUp, promise: FollowUp) -> str:
    """What the request is about, without the promise itself: readers keep the agent's answer
    with the request.
    """
    told = [
        line for line in re.split(r"[.\n]+", request.details) if overlap(line, promise.title) < 1
    ]
    return " ".join((request.title, *told))
