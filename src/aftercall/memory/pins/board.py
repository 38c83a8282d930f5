"""The pins of every memory: kept up after each call, and changed by hand. What a person decided or wrote is never undone here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import Connection

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.errors import RefusedInput
from aftercall.faults import reach
from aftercall.ids import new_id
from aftercall.llm.rules.secrets import Secret
from aftercall.memory.pins import page, store
from aftercall.memory.pins.recurrence import Topic, find_common, find_topics, name_topic
from aftercall.memory.pins.topics import is_confidential, is_weak, read_topics, terms_of
from aftercall.memory.store import FactStore, Write
from aftercall.memory.visibility import holds_secret
from aftercall.model.briefing import ToldPin
from aftercall.model.calls import Call
from aftercall.model.knowledge import MemoryKey
from aftercall.model.pins import Pin, PinPage, PinState
from aftercall.settings import Settings

EVERY_S = 3600.0
MOST_TOLD = 5
MOST_TOLD_ITEMS = 5
LONGEST_TITLE = 120
LONGEST_NOTE = 100_000
BY_HAND = "{} by hand"
HIDDEN = "(secret)"


@dataclass(frozen=True)
class Topics:
    """What the reader of a call gave it as topics; whether they are good enough to name a pin; and the names of caller and agent."""

    titles: tuple[str, ...] = ()
    are_names: bool = False
    own: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pinboard:
    settings: Settings
    database: Database
    facts: FactStore
    clock: Clock

    def note(self, key: MemoryKey, call: Call, topics: Topics) -> str:
        """What a call changes, in one transaction; which pins changed their state. The same call again changes nothing."""
        memory, confided = self.settings.memory, self.facts.confided(call.id)
        spoken = read_topics(call, memory, named=topics.titles, own=topics.own, confided=confided)
        names = [title for title in topics.titles if topics.are_names and not is_confidential(title, memory)]
        with self.database.write() as connection:
            store.lock(connection, key)
            store.keep_spoken(connection, key, spoken)
            reach("pins.after_topics")
            changed = self._refresh(connection, key, names)
            reach("pins.before_commit")
        reach("pins.after_commit")
        return ", ".join(f"1 {pin.state}" if count == 1 else f"{count} {pin.state}" for pin, count in _counted(changed))

    def sweep(self) -> int:
        """Unpin what has become stale or whose work is done: time passes without calls, too. How many pins changed."""
        quiet = min(page.QUIET, timedelta(days=self.settings.memory.pin_stale_days or page.QUIET.days))
        changed, after = 0, ("", "")
        while True:
            with self.database.read() as connection:
                keys = store.quiet_memories(connection, self.clock.now() - quiet, after)
            for key in keys:
                changed += self.refresh(key)
            if not keys:
                return changed
            after = keys[-1]

    def refresh(self, key: MemoryKey) -> int:
        with self.database.write() as connection:
            store.lock(connection, key)
            return len(self._refresh(connection, key))

    def pages(self, key: MemoryKey, *, state: PinState | None = None) -> list[PinPage]:
        """Every pin of a memory with its page, pinned ones first."""
        with self.database.read() as connection:
            found = store.pins_of(connection, key, state=state)
            items = page.with_terms(store.items_in(connection, key)) if found else []
        return [page.make_page(pin, items, self.settings.zone) for pin in self._veil(found)]

    def get(self, pin_id: str) -> PinPage:
        with self.database.read() as connection:
            pin = store.get_pin(connection, pin_id)
            items = page.with_terms(store.items_in(connection, pin.key))
        return page.make_page(self._veil([pin])[0], items, self.settings.zone)

    def told(self, key: MemoryKey) -> tuple[ToldPin, ...]:
        """What the next call is told. A person's note stands in the place of what the program would say."""
        days = self.settings.memory.pin_stale_days
        oldest = self.clock.now() - timedelta(days=days) if days else None
        fresh = [
            each
            for each in self.pages(key, state="pinned")
            if each.pin.title != HIDDEN and (each.pin.is_decided_by_hand or oldest is None or each.pin.last_at >= oldest)
        ]
        return tuple(
            ToldPin(
                each.pin.id, each.pin.title, each.pin.note or each.status, tuple(item.title for item in each.open_items[:MOST_TOLD_ITEMS])
            )
            for each in fresh[:MOST_TOLD]
        )

    def pin(self, key: MemoryKey, topic: str, audit: Write = lambda connection: None) -> Pin:
        """Pin a topic that a person names; one that goes by these words already is pinned again."""
        title = " ".join(topic.split())
        terms = tuple(sorted(dict.fromkeys(terms_of(title)), key=is_weak))
        if not terms or len(title) > LONGEST_TITLE:
            raise RefusedInput("topic", f"names nothing that could be recognised in a call, or is longer than {LONGEST_TITLE} characters")
        now = self.clock.now()
        with self.database.write() as connection:
            store.lock(connection, key)
            known = _match(terms, store.pins_of(connection, key))
            pin = known or Pin(new_id(), key, terms, title, "pinned", "", (), now, now, now, is_titled_by_hand=True)
            decided = _decide(pin, "pinned", now)
            store.put_pin(connection, decided)
            self._refresh(connection, key)
            audit(connection)
            return store.get_pin(connection, decided.id)

    def decide(self, pin_id: str, state: PinState, audit: Write = lambda connection: None) -> Pin:
        """Pin or unpin by hand; from then on the program leaves it so."""
        with self.database.write() as connection:
            decided = _decide(self._own(connection, pin_id), state, self.clock.now())
            store.put_pin(connection, decided)
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
        """Keep a person's words as they are; None if somebody else wrote since `was` was shown. An empty note takes it away."""
        if len(note) > LONGEST_NOTE or len(title) > LONGEST_TITLE:
            raise RefusedInput("note" if len(note) > LONGEST_NOTE else "title", "is too long")
        with self.database.write() as connection:
            pin = self._own(connection, pin_id)
            if was is not None and was != mark_of(pin):
                return None
            edited = replace(pin, note=note or None, changed_at=self.clock.now())
            if (name := " ".join(title.split())) not in ("", HIDDEN, pin.title):
                edited = replace(edited, title=name, is_titled_by_hand=True)
            store.put_pin(connection, edited)
            audit(connection)
        return edited

    def _own(self, connection: Connection, pin_id: str) -> Pin:
        """The pin as it is once nobody else is writing."""
        store.lock(connection, store.get_pin(connection, pin_id).key)
        return store.get_pin(connection, pin_id)

    def _refresh(self, connection: Connection, key: MemoryKey, named: Sequence[str] = ()) -> list[Pin]:
        """Bring the program's part of a memory's pins up to date; those whose state changed."""
        memory, now = self.settings.memory, self.clock.now()
        spoken = store.spoken_in(connection, key)
        common = find_common(store.spoken_by_others(connection, key))
        window = timedelta(days=memory.pin_stale_days) if memory.pin_stale_days else None
        known = store.pins_of(connection, key)
        wanted = {pin.id: pin for pin in known}
        for topic in find_topics(spoken, memory.pin_after, window, common):
            pin = _match(topic.terms, wanted.values()) or _begin(key, topic, name_topic(topic.terms, spoken, named), now)
            terms = tuple(dict.fromkeys((*pin.terms, *topic.terms)))
            wanted[pin.id] = replace(pin, terms=terms)
        items = page.with_terms(store.items_in(connection, key)) if wanted else []
        before = {pin.id: pin for pin in known}
        changed = []
        for pin in wanted.values():
            fresh = replace(pin, history=page.make_history(pin, spoken))
            fresh = replace(fresh, last_at=fresh.history[-1].at if fresh.history else fresh.last_at)
            if not fresh.is_decided_by_hand:
                state, reason = page.judge(fresh, spoken, items, now, memory.pin_stale_days)
                if set(fresh.terms) <= common:
                    state, reason = "unpinned", page.COMMON
                fresh = replace(fresh, state=state, reason=reason)
            old = before.get(pin.id)
            if old is None or old.state != fresh.state:
                fresh = replace(fresh, changed_at=now)
                changed.append(fresh)
            if fresh != old:
                store.put_pin(connection, fresh)
        return changed

    def _veil(self, found: Sequence[Pin]) -> list[Pin]:
        """What became a secret since it was written down is not shown."""
        calls = {mention.call_id for pin in found for mention in pin.history}
        words = self.facts.confided(*sorted(calls)) if calls else []
        confidences = [Secret(1, each, each, "person") for each in words]
        if not confidences:
            return list(found)
        return [
            replace(
                pin,
                title=HIDDEN if not pin.is_titled_by_hand and holds_secret(pin.title, confidences) else pin.title,
                history=tuple(replace(each, words="") if holds_secret(each.words, confidences) else each for each in pin.history),
            )
            for pin in found
        ]


def mark_of(pin: Pin) -> str:
    """Names what a person was shown before they wrote."""
    return sha256((pin.note or "").encode()).hexdigest()[:16]


def _match(terms: Sequence[str], known: Iterable[Pin]) -> Pin | None:
    """The pin that goes by these terms: they hang on one of its terms, or it on one of them."""
    found = [pin for pin in known if pin.anchor in terms or terms[0] in pin.terms]
    return max(found, key=lambda pin: (pin.anchor == terms[0], len(set(pin.terms) & set(terms))), default=None)


def _begin(key: MemoryKey, topic: Topic, title: str, now: datetime) -> Pin:
    return Pin(new_id(), key, topic.terms, title, "pinned", "", (), topic.since, topic.since, now)


def _decide(pin: Pin, state: PinState, now: datetime) -> Pin:
    return replace(pin, state=state, reason=BY_HAND.format(state), is_decided_by_hand=True, changed_at=now)


def _counted(changed: Iterable[Pin]) -> list[tuple[Pin, int]]:
    by_state = {pin.state: pin for pin in changed}
    return [(pin, sum(other.state == state for other in changed)) for state, pin in sorted(by_state.items())]
