"""`github`: an issue in a repository, found again by a mark in its body that readers do not see."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote as quote_url

import httpx2

from aftercall.clock import Clock
from aftercall.errors import SinkUnavailable
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.model.instants import format_instant
from aftercall.settings import GitHubSettings
from aftercall.work.sinks.http import HttpRequest, send
from aftercall.work.sinks.text import quote

API_VERSION = "2022-11-28"
LOOK_BACK = timedelta(days=7)
PAGE_SIZE = 100
MAX_PAGES = 20


class GitHubSink:
    name = "github"
    leaves_machine = True
    can_repeat = True

    def __init__(
        self, settings: GitHubSettings, clock: Clock, transport: httpx2.BaseTransport | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._transport = transport

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would open an issue in {self._settings.repository}"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        """Always look first: a request whose answer was lost may have made the issue."""
        mark = f"<!-- aftercall: {work.key[:32]} -->"
        found = next((issue for issue in self._recent() if mark in (issue.get("body") or "")), None)
        issue = found or self._open(work, mark)
        return SinkReceipt(link=str(issue["html_url"]), response=f"number {issue['number']}")

    def _open(self, work: SinkWork, mark: str) -> dict[str, Any]:
        content = {
            "title": work.title,
            "body": _body(work, mark),
            "labels": list(self._settings.labels),
        }
        issue: dict[str, Any] = self._read(
            send(
                self.name,
                HttpRequest("POST", self._issues, self._headers, json=content),
                self._transport,
            ),
            dict,
        )
        return issue

    def _recent(self) -> Iterator[dict[str, Any]]:
        """The list, not the search: search lags behind by minutes."""
        since = format_instant(self._clock.now() - LOOK_BACK)
        for page in range(1, MAX_PAGES + 1):
            query = {
                "state": "all",
                "since": since,
                "per_page": str(PAGE_SIZE),
                "page": str(page),
                "sort": "created",
                "direction": "desc",
            }
            answer = send(
                self.name,
                HttpRequest("GET", self._issues, self._headers, query=query),
                self._transport,
            )
            issues: list[dict[str, Any]] = self._read(answer, list)
            yield from issues
            if len(issues) < PAGE_SIZE:
                return

    @property
    def _issues(self) -> str:
        repository = quote_url(self._settings.repository or "")
        return f"{self._settings.api_url.rstrip('/')}/repos/{repository}/issues"

    @property
    def _headers(self) -> dict[str, str]:
        token = self._settings.token.get_secret_value() if self._settings.token else ""
        return {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": "aftercall",
        }

    def _read(self, answer: httpx2.Response, kind: type) -> Any:
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, kind):
            raise SinkUnavailable("github: its answer cannot be read; it is tried again")
        return found


def _body(work: SinkWork, mark: str) -> str:
    parts = ["Asked for on the phone."]
    parts += [quote(work.details)] if work.details else []
    parts += ["In the caller's words:", quote(work.words)] if work.words else []
    parts += [f"Due {work.due}."] if work.due else []
    return "\n\n".join([*parts, f"From call `{work.call_id}`.", mark])
