"""Pinned topics: what callers keep coming back to, and what each call said of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from aftercall.model.facts import MemoryKey

PinState = Literal["pinned", "unpinned"]


@dataclass(frozen=True)
class Sentence:
    """Words of the caller that name things: the terms, and the runs of words that stand
    together.
    """

    text: str = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)
    runs: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class SpokenTopic:
    """What one call spoke of."""

    call_id: str
    conversation: str
    at: datetime
    terms: frozenset[str] = field(repr=False)
    central: frozenset[str] = field(repr=False)
    settled: frozenset[str] = field(repr=False)
    said: tuple[Sentence, ...] = field(repr=False)


@dataclass(frozen=True)
class PinMention:
    """One call of a pin's history, in the caller's words."""

    call_id: str
    conversation: str
    at: datetime
    words: str = field(repr=False)


@dataclass(frozen=True)
class Pin:
    """A row of the ledger.

    `note` is a person's, all the rest but what they decided or named is the program's.
    """

    id: str
    key: MemoryKey = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)
    title: str = field(repr=False)
    state: PinState
    reason: str
    history: tuple[PinMention, ...] = field(repr=False)
    since: datetime
    last_at: datetime
    changed_at: datetime
    is_titled_by_hand: bool = False
    is_decided_by_hand: bool = False
    note: str | None = field(default=None, repr=False)

    @property
    def anchor(self) -> str:
        return self.terms[0]


@dataclass(frozen=True)
class PinItem:
    """A request or a promise that belongs to a pin."""

    id: str
    title: str = field(repr=False)
    state: str
    due: str | None
    changed_at: datetime
    terms: frozenset[str] = field(default=frozenset(), repr=False)
    standing: str = ""
    """The state as it is told, where that is another word."""


@dataclass(frozen=True)
class PinPage:
    """A pin as it is shown: what it is about, how it stands, what is open, what was said when.

    Never with a secret.
    """

    pin: Pin
    about: str = field(repr=False)
    status: str = field(repr=False)
    open_items: tuple[PinItem, ...]
    done_items: tuple[PinItem, ...]
