"""`github`: an issue in a repository, found again by an invisible mark in its body."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote as quote_url

import httpx2

from aftercall.clock import Clock, format_instant
from aftercall.errors import SinkUnavailable
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings.providers import GitHubSettings
from aftercall.work.sinks.http import HttpRequest, send
from aftercall.work.sinks.markdown import make_mark, quote

API_VERSION = "2022-11-28"
LOOK_BACK = timedelta(days=7)
PAGE_SIZE = 100
MAX_PAGES = 20


class GitHubSink:
    name = "github"
    leaves_machine = True
    can_repeat = True

    def __init__(
        self,
        settings: GitHubSettings,
        clock: Clock,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._transport = transport
        repository = quote_url(settings.repository or "")
        self._url = f"{settings.api_url.rstrip('/')}/repos/{repository}/issues"
        token = settings.token.get_secret_value() if settings.token else ""
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": "aftercall",
        }

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would open an issue in {self._settings.repository}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        """Looks first: an earlier request whose answer was lost may have opened the issue."""
        mark = make_mark(work)
        found = next(
            (issue for issue in self._recent() if mark in (issue.get("body") or "")),
            None,
        )
        issue = found or self._open(work, mark)
        return SinkReceipt(
            link=str(issue["html_url"]), response=f"number {issue['number']}"
        )

    def _open(self, work: SinkWork, mark: str) -> dict[str, Any]:
        labels = list(self._settings.labels)
        content = {"title": work.title, "body": _body(work, mark), "labels": labels}
        issue: dict[str, Any] = self._send("POST", dict, json=content)
        return issue

    def _recent(self) -> Iterator[dict[str, Any]]:
        """Lists issues instead of searching: GitHub's search lags behind by minutes."""
        query = {
            "state": "all",
            "since": format_instant(self._clock.now() - LOOK_BACK),
            "per_page": str(PAGE_SIZE),
            "sort": "created",
            "direction": "desc",
        }
        for page in range(1, MAX_PAGES + 1):
            issues: list[dict[str, Any]] = self._send(
                "GET", list, query=query | {"page": str(page)}
            )
            yield from issues
            if len(issues) < PAGE_SIZE:
                return

    def _send(self, method: str, kind: type, **parts: Any) -> Any:
        request = HttpRequest(method, self._url, self._headers, **parts)
        answer = send(self.name, request, self._transport)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, kind):
            raise SinkUnavailable(
                "github: its answer cannot be read; it is tried again"
            )
        return found


def _body(work: SinkWork, mark: str) -> str:
    parts = ["Asked for on the phone."]
    if work.details:
        parts.append(quote(work.details))
    if work.words:
        parts += ["In the caller's words:", quote(work.words)]
    if work.due:
        parts.append(f"Due {work.due}.")
    return "\n\n".join([*parts, f"From call `{work.call_id}`.", mark])
