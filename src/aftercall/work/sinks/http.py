"""One HTTP request of a sink, and what its answer means: done, try again, or give up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from aftercall.errors import (
    OutcomeUnknown,
    SinkError,
    SinkRefused,
    SinkUnavailable,
    describe_network_error,
)

TIMEOUT_S = 20.0
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_UNKNOWN_OUTCOME_STATUSES = frozenset({408, 500, 502, 504})


@dataclass(frozen=True)
class HttpRequest:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    json: Any = field(default=None, repr=False)
    query: Mapping[str, str] | None = field(default=None, repr=False)


def send(
    sink: str,
    request: HttpRequest,
    transport: httpx2.BaseTransport | None = None,
    *,
    can_repeat: bool = True,
) -> httpx2.Response:
    """A successful answer. A missing answer says nothing about what the server did."""
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
        raise _to_error(sink, answer, can_repeat)
    return answer


def _to_error(sink: str, answer: httpx2.Response, can_repeat: bool) -> SinkError:
    status = answer.status_code
    if not can_repeat and status in _UNKNOWN_OUTCOME_STATUSES:
        return OutcomeUnknown(f"{sink}: answered {status}; check whether it was done")
    if status in _RETRYABLE_STATUSES or (status == 403 and _is_rate_limited(answer)):
        return SinkUnavailable(f"{sink}: answered {status}; it is tried again")
    return SinkRefused(f"{sink}: answered {status}; check its address and its key")


def _is_rate_limited(answer: httpx2.Response) -> bool:
    headers = answer.headers
    return "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
