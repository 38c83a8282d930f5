"""The emulated Twilio's exchange: a call that one side dials is a call that rings at the other,
and both hear each other.

Each side is a leg with webhooks of its own: what one leg's `<Say>` says, the other leg's
`<Gather>` hears. Text stands for speech, and takes the time that speaking it would; in virtual
time a call takes as long as its webhooks do.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2

from aftercall.clock import Clock, SystemClock
from aftercall.lab.leg import APOLOGY, Leg, LegCarrier, RecogniseText
from aftercall.lab.line import HungUp, LineEnd, make_line
from aftercall.lab.numbers import LabNumber
from aftercall.lab.recordings import LabRecordings
from aftercall.lab.timeline import Alarm, RealTimeline, Timeline, VirtualTimeline
from aftercall.lab.twiml import Reject, TwimlFault, TwimlSay, Verb
from aftercall.lab.webhook_sender import (
    NO_DELIVERY_FAULTS,
    DeliveryFaults,
    TwilioWebhookClient,
    WebhookSender,
)

RING_DURATION_S = 2.0
VOICEMAIL_GREETING = "You have reached the voice mail box. Please leave a message after the tone."
VOICEMAIL_TIMEOUT_S = 30.0
UNASSIGNED_NUMBER = LabNumber(outcome="failed")


@dataclass(frozen=True)
class LabDial:
    """A call somebody wants to make; `url` is where its TwiML is, or the TwiML itself."""

    to: str
    caller: str
    url: str
    status_url: str = ""
    events: frozenset[str] = frozenset({"completed"})
    timeout_s: float = 60.0
    limit_s: float = 14_400.0
    is_recorded: bool = False
    recording_url: str = ""
    detects_machines: bool = False


def recognise_exactly(text: str) -> tuple[str, float | None]:
    return text, 0.92


class PhoneNetwork:
    def __init__(
        self,
        auth_token: str,
        account_sid: str = "AC" + "0" * 32,
        *,
        numbers: dict[str, LabNumber] | None = None,
        delivery_faults: DeliveryFaults = NO_DELIVERY_FAULTS,
        recognise: RecogniseText = recognise_exactly,
        in_real_time: bool = False,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        address: str = "http://lab.invalid",
    ) -> None:
        """`address` is where recordings can be fetched: the lab's own.

        With a `transport` no socket is opened.
        """
        clock = clock or SystemClock()
        self.auth_token = auth_token
        self.numbers = numbers if numbers is not None else {}
        self.legs: dict[str, Leg] = {}
        self.messages: list[dict[str, str]] = []
        self.carrier = LegCarrier(
            account_sid,
            address,
            TwilioWebhookClient(auth_token, transport),
            WebhookSender(clock, delivery_faults),
            LabRecordings(clock),
            recognise,
            clock,
        )
        self._in_real_time = in_real_time

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.carrier.webhook_sender.close()
        await self.carrier.webhook_client.close()

    def start_manual_call(
        self, caller: str, callee: str
    ) -> "tuple[Leg, LineEnd, asyncio.Task[None]]":
        """A call whose caller is played by hand: the agent's leg, the caller's end of the line,
        and the agent's side at work.

        Whoever holds the end counts as working: virtual time passes only while they speak or
        listen.
        """
        number = self.numbers.get(callee, UNASSIGNED_NUMBER)
        near, far = make_line(self._make_timeline())
        leg = Leg(
            self.carrier,
            far,
            caller,
            callee,
            "inbound",
            number.voice_url,
            number.status_url,
            state="ringing",
            is_manual=True,
        )
        self.legs[leg.sid] = leg
        near.timeline.join()
        near.timeline.join()
        return leg, near, self.carrier.webhook_sender.spawn(self._run_manual_call(leg))

    def dial(self, request: LabDial) -> Leg:
        """Queued: the call goes its way, and the leg tells how it stands."""
        timeline = self._make_timeline()
        near, far = make_line(timeline)
        leg = Leg(
            self.carrier,
            near,
            request.caller,
            request.to,
            "outbound-api",
            request.url,
            request.status_url,
            request.events,
        )
        self.legs[leg.sid] = leg
        if request.is_recorded:
            leg.start_recording(request.recording_url)
        timeline.join()
        self.carrier.webhook_sender.spawn(self._place(leg, far, request))
        return leg

    async def drain(self) -> None:
        """Wait until every call is over and every callback delivered."""
        await self.carrier.webhook_sender.drain()

    async def _place(self, leg: Leg, far: LineEnd, wanted: LabDial) -> None:
        number = self.numbers.get(wanted.to, UNASSIGNED_NUMBER)
        try:
            await leg.set_state("initiated")
            if number.outcome == "failed":
                await leg.finish("failed")
                return
            await leg.set_state("ringing")
            await leg.end.pause(
                wanted.timeout_s if number.outcome == "no-answer" else RING_DURATION_S
            )
            if number.outcome in ("busy", "no-answer"):
                await leg.finish(number.outcome)
            else:
                await self._answer_call(leg, far, number, wanted)
        except HungUp:
            await leg.finish("canceled")
        finally:
            leg.end.timeline.leave()

    async def _answer_call(
        self, leg: Leg, far: LineEnd, number: LabNumber, wanted: LabDial
    ) -> None:
        if number.outcome == "voicemail":
            leg.answered_by = "machine_start" if wanted.detects_machines else None
            await self._converse(leg, self._run_voicemail(far), wanted)
            return
        leg.answered_by = "human" if wanted.detects_machines else None
        other = Leg(
            self.carrier,
            far,
            wanted.caller,
            wanted.to,
            "inbound",
            number.voice_url,
            number.status_url,
            state="ringing",
        )
        self.legs[other.sid] = other
        leg.peer, other.peer = other, leg
        verbs = await _first_verbs(other)
        if refusal := _refusal(verbs):
            await asyncio.gather(other.finish(refusal), leg.finish(refusal))
            return
        await other.set_state("answered")
        await self._converse(leg, self._play(other, verbs), wanted)

    async def _run_manual_call(self, leg: Leg) -> None:
        """The agent's side of a call whose other side is played by hand."""
        verbs = await _first_verbs(leg)
        if refusal := _refusal(verbs):
            await leg.finish(refusal)
            leg.end.hang_up()
            leg.end.timeline.leave()
            return
        await leg.set_state("answered")
        await self._play(leg, verbs)

    def _make_timeline(self) -> Timeline:
        return RealTimeline(self.carrier.clock) if self._in_real_time else VirtualTimeline()

    async def _converse(
        self, leg: Leg, far_side: Coroutine[Any, Any, None], wanted: LabDial
    ) -> None:
        """Both sides at once, each in its own time."""
        leg.end.timeline.join()
        other = self.carrier.webhook_sender.spawn(far_side)
        await leg.set_state("answered")
        limit = Alarm()
        leg.end.timeline.join()
        self.carrier.webhook_sender.spawn(self._enforce_time_limit(leg, limit, wanted.limit_s))
        await leg.play()
        leg.end.timeline.wake(limit)
        await asyncio.wait({other})

    async def _enforce_time_limit(self, leg: Leg, limit: Alarm, seconds: float) -> None:
        """No call is longer than whoever made it allows."""
        if not await leg.end.timeline.wait(limit, seconds):
            leg.end.hang_up()
        leg.end.timeline.leave()

    async def _play(self, leg: Leg, verbs: list[Verb]) -> None:
        try:
            await leg.play(verbs)
        finally:
            leg.end.timeline.leave()

    async def _run_voicemail(self, end: LineEnd) -> None:
        try:
            await end.say(VOICEMAIL_GREETING)
            end.start_listening()
            while await end.listen(VOICEMAIL_TIMEOUT_S):
                end.start_listening()
        except HungUp:
            pass
        finally:
            end.hang_up()
            end.timeline.leave()


async def _first_verbs(leg: Leg) -> list[Verb]:
    """What the agent wants done; what it answers that cannot be used is an apology."""
    try:
        return await leg.fetch_first_verbs()
    except TwimlFault as fault:
        leg.fault = fault
        return [TwimlSay(APOLOGY)]


def _refusal(verbs: list[Verb]) -> str | None:
    if not verbs or not isinstance(verbs[0], Reject):
        return None
    return "busy" if verbs[0].reason == "busy" else "no-answer"
