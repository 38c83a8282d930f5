"""Document memory in the Remem format, served from our store. Existing clients of either
dialect can use it.
"""

from typing import Annotated, Any, Literal, TypeVar
from uuid import uuid4

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.clock import format_instant
from aftercall.errors import NotFound, RefusedInput
from aftercall.model.calls import to_refused_input
from aftercall.model.json_fields import Json, pick_fields
from aftercall.model.passages import (
    MAX_CONTENT_CHARS,
    MAX_TITLE_CHARS,
    Document,
    is_document_id,
    make_document_id,
)
from aftercall.model.plain_json import parse_json
from aftercall.web.api_models import ApiAnswer, Time, describe_body
from aftercall.web.routes import add_section

MAX_BODY_BYTES = 8 * 1024 * 1024
SNIPPET_CHARS = 500
MAX_QUERY_CHARS = 2000
B = TypeVar("B", bound=BaseModel)


def _split_tags(value: Any) -> Any:
    """One dialect sends tags as a string with commas, the other as a list."""
    if not isinstance(value, str):
        return value
    return [tag.strip() for tag in value.split(",") if tag.strip()]


Tags = Annotated[list[str], BeforeValidator(_split_tags), Field(max_length=100)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")  # clients send fields of other servers


class NewDocument(_Body):
    title: str = Field(default="Untitled", max_length=MAX_TITLE_CHARS)
    content: str = Field(min_length=1, max_length=MAX_CONTENT_CHARS)
    source: str = Field(default="api", max_length=200)
    tags: Tags = []
    metadata: Json = {}
    namespace: str = Field(default="", max_length=200)


class DocumentChange(_Body):
    content: str = Field(min_length=1, max_length=MAX_CONTENT_CHARS)
    mode: Literal["replace", "append"] = "replace"


class DocumentQuery(_Body):
    query: str | None = None
    text: str | None = None
    max_results: int = Field(default=10, ge=1, le=100)
    limit: int | None = Field(default=None, ge=1, le=100)
    tags: Tags = []
    namespaces: list[str] = []


class DocumentAnswer(ApiAnswer):
    id: str
    title: str
    content: str
    source: str
    tags: list[str]
    metadata: Json
    namespace: str
    created_at: Time
    updated_at: Time


class IngestAnswer(ApiAnswer):
    status: str
    document_id: str
    fact_extraction_status: str


class FoundDocument(ApiAnswer):
    id: str
    document_id: str
    title: str
    snippet: str
    chunks: list[Json] = Field(description="`content` and `score`")
    tags: list[str]
    created_at: Time


class QueryAnswer(ApiAnswer):
    results: list[FoundDocument]
    facts: list[Any] = Field(description="always empty; clients of Remem read it")
    fact_count: int
    synthesis: None
    sources: list[Any]


def add_routes(parent: APIRouter, app: App) -> None:
    router = add_section(parent, "/v1", tags=["documents"])
    _add_query_route(router, app)
    key = Header(default=None, alias="Idempotency-Key", max_length=200)

    @router.post(
        "/documents",
        response_model=DocumentAnswer,
        status_code=201,
        summary="Store a document",
        openapi_extra=describe_body(NewDocument),
    )
    async def add_document(request: Request, idempotency_key: str | None = key) -> Json:
        return _document_json(await _store_document(app, request, idempotency_key))

    @router.post(
        "/documents/ingest",
        response_model=IngestAnswer,
        status_code=202,
        summary="Store a document, as newer clients do",
        openapi_extra=describe_body(NewDocument),
    )
    async def ingest_document(
        request: Request, idempotency_key: str | None = key
    ) -> Json:
        document = await _store_document(app, request, idempotency_key)
        return {
            "status": "accepted",
            "document_id": document.id,
            "fact_extraction_status": "none",
        }

    @router.get(
        "/documents/{document_id}",
        response_model=DocumentAnswer,
        summary="One document",
    )
    def get_document(document_id: str) -> Json:
        return _document_json(app.documents.get(_check_document_id(document_id)))

    @router.put(
        "/documents/{document_id}",
        response_model=DocumentAnswer,
        summary="Replace a document's content, or append to it",
        openapi_extra=describe_body(DocumentChange),
    )
    async def change_document(document_id: str, request: Request) -> Json:
        change = _parse(DocumentChange, await request.body())
        document = await run_in_threadpool(
            app.documents.update_content,
            _check_document_id(document_id),
            change.content,
            appends=change.mode == "append",
            now=app.clock.now(),
        )
        return _document_json(document)


def _add_query_route(router: APIRouter, app: App) -> None:
    @router.post(
        "/query",
        response_model=QueryAnswer,
        summary="Find documents by words",
        openapi_extra=describe_body(DocumentQuery),
    )
    async def query_documents(request: Request) -> Json:
        query = _parse(DocumentQuery, await request.body())
        found = await run_in_threadpool(_find_documents, app, query)
        return {
            "results": [_result_json(document) for document in found],
            "facts": [],
            "fact_count": 0,
            "synthesis": None,
            "sources": [],
        }


def _find_documents(app: App, query: DocumentQuery) -> list[Document]:
    wanted = query.query if query.query is not None else query.text
    if wanted is None:
        raise RefusedInput("query", "is missing")
    return app.documents.search(
        wanted[:MAX_QUERY_CHARS],
        query.limit or query.max_results,
        tags=query.tags,
        namespaces=query.namespaces,
    )


async def _store_document(app: App, request: Request, key: str | None) -> Document:
    """The same key makes the same document; without one it is new."""
    body = _parse(NewDocument, await request.body())
    now = app.clock.now()
    tags = body.tags or _split_tags(body.metadata.get("tags", []))
    if not isinstance(tags, list):
        tags = []
    document = Document(
        **body.model_dump(exclude={"tags"}),
        id=make_document_id("key", key) if key else str(uuid4()),
        tags=tuple(tag for tag in tags if isinstance(tag, str)),
        agent_id=app.settings.agent_id,
        made_at=now,
        changed_at=now,
    )
    await run_in_threadpool(app.documents.create, document)
    return await run_in_threadpool(app.documents.get, document.id)


def _parse(form: type[B], raw: bytes) -> B:
    try:
        return form.model_validate(parse_json(raw))
    except ValidationError as error:
        raise to_refused_input(error) from None


def _check_document_id(document_id: str) -> str:
    if not is_document_id(document_id):
        raise NotFound("there is no such document")
    return document_id


def _document_json(document: Document) -> Json:
    return {
        **pick_fields(document, "id title content source tags metadata namespace"),
        "created_at": format_instant(document.made_at),
        "updated_at": format_instant(document.changed_at),
    }


def _result_json(document: Document) -> Json:
    """One dialect reads the snippet, the other the chunks with their score."""
    return {
        "id": document.id,
        "document_id": document.id,
        "title": document.title,
        "snippet": document.content[:SNIPPET_CHARS],
        "chunks": [{"content": document.content, "score": 1.0}],
        "tags": list(document.tags),
        "created_at": format_instant(document.made_at),
    }
