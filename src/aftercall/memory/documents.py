"""Documents: the page of each call, documents of clients, and a search by plain words."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from hashlib import sha256
from typing import Any

import httpx2
from sqlalchemy import (
    Connection,
    Row,
    case,
    func,
    literal,
    or_,
    select,
    update,
)

from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import documents
from aftercall.errors import (
    NotFound,
    RefusedInput,
    RememRefused,
    RememUnavailable,
    RestError,
)
from aftercall.model.calls import Call
from aftercall.model.passages import (
    MAX_CONTENT_CHARS,
    NEXT_CALL_HEADING,
    Document,
    is_document_id,
    make_document_id,
)
from aftercall.model.people import split_party
from aftercall.model.reading import Summary
from aftercall.rest import RETRYABLE_STATUSES, describe_network_error, read_retry_pause
from aftercall.settings.providers import RememSettings

SOURCE = "voice-call"
PLATFORM = "elevenlabs"  # its calls keep its `conversation_id` as session id
TAGS = ("voice-session", "aftercall", "phone-call")
MAX_QUERY_TERMS = 16
_TERM = re.compile(r"\w+")


def make_call_document(
    call: Call, summary: Summary, name: str | None, zone: tzinfo, now: datetime
) -> Document:
    """The page of a call. The title holds no number: titles are shown more widely than pages."""
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
        caller=_get_party(call),
        call_id=call.id,
        made_at=now,
        changed_at=now,
    )


def make_session_id(call: Call) -> str:
    return f"voice-session:{_line(call.sid) if call.source == PLATFORM else call.id}"


def _content(call: Call, summary: Summary, name: str | None, title: str) -> str:
    number = split_party(_get_party(call) or "withheld")[0]
    minutes, seconds = divmod(round(call.duration_s), 60)
    lines = [
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
    for section in sections:
        if section:
            lines += ["", *section]
    return "\n".join(lines) + "\n"


def _get_party(call: Call) -> str | None:
    return call.caller if call.direction == "inbound" else call.callee


def _section(heading: str, items: Iterable[str], bullet: str = "- ") -> list[str]:
    lines = [f"{bullet}{_line(item)}" for item in items if _line(item)]
    return [f"### {heading}", *lines] if lines else []


def _line(text: str | None) -> str:
    """One line, so that what was said cannot start a heading or a list."""
    return " ".join((text or "").split())


def _local(instant: datetime, zone: tzinfo) -> str:
    local = instant.astimezone(zone)
    half = "AM" if local.hour < 12 else "PM"
    return f"{local:%Y-%m-%d} {local.hour % 12 or 12}:{local:%M} {half}"


class DocumentStore:
    """The pages of calls and the documents of clients."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, document: Document) -> bool:
        """False if the id is known already; that document stays as it is."""
        with self._database.write() as connection:
            return self.add(connection, document)

    def add(self, connection: Connection, document: Document) -> bool:
        """`create`, inside a transaction."""
        values = document.model_dump(exclude={"id"}) | {"tags": list(document.tags)}
        is_new = upsert(connection, documents, {"id": document.id}, values, changes={})
        invalidate_briefing(connection, document.agent_id, document.caller)
        return is_new

    def save_page(self, page: Document) -> None:
        with self._database.write() as connection:
            self.add_page(connection, page)

    def add_page(self, connection: Connection, page: Document) -> None:
        """Add or replace the page of a call. A page that a client has changed stays."""
        if self.add(connection, page):
            return
        values = page.model_dump(include={"title", "content", "metadata", "caller"})
        is_unchanged = documents.c.changed_at == documents.c.made_at
        change = update(documents).where(documents.c.id == page.id, is_unchanged)
        connection.execute(change.values(values))

    def get(self, document_id: str) -> Document:
        query = select(documents).where(documents.c.id == document_id)
        row = self._database.fetch_first(query)
        if row is None:
            raise NotFound(f"there is no document {document_id}")
        return _to_document(row)

    def update_content(
        self, document_id: str, content: str, *, appends: bool, now: datetime
    ) -> Document:
        with self._database.write() as connection:
            query = select(documents).where(documents.c.id == document_id)
            known = connection.execute(query.with_for_update()).first()
            if known is None:
                raise NotFound(f"there is no document {document_id}")
            whole = f"{known.content.rstrip()}\n\n{content}" if appends else content
            if len(whole) > MAX_CONTENT_CHARS:
                raise RefusedInput(
                    "content", f"would be longer than {MAX_CONTENT_CHARS:,} characters"
                )
            change = update(documents).where(documents.c.id == document_id)
            connection.execute(change.values(content=whole, changed_at=now))
            invalidate_briefing(connection, known.agent_id, known.caller)
        return self.get(document_id)

    def redact(self, call_id: str, clean: Callable[[str], str]) -> None:
        """Mask a secret in the page of a call."""
        query = select(documents).where(documents.c.call_id == call_id)
        with self._database.write() as connection:
            for row in connection.execute(query).all():
                masked = clean(row.content)
                if masked != row.content:
                    change = update(documents).where(documents.c.id == row.id)
                    connection.execute(change.values(content=masked))
                    invalidate_briefing(connection, row.agent_id, row.caller)

    def search(
        self,
        query: str,
        limit: int,
        *,
        tags: Sequence[str] = (),
        namespaces: Sequence[str] = (),
    ) -> list[Document]:
        """Documents that hold words of the query; those with most of them first, then newest."""
        terms = list(dict.fromkeys(_TERM.findall(query.lower())))[:MAX_QUERY_TERMS]
        if not terms:
            return []
        text = func.lower(documents.c.title + literal("\n") + documents.c.content)
        held = [text.contains(term, autoescape=True) for term in terms]
        hits = sum((case((found, 1), else_=0) for found in held), literal(0))
        found_by = select(documents).where(or_(*held))
        if namespaces and "*" not in namespaces:
            found_by = found_by.where(documents.c.namespace.in_(namespaces))
        ordered = found_by.order_by(
            hits.desc(), documents.c.made_at.desc(), documents.c.id.desc()
        )
        rows = self._database.fetch(ordered if tags else ordered.limit(limit))
        found = [_to_document(row) for row in rows]
        tagged = [one for one in found if set(tags) <= set(one.tags)]
        return tagged[:limit]


def _to_document(row: Row[Any]) -> Document:
    return Document.model_validate(row._asdict())


CALLER_PLACEHOLDER = "{caller}"
DEFAULT_URL = "https://api.remem.io"
TIMEOUT_S = 15.0
NOT_FOUND = 404


class RememClient:
    """Sends documents to a Remem server."""

    def __init__(
        self, settings: RememSettings, transport: httpx2.BaseTransport | None = None
    ) -> None:
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        self._settings = settings
        self._http = httpx2.Client(
            base_url=settings.api_url or DEFAULT_URL,
            headers={"X-API-Key": key, "Authorization": f"Bearer {key}"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    def send(self, document: Document, remote_id: str = "") -> str:
        """Send a document; returns its remote id, or an empty string if the answer has none.

        With the `remote_id` of an earlier copy, that copy is replaced, or created again if it is
        gone.
        """
        if is_document_id(remote_id):
            change: dict[str, object] = {"content": document.content, "mode": "replace"}
            answer = self._request("PUT", f"/v1/documents/{remote_id}", change)
            if answer.is_success:
                return remote_id
            if answer.status_code != NOT_FOUND:
                raise _to_error(answer)
        path, body = _make_request(document, self._settings)
        key = {"Idempotency-Key": make_document_id("remem", document.id)}
        answer = self._request("POST", path, body, key)
        if not answer.is_success:
            raise _to_error(answer)
        return _parse_id(answer)

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, object],
        headers: dict[str, str] | None = None,
    ) -> httpx2.Response:
        try:
            return self._http.request(method, path, json=body, headers=headers)
        except httpx2.HTTPError as error:
            raise RememUnavailable(
                f"remem: no answer ({describe_network_error(error)}); retried later"
            ) from None

    def close(self) -> None:
        self._http.close()


def _make_request(
    document: Document, settings: RememSettings
) -> tuple[str, dict[str, object]]:
    page: dict[str, object] = {
        "title": document.title,
        "content": document.content,
        "source": document.source,
    }
    if settings.namespace:
        page["namespace"] = settings.namespace.replace(
            CALLER_PLACEHOLDER, make_caller_token(document.caller)
        )
    if settings.dialect == "documents":
        return "/v1/documents", page | {"tags": ", ".join(document.tags)}
    body = page | {
        "metadata": document.metadata | {"tags": list(document.tags)},
        "source_id": document.call_id or document.id,
        "mime_type": "text/markdown",
        "return_id": True,
    }
    return "/v1/documents/ingest", body


def make_caller_token(caller: str | None) -> str:
    """A token for the namespace instead of the number; it can be computed from the number."""
    return sha256((caller or "").encode()).hexdigest()[:16]


def _to_error(answer: httpx2.Response) -> RestError:
    """By the status alone: the form of the error bodies is not documented."""
    status = answer.status_code
    if status in RETRYABLE_STATUSES:
        return RememUnavailable(
            f"remem: is busy or failing (HTTP {status}); retried later",
            read_retry_pause(answer),
        )
    reasons = {
        401: "refuses the key; check REMEM_API_KEY",
        403: "the key may not write there; check remem.namespace",
    }
    reason = reasons.get(status, f"refuses the document (HTTP {status})")
    return RememRefused(f"remem: {reason}")


def _parse_id(answer: httpx2.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return ""
    found = (
        (body.get("document_id") or body.get("id")) if isinstance(body, dict) else None
    )
    return found if isinstance(found, str) else ""
