"""An engine of turns on raw audio: an ear makes text of what the caller says, a mouth makes
sound of the answer.

So the receptionist speaks and listens wholly on this machine. The caller's onset voids what is
being said at once, by loudness; their words come a moment after they have finished. Who talks
on after a pause is answered when they are done.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace

from aftercall.clock import Clock
from aftercall.engine.session import AgentReply, TurnEngine, TurnSession
from aftercall.engine.voice import (
    TAKE_REQUEST,
    TAKEN_DOWN,
    AgentAudio,
    AgentDone,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    EngineOpening,
    Tool,
    ToolCall,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import AftercallError, EngineLost
from aftercall.model.briefing import Briefing, ResumedCall
from aftercall.speech.kit import SpeechKit
from aftercall.speech.listener import Listener, SpeechBegan, SpeechEnded
from aftercall.speech.sound import SAMPLE_RATE_HZ

CHUNK = 1_600  # bytes of audio in one event: 200 ms
END_CALL = "end_call"
PARDON = "Sorry, I didn't catch that."
NOT_TAKEN = AgentReply("I'm sorry, I can't take that down right now. Please call again later.")


class SpokenTurnEngine:
    def __init__(self, engine: TurnEngine, speech: SpeechKit, clock: Clock) -> None:
        self._engine = engine
        self._speech = speech
        self._clock = clock

    async def connect(self, opening: EngineOpening, tools: Sequence[Tool]) -> VoiceSession:
        talk = await self._engine.connect(_to_briefing(opening))
        session = SpokenTurnSession(
            talk, self._speech, self._clock, frozenset(tool.name for tool in tools)
        )
        session.start(opening.greeting if opening.history else (await talk.greet()).text)
        return session


class SpokenTurnSession:
    def __init__(
        self, session: TurnSession, speech: SpeechKit, clock: Clock, tools: frozenset[str]
    ) -> None:
        self._session = session
        self._speech = speech
        self._clock = clock
        self._tools = tools
        self._answers: dict[str, asyncio.Future[str]] = {}
        self._listener = Listener()
        self._events: deque[VoiceEvent] = deque()
        self._news = asyncio.Event()
        self._lost: EngineLost | None = None
        self._hearing: set[asyncio.Task[None]] = set()
        self._in_order = asyncio.Lock()
        self._answering: asyncio.Task[None] | None = None
        self._unanswered: list[str] = []
        self._numbers = {"s": 0, "t": 0, "r": 0}
        self._turn = ""
        self._saying: AgentReply | None = None
        self._speaking_until_s = 0.0

    def start(self, greeting: str) -> None:
        self._answer(self._speak(AgentReply(greeting)))

    async def receive(self) -> Sequence[VoiceEvent]:
        """One at a time: what still waits here can be taken back when the caller begins to talk."""
        while not self._events:
            if self._lost is not None:
                raise self._lost
            self._news.clear()
            await self._news.wait()
        return (self._events.popleft(),)

    def set_fast_path(self, play: Callable[[AgentAudio], bool]) -> None:
        """What it says comes in large pieces; they may as well be received."""

    def send_audio(self, payload: bytes) -> None:
        is_guarded = self._clock.monotonic() < self._speaking_until_s
        for sound in self._listener.receive_audio(payload, is_guarded=is_guarded):
            if isinstance(sound, SpeechBegan):
                self._on_caller_began()
            else:
                task = asyncio.create_task(self._guard(self._recognise(self._turn, sound)))
                self._hearing.add(task)
                task.add_done_callback(self._hearing.discard)

    async def truncate_speech(self, speech: str, heard_ms: int) -> None:
        """What was not heard is said again if the interruption was no speech."""

    async def say(self, text: str) -> None:
        if not self._listener.is_in_speech:
            self._answer(self._speak(AgentReply(text)))

    async def answer_tool(self, call: ToolCall, answer: str) -> None:
        """Hanging up needs no answer; a request is waited for until it is taken down."""
        if waiting := self._answers.get(call.id):
            waiting.set_result(answer)

    async def keep_alive(self) -> None:
        """There is nobody to keep awake."""

    async def close(self) -> None:
        tasks = [task for task in (*self._hearing, self._answering) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    def _on_caller_began(self) -> None:
        """Nothing of what was being said follows; what the caller said before and got no answer
        to stays owed.
        """
        self._stop_answering()
        kept = [
            event
            for event in self._events
            if not isinstance(event, AgentAudio | AgentText | AgentDone | ToolCall)
        ]
        self._events = deque(kept)
        if self._clock.monotonic() >= self._speaking_until_s:
            self._saying = None  # it was heard to its end
        self._speaking_until_s = 0.0
        self._turn = self._next_id("t")
        self._emit(CallerBegan(self._turn))

    async def _recognise(self, turn: str, uttered: SpeechEnded) -> None:
        async with self._in_order:
            text = (await self._speech.recogniser.recognise(uttered.sound)).strip()
        if text:
            self._unanswered.append(text)
            self._emit(CallerSaid(turn, text))
        elif not uttered.goes_on and not self._unanswered:
            self._emit(CallerUnclear(turn))
        if not uttered.goes_on and turn == self._turn:
            self._answer(self._reply())

    async def _reply(self) -> None:
        if not self._unanswered:
            again, self._saying = self._saying, None
            await self._speak(again or AgentReply(PARDON))
            return
        said = " ".join(self._unanswered)
        self._unanswered.clear()
        self._saying = None
        reply = await self._session.answer(said)
        is_claimed_falsely = reply.taken_request is not None and not await self._record_request(
            reply.taken_request
        )
        await self._speak(NOT_TAKEN if is_claimed_falsely else reply)

    async def _record_request(self, request: Mapping[str, str]) -> bool:
        """Whether the request is on disk."""
        if TAKE_REQUEST not in self._tools:
            return False
        tool_call = ToolCall(self._next_id("r"), TAKE_REQUEST, json.dumps(dict(request)))
        self._answers[tool_call.id] = asyncio.get_running_loop().create_future()
        self._emit(tool_call)
        try:
            return (await self._answers[tool_call.id]).startswith(TAKEN_DOWN)
        finally:
            del self._answers[tool_call.id]

    async def _speak(self, reply: AgentReply) -> None:
        speech = self._next_id("s")
        audio = await self._speech.synthesiser.speak(reply.text)
        self._saying = reply
        self._speaking_until_s = (
            max(self._speaking_until_s, self._clock.monotonic()) + len(audio) / SAMPLE_RATE_HZ
        )
        self._emit(AgentText(speech, reply.text))
        for start in range(0, len(audio), CHUNK):
            self._emit(AgentAudio(speech, audio[start : start + CHUNK]))
        self._emit(AgentDone(speech))
        if reply.ends_call and END_CALL in self._tools:
            self._emit(ToolCall(f"hang-up-{speech}", END_CALL, "{}"))

    def _answer(self, work: Coroutine[None, None, None]) -> None:
        self._stop_answering()
        self._answering = asyncio.create_task(self._guard(work))

    def _stop_answering(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        """Whatever breaks behind a session is the loss of it."""
        try:
            await work
        except AftercallError as error:
            self._lose(
                error
                if isinstance(error, EngineLost)
                else EngineLost(f"the engine broke ({error.code})")
            )
        except Exception as error:  # noqa: BLE001 - the edge of an engine: whatever breaks there, the caller hears something
            self._lose(EngineLost(f"the engine broke ({type(error).__name__})"))

    def _lose(self, error: EngineLost) -> None:
        self._lost = self._lost or error
        self._news.set()

    def _emit(self, event: VoiceEvent) -> None:
        self._events.append(event)
        self._news.set()

    def _next_id(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}{self._numbers[kind]}"


def _to_briefing(opening: EngineOpening) -> Briefing:
    """What the session is told; one that is begun anew in the middle of a call goes on where it
    was.
    """
    briefing = opening.briefing or Briefing(opening.greeting)
    if not opening.history:
        return briefing
    earlier = briefing.pick_up.turns if briefing.pick_up else ()
    return replace(
        briefing, pick_up=ResumedCall("", opening.history[-1].at, (*earlier, *opening.history))
    )
