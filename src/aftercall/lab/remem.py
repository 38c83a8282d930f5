"""An emulated Remem: both dialects on one store, late indexing, and faults on order."""

import hmac
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID, uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aftercall.clock import Clock, SystemClock

Fault = Literal["rate_limit", "unavailable", "lost_answer", "forbidden", "wrong_key"]
_STATUS = {
    "rate_limit": 429,
    "unavailable": 503,
    "lost_answer": 504,
    "forbidden": 403,
    "wrong_key": 401,
}


@dataclass
class EmulatedRemem:
    """What it holds, what goes wrong next, and how late it finds what was written."""

    key: str
    clock: Clock = field(default_factory=SystemClock)
    indexing_s: float = 0.0
    retry_after_s: int = 1
    faults: deque[Fault] = field(default_factory=deque)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_key: dict[str, str] = field(default_factory=dict)
    posts: list[str] = field(default_factory=list)

    def store(self, body: dict[str, Any], key: str | None) -> str:
        """The same idempotency key is the same document."""
        if key is not None and key in self.by_key:
            return self.by_key[key]
        document_id = str(uuid4())
        self.documents[document_id] = body | {
            "searchable_at": self.clock.monotonic() + self.indexing_s
        }
        if key is not None:
            self.by_key[key] = document_id
        return document_id

    def find(
        self, words: str, limit: int, namespaces: Sequence[str] = (), tags: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Whichever of them were written first; that they are the latest is for whoever asks to
        see to.
        """
        terms = words.lower().split()
        now = self.clock.monotonic()
        found = [
            (document_id, page)
            for document_id, page in self.documents.items()
            if page["searchable_at"] <= now
            and any(term in f"{page.get('title', '')} {page['content']}".lower() for term in terms)
            and (not namespaces or "*" in namespaces or page.get("namespace", "") in namespaces)
            and set(tags) <= set(_tags(page))
        ]
        return [_result(document_id, page) for document_id, page in found[:limit]]


def make_remem(lab: EmulatedRemem) -> Starlette:
    async def post_document(request: Request) -> Response:
        return await _store_document(lab, request, 201)

    async def post_ingest(request: Request) -> Response:
        return await _store_document(lab, request, 202)

    async def put_document(request: Request) -> Response:
        page = lab.documents.get(request.path_params["id"])
        if not _is_authorized(lab, request):
            return _problem(401)
        if page is None:
            return _problem(404)
        if lab.faults:
            return _fail(lab, lab.faults.popleft())
        body = json.loads(await request.body())
        page["content"] = (
            f"{page['content']}\n\n{body['content']}"
            if body.get("mode") == "append"
            else body["content"]
        )
        return JSONResponse({"id": request.path_params["id"]})

    async def post_query(request: Request) -> Response:
        if not _is_authorized(lab, request):
            return _problem(401)
        body = json.loads(await request.body())
        words = body.get("query") or body.get("text")
        if not words:
            return _problem(422)
        limit = body.get("max_results") or body.get("limit") or 10
        found = lab.find(words, limit, body.get("namespaces") or (), body.get("tags") or ())
        return JSONResponse(
            {"results": found, "facts": None, "fact_count": 0, "synthesis": None, "sources": []}
        )

    async def get_health(_: Request) -> Response:
        return JSONResponse({"status": "healthy"})

    return Starlette(
        routes=[
            Route("/health", get_health),
            Route("/v1/documents", post_document, methods=["POST"]),
            Route("/v1/documents/ingest", post_ingest, methods=["POST"]),
            Route("/v1/documents/{id}", put_document, methods=["PUT"]),
            Route("/v1/query", post_query, methods=["POST"]),
        ]
    )


async def _store_document(lab: EmulatedRemem, request: Request, status: int) -> Response:
    if not _is_authorized(lab, request):
        return _problem(401)
    fault = lab.faults.popleft() if lab.faults else None
    if fault and fault != "lost_answer":
        return _fail(lab, fault)
    body = json.loads(await request.body())
    key = request.headers.get("idempotency-key")
    if not isinstance(body.get("content"), str) or (key is not None and not _is_uuid(key)):
        return _problem(422)
    lab.posts.append(request.url.path)
    document_id = lab.store(body, key)
    if fault == "lost_answer":
        return _problem(504)  # stored, but nobody hears of it
    if status == 201:
        return JSONResponse({"id": document_id} | body, status)
    told = {"status": "accepted", "fact_extraction_status": "queued"}
    return JSONResponse(
        told | ({"document_id": document_id} if body.get("return_id") else {}), status
    )


def _is_authorized(lab: EmulatedRemem, request: Request) -> bool:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return any(
        hmac.compare_digest(given.encode(), lab.key.encode())
        for given in (request.headers.get("x-api-key", ""), bearer)
    )


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _fail(lab: EmulatedRemem, fault: Fault) -> JSONResponse:
    headers = {"retry-after": str(lab.retry_after_s)} if fault == "rate_limit" else {}
    return _problem(_STATUS.get(fault, 504), headers)


def _problem(status: int, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": "as ordered"}, status, headers)


def _tags(page: dict[str, Any]) -> list[str]:
    """One text with commas in the one dialect, a list within the metadata in the other."""
    told = page.get("tags") or page.get("metadata", {}).get("tags") or []
    return [tag.strip() for tag in told.split(",")] if isinstance(told, str) else told


def _result(document_id: str, page: dict[str, Any]) -> dict[str, Any]:
    content = page["content"]
    return {
        "id": document_id,
        "document_id": document_id,
        "title": page.get("title", ""),
        "snippet": content[:500],
        "chunks": [{"content": content, "score": 0.8}],
    }
