"""Telnyx Call Control: JSON commands on a call. Webhooks come twice and at once, so every command carries an id.

`cause` is what the command answers, mostly the id of a webhook: the same cause gives the same `command_id`,
and Telnyx ignores the second one. Words for ourselves travel as `state` and come back with every later webhook.
"""

import json
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from aftercall.phone.client_state import pack_state
from aftercall.phone.control import ControlRequest, path_part

CALL_HAS_ENDED = "90018"
VOICE = "AWS.Polly.Joanna-Neural"  # comes with Telnyx; plain `female` is for its basic service only
# Without rtp the stream takes MP3 files at one a second and ignores our audio; without PCMU it would not be μ-law.
_STREAM = {
    "stream_track": "inbound_track",
    "stream_codec": "PCMU",
    "stream_bidirectional_mode": "rtp",
    "stream_bidirectional_codec": "PCMU",
}


class TelnyxControl:
    def answer(self, sid: str, *, cause: str, stream_url: str | None = None, state: Mapping[str, str] | None = None) -> ControlRequest:
        """Pick up; with `stream_url` the audio goes to that socket at once, and `state` arrives in its start."""
        stream = {"stream_url": stream_url, **_STREAM} if stream_url else {}
        return _command(sid, "answer", cause, state, stream)

    def start_stream(self, sid: str, stream_url: str, *, cause: str, state: Mapping[str, str] | None = None) -> ControlRequest:
        return _command(sid, "streaming_start", cause, state, {"stream_url": stream_url, **_STREAM})

    def stop_stream(self, sid: str, *, cause: str = "") -> ControlRequest:
        return _command(sid, "streaming_stop", cause)

    def speak(
        self, sid: str, text: str, *, cause: str, voice: str = VOICE, language: str = "en-US", state: Mapping[str, str] | None = None
    ) -> ControlRequest:
        """Say something, in place of whatever is being said: answers do not queue up behind a caller who has gone on."""
        return _command(sid, "speak", cause, state, {"payload": text, "voice": voice, "language": language, "stop": "all"})

    def gather_keys(
        self, sid: str, prompt: str, *, cause: str, most: int = 1, voice: str = VOICE, language: str = "en-US"
    ) -> ControlRequest:
        """Say something and wait for keys. Speech is not gathered here but transcribed: see `start_transcription`."""
        body = {"payload": prompt, "voice": voice, "language": language, "minimum_digits": 1, "maximum_digits": most}
        return _command(sid, "gather_using_speak", cause, None, body)

    def start_transcription(self, sid: str, *, cause: str, language: str = "en") -> ControlRequest:
        """What the caller says arrives as events, in pieces; only their side, or the agent would hear itself.

        Interim pieces are wanted, too: without them a caller who speaks for long cannot be told from one who is silent.
        """
        engine = {"transcription_engine": "Google", "language": language, "interim_results": True}
        body = {"transcription_engine": "Google", "transcription_engine_config": engine, "transcription_tracks": "inbound"}
        return _command(sid, "transcription_start", cause, None, body)

    def start_recording(
        self, sid: str, *, callback: str | None = None, cause: str = "", state: Mapping[str, str] | None = None
    ) -> ControlRequest:
        """The finished recording is told to the connection's webhook; Telnyx takes no `callback` of its own."""
        return _command(sid, "record_start", cause, state, {"channels": "dual", "format": "wav"})

    def hang_up(self, sid: str, *, cause: str = "") -> ControlRequest:
        return _command(sid, "hangup", cause)

    def find_recording(self, recording_sid: str) -> ControlRequest:
        """Where a recording can be fetched now: the address that a webhook told is good for ten minutes only."""
        return ControlRequest("GET", f"/v2/recordings/{path_part(recording_sid)}")

    def send_message(self, sender: str, to: str, text: str, *, key: str) -> ControlRequest:
        """A text message; the same `key` twice is one message."""
        return ControlRequest("POST", "/v2/messages", json={"from": sender, "to": to, "text": text}, key=key)

    def is_over(self, status: int, body: bytes) -> bool:
        try:
            return status == 422 and any(str(error["code"]) == CALL_HAS_ENDED for error in json.loads(body)["errors"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return False


def _command(
    sid: str, action: str, cause: str, state: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
) -> ControlRequest:
    fields: dict[str, Any] = {**(body or {}), "command_id": str(uuid5(NAMESPACE_OID, f"{sid} {action} {cause}"))}
    if state:
        fields["client_state"] = pack_state(state)
    return ControlRequest("POST", f"/v2/calls/{path_part(sid)}/actions/{action}", json=fields)
