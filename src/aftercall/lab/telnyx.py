"""An emulated Telnyx: signed events to your webhook, and Call Control commands that do what
they say.

The caller's side is yours: what they hear, what they say, when they hang up. The REST routes
are in telnyx_rest.py.
"""

import asyncio
import json
import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.exceptions import InvalidHandshake

from aftercall.clock import Clock, SystemClock, format_instant
from aftercall.lab.carriers import TelnyxSide
from aftercall.lab.media import MediaPhone
from aftercall.lab.recordings import LabRecordings
from aftercall.lab.webhook_sender import NO_DELIVERY_FAULTS, DeliveryFaults

MAX_ATTEMPTS = 3
RECORDING_LIFETIME_S = 600.0
CONNECTION = "1494404757140276705"
_SECONDS_PER_WORD = 0.4


@dataclass
class TelnyxCall:
    """One call as its caller lives it."""

    control_id: str
    leg_id: str
    session_id: str
    caller: str
    callee: str
    webhook_url: str
    direction: str = "incoming"
    state: str = "parked"
    heard: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    streams: list[dict[str, Any]] = field(default_factory=list)
    is_transcribed: bool = False
    has_interim_results: bool = False
    is_recorded: bool = False
    client_state: str | None = None
    failed_statuses: list[int] = field(default_factory=list)
    """What the webhook answered where it was not 2xx."""
    command_ids: set[str] = field(default_factory=set)
    may_stream: bool = False
    phone: MediaPhone | None = None
    dial_task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self.state == "hangup"


class EmulatedTelnyx:
    def __init__(
        self,
        api_key: str = "KEY0123456789",
        *,
        signing_key: bytes | None = None,
        delivery_faults: DeliveryFaults = NO_DELIVERY_FAULTS,
        pace: float = 0.0,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`pace` 1 lets speech take its time, 0 none.

        With a `transport` (an ASGI app's, say) no socket is opened.
        """
        self.api_key = api_key
        self.delivery_faults = delivery_faults
        self.clock = clock or SystemClock()
        self.recordings = LabRecordings(self.clock)
        self.messages: list[dict[str, Any]] = []
        self.calls: dict[str, TelnyxCall] = {}
        self.address = "http://lab.invalid"
        self._key = Ed25519PrivateKey.from_private_bytes(signing_key or secrets.token_bytes(32))
        self._pace = pace
        self._http = httpx2.AsyncClient(timeout=15.0, trust_env=False, transport=transport)
        self._tasks: set[asyncio.Task[None]] = set()
        self._queues: dict[str, asyncio.Queue[tuple[str, dict[str, Any], float]]] = {}

    @property
    def public_key(self) -> str:
        return b64encode(self._key.public_key().public_bytes_raw()).decode()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    async def ring(
        self,
        webhook_url: str,
        *,
        caller: str,
        callee: str = "+15550101",
        may_stream: bool = False,
        **details: Any,
    ) -> TelnyxCall:
        """Someone dials; returns when the agent has done what it does, or the call is over."""
        call = self.open_call(webhook_url, caller, callee, "incoming")
        call.may_stream = may_stream
        self.queue_event(
            call, "call.initiated", {"direction": "incoming", "state": "parked", **details}
        )
        await self.wait_delivered(call)
        return call

    async def say(self, call: TelnyxCall, text: str, *, confidence: float | None = 0.92) -> None:
        """The caller says something; the agent hears it if it has asked for a transcription."""
        if call.is_transcribed and not call.is_over:
            if call.has_interim_results:
                first = " ".join(text.split()[:2])
                self.queue_event(
                    call,
                    "call.transcription",
                    {"transcription_data": _transcription_data(first, 0.0, is_final=False)},
                )
            self.queue_event(
                call,
                "call.transcription",
                {"transcription_data": _transcription_data(text, confidence, is_final=True)},
            )
        await self.wait_delivered(call)

    async def hang_up(self, call: TelnyxCall, cause: str = "normal_clearing") -> None:
        self.end(call, cause, "caller")
        await self.wait_delivered(call)

    async def wait_delivered(self, call: TelnyxCall) -> None:
        """Until every event of this call has been delivered, those that came of its commands
        included.
        """
        if queue := self._queues.get(call.control_id):
            await queue.join()

    def open_stream(self, call: TelnyxCall, url: str, client_state: str | None) -> None:
        """The call's sound goes to this address, where a caller is played by hand; elsewhere it
        is only noted.
        """
        if not call.may_stream:
            self.queue_event(call, "streaming.started", {"stream_url": url})
            return
        call.dial_task = asyncio.create_task(self._dial(call, url, client_state))

    async def _dial(self, call: TelnyxCall, url: str, client_state: str | None) -> None:
        side = TelnyxSide(
            call.control_id, caller=call.caller, callee=call.callee, client_state=client_state
        )
        try:
            call.phone = await MediaPhone.dial(url, side, parameters={})
        except (OSError, InvalidHandshake) as error:
            self.queue_event(
                call,
                "streaming.failed",
                {"stream_url": url, "failure_reason": type(error).__name__},
            )
        else:
            self.queue_event(call, "streaming.started", {"stream_url": url})

    def open_call(self, webhook_url: str, caller: str, callee: str, direction: str) -> TelnyxCall:
        control = f"v3:{secrets.token_urlsafe(36)}"
        call = TelnyxCall(
            control, str(uuid4()), str(uuid4()), caller, callee, webhook_url, direction
        )
        self.calls[control] = call
        queue = self._queues[control] = asyncio.Queue()
        self._spawn(self._deliver_queued(call, queue))
        return call

    def end(self, call: TelnyxCall, cause: str, source: str) -> None:
        if call.is_over:
            return
        call.state = "hangup"
        self.queue_event(
            call,
            "call.hangup",
            {
                "hangup_cause": cause,
                "hangup_source": source,
                "sip_hangup_cause": "200",
                "state": "hangup",
            },
        )
        if call.is_recorded:
            self.save_recording(call)

    def save_recording(self, call: TelnyxCall) -> None:
        """Telnyx names leg and session here, and not the call."""
        call.is_recorded = False
        recording = self.recordings.add(str(uuid4()), call.control_id, life_s=RECORDING_LIFETIME_S)
        urls = {"wav": self.recording_url(recording.sid)}
        saved = {
            "channels": "dual",
            "recording_id": recording.sid,
            "recording_urls": urls,
            "public_recording_urls": {},
        }
        self.queue_event(call, "call.recording.saved", saved)

    def recording_url(self, sid: str) -> str:
        return f"{self.address}/telephony-recorder-lab/{sid}.wav"

    def queue_event(
        self, call: TelnyxCall, event: str, payload: Mapping[str, Any], after_s: float = 0.0
    ) -> None:
        """An event for the webhook, in its turn."""
        self._queues[call.control_id].put_nowait((event, dict(payload), after_s))

    def speech_duration_s(self, text: str) -> float:
        return len(text.split()) * _SECONDS_PER_WORD * self._pace

    async def _deliver_queued(
        self, call: TelnyxCall, queue: "asyncio.Queue[tuple[str, dict[str, Any], float]]"
    ) -> None:
        while True:
            event, payload, after_s = await queue.get()
            if after_s:
                await self.clock.sleep(after_s)
            late_s = self.delivery_faults.delay_s(event)
            if late_s:
                self._spawn(self._deliver_late(call, event, payload, late_s, queue))
                continue
            await self._deliver(call, event, payload)
            queue.task_done()

    async def _deliver_late(
        self,
        call: TelnyxCall,
        event: str,
        payload: dict[str, Any],
        late_s: float,
        queue: "asyncio.Queue[tuple[str, dict[str, Any], float]]",
    ) -> None:
        await self.clock.sleep(late_s)
        await self._deliver(call, event, payload)
        queue.task_done()

    async def _deliver(self, call: TelnyxCall, event: str, payload: dict[str, Any]) -> None:
        body = self.make_event(call, event, payload)
        await asyncio.gather(
            *(self._post(call, body) for _ in range(self.delivery_faults.delivery_count(event)))
        )

    async def _post(self, call: TelnyxCall, body: dict[str, Any]) -> None:
        """Told again, with the same id, until it is taken."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                answer = await self.post(
                    call.webhook_url,
                    body | {"meta": {"attempt": attempt, "delivered_to": call.webhook_url}},
                )
            except httpx2.HTTPError:
                call.failed_statuses.append(0)
                continue
            if 200 <= answer.status_code < 300:
                return
            call.failed_statuses.append(answer.status_code)

    async def post(self, url: str, body: Mapping[str, Any]) -> httpx2.Response:
        """One webhook, signed; you may send one again to see that it changes nothing."""
        raw = json.dumps(body).encode()
        return await self._http.post(
            url, content=raw, headers=self.sign(raw) | {"Content-Type": "application/json"}
        )

    def sign(self, body: bytes) -> dict[str, str]:
        timestamp = str(int(self.clock.now().timestamp()))
        signature = self._key.sign(timestamp.encode() + b"|" + body)
        return {
            "telnyx-timestamp": timestamp,
            "telnyx-signature-ed25519": b64encode(signature).decode(),
        }

    def make_event(
        self, call: TelnyxCall, event: str, payload: Mapping[str, Any]
    ) -> dict[str, Any]:
        ids: dict[str, Any] = {
            "call_leg_id": call.leg_id,
            "call_session_id": call.session_id,
            "connection_id": CONNECTION,
        }
        if not event.startswith("call.recording"):
            ids["call_control_id"] = call.control_id
        if event in ("call.initiated", "call.answered", "call.hangup"):
            ids |= {"from": call.caller, "to": call.callee}
        whole = ids | {"client_state": call.client_state} | dict(payload)
        occurred_at = format_instant(self.clock.now())
        return {
            "data": {
                "record_type": "event",
                "event_type": event,
                "id": str(uuid4()),
                "occurred_at": occurred_at,
                "payload": whole,
            }
        }

    def _spawn(self, job: Any) -> None:
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _transcription_data(text: str, confidence: float | None, *, is_final: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "transcript": text,
        "is_final": is_final,
        "transcription_track": "inbound",
    }
    return data if confidence is None else data | {"confidence": confidence}
