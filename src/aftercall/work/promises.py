"""What the agent said it would do, and which piece of work keeps it.

A promise that no work here keeps is broken once its time has passed, and unknown until then.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, tzinfo

from aftercall.llm.rules.dates import latest_day
from aftercall.model.followups import Draft, FollowUp, State
from aftercall.model.reading import Asked
from aftercall.work.conversation import Conversation
from aftercall.work.likeness import is_same, overlap
from aftercall.work.requests import LONGEST_TITLE, LONGEST_WORDS, one_line, plain, read_due

NO_WORK = "no work was asked for or done that keeps it"
NO_WAY = "no sink can do that"
ENOUGH = 0.5

# What reaches the caller from outside needs a sink that acts in the world; a task in a file is not an email.
_REACHES_OUT = re.compile(
    r"\b(?:e-?mail|mail|text|sms|message|send|forward|call|ring|phone)(?:ing|ed|s)?\s+(?:it\s+(?:over\s+)?to\s+)?you\b"
    r"|\b(?:get|getting|come|be)\s+back\s+(?:to|in touch with)\s+you\b|\blet(?:ting)?\s+you\s+know\b",
    re.IGNORECASE,
)
_ACTS = frozenset({"agent", "mcp", "webhook", "message"})


@dataclass(frozen=True)
class Kept:
    """How a promise stands, and what it rests on."""

    state: State
    reason: str = ""
    by: str | None = None
    link: str | None = None
    sink: str = ""
    """Where the work behind it went: what a promise is worth."""


def draft_promises(conversation: Conversation, asked: Asked) -> list[Draft]:
    drafts: list[Draft] = []
    today = conversation.whole.started_at.date()
    for promise in asked.promises:
        title = one_line(promise.title, LONGEST_TITLE)
        spots = conversation.place(promise.turns)
        if title and not any(is_same(title, "other", draft.title, "other") for draft in drafts):
            words = plain(promise.words, LONGEST_WORDS)
            due, _ = read_due(latest_day(words, today), today)
            drafts.append(Draft("promise", "other", title, due=due, spots=spots, words=words))
    return drafts


def is_overdue(promise: FollowUp, today: date, zone: tzinfo) -> bool:
    """Its day has passed. A day that had passed when we first read of it proves nothing."""
    known_since = promise.created_at.astimezone(zone).date()
    return promise.due is not None and f"{known_since}" <= promise.due[:10] < f"{today}"


def judge(promise: FollowUp, requests: Sequence[FollowUp], *, is_late: bool) -> Kept:
    """A promise is as good as the work behind it. `is_late`: it should have been kept by now."""
    unkept: State = "broken" if is_late else "unknown"
    work = _find_work(promise, requests)
    if work is None:
        return Kept(unkept, NO_WORK)
    if _REACHES_OUT.search(promise.title) and work.state not in ("withdrawn", "refused") and not _ACTS & set(work.sinks):
        return Kept(unkept, NO_WAY, work.id)
    match work.state:
        case "done":
            return Kept("done", "", work.id, work.link, work.sink)
        case "open" | "doing" | "held":
            return Kept("held" if work.state == "held" else "open", work.reason, work.id)
        case "withdrawn" | "refused":
            return Kept("withdrawn", "what it promised is not wanted any more" if work.state == "withdrawn" else work.reason, work.id)
        case _:
            return Kept(unkept, f"what it promised is {work.state}: {work.reason}", work.id)


def _find_work(promise: FollowUp, requests: Sequence[FollowUp]) -> FollowUp | None:
    fits = [(overlap(promise.title, _matter(request, promise)), request) for request in requests]
    best = max(fits, key=lambda fit: fit[0], default=None)
    if best and best[0] >= ENOUGH:
        return best[1]
    if overlap(promise.title, promise.title) == 0:  # "I'll do that": it means what was asked just before
        said = promise.turns[-1:]
        before = [(spot, request) for request in requests for spot in request.turns if (spot,) <= said]
        return max(before, key=lambda found: found[0])[1] if before else None
    return None


def _matter(request: FollowUp, promise: FollowUp) -> str:
    """What the request is about, without the promise itself: readers keep the agent's answer with the request."""
    told = [line for line in re.split(r"[.\n]+", request.details) if overlap(line, promise.title) < 1]
    return " ".join((request.title, *told))
