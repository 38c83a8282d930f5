"""One leg of an emulated Twilio call: asks its webhook what to do, does it on its end of the
line, and tells how it stands.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import format_datetime
from urllib.parse import urljoin

from websockets.exceptions import InvalidHandshake

from aftercall.clock import Clock
from aftercall.lab.carriers import TwilioSide
from aftercall.lab.line import SECONDS_PER_WORD, HungUp, LineEnd, LineUtterance
from aftercall.lab.media import FRAME_S, MediaPhone
from aftercall.lab.recordings import LabRecordings, make_wav
from aftercall.lab.speech import utter
from aftercall.lab.twiml import (
    BAD_STREAM,
    Connect,
    Gather,
    HangUp,
    Pause,
    Press,
    Redirect,
    Reject,
    StartRecording,
    TwimlFault,
    TwimlSay,
    Verb,
    parse_twiml,
)
from aftercall.lab.webhook_sender import HTTP_FAILED, TwilioWebhookClient, WebhookSender

FRAMES_PER_WORD = round(SECONDS_PER_WORD / FRAME_S)


class StreamBridge:
    def __init__(self, end: LineEnd, phone: MediaPhone) -> None:
        """`end` is the streaming leg's own end of the line, `phone` its stream."""
        self._end = end
        self._phone = phone
        self._seen = sum(said.ended_s is not None for said in end.other.said)
        self._understood = 0
        self._playing: LineUtterance | None = None
        self._word_count = 0

    def forward(self, others: MediaPhone | None = None) -> None:
        """Whatever was said on either side since the last time; `others` is the far end's
        stream while it has one.
        """
        self._phone.connect_to(others)
        if others is None:
            self._pass_words()
        self._seen = len(self._end.other.said)
        self._pass_sound()

    def _pass_words(self) -> None:
        if self._playing is not None and len(self._playing.words) < self._word_count:
            self._phone.clear_outgoing()
            self._playing = None
        for said in self._end.other.said[self._seen :]:
            self._playing, self._word_count = said, len(said.words)
            words = said.words_after(self._end.timeline.now_s())
            self._phone.queue_audio(utter(words, FRAMES_PER_WORD), quiet_after=b"")

    def _pass_sound(self) -> None:
        fresh = self._phone.heard[self._understood :]
        self._understood += len(fresh)
        for text in fresh:
            self._end.start_speaking()
            self._end.finish_speaking(text)
        if self._phone.is_agent_speaking:
            self._end.start_speaking()


APOLOGY = "We are sorry, an application error has occurred. Goodbye."
MAX_REDIRECTS = 20
STREAM_POLL_INTERVAL_S = 0.05
_STATUSES = {"answered": "in-progress"}
_SEQUENCE_NUMBERS = {"initiated": 0, "ringing": 1, "answered": 2}

RecogniseText = Callable[[str], tuple[str, float | None]]
"""What the recogniser makes of what was said, and how sure it is."""


@dataclass(frozen=True)
class LegCarrier:
    """What all legs of one emulated Twilio share."""

    account_sid: str
    address: str
    webhook_client: TwilioWebhookClient
    webhook_sender: WebhookSender
    recordings: LabRecordings
    recognise: RecogniseText
    clock: Clock


class LegRedirected(Exception):
    def __init__(self, verbs: list[Verb]) -> None:
        super().__init__("diverted")
        self.verbs = verbs


@dataclass
class Leg:
    carrier: LegCarrier
    end: LineEnd
    caller: str
    callee: str
    direction: str
    url: str
    status_url: str = ""
    events: frozenset[str] = frozenset({"completed"})
    sid: str = field(default_factory=lambda: "CA" + secrets.token_hex(16))
    state: str = "queued"
    fault: TwimlFault | None = None
    recording_url: str | None = None
    answered_by: str | None = None
    recordings: list[str] = field(default_factory=list)
    is_manual: bool = False
    """Whoever rang takes the sound of a stream themselves."""
    peer: "Leg | None" = None
    """The other leg of a call between two agents."""
    phone: MediaPhone | None = None
    stream_opened: asyncio.Event = field(default_factory=asyncio.Event)
    _answered_s: float | None = None

    @property
    def is_over(self) -> bool:
        return self.state in ("completed", "busy", "no-answer", "failed", "canceled")

    @property
    def heard(self) -> list[str]:
        """What the other end has said so far."""
        return [" ".join(said.words) for said in self.end.other.said if said.words]

    async def set_state(self, event: str, **fields: str) -> None:
        """A new state, and its status callback if one was wanted."""
        self.state = _STATUSES.get(event, event)
        if event == "answered":
            self._answered_s = self.end.timeline.now_s()
        wanted = "completed" if self.is_over else event
        if self.status_url and wanted in self.events:
            number = str(_SEQUENCE_NUMBERS.get(event, 3))
            stamp = format_datetime(self.carrier.clock.now())
            form = self._form(
                {
                    "SequenceNumber": number,
                    "Timestamp": stamp,
                    "CallbackSource": "call-progress-events",
                    **fields,
                }
            )
            await self.carrier.webhook_sender.deliver(
                event, lambda: self.carrier.webhook_client.send_callback(self.status_url, form)
            )

    async def fetch_first_verbs(self) -> list[Verb]:
        """What the webhook wants done with the call that rings. Raises TwimlFault."""
        return await self._fetch_verbs(self.url, {})

    async def play(self, verbs: list[Verb] | None = None) -> None:
        """Do what the webhook says until the call is over; the line is closed afterwards,
        whoever closed it.
        """
        try:
            await self._play(verbs)
        except HungUp:
            pass
        finally:
            self.end.hang_up()
            await self.finish("completed")

    async def finish(self, state: str) -> None:
        if self.is_over:
            return
        seconds = (
            0 if self._answered_s is None else round(self.end.timeline.now_s() - self._answered_s)
        )
        for recording in self.recordings:
            self._write_recording(recording)
            await self._send_recording_callback(recording, seconds)
        await self.set_state(state, CallDuration=str(seconds))

    def redirect(self, verbs: list[Verb]) -> None:
        """New orders in the middle of the call."""
        self.end.interrupt = LegRedirected(verbs)
        self.end.wake()

    def start_recording(self, callback: str | None = None) -> str:
        sid = "RE" + secrets.token_hex(16)
        self.recording_url = callback or self.recording_url
        self.carrier.recordings.add(sid, self.sid)
        self.recordings.append(sid)
        return sid

    async def _play(self, verbs: list[Verb] | None) -> None:
        redirects, fields = 0, dict[str, str]()
        url: str | None = self.url
        while url is not None or verbs is not None:
            try:
                if verbs is None and url is not None:
                    verbs = await self._fetch_verbs(url, fields, redirects)
                url, fields = await self._run_verbs(verbs or [])
                redirects = 0 if fields else redirects + 1
                verbs = None
            except LegRedirected as orders:
                verbs, url = orders.verbs, None
            except TwimlFault as fault:
                self.fault = fault
                await self.end.say(APOLOGY)
                return

    async def _fetch_verbs(
        self, url: str, fields: dict[str, str], redirects: int = 0
    ) -> list[Verb]:
        if redirects > MAX_REDIRECTS:
            raise TwimlFault(HTTP_FAILED, f"more than {MAX_REDIRECTS} redirects in a row")
        if url.startswith("<"):
            return parse_twiml(url)
        return parse_twiml(
            await self.carrier.webhook_client.fetch_twiml(
                urljoin(self.url, url), self._form(fields)
            )
        )

    async def _run_verbs(self, verbs: list[Verb]) -> tuple[str | None, dict[str, str]]:
        """The address that says how it goes on, and what to tell it; None when the document has
        come to its end.
        """
        for verb in verbs:
            match verb:
                case TwimlSay(text):
                    await self.end.say(text)
                case Press(digits):
                    await self.end.press(digits)
                case Pause(seconds):
                    await self.end.pause(seconds)
                case Gather():
                    result = await self._gather(verb)
                    if result or verb.action_on_empty:
                        return verb.action or self.url, result or {"SpeechResult": ""}
                case Redirect(url):
                    return url, {}
                case StartRecording(callback):
                    self.start_recording(callback)
                case Connect():
                    await self._stream(verb)
                case HangUp() | Reject():
                    break
        return None, {}

    async def _stream(self, stream: Connect) -> None:
        """Sound both ways until the agent closes its socket, to whoever rings by hand, to
        another agent's socket, or to words.
        """
        side, headers = (
            TwilioSide(self.sid, self.carrier.account_sid),
            {"x-twilio-signature": self.carrier.webhook_client.sign(stream.url, {})},
        )
        try:
            phone = self.phone = await MediaPhone.dial(
                stream.url, side, parameters=dict(stream.parameters), headers=headers
            )
        except (OSError, InvalidHandshake) as error:
            raise TwimlFault(
                BAD_STREAM, f"the media socket refused ({type(error).__name__})"
            ) from None
        self.stream_opened.set()
        bridge = StreamBridge(self.end, phone)
        try:
            while not phone.is_over:
                self.end.raise_if_interrupted()
                if self.is_manual:
                    await self.carrier.clock.sleep(STREAM_POLL_INTERVAL_S)
                    continue
                others = self.peer.phone if self.peer else None
                bridge.forward(None if others is None or others.is_over else others)
                await self._advance_line_time(STREAM_POLL_INTERVAL_S)
        finally:
            await phone.hang_up()
            bridge.forward()
            self.end.finish_speaking("")

    async def _advance_line_time(self, seconds: float) -> None:
        """A stream takes real time; the line's own time goes with it, whether it is virtual or
        not.
        """
        clock, timeline = self.carrier.clock, self.end.timeline
        real_s, line_s = clock.monotonic(), timeline.now_s()
        await clock.sleep(seconds)
        await self.end.pause(clock.monotonic() - real_s - (timeline.now_s() - line_s))

    async def _gather(self, gather: Gather) -> dict[str, str]:
        if gather.barge_in:
            self.end.start_listening()
        for say in gather.says:
            if not await self.end.say(say.text):
                break
        said = await self.end.listen(gather.timeout_s, gather.end_silence_s)
        keys = self.end.pop_digits()
        if keys and gather.accepts_digits:
            return {"Digits": keys}
        if not said:
            return {}
        text, confidence = self.carrier.recognise(said)
        return {"SpeechResult": text} | (
            {} if confidence is None else {"Confidence": f"{confidence}"}
        )

    def _write_recording(self, sid: str) -> None:
        """Each side hums on its channel while it speaks: this leg on the first, the other on
        the second.
        """
        recording, began_s = self.carrier.recordings.by_sid.get(sid), self._answered_s
        if recording is None or began_s is None:
            return
        now_s = self.end.timeline.now_s()
        sides = [
            [(said.began_s - began_s, (said.ended_s or now_s) - began_s) for said in end.said]
            for end in (self.end, self.end.other)
        ]
        recording.audio = make_wav(now_s - began_s, *sides)

    async def _send_recording_callback(self, sid: str, seconds: int) -> None:
        if not self.recording_url:
            return
        recording = self.carrier.recordings.by_sid.get(sid)
        status = (
            {"RecordingStatus": "completed"}
            if recording
            else {"RecordingStatus": "absent", "ErrorCode": "16102"}
        )
        account = f"{self.carrier.address}/2010-04-01/Accounts/{self.carrier.account_sid}"
        address = f"{account}/Recordings/{sid}"
        form = {
            "AccountSid": self.carrier.account_sid,
            "CallSid": self.sid,
            "RecordingSid": sid,
            "RecordingUrl": address,
            **status,
        }
        form |= {
            "RecordingDuration": str(seconds),
            "RecordingChannels": "2",
            "RecordingTrack": "both",
        }
        form |= {
            "RecordingSource": "StartCallRecordingAPI",
            "RecordingStartTime": format_datetime(self.carrier.clock.now()),
        }
        to = self.recording_url
        await self.carrier.webhook_sender.deliver(
            "recording", lambda: self.carrier.webhook_client.send_callback(to, form)
        )

    def _form(self, fields: dict[str, str]) -> dict[str, str]:
        parties = {
            "From": self.caller,
            "To": self.callee,
            "Caller": self.caller,
            "Called": self.callee,
        }
        whole = {
            "CallSid": self.sid,
            "AccountSid": self.carrier.account_sid,
            "ApiVersion": "2010-04-01",
            "Direction": self.direction,
        }
        answered_by = {"AnsweredBy": self.answered_by} if self.answered_by else {}
        return whole | parties | {"CallStatus": self.state} | answered_by | fields
