"""Corrections: what a person put right, who did it and when.

A correction is written in the transaction that changes the corrected row. It stays when memory is
rebuilt, so that the same reading of a call leads to the corrected row again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Connection,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)

from aftercall.db.connect import Database
from aftercall.db.statements import InstantColumn, PreparedStatement
from aftercall.db.tables import metadata
from aftercall.errors import NotFound, RefusedInput
from aftercall.ids import new_id
from aftercall.model.json_fields import Json
from aftercall.model.people import PERSON_SEPARATOR

# The newest of several corrections of one thing counts.
corrections = Table(
    "corrections",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    # a party, * for shared memory, null for a withheld number
    Column("caller", Text),
    Column("call_id", Text),  # the first call it rests on; null for a name
    Column("what", Text, nullable=False),
    # what is corrected, by a key that a rerun and a rebuild keep: of a follow-up, a fact's
    # identity, or the party
    Column("key", Text, nullable=False),
    Column("old", Text),  # null: there was nothing; encrypted for a secret
    Column("new", Text),  # null: there is no such thing; encrypted for a secret
    Column("details", JSON),  # of a missed fact, an unclear request, a disputed fact
    Column("who", Text, nullable=False),
    Column("at", InstantColumn, nullable=False),
    # due while a page is to be written, applied, undone while a page is to be written back
    Column("state", Text, nullable=False),
)

CorrectedThing = Literal[
    "request", "due", "kind", "person", "done", "fact", "name", "call_name"
]
NAMES: tuple[CorrectedThing, ...] = ("name", "call_name")  # fields of USER.md
FOLLOWUPS: dict[str, str] = {
    "request": "title",
    "due": "due",
    "kind": "request_kind",
    "person": "person",
    "done": "sink",
}
"""The column of a follow-up that each thing is; what a person did is told as it stood before."""
DECISION: Final = "settled"
"""A decision about facts: a dispute that was settled, a fact that was restored or retired."""
CorrectionState = Literal["due", "applied", "undone"]


@dataclass(frozen=True)
class Correction:
    """`key` names the corrected thing. Without `new` there is no such thing.

    Without `old` the reader has missed it. Both are encrypted if the corrected fact is secret.
    A decision names the facts that it was made against in `details`, by their identities.
    """

    agent_id: str
    caller: str | None = field(repr=False)
    call_id: str | None
    what: CorrectedThing | Literal["settled"]
    key: str = field(repr=False)
    old: str | None = field(repr=False)
    new: str | None = field(repr=False)
    who: str
    at: datetime
    state: CorrectionState = "applied"
    details: Json | None = None
    id: str = field(default_factory=new_id)

    @property
    def is_removal(self) -> bool:
        return self.new is None and self.what in ("request", "fact")

    @property
    def until(self) -> str:
        """Of a decision that a fact is no longer true: since when."""
        return str((self.details or {}).get("until", ""))

    @property
    def is_for_both(self) -> bool:
        return bool(self.details and self.details.get("both"))


def add_correction(connection: Connection, correction: Correction) -> None:
    connection.execute(insert(corrections), vars(correction))


def delete_correction(connection: Connection, correction: Correction) -> None:
    _refuse_earlier(connection, correction)
    connection.execute(delete(corrections).where(corrections.c.id == correction.id))


def mark_undone(connection: Connection, correction: Correction) -> None:
    """It counts no longer. Its row goes when the pages are written back."""
    _refuse_earlier(connection, correction)
    is_row = corrections.c.id == correction.id
    connection.execute(update(corrections).where(is_row).values(state="undone"))


def _refuse_earlier(connection: Connection, correction: Correction) -> None:
    """Only the newest correction of a thing may go: it starts from the ones before."""
    of_thing = list_of_thing(connection, correction)
    if correction.id not in {one.id for one in of_thing}:
        raise NotFound(f"there is no correction {correction.id}")
    if of_thing[-1].id != correction.id:
        raise RefusedInput(
            "correction", f"was corrected again; undo {of_thing[-1].id} first"
        )


def list_of_thing(connection: Connection, correction: Correction) -> list[Correction]:
    """Every correction of the same thing, oldest first."""
    counts = and_(_is_of_thing(correction), corrections.c.state != "undone")
    query = select(corrections).where(counts).order_by(corrections.c.id)
    return _fetch(connection, query)


def delete_chains(connection: Connection, correction_ids: Sequence[str]) -> None:
    """These corrections, and the earlier ones of the same things."""
    is_wanted = corrections.c.id.in_(correction_ids)
    for one in _fetch(connection, select(corrections).where(is_wanted)):
        connection.execute(delete(corrections).where(_is_of_thing(one)))


def delete_decisions(
    connection: Connection, agent_id: str, caller: str, identity: str
) -> None:
    """Those for a fact that is forgotten."""
    connection.execute(
        delete(corrections).where(
            corrections.c.agent_id == agent_id,
            corrections.c.caller == caller,
            corrections.c.what == DECISION,
            corrections.c.key == identity,
        )
    )


def _is_of_thing(correction: Correction) -> ColumnElement[bool]:
    return and_(
        corrections.c.agent_id == correction.agent_id,
        corrections.c.caller.is_not_distinct_from(correction.caller),
        corrections.c.what == correction.what,
        corrections.c.key == correction.key,
    )


def list_chains(
    connection: Connection,
    agent_id: str,
    whats: Iterable[str],
    *,
    keys: Iterable[str] | None = None,
) -> list[list[Correction]]:
    """The corrections of each thing, oldest first: the last one counts."""
    is_wanted = [
        corrections.c.agent_id == agent_id,
        corrections.c.what.in_(list(whats)),
        corrections.c.state != "undone",
    ]
    if keys is not None:
        is_wanted.append(corrections.c.key.in_(list(keys)))
    query = select(corrections).where(*is_wanted).order_by(corrections.c.id)
    return _group_chains(_fetch(connection, query))


_OF_MEMORY = PreparedStatement(  # asked for with every call
    select(corrections)
    .where(
        corrections.c.agent_id == bindparam("agent"),
        corrections.c.caller == bindparam("caller"),
        or_(corrections.c.what == "fact", corrections.c.what == DECISION),
        corrections.c.state != "undone",
    )
    .order_by(corrections.c.id)
)


def list_memory_chains(
    connection: Connection, agent_id: str, caller: str
) -> list[list[Correction]]:
    """Those of the facts of one memory, and what was decided between them."""
    rows = _OF_MEMORY.fetch(connection, {"agent": agent_id, "caller": caller})
    return _group_chains(
        Correction(**dict(zip(corrections.c.keys(), row, strict=True))) for row in rows
    )


def _group_chains(found: Iterable[Correction]) -> list[list[Correction]]:
    chains: dict[tuple[str, str], list[Correction]] = {}
    for one in found:
        chains.setdefault((one.what, one.key), []).append(one)
    return list(chains.values())


def _fetch(connection: Connection, query: Any) -> list[Correction]:
    return [Correction(**row._mapping) for row in connection.execute(query)]


class CorrectionStore:
    """The rows of corrections and of decisions about facts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, correction_id: str) -> Correction:
        found = self._select(corrections.c.id == correction_id)
        if not found:
            raise NotFound(
                f"there is no correction {correction_id!r}; `aftercall corrections list` lists "
                "all"
            )
        return found[0]

    def page(
        self, *, limit: int, caller: str | None = None, before: str | None = None
    ) -> list[Correction]:
        """Newest first: ids sort by time. `caller` is a number with everybody at it."""
        wanted = [corrections.c.state != "undone"]
        if caller:
            others = f"{caller}{PERSON_SEPARATOR}"
            is_guest = corrections.c.caller.startswith(others, autoescape=True)
            wanted.append(or_(corrections.c.caller == caller, is_guest))
        if before:
            wanted.append(corrections.c.id < before)
        return self._select(*wanted, limit=limit)

    def list_pending(self, limit: int = 100) -> list[Correction]:
        """Those whose pages are to be written, oldest first."""
        return self._select(corrections.c.state != "applied", limit=limit)[::-1]

    def finish(self, correction: Correction) -> None:
        """After its pages were written."""
        is_row = and_(
            corrections.c.id == correction.id, corrections.c.state == correction.state
        )
        with self._database.write() as connection:
            if correction.state == "undone":
                connection.execute(delete(corrections).where(is_row))
            else:
                applied = update(corrections).where(is_row)
                connection.execute(applied.values(state="applied"))

    def list_chains(
        self, agent_id: str, whats: Iterable[str], keys: Iterable[str]
    ) -> list[list[Correction]]:
        with self._database.read() as connection:
            return list_chains(connection, agent_id, whats, keys=keys)

    def _select(self, *wanted: Any, limit: int = 1000) -> list[Correction]:
        query = select(corrections).where(*wanted)
        newest = query.order_by(corrections.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            return _fetch(connection, newest)
