"""One HTTP request of a sink, and what its answer means: done, not now, or never."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from aftercall.errors import OutcomeUnknown, SinkRefused, SinkUnavailable, describe_network_error

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
    ask: HttpRequest,
    transport: httpx2.BaseTransport | None = None,
    *,
    can_repeat: bool = True,
) -> httpx2.Response:
    """The answer, if it is a good one.

    An answer that never came says nothing about what was done.
    """
    body: dict[str, Any] = {
        "content": ask.content,
        "data": ask.form,
        "json": ask.json,
        "params": ask.query,
    }
    given = {name: value for name, value in body.items() if value is not None}
    try:
        with httpx2.Client(
            timeout=TIMEOUT_S, trust_env=False, transport=transport, follow_redirects=False
        ) as http:
            answer = http.request(ask.method, ask.url, headers=dict(ask.headers), **given)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL) as error:
        raise SinkUnavailable(
            f"{sink}: its address cannot be reached ({describe_network_error(error)})"
        ) from None
    except httpx2.HTTPError as error:
        if not can_repeat:
            raise OutcomeUnknown(
                f"{sink}: gave no answer ({describe_network_error(error)}); look whether it "
                "was done"
            ) from None
        raise SinkUnavailable(
            f"{sink}: gave no answer ({describe_network_error(error)}); it is tried again"
        ) from None
    if not answer.is_success:
        raise _problem(sink, answer, can_repeat)
    return answer


def _problem(
    sink: str, answer: httpx2.Response, can_repeat: bool
) -> SinkUnavailable | SinkRefused | OutcomeUnknown:
    if not can_repeat and answer.status_code in _UNKNOWN_OUTCOME_STATUSES:
        return OutcomeUnknown(f"{sink}: answered {answer.status_code}; look whether it was done")
    if answer.status_code in _RETRYABLE_STATUSES or (
        answer.status_code == 403 and _is_limited(answer)
    ):
        return SinkUnavailable(f"{sink}: answered {answer.status_code}; it is tried again")
    return SinkRefused(f"{sink}: answered {answer.status_code}; check its address and its key")


def _is_limited(answer: httpx2.Response) -> bool:
    return (
        answer.headers.get("retry-after") is not None
        or answer.headers.get("x-ratelimit-remaining") == "0"
    )
