"""Fetches call recordings into the home and has them transcribed.

`RecordingFetcher` does each part; every part may be repeated. The durable workflow runs them.
Its id is the recording's id. An attempt that a crash cut off continues behind the bytes that
were already fetched.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import httpx2
from dbos import SetWorkflowID

from aftercall.carrier.media import (
    MediaClient,
    MediaHosts,
    RecordingApi,
    audio_url,
    find_recording_url,
    open_recording_api,
)
from aftercall.clock import Clock
from aftercall.durable import (
    ThreadSteps,
    register_queue,
    run_in_thread,
    start_workflow,
    workflow,
)
from aftercall.errors import (
    AftercallError,
    RecordingError,
    RecordingExpired,
    RecordingNotYet,
    TranscriberUnreachable,
    to_aftercall_error,
)
from aftercall.faults import fault_point
from aftercall.journal.recording_files import (
    RecordingFolder,
    RecordingStore,
    hash_file,
    make_file_name,
)
from aftercall.log import get_logger
from aftercall.model.calls import Recording
from aftercall.model.json_fields import Json
from aftercall.rest import describe_network_error
from aftercall.settings import Settings
from aftercall.settings.providers import make_key_headers
from aftercall.speech.transcription import make_upload, parse_transcription

QUEUE = "aftercall.recordings"
MAX_DOWNLOADS = 2  # a long download should not hold up the others, nor fill the line
MAX_DIRECT_DOWNLOADS = 2  # started without the queue
ATTEMPTS = 9  # with doubling pauses: four minutes
TRANSCRIBER = "whisper-1"  # the model that returns segments and language
OPENAI_URL = "https://api.openai.com/v1"
MAX_TRANSCRIBE_BYTES = 25 * 1024 * 1024
TRANSCRIBE_TIMEOUT_S = 300.0

log = get_logger("recordings")


@dataclass(frozen=True)
class RecordingFetcher:
    """Fetches recordings of carriers and platforms, each once, and only from their hosts."""

    settings: Settings
    store: RecordingStore
    clock: Clock
    transport: httpx2.BaseTransport | None = None

    def download(self, recording_id: str) -> bool:
        """Fetch the file. Returns True if a transcript is wanted."""
        recording = self.store.start_attempt(recording_id, self.clock.now())
        if recording.state in ("absent", "failed"):
            return False
        folder, name = self._folder(), make_file_name(recording.call_id, recording.id)
        path = folder.find(name)
        if path is None:
            part = folder.open_part(name)
            client = self._client(recording)
            url = recording.url or self._find_url(recording)
            try:
                client.fetch(audio_url(recording.carrier, url), part)
            except RecordingExpired:
                client.fetch(self._renew_url(recording), part)
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
        answer = self._ask_transcriber(
            _make_upload(self._folder(), path, recording.bytes)
        )
        about = {
            "schema": 1,
            "recording": recording.id,
            "call": recording.call_id,
            "sha256": recording.sha256,
            "model": TRANSCRIBER,
        }
        self._folder().write_transcript(path, about | answer)
        self.store.set_transcript_state(recording_id, "here", "", self.clock.now())

    def give_up(self, recording_id: str, code: str, reason: str) -> None:
        """A recording that the carrier never had is absent for good. Other failures show."""
        log.warning("a recording was not fetched", recording=recording_id, error=code)
        now = self.clock.now()
        if code == RecordingNotYet.code:
            self.store.set_state(
                recording_id, "absent", "the carrier never had it", now
            )
        else:
            self.store.set_state(recording_id, "failed", reason, now)

    def give_up_transcript(self, recording_id: str, reason: str) -> None:
        log.warning("a recording was not transcribed", recording=recording_id)
        self.store.set_transcript_state(
            recording_id, "failed", reason, self.clock.now()
        )

    def _folder(self) -> RecordingFolder:
        return RecordingFolder.from_settings(self.settings)

    def _api(self, recording: Recording) -> RecordingApi:
        return open_recording_api(self.settings, recording.carrier, recording.sid)

    def _client(self, recording: Recording) -> MediaClient:
        api, limits = self._api(recording), self.settings.recordings
        hosts = MediaHosts(recording.carrier, api.url, more_hosts=limits.hosts)
        return MediaClient(hosts, api.headers, limits.max_bytes, self.transport)

    def _renew_url(self, recording: Recording) -> str:
        """For an address that was refused. Raises RecordingError if a new one cannot help."""
        api = self._api(recording)
        if not api.can_ask or api.audio_path:
            message = f"{api.title} refused the recording: check {api.settings}"
            raise RecordingError(message)
        return self._find_url(recording)

    def _find_url(self, recording: Recording) -> str:
        """Asks the service; its addresses expire, and a report may come before there is one."""
        api = self._api(recording)
        if api.audio_path:
            return api.make_url(api.audio_path)
        url = api.make_url(api.lookup_path)
        answer = self._client(recording).fetch_json(url)
        found = None
        if isinstance(answer, dict):
            found = find_recording_url(recording.carrier, answer)
        if found is None:
            raise RecordingNotYet(f"{api.title} has no address for the recording")
        self.store.set_url(recording.id, found, self.clock.now())
        return found

    def _ask_transcriber(self, upload: tuple[str, bytes, str]) -> Json:
        key = self.settings.openai.api_key
        if key is None:
            raise RecordingError(
                "recordings.transcribe is on, but OPENAI_API_KEY is not set"
            )
        url = f"{(self.settings.openai.base_url or OPENAI_URL).rstrip('/')}/audio/transcriptions"
        headers = make_key_headers("openai", key)
        form = {"model": TRANSCRIBER, "response_format": "verbose_json"}
        try:
            with httpx2.Client(
                timeout=TRANSCRIBE_TIMEOUT_S, trust_env=False, transport=self.transport
            ) as http:
                answer = http.post(
                    url, headers=headers, data=form, files={"file": upload}
                )
        except httpx2.HTTPError as error:
            raise TranscriberUnreachable(
                f"no answer from the transcriber ({describe_network_error(error)})"
            ) from error
        if answer.status_code == 429 or answer.status_code >= 500:
            raise TranscriberUnreachable(
                f"the transcriber answered {answer.status_code}"
            )
        if answer.status_code != 200:
            raise RecordingError(
                f"the transcriber refused the recording with {answer.status_code}"
            )
        return _read_transcript(answer.content)


def fetch_again(fetcher: RecordingFetcher, call_id: str) -> list[Recording]:
    """Fetch failed recordings and transcripts of a call now. Absent ones stay absent."""
    for recording in fetcher.store.list_for_call(call_id):
        try:
            if recording.state == "failed":
                fetcher.store.set_state(
                    recording.id, "downloading", "", fetcher.clock.now()
                )
                fetcher.download(recording.id)
            if fetcher.store.get(recording.id).transcript in ("waiting", "failed"):
                fetcher.transcribe(recording.id)
        except AftercallError as error:
            if fetcher.store.get(recording.id).state == "here":
                fetcher.give_up_transcript(recording.id, str(error))
            else:
                fetcher.give_up(recording.id, error.code, str(error))
    return fetcher.store.list_for_call(call_id)


def _make_upload(
    folder: RecordingFolder, path: Path, size: int | None
) -> tuple[str, bytes, str]:
    """The file as it is sent. Checked twice: a μ-law file doubles in size when converted."""
    if (size or 0) <= MAX_TRANSCRIBE_BYTES:
        upload = make_upload(folder.read(path))
        if len(upload[1]) <= MAX_TRANSCRIBE_BYTES:
            return upload
    raise RecordingError(
        f"the recording is larger than the {MAX_TRANSCRIBE_BYTES:,} bytes that OpenAI transcribes"
    )


def _read_transcript(body: bytes) -> Json:
    """Text, language and segments. An unreadable answer may be whole the next time: retryable."""
    try:
        heard = parse_transcription(json.loads(body))
    except (ValueError, RecursionError):
        raise TranscriberUnreachable(
            "the transcriber's answer cannot be read"
        ) from None
    segments = [
        {"start": start_s, "end": end_s, "text": text}
        for start_s, end_s, text in heard.segments
    ]
    return {"language": heard.language, "text": heard.text, "segments": segments}


# One per process, like the durable engine.
_fetcher: RecordingFetcher | None = None


def opened_fetcher() -> RecordingFetcher:
    if _fetcher is None:
        raise RuntimeError("the recordings have not been opened")
    return _fetcher


@workflow("aftercall.recording")
async def get_recording(recording_id: str) -> None:
    try:
        is_transcript_wanted = await download(recording_id)
    except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded and shown
        ours = to_aftercall_error(error)
        await give_up(recording_id, ours.code, str(ours))
        return
    if is_transcript_wanted:
        try:
            await transcribe(recording_id)
        except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded and shown
            await give_up_transcript(recording_id, str(to_aftercall_error(error)))


_steps = ThreadSteps(ATTEMPTS, opened_fetcher)
download = _steps.make("aftercall.download", RecordingFetcher.download)
transcribe = _steps.make("aftercall.transcribe", RecordingFetcher.transcribe)
give_up = _steps.make("aftercall.give_up_recording", RecordingFetcher.give_up)
give_up_transcript = _steps.make(
    "aftercall.give_up_transcript", RecordingFetcher.give_up_transcript
)


def open_recordings(fetcher: RecordingFetcher) -> None:
    """Call before the durable engine is launched."""
    global _fetcher
    _fetcher = fetcher
    register_queue(QUEUE, MAX_DOWNLOADS)


async def start_due_recordings(fetcher: RecordingFetcher) -> list[str]:
    """Start every recording that waits. A crash in between repeats it."""
    due = await run_in_thread(fetcher.store.list_due)
    for recording_id in due:
        with SetWorkflowID(recording_id):
            await start_workflow(
                QUEUE, MAX_DIRECT_DOWNLOADS, get_recording, recording_id
            )
        fault_point("recording.after_enqueue")
        await run_in_thread(
            fetcher.store.mark_started, recording_id, fetcher.clock.now()
        )
    return due
