"""A phone number as a target: real pace, one call at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx2

from aftercall.errors import LineFailed
from aftercall.settings import Settings
from aftercall.speech.sound import write_wav
from aftercall.tester.budget import SpendingLimit
from aftercall.tester.call import CallRig, run_call
from aftercall.tester.call_log import CallLog
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.recogniser import AudioRecogniser, RecognisingConnection
from aftercall.tester.drivers.twilio_gather import GatherCalls
from aftercall.tester.drivers.twilio_media import MediaCalls
from aftercall.tester.line import TickPace
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.target import CallSetup, TargetSession
from aftercall.tester.whisper import transcribe

_OPENAI = "https://api.openai.com/v1"


class PhoneNumberTarget:
    """What every way of calling a number has in common: it takes the time it takes, and the
    number is not told in full.
    """

    number: str

    @property
    def name(self) -> str:
        return f"phone {self.number[:-4]}…"

    @property
    def is_live(self) -> bool:
        return True

    @property
    def keeps_time(self) -> bool:
        return True


@dataclass(frozen=True)
class MediaTarget(PhoneNumberTarget):
    """With sound both ways: the caller speaks with our voice, and may interrupt."""

    number: str
    setup: CallSetup
    calls: MediaCalls
    spending_limit: SpendingLimit
    recogniser: AudioRecogniser

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        yield self

    async def call(
        self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None
    ) -> CallRecord:
        limit_s = scenario.limits.max_duration_s
        pace = TickPace(self.setup.clock, is_live=True)
        end = RecognisingConnection(
            self.calls.make_connection(pace, limit_s), self.recogniser, pace
        )
        reserved = self.spending_limit.reserve(limit_s)
        bench = CallRig(self.setup.voice, pace, self.setup.clips)
        record = await run_call(bench, end, caller, scenario, number=number, run=run, log=log)
        self.spending_limit.refund_unused(reserved, record.duration_s)
        return record


@dataclass
class PhoneTarget(PhoneNumberTarget):
    """Through the carrier: it speaks our text and tells what it heard."""

    number: str
    settings: Settings
    http: httpx2.AsyncClient
    calls: GatherCalls | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        yield self

    async def call(
        self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None
    ) -> CallRecord:
        if self.calls is None:
            raise LineFailed("there is no line to this number")
        record = await self.calls.call(caller, scenario, number, run, log)
        key = self.settings.openai.api_key
        if not self.settings.tester.whisper or key is None or not record.agent_sound:
            return record
        try:
            wav = write_wav(record.agent_sound)
            return replace(
                record,
                whisper=await transcribe(
                    self.http, self.settings.openai.base_url or _OPENAI, key, wav
                ),
            )
        except LineFailed:
            return record
