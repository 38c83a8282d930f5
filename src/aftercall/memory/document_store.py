"""The SQL of documents.

Searching is by the words of the query for now; the seam for a better one is `search`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    case,
    func,
    literal,
    or_,
    select,
    update,
)

from aftercall.db.connect import Database
from aftercall.db.stale_briefings import invalidate_briefing
from aftercall.db.statements import upsert
from aftercall.db.tables import documents
from aftercall.errors import NotFound, RefusedInput
from aftercall.model.calls import Call
from aftercall.model.passages import MAX_CONTENT_CHARS, Document, make_document_id
from aftercall.model.people import split_party
from aftercall.model.reading import Summary

SOURCE = "voice-call"
NEXT_CALL_HEADING = "### Context for Next Call"
PLATFORM = "elevenlabs"  # whose own id of a call, its `conversation_id`, is the session's
TAGS = ("voice-session", "aftercall", "phone-call")


def make_call_document(
    call: Call, summary: Summary, name: str | None, zone: tzinfo, now: datetime
) -> Document:
    """The document of a call. Its title tells no number: titles are shown where pages are not."""
    title = f"Voice Call Summary — {_local(call.started_at, zone)}"
    return Document(
        id=make_document_id("call", call.id),
        title=title,
        content=_content(call, summary, name, title)[:MAX_CONTENT_CHARS],
        source=SOURCE,
        tags=TAGS,
        metadata={
            "session_id": make_session_id(call),
            "call_id": call.id,
            "started_at": call.started_at.isoformat(),
            "direction": call.direction,
        },
        agent_id=call.agent_id,
        caller=call.caller if call.direction == "inbound" else call.callee,
        call_id=call.id,
        made_at=now,
        changed_at=now,
    )


def parse_next_call_context(content: str) -> str:
    """What a page says the next call should know; whoever wrote to it last is believed."""
    _, heading, below = f"\n{content}".rpartition(f"\n{NEXT_CALL_HEADING}\n")
    return _line(below.partition("\n#")[0]) if heading else ""


def make_session_id(call: Call) -> str:
    return f"voice-session:{_line(call.sid) if call.source == PLATFORM else call.id}"


def _content(call: Call, summary: Summary, name: str | None, title: str) -> str:
    number = split_party(
        (call.caller if call.direction == "inbound" else call.callee) or "withheld"
    )[0]
    minutes, seconds = divmod(round(call.duration_s), 60)
    head = [
        f"## {title}",
        "",
        f"**Session:** {make_session_id(call)}",
        f"**Duration:** {minutes}m {seconds}s",
        f"**Caller:** {_line(name)} ({number})" if name else f"**Caller:** {number}",
    ]
    sections = [
        _section("Topics Discussed", summary.topics or (summary.text,)),
        _section("Key Decisions", summary.decisions),
        _section("Action Items", summary.actions, "- [ ] "),
        _section("Important Facts", summary.facts),
        [NEXT_CALL_HEADING, _line(summary.context)] if _line(summary.context) else [],
    ]
    return (
        "\n".join(head + [line for section in sections if section for line in ("", *section)])
        + "\n"
    )


def _section(heading: str, items: Iterable[str], bullet: str = "- ") -> list[str]:
    lines = [f"{bullet}{_line(item)}" for item in items if _line(item)]
    return [f"### {heading}", *lines] if lines else []


def _line(text: str | None) -> str:
    """One line: what was said cannot begin a heading or a list of its own."""
    return " ".join((text or "").split())


def _local(instant: datetime, zone: tzinfo) -> str:
    local = instant.astimezone(zone)
    return (
        f"{local:%Y-%m-%d} {local.hour % 12 or 12}:{local:%M} {'AM' if local.hour < 12 else 'PM'}"
    )


MAX_QUERY_TERMS = 16
_TERM = re.compile(r"\w+")


class DocumentStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, document: Document) -> bool:
        """Keep a document; False if one with its id is there already, which stays as it is."""
        with self._database.write() as connection:
            return self.add(connection, document)

    def add(self, connection: Connection, document: Document) -> bool:
        """The same, inside the transaction it is given."""
        values = document.model_dump(exclude={"id"}) | {"tags": list(document.tags)}
        is_new = (
            connection.execute(select(documents.c.id).where(documents.c.id == document.id)).first()
            is None
        )
        upsert(connection, documents, {"id": document.id}, values, changes={})
        invalidate_briefing(connection, document.agent_id, document.caller)
        return is_new

    def save_page(self, page: Document) -> None:
        with self._database.write() as connection:
            self.add_page(connection, page)

    def add_page(self, connection: Connection, page: Document) -> None:
        """The page of a call, in place of the one made before; one that a client has written to
        stays as it is.
        """
        if not self.add(connection, page):
            anew = page.model_dump(include={"title", "content", "metadata", "caller"})
            is_ours = documents.c.changed_at == documents.c.made_at
            connection.execute(
                update(documents).where(documents.c.id == page.id, is_ours).values(anew)
            )

    def get(self, document_id: str) -> Document:
        with self._database.read() as connection:
            row = connection.execute(select(documents).where(documents.c.id == document_id)).first()
        if row is None:
            raise NotFound(f"there is no document {document_id}")
        return _to_document(row)

    def update_content(
        self, document_id: str, content: str, *, appends: bool, now: datetime
    ) -> Document:
        with self._database.write() as connection:
            known = connection.execute(
                select(documents).where(documents.c.id == document_id).with_for_update()
            ).first()
            if known is None:
                raise NotFound(f"there is no document {document_id}")
            whole = f"{known.content.rstrip()}\n\n{content}" if appends else content
            if len(whole) > MAX_CONTENT_CHARS:
                raise RefusedInput(
                    "content", f"would be longer than {MAX_CONTENT_CHARS:,} characters"
                )
            connection.execute(
                update(documents)
                .where(documents.c.id == document_id)
                .values(content=whole, changed_at=now)
            )
            invalidate_briefing(connection, known.agent_id, known.caller)
        return self.get(document_id)

    def redact(self, call_id: str, clean: Callable[[str], str]) -> None:
        """Take a secret out of the page of a call."""
        with self._database.write() as connection:
            for row in connection.execute(
                select(documents).where(documents.c.call_id == call_id)
            ).all():
                if (hushed := clean(row.content)) != row.content:
                    connection.execute(
                        update(documents).where(documents.c.id == row.id).values(content=hushed)
                    )
                    invalidate_briefing(connection, row.agent_id, row.caller)

    def search(
        self,
        query: str,
        limit: int,
        *,
        tags: Sequence[str] = (),
        namespaces: Sequence[str] = (),
        caller: str | None = None,
    ) -> list[Document]:
        """Documents that hold words of the query, those with most of them first, and of those
        the newest.
        """
        terms = list(dict.fromkeys(_TERM.findall(query.lower())))[:MAX_QUERY_TERMS]
        if not terms:
            return []
        text = func.lower(documents.c.title + literal("\n") + documents.c.content)
        held = [text.contains(term, autoescape=True) for term in terms]
        hits = sum((case((found, 1), else_=0) for found in held), literal(0))
        wanted: list[ColumnElement[bool]] = [or_(*held)]
        if namespaces and "*" not in namespaces:
            wanted.append(documents.c.namespace.in_(namespaces))
        if caller is not None:
            wanted.append(documents.c.caller == caller)
        ordered = (
            select(documents)
            .where(and_(*wanted))
            .order_by(hits.desc(), documents.c.made_at.desc(), documents.c.id.desc())
        )
        with self._database.read() as connection:
            found = (
                _to_document(row)
                for row in connection.execute(ordered if tags else ordered.limit(limit))
            )
            return [document for document in found if set(tags) <= set(document.tags)][:limit]


def _to_document(row: Row[Any]) -> Document:
    return Document.model_validate(row._asdict())
