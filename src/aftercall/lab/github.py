"""An emulated GitHub: the issues of one repository, as strict about their form as the real one.

Faults on request: an answer that is lost after the issue was made, a rate limit, an outage.
"""

import json
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from aftercall.lab.rest import REFUSALS, BrokenResponse, Refusal, serve_on_loopback

Fault = Literal["drop_after_work", "drop_before_work", "limited", "down"]
MAX_TITLE_CHARS = 256
MAX_BODY_CHARS = 65_536
_DOCS = "https://docs.github.com/rest/issues/issues"


@dataclass
class EmulatedGitHub:
    """A context manager that serves a loopback port; `make_router` is for other servers."""

    token: str
    repository: str = "acme/site"
    issues: list[dict[str, Any]] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    """What goes wrong with the next requests that create an issue."""
    url: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        app = FastAPI(exception_handlers=REFUSALS)
        app.include_router(make_router(self))
        self.url = self._stack.enter_context(serve_on_loopback(app))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def list_issues(self, query: dict[str, str]) -> list[dict[str, Any]]:
        size, page = (
            min(int(query.get("per_page", "30")), 100),
            int(query.get("page", "1")),
        )
        state, since = query.get("state", "open"), query.get("since", "")[:19]
        fresh = [issue for issue in self.issues if issue["updated_at"] >= since]
        wanted = [issue for issue in fresh if state in ("all", issue["state"])]
        return wanted[::-1][(page - 1) * size : page * size]

    def create_issue(self, body: bytes) -> Response:
        fault = self.faults.popleft() if self.faults else None
        if fault == "drop_before_work":
            return BrokenResponse()
        if fault == "limited":
            raise _refuse(429, "You have exceeded a secondary rate limit.")
        if fault == "down":
            raise _refuse(502, "Server Error")
        try:
            asked = json.loads(body)
        except ValueError:
            raise _refuse(400, "Problems parsing JSON") from None
        _check_issue(asked)
        issue = self._make_issue(asked)
        self.issues.append(issue)
        return (
            BrokenResponse() if fault == "drop_after_work" else JSONResponse(issue, 201)
        )

    def _make_issue(self, asked: dict[str, Any]) -> dict[str, Any]:
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


def make_router(github: EmulatedGitHub) -> APIRouter:
    router = APIRouter(tags=["github"])

    @router.api_route(
        "/repos/{path:path}", methods=["GET", "POST"], include_in_schema=False
    )
    async def answer(path: str, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {github.token}":
            raise _refuse(401, "Bad credentials")
        if not request.headers.get("user-agent"):
            raise _refuse(403, "Request forbidden by administrative rules")
        if path != f"{github.repository}/issues":
            raise _refuse(404, "Not Found")
        if request.method == "GET":
            return JSONResponse(github.list_issues(dict(request.query_params)))
        return github.create_issue(await request.body())

    return router


def _refuse(status: int, message: str, error: dict[str, str] | None = None) -> Refusal:
    body: dict[str, Any] = {
        "message": message,
        "documentation_url": _DOCS,
        "status": str(status),
    }
    return Refusal(JSONResponse(body | ({"errors": [error]} if error else {}), status))


def _check_issue(asked: Any) -> None:
    title = asked.get("title") if isinstance(asked, dict) else None
    if not isinstance(title, str) or not title.strip():
        raise _refuse_field("title", "missing_field")
    if len(title) > MAX_TITLE_CHARS:
        reason = f"title is too long (maximum is {MAX_TITLE_CHARS} characters)"
        raise _refuse_field("title", "custom", message=reason)
    body, labels = asked.get("body", ""), asked.get("labels", [])
    if not isinstance(body, str) or len(body) > MAX_BODY_CHARS:
        raise _refuse_field("body", "invalid")
    if not isinstance(labels, list) or not all(
        isinstance(label, str) for label in labels
    ):
        raise _refuse_field("labels", "invalid")


def _refuse_field(name: str, code: str, **details: str) -> Refusal:
    error = {"resource": "Issue", "code": code, "field": name, **details}
    return _refuse(422, "Validation Failed", error)
