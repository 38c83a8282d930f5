"""Reading TwiML as Twilio does, without a socket: what the caller hears, and what happens next.

Strict where Twilio is: XML that cannot be read, or a document that is no answer, ends the call
with Twilio's error code.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass

PARSE_FAILURE = 12100
NOT_A_RESPONSE = 12101
WRONG_VERB = 12200
INVALID_CONTENT_TYPE = 12300
BAD_STREAM = 31920

_DOCTYPE = re.compile(r"<!DOCTYPE|<!ENTITY", re.IGNORECASE)


class TwimlFault(Exception):
    """An answer that Twilio does not take; the caller hears an apology and the line is dead."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


@dataclass(frozen=True)
class TwimlSay:
    text: str


@dataclass(frozen=True)
class Gather:
    """Listening: speech goes to `action`; silence falls through to what follows, unless it is
    an answer, too.
    """

    action: str
    says: tuple[TwimlSay, ...]
    action_on_empty: bool
    timeout_s: float = 5.0
    end_silence_s: float | None = None
    """How much silence ends what was said; None leaves it to the recogniser."""
    accepts_digits: bool = False
    barge_in: bool = True
    """Whether what the caller says interrupts `says`."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Press:
    """Keys that are pressed: `<Play digits="…">`."""

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
    """The call's audio goes to a socket until that closes; then the next verb is played."""

    url: str
    parameters: tuple[tuple[str, str], ...]


Verb = TwimlSay | Gather | Pause | Press | Redirect | HangUp | Reject | StartRecording | Connect


def parse_twiml(text: str) -> list[Verb]:
    """The verbs in order."""
    if _DOCTYPE.search(text):
        raise TwimlFault(PARSE_FAILURE, "a document type has no place in TwiML")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - without document types there are no entities to expand
    except ElementTree.ParseError as error:
        raise TwimlFault(PARSE_FAILURE, f"the XML cannot be read ({error})") from None
    if root.tag != "Response":
        raise TwimlFault(NOT_A_RESPONSE, f"the outermost element is {root.tag}, not Response")
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
                raise TwimlFault(WRONG_VERB, f"{other} is not a verb this line can play")


def _gather(element: ElementTree.Element) -> Gather:
    if "speech" not in element.get("input", "dtmf").split():
        raise TwimlFault(WRONG_VERB, "Gather without speech leaves a caller who talks unheard")
    says = tuple(verb for verb in _verbs(element) if isinstance(verb, TwimlSay))
    on_empty = element.get("actionOnEmptyResult", "false") == "true"
    takes_keys = "dtmf" in element.get("input", "dtmf").split()
    end_silence = (
        None
        if element.get("speechTimeout", "auto") == "auto"
        else _seconds(element, "speechTimeout", 1.0)
    )
    barge_in = element.get("bargeIn", "true") == "true"
    timeout_s = _seconds(element, "timeout", 5.0)
    return Gather(
        element.get("action", ""), says, on_empty, timeout_s, end_silence, takes_keys, barge_in
    )


def _seconds(element: ElementTree.Element, name: str, default: float) -> float:
    try:
        return float(element.get(name, default))
    except ValueError:
        raise TwimlFault(WRONG_VERB, f"{name} of {element.tag} is not a number") from None


def _connect(element: ElementTree.Element) -> Connect:
    stream = element.find("Stream")
    if stream is None:
        raise TwimlFault(WRONG_VERB, "Connect without a Stream is not a verb this line can play")
    url = stream.get("url", "")
    if not url.startswith(("wss://", "ws://")) or "?" in url:
        raise TwimlFault(BAD_STREAM, "a stream's address is that of a websocket, without a query")
    return Connect(
        url,
        tuple(
            (item.get("name", ""), item.get("value", "")) for item in stream.findall("Parameter")
        ),
    )


def _text(element: ElementTree.Element) -> str:
    return " ".join((element.text or "").split())
