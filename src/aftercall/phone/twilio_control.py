"""Twilio's REST address for calls: form bodies, the account in the path."""

import json

from aftercall.phone.control import ControlRequest, path_part

NOT_FOUND = 20_404


class TwilioControl:
    def __init__(self, account_sid: str) -> None:
        self._account = f"/2010-04-01/Accounts/{path_part(account_sid)}"

    def hang_up(self, sid: str) -> ControlRequest:
        return self._post(f"{path_part(sid)}.json", ("Status", "completed"))

    def answer_anew(self, sid: str, twiml: str) -> ControlRequest:
        """Break off what the call is doing and do this instead: the way out when a media stream cannot go on."""
        return self._post(f"{path_part(sid)}.json", ("Twiml", twiml))

    def start_recording(self, sid: str, *, callback: str | None = None) -> ControlRequest:
        """Silence is kept, so that the recording and the turns have one clock."""
        form = [("RecordingChannels", "dual"), ("RecordingTrack", "both"), ("Trim", "do-not-trim")]
        if callback:
            form += [("RecordingStatusCallback", callback), ("RecordingStatusCallbackMethod", "POST")]
            form += [("RecordingStatusCallbackEvent", event) for event in ("completed", "absent")]
        return self._post(f"{path_part(sid)}/Recordings.json", *form, is_repeatable=False)

    def send_message(self, sender: str, to: str, text: str, *, key: str) -> ControlRequest:
        """A text message. Twilio takes no key, so whoever must not send twice may not ask twice."""
        form = (("From", sender), ("To", to), ("Body", text))
        return ControlRequest("POST", f"{self._account}/Messages.json", form=form, is_repeatable=False)

    def is_over(self, status: int, body: bytes) -> bool:
        try:
            return status == 404 and json.loads(body)["code"] == NOT_FOUND
        except (ValueError, KeyError, TypeError, RecursionError):
            return False

    def _post(self, path: str, *form: tuple[str, str], is_repeatable: bool = True) -> ControlRequest:
        return ControlRequest("POST", f"{self._account}/Calls/{path}", form=form, is_repeatable=is_repeatable)
