"""Sinks on HTTP, and what an answer means: done, try again, or give up.

`webhook` is a signed POST as Standard Webhooks describe it; its id is the delivery's key. `github`
is an issue in a repository, found again by an invisible mark in its body.
"""

import binascii
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote as quote_url

import httpx2

from aftercall.clock import Clock, format_instant
from aftercall.errors import (
    ConfigError,
    OutcomeUnknown,
    SinkError,
    SinkRefused,
    SinkUnavailable,
)
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.model.json_fields import Json
from aftercall.rest import RETRYABLE_STATUSES, Headers, describe_network_error
from aftercall.settings.providers import GitHubSettings, WebhookSettings
from aftercall.work.sinks.markdown import make_mark, quote

TIMEOUT_S = 20.0
_UNKNOWN_OUTCOME_STATUSES = frozenset({408, 500, 502, 504})


@dataclass(frozen=True)
class HttpRequest:
    method: str
    url: str
    headers: Headers = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    json: Any = field(default=None, repr=False)
    query: Mapping[str, str] | None = field(default=None, repr=False)
    tls_host: str | None = None
    """The name in the certificate, where the URL has a checked address instead."""


def send(
    sink: str,
    request: HttpRequest,
    transport: httpx2.BaseTransport | None = None,
    *,
    can_repeat: bool = True,
    final_statuses: frozenset[int] | None = None,
) -> httpx2.Response:
    """A successful answer. A missing answer says nothing about what the server did.

    With `final_statuses`, every other answer is worth another attempt.
    """
    extensions = {"sni_hostname": request.tls_host} if request.tls_host else None
    try:
        with httpx2.Client(
            timeout=TIMEOUT_S,
            trust_env=False,
            transport=transport,
            follow_redirects=False,
        ) as http:
            answer = http.request(
                request.method,
                request.url,
                headers=dict(request.headers),
                content=request.content,
                data=request.form,
                json=request.json,
                params=request.query,
                extensions=extensions,
            )
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL) as error:
        cause = describe_network_error(error)
        raise SinkUnavailable(
            f"{sink}: its address cannot be reached ({cause})"
        ) from None
    except httpx2.HTTPError as error:
        no_answer = f"{sink}: gave no answer ({describe_network_error(error)})"
        if can_repeat:
            raise SinkUnavailable(f"{no_answer}; it is tried again") from None
        raise OutcomeUnknown(f"{no_answer}; check whether it was done") from None
    if not answer.is_success:
        status = answer.status_code
        if final_statuses is not None and status not in final_statuses:
            raise SinkUnavailable(f"{sink}: answered {status}; it is tried again")
        raise _to_error(sink, answer, can_repeat)
    return answer


def _to_error(sink: str, answer: httpx2.Response, can_repeat: bool) -> SinkError:
    status = answer.status_code
    if not can_repeat and status in _UNKNOWN_OUTCOME_STATUSES:
        return OutcomeUnknown(f"{sink}: answered {status}; check whether it was done")
    if status in RETRYABLE_STATUSES or (status == 403 and _is_rate_limited(answer)):
        return SinkUnavailable(f"{sink}: answered {status}; it is tried again")
    return SinkRefused(f"{sink}: answered {status}; check its address and its key")


def _is_rate_limited(answer: httpx2.Response) -> bool:
    headers = answer.headers
    return "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"


PREFIX = "whsec_"
MIN_KEY_BYTES = 24  # as Standard Webhooks ask
MAX_ANSWER_CHARS = 500


class WebhookSink:
    """Posts a request to the owner's address, signed."""

    name = "webhook"
    leaves_machine = True
    can_repeat = True

    def __init__(
        self,
        settings: WebhookSettings,
        clock: Clock,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._url = settings.url.get_secret_value() if settings.url else ""
        self._key = (
            read_secret("webhook.secret", settings.secret.get_secret_value())
            if settings.secret
            else None
        )
        self._clock = clock
        self._transport = transport

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would post a followup.{work.purpose} event"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        now = self._clock.now()
        event = {
            "type": f"followup.{work.purpose}",
            "timestamp": format_instant(now),
            "data": work.to_json(),
        }
        body = json.dumps(event).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "aftercall"}
        identity = f"msg_{work.key.replace(':', '_')}"
        headers |= sign(self._key, identity, now, body)
        request = HttpRequest("POST", self._url, headers, content=body)
        answer = send(self.name, request, self._transport)
        return SinkReceipt(
            response=f"{answer.status_code} {answer.text[:MAX_ANSWER_CHARS]}".strip()
        )


def sign(
    key: bytes | None, identity: str, now: datetime, body: bytes
) -> dict[str, str]:
    """The headers of Standard Webhooks; without a key there is no signature."""
    timestamp = int(now.timestamp())
    signed = {"webhook-id": identity, "webhook-timestamp": str(timestamp)}
    if key is None:
        return signed
    digest = hmac.digest(key, f"{identity}.{timestamp}.".encode() + body, "sha256")
    return signed | {"webhook-signature": f"v1,{b64encode(digest).decode()}"}


def read_secret(setting: str, secret: str) -> bytes:
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ConfigError(
            f"{setting}: is not base64; Standard Webhooks write it as whsec_ and base64"
        ) from None
    if len(key) < MIN_KEY_BYTES:
        raise ConfigError(
            f"{setting}: holds {len(key)} bytes and needs {MIN_KEY_BYTES}; "
            "`openssl rand -base64 32` prints a good one"
        )
    return key


API_VERSION = "2022-11-28"
LOOK_BACK = timedelta(days=7)
PAGE_SIZE = 100
MAX_PAGES = 20


class GitHubSink:
    """Makes a GitHub issue once: it looks for its own mark before it writes."""

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

    def _open(self, work: SinkWork, mark: str) -> Json:
        labels = list(self._settings.labels)
        content = {"title": work.title, "body": _body(work, mark), "labels": labels}
        issue: Json = self._send("POST", dict, json=content)
        return issue

    def _recent(self) -> Iterator[Json]:
        """Lists issues instead of searching: GitHub's search lags behind by minutes."""
        query = {
            "state": "all",
            "since": format_instant(self._clock.now() - LOOK_BACK),
            "per_page": str(PAGE_SIZE),
            "sort": "created",
            "direction": "desc",
        }
        for page in range(1, MAX_PAGES + 1):
            issues: list[Json] = self._send(
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
