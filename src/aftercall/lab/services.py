"""Emulated services with faults on request: Remem, GitHub, chats with hosted agents.

Remem has both forms of its API on one store, and slow indexing. GitHub has the issues of one
repository and is as strict about their form as the real one; an answer may be lost after the
issue was made.
"""

import hmac
import json
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self
from uuid import UUID, uuid4

from fastapi import (
    APIRouter,
    FastAPI,
    Request,
    Response,
    WebSocket,
    WebSocketDisconnect,
)
from fastapi.responses import JSONResponse
from starlette.applications import Starlette
from starlette.routing import Route

from aftercall.clock import Clock, SystemClock
from aftercall.lab.hosted import EmulatedPlatform
from aftercall.lab.rest import REFUSALS, BrokenResponse, Refusal, serve_on_loopback
from aftercall.model.json_fields import Json

Fault = Literal["rate_limit", "unavailable", "lost_answer", "forbidden", "wrong_key"]
_STATUSES: dict[Fault, int] = {
    "rate_limit": 429,
    "unavailable": 503,
    "lost_answer": 504,
    "forbidden": 403,
    "wrong_key": 401,
}


@dataclass
class EmulatedRemem:
    """A Remem server in memory."""

    key: str
    clock: Clock = field(default_factory=SystemClock)
    indexing_s: float = 0.0
    """How long after its writing a document can be found."""
    retry_after_s: int = 1
    faults: deque[Fault] = field(default_factory=deque)
    documents: dict[str, Json] = field(default_factory=dict)
    by_key: dict[str, str] = field(default_factory=dict)
    posts: list[str] = field(default_factory=list)

    def store(self, body: Json, key: str | None) -> str:
        """The same idempotency key is the same document."""
        if key is not None and key in self.by_key:
            return self.by_key[key]
        document_id = str(uuid4())
        searchable_at = self.clock.monotonic() + self.indexing_s
        self.documents[document_id] = body | {"searchable_at": searchable_at}
        if key is not None:
            self.by_key[key] = document_id
        return document_id

    def find(
        self,
        words: str,
        limit: int,
        namespaces: Sequence[str] = (),
        tags: Sequence[str] = (),
    ) -> list[Json]:
        """The oldest matches first, like the real one: the client has to sort them."""
        terms = words.lower().split()
        results = []
        for document_id, page in self.documents.items():
            text = f"{page.get('title', '')} {page['content']}".lower()
            in_scope = not namespaces or {"*", page.get("namespace", "")} & set(
                namespaces
            )
            is_indexed = page["searchable_at"] <= self.clock.monotonic()
            has_term = any(term in text for term in terms)
            if in_scope and is_indexed and has_term and set(tags) <= set(_tags(page)):
                results.append(_make_result(document_id, page))
        return results[:limit]

    def check_key(self, request: Request) -> None:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = (request.headers.get("x-api-key", ""), bearer)
        if not any(
            hmac.compare_digest(key.encode(), self.key.encode()) for key in given
        ):
            raise _refuse(401)

    def make_refusal(self, fault: Fault) -> Refusal:
        headers = (
            {"retry-after": str(self.retry_after_s)} if fault == "rate_limit" else None
        )
        return _refuse(_STATUSES[fault], headers)


def make_remem(remem: EmulatedRemem) -> Starlette:
    async def post_document(request: Request) -> Response:
        body, document_id = await _store_document(remem, request)
        return JSONResponse({"id": document_id} | body, 201)

    async def post_ingest(request: Request) -> Response:
        body, document_id = await _store_document(remem, request)
        answer = {"status": "accepted", "fact_extraction_status": "queued"}
        if body.get("return_id"):
            answer["document_id"] = document_id
        return JSONResponse(answer, 202)

    async def put_document(request: Request) -> Response:
        remem.check_key(request)
        page = remem.documents.get(request.path_params["id"])
        if page is None:
            raise _refuse(404)
        if remem.faults:
            raise remem.make_refusal(remem.faults.popleft())
        body = json.loads(await request.body())
        before = f"{page['content']}\n\n" if body.get("mode") == "append" else ""
        page["content"] = before + body["content"]
        return JSONResponse({"id": request.path_params["id"]})

    async def post_query(request: Request) -> Response:
        remem.check_key(request)
        body = json.loads(await request.body())
        words = body.get("query") or body.get("text")
        if not words:
            raise _refuse(422)
        limit = body.get("max_results") or body.get("limit") or 10
        found = remem.find(
            words, limit, body.get("namespaces") or (), body.get("tags") or ()
        )
        answer = {"results": found, "facts": None, "fact_count": 0}
        return JSONResponse(answer | {"synthesis": None, "sources": []})

    async def get_health(_: Request) -> Response:
        return JSONResponse({"status": "healthy"})

    routes = [
        Route("/health", get_health),
        Route("/v1/documents", post_document, methods=["POST"]),
        Route("/v1/documents/ingest", post_ingest, methods=["POST"]),
        Route("/v1/documents/{id}", put_document, methods=["PUT"]),
        Route("/v1/query", post_query, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers=REFUSALS)


async def _store_document(remem: EmulatedRemem, request: Request) -> tuple[Json, str]:
    remem.check_key(request)
    fault = remem.faults.popleft() if remem.faults else None
    if fault and fault != "lost_answer":
        raise remem.make_refusal(fault)
    body = json.loads(await request.body())
    key = request.headers.get("idempotency-key")
    if not isinstance(body.get("content"), str) or (
        key is not None and not _is_uuid(key)
    ):
        raise _refuse(422)
    remem.posts.append(request.url.path)
    document_id = remem.store(body, key)
    if fault == "lost_answer":
        # the document is stored, but the client cannot know
        raise remem.make_refusal(fault)
    return body, document_id


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _refuse(status: int, headers: dict[str, str] | None = None) -> Refusal:
    return Refusal(JSONResponse({"detail": "as ordered"}, status, headers))


def _tags(page: Json) -> list[str]:
    """A text with commas in one form of the API, a list in the metadata in the other."""
    tags = page.get("tags") or page.get("metadata", {}).get("tags") or []
    return [tag.strip() for tag in tags.split(",")] if isinstance(tags, str) else tags


def _make_result(document_id: str, page: Json) -> Json:
    content = page["content"]
    return {
        "id": document_id,
        "document_id": document_id,
        "title": page.get("title", ""),
        "snippet": content[:500],
        "chunks": [{"content": content, "score": 0.8}],
    }


GitHubFault = Literal["drop_after_work", "drop_before_work", "limited", "down"]
MAX_TITLE_CHARS = 256
MAX_BODY_CHARS = 65_536
_DOCS = "https://docs.github.com/rest/issues/issues"


@dataclass
class EmulatedGitHub:
    """A context manager that serves a loopback port; `make_github` is for other servers."""

    token: str
    repository: str = "acme/site"
    issues: list[Json] = field(default_factory=list)
    faults: deque[GitHubFault] = field(default_factory=deque)
    """What goes wrong with the next requests that create an issue."""
    url: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        app = FastAPI(exception_handlers=REFUSALS)
        app.include_router(make_github(self))
        self.url = self._stack.enter_context(serve_on_loopback(app))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def list_issues(self, query: dict[str, str]) -> list[Json]:
        """Newest first, as GitHub pages them."""
        size, page = (
            min(int(query.get("per_page", "30")), 100),
            int(query.get("page", "1")),
        )
        state = query.get("state", "open")
        since = query.get("since", "")[:19]
        fresh = [issue for issue in self.issues if issue["updated_at"] >= since]
        wanted = [issue for issue in fresh if state in ("all", issue["state"])]
        return wanted[::-1][(page - 1) * size : page * size]

    def create_issue(self, body: bytes) -> Response:
        fault = self.faults.popleft() if self.faults else None
        if fault == "drop_before_work":
            return BrokenResponse()
        if fault == "limited":
            raise _refuse_github(429, "You have exceeded a secondary rate limit.")
        if fault == "down":
            raise _refuse_github(502, "Server Error")
        try:
            asked = json.loads(body)
        except ValueError:
            raise _refuse_github(400, "Problems parsing JSON") from None
        _check_issue(asked)
        issue = self._make_issue(asked)
        self.issues.append(issue)
        return (
            BrokenResponse() if fault == "drop_after_work" else JSONResponse(issue, 201)
        )

    def _make_issue(self, asked: Json) -> Json:
        number = len(self.issues) + 41
        now = datetime.now(UTC).isoformat(timespec="seconds")[:19] + "Z"
        return {
            "id": 10_000 + number,
            "node_id": f"I_{number}",
            "number": number,
            "url": f"https://api.github.com/repos/{self.repository}/issues/{number}",
            "html_url": f"https://github.com/{self.repository}/issues/{number}",
            "title": asked["title"],
            "body": asked.get("body"),
            "state": "open",
            "labels": [{"name": name} for name in asked.get("labels", [])],
            "created_at": now,
            "updated_at": now,
        }


def make_github(github: EmulatedGitHub) -> APIRouter:
    router = APIRouter(tags=["github"])

    @router.api_route(
        "/repos/{path:path}", methods=["GET", "POST"], include_in_schema=False
    )
    async def answer(path: str, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {github.token}":
            raise _refuse_github(401, "Bad credentials")
        if not request.headers.get("user-agent"):
            raise _refuse_github(403, "Request forbidden by administrative rules")
        if path != f"{github.repository}/issues":
            raise _refuse_github(404, "Not Found")
        if request.method == "GET":
            return JSONResponse(github.list_issues(dict(request.query_params)))
        return github.create_issue(await request.body())

    return router


def _refuse_github(
    status: int, message: str, error: dict[str, str] | None = None
) -> Refusal:
    body: Json = {
        "message": message,
        "documentation_url": _DOCS,
        "status": str(status),
    }
    return Refusal(JSONResponse(body | ({"errors": [error]} if error else {}), status))


def _check_issue(asked: Any) -> None:
    """Refuses what GitHub's API refuses."""
    title = asked.get("title") if isinstance(asked, dict) else None
    if not isinstance(title, str) or not title.strip():
        raise _refuse_field("title", "missing_field")
    if len(title) > MAX_TITLE_CHARS:
        reason = f"title is too long (maximum is {MAX_TITLE_CHARS} characters)"
        raise _refuse_field("title", "custom", message=reason)
    body = asked.get("body", "")
    labels = asked.get("labels", [])
    if not isinstance(body, str) or len(body) > MAX_BODY_CHARS:
        raise _refuse_field("body", "invalid")
    if not isinstance(labels, list) or not all(
        isinstance(label, str) for label in labels
    ):
        raise _refuse_field("labels", "invalid")


def _refuse_field(name: str, code: str, **details: str) -> Refusal:
    error = {"resource": "Issue", "code": code, "field": name, **details}
    return _refuse_github(422, "Validation Failed", error)


ASKS_FOR_MORE = "I have written that down. Anything else?"
SAYS_GOODBYE = "Goodbye."


@dataclass
class EmulatedChats:
    """The chats with a platform's agent: it takes down what begins with "please".

    It hangs up after "goodbye", where the platform has a way to tell.
    """

    platform: EmulatedPlatform
    agent: str
    chats: dict[str, list[str]] = field(default_factory=dict)

    def open(self, agent: Any) -> str:
        if agent != self.agent:
            raise _refuse(404)
        chat = f"chat_{uuid4().hex}"
        self.chats[chat] = []
        return chat

    def say(self, chat: str, text: str) -> tuple[str, dict[str, str] | None]:
        """The answer, and the tool that the agent used for it."""
        self.chats[chat].append(text)
        if "goodbye" in text.lower():
            return SAYS_GOODBYE, None
        if text.lower().startswith("please"):
            tool = {"name": "take_request", "arguments": json.dumps({"title": text})}
            return ASKS_FOR_MORE, tool
        return "How can I help?", None


def make_vapi_chat(chats: EmulatedChats) -> APIRouter:
    router = APIRouter(tags=["vapi"])

    @router.get("/assistant/{assistant}")
    async def get_assistant(assistant: str, request: Request) -> Json:
        chats.platform.check(request)
        if assistant != chats.agent:
            raise _refuse(404)
        at = chats.platform.clock.now().isoformat()
        made = {"orgId": "org-lab", "createdAt": at, "updatedAt": at}
        return made | {"id": assistant, "name": "The lab's assistant"}

    @router.post("/chat", status_code=201)
    async def create_chat(request: Request) -> Json:
        chats.platform.check(request)
        body = await request.json()
        known = body.get("previousChatId")
        if not body.get("input") or (known is not None and known not in chats.chats):
            raise _refuse(400)
        chat = chats.open(body.get("assistantId"))
        said, tool = chats.say(chat, body["input"])
        message: Json = {"role": "assistant", "content": said}
        if tool is not None:
            function = {"id": f"call_{chat}", "type": "function", "function": tool}
            message["tool_calls"] = [function]
        at = chats.platform.clock.now().isoformat()
        made = {"id": chat, "orgId": "org-lab", "createdAt": at, "updatedAt": at}
        return made | {"output": [message]}

    return router


def make_retell_chat(chats: EmulatedChats) -> APIRouter:
    router = APIRouter(tags=["retell"])

    @router.post("/create-chat", status_code=201)
    async def create_chat(request: Request) -> Json:
        chats.platform.check(request)
        agent = (await request.json()).get("agent_id")
        greeting = {"role": "agent", "content": "Hello, this is the lab."}
        return {
            "chat_id": chats.open(agent),
            "agent_id": agent,
            "chat_status": "ongoing",
            "message_with_tool_calls": [greeting],
        }

    @router.post("/create-chat-completion", status_code=201)
    async def complete(request: Request) -> Json:
        chats.platform.check(request)
        body = await request.json()
        if body.get("chat_id") not in chats.chats:
            raise _refuse(422)
        said, tool = chats.say(body["chat_id"], body["content"])
        invocation: Json = {"role": "tool_call_invocation"}
        invocation["tool_call_id"] = f"tool_{uuid4().hex}"
        messages = []
        if tool is not None:
            messages.append(invocation | tool)
        messages.append({"role": "agent", "content": said})
        if said == SAYS_GOODBYE:
            ending = {"name": "leave politely", "arguments": "{}", "type": "end_call"}
            messages.append(invocation | ending)
        return {"messages": messages}

    @router.patch("/end-chat/{chat}", status_code=204)
    async def end_chat(chat: str, request: Request) -> None:
        chats.platform.check(request)
        if chats.chats.pop(chat, None) is None:
            raise _refuse(404)

    return router


def make_elevenlabs_chat(chats: EmulatedChats) -> APIRouter:
    """The agent is a private one: its socket takes a signed address, once."""
    router = APIRouter(tags=["elevenlabs"])

    @router.get("/v1/convai/conversation/get-signed-url")
    async def sign_url(request: Request) -> dict[str, str]:
        chats.platform.check(request)
        signature = chats.open(request.query_params.get("agent_id"))
        address = f"{request.url.netloc}/v1/convai/conversation"
        query = f"agent_id={chats.agent}&conversation_signature={signature}"
        return {"signed_url": f"ws://{address}?{query}"}

    @router.websocket("/v1/convai/conversation")
    async def converse(socket: WebSocket) -> None:
        await socket.accept()
        chat = socket.query_params.get("conversation_signature", "")
        if chats.chats.get(chat) != []:
            await socket.close(1008, "the agent is not there, or not public")
            return
        with suppress(WebSocketDisconnect):
            await _hold_conversation(chats, chat, socket)

    return router


async def _hold_conversation(
    chats: EmulatedChats, chat: str, socket: WebSocket
) -> None:
    async def send(kind: str, **event: Any) -> None:
        await socket.send_json({"type": kind, f"{kind}_event": event})

    await socket.receive_json()  # conversation_initiation_client_data
    await send("conversation_initiation_metadata", conversation_id=chat)
    await send("ping", event_id=1, ping_ms=None)
    await send("agent_response", agent_response="Hello, this is the lab.")
    while True:
        message = await socket.receive_json()
        if message.get("type") != "user_message":
            continue
        said, tool = chats.say(chat, message["text"])
        if tool is not None:
            called = {"tool_name": tool["name"], "tool_call_id": uuid4().hex}
            called["parameters"] = json.loads(tool["arguments"])
            await socket.send_json(
                {"type": "client_tool_call", "client_tool_call": called}
            )
        await send("agent_response", agent_response=said)
        if said == SAYS_GOODBYE:
            await socket.close(1000)
            return
