"""Sending commands: again where that does no harm, never where it might, and no word of them in
an error.
"""

import httpx2
import pytest

from aftercall.carrier.control import RETRY_RULE, CarrierClient, make_explainer
from aftercall.clock import SystemClock
from aftercall.errors import CallOver, CarrierError, CarrierUnreachable
from aftercall.phone.notices import ControlRequest
from aftercall.phone.telnyx import TelnyxControl
from aftercall.phone.twilio import TwilioControl

SPEAK = TelnyxControl().speak("v3:x", "the canary sings", cause="e")
MESSAGE = TwilioControl("AC1").send_message(
    "+15550101", "+15550100", "the canary sings"
)


class Hasty(SystemClock):
    async def sleep(self, seconds: float) -> None:
        return


async def send(
    request: ControlRequest, *answers: int | Exception
) -> tuple[int, Exception | None]:
    """How often it was sent, and how it ended."""
    rest, sent = list(answers), 0

    def answer(_: httpx2.Request) -> httpx2.Response:
        nonlocal sent
        sent += 1
        found = rest.pop(0)
        if isinstance(found, Exception):
            raise found
        return httpx2.Response(
            found,
            json={
                "errors": [{"code": "90018" if found == 422 else "10009"}],
                "code": 7,
            },
        )

    transport = httpx2.MockTransport(answer)
    client = CarrierClient(
        "Telnyx",
        "https://api.telnyx.com",
        {"Authorization": "Bearer x"},
        RETRY_RULE,
        make_explainer("Telnyx", TelnyxControl().is_call_over),
        Hasty(),
        transport,
    )
    try:
        await client.send(request)
    except CarrierError as error:
        return sent, error
    finally:
        await client.close()
    return sent, None


@pytest.mark.parametrize(
    "trouble", [500, 503, 429, httpx2.ConnectError("x"), httpx2.ReadTimeout("x")]
)
async def test_what_may_pass_is_sent_again(trouble: int | Exception) -> None:
    assert await send(SPEAK, trouble, trouble, 200) == (3, None)
    sent, error = await send(SPEAK, trouble, trouble, trouble)
    assert (sent, type(error)) == (3, CarrierUnreachable)


@pytest.mark.parametrize("trouble", [500, 429, httpx2.ReadTimeout("x")])
async def test_a_message_that_may_have_been_sent_is_not_sent_again(
    trouble: int | Exception,
) -> None:
    sent, error = await send(MESSAGE, trouble, 200)
    assert (sent, type(error)) == (1, CarrierUnreachable)
    assert await send(MESSAGE, httpx2.ConnectError("never reached them"), 200) == (
        2,
        None,
    )


async def test_a_refusal_is_final_and_a_call_that_is_over_is_told_apart() -> None:
    sent, error = await send(SPEAK, 401)
    assert (sent, type(error), str(error)) == (
        1,
        CarrierError,
        "Telnyx: refused speak with 401 (code 10009)",
    )
    sent, error = await send(SPEAK, 422)
    assert (sent, type(error)) == (1, CallOver)


async def test_nothing_that_was_to_be_said_is_in_an_error() -> None:
    for request in (SPEAK, MESSAGE):
        _, error = await send(request, 400)
        assert "canary" not in str(error)
        assert "15550100" not in str(error)
