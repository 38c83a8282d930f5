"""The pins of every memory: kept up after each call, and changed by hand.

What a person decided or wrote is never undone here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import Connection

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.errors import RefusedInput
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.llm.rules.secrets import Secret
from aftercall.memory.pins import page, store
from aftercall.memory.pins.recurrence import Topic, find_common_terms, find_topics, name_topic
from aftercall.memory.pins.topics import is_confidential, is_weak, iter_terms, read_topics
from aftercall.memory.store import FactStore, Write
from aftercall.memory.visibility import has_secret
from aftercall.model.briefing import BriefingPin
from aftercall.model.calls import Call
from aftercall.model.facts import MemoryKey, Pin, PinPage, PinState
from aftercall.settings import Settings

SWEEP_INTERVAL_S = 3600.0
MAX_BRIEFED_PINS = 5
MAX_BRIEFED_ITEMS = 5
MAX_TITLE_CHARS = 120
MAX_NOTE_CHARS = 100_000
BY_HAND_REASON = "{} by hand"
HIDDEN_TITLE = "(secret)"


@dataclass(frozen=True)
class ReaderTopics:
    """What the reader of a call gave it as topics; whether they are good enough to name a pin;
    and the names of caller and agent.
    """

    titles: tuple[str, ...] = ()
    are_names: bool = False
    own_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PinBoard:
    settings: Settings
    database: Database
    facts: FactStore
    clock: Clock

    def record_call(self, key: MemoryKey, call: Call, topics: ReaderTopics) -> str:
        """What a call changes, in one transaction; which pins changed their state.

        The same call again changes nothing.
        """
        memory, confided = self.settings.memory, self.facts.list_confided_words(call.id)
        spoken = read_topics(
            call, memory, named=topics.titles, own_names=topics.own_names, confided=confided
        )
        names = [
            title
            for title in topics.titles
            if topics.are_names and not is_confidential(title, memory)
        ]
        with self.database.write() as connection:
            store.lock(connection, key)
            store.save_spoken_topic(connection, key, spoken)
            fault_point("pins.after_topics")
            changed = self._refresh(connection, key, names)
            fault_point("pins.before_commit")
        fault_point("pins.after_commit")
        return ", ".join(
            f"1 {pin.state}" if count == 1 else f"{count} {pin.state}"
            for pin, count in _counted(changed)
        )

    def sweep(self) -> int:
        """Unpin what has become stale or whose work is done: time passes without calls, too.

        How many pins changed.
        """
        quiet = min(
            page.QUIET_PERIOD,
            timedelta(days=self.settings.memory.pin_stale_days or page.QUIET_PERIOD.days),
        )
        changed, after = 0, ("", "")
        while True:
            with self.database.read() as connection:
                keys = store.list_quiet_memories(connection, self.clock.now() - quiet, after)
            for key in keys:
                changed += self.refresh(key)
            if not keys:
                return changed
            after = keys[-1]

    def refresh(self, key: MemoryKey) -> int:
        with self.database.write() as connection:
            store.lock(connection, key)
            return len(self._refresh(connection, key))

    def list_pages(self, key: MemoryKey, *, state: PinState | None = None) -> list[PinPage]:
        """Every pin of a memory with its page, pinned ones first."""
        with self.database.read() as connection:
            found = store.list_pins(connection, key, state=state)
            items = page.add_terms(store.list_items(connection, key)) if found else []
        return [page.make_page(pin, items, self.settings.zone) for pin in self._redact(found)]

    def get(self, pin_id: str) -> PinPage:
        with self.database.read() as connection:
            pin = store.get_pin(connection, pin_id)
            items = page.add_terms(store.list_items(connection, pin.key))
        return page.make_page(self._redact([pin])[0], items, self.settings.zone)

    def list_for_briefing(self, key: MemoryKey) -> tuple[BriefingPin, ...]:
        """What the next call is told.

        A person's note stands in the place of what the program would say.
        """
        days = self.settings.memory.pin_stale_days
        oldest = self.clock.now() - timedelta(days=days) if days else None
        fresh = [
            each
            for each in self.list_pages(key, state="pinned")
            if each.pin.title != HIDDEN_TITLE
            and (each.pin.is_decided_by_hand or oldest is None or each.pin.last_at >= oldest)
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

    def pin_topic(self, key: MemoryKey, topic: str, audit: Write = lambda connection: None) -> Pin:
        """Pin a topic that a person names; one that goes by these words already is pinned again."""
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
            pin = known or Pin(
                new_id(), key, terms, title, "pinned", "", (), now, now, now, is_titled_by_hand=True
            )
            decided = _with_state(pin, "pinned", now)
            store.save_pin(connection, decided)
            self._refresh(connection, key)
            audit(connection)
            return store.get_pin(connection, decided.id)

    def set_state(
        self, pin_id: str, state: PinState, audit: Write = lambda connection: None
    ) -> Pin:
        """Pin or unpin by hand; from then on the program leaves it so."""
        with self.database.write() as connection:
            decided = _with_state(self._get_locked(connection, pin_id), state, self.clock.now())
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
        """Keep a person's words as they are; None if somebody else wrote since `was` was shown.

        An empty note takes it away.
        """
        if len(note) > MAX_NOTE_CHARS or len(title) > MAX_TITLE_CHARS:
            raise RefusedInput("note" if len(note) > MAX_NOTE_CHARS else "title", "is too long")
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
        """The pin as it is once nobody else is writing."""
        store.lock(connection, store.get_pin(connection, pin_id).key)
        return store.get_pin(connection, pin_id)

    def _refresh(
        self, connection: Connection, key: MemoryKey, named: Sequence[str] = ()
    ) -> list[Pin]:
        """Bring the program's part of a memory's pins up to date; those whose state changed."""
        memory, now = self.settings.memory, self.clock.now()
        spoken = store.list_spoken_topics(connection, key)
        common = find_common_terms(store.sample_other_callers(connection, key))
        window = timedelta(days=memory.pin_stale_days) if memory.pin_stale_days else None
        known = store.list_pins(connection, key)
        wanted = {pin.id: pin for pin in known}
        for topic in find_topics(spoken, memory.pin_after, window, common):
            pin = _match(topic.terms, wanted.values()) or _make_pin(
                key, topic, name_topic(topic.terms, spoken, named), now
            )
            terms = tuple(dict.fromkeys((*pin.terms, *topic.terms)))
            wanted[pin.id] = replace(pin, terms=terms)
        items = page.add_terms(store.list_items(connection, key)) if wanted else []
        before = {pin.id: pin for pin in known}
        changed = []
        for pin in wanted.values():
            fresh = replace(pin, history=page.make_history(pin, spoken))
            fresh = replace(fresh, last_at=fresh.history[-1].at if fresh.history else fresh.last_at)
            if not fresh.is_decided_by_hand:
                state, reason = page.choose_state(fresh, spoken, items, now, memory.pin_stale_days)
                if set(fresh.terms) <= common:
                    state, reason = "unpinned", page.COMMON_REASON
                fresh = replace(fresh, state=state, reason=reason)
            old = before.get(pin.id)
            if old is None or old.state != fresh.state:
                fresh = replace(fresh, changed_at=now)
                changed.append(fresh)
            if fresh != old:
                store.save_pin(connection, fresh)
        return changed

    def _redact(self, found: Sequence[Pin]) -> list[Pin]:
        """What became a secret since it was written down is not shown."""
        calls = {mention.call_id for pin in found for mention in pin.history}
        words = self.facts.list_confided_words(*sorted(calls)) if calls else []
        confidences = [Secret(1, each, each, "person") for each in words]
        if not confidences:
            return list(found)
        return [
            replace(
                pin,
                title=HIDDEN_TITLE
                if not pin.is_titled_by_hand and has_secret(pin.title, confidences)
                else pin.title,
                history=tuple(
                    replace(each, words="") if has_secret(each.words, confidences) else each
                    for each in pin.history
                ),
            )
            for pin in found
        ]


def hash_note(pin: Pin) -> str:
    """Names what a person was shown before they wrote."""
    return sha256((pin.note or "").encode()).hexdigest()[:16]


def _match(terms: Sequence[str], known: Iterable[Pin]) -> Pin | None:
    """The pin that goes by these terms: they hang on one of its terms, or it on one of them."""
    found = [pin for pin in known if pin.anchor in terms or terms[0] in pin.terms]
    return max(
        found,
        key=lambda pin: (pin.anchor == terms[0], len(set(pin.terms) & set(terms))),
        default=None,
    )


def _make_pin(key: MemoryKey, topic: Topic, title: str, now: datetime) -> Pin:
    return Pin(new_id(), key, topic.terms, title, "pinned", "", (), topic.since, topic.since, now)


def _with_state(pin: Pin, state: PinState, now: datetime) -> Pin:
    return replace(
        pin,
        state=state,
        reason=BY_HAND_REASON.format(state),
        is_decided_by_hand=True,
        changed_at=now,
    )


def _counted(changed: Iterable[Pin]) -> list[tuple[Pin, int]]:
    by_state = {pin.state: pin for pin in changed}
    return [
        (pin, sum(other.state == state for other in changed))
        for state, pin in sorted(by_state.items())
    ]
