"""From a reader's drafts to those that may enter memory: grounded, sure enough, not too many,
at their right level.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from aftercall.llm.rules.secrets import Secret
from aftercall.memory.claims import Claim, Word, content_words, look_up, read_plain
from aftercall.memory.visibility import classify, find_call_secrets, mask_secrets, to_secrets
from aftercall.memory.wording import plain
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft, Visibility
from aftercall.model.turns import Turn
from aftercall.settings import Settings

MAX_CONTEXT_CHARS = 600
_AGREES = re.compile(
    r"\W*(?:(?:oh|um|uh|well|ah),? )*(?:yes|yeah|yep|yup|correct|right|exactly|sure|indeed"
    "|uh-huh|mm-?hm+|"
    r"that['’]?s (?:right|correct|it|true)|"
    r"of course|still (?:is|am|do|are)|it is|i am|i do|absolutely|definitely|sí|ja|oui)\b",
    re.I,
)
_TAKES_BACK = re.compile(r"\b(?:no|not|but|except|wrong|actually|anymore|any more|used to)\b", re.I)


@dataclass(frozen=True)
class Evidence:
    """What one draft rests on."""

    first_turn: int
    last_turn: int
    at: datetime
    context: str
    transcript_confidence: float
    is_confirmed: bool


class EvidenceFinder:
    """A call, prepared for looking many drafts up in it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._folds: dict[str, str] = {}
        self._content_words: dict[int, frozenset[str]] = {}
        self._plain: dict[str, str] = {}
        self._known: dict[str, Word] = {}

    def find(self, draft: FactDraft) -> Evidence | None:
        """None where the words were not said, were only the agent's, or have nothing to do with
        the fact.
        """
        words = self._fold(draft.words)
        if not words:
            return None
        for at in self._turn_order(draft):
            if self._has_words(at, words) and (ground := self._make_evidence(at, at, draft)):
                return ground
        for at in self._turn_order(draft):
            if (last := self._find_continuation(at, words)) and (
                ground := self._make_evidence(at, last, draft)
            ):
                return ground
        return None

    def _turn_order(self, draft: FactDraft) -> Iterator[int]:
        """The turns that the draft names first: the words are mostly there."""
        named = [seq - 1 for seq in draft.turns if 0 < seq <= len(self.call.turns)]
        yield from named
        yield from (at for at in range(len(self.call.turns)) if at not in named)

    def _folded(self, at: int) -> str:
        return f" {self._fold(self.call.turns[at].text)} "

    def _fold(self, text: str) -> str:
        if text not in self._folds:
            self._folds[text] = normalise_words(text)
        return self._folds[text]

    def _has_words(self, at: int, words: str) -> bool:
        return f" {words} " in self._folded(at)

    def _find_continuation(self, at: int, words: str) -> int | None:
        """Words may run over two turns of one speaker, with a word of the other between them."""
        turns = self.call.turns
        following = next(
            (
                n
                for n in range(at + 1, min(at + 3, len(turns)))
                if turns[n].speaker == turns[at].speaker
            ),
            None,
        )
        if following is None:
            return None
        return (
            following
            if f" {words} " in f"{self._folded(at).rstrip()} {self._folded(following).lstrip()}"
            else None
        )

    def _make_evidence(self, first: int, last: int, draft: FactDraft) -> Evidence | None:
        turns = self.call.turns
        is_confirmed = False
        if turns[first].speaker == "agent":
            answer = self._find_confirmation(last)
            if answer is None:
                return None
            last, is_confirmed = answer, True
        elif _is_bare_yes(draft.words):
            if first == 0 or turns[first - 1].speaker != "agent":
                return None
            first, is_confirmed = first - 1, True
        if not self._supports(first, last, draft):
            return None
        rests_on = [turn for turn in turns[first : last + 1] if turn.speaker == "caller"]
        heard = min(
            (turn.confidence for turn in rests_on if turn.confidence is not None), default=1.0
        )
        return Evidence(
            turns[first].seq,
            turns[last].seq,
            rests_on[0].at,
            self._around(first, last),
            heard,
            is_confirmed,
        )

    def _find_confirmation(self, at: int) -> int | None:
        """The caller's turn right after, if it agrees and takes nothing back."""
        if at + 1 >= len(self.call.turns) or self.call.turns[at + 1].speaker != "caller":
            return None
        said = self.call.turns[at + 1].text
        agrees = _AGREES.match(said)
        return at + 1 if agrees and not _TAKES_BACK.search(said[agrees.end() :]) else None

    def _supports(self, first: int, last: int, draft: FactDraft) -> bool:
        """Something of what the fact says was said there, or in the question before."""
        if first == last and self._has_words(first, self._fold(draft.text)):
            return True
        told = content_words(self.normalise(draft.text), self._look_up)
        return not told or any(
            told & self._words(at)
            for at in (*range(first, last + 1), *range(max(0, first - 1), first))
        )

    def parse_claim(self, text: str) -> Claim:
        """What a fact says, taken apart.

        Its words are forgotten with the call: it may be a secret.
        """
        return read_plain(text, self.normalise(text), self._look_up)

    def normalise(self, text: str) -> str:
        """The text in its plain form, made once a call."""
        if text not in self._plain:
            self._plain[text] = plain(text)
        return self._plain[text]

    def _look_up(self, word: str) -> Word:
        if word not in self._known:
            self._known[word] = look_up(word)
        return self._known[word]

    def _words(self, at: int) -> frozenset[str]:
        if at not in self._content_words:
            self._content_words[at] = content_words(
                self.normalise(self.call.turns[at].text), self._look_up
            )
        return self._content_words[at]

    def _around(self, first: int, last: int) -> str:
        turns = self.call.turns[max(0, first - 1) : last + 2]
        return clip("\n".join(_line(turn) for turn in turns))


def normalise_words(text: str) -> str:
    """What the evidence is compared by: letters and figures only."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold().replace("’", "").replace("'", "")))


def clip(text: str) -> str:
    return text if len(text) <= MAX_CONTEXT_CHARS else text[: MAX_CONTEXT_CHARS - 1] + "…"


def _line(turn: Turn) -> str:
    return f"{turn.speaker} ({turn.seq}): {turn.text}"


def _is_bare_yes(words: str) -> bool:
    agrees = _AGREES.match(words)
    return bool(agrees) and len(words[agrees.end() :].split()) < 2 if agrees else False


CONFIRM_BELOW_CONFIDENCE = (
    0.7  # heard worse than this, a fact is to be read back before it is relied on
)


@dataclass(frozen=True)
class AcceptedDraft:
    """A draft that may enter memory."""

    draft: FactDraft
    evidence: Evidence
    visibility: Visibility
    context: str
    claim: Claim

    @property
    def confidence(self) -> float:
        """No fact is surer than the words it rests on were heard."""
        return min(self.draft.confidence, self.evidence.transcript_confidence)

    @property
    def needs_confirmation(self) -> bool:
        return (
            self.evidence.transcript_confidence < CONFIRM_BELOW_CONFIDENCE
            and not self.evidence.is_confirmed
        )


@dataclass(frozen=True)
class FilteredDrafts:
    accepted: tuple[AcceptedDraft, ...]
    refused: int
    dropped: int


def filter_drafts(call: Call, drafts: Sequence[FactDraft], settings: Settings) -> FilteredDrafts:
    transcript = EvidenceFinder(call)
    found: list[tuple[FactDraft, Evidence]] = []
    refused = dropped = 0
    for draft in drafts:
        if (
            len(found) >= settings.extraction.max_facts
            or draft.confidence < settings.extraction.min_confidence
        ):
            dropped += 1
        elif (ground := transcript.find(draft)) is None:
            refused += 1
        else:
            found.append((draft, ground))
    return FilteredDrafts(
        tuple(_assign_visibility(transcript, found, find_call_secrets(call, drafts), settings)),
        refused,
        dropped,
    )


def _assign_visibility(
    transcript: EvidenceFinder,
    found: list[tuple[FactDraft, Evidence]],
    confidences: list[Secret],
    settings: Settings,
) -> Iterator[AcceptedDraft]:
    """What one fact makes a secret is hidden in the words around all the others."""
    levels = [classify(draft, confidences, settings.memory) for draft, _ in found]
    raised = [
        draft.words for (draft, _), level in zip(found, levels, strict=True) if level == "secret"
    ]
    hidden = [*confidences, *to_secrets(raised)]
    for (draft, ground), level in zip(found, levels, strict=True):
        context = ground.context if level == "secret" else mask_secrets(ground.context, hidden)
        yield AcceptedDraft(draft, ground, level, context, transcript.parse_claim(draft.text))
