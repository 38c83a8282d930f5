"""A phone number as a target: real pace, one call at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx2

from aftercall.errors import LineFailed
from aftercall.settings import Settings
from aftercall.speech.sound import write_wav
from aftercall.tester.call import Bench, hold_call
from aftercall.tester.call_log import CallLog
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.recognising import Recogniser, RecognisingEnd
from aftercall.tester.drivers.twilio_gather import GatherDesk
from aftercall.tester.drivers.twilio_media import MediaDesk
from aftercall.tester.line import Pace
from aftercall.tester.purse import Purse
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.target import Session, Studio
from aftercall.tester.whisper import transcribe

_OPENAI = "https://api.openai.com/v1"


class OnThePhone:
    """What every way of calling a number has in common: it takes the time it takes, and the number is not told in full."""

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
class MediaTarget(OnThePhone):
    """With sound both ways: the caller speaks with our voice, and may interrupt."""

    number: str
    studio: Studio
    desk: MediaDesk
    purse: Purse
    recogniser: Recogniser

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Session]:
        yield self

    async def call(self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None) -> CallRecord:
        limit_s = scenario.limits.max_duration_s
        pace = Pace(self.studio.clock, is_live=True)
        end = RecognisingEnd(self.desk.make_end(pace, limit_s), self.recogniser, pace)
        reserved = self.purse.reserve(limit_s)
        bench = Bench(self.studio.voice, pace, self.studio.clips)
        record = await hold_call(bench, end, caller, scenario, number=number, run=run, log=log)
        self.purse.give_back(reserved, record.duration_s)
        return record


@dataclass
class PhoneTarget(OnThePhone):
    """Through the carrier: it speaks our text and tells what it heard."""

    number: str
    settings: Settings
    http: httpx2.AsyncClient
    desk: GatherDesk | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Session]:
        yield self

    async def call(self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None) -> CallRecord:
        if self.desk is None:
            raise LineFailed("there is no line to this number")
        record = await self.desk.call(caller, scenario, number, run, log)
        key = self.settings.openai.api_key
        if not self.settings.tester.whisper or key is None or not record.agent_sound:
            return record
        try:
            wav = write_wav(record.agent_sound)
            return replace(record, whisper=await transcribe(self.http, self.settings.openai.base_url or _OPENAI, key, wav))
        except LineFailed:
            return record
