"""What the tester tells Twilio to do: listen first, pause politely, speak, press keys, hang up."""

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from aftercall.tester.caller import Move

PAUSE_S = 1
SPEECH_TIMEOUT_S = 3  # shorter cuts the agent off in the middle of a sentence
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def answer_move(move: Move | None, listen_at: str, *, wait_s: float, voice: str) -> str:
    """Do this, then listen; nothing to do is listening."""
    response = Element("Response")
    if move is not None and move.kind == "press":
        SubElement(response, "Play", digits=move.text)
    elif move is not None and move.text:
        SubElement(response, "Pause", length=str(PAUSE_S))
        SubElement(response, "Say", voice=voice).text = _NOT_XML.sub("", move.text)
    elif move is not None and move.kind == "wait" and move.seconds:
        SubElement(response, "Pause", length=str(max(1, round(move.seconds))))
    if move is not None and move.kind == "hang_up":
        SubElement(response, "Hangup")
    else:
        _listen(response, listen_at, wait_s)
    return '<?xml version="1.0" encoding="UTF-8"?>' + tostring(response, encoding="unicode")


def _listen(response: Element, action: str, wait_s: float) -> None:
    SubElement(
        response,
        "Gather",
        input="speech",
        action=action,
        method="POST",
        timeout=str(max(1, round(wait_s))),
        speechTimeout=str(SPEECH_TIMEOUT_S),
        actionOnEmptyResult="true",
    )
