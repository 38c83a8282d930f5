"""The APIs of the services that keep recordings: our key for each, and where the audio lies.

A carrier names a recording's address in its notice, a hosted platform in its report of the call.
An address that is missing or has expired is asked for in the service's API.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aftercall.hosted.platform import Json, get_object
from aftercall.phone.telnyx import TelnyxControl
from aftercall.rest import basic_auth
from aftercall.settings import Settings
from aftercall.settings.providers import TwilioSettings, make_key_headers

PLATFORMS = ("elevenlabs", "vapi", "retell", "bland")
_INNER_REPORTS = {"vapi": "message", "retell": "call"}
"""Where a platform's webhook holds what its API answers alone."""
_TITLES = {"elevenlabs": "ElevenLabs"}
# Addresses expire: Telnyx' after ten minutes, Retell's after a day, or ten minutes if signed.
_LOOKUP_PATHS = {
    "vapi": "/call/{sid}",
    "retell": "/v2/get-call/{sid}",
    "bland": "/v1/calls/{sid}",
}
# ElevenLabs names no address: the audio of a conversation is part of its API.
_AUDIO_PATHS = {"elevenlabs": "/v1/convai/conversations/{sid}/audio"}


@dataclass(frozen=True)
class RecordingApi:
    """The API of one service. Without a key it has no headers."""

    title: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    settings: str
    """The settings that hold the key, to name in an error."""
    lookup_path: str = ""
    """What answers with the recording's address."""
    audio_path: str = ""
    """What answers with the audio itself."""

    @property
    def can_ask(self) -> bool:
        return bool(self.headers and (self.lookup_path or self.audio_path))

    def make_url(self, path: str) -> str:
        return self.url.rstrip("/") + path


def open_recording_api(settings: Settings, service: str, sid: str) -> RecordingApi:
    """`sid` is the recording's at a carrier, and the call's at a platform."""
    if service == "twilio":
        return _open_twilio(settings.twilio)
    section = getattr(settings, service)
    path = _LOOKUP_PATHS.get(service, "").format(sid=sid)
    if service == "telnyx":
        path = TelnyxControl().find_recording(sid).path
    return RecordingApi(
        _TITLES.get(service, service.capitalize()),
        section.api_url,
        make_key_headers(service, section.api_key),
        f"{service.upper()}_API_KEY",
        path,
        _AUDIO_PATHS.get(service, "").format(sid=sid),
    )


def _open_twilio(section: TwilioSettings) -> RecordingApi:
    headers = {}
    if section.account_sid and section.auth_token:
        token = section.auth_token.get_secret_value()
        headers["Authorization"] = basic_auth(section.account_sid, token)
    keys = "TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN"
    return RecordingApi("Twilio", section.api_url, headers, keys)


def find_recording_url(service: str, answer: Json) -> str | None:
    """The address in an answer of the service's API; of two, the one with both sides apart."""
    candidates: list[Any] = []
    if service == "telnyx":
        urls = get_object(get_object(answer, "data"), "download_urls")
        candidates = [urls.get("wav"), urls.get("mp3")]
    elif service == "vapi":
        artifact = get_object(answer, "artifact")
        recording = get_object(artifact, "recording")
        candidates = [
            recording.get("stereoUrl"),
            artifact.get("stereoRecordingUrl"),
            get_object(recording, "mono").get("combinedUrl"),
            artifact.get("recordingUrl"),
        ]
    elif service == "retell":
        names = ("recording_multi_channel_url", "recording_url")
        candidates = [answer.get(name) for name in names]
    elif service == "bland":
        candidates = [answer.get("recording_url")]
    found = (url for url in candidates if isinstance(url, str) and url)
    return next(found, None)


def find_reported_url(platform: str, event: Json) -> str | None:
    """The address in a platform's report of a finished call."""
    inner = _INNER_REPORTS.get(platform)
    return find_recording_url(platform, get_object(event, inner) if inner else event)
