"""A phone call through Twilio in gather mode, against a Twilio of our own that keeps to its
documented forms.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from hmac import digest
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import httpx2
import pytest
from pydantic import SecretStr

from aftercall.carrier.control import TwilioRest
from aftercall.errors import BudgetSpent, DialRefused
from aftercall.phone.signature import TwilioSignature
from aftercall.settings.providers import TwilioSettings
from aftercall.speech.sound import write_wav
from aftercall.tester.call import ScriptedCall
from aftercall.tester.caller import Caller
from aftercall.tester.drivers import phone
from aftercall.tester.drivers.dialer import SpendingLimit, TwilioDialer, check_allowed
from aftercall.tester.drivers.twilio_gather import GatherCalls
from aftercall.tester.line import DialedCall
from aftercall.tester.practice_agent import PracticeAgent, PracticeClinic
from aftercall.tester.record import CallRecord
from aftercall.tester.score import score
from aftercall.tester.voice import ToneVoice
from fakes import VirtualClock
from unit.tester.calls import scenario_of

TOKEN = "12345"
PUBLIC = "https://calls.example.org"
API = "https://api.example.org"
ACCOUNT = TwilioSettings(
    account_sid="AC1",
    auth_token=SecretStr(TOKEN),
    phone_number="+15550199",
    api_url=API,
)
BOOK = scenario_of("""
caller_context:
  opening: I'd like to book an appointment for Tuesday at ten, please.
  verification: {name: Lucas Reyes, dob: "February 17th, 1990"}
success: [{said: booked}]
""")


@dataclass
class FakeTwilio:
    """Dials, reads TwiML, listens and speaks: the agent's side is the practice clinic."""

    clock: VirtualClock
    fate: str = "completed"
    twice: bool = False
    recording_first: bool = False
    app: Any = None
    api: str = API
    dialled: list[dict[str, list[str]]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    def rest(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            assert request.headers["authorization"].startswith("Basic ")
            return httpx2.Response(200, content=self.recording())
        form = parse_qs(request.content.decode())
        self.dialled.append(form)
        self.task = asyncio.ensure_future(self.play(form))
        return httpx2.Response(201, json={"sid": "CA" + "1" * 32, "status": "queued"})

    def recording(self) -> bytes:
        voice = ToneVoice()
        return write_wav(
            voice.speak("one two").sound,
            b"\xff" * 8000 + voice.speak("three four").sound,
        )

    async def post(self, url: str, **fields: str) -> str:
        form = {"CallSid": "CA" + "1" * 32, "AccountSid": "AC1", **fields}
        signed = url + "".join(name + form[name] for name in sorted(form))
        signature = b64encode(digest(TOKEN.encode(), signed.encode(), sha1)).decode()
        transport = httpx2.ASGITransport(self.app) if self.app else None
        async with httpx2.AsyncClient(
            transport=transport, base_url=PUBLIC, trust_env=False
        ) as http:
            answer = await http.post(
                url, data=form, headers={"X-Twilio-Signature": signature}
            )
            if self.twice:
                again = await http.post(
                    url, data=form, headers={"X-Twilio-Signature": signature}
                )
                assert again.text == answer.text
        self.statuses.append(answer.status_code)
        return answer.text

    async def play(self, form: dict[str, list[str]]) -> None:
        status, recording = (
            form["StatusCallback"][0],
            form["RecordingStatusCallback"][0],
        )
        if self.fate != "completed":
            await self.post(status, CallStatus=self.fate)
            return
        agent = PracticeAgent(PracticeClinic())
        heard = (await agent.start(DialedCall("+15550100", "test")))[0].text
        twiml, over = await self.post(form["Url"][0], CallStatus="in-progress"), False
        while not over:
            gather, say, over = read(twiml)
            if say:
                self.said.append(say)
                replies = await agent.respond(say)
                heard, over = replies[0].text, over or replies[0].ends_call
            if not over and gather:
                self.clock.move(5)
                twiml = await self.post(
                    gather,
                    CallStatus="in-progress",
                    SpeechResult=heard,
                    Confidence="0.91",
                )
        callbacks = [(status, {"CallStatus": "completed", "CallDuration": "40"})]
        callbacks.append(
            (
                recording,
                {
                    "RecordingStatus": "completed",
                    "RecordingUrl": f"{self.api}/2010-04-01/Accounts/AC1/Recordings/RE1",
                },
            )
        )
        for url, fields in reversed(callbacks) if self.recording_first else callbacks:
            await self.post(url, **fields)


def read(twiml: str) -> tuple[str, str, bool]:
    root = ElementTree.fromstring(twiml)
    gather, say = root.find("Gather"), root.find("Say")
    return (
        gather.get("action", "") if gather is not None else "",
        (say.text or "") if say is not None else "",
        root.find("Hangup") is not None,
    )


@asynccontextmanager
async def dialling(
    twilio: FakeTwilio, home: Path, limit: float = 5.0
) -> AsyncIterator[GatherCalls]:
    purse = SpendingLimit(home / "spent.json", limit, 0.05, twilio.clock)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(twilio.rest)) as http:
        dialler = TwilioRest(ACCOUNT, twilio.clock, httpx2.MockTransport(twilio.rest))
        rest = TwilioDialer(http, dialler, ACCOUNT)
        desk = GatherCalls(rest, PUBLIC, "+15550101", purse, twilio.clock)
        twilio.app = phone.DialerWebhooks(
            desk, TwilioSignature(SecretStr(TOKEN), PUBLIC)
        )
        yield desk
        if twilio.task:
            await twilio.task


async def ring(
    home: Path, twilio: FakeTwilio | None = None
) -> tuple[CallRecord, FakeTwilio]:
    twilio = twilio or FakeTwilio(VirtualClock())
    async with dialling(twilio, home) as desk:
        record = await desk.call(ScriptedCall(Caller(BOOK, BOOK.calls[0], 1), BOOK))
    return record, twilio


@pytest.mark.parametrize("recording_first", [False, True])
async def test_a_call_is_held_scored_and_recorded(
    tmp_path: Path, recording_first: bool
) -> None:
    record, twilio = await ring(
        tmp_path, FakeTwilio(VirtualClock(), recording_first=recording_first)
    )
    assert record.outcome == "answered"
    assert twilio.said[:3] == [
        "I'd like to book an appointment for Tuesday at ten, please.",
        "Lucas Reyes",
        "February 17th, 1990",
    ]
    assert {span.confidence for span in record.agent_spans} == {0.91}
    assert record.sid == "CA" + "1" * 32
    assert len(record.agent_sound) > 8000
    assert [checked.state for checked in score(BOOK, 1, [record]).criteria] == ["met"]
    (form,) = twilio.dialled
    assert (form["To"], form["From"], form["Record"], form["RecordingChannels"]) == (
        ["+15550101"],
        ["+15550199"],
        ["true"],
        ["dual"],
    )


@pytest.mark.parametrize(
    ("fate", "outcome"),
    [
        ("busy", "busy"),
        ("no-answer", "no-answer"),
        ("failed", "failed"),
        ("canceled", "no-answer"),
    ],
)
async def test_a_call_that_does_not_come_about_has_its_own_result(
    tmp_path: Path, fate: str, outcome: str
) -> None:
    record, _ = await ring(tmp_path, FakeTwilio(VirtualClock(), fate=fate))
    assert (record.outcome, record.spans) == (outcome, ())


async def test_a_webhook_that_comes_twice_changes_nothing(tmp_path: Path) -> None:
    record, twilio = await ring(tmp_path, FakeTwilio(VirtualClock(), twice=True))
    assert len(twilio.said) == len(set(twilio.said))
    assert [event.kind for event in record.events].count("duplicate_event") >= 3


async def test_a_webhook_without_twilios_signature_is_refused(tmp_path: Path) -> None:
    twilio = FakeTwilio(VirtualClock())
    async with (
        dialling(twilio, tmp_path),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(twilio.app), base_url=PUBLIC
        ) as http,
    ):
        refused = await http.post(
            "/tester/voice?call=1",
            data={"CallSid": "CA1"},
            headers={"X-Twilio-Signature": "x"},
        )
        missing = await http.post("/tester/voice?call=1", data={"CallSid": "CA1"})
        nowhere = await http.post("/tester/else")
    assert (refused.status_code, missing.status_code, nowhere.status_code) == (
        403,
        403,
        404,
    )


async def test_a_recording_elsewhere_never_gets_the_accounts_token(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(200)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        rest = TwilioDialer(http, TwilioRest(ACCOUNT, VirtualClock()), ACCOUNT)
        with pytest.raises(Exception, match="not Twilio's"):
            await rest.download("https://evil.example.org/Recordings/RE1")
    assert asked == []


def test_only_numbers_on_the_list_are_dialled() -> None:
    assert check_allowed("+1 555 0101", ("+15550101",)) == "+15550101"
    for number in ("+15550102", "anonymous", "911"):
        with pytest.raises(DialRefused):
            check_allowed(number, ("+15550101",))


async def test_the_days_money_is_counted_over_commands(tmp_path: Path) -> None:
    clock = VirtualClock()
    path = tmp_path / "tests" / "spent.json"
    purse = SpendingLimit(path, 1.0, 0.1, clock)
    purse.refund_unused(purse.reserve(300), 61)
    assert purse.spent == pytest.approx(0.2)
    with pytest.raises(BudgetSpent, match=r"raise tester\.spend_limit"):
        SpendingLimit(path, 1.0, 0.1, clock).reserve(600)
    clock.move(86_400)
    assert SpendingLimit(path, 1.0, 0.1, clock).reserve(600) == pytest.approx(1.0)


async def test_no_call_is_made_that_could_cost_more_than_is_left(
    tmp_path: Path,
) -> None:
    twilio = FakeTwilio(VirtualClock())
    async with dialling(twilio, tmp_path, limit=0.1) as desk:
        with pytest.raises(BudgetSpent):
            await desk.call(ScriptedCall(Caller(BOOK, BOOK.calls[0], 1), BOOK))
    assert twilio.dialled == []
