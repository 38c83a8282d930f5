"""TwiML: what Twilio's own builder would say, escaped, and never a line left open."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twilio.twiml.voice_response import Connect, Gather, VoiceResponse

from aftercall.phone.twilio import connect_stream, gather_speech, say_and_hang_up

SOCKET = "wss://example.com/twilio/media"


def same(ours: str, theirs: VoiceResponse) -> bool:
    return ElementTree.canonicalize(ours) == ElementTree.canonicalize(str(theirs))


def test_a_stream_is_connected_as_twilio_would_write_it_and_ends_by_hanging_up() -> (
    None
):
    judge = VoiceResponse()
    connect = Connect()
    connect.stream(url=SOCKET).parameter(name="token", value="one & <two>")
    judge.append(connect)
    judge.hangup()
    assert same(connect_stream(SOCKET, {"token": "one & <two>"}), judge)


def test_twilio_asks_for_more_when_a_stream_with_a_next_address_ends() -> None:
    judge = VoiceResponse()
    connect = Connect()
    connect.stream(url=SOCKET)
    judge.append(connect)
    judge.redirect("https://calls.example/next", method="POST")
    ours = connect_stream(SOCKET, {}, next_url="https://calls.example/next")
    assert same(ours, judge)


@pytest.mark.parametrize(
    "url",
    [
        f"{SOCKET}?token=1",
        f"{SOCKET}#x",
        "https://example.com/twilio/media",
        "example.com",
    ],
)
def test_a_stream_address_that_twilio_would_drop_or_refuse_is_never_written(
    url: str,
) -> None:
    with pytest.raises(ValueError, match="wss://"):
        connect_stream(url, {})


def test_a_parameter_that_twilio_would_cut_is_never_written() -> None:
    connect_stream(SOCKET, {"n": "v" * 498})
    with pytest.raises(ValueError, match="500"):
        connect_stream(SOCKET, {"n": "v" * 499})


def test_speech_is_gathered_as_twilio_would_write_it() -> None:
    judge = VoiceResponse()
    gather = Gather(
        input="speech",
        action="https://x.org/a?b=1&c=2",
        method="POST",
        speech_timeout="auto",
    )
    gather.say("What can I do for you?")
    judge.append(gather)
    judge.redirect("https://x.org/silent", method="POST")
    action, silent = "https://x.org/a?b=1&c=2", "https://x.org/silent"
    ours = gather_speech("What can I do for you?", action, silence_url=silent)
    assert same(ours, judge)


def test_a_caller_who_says_nothing_is_not_left_on_an_open_line() -> None:
    verbs = [
        verb.tag
        for verb in ElementTree.fromstring(gather_speech("Hello?", "https://x.org/a"))
    ]
    assert verbs == ["Gather", "Hangup"]


def test_the_last_words_are_followed_by_hanging_up() -> None:
    judge = VoiceResponse()
    judge.say("Sorry & goodbye")
    judge.hangup()
    assert same(say_and_hang_up("Sorry & goodbye"), judge)


@given(text=st.text(), value=st.text(max_size=100))
def test_any_text_makes_xml_that_can_be_read(text: str, value: str) -> None:
    def readable(word: str) -> str:
        return "".join(
            c
            for c in word
            if c in "\t\n\r"
            or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
        )

    said = ElementTree.fromstring(say_and_hang_up(text)).findtext("Say")
    assert said == readable(text).replace("\r\n", "\n").replace("\r", "\n")
    parameter = ElementTree.fromstring(connect_stream(SOCKET, {"x": value})).find(
        "Connect/Stream/Parameter"
    )
    assert parameter is not None
    assert parameter.get("value") == readable(value)
