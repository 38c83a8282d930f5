"""A call over Twilio's media streams: sound both ways, so the caller can interrupt.

Either a real phone by Twilio in `media` mode, or an agent's own socket, called as Twilio would:
in real time and without a bill.

Times are those of our end of the line and include the way to the agent and back. Each frame of
the agent goes where its timestamp says, not where it arrived: a stall moves no later turn.
"""

import asyncio
import hmac
import json
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha1

import httpx2
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from aftercall.clock import Clock
from aftercall.errors import AgentBroke, AgentRefused, LineFailed, StreamNotOpen
from aftercall.ids import new_id
from aftercall.phone.carrier_frames import TwilioFrames
from aftercall.phone.twilio import TwilioWire, connect_stream
from aftercall.phone.wire import (
    AudioIn,
    AudioOut,
    Mark,
    MarkPlayed,
    StopReason,
    StreamStarted,
    StreamStopped,
    WireEvent,
)
from aftercall.speech.sound import (
    FRAME_BYTES,
    FRAME_S,
    SAMPLE_RATE_HZ,
    SILENCE,
)
from aftercall.tester.drivers.dialer import TwilioDialer
from aftercall.tester.drivers.remote import (
    OPEN_TIMEOUT_S,
    blame_close,
    is_orderly,
    run_in_loop,
)
from aftercall.tester.line import (
    AgentTick,
    CallerTick,
    DialedCall,
    Kind,
    Outcome,
    TickPace,
)

SAME_TIME_S = 0.002
STALL_S = 0.2  # frames come every 20 ms; this long without one is a stall
MAX_STALL_S = 3.0  # then the line counts as silent
LAB_FRAME_TIMEOUT_S = 1.0
CONNECT_TIMEOUT_S = 10.0
NOT_EXPECTED = '<?xml version="1.0" encoding="UTF-8"?><Response><Reject /></Response>'
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
    incoming: "deque[tuple[float, AudioIn]]" = field(default_factory=deque)
    """Frames of the agent, each with the time of its arrival."""
    played: "deque[tuple[float, str]]" = field(default_factory=deque)
    """Marks that came back, each with its time."""
    outgoing: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: "asyncio.Future[Outcome]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    stopped: StopReason | None = None
    lost: int = 0
    last_chunk: int = 0

    def apply_event(self, event: WireEvent, now_s: float) -> None:
        if isinstance(event, StreamStarted):
            self.set_outcome("answered")
        elif isinstance(event, AudioIn):
            self.lost += (
                max(0, event.sequence - self.last_chunk - 1) if self.last_chunk else 0
            )
            self.last_chunk = event.sequence
            self.incoming.append((now_s, event))
        elif isinstance(event, MarkPlayed):
            self.played.append((now_s, event.name))
        elif isinstance(event, StreamStopped):
            self.stopped = event.reason
        self.arrived.set()

    def set_outcome(self, outcome: Outcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


@dataclass(frozen=True)
class InboundAgent:
    """An agent that calls our number: on its own, or when its address is asked to."""

    our_number: str
    number: str | None = None
    """Calls from other numbers are not the agent's."""
    address: str | None = None
    http: httpx2.AsyncClient | None = None

    async def ask_to_call(self, dial: DialedCall) -> None:
        if self.http is None or self.address is None:
            return
        body = {"to": self.our_number, "scenario": dial.scenario, "call": dial.number}
        try:
            answer = await self.http.post(self.address, json=body)
        except httpx2.HTTPError as error:
            reason = f"no answer ({type(error).__name__})"
            raise LineFailed(f"{self.address}: {reason}") from None
        if answer.status_code >= 400:
            raise AgentRefused(f"{self.address}: answered {answer.status_code}")


class MediaCalls:
    """Dials or is dialled, and routes sockets and webhooks to their calls."""

    def __init__(
        self,
        rest: TwilioDialer,
        public_url: str,
        to: str,
        clock: Clock,
        inbound: InboundAgent | None = None,
    ) -> None:
        self._inbound = inbound
        self._expected: deque[MediaCall] = deque()
        self._rest = rest
        self._address = public_url.rstrip("/") + "/tester"
        self._to = to
        self._clock = clock
        self._calls: dict[str, MediaCall] = {}

    async def dial(self, call: MediaCall, dial: DialedCall, limit_s: float) -> Outcome:
        self._calls[call.id] = call
        if self._inbound is not None:
            self._expected.append(call)
            await self._inbound.ask_to_call(dial)
        else:
            await self._rest.dial(
                self._to, self._address, call.id, ring_s=dial.ring_s, limit_s=limit_s
            )
        alarm = asyncio.get_running_loop().create_task(
            self._clock.sleep(dial.ring_s + CONNECT_TIMEOUT_S)
        )
        alarm.add_done_callback(lambda _: call.set_outcome("no-answer"))
        outcome = await call.outcome
        alarm.cancel()
        if outcome != "answered":
            self.forget(call)
        return outcome

    @property
    def is_expecting(self) -> bool:
        return bool(self._expected)

    def apply_event(self, call: MediaCall, event: WireEvent) -> None:
        call.apply_event(event, self._clock.monotonic())

    def forget(self, call: MediaCall) -> None:
        self._calls.pop(call.id, None)
        with suppress(ValueError):
            self._expected.remove(call)

    def find(self, call_id: str) -> MediaCall | None:
        return self._calls.get(call_id)

    async def answer(
        self, page: str, call_id: str, form: Mapping[str, str]
    ) -> str | None:
        """TwiML that sends the call's sound to our socket; other webhooks report how it went."""
        if page == "incoming":
            return self._pick_up(form.get("From", ""))
        call = self._calls.get(call_id)
        if page == "voice":
            return self._connect(call_id)
        if (
            call is not None
            and page == "status"
            and form.get("CallStatus", "") in _OVER
        ):
            call.set_outcome(_OVER[form["CallStatus"]])
            call.stopped = call.stopped or StopReason.ENDED
            call.arrived.set()
        return None

    def _pick_up(self, caller: str) -> str:
        """The call that waits longest gets it; nobody else's call is answered."""
        agent = self._inbound
        if agent is None or agent.number not in (None, caller) or not self._expected:
            return NOT_EXPECTED
        return self._connect(self._expected.popleft().id)

    def _connect(self, call_id: str) -> str:
        socket = self._address.replace("http", "ws", 1) + "/media"
        return connect_stream(socket, {"call": call_id})


class SoundTimeline:
    """The agent's sound by the time of the call; what was not taken yet can still change."""

    def __init__(self) -> None:
        self._sound = bytearray()
        self._taken = 0

    @property
    def end_s(self) -> float:
        return (self._taken + len(self._sound)) / SAMPLE_RATE_HZ

    def add(self, at_s: float, sound: bytes) -> None:
        """Puts sound at its time, over what is there; a few samples make no gap."""
        self.cut(self.end_s if abs(at_s - self.end_s) < SAME_TIME_S else at_s)
        self._sound += sound

    def cut(self, at_s: float) -> None:
        """Ends at this time: later sound is dropped, a gap is silence."""
        size = max(0, round(at_s * SAMPLE_RATE_HZ) - self._taken)
        self._sound = self._sound[:size].ljust(size, SILENCE[:1])

    def take(self, until_s: float) -> tuple[float, bytes]:
        """What came since the last time and is over by then: when it began, and the sound."""
        start = self._taken
        size = max(0, round(until_s * SAMPLE_RATE_HZ) - start)
        sound = bytes(self._sound[:size])
        del self._sound[:size]
        self._taken = start + len(sound)
        return start / SAMPLE_RATE_HZ, sound


class MediaConnection:
    """A call with an agent over Twilio's media stream."""

    def __init__(self, calls: MediaCalls, pace: TickPace, limit_s: float) -> None:
        self._calls = calls
        self._pace = pace
        self._limit_s = limit_s
        self.call = MediaCall(new_id())
        self._timeline = SoundTimeline()
        self._difference_s = float("inf")
        self._heard_s = 0.0
        self._ends_s: dict[str, float] = {}

    @property
    def kind(self) -> Kind:
        return "phone"

    async def connect(self, dial: DialedCall) -> Outcome:
        return await self._calls.dial(self.call, dial, self._limit_s)

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
        call = self.call
        try:
            self._send(at_s, near)
        except StreamNotOpen:
            call.stopped = call.stopped or StopReason.LOST
        if not self._pace.is_live:
            return await self._next_frame()
        events = [*self._find_lost(), *self._measure_played()]
        gap_s = at_s - self._heard_s
        while call.incoming:
            self._place_frame(*call.incoming.popleft())
            if gap_s > STALL_S and self._heard_s:
                events.append(("line_stalled", f"{gap_s:.2f}"))
            gap_s, self._heard_s = 0.0, at_s
        late_at_s, late = self._timeline.take(at_s + FRAME_S)
        if not late and call.stopped is not None:
            is_over = call.stopped is StopReason.ENDED
            return AgentTick(ended="agent" if is_over else "line")
        return AgentTick(
            b"",
            has_words_to_come=STALL_S < gap_s < MAX_STALL_S,
            events=tuple(events),
            late=late,
            late_at_s=late_at_s,
        )

    def _place_frame(self, arrived_s: float, frame: AudioIn) -> None:
        """The fastest frame so far tells how the carrier's clock differs from ours."""
        said_s, arrived_s = (
            frame.timestamp_ms / 1000,
            self._pace.time_since_start(arrived_s),
        )
        self._difference_s = min(self._difference_s, arrived_s - said_s)
        if said_s + self._difference_s > -FRAME_S:  # else before the call began
            self._timeline.add(said_s + self._difference_s, frame.payload)

    def _send(self, at_s: float, near: CallerTick) -> None:
        """In real time silence is not sent: what a stall held up is played in the next pause."""
        call, is_live = self.call, self._pace.is_live
        if not is_live or near.frame != SILENCE:
            call.outgoing.put_nowait(call.wire.send(AudioOut(near.frame)))
        if is_live and (near.said or near.digits):
            name = f"said-{len(self._ends_s) + 1}"
            self._ends_s[name] = at_s + FRAME_S
            call.outgoing.put_nowait(call.wire.send(Mark(name)))

    def _find_lost(self) -> list[tuple[str, str]]:
        lost, self.call.lost = self.call.lost, 0
        return [("missing_event", f"{lost} frames")] if lost else []

    def _measure_played(self) -> list[tuple[str, str]]:
        """How long after it was sent the end of the caller's words was played: our own error."""
        found = []
        while self.call.played:
            now_s, name = self.call.played.popleft()
            if (end_s := self._ends_s.get(name)) is not None:
                behind_s = self._pace.time_since_start(now_s) - end_s
                found.append(("words_played", f"{max(0.0, behind_s):.3f}"))
        return found

    async def _next_frame(self) -> AgentTick:
        """At lab pace the carrier sets the beat: a frame of the agent for each of ours."""
        call = self.call
        while not call.incoming and call.stopped is None:
            call.arrived.clear()
            try:
                async with asyncio.timeout(LAB_FRAME_TIMEOUT_S):
                    await call.arrived.wait()
            except TimeoutError:
                raise LineFailed("the carrier's socket fell silent") from None
        if not call.incoming:
            is_over = call.stopped is StopReason.ENDED
            return AgentTick(ended="agent" if is_over else "line")
        _, frame = call.incoming.popleft()
        sound = frame.payload.ljust(FRAME_BYTES, SILENCE[:1])
        return AgentTick(sound, events=tuple(self._find_lost()))

    async def hang_up(self) -> None:
        self.call.stopped = self.call.stopped or StopReason.ENDED
        self.call.outgoing.put_nowait("")
        self._calls.forget(self.call)


MAX_MESSAGE_BYTES = 1_000_000
SCHEME = "twilio"


class StreamConnection:
    """One call; the socket is used in a thread of its own, so that arrivals have their time."""

    def __init__(
        self,
        url: str,
        pace: TickPace,
        loop: asyncio.AbstractEventLoop,
        auth_token: SecretStr | None = None,
    ) -> None:
        self._url = url
        self._pace = pace
        self._loop = loop
        self._auth_token = auth_token
        self._frames = TwilioFrames("CA" + secrets.token_hex(16))
        self._timeline = SoundTimeline()
        self._marks: deque[tuple[float, str]] = deque()
        self._arrived: deque[tuple[float, str | bytes]] = deque()
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._socket: ClientConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closed: ConnectionClosed | None = None

    @property
    def kind(self) -> Kind:
        return "audio"

    async def connect(self, dial: DialedCall) -> Outcome:
        await run_in_loop(self._loop, self._open(dial.caller))
        return "answered"

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
        self._send(self._frames.media(near.frame))
        for key in near.digits or "":
            self._send(self._frames.digit(key))
        while self._arrived:
            arrived_s, raw = self._arrived.popleft()
            self._apply(self._pace.time_since_start(arrived_s), raw)
        while self._marks and self._marks[0][0] <= at_s:
            self._send(self._frames.mark(self._marks.popleft()[1]))
        late_at_s, late = self._timeline.take(at_s + FRAME_S)
        if self._closed is not None and not late:
            if is_orderly(self._closed):
                return AgentTick(ended="agent")
            raise blame_close(self._url, self._closed)
        return AgentTick(b"", late=late, late_at_s=late_at_s)

    async def hang_up(self) -> None:
        self._send(self._frames.stop())
        await run_in_loop(self._loop, self._close())

    def _apply(self, at_s: float, raw: str | bytes) -> None:
        """Puts sound and marks on the timeline; `clear` drops what was not played."""
        try:
            message = json.loads(raw)
            match message["event"]:
                case "media":
                    sound = b64decode(message["media"]["payload"], validate=True)
                    self._timeline.add(max(at_s, self._timeline.end_s), sound)
                case "mark":
                    due_s = max(at_s, self._timeline.end_s)
                    self._marks.append((due_s, str(message["mark"]["name"])))
                case "clear":
                    self._timeline.cut(min(at_s, self._timeline.end_s))
                    self._marks = deque((at_s, name) for _, name in self._marks)
        except (ValueError, KeyError, TypeError, NotBase64):
            reason = "sent a message that is not Twilio's form"
            raise AgentBroke(f"{self._url}: {reason}") from None

    def _send(self, frame: str) -> None:
        self._loop.call_soon_threadsafe(self._outgoing.put_nowait, frame)

    async def _open(self, caller: str | None) -> None:
        headers = {}
        if self._auth_token is not None:
            key = self._auth_token.get_secret_value().encode()
            signed = hmac.digest(key, self._url.encode(), sha1)
            headers["X-Twilio-Signature"] = b64encode(signed).decode("ascii")
        try:
            self._socket = await connect(
                self._url,
                additional_headers=headers,
                open_timeout=OPEN_TIMEOUT_S,
                compression=None,
                max_size=MAX_MESSAGE_BYTES,
                proxy=None,
            )
        except (OSError, WebSocketException, TimeoutError) as error:
            reason = f"no connection ({type(error).__name__})"
            raise LineFailed(f"{self._url}: {reason}") from None
        parameters = {"from": caller} if caller else {}
        self._outgoing.put_nowait(self._frames.connected())
        self._outgoing.put_nowait(self._frames.start(parameters))
        self._tasks = [
            asyncio.create_task(self._read(self._socket)),
            asyncio.create_task(self._write(self._socket)),
        ]

    async def _read(self, socket: ClientConnection) -> None:
        try:
            while True:
                raw = await socket.recv()
                self._arrived.append((self._pace.clock.monotonic(), raw))
        except ConnectionClosed as closed:
            self._closed = closed

    async def _write(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while frame := await self._outgoing.get():
                await socket.send(frame)

    async def _close(self) -> None:
        """What is queued is sent first: the agent learns why the stream ends."""
        self._outgoing.put_nowait("")
        if self._socket is not None:
            await asyncio.wait(self._tasks[1:], timeout=1.0)
            await self._socket.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
