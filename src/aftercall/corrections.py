"""What people put right: follow-ups, facts, and names of callers.

The correction and the corrected row are one transaction. Pages are written after it; a process
that is killed in between leaves a pending correction, whose pages are written later.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, tzinfo
from functools import cached_property

from sqlalchemy import Connection

from aftercall.clock import Clock
from aftercall.db.audit_log import Deed, write_audit
from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.connect import Database
from aftercall.db.corrections import (
    DECISION,
    FOLLOWUPS,
    NAMES,
    CorrectedThing,
    Correction,
    CorrectionStore,
    add_correction,
    delete_correction,
    list_of_thing,
    mark_undone,
)
from aftercall.errors import AftercallError, NotFound, NotWaiting, RefusedInput
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.memory.extraction import accept_missed
from aftercall.memory.fact_corrections import (
    BY_A_PERSON,
    clean_fact_text,
    correct_fact,
    make_missed_draft,
    reopen_decision,
    restore_fact,
    retire_fact,
    settle_fact,
    undo_correction,
)
from aftercall.memory.fact_store import FactStore
from aftercall.memory.ledger import FactLedger, hash_identity
from aftercall.model.calls import LiveCall
from aftercall.model.facts import Fact, MemoryKey, memory_key
from aftercall.model.followups import FollowUp, FollowUpDraft
from aftercall.model.json_fields import Json
from aftercall.model.people import split_party
from aftercall.model.reading import CATEGORIES, REQUEST_KINDS, RequestKind
from aftercall.postcall.runner import StepRunner, rerun
from aftercall.settings import Settings
from aftercall.work.context import ADDED_REASON, WorkContext
from aftercall.work.plan import (
    OTHER_KIND,
    UNCLEAR,
    UNDONE,
    DraftOrigin,
    plan_done,
    plan_removal,
    plan_return,
)
from aftercall.work.requests import MAX_TITLE_CHARS, read_due, to_one_line
from aftercall.work.store import FollowUpTransition
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace

FIRST_DAY = date(2000, 1, 1)


@dataclass(frozen=True)
class Corrections:
    """What people put right; it wins over every later reading and can be undone."""

    settings: Settings
    database: Database
    clock: Clock
    facts: FactStore
    work: WorkContext
    runner: StepRunner

    @cached_property
    def store(self) -> CorrectionStore:
        return CorrectionStore(self.database)

    def correct(
        self, what: CorrectedThing, of: str, new: str | None, who: str
    ) -> Correction:
        """`of` is the id of a follow-up or a fact, or a party. None for `new` removes it."""
        if what == "fact":
            return self._correct_fact(of, new, who)
        if what in NAMES:
            return self._correct_name(what, of, new, who)
        return self._correct_followup(what, of, new, who)

    def mark_done(self, followup_id: str, who: str) -> FollowUp:
        """A person has done it."""
        self.correct("done", followup_id, "done", who)
        return self.work.followups.get(followup_id)

    def add_request(
        self,
        call_id: str,
        title: str,
        who: str,
        *,
        kind: str = "task",
        due: str | None = None,
        person: str | None = None,
        turns: Sequence[int] = (),
    ) -> Correction:
        """A request that the reader has missed. It is held, for a person to approve."""
        live, now = self._require_turns(call_id, turns), self.clock.now()
        draft = FollowUpDraft(
            kind="request",
            request_kind=_read_kind(kind),
            title=_read_line(title),
            person=person and _read_line(person),
            due=_read_due(due),
            turn_refs=tuple((call_id, turn) for turn in turns),
        )
        origin = DraftOrigin(live.conversation, call_id, live.agent_id, live.caller)
        row = self.work.make_request(draft, origin)
        if known := self.work.followups.find(row.key):
            raise RefusedInput("title", f"is listed already, as {known.id}")
        correction = self._make_correction(row, "request", None, row.title, who)
        reminders = {row.id} if row.remind_at and row.remind_at > now else set()
        write = self._make_writer(correction, who)
        self.work.followups.record([row], [], reminders, now, who=who, write=write)
        return self._finish(correction)

    def add_fact(
        self, call_id: str, text: str, who: str, *, turn: int, category: str = "person"
    ) -> Correction:
        """A fact that the reader has missed."""
        self._require_turns(call_id, [turn])
        if category not in CATEGORIES:
            raise RefusedInput("category", f"is not one of {', '.join(CATEGORIES)}")
        line, vault = clean_fact_text(text), self.facts.vault
        call = self.runner.read(call_id)
        key = memory_key(self.settings, call.agent_id, call.caller)
        if key is None or call.turns[turn - 1].speaker != "caller":
            raise RefusedInput("turn", "is not one of a caller with a memory")
        by, draft = new_id(), make_missed_draft(line, category, turn)
        accepted = accept_missed(call, draft, by, self.settings)
        correction = Correction(
            *key,
            call_id,
            "fact",
            hash_identity(accepted.claim, vault),
            old=None,
            new=vault.seal(line) if accepted.visibility == "secret" else line,
            who=who,
            at=self.clock.now(),
            details={"category": category, "turn": turn},
            id=by,
        )

        def record(ledger: FactLedger) -> None:
            if ledger.record(accepted, call_id, BY_A_PERSON) == "again":
                raise RefusedInput("text", "is known already")

        write = self._make_writer(correction, who)
        self.facts.update(key, record, lambda connection, _: write(connection))
        fault_point("corrections.after_commit")
        self.runner.redact(call_id)
        self.runner.forget(call_id)
        return correction

    def _require_turns(self, call_id: str, turns: Sequence[int]) -> LiveCall:
        call = self.runner.context.calls.get(call_id)
        if call.archive_name is None:
            raise RefusedInput("call", "is not sealed, or its words are gone")
        if not all(0 < turn <= call.turn_count for turn in turns):
            raise RefusedInput("turns", f"the call has {call.turn_count} turns")
        return call.live

    def undo(self, correction_id: str, who: str) -> Correction:
        """Makes it as it was before. Of several corrections of one thing, the newest goes first."""
        correction = self.store.get(correction_id)
        if correction.what in ("fact", DECISION):
            self._undo_fact(correction, who)
            return correction
        if correction.what in FOLLOWUPS:
            self._undo_followup(correction, who)
        else:
            with self.database.write() as connection:
                mark_undone(connection, correction)
                self._note_change(connection, correction, who, "undone")
        self._finish(replace(correction, state="undone"))
        return correction

    def write_pending(self) -> int:
        """Writes the pages of corrections that were cut off; returns how many."""
        pending = self.store.list_pending()
        problem: AftercallError | None = None
        for correction in pending:
            try:
                self._write_pages(correction)
            except AftercallError as error:  # the others are written all the same
                problem = error
        if problem:
            raise problem
        return len(pending)

    def _correct_fact(self, fact_id: str, new: str | None, who: str) -> Correction:
        text = None if new is None else clean_fact_text(new)

        def correct(ledger: FactLedger, made: Correction) -> Correction:
            fact = ledger.known.require(fact_id)
            sealed = self.facts.vault.seal(text) if text and fact.is_secret else text
            made = replace(made, old=fact.content, new=sealed)
            return correct_fact(ledger, fact, text, made)

        return self._change_fact(fact_id, who, "corrected", correct)

    def settle(self, fact_id: str, who: str, *, both: bool = False) -> Correction:
        """A person settles a dispute: this fact holds, or all of them do."""
        return self._change_fact(
            fact_id,
            who,
            "settled",
            lambda ledger, made: settle_fact(ledger, fact_id, made, both=both),
        )

    def restore(self, fact_id: str, who: str) -> Correction:
        """A retired fact holds again; the one that replaced it stays, too."""
        return self._change_fact(
            fact_id,
            who,
            "restored",
            lambda ledger, made: restore_fact(ledger, fact_id, made),
        )

    def retire(self, fact_id: str, who: str, since: str = "") -> Correction:
        """A fact is no longer true: since the beginning of a day, or since now."""
        now, at = self.clock.now(), _read_day_start(since, self.settings.zone)
        if at and at > now:
            raise RefusedInput("since", "lies in the future")
        return self._change_fact(
            fact_id,
            who,
            "retired",
            lambda ledger, made: retire_fact(ledger, fact_id, at or now, made),
        )

    def _change_fact(
        self,
        fact_id: str,
        who: str,
        deed: Deed,
        change: Callable[[FactLedger, Correction], Correction],
    ) -> Correction:
        """The change, its correction and its audit entry are one transaction."""
        key, said = self.facts.get(fact_id).key, self.facts.list_occurrences(fact_id)
        call_id = said[0].call_id if said else None
        now = self.clock.now()
        made = Correction(*key, call_id, "fact", "", None, None, who, now)

        def write(connection: Connection, correction: Correction) -> None:
            add_correction(connection, correction)
            subject = correction.id if correction.what == "fact" else fact_id
            self._note_change(connection, correction, who, deed, subject)

        made = self.facts.update(key, lambda ledger: change(ledger, made), write)
        fault_point("corrections.after_commit")
        return made

    def _undo_fact(self, correction: Correction, who: str) -> None:
        def undo(ledger: FactLedger) -> Fact | None:
            if correction.what == "fact":
                return undo_correction(ledger, correction)
            reopen_decision(ledger, correction)
            return None

        def write(connection: Connection, _: Fact | None) -> None:
            delete_correction(connection, correction)
            self._note_change(connection, correction, who, "undone")

        key = MemoryKey(correction.agent_id, str(correction.caller))
        fact = self.facts.update(key, undo, write)
        if fact is None and correction.call_id and correction.what == "fact":
            # A rebuild has left it out; the call is read again, if it is still there.
            with suppress(NotFound):
                rerun(self.runner, correction.call_id, "facts")

    def _correct_followup(
        self, what: CorrectedThing, followup_id: str, new: str | None, who: str
    ) -> Correction:
        row = self.work.followups.get(followup_id)
        old = row.standing if what == "done" else getattr(row, FOLLOWUPS[what])
        value = _read_value(row, what, new)
        correction = self._make_correction(row, what, old, value, who)
        add = self._make_writer(correction, who)

        def write(connection: Connection) -> None:
            title = replace(correction, what="request")
            before = list_of_thing(connection, title)
            if before and before[-1].is_removal:
                undo = f"`aftercall corrections undo {before[-1].id}` puts it back"
                raise RefusedInput("follow-up", f"{row.id} was removed; {undo}")
            add(connection)

        self._change_followup(row, self._plan_change(row, what, value, who), write)
        return self._finish(correction)

    def _undo_followup(self, correction: Correction, who: str) -> None:
        row = self.work.followups.find(correction.key)
        if row is None:
            raise NotFound("the corrected follow-up is not there any more")

        def write(connection: Connection) -> None:
            mark_undone(connection, correction)
            self._note_change(connection, correction, who, "undone")

        if correction.what == "request" and correction.details:
            title = (("title", correction.old),)
            transition = FollowUpTransition("unclear", who, UNCLEAR, UNDONE, title)
        elif correction.is_removal:
            transition = plan_return(row, who)
        else:
            transition = self._plan_change(row, correction.what, correction.old, who)
        self._change_followup(row, transition, write)

    def _change_followup(
        self,
        row: FollowUp,
        transition: FollowUpTransition,
        write: Callable[[Connection], None],
    ) -> None:
        changes, now = [(row.id, transition)], self.clock.now()
        record = self.work.followups.record
        if not record([], changes, set(), now, seen=[row], write=write):
            raise NotWaiting(f"follow-up {row.id} has just changed; look again")

    def _plan_change(
        self, row: FollowUp, what: str, value: str | None, who: str
    ) -> FollowUpTransition:
        """A request without a title was not asked for."""
        if what == "request" and value is None:
            return plan_removal(row, who)
        if what == "done":
            at = self.work.remind_at(None if value == "done" else row.due)
            reminder = _make_reminder(at, self.clock.now())
            return plan_done(row, str(value), who, reminder)
        state, reason, column = row.state, row.reason, FOLLOWUPS[what]
        if what == "request" and state == "unclear":
            state, reason = "held", ADDED_REASON
        values: Json = {column: value}
        if what == "due":
            at = self.work.remind_at(None if state == "withdrawn" else value)
            values |= _make_reminder(at, self.clock.now())
        if what == "kind" and state not in ("doing", "done"):
            values["sink"] = "+".join(self.work.router.route(str(value)))
            if state == "open":
                state, reason = "held", OTHER_KIND
        note = f"{column.removeprefix('request_')} corrected"
        return FollowUpTransition(state, who, reason, note, tuple(values.items()))

    def _correct_name(
        self, what: CorrectedThing, party: str, new: str | None, who: str
    ) -> Correction:
        agent_id = self.settings.agent_id
        person = Workspace.from_settings(self.settings, agent_id).find_person(party)
        if person is None:
            raise RefusedInput("caller", "no memory is kept for this number")
        page = files.read(person.user)
        value = None if new is None else to_one_line(new, MAX_TITLE_CHARS)
        try:
            user_md.set_field(page, what, value)
        except ValueError as error:
            raise RefusedInput("new", str(error)) from None
        old, now = getattr(user_md.parse(page), what), self.clock.now()
        correction = Correction(
            agent_id, party, None, what, party, old, value, who, now, "due"
        )
        with self.database.write() as connection:
            self._make_writer(correction, who)(connection)
        return self._finish(correction)

    def _make_correction(
        self,
        row: FollowUp,
        what: CorrectedThing,
        old: str | None,
        new: str | None,
        who: str,
    ) -> Correction:
        place = (row.agent_id, row.caller, row.call_id)
        was = {"state": row.state} if row.state == "unclear" else None
        now = self.clock.now()
        return Correction(*place, what, row.key, old, new, who, now, "due", was)

    def _make_writer(
        self, correction: Correction, who: str
    ) -> Callable[[Connection], None]:
        def write(connection: Connection) -> None:
            add_correction(connection, correction)
            self._note_change(connection, correction, who, "corrected")

        return write

    def _note_change(
        self,
        connection: Connection,
        correction: Correction,
        who: str,
        deed: Deed,
        subject: str = "",
    ) -> None:
        """The audit entry; and the next call is briefed anew."""
        subject = subject or correction.id
        write_audit(connection, self.clock.now(), who, deed, subject)
        agent_id, caller = correction.agent_id, correction.caller
        others = self.settings.memory.list_others_in_group(agent_id)
        for each in (agent_id, *others):
            invalidate_briefing(connection, each, caller and split_party(caller)[0])
        fault_point("corrections.before_commit")

    def _finish(self, correction: Correction) -> Correction:
        fault_point("corrections.after_commit")
        self._write_pages(correction)
        return correction

    def _write_pages(self, correction: Correction) -> None:
        """Idempotent. Two processes may do it at once."""
        if correction.what in NAMES:
            self._write_name(correction)
        elif row := self.work.followups.find(correction.key):
            with suppress(NotFound):  # the words of the call are past their time
                self.work.settle_promises(row.conversation)
        fault_point("corrections.after_page")
        self.store.finish(correction)

    def _write_name(self, correction: Correction) -> None:
        """What a person has typed into the page since is left alone."""
        workspace = Workspace.from_settings(self.settings, correction.agent_id)
        person = workspace.find_person(correction.caller)
        if person is None:  # no memory is kept any more
            return
        expected, told = correction.old, correction.new
        if correction.state == "undone":
            expected, told = told, expected

        def change(text: str | None) -> str | None:
            if getattr(user_md.parse(text), correction.what) != expected:
                return text
            return user_md.set_field(text, correction.what, told)

        files.edit(person.user, change)


def _make_reminder(at: datetime | None, now: datetime) -> Json:
    """The columns of a reminder that is still to come."""
    is_ahead = at is not None and at > now
    return {"remind_at": at, "reminder": "due" if is_ahead else None}


def _read_value(row: FollowUp, what: CorrectedThing, new: str | None) -> str | None:
    if what == "due":
        return _read_due(new)
    if what == "kind":
        return _read_kind(new if row.kind == "request" else None)
    if what == "done" and new != "done":
        raise RefusedInput("new", "is not `done`; undo the correction instead")
    return None if new is None else _read_line(new)


def _read_kind(new: str | None) -> RequestKind:
    for kind in REQUEST_KINDS:
        if new == kind:
            return kind
    kinds = ", ".join(REQUEST_KINDS)
    raise RefusedInput("kind", f"is not one of {kinds}; only requests have one")


def _read_line(new: str) -> str:
    line = to_one_line(new, MAX_TITLE_CHARS)
    if not line:
        raise RefusedInput("new", "is empty; remove it instead")
    return line


def _read_due(new: str | None) -> str | None:
    due, problem = read_due(new, FIRST_DAY)
    if problem:
        raise RefusedInput("new", "is not a day like 2026-02-17, nor an instant")
    return due


def _read_day_start(text: str, zone: tzinfo) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), zone)
    except ValueError:
        raise RefusedInput("since", "is not a day like 2026-02-17") from None
