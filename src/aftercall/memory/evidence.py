"""Where a fact's words stand in the call, who said them, and how well they were heard.

What only the agent said is no evidence: it may have been read out from memory. The caller's yes to it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from aftercall.memory.claims import Claim, Word, content_words, look_up, read_plain
from aftercall.memory.wording import plain
from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft
from aftercall.model.turns import Turn

MAX_CONTEXT = 600
_AGREES = re.compile(
    r"\W*(?:(?:oh|um|uh|well|ah),? )*(?:yes|yeah|yep|yup|correct|right|exactly|sure|indeed|uh-huh|mm-?hm+|"
    r"that['’]?s (?:right|correct|it|true)|"
    r"of course|still (?:is|am|do|are)|it is|i am|i do|absolutely|definitely|sí|ja|oui)\b",
    re.I,
)
_TAKES_BACK = re.compile(r"\b(?:no|not|but|except|wrong|actually|anymore|any more|used to)\b", re.I)


@dataclass(frozen=True)
class Ground:
    """What one draft rests on."""

    first_turn: int
    last_turn: int
    at: datetime
    context: str
    heard: float
    is_confirmed: bool


class Transcript:
    """A call, prepared for looking many drafts up in it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._folds: dict[str, str] = {}
        self._kept: dict[int, frozenset[str]] = {}
        self._plain: dict[str, str] = {}
        self._known: dict[str, Word] = {}

    def find(self, draft: FactDraft) -> Ground | None:
        """None where the words were not said, were only the agent's, or have nothing to do with the fact."""
        words = self._fold(draft.words)
        if not words:
            return None
        for at in self._order(draft):
            if self._holds(at, words) and (ground := self._ground(at, at, draft)):
                return ground
        for at in self._order(draft):
            if (last := self._runs_on(at, words)) and (ground := self._ground(at, last, draft)):
                return ground
        return None

    def _order(self, draft: FactDraft) -> Iterator[int]:
        """The turns that the draft names first: the words are mostly there."""
        named = [seq - 1 for seq in draft.turns if 0 < seq <= len(self.call.turns)]
        yield from named
        yield from (at for at in range(len(self.call.turns)) if at not in named)

    def _folded(self, at: int) -> str:
        return f" {self._fold(self.call.turns[at].text)} "

    def _fold(self, text: str) -> str:
        if text not in self._folds:
            self._folds[text] = fold(text)
        return self._folds[text]

    def _holds(self, at: int, words: str) -> bool:
        return f" {words} " in self._folded(at)

    def _runs_on(self, at: int, words: str) -> int | None:
        """Words may run over two turns of one speaker, with a word of the other between them."""
        turns = self.call.turns
        following = next((n for n in range(at + 1, min(at + 3, len(turns))) if turns[n].speaker == turns[at].speaker), None)
        if following is None:
            return None
        return following if f" {words} " in f"{self._folded(at).rstrip()} {self._folded(following).lstrip()}" else None

    def _ground(self, first: int, last: int, draft: FactDraft) -> Ground | None:
        turns = self.call.turns
        is_confirmed = False
        if turns[first].speaker == "agent":
            answer = self._answer_to(last)
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
        heard = min((turn.confidence for turn in rests_on if turn.confidence is not None), default=1.0)
        return Ground(turns[first].seq, turns[last].seq, rests_on[0].at, self._around(first, last), heard, is_confirmed)

    def _answer_to(self, at: int) -> int | None:
        """The caller's turn right after, if it agrees and takes nothing back."""
        if at + 1 >= len(self.call.turns) or self.call.turns[at + 1].speaker != "caller":
            return None
        said = self.call.turns[at + 1].text
        agrees = _AGREES.match(said)
        return at + 1 if agrees and not _TAKES_BACK.search(said[agrees.end() :]) else None

    def _supports(self, first: int, last: int, draft: FactDraft) -> bool:
        """Something of what the fact says was said there, or in the question before."""
        if first == last and self._holds(first, self._fold(draft.text)):
            return True
        told = content_words(self.plain(draft.text), self._look_up)
        return not told or any(told & self._words(at) for at in (*range(first, last + 1), *range(max(0, first - 1), first)))

    def claim(self, text: str) -> Claim:
        """What a fact says, taken apart. Its words are forgotten with the call: it may be a secret."""
        return read_plain(text, self.plain(text), self._look_up)

    def plain(self, text: str) -> str:
        """The text in its plain form, made once a call."""
        if text not in self._plain:
            self._plain[text] = plain(text)
        return self._plain[text]

    def _look_up(self, word: str) -> Word:
        if word not in self._known:
            self._known[word] = look_up(word)
        return self._known[word]

    def _words(self, at: int) -> frozenset[str]:
        if at not in self._kept:
            self._kept[at] = content_words(self.plain(self.call.turns[at].text), self._look_up)
        return self._kept[at]

    def _around(self, first: int, last: int) -> str:
        turns = self.call.turns[max(0, first - 1) : last + 2]
        return clip("\n".join(_line(turn) for turn in turns))


def fold(text: str) -> str:
    """What the evidence is compared by: letters and figures only."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold().replace("’", "").replace("'", "")))


def clip(text: str) -> str:
    return text if len(text) <= MAX_CONTEXT else text[: MAX_CONTEXT - 1] + "…"


def _line(turn: Turn) -> str:
    return f"{turn.speaker} ({turn.seq}): {turn.text}"


def _is_bare_yes(words: str) -> bool:
    agrees = _AGREES.match(words)
    return bool(agrees) and len(words[agrees.end() :].split()) < 2 if agrees else False
