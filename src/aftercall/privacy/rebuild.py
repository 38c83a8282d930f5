"""Rebuilds memory from the archive: facts, passages, documents and summaries.

All calls are known before the first is read: one record of a call may tell who calls in another.
Calls are read again in the order they were sealed; the same reader gives the same result. A model
is only asked what has no stored answer. Calls that the database did not know also get their
profile, their greeting, and their requests and promises; follow-up work is not done again.
What became of requests and what people put right comes from copies in object storage, if any.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, delete, insert, or_, select, update

from aftercall.db.connect import Database
from aftercall.db.conversations import share_caller
from aftercall.db.event_log import events
from aftercall.db.statements import upsert
from aftercall.db.tables import (
    briefings,
    calls,
    documents,
    extraction_log,
    fact_occurrences,
    facts,
    followup_runs,
    passages,
)
from aftercall.errors import AftercallError
from aftercall.journal.archive import ChainLink, parse_link
from aftercall.journal.store import ERASED_FILE, add_tombstone, to_columns
from aftercall.log import get_logger
from aftercall.memory.pins.store import clear_pins
from aftercall.model.calls import Call
from aftercall.postcall.runner import StepRunner
from aftercall.privacy.ledger_copies import LedgerCopies
from aftercall.work.context import WorkContext

UNFINISHED_REASON = (
    "started by a rebuild that did not finish; "
    "if none is running, run `aftercall rebuild` again"
)
REBUILT_REASON = "rebuilt from the archive; follow-up work is not done again"
STEPS = ("summary", "facts", "index", "document", "pins")
PAGE_STEPS = ("profile", "greeting")  # pages that people may have changed since
REQUESTS = "requests"
OWNER = "rebuild"  # of calls that a rebuild has brought into the database

log = get_logger("rebuild")


@dataclass(frozen=True)
class FailedStep:
    call_id: str
    step: str
    reason: str


@dataclass(frozen=True)
class RebuildResult:
    calls: int
    adopted: int
    failed: tuple[str, ...]
    """Archive files that could not be rebuilt at all."""
    undone: tuple[FailedStep, ...] = ()
    followups: int = 0
    """Requests and promises of calls that the database did not know."""


@dataclass(frozen=True)
class Rebuilder:
    """Makes the database anew from the archive."""

    database: Database
    runner: StepRunner
    work: WorkContext
    copies: LedgerCopies | None = None

    def rebuild(
        self, on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> RebuildResult:
        """A call or a step that fails does not stop the others."""
        links, file_counts = self._list_sealed()
        began_at = self.runner.context.clock.now()
        with self.database.write() as connection:
            clear_memory(connection)
            for link in self._list_erased():
                name = link.name.removesuffix(".json")
                add_tombstone(connection, ERASED_FILE, name, link.call, began_at)
        if self.copies:
            self.copies.restore_corrections(of_names=False)
        adopted = 0
        failed: list[str] = []
        undone: list[FailedStep] = []
        for link in links:
            with _noting_failure(link, failed):
                adopted += self._adopt(link, file_counts[link.call] - 1)
        for number, link in enumerate(links, 1):
            with _noting_failure(link, failed):
                if link.name not in failed:
                    undone += self._run_steps(link.call)
                    self._drop_events(link.call, began_at)
            on_progress(number, len(links))
        if self.copies:
            self.copies.restore_corrections(of_names=True)
        followups, lost = self._record_followups()
        undone += lost
        return RebuildResult(
            len(links), adopted, tuple(failed), tuple(undone), followups
        )

    def _record_followups(self) -> tuple[int, list[FailedStep]]:
        """Of all conversations without a ledger, also those of a rebuild that was cut off."""
        query = (
            select(followup_runs.c.conversation)
            .where(followup_runs.c.reason == REBUILT_REASON)
            .order_by(followup_runs.c.ended_at)
        )
        conversations = list(self.database.fetch_column(query))
        recorded = 0
        lost: list[FailedStep] = []
        for conversation in conversations:
            try:
                recorded += self._record_conversation(conversation)
            except AftercallError as error:
                lost.append(FailedStep(conversation, REQUESTS, str(error)))
        return recorded, lost

    def _record_conversation(self, conversation: str) -> int:
        """As the copy of its ledger has it; what the copy does not know is read again."""
        legs = None
        if self.copies and not self.work.followups.of_conversation(conversation):
            legs = self.copies.restore(conversation)
        return self.work.record_rebuilt(conversation, known_legs=legs)

    def _list_sealed(self) -> tuple[list[ChainLink], Counter[str]]:
        """The files of calls that were not erased, and how many each call has with its addenda."""
        links = [parse_link(line) for line in self.runner.archive.place.read_chain()]
        erased = {link.name for link in links if link.erased}
        kept = [link for link in links if link.name not in erased]
        calls_kept = [link for link in kept if ".addendum-" not in link.name]
        return calls_kept, Counter(link.call for link in kept)

    def _list_erased(self) -> list[ChainLink]:
        """What was erased is not accepted again, whatever the database has forgotten."""
        links = [parse_link(line) for line in self.runner.archive.place.read_chain()]
        return [link for link in links if link.erased]

    def _drop_events(self, call_id: str, since: datetime) -> None:
        """What was made again is no news: nobody is told.

        A fact that another one retired is of no call.
        """
        is_new = and_(events.c.id.is_(None), events.c.at >= since)
        is_fact = and_(events.c.type == "fact.changed", events.c.call_id.is_(None))
        is_made = or_(events.c.call_id == call_id, is_fact)
        self.database.execute(delete(events).where(is_made, is_new))

    def _adopt(self, link: ChainLink, addenda: int) -> bool:
        """True if the call is new. What it tells of the caller holds for its other records."""
        call, late = self.runner.archive.read(link.name)
        whole = call.model_copy(update={"turns": (*call.turns, *late)})
        now = self.runner.context.clock.now()
        with self.database.write() as connection:
            is_new = insert_archived_call(connection, whole, link, addenda, now)
            share_caller(connection, call)
        return is_new

    def _run_steps(self, call_id: str) -> list[FailedStep]:
        """Run every step. A failed one is recorded with the call and can be run again alone."""
        context = self.runner.context
        is_remote = context.remem is not None and context.steps.result_of(
            call_id, "remem"
        )
        # updates the remote copy of the page
        names: tuple[str, ...] = (*STEPS, "remem") if is_remote else STEPS
        states = context.steps.states_of(call_id)
        is_ours = context.calls.get(call_id).owner == OWNER
        if is_ours and any(
            states.get(name) not in ("done", "skipped") for name in PAGE_STEPS
        ):
            first, *others = names
            names = (first, *PAGE_STEPS, *others)
        if context.judging is not None:  # after the facts, before the next call
            names = (*names, "judge")
        self.runner.run_by_hand(call_id, names, UNFINISHED_REASON)
        return [
            FailedStep(call_id, step.name, step.reason)
            for step in context.steps.of_call(call_id)
            if step.name in names and step.state == "failed"
        ]


@contextmanager
def _noting_failure(link: ChainLink, failed: list[str]) -> Iterator[None]:
    """One call's fault does not stop the others."""
    try:
        yield
    except AftercallError as error:
        failed.append(link.name)
        log.warning("a call could not be rebuilt", call=link.call, error=error.code)


def clear_memory(connection: Connection) -> None:
    """Delete what can be made again from the archive.

    Documents that a client sent, and facts of calls whose archive file is gone, stay.
    """
    expired = select(calls.c.id).where(
        calls.c.state == "sealed", calls.c.archive_name.is_(None)
    )
    kept = select(fact_occurrences.c.fact_id).where(
        fact_occurrences.c.call_id.in_(expired)
    )
    going = select(facts.c.id).where(facts.c.id.not_in(kept)).scalar_subquery()
    clear_pins(connection)
    connection.execute(
        delete(passages).where(or_(passages.c.ref.is_(None), passages.c.ref.in_(going)))
    )
    connection.execute(
        delete(fact_occurrences).where(fact_occurrences.c.fact_id.in_(going))
    )
    connection.execute(
        update(facts).values(supersedes=None).where(facts.c.id.in_(going))
    )
    connection.execute(
        delete(extraction_log).where(extraction_log.c.call_id.not_in(expired))
    )
    connection.execute(delete(briefings))
    connection.execute(delete(facts).where(facts.c.id.in_(going)))
    of_call = documents.c.call_id
    connection.execute(
        delete(documents).where(of_call.is_not(None), of_call.not_in(expired))
    )


def insert_archived_call(
    connection: Connection, call: Call, link: ChainLink, addenda: int, now: datetime
) -> bool:
    """Add an archived call that the database does not know; False if it does.

    Its follow-up work counts as done. The archive does not name who answered, so the call counts
    as handed in.
    """
    if connection.execute(select(calls.c.id).where(calls.c.id == call.id)).first():
        return False
    sealed = {
        "state": "sealed",
        "owner": OWNER,
        "postcall": "started",
        "turn_count": len(call.turns),
        "is_silent": call.is_silent,
        "is_handed_in": True,
        "ended_at": call.ended_at,
        "end_reason": call.end_reason,
        "archive_name": link.name,
        "archive_sha256": link.sha256,
        "addenda": addenda,
        "sealed_at": now,
    }
    connection.execute(insert(calls), to_columns(call) | sealed)
    run = {
        "agent_id": call.agent_id,
        "caller": call.caller,
        "ended_at": call.ended_at,
        "state": "done",
        "changed_at": now,
        "reason": REBUILT_REASON,
    }
    upsert(
        connection, followup_runs, {"conversation": call.conversation}, run, changes={}
    )
    return True
