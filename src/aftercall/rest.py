"""Requests to the REST APIs of other services: time limits, retries, and what an answer means."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from aftercall.clock import Clock
from aftercall.errors import (
    RestError,
    RestUnreachable,
)

# HTTP statuses of a service that may take the same request later.
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})

Explain = Callable[[int, bytes], RestError | None]
"""What a refusal means by its status and body; None if it has no meaning of its own."""
Headers = Mapping[str, str]


@dataclass(frozen=True)
class RetryRule:
    """How long a try may take, and how long to wait before each further one."""

    timeout_s: float
    pauses_s: tuple[float, ...]
    max_named_pause_s: float = 0.0
    """The longest pause that the service may name instead; 0 if nobody can wait for it."""


class RestClient:
    """Asks the API of one service."""

    refusal: type[RestError] = RestError
    no_answer: type[RestError] = RestUnreachable

    def __init__(
        self,
        name: str,
        url: str,
        headers: Headers,
        rule: RetryRule,
        explain: Explain,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """With a `transport` (the lab's, for example) no socket is opened."""
        self.name = name
        self.clock = clock
        self._url = url.rstrip("/")
        self._rule = rule
        self._explain = explain
        self._http = httpx2.AsyncClient(
            timeout=rule.timeout_s,
            trust_env=False,
            transport=transport,
            headers={**headers, "Accept": "application/json"},
        )

    async def request(
        self,
        action: str,
        method: str,
        target: str,
        *,
        is_repeatable: bool = True,
        **parts: Any,
    ) -> bytes:
        """The body of a good answer. `action` names the request in errors.

        Raises `no_answer` (a later try may help) or `refusal` (it will not).
        """
        for pause_s in (*self._rule.pauses_s, None):
            wait_s, may_repeat = pause_s, is_repeatable
            try:
                answer = await self._http.request(method, self._url + target, **parts)
            except httpx2.HTTPError as error:
                reason = f"no answer to {action} ({describe_network_error(error)})"
                may_repeat = may_repeat or isinstance(error, httpx2.ConnectError)
            else:
                if answer.is_success:
                    return answer.content
                reason = f"answered {answer.status_code} to {action}"
                self._refuse(action, answer)
                named_s = read_retry_pause(answer)
                if wait_s is not None and named_s and self._rule.max_named_pause_s:
                    wait_s = min(named_s, self._rule.max_named_pause_s)
            if wait_s is None or not may_repeat:
                break
            await self.clock.sleep(wait_s)
        raise self.no_answer(f"{self.name}: {reason}")

    def _refuse(self, action: str, answer: httpx2.Response) -> None:
        """Raises the error of an answer that another try would not change."""
        status = answer.status_code
        if error := self._explain(status, answer.content):
            raise error
        if status != 429 and status < 500:
            code = _find_code(answer.content)
            raise self.refusal(f"{self.name}: refused {action} with {status}{code}")

    async def close(self) -> None:
        await self._http.aclose()


def _find_code(body: bytes) -> str:
    """The service's code of an error, where it has one."""
    data = read_json(body)
    errors = data.get("errors") if isinstance(data, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else data
    code = first.get("code") if isinstance(first, dict) else None
    is_code = isinstance(code, int) or (isinstance(code, str) and code.isalnum())
    return f" (code {code})" if is_code else ""


def read_json(body: bytes) -> Any:
    """An empty object if there is nothing that can be read."""
    try:
        return json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}


def read_retry_pause(answer: httpx2.Response) -> float | None:
    """The pause that a busy service asks for, if it names one in seconds."""
    named = answer.headers.get("retry-after", "")
    return float(named) if named.isdigit() else None


def basic_auth(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def describe_network_error(error: BaseException) -> str:
    is_late = "Timeout" in type(error).__name__
    return "it took too long" if is_late else "the connection failed"
