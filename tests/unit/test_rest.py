"""Asking a service: again while it is busy, after the pause it names, never without end."""

import httpx2
import pytest

from aftercall.clock import SystemClock
from aftercall.errors import RestError, RestUnreachable
from aftercall.rest import RestClient, RetryRule

RULE = RetryRule(timeout_s=1.0, pauses_s=(1.0, 2.0), max_named_pause_s=60.0)


class NotingClock(SystemClock):
    def __init__(self) -> None:
        self.slept_s: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)


async def ask(
    *answers: httpx2.Response, rule: RetryRule = RULE
) -> tuple[list[float], bytes | RestError]:
    """How long was waited before each further try, and how it ended."""
    left, clock = list(answers), NotingClock()
    transport = httpx2.MockTransport(lambda _: left.pop(0))
    client = RestClient(
        "Vapi", "https://api.vapi.ai/", {}, rule, lambda *_: None, clock, transport
    )
    try:
        return clock.slept_s, await client.request("a list", "GET", "/call")
    except RestError as error:
        return clock.slept_s, error
    finally:
        await client.close()


def busy(named: str = "") -> httpx2.Response:
    return httpx2.Response(429, headers={"retry-after": named} if named else {})


@pytest.mark.parametrize(
    ("named", "waited_s"), [("", 1.0), ("7", 7.0), ("3600", 60.0), ("soon", 1.0)]
)
async def test_a_busy_service_names_the_pause_within_a_limit(
    named: str, waited_s: float
) -> None:
    slept_s, found = await ask(busy(named), httpx2.Response(200, content=b"[]"))
    assert (slept_s, found) == ([waited_s], b"[]")


async def test_a_pause_that_nobody_can_wait_for_is_not_taken() -> None:
    rule = RetryRule(timeout_s=1.0, pauses_s=(0.2,))
    slept_s, found = await ask(busy("30"), httpx2.Response(200), rule=rule)
    assert (slept_s, found) == ([0.2], b"")


async def test_after_all_tries_the_error_says_what_was_asked_for() -> None:
    slept_s, error = await ask(*[httpx2.Response(503)] * 3)
    assert slept_s == [1.0, 2.0]
    assert isinstance(error, RestUnreachable)
    assert str(error) == "Vapi: answered 503 to a list"


async def test_a_refusal_is_not_tried_again_and_shows_only_its_code() -> None:
    refusal = httpx2.Response(403, json={"code": 20003, "message": "a canary"})
    slept_s, error = await ask(refusal)
    assert slept_s == []
    assert str(error) == "Vapi: refused a list with 403 (code 20003)"
