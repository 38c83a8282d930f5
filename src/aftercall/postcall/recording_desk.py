"""Getting a recording: fetched into the home, and transcribed beside it if that is wanted.

Every part may be done again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from aftercall.carrier.control import basic_auth
from aftercall.carrier.media import MediaClient, MediaHosts, audio_url
from aftercall.clock import Clock
from aftercall.errors import (
    AftercallError,
    RecordingError,
    RecordingExpired,
    RecordingNotYet,
    TranscriberUnreachable,
    describe_network_error,
)
from aftercall.journal.recording_files import RecordingFolder, RecordingStore, hash_file
from aftercall.model.calls import Recording
from aftercall.phone.telnyx import TelnyxControl
from aftercall.settings import Settings
from aftercall.speech.transcription import make_upload, parse_transcription

TRANSCRIBER = "whisper-1"  # the one model that tells segments and language
OPENAI_URL = "https://api.openai.com/v1"
MOST_TO_TRANSCRIBE = 25 * 1024 * 1024
TRANSCRIBE_WITHIN_S = 300.0


@dataclass(frozen=True)
class RecordingDesk:
    settings: Settings
    store: RecordingStore
    clock: Clock
    transport: httpx2.BaseTransport | None = None

    def download(self, recording_id: str) -> bool:
        """Whether a transcript is wanted as well.

        What this raises is for whoever asked, to try again or give up.
        """
        recording = self.store.start_attempt(recording_id, self.clock.now())
        if recording.state in ("absent", "failed") or recording.url is None:
            return False
        folder, name = RecordingFolder(self.settings.home), _name(recording)
        path = folder.find(name)
        if path is None:
            part = folder.open_part(name)
            try:
                self._client(recording).fetch(audio_url(recording.carrier, recording.url), part)
            except RecordingExpired:
                self._client(recording).fetch(self._fresh_url(recording), part)
            path = folder.finish(part, name)
        wanted = self.settings.recordings.transcribe
        self.store.finish(
            recording_id,
            path=folder.to_relative_path(path),
            sha256=hash_file(path),
            size=path.stat().st_size,
            now=self.clock.now(),
            transcript="waiting" if wanted else "none",
        )
        return wanted

    def transcribe(self, recording_id: str) -> None:
        recording = self.store.get(recording_id)
        if recording.path is None:
            return
        path = self.settings.home / recording.path
        answer = self._ask_transcriber(path)
        about = {
            "schema": 1,
            "recording": recording.id,
            "call": recording.call_id,
            "sha256": recording.sha256,
            "model": TRANSCRIBER,
        }
        RecordingFolder(self.settings.home).write_transcript(path, about | answer)
        self.store.set_transcript_state(recording_id, "here", "", self.clock.now())

    def give_up(self, recording_id: str, code: str, reason: str) -> None:
        """A recording that never came is absent, and that is final; whatever else went wrong
        can be seen.
        """
        if code == RecordingNotYet.code:
            self.store.set_state(
                recording_id, "absent", "the carrier never had it", self.clock.now()
            )
        else:
            self.store.set_state(recording_id, "failed", reason, self.clock.now())

    def give_up_transcript(self, recording_id: str, reason: str) -> None:
        self.store.set_transcript_state(recording_id, "failed", reason, self.clock.now())

    def _client(self, recording: Recording) -> MediaClient:
        hosts = MediaHosts(recording.carrier, self._api_url(recording))
        return MediaClient(
            hosts, self._credentials(recording), self.settings.recordings.max_bytes, self.transport
        )

    def _api_url(self, recording: Recording) -> str:
        return (
            self.settings.twilio.api_url
            if recording.carrier == "twilio"
            else self.settings.telnyx.api_url
        )

    def _credentials(self, recording: Recording) -> Mapping[str, str]:
        twilio, telnyx = self.settings.twilio, self.settings.telnyx
        if recording.carrier == "twilio" and twilio.account_sid and twilio.auth_token:
            return {
                "Authorization": basic_auth(
                    twilio.account_sid, twilio.auth_token.get_secret_value()
                )
            }
        if recording.carrier == "telnyx" and telnyx.api_key:
            return {"Authorization": f"Bearer {telnyx.api_key.get_secret_value()}"}
        return {}

    def _fresh_url(self, recording: Recording) -> str:
        """Telnyx' addresses are good for ten minutes; its API gives a new one."""
        if recording.carrier != "telnyx":
            raise RecordingError(
                "Twilio refused the recording: check TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN"
            )
        request = TelnyxControl().find_recording(recording.sid)
        answer = self._client(recording).fetch_json(
            self._api_url(recording).rstrip("/") + request.path
        )
        data = answer.get("data") if isinstance(answer, dict) else None
        urls = data.get("download_urls") if isinstance(data, dict) else None
        found = (
            [urls[kind] for kind in ("wav", "mp3") if isinstance(urls.get(kind), str)]
            if isinstance(urls, dict)
            else []
        )
        if not found:
            raise RecordingNotYet("Telnyx has no address for the recording")
        self.store.set_url(recording.id, found[0], self.clock.now())
        return str(found[0])

    def _ask_transcriber(self, path: Path) -> dict[str, Any]:
        key = self.settings.openai.api_key
        if key is None:
            raise RecordingError("recordings.transcribe is on, but OPENAI_API_KEY is not set")
        upload = _upload(path)
        url = f"{(self.settings.openai.base_url or OPENAI_URL).rstrip('/')}/audio/transcriptions"
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"}
        form = {"model": TRANSCRIBER, "response_format": "verbose_json"}
        try:
            with httpx2.Client(
                timeout=TRANSCRIBE_WITHIN_S, trust_env=False, transport=self.transport
            ) as http:
                answer = http.post(url, headers=headers, data=form, files={"file": upload})
        except httpx2.HTTPError as error:
            raise TranscriberUnreachable(
                f"no answer from the transcriber ({describe_network_error(error)})"
            ) from error
        if answer.status_code == 429 or answer.status_code >= 500:
            raise TranscriberUnreachable(f"the transcriber answered {answer.status_code}")
        if answer.status_code != 200:
            raise RecordingError(f"the transcriber refused the recording with {answer.status_code}")
        return _read_transcript(answer.content)


def fetch_again(desk: RecordingDesk, call_id: str) -> list[Recording]:
    """By hand: the recordings and transcripts of a call that failed.

    What is absent stays absent.
    """
    for recording in desk.store.list_for_call(call_id):
        try:
            if recording.state == "failed":
                desk.store.set_state(recording.id, "downloading", "", desk.clock.now())
                desk.download(recording.id)
            if desk.store.get(recording.id).transcript in ("waiting", "failed"):
                desk.transcribe(recording.id)
        except AftercallError as error:
            if desk.store.get(recording.id).state == "here":
                desk.give_up_transcript(recording.id, str(error))
            else:
                desk.give_up(recording.id, error.code, str(error))
    return desk.store.list_for_call(call_id)


def _upload(path: Path) -> tuple[str, bytes, str]:
    """The recording as it is sent; measured twice, because one of μ-law becomes twice as large."""
    if path.stat().st_size <= MOST_TO_TRANSCRIBE:
        upload = make_upload(path.read_bytes())
        if len(upload[1]) <= MOST_TO_TRANSCRIBE:
            return upload
    raise RecordingError(
        f"the recording is larger than the {MOST_TO_TRANSCRIBE:,} bytes that OpenAI transcribes"
    )


def _read_transcript(body: bytes) -> dict[str, Any]:
    """Words, language and segments; an answer that is none of this may be whole the next time."""
    try:
        heard = parse_transcription(json.loads(body))
    except (ValueError, RecursionError):
        raise TranscriberUnreachable("the transcriber's answer cannot be read") from None
    segments = [
        {"start": start_s, "end": end_s, "text": text} for start_s, end_s, text in heard.segments
    ]
    return {"language": heard.language, "text": heard.text, "segments": segments}


def _name(recording: Recording) -> str:
    """Ours, not the carrier's: nothing that came over the line is part of a path."""
    return f"{recording.call_id}-{recording.id}.wav"
