"""One leg of an emulated Twilio call: asks its webhook for TwiML, plays it on its end of the
line, and sends status callbacks.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from urllib.parse import urljoin

from aftercall.lab.carrier import make_wav
from aftercall.lab.line import SECONDS_PER_WORD, HungUp, LineEnd, LineUtterance
from aftercall.lab.media import MediaPhone
from aftercall.lab.speech import utter
from aftercall.lab.twilio import APOLOGY, TwilioCarrier
from aftercall.lab.twiml import (
    Connect,
    Form,
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
from aftercall.speech.sound import FRAME_S

FRAMES_PER_WORD = round(SECONDS_PER_WORD / FRAME_S)
STREAM_POLL_INTERVAL_S = 0.05
END_STATES = ("completed", "busy", "no-answer", "failed", "canceled")
_STATUSES = {"answered": "in-progress"}
_SEQUENCE_NUMBERS = {"initiated": 0, "ringing": 1, "answered": 2}

RecogniseText = Callable[[str], tuple[str, float | None]]
"""The recogniser: what was said → what it understands, and its confidence."""


def recognise_exactly(text: str) -> tuple[str, float | None]:
    return text, 0.92


class StreamBridge:
    """Carries speech between a leg's media stream and the words on its line."""

    def __init__(self, end: LineEnd, phone: MediaPhone) -> None:
        """`end` is the streaming leg's end of the line."""
        self._end = end
        self._phone = phone
        self._seen = sum(said.ended_s is not None for said in end.other.said)
        self._understood = 0
        self._playing: LineUtterance | None = None
        self._word_count = 0

    def forward(self, other_phone: MediaPhone | None = None) -> None:
        """Carries over what either side has said since the last time. With the far end's stream
        audio goes from stream to stream.
        """
        self._phone.connect_to(other_phone)
        if other_phone is None:
            self._send_words()
        self._seen = len(self._end.other.said)
        self._receive_words()

    def _send_words(self) -> None:
        if self._playing is not None and len(self._playing.words) < self._word_count:
            self._phone.clear_outgoing()
            self._playing = None
        for said in self._end.other.said[self._seen :]:
            self._playing = said
            self._word_count = len(said.words)
            words = said.words_after(self._end.timeline.now_s())
            self._phone.queue_audio(utter(words, FRAMES_PER_WORD), quiet_after=b"")

    def _receive_words(self) -> None:
        fresh = self._phone.heard[self._understood :]
        self._understood += len(fresh)
        for text in fresh:
            self._end.start_speaking()
            self._end.finish_speaking(text)
        if self._phone.is_agent_speaking:
            self._end.start_speaking()


class LegRedirected(Exception):
    def __init__(self, verbs: list[Verb]) -> None:
        super().__init__("redirected")
        self.verbs = verbs


@dataclass
class Leg:
    """One side's connection within an emulated call."""

    carrier: TwilioCarrier
    end: LineEnd
    caller: str
    callee: str
    direction: str
    url: str
    status_url: str = ""
    events: frozenset[str] = frozenset({"completed"})
    recognise: RecogniseText = recognise_exactly
    sid: str = field(default_factory=lambda: "CA" + secrets.token_hex(16))
    state: str = "queued"
    fault: TwimlFault | None = None
    recording_url: str | None = None
    answered_by: str | None = None
    recordings: list[str] = field(default_factory=list)
    is_manual: bool = False
    """The far side reads the audio of a stream itself."""
    peer: "Leg | None" = None
    """The other leg of a call between two agents."""
    phone: MediaPhone | None = None
    stream_opened: asyncio.Event = field(default_factory=asyncio.Event)
    ended_at: datetime | None = None
    _answered_s: float | None = None

    def __post_init__(self) -> None:
        self.created_at = self.carrier.clock.now()

    @property
    def is_over(self) -> bool:
        return self.state in END_STATES

    @property
    def heard(self) -> list[str]:
        """What the other end has said so far."""
        return [" ".join(said.words) for said in self.end.other.said if said.words]

    async def set_state(self, event: str, **fields: str) -> None:
        """Changes the state, and sends a status callback if this event was subscribed to."""
        self.state = _STATUSES.get(event, event)
        if event == "answered":
            self._answered_s = self.end.timeline.now_s()
        if self.is_over:
            self.ended_at = self.carrier.clock.now()
        subscribed = "completed" if self.is_over else event
        if self.status_url and subscribed in self.events:
            fields["SequenceNumber"] = str(_SEQUENCE_NUMBERS.get(event, 3))
            fields["Timestamp"] = format_datetime(self.carrier.clock.now())
            fields["CallbackSource"] = "call-progress-events"
            await self._send_callback(event, self.status_url, self._make_form(fields))

    async def fetch_first_verbs(self) -> list[Verb]:
        """Asks the webhook what to do with the ringing call. Raises TwimlFault."""
        return await self._fetch_verbs(self.url, {})

    async def play(self, verbs: list[Verb] | None = None) -> None:
        """Plays TwiML until the call is over, then closes the line."""
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
        now_s = self.end.timeline.now_s()
        seconds = 0 if self._answered_s is None else round(now_s - self._answered_s)
        for recording in self.recordings:
            self._write_recording(recording)
            await self._send_recording_callback(recording, seconds)
        await self.set_state(state, CallDuration=str(seconds))

    def redirect(self, verbs: list[Verb]) -> None:
        """Interrupts the call and plays these verbs instead."""
        self.end.interrupt = LegRedirected(verbs)
        self.end.wake()

    def start_recording(self, callback: str | None = None) -> str:
        sid = "RE" + secrets.token_hex(16)
        self.recording_url = callback or self.recording_url
        self.carrier.recordings.add(sid, self.sid)
        self.recordings.append(sid)
        return sid

    async def _play(self, verbs: list[Verb] | None) -> None:
        redirects = 0
        fields = Form()
        url: str | None = self.url
        while url is not None or verbs is not None:
            try:
                if verbs is None and url is not None:
                    verbs = await self._fetch_verbs(url, fields, redirects)
                url, fields = await self._run_verbs(verbs or [])
                redirects = 0 if fields else redirects + 1
                verbs = None
            except LegRedirected as redirected:
                verbs = redirected.verbs
                url = None
            except TwimlFault as fault:
                self.fault = fault
                await self.end.say(APOLOGY)
                return

    async def _fetch_verbs(
        self, url: str, fields: Form, redirects: int = 0
    ) -> list[Verb]:
        if url.startswith("<"):
            return parse_twiml(url)
        form = self._make_form(fields)
        return await self.carrier.fetch_verbs(urljoin(self.url, url), form, redirects)

    async def _run_verbs(self, verbs: list[Verb]) -> tuple[str | None, Form]:
        """The address to ask next and the fields to send; None at the end of the document."""
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
        """Carries audio until the agent closes its socket: to a manual caller, to the other
        agent's stream, or to words on the line.
        """
        phone = self.phone = await self.carrier.open_stream(self.sid, stream)
        self.stream_opened.set()
        bridge = StreamBridge(self.end, phone)
        try:
            while not phone.is_over:
                self.end.raise_if_interrupted()
                if self.is_manual:
                    await self.carrier.clock.sleep(STREAM_POLL_INTERVAL_S)
                    continue
                other = self.peer.phone if self.peer else None
                bridge.forward(None if other is None or other.is_over else other)
                await self._advance_line_time(STREAM_POLL_INTERVAL_S)
        finally:
            await phone.hang_up()
            bridge.forward()
            self.end.finish_speaking("")

    async def _advance_line_time(self, seconds: float) -> None:
        """A stream runs in real time; moves the line's time along with it."""
        clock = self.carrier.clock
        timeline = self.end.timeline
        real_s = clock.monotonic()
        line_s = timeline.now_s()
        await clock.sleep(seconds)
        await self.end.pause(clock.monotonic() - real_s - (timeline.now_s() - line_s))

    async def _gather(self, gather: Gather) -> Form:
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
        text, confidence = self.recognise(said)
        result = {"SpeechResult": text}
        return (
            result if confidence is None else result | {"Confidence": f"{confidence}"}
        )

    def _write_recording(self, sid: str) -> None:
        """Each side hums on its channel while it speaks: this leg on the first."""
        recording = self.carrier.recordings.by_sid.get(sid)
        began_s = self._answered_s
        if recording is None or began_s is None:
            return
        now_s = self.end.timeline.now_s()
        sides = [
            [
                (said.began_s - began_s, (said.ended_s or now_s) - began_s)
                for said in end.said
            ]
            for end in (self.end, self.end.other)
        ]
        recording.audio = make_wav(now_s - began_s, *sides)

    async def _send_recording_callback(self, sid: str, seconds: int) -> None:
        if not self.recording_url:
            return
        account = self.carrier.account_sid
        address = (
            f"{self.carrier.address}/2010-04-01/Accounts/{account}/Recordings/{sid}"
        )
        form = {
            "AccountSid": account,
            "CallSid": self.sid,
            "RecordingSid": sid,
            "RecordingUrl": address,
            "RecordingStatus": "completed",
            "RecordingDuration": str(seconds),
            "RecordingChannels": "2",
            "RecordingTrack": "both",
            "RecordingSource": "StartCallRecordingAPI",
            "RecordingStartTime": format_datetime(self.carrier.clock.now()),
        }
        if sid not in self.carrier.recordings.by_sid:
            form |= {"RecordingStatus": "absent", "ErrorCode": "16102"}
        await self._send_callback("recording", self.recording_url, form)

    async def _send_callback(self, kind: str, url: str, form: Form) -> None:
        send = self.carrier.webhook_sender.deliver
        await send(kind, lambda: self.carrier.send_callback(url, form))

    def _make_form(self, fields: Form) -> Form:
        form = {
            "CallSid": self.sid,
            "AccountSid": self.carrier.account_sid,
            "ApiVersion": "2010-04-01",
            "Direction": self.direction,
            "From": self.caller,
            "To": self.callee,
            "Caller": self.caller,
            "Called": self.callee,
            "CallStatus": self.state,
        }
        if self.answered_by:
            form["AnsweredBy"] = self.answered_by
        return form | fields
