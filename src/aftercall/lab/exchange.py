"""The emulated phone network: connects the two legs of a call.

Each leg has webhooks: what one leg's `<Say>` says, the other leg's `<Gather>` hears. Text
stands for speech and takes the time that speaking takes; in virtual time a call takes as long
as its webhooks.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Literal, get_args

import httpx2

from aftercall.clock import Clock
from aftercall.errors import RefusedInput
from aftercall.lab.carrier import NO_DELIVERY_FAULTS, DeliveryFaults
from aftercall.lab.leg import Leg, RecogniseText, recognise_exactly
from aftercall.lab.line import (
    Alarm,
    HungUp,
    LineEnd,
    RealTimeline,
    VirtualTimeline,
    make_line,
)
from aftercall.lab.twilio import APOLOGY, NO_ACCOUNT, TwilioCarrier
from aftercall.lab.twiml import Reject, TwimlFault, TwimlSay, Verb

RING_DURATION_S = 2.0
VOICEMAIL_GREETING = (
    "You have reached the voice mail box. Please leave a message after the tone."
)
VOICEMAIL_TIMEOUT_S = 30.0

Outcome = Literal["busy", "no-answer", "failed", "voicemail"]


@dataclass(frozen=True)
class LabNumber:
    """A number that an agent answers (`voice_url`), or one with a fixed outcome."""

    voice_url: str = ""
    status_url: str = ""
    outcome: Outcome | None = None


UNASSIGNED_NUMBER = LabNumber(outcome="failed")


def make_agent_number(agent: str) -> LabNumber:
    """A number that the Aftercall at this address answers."""
    return LabNumber(f"{agent}/twilio/voice", f"{agent}/twilio/status")


def parse_number(spec: str) -> tuple[str, LabNumber]:
    """Parses `+15550101=http://127.0.0.1:8080/twilio/voice` or `+15550109=busy`."""
    number, mark, target = spec.partition("=")
    if not mark or not number.startswith("+"):
        raise RefusedInput(
            "--number",
            "is NUMBER=ADDRESS or NUMBER=OUTCOME, and a number starts with +",
        )
    for outcome in get_args(Outcome):
        if target == outcome:
            return number, LabNumber(outcome=outcome)
    if not target.startswith(("http://", "https://")):
        outcomes = ", ".join(get_args(Outcome))
        raise RefusedInput(
            "--number", f"takes an address (http://…) or an outcome ({outcomes})"
        )
    status = (
        target.removesuffix("/voice") + "/status" if target.endswith("/voice") else ""
    )
    return number, LabNumber(voice_url=target, status_url=status)


@dataclass(frozen=True)
class LabDial:
    """A call to place. `url` is the address of its TwiML, or the TwiML itself."""

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


class PhoneNetwork(TwilioCarrier):
    """Connects the two legs of every emulated call."""

    def __init__(
        self,
        auth_token: str,
        account_sid: str = NO_ACCOUNT,
        *,
        numbers: dict[str, LabNumber] | None = None,
        delivery_faults: DeliveryFaults = NO_DELIVERY_FAULTS,
        recognise: RecogniseText = recognise_exactly,
        in_real_time: bool = False,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        address: str = "http://lab.invalid",
    ) -> None:
        super().__init__(
            auth_token,
            account_sid,
            address=address,
            delivery_faults=delivery_faults,
            clock=clock,
            transport=transport,
        )
        self.numbers = numbers if numbers is not None else {}
        self.legs: dict[str, Leg] = {}
        self.in_real_time = in_real_time
        self._recognise = recognise

    def start_manual_call(
        self, caller: str, callee: str, number: LabNumber | None = None
    ) -> "tuple[Leg, LineEnd, asyncio.Task[None]]":
        """A call whose caller is played by a program: the agent's leg, the caller's end of the
        line, and the task that plays the agent's leg. `number` answers this call alone, in the
        place of the one that is assigned.

        The holder of the end counts as working: virtual time passes only while it speaks or
        listens.
        """
        near, far = self._make_line()
        leg = self._make_inbound_leg(far, caller, callee, number)
        leg.is_manual = True
        near.timeline.join()
        near.timeline.join()
        return leg, near, self.webhook_sender.spawn(self._run_manual_call(leg))

    def dial(self, request: LabDial) -> Leg:
        """Queues the call; its leg shows the progress."""
        near, far = self._make_line()
        leg = Leg(
            self,
            near,
            request.caller,
            request.to,
            "outbound-api",
            request.url,
            request.status_url,
            request.events,
            self._recognise,
        )
        self.legs[leg.sid] = leg
        if request.is_recorded:
            leg.start_recording(request.recording_url)
        near.timeline.join()
        self.webhook_sender.spawn(self._place(leg, far, request))
        return leg

    async def drain(self) -> None:
        """Waits until every call is over and every callback delivered."""
        await self.webhook_sender.drain()

    def _make_line(self) -> tuple[LineEnd, LineEnd]:
        return make_line(
            RealTimeline(self.clock) if self.in_real_time else VirtualTimeline()
        )

    def _make_inbound_leg(
        self, end: LineEnd, caller: str, callee: str, number: LabNumber | None = None
    ) -> Leg:
        number = number or self.numbers.get(callee, UNASSIGNED_NUMBER)
        leg = Leg(
            self, end, caller, callee, "inbound", number.voice_url, number.status_url
        )
        leg.recognise = self._recognise
        leg.state = "ringing"
        self.legs[leg.sid] = leg
        return leg

    async def _place(self, leg: Leg, far: LineEnd, request: LabDial) -> None:
        outcome = self.numbers.get(request.to, UNASSIGNED_NUMBER).outcome
        try:
            await leg.set_state("initiated")
            if outcome == "failed":
                await leg.finish("failed")
                return
            await leg.set_state("ringing")
            await leg.end.pause(
                request.timeout_s if outcome == "no-answer" else RING_DURATION_S
            )
            if outcome == "busy" or outcome == "no-answer":
                await leg.finish(outcome)
                return
            if request.detects_machines:
                leg.answered_by = "machine_start" if outcome == "voicemail" else "human"
            if outcome == "voicemail":
                await self._converse(leg, self._run_voicemail(far), request)
            else:
                await self._connect(leg, far, request)
        except HungUp:
            await leg.finish("canceled")
        finally:
            leg.end.timeline.leave()

    async def _connect(self, leg: Leg, far: LineEnd, request: LabDial) -> None:
        """Answers the far side, unless its webhook refuses the call."""
        other = self._make_inbound_leg(far, request.caller, request.to)
        leg.peer = other
        other.peer = leg
        verbs = await _first_verbs(other)
        if refusal := _refusal(verbs):
            await asyncio.gather(other.finish(refusal), leg.finish(refusal))
            return
        await other.set_state("answered")
        await self._converse(leg, self._play(other, verbs), request)

    async def _run_manual_call(self, leg: Leg) -> None:
        """The agent's side of a manual call."""
        verbs = await _first_verbs(leg)
        if refusal := _refusal(verbs):
            await leg.finish(refusal)
            leg.end.hang_up()
            leg.end.timeline.leave()
            return
        await leg.set_state("answered")
        await self._play(leg, verbs)

    async def _converse(
        self, leg: Leg, far_side: Coroutine[Any, Any, None], request: LabDial
    ) -> None:
        """Runs both sides until they are done or the time limit is reached."""
        leg.end.timeline.join()
        other = self.webhook_sender.spawn(far_side)
        await leg.set_state("answered")
        limit = Alarm()
        leg.end.timeline.join()
        self.webhook_sender.spawn(self._enforce_time_limit(leg, limit, request.limit_s))
        await leg.play()
        leg.end.timeline.wake(limit)
        await asyncio.wait({other})

    async def _enforce_time_limit(self, leg: Leg, limit: Alarm, seconds: float) -> None:
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
    """What the agent wants done; an apology if its answer is refused."""
    try:
        return await leg.fetch_first_verbs()
    except TwimlFault as fault:
        leg.fault = fault
        return [TwimlSay(APOLOGY)]


def _refusal(verbs: list[Verb]) -> str | None:
    if not verbs or not isinstance(verbs[0], Reject):
        return None
    return "busy" if verbs[0].reason == "busy" else "no-answer"
