"""The SQL of documents. Searching is by the words of the query for now; the seam for a better one is `search`."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, literal, or_, select, update

from aftercall.db.connect import Database
from aftercall.db.freshness import outdate
from aftercall.db.tables import documents
from aftercall.db.upsert import upsert
from aftercall.errors import NotFound, RefusedInput
from aftercall.model.documents import MAX_CONTENT, Document

MOST_TERMS = 16
_TERM = re.compile(r"\w+")


class DocumentStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, document: Document) -> bool:
        """Keep a document; False if one with its id is there already, which stays as it is."""
        with self._database.write() as connection:
            return self.add(connection, document)

    def add(self, connection: Connection, document: Document) -> bool:
        """The same, inside the transaction it is given."""
        values = document.model_dump(exclude={"id"}) | {"tags": list(document.tags)}
        is_new = connection.execute(select(documents.c.id).where(documents.c.id == document.id)).first() is None
        upsert(connection, documents, {"id": document.id}, values, changes={})
        outdate(connection, document.agent_id, document.caller)
        return is_new

    def put_page(self, page: Document) -> None:
        with self._database.write() as connection:
            self.add_page(connection, page)

    def add_page(self, connection: Connection, page: Document) -> None:
        """The page of a call, in place of the one made before; one that a client has written to stays as it is."""
        if not self.add(connection, page):
            anew = page.model_dump(include={"title", "content", "metadata", "caller"})
            is_ours = documents.c.changed_at == documents.c.made_at
            connection.execute(update(documents).where(documents.c.id == page.id, is_ours).values(anew))

    def get(self, document_id: str) -> Document:
        with self._database.read() as connection:
            row = connection.execute(select(documents).where(documents.c.id == document_id)).first()
        if row is None:
            raise NotFound(f"there is no document {document_id}")
        return _to_document(row)

    def change(self, document_id: str, content: str, *, appends: bool, now: datetime) -> Document:
        with self._database.write() as connection:
            known = connection.execute(select(documents).where(documents.c.id == document_id).with_for_update()).first()
            if known is None:
                raise NotFound(f"there is no document {document_id}")
            whole = f"{known.content.rstrip()}\n\n{content}" if appends else content
            if len(whole) > MAX_CONTENT:
                raise RefusedInput("content", f"would be longer than {MAX_CONTENT:,} characters")
            connection.execute(update(documents).where(documents.c.id == document_id).values(content=whole, changed_at=now))
            outdate(connection, known.agent_id, known.caller)
        return self.get(document_id)

    def hush(self, call_id: str, clean: Callable[[str], str]) -> None:
        """Take a secret out of the page of a call."""
        with self._database.write() as connection:
            for row in connection.execute(select(documents).where(documents.c.call_id == call_id)).all():
                if (hushed := clean(row.content)) != row.content:
                    connection.execute(update(documents).where(documents.c.id == row.id).values(content=hushed))
                    outdate(connection, row.agent_id, row.caller)

    def search(
        self, query: str, limit: int, *, tags: Sequence[str] = (), namespaces: Sequence[str] = (), caller: str | None = None
    ) -> list[Document]:
        """Documents that hold words of the query, those with most of them first, and of those the newest."""
        terms = list(dict.fromkeys(_TERM.findall(query.lower())))[:MOST_TERMS]
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
        ordered = select(documents).where(and_(*wanted)).order_by(hits.desc(), documents.c.made_at.desc(), documents.c.id.desc())
        with self._database.read() as connection:
            found = (_to_document(row) for row in connection.execute(ordered if tags else ordered.limit(limit)))
            return [document for document in found if set(tags) <= set(document.tags)][:limit]


def _to_document(row: Row[Any]) -> Document:
    return Document.model_validate(row._asdict())
