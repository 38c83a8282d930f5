"""Facts as passages: what the ledger of facts tells, written where search finds it, in the ledger's own transaction."""

from collections.abc import Sequence

from sqlalchemy import Connection

from aftercall.memory import index
from aftercall.memory.passages import store
from aftercall.model.passages import Passage


class PassageIndex:
    """A fact is one passage however often it was said; each time adds the words around it."""

    def add(self, connection: Connection, passages: Sequence[index.Passage]) -> None:
        store.tell(connection, [_fact(told) for told in passages])

    def retire(self, connection: Connection, refs: Sequence[str]) -> None:
        store.retire(connection, store.ends_of_facts(connection, refs))

    def remove(self, connection: Connection, refs: Sequence[str]) -> None:
        store.remove(connection, refs=refs)


def _fact(told: index.Passage) -> Passage:
    return Passage(
        kind="fact",
        agent_id=told.key.agent_id,
        caller=told.key.caller,
        call_id=told.call_id,
        text=told.text,
        at=told.at,
        seq=told.first_turn,
        ref=told.ref,
        category=told.category,
        visibility=told.visibility,
        around=told.around,
    )
