"""A real phone by Twilio in `media` mode: sound both ways, so the caller can interrupt.

Times are those of our end of the line and include the way to the agent and back.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aftercall.clock import Clock
from aftercall.errors import LineFailed, StreamNotOpen
from aftercall.ids import new_id
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.twiml import connect_stream
from aftercall.phone.wire import (
    AudioIn,
    AudioOut,
    StopReason,
    StreamStarted,
    StreamStopped,
    WireEvent,
)
from aftercall.speech.sound import FRAME_BYTES
from aftercall.tester.drivers.dialer import TwilioDialer
from aftercall.tester.line import (
    AgentTick,
    CallerTick,
    DialedCall,
    Kind,
    Outcome,
    TickPace,
)

MAX_BUFFER_BYTES = 100 * FRAME_BYTES  # two seconds; a line further behind has stalled
LAB_FRAME_TIMEOUT_S = 1.0
CONNECT_TIMEOUT_S = 10.0
_OVER: dict[str, Outcome] = {
    "busy": "busy",
    "no-answer": "no-answer",
    "failed": "failed",
    "canceled": "no-answer",
    "completed": "no-answer",  # before the socket was open
}


@dataclass
class MediaCall:
    """What passes between a call's socket and the connection that uses it."""

    id: str
    wire: TwilioWire = field(default_factory=TwilioWire)
    incoming: bytearray = field(default_factory=bytearray)
    outgoing: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: "asyncio.Future[Outcome]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    stopped: StopReason | None = None
    lost: int = 0
    last_chunk: int = 0

    def apply_event(self, event: WireEvent) -> None:
        if isinstance(event, StreamStarted):
            self.set_outcome("answered")
        elif isinstance(event, AudioIn):
            self.lost += (
                max(0, event.sequence - self.last_chunk - 1) if self.last_chunk else 0
            )
            self.last_chunk = event.sequence
            self.incoming += event.payload
            del self.incoming[:-MAX_BUFFER_BYTES]
        elif isinstance(event, StreamStopped):
            self.stopped = event.reason
        self.arrived.set()

    def set_outcome(self, outcome: Outcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class MediaCalls:
    """Dials, and routes sockets and webhooks to their calls."""

    def __init__(
        self, rest: TwilioDialer, public_url: str, to: str, clock: Clock
    ) -> None:
        self._rest = rest
        self._address = public_url.rstrip("/") + "/tester"
        self._to = to
        self._clock = clock
        self._calls: dict[str, MediaCall] = {}

    async def dial(self, call: MediaCall, dial: DialedCall, limit_s: float) -> Outcome:
        self._calls[call.id] = call
        await self._rest.dial(
            self._to, self._address, call.id, ring_s=dial.ring_s, limit_s=limit_s
        )
        alarm = asyncio.get_running_loop().create_task(
            self._clock.sleep(dial.ring_s + CONNECT_TIMEOUT_S)
        )
        alarm.add_done_callback(lambda _: call.set_outcome("no-answer"))
        outcome = await call.outcome
        alarm.cancel()
        return outcome

    def forget(self, call: MediaCall) -> None:
        self._calls.pop(call.id, None)

    def find(self, call_id: str) -> MediaCall | None:
        return self._calls.get(call_id)

    async def answer(
        self, page: str, call_id: str, form: Mapping[str, str]
    ) -> str | None:
        """TwiML that sends the call's sound to our socket; other webhooks report how it went."""
        call = self._calls.get(call_id)
        if page == "voice":
            socket = self._address.replace("http", "ws", 1) + "/media"
            return connect_stream(socket, {"call": call_id})
        if (
            call is not None
            and page == "status"
            and form.get("CallStatus", "") in _OVER
        ):
            call.set_outcome(_OVER[form["CallStatus"]])
            call.stopped = call.stopped or StopReason.ENDED
            call.arrived.set()
        return None


class MediaConnection:
    def __init__(self, calls: MediaCalls, pace: TickPace, limit_s: float) -> None:
        self._calls = calls
        self._pace = pace
        self._limit_s = limit_s
        self._call = MediaCall(new_id())

    @property
    def kind(self) -> Kind:
        return "phone"

    async def connect(self, dial: DialedCall) -> Outcome:
        return await self._calls.dial(self._call, dial, self._limit_s)

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
        call = self._call
        try:
            call.outgoing.put_nowait(call.wire.send(AudioOut(near.frame)))
        except StreamNotOpen:
            call.stopped = call.stopped or StopReason.LOST
        if not self._pace.is_live:
            await self._wait_for_frame()
        if len(call.incoming) < FRAME_BYTES and call.stopped is not None:
            return AgentTick(
                ended="agent" if call.stopped is StopReason.ENDED else "line"
            )
        frame = bytes(call.incoming[:FRAME_BYTES]).ljust(FRAME_BYTES, b"\xff")
        del call.incoming[:FRAME_BYTES]
        lost, call.lost = call.lost, 0
        return AgentTick(
            frame, events=(("missing_event", f"{lost} frames"),) if lost else ()
        )

    async def _wait_for_frame(self) -> None:
        """At lab pace the carrier sets the beat."""
        call = self._call
        while len(call.incoming) < FRAME_BYTES and call.stopped is None:
            call.arrived.clear()
            try:
                async with asyncio.timeout(LAB_FRAME_TIMEOUT_S):
                    await call.arrived.wait()
            except TimeoutError:
                raise LineFailed("the carrier's socket fell silent") from None

    async def hang_up(self) -> None:
        self._call.stopped = self._call.stopped or StopReason.ENDED
        self._call.outgoing.put_nowait("")
        self._calls.forget(self._call)
