"""The emulated Twilio against agents of every kind, without a socket."""

from collections.abc import Callable
from urllib.parse import parse_qs

import httpx2
from twilio.request_validator import RequestValidator

from aftercall.lab.twilio import APOLOGY, EmulatedTwilio, LabCall

TOKEN = "token"
VOICE = "https://agent.example/voice"
STATUS = "https://agent.example/status"
LISTEN = (
    '<Response><Gather input="speech" '
    'action="/voice?turn=1"><Say>{}</Say></Gather><Redirect>/silent</Redirect></Response>'
)

Agent = Callable[[str, dict[str, str]], tuple[int, str]]


def box(agent: Agent) -> tuple[EmulatedTwilio, list[dict[str, str]]]:
    """An agent as a function from path and form to an answer; every form it was sent, its
    signature proven by Twilio's library.
    """
    forms: list[dict[str, str]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        form = {
            name: values[0]
            for name, values in parse_qs(
                request.content.decode(), keep_blank_values=True
            ).items()
        }
        assert RequestValidator(TOKEN).validate(
            str(request.url), form, request.headers["X-Twilio-Signature"]
        )
        forms.append(form | {"path": request.url.path})
        status, text = agent(request.url.path, form)
        return httpx2.Response(status, text=text, headers={"Content-Type": "text/xml"})

    return EmulatedTwilio(TOKEN, transport=httpx2.MockTransport(answer)), forms


async def ring(twilio: EmulatedTwilio) -> LabCall:
    return await twilio.ring(VOICE, caller="+15550100", status_url=STATUS)


async def test_a_call_from_ring_to_hang_up() -> None:
    twilio, forms = box(
        lambda path, form: (200, LISTEN.format(form.get("SpeechResult", "Hello")))
    )
    call = await ring(twilio)
    await twilio.say(call, "a bug please", confidence=0.8)
    await twilio.hang_up(call)
    await twilio.hang_up(call)
    assert call.heard == ["Hello", "a bug please"]
    assert [(form["path"], form["CallStatus"]) for form in forms] == [
        ("/voice", "ringing"),
        ("/voice", "in-progress"),
        ("/status", "completed"),
    ]
    assert forms[1]["Confidence"] == "0.8"


async def test_silence_falls_through_to_the_next_verb() -> None:
    twilio, forms = box(
        lambda path, form: (
            200,
            LISTEN.format("Hello")
            if path == "/voice"
            else "<Response><Say>Anyone?</Say></Response>",
        )
    )
    call = await ring(twilio)
    await twilio.stay_silent(call)
    assert call.heard == ["Hello", "Anyone?"]
    assert (call.state, [form["path"] for form in forms]) == (
        "completed",
        ["/voice", "/silent", "/status"],
    )


async def test_an_agent_that_fails_gives_the_caller_an_apology_and_a_code() -> None:
    for agent, code in (
        (lambda path, form: (500, ""), 11200),
        (lambda path, form: (200, "<Response><Say>"), 12100),
        (
            lambda path, form: (
                200,
                "<Response><Redirect>/voice</Redirect></Response>",
            ),
            11200,
        ),
    ):
        twilio, _ = box(agent)
        call = await ring(twilio)
        assert call.fault is not None
        assert (call.fault.code, call.heard[-1], call.is_over) == (code, APOLOGY, True)


async def test_an_agent_that_cannot_be_reached_is_a_failed_call() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    call = await ring(EmulatedTwilio(TOKEN, transport=httpx2.MockTransport(refuse)))
    assert (call.state, call.heard) == ("failed", [APOLOGY])


async def test_a_rejected_call_was_never_answered() -> None:
    twilio, forms = box(
        lambda path, form: (200, '<Response><Reject reason="busy"/></Response>')
    )
    call = await ring(twilio)
    assert (call.state, call.heard, forms[-1]["CallStatus"]) == ("busy", [], "busy")
