"""A phone call through Twilio in media mode: sound both ways over its socket, words from a
recogniser.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha1
from hmac import digest
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import httpx2
import pytest
from pydantic import SecretStr

from aftercall.carrier.control import TwilioRest
from aftercall.clock import Clock, SystemClock
from aftercall.errors import AgentRefused, LineFailed
from aftercall.phone.signature import TwilioSignature
from aftercall.phone.wire import AudioIn
from aftercall.settings.providers import TwilioSettings
from aftercall.speech.sound import FRAME_BYTES, FRAME_S, SILENCE
from aftercall.tester.call_audio import AgentListener, AgentTranscriber, CallAudio
from aftercall.tester.drivers import phone
from aftercall.tester.drivers.dialer import TwilioDialer
from aftercall.tester.drivers.text_agent import AudioAgentConnection
from aftercall.tester.drivers.twilio_media import (
    InboundAgent,
    MediaCalls,
    MediaConnection,
)
from aftercall.tester.line import AgentTick, CallerTick, DialedCall, TickPace
from aftercall.tester.record import CallRecord
from aftercall.tester.score import score
from aftercall.tester.voice import ToneVoice
from fakes import VirtualClock
from unit.tester.calls import LineAgent, end_of, hold, kinds, make_pace, scenario_of

TOKEN = "12345"
PUBLIC = "https://calls.example.org"
WAY_S = 0.06
INTERRUPT = scenario_of("""
turns:
  - {say: Stop right there please., after: {event: agent_starts, delay_ms: 700}}
  - {hang_up: true}
limits: {max_duration_s: 60}
""")
GREETING = "This is a very long greeting that nobody ever wants to hear to its end."


class FakeRecogniser:
    def __init__(self, *texts: str | None) -> None:
        self.sounds: list[bytes] = []
        self._texts = list(texts)

    async def recognise(self, sound: bytes) -> str:
        self.sounds.append(sound)
        text = self._texts.pop(0) if self._texts else ""
        if text is None:
            raise LineFailed("nobody can tell")
        return text


class FakeTwilio:
    """Rings, asks for TwiML, opens the socket it names, and gives a frame of the agent's for
    every frame of ours.
    """

    def __init__(self, agent: LineAgent, fate: str = "") -> None:
        self.end = end_of(agent)
        self.fate = fate
        self.app: Any = None
        self.task: asyncio.Task[None] | None = None
        self.closed: list[int] = []

    def rest(self, request: httpx2.Request) -> httpx2.Response:
        form = {
            name: values[0]
            for name, values in parse_qs(request.content.decode()).items()
        }
        self.task = asyncio.ensure_future(
            self.status(form) if self.fate else self.stream(form)
        )
        return httpx2.Response(201, json={"sid": "CA" + "1" * 32})

    def sign(self, url: str, form: dict[str, str]) -> str:
        text = url + "".join(name + form[name] for name in sorted(form))
        return b64encode(digest(TOKEN.encode(), text.encode(), sha1)).decode()

    async def post(self, url: str, form: dict[str, str]) -> str:
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app), base_url=PUBLIC
        ) as http:
            return (
                await http.post(
                    url, data=form, headers={"X-Twilio-Signature": self.sign(url, form)}
                )
            ).text

    async def status(self, form: dict[str, str]) -> None:
        await self.post(form["StatusCallback"], {"CallStatus": self.fate})

    async def stream(self, form: dict[str, str]) -> None:
        stream = ElementTree.fromstring(
            await self.post(form["Url"], {"CallStatus": "in-progress"})
        ).find("Connect/Stream")
        assert stream is not None
        parameters = {item.get("name", ""): item.get("value", "") for item in stream}
        await self.talk(stream.get("url", ""), parameters)

    async def talk(
        self, url: str, parameters: dict[str, str], signature: str | None = None
    ) -> None:
        incoming: asyncio.Queue[Any] = asyncio.Queue()
        outgoing: asyncio.Queue[Any] = asyncio.Queue()
        signed = self.sign(url, {}) if signature is None else signature
        scope = {
            "type": "websocket",
            "path": "/tester/media",
            "query_string": b"",
            "headers": [(b"x-twilio-signature", signed.encode())],
        }
        server = asyncio.ensure_future(self.app(scope, incoming.get, outgoing.put))
        incoming.put_nowait({"type": "websocket.connect"})
        answer = await outgoing.get()
        if answer["type"] == "websocket.accept":
            await self.exchange(incoming, outgoing, parameters)
        else:
            self.closed.append(answer["code"])
        incoming.put_nowait({"type": "websocket.disconnect"})
        await server

    async def exchange(
        self,
        incoming: "asyncio.Queue[Any]",
        outgoing: "asyncio.Queue[Any]",
        parameters: dict[str, str],
    ) -> None:
        def send(event: str, **fields: Any) -> None:
            incoming.put_nowait(
                {
                    "type": "websocket.receive",
                    "text": json.dumps({"event": event, "streamSid": "MZ1", **fields}),
                }
            )

        media = {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}
        await self.end.connect(DialedCall("+15550100", "test"))
        send(
            "start",
            sequenceNumber="1",
            start={
                "callSid": "CA1",
                "mediaFormat": media,
                "customParameters": parameters,
            },
        )
        chunk = 0
        while (message := await outgoing.get())["type"] == "websocket.send":
            heard = b64decode(json.loads(message["text"])["media"]["payload"])
            far = await self.end.tick(chunk * 0.02, CallerTick(heard))
            chunk += 1
            payload = b64encode(far.frame).decode()
            send(
                "media",
                sequenceNumber=str(chunk + 1),
                media={
                    "chunk": str(chunk),
                    "timestamp": str(20 * chunk),
                    "payload": payload,
                },
            )
        self.closed.append(message["code"])


def make_rest(http: httpx2.AsyncClient, twilio: FakeTwilio) -> TwilioDialer:
    account = TwilioSettings(
        account_sid="AC1",
        auth_token=SecretStr(TOKEN),
        phone_number="+15550199",
        api_url="https://api.example.org",
    )
    dialler = TwilioRest(account, SystemClock(), httpx2.MockTransport(twilio.rest))
    return TwilioDialer(http, dialler, account)


async def ring(twilio: FakeTwilio, recogniser: FakeRecogniser) -> CallRecord:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(twilio.rest)) as http:
        calls = MediaCalls(
            make_rest(http, twilio),
            PUBLIC,
            "+15550101",
            SystemClock(),
        )
        twilio.app = phone.DialerWebhooks(
            calls, TwilioSignature(SecretStr(TOKEN), PUBLIC)
        )
        end = MediaConnection(calls, make_pace(), limit_s=600)
        record = await hold(end, INTERRUPT, recognise=recogniser.recognise)
        assert twilio.task
        await twilio.task
    return record


async def test_the_caller_really_interrupts_over_the_socket() -> None:
    twilio = FakeTwilio(LineAgent(greeting=GREETING))
    record = await ring(twilio, FakeRecogniser("This is a very"))
    scored = score(INTERRUPT, 1, [record])
    assert (record.line, record.ended_by, twilio.closed) == ("phone", "caller", [1000])
    assert record.agent_spans[0].text == "This is a very"
    assert scored.measures[0]["barge_ins"] == 1
    assert 0 < scored.measures[0]["yield_s"][0] < 0.6
    assert kinds(scored) == {("no_answer", "agent")}, (
        "this agent hears that it is spoken to, but has no ear for words"
    )


async def test_a_call_that_is_busy_is_told_by_its_status() -> None:
    assert (
        await ring(FakeTwilio(LineAgent(), fate="busy"), FakeRecogniser())
    ).outcome == "busy"


async def test_a_socket_that_twilio_did_not_sign_is_refused() -> None:
    twilio = FakeTwilio(LineAgent())
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(twilio.rest)) as http:
        calls = MediaCalls(
            make_rest(http, twilio),
            PUBLIC,
            "+15550101",
            SystemClock(),
        )
        twilio.app = phone.DialerWebhooks(
            calls, TwilioSignature(SecretStr(TOKEN), PUBLIC)
        )
        await twilio.talk("wss://calls.example.org/tester/media", {}, signature="wrong")
    assert twilio.closed == [1008]


def speaking(*sentences: str) -> AudioAgentConnection:
    """A function of sound that says its sentences with a second and a half between them,
    whatever it hears.
    """
    sound = b"".join(
        b"\xff" * 12_000 + ToneVoice(350).speak(sentence).sound
        for sentence in sentences
    )
    frames = iter(
        [sound[at : at + FRAME_BYTES] for at in range(0, len(sound), FRAME_BYTES)]
    )
    return AudioAgentConnection(lambda frame: next(frames, None))


async def test_what_a_voice_says_is_recognised_when_it_pauses() -> None:
    scenario = scenario_of(
        "caller_context: {opening: Good day., patience_ms: 400}\nlimits: {max_duration_s: "
        "12}\nsuccess: [{said: open}]"
    )
    recogniser = FakeRecogniser("How can I help?", "We are open.")
    end = speaking("How can I help?", "We are open.")
    record = await hold(end, scenario, recognise=recogniser.recognise)
    assert [span.text for span in record.agent_spans] == [
        "How can I help?",
        "We are open.",
    ]
    assert record.caller_spans[0].text == "Good day."
    assert [len(sound) > 4000 for sound in recogniser.sounds] == [True, True]


async def test_where_both_texts_are_known_the_recognisers_errors_are_counted() -> None:
    scenario = scenario_of(
        "caller_context: {opening: Good day.}\nlimits: {max_duration_s: 15}"
    )
    recogniser = FakeRecogniser("How can I kelp you?", "We are open now.")
    agent = LineAgent("We are open now.", greeting="How can I help you?")
    record = await hold(end_of(agent), scenario, recognise=recogniser.recognise)
    assert record.agent_spans[0].text == "How can I kelp you?"
    assert score(scenario, 1, [record]).measures[0]["word_error_rate"] == round(
        1 / 9, 3
    )


async def test_a_recogniser_that_fails_is_the_lines_doing() -> None:
    scenario = scenario_of(
        "caller_context: {opening: Good day.}\nlimits: {max_duration_s: 8}"
    )
    recogniser = FakeRecogniser(None)
    record = await hold(
        speaking("Hello there."), scenario, recognise=recogniser.recognise
    )
    assert ("missing_event", "line") in kinds(score(scenario, 1, [record]))


async def test_silence_is_never_sent_to_a_recogniser() -> None:
    recogniser = FakeRecogniser()
    transcriber = AgentTranscriber(recogniser.recognise, is_live=False)
    for tick in range(200):
        await transcriber.process(tick * 0.02, AgentTick())
    assert recogniser.sounds == []


class StalledCarrier:
    """Frames every 20 ms; those of a stall arrive together at its end."""

    def __init__(self, loud_s: list[tuple[float, float]], stall: tuple[float, float]):
        self._loud_s = loud_s
        self._stall = stall
        self._sent = 0

    def arrivals(self, now_s: float) -> Iterator[AudioIn]:
        while (said_s := self._sent * FRAME_S) + WAY_S <= now_s + 1e-6:
            is_held = self._stall[0] <= said_s < self._stall[1]
            if is_held and now_s < self._stall[1] + WAY_S:
                return
            self._sent += 1
            is_loud = any(start <= said_s < end for start, end in self._loud_s)
            sound = ToneVoice().speak("word").sound[:FRAME_BYTES]
            yield AudioIn(
                sound if is_loud else SILENCE, round(said_s * 1000), self._sent
            )


async def test_a_stall_of_the_line_moves_no_turn_of_the_agent() -> None:
    clock = VirtualClock()
    spoken = [(1.0, 2.0), (4.0, 5.0)]
    carrier = StalledCarrier(spoken, stall=(1.4, 2.2))
    async with httpx2.AsyncClient() as http:
        calls = MediaCalls(
            make_rest(http, FakeTwilio(LineAgent())), PUBLIC, "+15550101", clock
        )
        pace = TickPace(clock, is_live=True)
        connection = MediaConnection(calls, pace, limit_s=60)
        audio, heard = CallAudio(), AgentListener()
        waits = []
        for tick in range(300):
            at_s = tick * FRAME_S
            for frame in carrier.arrivals(clock.monotonic()):
                calls.apply_event(connection.call, frame)
            far = await connection.tick(at_s, CallerTick())
            heard.receive_tick(at_s, far)
            waits += [at_s] if heard.awaits_words else []
            audio.add(at_s, CallerTick(), far)
            clock.move(FRAME_S)
    found = [(span.start_s, span.end_s) for span in audio.spans()]
    expected = [(start + WAY_S, end + WAY_S) for start, end in spoken]
    for (start_s, end_s), (true_start_s, true_end_s) in zip(
        found, expected, strict=True
    ):
        assert start_s == pytest.approx(true_start_s, abs=0.005)
        assert end_s == pytest.approx(true_end_s, abs=0.005)
    assert 1.6 < min(waits) < max(waits) < 2.3, "nobody takes a stall for the end"
    assert [event.kind for event in audio.events] == ["line_stalled"]


CALLED = scenario_of("""
turns:
  - {say: 'Hello?', after: {event: call_starts, delay_ms: 300}}
  - {hang_up: true}
limits: {max_duration_s: 60}
""")


async def wait_for_the_agent(
    caller: str, agent: InboundAgent, clock: Clock
) -> tuple[CallRecord, list[str]]:
    """The agent calls twice: as nobody waits for a second call, that one is not answered."""
    twilio, answers = FakeTwilio(LineAgent(greeting=GREETING)), list[str]()

    async def call_us() -> None:
        for _ in range(2):
            url = f"{PUBLIC}/tester/incoming"
            answers.append(await twilio.post(url, {"From": caller}))
            stream = ElementTree.fromstring(answers[-1]).find("Connect/Stream")
            if stream is not None:
                given = {item.get("name", ""): item.get("value", "") for item in stream}
                await twilio.talk(stream.get("url", ""), given)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(twilio.rest)) as http:
        calls = MediaCalls(make_rest(http, twilio), PUBLIC, "", clock, agent)
        twilio.app = phone.DialerWebhooks(
            calls, TwilioSignature(SecretStr(TOKEN), PUBLIC)
        )
        end = MediaConnection(calls, make_pace(), limit_s=600)
        held = asyncio.ensure_future(
            hold(end, CALLED, recognise=FakeRecogniser().recognise)
        )
        while not calls.is_expecting:
            await asyncio.sleep(0)
        task = asyncio.ensure_future(call_us())
        if isinstance(clock, VirtualClock):
            await task
            await clock.advance(60)
        record = await held
        await task
    return record, answers


async def test_an_agent_that_calls_us_is_answered_once() -> None:
    agent = InboundAgent("+15550199", number="+15550101")
    record, answers = await wait_for_the_agent("+15550101", agent, SystemClock())
    assert (record.outcome, record.caller_spans[0].text) == ("answered", "Hello?")
    assert ["Reject" in answer for answer in answers] == [False, True]


async def test_a_stranger_who_calls_our_number_is_not_the_agent() -> None:
    agent = InboundAgent("+15550199", number="+15550101")
    record, answers = await wait_for_the_agent("+15550142", agent, VirtualClock())
    assert record.outcome == "no-answer"
    assert all("Reject" in answer for answer in answers)


async def test_an_agent_is_asked_to_call_us() -> None:
    asked: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        return httpx2.Response(503)

    transport = httpx2.MockTransport(answer)
    async with httpx2.AsyncClient(transport=transport) as http:
        agent = InboundAgent("+15550199", address="https://agent/call", http=http)
        with pytest.raises(AgentRefused, match="503"):
            await agent.ask_to_call(DialedCall(None, "reminder"))
    assert asked == [{"to": "+15550199", "scenario": "reminder", "call": 1}]
