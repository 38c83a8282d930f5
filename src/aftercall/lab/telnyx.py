"""An emulated Telnyx: signed events to your webhook, and calls that Call Control commands steer.

Your test speaks for the caller. The REST routes are in telnyx_rest.py.
"""

import asyncio
import json
import secrets
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.exceptions import InvalidHandshake

from aftercall.clock import Clock, format_instant
from aftercall.lab.carrier import NO_DELIVERY_FAULTS, DeliveryFaults, EmulatedCarrier
from aftercall.lab.line import SECONDS_PER_WORD
from aftercall.lab.media import MediaPhone
from aftercall.model.json_fields import Json
from aftercall.phone.carrier_frames import TelnyxFrames

MAX_ATTEMPTS = 3
RECORDING_LIFETIME_S = 600.0
CONNECTION = "1494404757140276705"


@dataclass(frozen=True)
class _QueuedEvent:
    kind: str
    payload: Json
    after_s: float


@dataclass
class TelnyxCall:
    """A call from its caller's side."""

    control_id: str
    leg_id: str
    session_id: str
    caller: str
    callee: str
    webhook_url: str
    state: str = "parked"
    heard: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    streams: list[Json] = field(default_factory=list)
    is_transcribed: bool = False
    has_interim_results: bool = False
    is_recorded: bool = False
    client_state: str | None = None
    failed_statuses: list[int] = field(default_factory=list)
    """The webhook's answers that were not 2xx; 0 is no answer."""
    command_ids: set[str] = field(default_factory=set)
    may_stream: bool = False
    phone: MediaPhone | None = None
    dial_task: asyncio.Task[None] | None = None
    events: "asyncio.Queue[_QueuedEvent]" = field(default_factory=asyncio.Queue)

    @property
    def is_over(self) -> bool:
        return self.state == "hangup"


class EmulatedTelnyx(EmulatedCarrier):
    """Telnyx as our server meets it: signed events, commands, media streams."""

    def __init__(
        self,
        api_key: str = "KEY0123456789",
        *,
        signing_key: bytes | None = None,
        delivery_faults: DeliveryFaults = NO_DELIVERY_FAULTS,
        pace: float = 0.0,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        address: str = "http://lab.invalid",
    ) -> None:
        """With `pace` 1 speech takes real time, with 0 none."""
        super().__init__(address, delivery_faults, clock, transport)
        self.api_key = api_key
        self.calls: dict[str, TelnyxCall] = {}
        self.call_events: list[Json] = []
        self._key = Ed25519PrivateKey.from_private_bytes(
            signing_key or secrets.token_bytes(32)
        )
        self._pace = pace

    @property
    def public_key(self) -> str:
        return b64encode(self._key.public_key().public_bytes_raw()).decode()

    async def ring(
        self,
        webhook_url: str,
        *,
        caller: str,
        callee: str = "+15550101",
        may_stream: bool = False,
        **details: Any,
    ) -> TelnyxCall:
        """Returns when the agent has sent its first commands, or the call is over."""
        call = self.open_call(webhook_url, caller, callee)
        call.may_stream = may_stream
        payload = {"direction": "incoming", "state": "parked", **details}
        self.queue_event(call, "call.initiated", payload)
        await self.wait_delivered(call)
        return call

    async def say(
        self, call: TelnyxCall, text: str, *, confidence: float | None = 0.92
    ) -> None:
        """The caller speaks; the agent hears it if it has started a transcription."""
        if call.is_transcribed and not call.is_over:
            if call.has_interim_results:
                first_words = " ".join(text.split()[:2])
                self._queue_transcription(call, first_words, 0.0, is_final=False)
            self._queue_transcription(call, text, confidence, is_final=True)
        await self.wait_delivered(call)

    def _queue_transcription(
        self, call: TelnyxCall, text: str, confidence: float | None, *, is_final: bool
    ) -> None:
        data: Json = {"transcript": text, "is_final": is_final}
        data["transcription_track"] = "inbound"
        if confidence is not None:
            data["confidence"] = confidence
        self.queue_event(call, "call.transcription", {"transcription_data": data})

    async def hang_up(self, call: TelnyxCall, cause: str = "normal_clearing") -> None:
        self.end(call, cause, "caller")
        await self.wait_delivered(call)

    async def wait_delivered(self, call: TelnyxCall) -> None:
        """Waits for every event of this call, those that its commands cause included."""
        await call.events.join()

    def open_stream(self, call: TelnyxCall, url: str, client_state: str | None) -> None:
        """Connects a call that `may_stream`; for others only sends the event."""
        if call.may_stream:
            call.dial_task = asyncio.create_task(self._dial(call, url, client_state))
        else:
            self.queue_event(call, "streaming.started", {"stream_url": url})

    async def _dial(self, call: TelnyxCall, url: str, client_state: str | None) -> None:
        side = TelnyxFrames(
            call.control_id,
            caller=call.caller,
            callee=call.callee,
            client_state=client_state,
        )
        try:
            call.phone = await MediaPhone.dial(url, side, parameters={})
        except (OSError, InvalidHandshake) as error:
            failure = {"stream_url": url, "failure_reason": type(error).__name__}
            self.queue_event(call, "streaming.failed", failure)
        else:
            self.queue_event(call, "streaming.started", {"stream_url": url})

    def open_call(self, webhook_url: str, caller: str, callee: str) -> TelnyxCall:
        control_id = f"v3:{secrets.token_urlsafe(36)}"
        call = TelnyxCall(
            control_id, str(uuid4()), str(uuid4()), caller, callee, webhook_url
        )
        self.calls[control_id] = call
        self.webhook_sender.spawn(self._deliver_events(call))
        return call

    def end(self, call: TelnyxCall, cause: str, source: str) -> None:
        if call.is_over:
            return
        call.state = "hangup"
        payload = {
            "hangup_cause": cause,
            "hangup_source": source,
            "sip_hangup_cause": "200",
        }
        self.queue_event(call, "call.hangup", payload | {"state": "hangup"})
        if call.is_recorded:
            self.save_recording(call)

    def save_recording(self, call: TelnyxCall) -> None:
        call.is_recorded = False
        recording = self.recordings.add(
            str(uuid4()), call.control_id, RECORDING_LIFETIME_S
        )
        saved = {
            "channels": "dual",
            "recording_id": recording.sid,
            "recording_urls": {"wav": self.recording_url(recording.sid)},
            "public_recording_urls": {},
        }
        self.queue_event(call, "call.recording.saved", saved)

    def recording_url(self, sid: str) -> str:
        return f"{self.address}/telephony-recorder-lab/{sid}.wav"

    def queue_event(
        self,
        call: TelnyxCall,
        kind: str,
        payload: Json,
        after_s: float = 0.0,
    ) -> None:
        """Events of one call are delivered in order."""
        call.events.put_nowait(_QueuedEvent(kind, dict(payload), after_s))

    def speech_duration_s(self, text: str) -> float:
        return len(text.split()) * SECONDS_PER_WORD * self._pace

    async def _deliver_events(self, call: TelnyxCall) -> None:
        while True:
            event = await call.events.get()
            if event.after_s:
                await self.clock.sleep(event.after_s)
            await self._deliver(call, event)

    async def _deliver(self, call: TelnyxCall, event: _QueuedEvent) -> None:
        body: Json = {}

        async def send() -> None:
            # made at the delivery, so that a late event shows the time it was sent
            if not body:
                body.update(self.make_event(call, event.kind, event.payload))
            await self._post_with_retries(call, body)

        delivery = await self.webhook_sender.deliver(event.kind, send)
        delivery.add_done_callback(lambda _: call.events.task_done())

    async def _post_with_retries(self, call: TelnyxCall, body: Json) -> None:
        """Repeats an event, with the same id, until the webhook answers 2xx."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            meta = {"attempt": attempt, "delivered_to": call.webhook_url}
            try:
                answer = await self.post(call.webhook_url, body | {"meta": meta})
            except httpx2.HTTPError:
                call.failed_statuses.append(0)
                continue
            if 200 <= answer.status_code < 300:
                return
            call.failed_statuses.append(answer.status_code)

    async def post(self, url: str, body: Json) -> httpx2.Response:
        """Posts one signed webhook. Tests use it to send one again."""
        raw = json.dumps(body).encode()
        headers = self.sign(raw) | {"Content-Type": "application/json"}
        return await self.http.post(url, content=raw, headers=headers)

    def sign(self, body: bytes) -> dict[str, str]:
        timestamp = str(int(self.clock.now().timestamp()))
        signature = b64encode(self._key.sign(timestamp.encode() + b"|" + body)).decode()
        return {"telnyx-timestamp": timestamp, "telnyx-signature-ed25519": signature}

    def make_event(self, call: TelnyxCall, kind: str, payload: Json) -> Json:
        whole: Json = {
            "call_leg_id": call.leg_id,
            "call_session_id": call.session_id,
        }
        whole["connection_id"] = CONNECTION
        if not kind.startswith("call.recording"):
            # those name the leg and the session only
            whole["call_control_id"] = call.control_id
        if kind in ("call.initiated", "call.answered", "call.hangup"):
            whole |= {"from": call.caller, "to": call.callee}
        whole |= {"client_state": call.client_state} | dict(payload)
        data = {
            "record_type": "event",
            "event_type": kind,
            "id": str(uuid4()),
            "occurred_at": format_instant(self.clock.now()),
            "payload": whole,
        }
        self.call_events.append(
            {
                "record_type": "call_event",
                "type": "webhook",
                "name": kind,
                "call_leg_id": call.leg_id,
                "call_session_id": call.session_id,
                "event_timestamp": data["occurred_at"],
                "metadata": {"event": data},
            }
        )
        return {"data": data}
