"""A request in the making: it gathers words, details and a day while the call goes on."""

import itertools
import re
from dataclasses import dataclass, field
from datetime import date

from aftercall.llm.rules.corrections import (
    erase,
    find_repair,
    is_broken_off,
    longest_without,
    new_number,
    settle_repairs,
)
from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.cues import TIME_ONLY
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.numbers import NUMBER_WORD, quantities
from aftercall.llm.rules.persons import person_in, person_noted
from aftercall.llm.rules.sentences import MASK, body_of
from aftercall.llm.rules.stems import stems
from aftercall.model.reading import Request, RequestKind, WithdrawnRequest

_TITLE_LENGTH = 100
_HEARD_BACK = 5  # of the agent's sentences about a request
# What sentences trail off with, longest first.
_TAILS = (
    *(
        "if that's possible",
        "if that's all right",
        "if that's okay",
        "if that's ok",
        "would you",
        "could you",
        "you know",
        "for me",
    ),
    *(
        "though",
        "please",
        "because",
        "cause",
        "just",
        "then",
        "like",
        "with",
        "it's",
        "and",
        "but",
        "the",
        "for",
        "um",
        "uh",
        "umm",
        "uhh",
    ),
    *("so", "or", "an", "to", "of", "is", "oh", "a"),
)
_POINTS = re.compile(
    r"\b(?:it|that|them|this|those|these|him|her|one|note|message)\b", re.I
)
_DANGLING = re.compile(
    r"(?:(?:^|\s+)(?:not|no|the|a|an|instead of|rather than|for|on|at|in|with|by|from|to|of"
    "|about|and|or|but|is|"
    r"are|it['’]s|this|next|was|until|till))*\s*$",
    re.I,
)
_DOUBLED = re.compile(r"\b(?:for|on|by|at) (?=(?:at|on|in|for|by|with)\b)", re.I)
_DENIES = re.compile(r"\b(?:not|instead of|rather than)(?: \w+)?\s*$", re.I)
_LISTED = re.compile(r",? (?:and|plus|with) (?:also )?|, ", re.I)
# then a bare number may be the hour
_CLOCK = re.compile(rf"\bat (?:{NUMBER_WORD}|\d)", re.I)
_FILLERS = Cue(r"(?:,\s*)?\b(?:umm?|uhh?|er+m|you know|i mean|sort of|kind of)\b,?\s*")
# figures and letters are said twice on purpose
_STUTTER = re.compile(rf"\b(?!{NUMBER_WORD}\b|\d|\w\b)(\w+)(?:, | )\1\b", re.I)


@dataclass(slots=True)
class Ask:
    kind: RequestKind
    act: str
    words: str
    turns: list[int]
    details: list[tuple[int, str]] = field(default_factory=list)
    due: date | None = None
    person: str | None = None
    is_stop: bool = False
    from_fault: bool = False
    is_question: bool = False
    is_done: bool = False
    is_soft: bool = False
    """It stands only once the agent says it will see to it."""
    denied: list[str] = field(default_factory=list)
    heard_back: list[tuple[int, str]] = field(default_factory=list)
    """How the agent put it when taking it up."""

    @property
    def stems(self) -> frozenset[str]:
        return stems(" ".join((self.act, *(text for _, text in self.details))))

    @property
    def told_at(self) -> int:
        """The last turn in which the caller said something of it; a yes to a day put forward
        does not count.
        """
        return max((self.turns[0], *(seq for seq, _ in self.details)))

    @property
    def all_said(self) -> str:
        return " . ".join((self.act, *(text for _, text in self.details)))

    @property
    def all_words(self) -> str:
        return self.all_said.lower()

    def move(self, day: date) -> None:
        """A new day makes the weekday named before wrong wherever it stands."""
        if self.due and self.due != day:
            self.denied.append(f"{self.due:%A}")
        self.due = day
        self.denied = [word for word in self.denied if word != f"{day:%A}"]

    def cite(self, *seqs: int) -> None:
        self.turns = sorted({*self.turns, *seqs})

    def add_detail(self, seq: int, text: str) -> None:
        if is_broken_off(text):
            return
        text = tidy(text)
        self.denied += self._outnumbered(text)
        if TIME_ONLY.match(text):
            self.details = [
                (at, known) for at, known in self.details if not TIME_ONLY.match(known)
            ]
        if (
            text
            and text.lower() not in self.act.lower()
            and all(text != known for _, known in self.details)
        ):
            self.details.append((seq, text))
        self.cite(seq)

    def _outnumbered(self, text: str) -> list[str]:
        """ "Ten people" once "twelve people" was said."""
        new = quantities(text)
        told = (
            [
                quantities(earlier)
                for earlier in (self.act, *(known for _, known in self.details))
            ]
            if new
            else []
        )
        return [
            f"{number} {noun}"
            for known in told
            for noun, number in known.items()
            if noun in new and new[noun] != number
        ]

    def _disputes(self, text: str) -> bool:
        """Whether the agent's words have another number than the caller's for the same things."""
        theirs = quantities(text)
        ours = (
            [
                quantities(told)
                for told in (self.act, *(known for _, known in self.details))
            ]
            if theirs
            else []
        )
        return any(
            noun in theirs and theirs[noun] != number
            for known in ours
            for noun, number in known.items()
        )

    def renumber(self, text: str, seq: int) -> bool:
        """ "Ten people." "Make that twelve.": changes the number, if it is clear which one is
        meant.
        """
        new, named = new_number(text), quantities(text)
        told = {
            noun: number
            for part in (self.act, *(known for _, known in self.details))
            for noun, number in quantities(part).items()
        }
        meant = {noun: number for noun, number in told.items() if noun in named} or told
        if not new or len(meant) != 1 or _CLOCK.search(self.all_said):
            return False
        ((noun, old),) = meant.items()
        pattern = re.compile(rf"\b{re.escape(old)}(?= {noun}\b)", re.I)
        self.act = pattern.sub(new, self.act)
        self.details = [(at, pattern.sub(new, known)) for at, known in self.details]
        self.denied.append(f"{old} {noun}")
        self.cite(seq)
        return True

    def replace_act(self, act: str, words: str, seq: int) -> None:
        """Another thing is wanted in place of the one asked for; what was agreed about it stays."""
        verb = (
            self.act.split(" ", 1)[0]
            if not act.lower().startswith(("the ", "that "))
            else ""
        )
        self.act, self.words = (
            f"{verb} {act}"
            if verb.isalpha() and verb.lower() not in ("a", "an", "the", "my")
            else act,
            words,
        )
        self.cite(seq)

    def drop_details(self, seq: int) -> None:
        """A repair within a turn takes back what was said just before it."""
        if self.details and self.details[-1][0] == seq:
            self.details.pop()

    def drop_saying(self, verb: str) -> bool:
        """ "Can you post it? No, don't post it.": a way of doing it is dropped, not the request."""
        kept = [
            (seq, text)
            for seq, text in self.details
            if not re.search(
                rf"\b{re.escape(verb)} (?:it|them|that|this)\b", text, re.I
            )
        ]
        dropped = len(kept) < len(self.details)
        self.details = kept
        return dropped

    def drop_part(self, about: frozenset[str]) -> bool:
        """ "Toner and paper", "scrap the paper": one of several things is dropped and the rest
        stays.
        """
        pieces = _LISTED.split(self.act)
        left = [
            piece for piece in pieces if not stems(piece) or not stems(piece) <= about
        ]
        if (
            len(left) == len(pieces)
            or not any(stems(piece) - about for piece in left)
            or not stems(pieces[0]) - about
        ):
            return False
        self.denied += [
            word
            for piece in pieces
            if piece not in left
            for word in re.findall(r"\w+", piece)
            if stems(word)
        ]
        self.act = " and ".join(left)
        return True

    def as_request(self) -> Request:
        title = self._title()
        details = [
            kept
            for _, text in self.details
            if (kept := tidy(self._without_denied(text)))
        ]
        said = [
            text
            for _, text in self.heard_back[-_HEARD_BACK:]
            if not self._disputes(text)
        ]
        heard_back = [
            kept for text in said if (kept := tidy(self._without_denied(text)))
        ]
        persons = (
            self.words,
            *details,
            *(heard_back if self.kind == "message" else ()),
        )
        return Request(
            kind=self.kind,
            title=title,
            details=". ".join(dict.fromkeys(details)),
            person=self.person
            or self._noted()
            or person_in(erase(" . ".join(persons), self.denied)),
            due=self.due,
            turns=tuple(self.turns),
            words=self._ground() or visible(self.words),
        )

    def _noted(self) -> str | None:
        return (
            person_noted(erase(self.act, self.denied)) if self.kind == "note" else None
        )

    def _ground(self) -> str:
        """The caller's words, cut before anything they took back."""
        words = self._verbatim(visible(self.words)) or longest_without(
            visible(self.words), self.denied
        )
        return (
            words[: repaired.start()].strip(" ,")
            if (repaired := find_repair(words))
            else words
        )

    def as_withdrawn(self) -> WithdrawnRequest:
        return WithdrawnRequest(title=self._title(), turns=tuple(self.turns))

    def _title(self) -> str:
        """An act that only points ("move it") is told together with what it points to."""
        act = self._without_denied(self.act) or erase(self.act, self.denied)
        pointed = next((text for _, text in self.details if stems(text)), "")
        return title_of(
            f"{tidy(act)}: {pointed}"
            if pointed and _POINTS.search(act) and len(act.split()) <= 6
            else act
        )

    def _without_denied(self, text: str) -> str:
        """Without what was taken back later; what a denial itself names goes with all that
        follows it.
        """
        kept: list[str] = []
        for piece in re.split(r",\s+", text):
            found = _mentions(piece, self.denied)
            if not found:
                kept.append(piece)
            elif any(_DENIES.search(piece[: match.start()]) for match in found):
                kept.append(
                    _DANGLING.sub("", piece[: min(match.start() for match in found)])
                )
                break
            elif stems(
                left := _DOUBLED.sub("", _DANGLING.sub("", erase(piece, self.denied)))
            ):
                kept.append(left)
        return ", ".join(filter(None, kept)).strip(" ,")

    def _verbatim(self, text: str) -> str:
        """The beginning of a text, up to what was taken back."""
        found = [match.start() for match in _mentions(text, self.denied)]
        return (
            _DANGLING.sub("", text[: min(found)]).strip(" ,")
            if found
            else text.strip(" ,")
        )


def _mentions(text: str, words: list[str]) -> list[re.Match[str]]:
    low = text.lower()
    said = (word for word in words if word.lower() in low)
    return [
        match
        for word in said
        if (match := re.search(rf"\b{re.escape(word)}\b", text, re.I))
    ]


def visible(text: str) -> str:
    """The longest piece of a text that no secret touches."""
    return (
        max(re.split(f"{MASK}+", text), key=len).strip(" ,;:")
        if MASK in text
        else text.strip()
    )


@remember
def tidy(text: str) -> str:
    """Without masks, fillers, stutters and the words sentences begin and end with."""
    text = body_of(visible(text))
    text = _FILLERS.sub(" ", text)
    words = text.lower().replace(",", "").split()
    if any(first == second for first, second in itertools.pairwise(words)):
        text = _STUTTER.sub(r"\1", text)
    text = settle_repairs(text)
    return " ".join(_without_tail(text).split()).strip(" ,;:.")


def _without_tail(text: str) -> str:
    """Without what a sentence trails off with, and the stops behind it."""
    while True:
        text = text.rstrip(" \n\t,;:.!?…-")
        low = text.lower().replace("’", "'")
        tail = next(
            (tail for tail in _TAILS if low == tail or low.endswith(f" {tail}")), ""
        )
        if not tail:
            return text
        text = text[: -len(tail)]


def title_of(act: str) -> str:
    text = tidy(act)
    if len(text) > _TITLE_LENGTH:
        text = text[:_TITLE_LENGTH].rsplit(" ", 1)[0]
        text = _without_tail(text)
    return text[:1].upper() + text[1:]


def as_caller(act: str) -> str:
    """An offer in the mouth of the one who accepts it."""
    return re.sub(
        r"\byour\b", "my", re.sub(r"\byou\b", "me", act, flags=re.I), flags=re.I
    )


def is_worth_keeping(ask: Ask) -> bool:
    return bool(tidy(ask.act)) and (
        bool(ask.stems) or ask.kind in ("message", "reminder")
    )
