"""A streamed call that stands on fakes and on virtual time."""

import asyncio
import json
from base64 import b64decode

from aftercall.app import App
from aftercall.bridge.agent_voice import MediaPump
from aftercall.bridge.voice_call import VoiceCall, VoiceCallParts
from aftercall.briefing.render import make_instructions
from aftercall.engine.voice import AgentAudio, AgentDone, AgentText, VoiceEngine
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Call, LiveCall
from aftercall.phone.carrier_frames import CarrierFrames, TelnyxFrames, TwilioFrames
from aftercall.phone.signature import TOKEN_PARAMETER
from aftercall.phone.telnyx import TelnyxWire
from aftercall.phone.twilio import TwilioWire
from aftercall.settings.sections import BridgeSettings
from fakes import (
    FakeMediaSocket,
    FakeVoiceEngine,
    VirtualClock,
    make_live_call,
)

SECOND = b"\x55" * 8_000


class Rig:
    """A call that stands on fakes, and a carrier that plays what it is sent in virtual time."""

    def __init__(
        self,
        app: App,
        clock: VirtualClock,
        engine: VoiceEngine,
        carrier: str = "twilio",
        whole: bool = False,
        **bridge: float,
    ) -> None:
        """`whole` gives the call the app's own memory and attention, in place of fakes."""
        self.app, self.clock, self._engine = app, clock, engine
        self.line = FakeMediaSocket()
        self.side: CarrierFrames = (
            TwilioFrames("CA" + "0" * 32)
            if carrier == "twilio"
            else TelnyxFrames("v3:abc")
        )
        self.live = make_live_call(
            source=carrier, sid=self.side.call_sid, started_at=clock.now()
        )
        self.found: list[str] = []
        self.hung_up: list[str] = []
        self._is_whole = whole
        self._returned = 0
        self._bridge = BridgeSettings.model_validate(bridge)

    @property
    def engine(self) -> FakeVoiceEngine:
        """The fake, for tests that play its part."""
        assert isinstance(self._engine, FakeVoiceEngine)
        return self._engine

    async def answer(self) -> None:
        given = await self.app.phone.pending_calls.register(self.live)
        guest = await self.app.phone.pending_calls.claim(
            self.live.source, self.live.sid, given, self.side.stream_sid
        )
        assert guest is not None
        await guest.briefing_task
        wire = TwilioWire() if self.live.source == "twilio" else TelnyxWire()
        wire.receive(self.side.connected())
        wire.receive(self.side.start({TOKEN_PARAMETER: given}))
        self.parts = self._parts()
        self.guest, self.call = (
            guest,
            VoiceCall(self.parts, guest, MediaPump(self.line, wire, self.clock)),
        )
        self.holding = asyncio.create_task(self.call.run())
        await self.pass_time(0)

    def _parts(self) -> VoiceCallParts:
        async def recall(call: LiveCall, query: str) -> list[str]:
            return self.found

        async def hang_up(call: LiveCall) -> None:
            self.hung_up.append(call.id)

        journal, resume = self.app.journal, self.app.resume
        if self._is_whole:

            def tell(briefing: Briefing) -> str:
                return make_instructions(briefing, self.app.settings.zone)

            attend = self.app.phone.reception.start_identity
            return VoiceCallParts(
                journal,
                resume,
                self._engine,
                tell,
                recall,
                hang_up,
                self._bridge,
                self.clock,
                attend,
            )
        return VoiceCallParts(
            journal,
            resume,
            self._engine,
            lambda briefing: "Be brief.",
            recall,
            hang_up,
            self._bridge,
            self.clock,
        )

    async def pass_time(self, seconds: float) -> None:
        """Let time pass in steps of the watch; after each, threads get a moment of real time
        and the carrier returns marks.
        """
        until_s = self.clock.monotonic() + seconds
        while True:
            for _ in range(3):
                await asyncio.sleep(0.001)
            if self.clock.monotonic() >= until_s - 1e-6:
                return
            await self.clock.advance(0.25)

    def return_marks(self) -> None:
        """The carrier has played everything that it has not told of yet."""
        marks = [
            json.loads(frame)["mark"]["name"]
            for frame in self.line.sent
            if '"mark"' in str(frame)
        ]
        self.line.add_frames(
            *(self.side.mark(name) for name in marks[self._returned :])
        )
        self._returned = len(marks)

    def played(self) -> int:
        """Bytes of audio that the line was sent."""
        return sum(
            len(b64decode(json.loads(frame)["media"]["payload"]))
            for frame in self.line.sent
            if '"media"' in str(frame)
        )

    async def sealed(self) -> Call:
        async with asyncio.timeout(20):
            while not self.holding.done():
                await self.pass_time(0.25)
        await self.holding
        call, late = self.app.archive.read(
            str(self.app.store.get(self.live.id).archive_name)
        )
        self.late = late
        return call

    async def greet(self) -> None:
        self.engine.session.add_events(
            AgentText("s1", "Hello!"), AgentAudio("s1", SECOND), AgentDone("s1")
        )
        await self.pass_time(0)
        self.return_marks()
        await self.pass_time(0)
