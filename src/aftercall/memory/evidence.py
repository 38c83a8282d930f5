"""The evidence of facts: the turns of a call that a draft rests on."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from aftercall.memory.claims import (
    Claim,
    content_words,
    look_up,
    look_up_again,
    read_plain,
)
from aftercall.memory.words import plain
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft, Visibility

MAX_CONTEXT_CHARS = 600
CONFIRM_BELOW_CONFIDENCE = 0.7  # a fact that was heard worse is read back to the caller
_AGREES = re.compile(
    r"\W*(?:(?:oh|um|uh|well|ah),? )*(?:yes|yeah|yep|yup|correct|right|exactly|sure|indeed"
    "|uh-huh|mm-?hm+|"
    r"that['’]?s (?:right|correct|it|true)|"
    r"of course|still (?:is|am|do|are)|it is|i am|i do|absolutely|definitely|sí|ja|oui)\b",
    re.I,
)
_TAKES_BACK = re.compile(
    r"\b(?:no|not|but|except|wrong|actually|anymore|any more|used to)\b", re.I
)


@dataclass(frozen=True)
class Evidence:
    """The turns that one draft rests on."""

    first_turn: int
    last_turn: int
    at: datetime
    context: str
    transcript_confidence: float
    is_confirmed: bool


@dataclass(frozen=True)
class AcceptedDraft:
    """A draft that may enter memory."""

    draft: FactDraft
    evidence: Evidence
    visibility: Visibility
    context: str
    claim: Claim
    correction_id: str | None = None

    @property
    def confidence(self) -> float:
        """Never higher than the confidence with which the words were heard."""
        return min(self.draft.confidence, self.evidence.transcript_confidence)

    @property
    def needs_confirmation(self) -> bool:
        return (
            self.evidence.transcript_confidence < CONFIRM_BELOW_CONFIDENCE
            and not self.evidence.is_confirmed
        )


class EvidenceFinder:
    """Finds drafts in one call. Its caches go with the call: it may hold secrets."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._normalise_words = cache(normalise_words)
        self._make_plain = make_plain = cache(plain)
        self._look_up = look = cache(look_up)
        self._get_content_words = cache(  # without self: a ring would outlive the call
            lambda at: content_words(make_plain(call.turns[at].text), look)
        )

    def find(self, draft: FactDraft) -> Evidence | None:
        """None if the words were not said, only the agent said them, or they do not support the
        fact.
        """
        words = self._normalise_words(draft.words)
        if not words:
            return None
        order = self._order_turns(draft)
        for at in order:
            if self._has_words(words, at) and (
                evidence := self._make_evidence(at, at, draft)
            ):
                return evidence
        for at in order:
            last = self._find_continuation(at, words)
            if last and (evidence := self._make_evidence(at, last, draft)):
                return evidence
        return None

    def _order_turns(self, draft: FactDraft) -> list[int]:
        """The turns that the draft names come first: the words are mostly there."""
        count = len(self.call.turns)
        named = [seq - 1 for seq in draft.turns if 0 < seq <= count]
        return [*named, *(at for at in range(count) if at not in named)]

    def _has_words(self, words: str, *turns: int) -> bool:
        said = " ".join(self._normalise_words(self.call.turns[at].text) for at in turns)
        return f" {words} " in f" {said} "

    def _find_continuation(self, at: int, words: str) -> int | None:
        """Words may run over two turns of one speaker, with one turn of the other between them."""
        turns = self.call.turns
        for following in range(at + 1, min(at + 3, len(turns))):
            if turns[following].speaker == turns[at].speaker:
                return following if self._has_words(words, at, following) else None
        return None

    def _make_evidence(
        self, first: int, last: int, draft: FactDraft
    ) -> Evidence | None:
        turns = self.call.turns
        is_confirmed = False
        if turns[first].speaker == "agent":
            answer = self._find_confirmation(last)
            if answer is None:
                return None
            last = answer
            is_confirmed = True
        elif _is_bare_yes(draft.words):
            if first == 0 or turns[first - 1].speaker != "agent":
                return None
            first, is_confirmed = first - 1, True
        if not self._supports(first, last, draft):
            return None
        said = [turn for turn in turns[first : last + 1] if turn.speaker == "caller"]
        confidences = [turn.confidence for turn in said if turn.confidence is not None]
        return Evidence(
            first_turn=turns[first].seq,
            last_turn=turns[last].seq,
            at=said[0].at,
            context=self._make_context(first, last),
            transcript_confidence=min(confidences, default=1.0),
            is_confirmed=is_confirmed,
        )

    def _find_confirmation(self, at: int) -> int | None:
        """The caller's next turn, if it agrees and takes nothing back."""
        answer = at + 1
        if (
            answer >= len(self.call.turns)
            or self.call.turns[answer].speaker != "caller"
        ):
            return None
        said = self.call.turns[answer].text
        agrees = _AGREES.match(said)
        return (
            answer if agrees and not _TAKES_BACK.search(said[agrees.end() :]) else None
        )

    def _supports(self, first: int, last: int, draft: FactDraft) -> bool:
        """Some content word of the fact was said there, or in the question before."""
        if first == last and self._has_words(self._normalise_words(draft.text), first):
            return True
        words = content_words(self._make_plain(draft.text), self._look_up)
        turns = range(max(0, first - 1), last + 1)
        return not words or any(words & self._get_content_words(at) for at in turns)

    def parse_claim(self, text: str, *, is_secret: bool) -> Claim:
        """The words of a secret are forgotten with the call; others are looked up once."""
        look = self._look_up if is_secret else look_up_again
        return read_plain(text, self._make_plain(text), look)

    def _make_context(self, first: int, last: int) -> str:
        turns = self.call.turns[max(0, first - 1) : last + 2]
        return clip_context(
            "\n".join(f"{turn.speaker} ({turn.seq}): {turn.text}" for turn in turns)
        )


def normalise_words(text: str) -> str:
    """Letters and figures only, for comparing a draft with what was said."""
    return " ".join(
        re.findall(r"[^\W_]+", text.casefold().replace("’", "").replace("'", ""))
    )


def clip_context(text: str) -> str:
    return (
        text if len(text) <= MAX_CONTEXT_CHARS else text[: MAX_CONTEXT_CHARS - 1] + "…"
    )


def _is_bare_yes(words: str) -> bool:
    agrees = _AGREES.match(words)
    return agrees is not None and len(words[agrees.end() :].split()) < 2
