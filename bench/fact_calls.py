"""Calls as callers make them, for the benches of memory: new things, things said before, and
changes of mind.

Every caller has words of their own, so that nothing is known from another caller's call.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from aftercall.model.calls import Call
from aftercall.model.reading import Category, FactDraft
from fakes import START, make_call

KNOWN = (0, 10, 40, 100, 200)
FEWEST, MOST = 5, 20
REPEATED, CHANGED = 0.25, 0.15
_SYLLABLES = [
    a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or", "el")
]
_PLAIN: tuple[tuple[Category, str], ...] = (
    ("preference", "I really like {a} with {b} in the evening"),
    ("preference", "I can't stand {a} music when I'm working on {b}"),
    ("person", "My {kin} {A} plays {b} in a small {c} club"),
    ("person", "{A} from {B} looks after our {c} garden"),
    ("routine", "On {day}s I take the {a} bus to {B}"),
    ("technical", "The {a} in the {b} room makes a {c} noise"),
    ("decision", "We decided to paint the {a} room {b}"),
    ("action_item", "I have to bring the {a} papers to {B} by {day}"),
    ("emotional", "I was quite upset about the {a} at the {b} party"),
    ("technical", "We run {a} version {n} on the {b} machines"),
)
_SLOTS: tuple[tuple[Category, str], ...] = (
    ("person", "I live in {A}"),
    ("person", "My email address is {a}@{b}.com"),
    ("preference", "Please call me after {n}"),
    ("routine", "I get up at {n}"),
    ("technical", "My printer is a {A}"),
    ("person", "My dentist is Doctor {A}"),
    ("person", "My work phone number is 0155 {n}{n} {n}"),
    ("person", "My daughter is called {A}"),
)
_KIN = ("son", "daughter", "wife", "brother", "neighbour", "colleague", "cousin")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


@dataclass(frozen=True)
class Told:
    call: Call
    drafts: tuple[FactDraft, ...]


class Teller:
    """One caller, who remembers what they said."""

    def __init__(self, number: int) -> None:
        self._rng = random.Random(number)
        self.caller = f"+1555{number:07}"
        self._said: list[tuple[Category, str]] = []
        self._rings = 0

    def tell_known(self, count: int) -> Iterator[Told]:
        """Calls in which `count` new things are told."""
        for start in range(0, count, MOST):
            yield self._ring([self._new() for _ in range(min(MOST, count - start))])

    def ring(self) -> Told:
        said = []
        for _ in range(self._rng.randint(FEWEST, MOST)):
            luck = self._rng.random()
            if luck < REPEATED and self._said:
                said.append(self._rng.choice(self._said))
            elif luck < REPEATED + CHANGED:
                said.append(self._fill(*self._rng.choice(_SLOTS)))
            else:
                said.append(self._new())
        return self._ring(said)

    def _new(self) -> tuple[Category, str]:
        return self._fill(*self._rng.choice(_PLAIN))

    def _fill(self, category: Category, sentence: str) -> tuple[Category, str]:
        rng = self._rng
        a, b, c = (
            "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(3)
        )
        values = {
            "a": a,
            "b": b,
            "c": c,
            "A": a.title(),
            "B": b.title(),
            "n": rng.randint(2, 11),
            "kin": rng.choice(_KIN),
        }
        return category, sentence.format(**values, day=rng.choice(_DAYS))

    def _ring(self, said: list[tuple[Category, str]]) -> Told:
        self._rings += 1
        self._said += said
        turns = [("agent", "Hello, what can I do for you?")]
        for _, sentence in said:
            turns += [("caller", f"{sentence}."), ("agent", "I see. Anything else?")]
        call = make_call(
            turns, caller=self.caller, started_at=START + timedelta(days=self._rings)
        )
        drafts = tuple(
            _draft(category, sentence, 2 * place)
            for place, (category, sentence) in enumerate(said, 1)
        )
        return Told(call, drafts)


def _draft(category: Category, words: str, seq: int) -> FactDraft:
    return FactDraft(
        category=category,
        text=words,
        summary=words,
        visibility="shared",
        confidence=0.9,
        turns=(seq,),
        words=words,
    )
