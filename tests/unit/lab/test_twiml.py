"""TwiML as the emulated Twilio reads it; our own answers are read back, and Twilio's library is
the judge of the form.
"""

import pytest
from twilio.twiml.voice_response import Gather as SdkGather
from twilio.twiml.voice_response import VoiceResponse

from aftercall.lab.twiml import (
    NOT_A_RESPONSE,
    PARSE_FAILURE,
    WRONG_VERB,
    Gather,
    HangUp,
    Pause,
    Redirect,
    Reject,
    TwimlFault,
    TwimlSay,
    parse_twiml,
)
from aftercall.phone import twilio


def test_what_our_server_answers_is_understood() -> None:
    text = twilio.gather_speech(
        "Hello & welcome <friend>",
        "https://x.example/voice?turn=1",
        silence_url="https://x.example/voice?turn=1",
    )
    assert parse_twiml(text) == [
        Gather(
            "https://x.example/voice?turn=1",
            (TwimlSay("Hello & welcome <friend>"),),
            action_on_empty=False,
        ),
        Redirect("https://x.example/voice?turn=1"),
    ]
    assert parse_twiml(twilio.say_and_hang_up("Goodbye!")) == [
        TwimlSay("Goodbye!"),
        HangUp(),
    ]
    rejection = "<Response><Reject reason='busy'/></Response>"
    assert parse_twiml(rejection) == [Reject("busy")]


def test_what_twilios_own_library_writes_is_understood() -> None:
    response = VoiceResponse()
    gather = SdkGather(input="speech dtmf", action="/next", action_on_empty_result=True)
    gather.say("How can I help?")
    response.append(gather)
    response.pause(length=2)
    response.hangup()
    assert parse_twiml(str(response)) == [
        Gather(
            "/next",
            (TwimlSay("How can I help?"),),
            action_on_empty=True,
            accepts_digits=True,
        ),
        Pause(2.0),
        HangUp(),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("not xml", PARSE_FAILURE),
        ("<Response><Say>unclosed</Response>", PARSE_FAILURE),
        (
            '<!DOCTYPE x [<!ENTITY e "boom">]><Response><Say>&e;</Say></Response>',
            PARSE_FAILURE,
        ),
        ("<Answer/>", NOT_A_RESPONSE),
        ("<Response><Dance/></Response>", WRONG_VERB),
        ("<Response><Gather><Say>press one</Say></Gather></Response>", WRONG_VERB),
    ],
)
def test_what_twilio_refuses_is_refused_with_its_code(text: str, code: int) -> None:
    with pytest.raises(TwimlFault) as fault:
        parse_twiml(text)
    assert fault.value.code == code
