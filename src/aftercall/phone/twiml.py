"""TwiML, the XML that answers Twilio's questions about a call.

Written with the standard library: Twilio's SDK brings a score of packages for three short
answers. The tests compare them with the SDK's.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, SubElement, tostring

CONTENT_TYPE = "text/xml"
MAX_PARAMETER_CHARS = 500
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def connect_stream(
    url: str, parameters: Mapping[str, str], *, recording_callback: str | None = None
) -> str:
    """Connect the call's audio to a media socket, and hang up when the socket closes.

    Twilio drops the query of a stream's address, so values travel as parameters.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("wss", "ws") or parts.query or parts.fragment:
        raise ValueError("a stream's address begins with wss:// and has no query")
    response = _begin(recording_callback)
    stream = SubElement(SubElement(response, "Connect"), "Stream", url=_clean(url))
    for name, value in parameters.items():
        if len(name) + len(value) >= MAX_PARAMETER_CHARS:
            raise ValueError(
                f"a parameter has less than {MAX_PARAMETER_CHARS} characters"
            )
        SubElement(stream, "Parameter", name=_clean(name), value=_clean(value))
    SubElement(response, "Hangup")
    return _write(response)


def gather_speech(
    prompt: str,
    action: str,
    *,
    silence_url: str | None = None,
    recording_callback: str | None = None,
) -> str:
    """Say something and listen. Speech goes to `action`, silence to `silence_url` or hangs up."""
    response = _begin(recording_callback)
    options = {"input": "speech", "method": "POST", "speechTimeout": "auto"}
    gather = SubElement(response, "Gather", options, action=_clean(action))
    SubElement(gather, "Say").text = _clean(prompt)
    if silence_url is None:
        SubElement(response, "Hangup")
    else:
        SubElement(response, "Redirect", method="POST").text = _clean(silence_url)
    return _write(response)


def say_and_hang_up(text: str) -> str:
    response = Element("Response")
    SubElement(response, "Say").text = _clean(text)
    SubElement(response, "Hangup")
    return _write(response)


def _begin(recording_callback: str | None) -> Element:
    """With a callback the call is recorded. Silence stays in: audio and turns share one clock."""
    response = Element("Response")
    if recording_callback:
        options = {
            "recordingStatusCallback": _clean(recording_callback),
            "recordingStatusCallbackEvent": "completed absent",
            "channels": "dual",
            "track": "both",
            "trim": "do-not-trim",
        }
        SubElement(SubElement(response, "Start"), "Recording", options)
    return response


def _clean(text: str) -> str:
    """XML cannot hold control characters and lone surrogates, not even escaped."""
    return _NOT_XML.sub("", text)


def _write(response: Element) -> str:
    return '<?xml version="1.0" encoding="UTF-8"?>' + tostring(
        response, encoding="unicode"
    )
