"""Parses TwiML into verbs, as strictly as Twilio.

Unreadable XML and documents that are not a response end the call with Twilio's error code.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass

HTTP_FAILED = 11200
PARSE_FAILURE = 12100
NOT_A_RESPONSE = 12101
WRONG_VERB = 12200
INVALID_CONTENT_TYPE = 12300
BAD_STREAM = 31920

_DOCTYPE = re.compile(r"<!DOCTYPE|<!ENTITY", re.IGNORECASE)
Form = dict[str, str]
"""The fields that Twilio posts."""


class TwimlFault(Exception):
    """Twilio refuses the webhook's answer: the caller hears an apology and the call ends."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


@dataclass(frozen=True)
class TwimlSay:
    text: str


@dataclass(frozen=True)
class Gather:
    """Sends speech to `action`. Silence goes there too with `action_on_empty`; else the next
    verb is played.
    """

    action: str
    says: tuple[TwimlSay, ...]
    action_on_empty: bool
    timeout_s: float = 5.0
    end_silence_s: float | None = None
    """How much silence ends an utterance; None leaves it to the recogniser."""
    accepts_digits: bool = False
    barge_in: bool = True
    """Whether speech interrupts `says`."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Press:
    """`<Play digits="…">`."""

    digits: str


@dataclass(frozen=True)
class StartRecording:
    callback: str


@dataclass(frozen=True)
class Redirect:
    url: str


@dataclass(frozen=True)
class HangUp:
    pass


@dataclass(frozen=True)
class Reject:
    reason: str


@dataclass(frozen=True)
class Connect:
    """Streams the call's audio to a socket; when that closes the next verb is played."""

    url: str
    parameters: tuple[tuple[str, str], ...]


Verb = (
    TwimlSay
    | Gather
    | Pause
    | Press
    | Redirect
    | HangUp
    | Reject
    | StartRecording
    | Connect
)


def parse_twiml(text: str) -> list[Verb]:
    if _DOCTYPE.search(text):
        raise TwimlFault(PARSE_FAILURE, "TwiML must not have a document type")
    try:
        # Document types were refused, so there are no entities to expand.
        root = ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        raise TwimlFault(PARSE_FAILURE, f"the XML cannot be read ({error})") from None
    if root.tag != "Response":
        raise TwimlFault(
            NOT_A_RESPONSE, f"the outermost element is {root.tag}, not Response"
        )
    return list(_verbs(root))


def _verbs(parent: ElementTree.Element) -> Iterator[Verb]:
    for element in parent:
        match element.tag:
            case "Say":
                yield TwimlSay(_text(element))
            case "Pause":
                yield Pause(_seconds(element, "length", 1.0))
            case "Play" if element.get("digits"):
                yield Press(element.get("digits", ""))
            case "Start" if (recording := element.find("Recording")) is not None:
                yield StartRecording(recording.get("recordingStatusCallback", ""))
            case "Gather":
                yield _gather(element)
            case "Redirect":
                yield Redirect(_text(element))
            case "Hangup":
                yield HangUp()
            case "Reject":
                yield Reject(element.get("reason", "rejected"))
            case "Connect":
                yield _connect(element)
            case other:
                raise TwimlFault(WRONG_VERB, f"{other} is not a verb the lab can play")


def _gather(element: ElementTree.Element) -> Gather:
    inputs = element.get("input", "dtmf").split()
    if "speech" not in inputs:
        raise TwimlFault(
            WRONG_VERB, "Gather without speech leaves a caller who talks unheard"
        )
    is_auto = element.get("speechTimeout", "auto") == "auto"
    return Gather(
        element.get("action", ""),
        says=tuple(verb for verb in _verbs(element) if isinstance(verb, TwimlSay)),
        action_on_empty=element.get("actionOnEmptyResult", "false") == "true",
        timeout_s=_seconds(element, "timeout", 5.0),
        end_silence_s=None if is_auto else _seconds(element, "speechTimeout", 1.0),
        accepts_digits="dtmf" in inputs,
        barge_in=element.get("bargeIn", "true") == "true",
    )


def _seconds(element: ElementTree.Element, name: str, default: float) -> float:
    try:
        return float(element.get(name, default))
    except ValueError:
        raise TwimlFault(
            WRONG_VERB, f"{name} of {element.tag} is not a number"
        ) from None


def _connect(element: ElementTree.Element) -> Connect:
    stream = element.find("Stream")
    if stream is None:
        raise TwimlFault(
            WRONG_VERB, "Connect without a Stream is not a verb the lab can play"
        )
    url = stream.get("url", "")
    if not url.startswith(("wss://", "ws://")) or "?" in url:
        raise TwimlFault(
            BAD_STREAM, "a stream needs a websocket address without a query"
        )
    parameters = stream.findall("Parameter")
    return Connect(
        url, tuple((item.get("name", ""), item.get("value", "")) for item in parameters)
    )


def _text(element: ElementTree.Element) -> str:
    return " ".join((element.text or "").split())
