"""The pins of every memory: updated after each call, and changed by hand.

What a person decided or wrote is never undone. Whoever only lists pins loads no patterns: topics
and secrets are imported where calls are read for them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.errors import RefusedInput
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.memory.fact_store import FactStore, Write
from aftercall.memory.pins import store
from aftercall.model.briefing import BriefingPin
from aftercall.model.calls import Call
from aftercall.model.facts import (
    MemoryKey,
    Pin,
    PinItem,
    PinPage,
    PinState,
    SpokenTopic,
)
from aftercall.settings import Settings

if TYPE_CHECKING:
    from aftercall.english.secrets import Secret
    from aftercall.memory.pins.topics import Topic

SWEEP_INTERVAL_S = 3600.0
MAX_BRIEFED_PINS = 5
MAX_BRIEFED_ITEMS = 5
MAX_TITLE_CHARS = 120
MAX_NOTE_CHARS = 100_000
BY_HAND_REASON = "{} by hand"
HIDDEN_TITLE = "(secret)"


@dataclass(frozen=True)
class ReaderTopics:
    """The topics of a call from its reader; `are_names` if they are good enough to name a pin.

    `own_names` are the names of caller and agent.
    """

    titles: tuple[str, ...] = ()
    are_names: bool = False
    own_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PinBoard:
    """The topics that a memory keeps coming back to: updated by calls, changed by people."""

    settings: Settings
    database: Database
    facts: FactStore
    clock: Clock

    def record_call(self, key: MemoryKey, call: Call, topics: ReaderTopics) -> str:
        """Update the pins after a call; returns how many became pinned or unpinned, as text.

        The same call again changes nothing.
        """
        from aftercall.memory.pins.topics import is_confidential, read_topics

        memory = self.settings.memory
        spoken = read_topics(
            call,
            memory,
            named=topics.titles,
            own_names=topics.own_names,
            confided=self.facts.list_confided_words(call.id),
        )
        names: list[str] = []
        if topics.are_names:
            names = [
                title for title in topics.titles if not is_confidential(title, memory)
            ]
        with self.database.write() as connection:
            store.lock(connection, key)
            store.save_spoken_topic(connection, key, spoken)
            fault_point("pins.after_topics")
            changed = self._refresh(connection, key, names)
            fault_point("pins.before_commit")
        fault_point("pins.after_commit")
        counts = Counter(pin.state for pin in changed)
        return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))

    def sweep(self) -> int:
        """Unpin what has become stale or whose work is done; returns how many pins changed."""
        quiet = store.QUIET_PERIOD
        if stale_days := self.settings.memory.pin_stale_days:
            quiet = min(quiet, timedelta(days=stale_days))
        changed = 0
        after = ("", "")
        while True:
            with self.database.read() as connection:
                keys = store.list_quiet_memories(
                    connection, self.clock.now() - quiet, after
                )
            for key in keys:
                changed += self.refresh(key)
            if not keys:
                return changed
            after = keys[-1]

    def refresh(self, key: MemoryKey) -> int:
        with self.database.write() as connection:
            store.lock(connection, key)
            return len(self._refresh(connection, key))

    def list_pages(
        self, key: MemoryKey, *, state: PinState | None = None
    ) -> list[PinPage]:
        """Every pin of a memory with its page, pinned ones first."""
        with self.database.read() as connection:
            found = store.list_pins(connection, key, state=state)
            items = store.add_terms(store.list_items(connection, key)) if found else []
        return [
            store.make_page(pin, items, self.settings.zone)
            for pin in self._redact(found)
        ]

    def get(self, pin_id: str) -> PinPage:
        with self.database.read() as connection:
            pin = store.get_pin(connection, pin_id)
            items = store.add_terms(store.list_items(connection, pin.key))
        return store.make_page(self._redact([pin])[0], items, self.settings.zone)

    def list_for_briefing(self, key: MemoryKey) -> tuple[BriefingPin, ...]:
        """Pins for the next briefing. A person's note replaces the status."""
        days = self.settings.memory.pin_stale_days
        oldest = self.clock.now() - timedelta(days=days) if days else None
        fresh = [
            each
            for each in self.list_pages(key, state="pinned")
            if each.pin.title != HIDDEN_TITLE
            and (
                each.pin.is_decided_by_hand
                or oldest is None
                or each.pin.last_at >= oldest
            )
        ]
        return tuple(
            BriefingPin(
                each.pin.id,
                each.pin.title,
                each.pin.note or each.status,
                tuple(item.title for item in each.open_items[:MAX_BRIEFED_ITEMS]),
            )
            for each in fresh[:MAX_BRIEFED_PINS]
        )

    def pin_topic(
        self, key: MemoryKey, topic: str, audit: Write = lambda connection: None
    ) -> Pin:
        """Pin a topic by hand. A known pin with these words is pinned again."""
        from aftercall.memory.pins.topics import Topic, is_weak, iter_terms

        title = " ".join(topic.split())
        terms = tuple(sorted(dict.fromkeys(iter_terms(title)), key=is_weak))
        if not terms or len(title) > MAX_TITLE_CHARS:
            raise RefusedInput(
                "topic",
                "names nothing that could be recognised in a call, or is longer than "
                f"{MAX_TITLE_CHARS} characters",
            )
        now = self.clock.now()
        with self.database.write() as connection:
            store.lock(connection, key)
            known = _match(terms, store.list_pins(connection, key))
            fresh = _make_pin(key, Topic(terms, now), title, now)
            pin = known or replace(fresh, is_titled_by_hand=True)
            decided = _with_state(pin, "pinned", now)
            store.save_pin(connection, decided)
            self._refresh(connection, key)
            audit(connection)
            return store.get_pin(connection, decided.id)

    def set_state(
        self, pin_id: str, state: PinState, audit: Write = lambda connection: None
    ) -> Pin:
        """Pin or unpin by hand; the program never changes the state again."""
        with self.database.write() as connection:
            decided = _with_state(
                self._get_locked(connection, pin_id), state, self.clock.now()
            )
            store.save_pin(connection, decided)
            audit(connection)
        return decided

    def edit(
        self,
        pin_id: str,
        note: str,
        *,
        title: str = "",
        was: str | None = None,
        audit: Write = lambda connection: None,
    ) -> Pin | None:
        """Save a person's note and title; None if the note has changed since `was`, its hash.

        An empty note removes it.
        """
        if len(note) > MAX_NOTE_CHARS or len(title) > MAX_TITLE_CHARS:
            raise RefusedInput(
                "note" if len(note) > MAX_NOTE_CHARS else "title", "is too long"
            )
        with self.database.write() as connection:
            pin = self._get_locked(connection, pin_id)
            if was is not None and was != hash_note(pin):
                return None
            edited = replace(pin, note=note or None, changed_at=self.clock.now())
            if (name := " ".join(title.split())) not in ("", HIDDEN_TITLE, pin.title):
                edited = replace(edited, title=name, is_titled_by_hand=True)
            store.save_pin(connection, edited)
            audit(connection)
        return edited

    def _get_locked(self, connection: Connection, pin_id: str) -> Pin:
        """Read the pin after taking the lock of its memory."""
        store.lock(connection, store.get_pin(connection, pin_id).key)
        return store.get_pin(connection, pin_id)

    def _refresh(
        self, connection: Connection, key: MemoryKey, named: Sequence[str] = ()
    ) -> list[Pin]:
        """Update the pins of a memory; returns those whose state changed."""
        from aftercall.memory.pins.topics import (
            find_common_terms,
            find_topics,
            name_topic,
        )

        memory = self.settings.memory
        now = self.clock.now()
        spoken = store.list_spoken_topics(connection, key)
        known = store.list_pins(connection, key)
        if not known and len(spoken) < memory.pin_after:
            return []  # nothing can have come back yet
        common = find_common_terms(store.sample_other_callers(connection, key))
        window = (
            timedelta(days=memory.pin_stale_days) if memory.pin_stale_days else None
        )
        wanted = {pin.id: pin for pin in known}
        for topic in find_topics(spoken, memory.pin_after, window, common):
            pin = _match(topic.terms, wanted.values()) or _make_pin(
                key, topic, name_topic(topic.terms, spoken, named), now
            )
            terms = tuple(dict.fromkeys((*pin.terms, *topic.terms)))
            wanted[pin.id] = replace(pin, terms=terms)
        items = store.add_terms(store.list_items(connection, key)) if wanted else []
        before = {pin.id: pin for pin in known}
        changed = []
        for pin in wanted.values():
            fresh = _update_pin(pin, spoken, items, now, memory.pin_stale_days)
            if not pin.is_decided_by_hand and set(pin.terms) <= common:
                fresh = replace(fresh, state="unpinned", reason=store.COMMON_REASON)
            old = before.get(pin.id)
            if old is None or old.state != fresh.state:
                fresh = replace(fresh, changed_at=now)
                changed.append(fresh)
            if fresh != old:
                store.save_pin(connection, fresh)
        return changed

    def _redact(self, found: Sequence[Pin]) -> list[Pin]:
        """Hide words that became secret after they were stored."""
        calls = {mention.call_id for pin in found for mention in pin.history}
        words = self.facts.list_confided_words(*sorted(calls)) if calls else []
        if not words:
            return list(found)
        from aftercall.english.secrets import Secret

        secrets = [Secret(1, each, each, "person") for each in words]
        return [_redact_pin(pin, secrets) for pin in found]


def hash_note(pin: Pin) -> str:
    """Identifies the note that a person was shown before they edited it."""
    return sha256((pin.note or "").encode()).hexdigest()[:16]


def _update_pin(
    pin: Pin,
    spoken: Sequence[SpokenTopic],
    items: Sequence[PinItem],
    now: datetime,
    stale_days: int,
) -> Pin:
    """The pin with its history, and the state that follows from it."""
    history = store.make_history(pin, spoken)
    fresh = replace(
        pin, history=history, last_at=history[-1].at if history else pin.last_at
    )
    if pin.is_decided_by_hand:
        return fresh
    state, reason = store.choose_state(fresh, spoken, items, now, stale_days)
    return replace(fresh, state=state, reason=reason)


def _redact_pin(pin: Pin, secrets: "list[Secret]") -> Pin:
    from aftercall.memory.visibility import has_secret

    history = tuple(
        replace(mention, words="") if has_secret(mention.words, secrets) else mention
        for mention in pin.history
    )
    is_hidden = not pin.is_titled_by_hand and has_secret(pin.title, secrets)
    return replace(pin, title=HIDDEN_TITLE if is_hidden else pin.title, history=history)


def _match(terms: Sequence[str], known: Iterable[Pin]) -> Pin | None:
    """The pin whose anchor is among the terms, or whose terms hold the first of them."""
    found = [pin for pin in known if pin.anchor in terms or terms[0] in pin.terms]
    return max(
        found,
        key=lambda pin: (pin.anchor == terms[0], len(set(pin.terms) & set(terms))),
        default=None,
    )


def _make_pin(key: MemoryKey, topic: "Topic", title: str, now: datetime) -> Pin:
    return Pin(
        new_id(),
        key,
        topic.terms,
        title,
        "pinned",
        "",
        (),
        topic.since,
        topic.since,
        now,
    )


def _with_state(pin: Pin, state: PinState, now: datetime) -> Pin:
    return replace(
        pin,
        state=state,
        reason=BY_HAND_REASON.format(state),
        is_decided_by_hand=True,
        changed_at=now,
    )
