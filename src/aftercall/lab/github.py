"""An emulated GitHub: issues of one repository over its REST address, as strict about shape as
the real one.

Faults are yours: an answer that never comes although the issue was made, a limit, an outage.
"""

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.lab.models.requests import BrokenResponse

Fault = Literal["drop_after_work", "drop_before_work", "limited", "down"]
MAX_TITLE_CHARS = 256
MAX_BODY_CHARS = 65_536
_DOCS = "https://docs.github.com/rest/issues/issues"


@dataclass
class EmulatedGitHub:
    token: str
    repository: str = "acme/site"
    issues: list[dict[str, Any]] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    """What goes wrong with the next requests that would make an issue."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        self._server = _GitHubServer(("127.0.0.1", 0), self)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("the emulated GitHub is not running; use it as a context manager")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Any] | None:
        """Status and JSON; None where the line goes dead."""
        with self._lock:
            parts = urlsplit(target)
            if headers.get("authorization") != f"Bearer {self.token}":
                return 401, _problem("Bad credentials", 401)
            if not headers.get("user-agent"):
                return 403, _problem("Request forbidden by administrative rules", 403)
            if parts.path != f"/repos/{self.repository}/issues":
                return 404, _problem("Not Found", 404)
            if method == "GET":
                return 200, self._list(
                    {name: values[-1] for name, values in parse_qs(parts.query).items()}
                )
            return (
                self._create_issue(body) if method == "POST" else (404, _problem("Not Found", 404))
            )

    def _list(self, query: dict[str, str]) -> list[dict[str, Any]]:
        size, page = min(int(query.get("per_page", "30")), 100), int(query.get("page", "1"))
        since = query.get("since", "")
        wanted = [issue for issue in self.issues if issue["updated_at"] >= since[:19]]
        wanted = [
            issue for issue in wanted if query.get("state", "open") in ("all", issue["state"])
        ]
        return wanted[::-1][(page - 1) * size : page * size]

    def _create_issue(self, body: bytes) -> tuple[int, Any] | None:
        fault = self.faults.popleft() if self.faults else None
        if fault == "drop_before_work":
            return None
        if fault == "limited":
            return 429, _problem("You have exceeded a secondary rate limit.", 429)
        if fault == "down":
            return 502, _problem("Server Error", 502)
        try:
            asked = json.loads(body)
        except ValueError:
            return 400, _problem("Problems parsing JSON", 400)
        if wrong := _find_error(asked):
            return 422, {**_problem("Validation Failed", 422), "errors": [wrong]}
        issue = self._make_issue(asked)
        self.issues.append(issue)
        return None if fault == "drop_after_work" else (201, issue)

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
    """The same inside another server."""
    router = APIRouter(tags=["github"])

    @router.api_route("/repos/{rest:path}", methods=["GET", "POST"], include_in_schema=False)
    async def answer(rest: str, request: Request) -> Response:
        target = f"/repos/{rest}?{request.url.query}"
        answered = github.answer(
            request.method, target, dict(request.headers), await request.body()
        )
        return BrokenResponse() if answered is None else JSONResponse(answered[1], answered[0])

    return router


def _find_error(asked: Any) -> dict[str, str] | None:
    if (
        not isinstance(asked, dict)
        or not isinstance(asked.get("title"), str)
        or not asked["title"].strip()
    ):
        return {"resource": "Issue", "code": "missing_field", "field": "title"}
    if len(asked["title"]) > MAX_TITLE_CHARS:
        return {
            "resource": "Issue",
            "code": "custom",
            "field": "title",
            "message": f"title is too long (maximum is {MAX_TITLE_CHARS} characters)",
        }
    if not isinstance(asked.get("body", ""), str) or len(asked.get("body", "")) > MAX_BODY_CHARS:
        return {"resource": "Issue", "code": "invalid", "field": "body"}
    labels = asked.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return {"resource": "Issue", "code": "invalid", "field": "labels"}
    return None


def _problem(message: str, status: int) -> dict[str, Any]:
    return {"message": message, "documentation_url": _DOCS, "status": str(status)}


class _GitHubServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], github: EmulatedGitHub) -> None:
        super().__init__(address, _GitHubLine)
        self.github = github


class _GitHubLine(BaseHTTPRequestHandler):
    server: _GitHubServer

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.github.answer(self.command, self.path, headers, body)
        self.close_connection = True
        if answer is None:
            return
        status, found = answer
        content = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """The lab says nothing on its own."""
