"""Makes a turn engine speak: a recogniser turns the caller's audio into text, a synthesiser turns
the answer into audio.

With it the receptionist speaks and listens on this machine alone. The loudness of the caller
interrupts the agent at once; the words follow when the caller pauses. A caller who talks on after
a pause gets one answer to all of it.
"""

import asyncio
import json
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace

from aftercall.clock import Clock
from aftercall.engine.voice import (
    END_CALL,
    TAKE_REQUEST,
    TAKEN_DOWN,
    AgentAudio,
    AgentDone,
    AgentReply,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    EngineOpening,
    Tool,
    ToolCall,
    TurnEngine,
    TurnSession,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import AftercallError, EngineLost
from aftercall.model.briefing import Briefing, ResumedCall
from aftercall.sockets.mailbox import Handler
from aftercall.speech.kit import SpeechKit
from aftercall.speech.sound import SAMPLE_RATE_HZ, Listener, SpeechBegan, SpeechEnded

CHUNK_BYTES = 1_600  # audio of one event: 200 ms
PARDON = "Sorry, I didn't catch that."
NOT_TAKEN = AgentReply(
    "I'm sorry, I can't take that down right now. Please call again later."
)


class SpokenTurnEngine:
    """A turn engine with ears and a voice."""

    def __init__(self, engine: TurnEngine, speech: SpeechKit, clock: Clock) -> None:
        self._engine = engine
        self._speech = speech
        self._clock = clock

    async def connect(
        self, opening: EngineOpening, tools: Sequence[Tool]
    ) -> VoiceSession:
        inner = await self._engine.connect(_to_briefing(opening))
        names = frozenset(tool.name for tool in tools)
        session = SpokenTurnSession(inner, self._speech, self._clock, names)
        session.start(
            opening.greeting if opening.history else (await inner.greet()).text
        )
        return session


class SpokenTurnSession:
    """One call: recogniser, turn engine and synthesiser in a row."""

    def __init__(
        self,
        session: TurnSession,
        speech: SpeechKit,
        clock: Clock,
        tools: frozenset[str],
    ) -> None:
        self._session = session
        self._speech = speech
        self._clock = clock
        self._tools = tools
        self._tool_answers: dict[str, asyncio.Future[str]] = {}
        self._listener = Listener()
        self._events: deque[VoiceEvent] = deque()
        self._changed = asyncio.Event()
        self._lost: EngineLost | None = None
        self._recognising: set[asyncio.Task[None]] = set()
        self._recognise_lock = asyncio.Lock()
        self._answering: asyncio.Task[None] | None = None
        self._unanswered: list[str] = []
        self._numbers = {"s": 0, "t": 0, "r": 0}
        self._turn = ""
        self._saying: AgentReply | None = None
        self._speaking_until_s = 0.0

    def start(self, greeting: str) -> None:
        self._answer(self._speak(AgentReply(greeting)))

    async def run(self, on_event: Handler[VoiceEvent]) -> None:
        """An event that still waits here can be withdrawn when the caller begins to talk."""
        while True:
            while self._events:
                work = on_event(self._events.popleft())
                if work is not None:
                    await work
            if self._lost is not None:
                raise self._lost
            self._changed.clear()
            await self._changed.wait()

    def send_audio(self, payload: bytes) -> None:
        is_guarded = self._clock.monotonic() < self._speaking_until_s
        for sound in self._listener.receive_audio(payload, is_guarded=is_guarded):
            if isinstance(sound, SpeechBegan):
                self._on_caller_began()
            else:
                task = asyncio.create_task(
                    self._guard(self._recognise(self._turn, sound))
                )
                self._recognising.add(task)
                task.add_done_callback(self._recognising.discard)

    async def truncate_speech(self, speech: str, heard_ms: int) -> None:
        """Nothing to do: a speech that a noise cut off is said again from the start."""

    async def say(self, text: str) -> None:
        if not self._listener.is_in_speech:
            self._answer(self._speak(AgentReply(text)))

    async def answer_tool(self, call: ToolCall, answer: str) -> None:
        """Only a request waits for its answer; a hang-up does not."""
        if waiting := self._tool_answers.get(call.id):
            waiting.set_result(answer)

    async def keep_alive(self) -> None:
        """Nothing to keep alive: there is no socket."""

    async def close(self) -> None:
        tasks = [
            task for task in (*self._recognising, self._answering) if task is not None
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    def _on_caller_began(self) -> None:
        """Drops the rest of the current speech. Words without an answer still get one."""
        self._stop_answering()
        dropped = (AgentAudio, AgentText, AgentDone, ToolCall)
        self._events = deque(
            event for event in self._events if not isinstance(event, dropped)
        )
        if self._clock.monotonic() >= self._speaking_until_s:
            self._saying = None  # the caller heard it to its end
        self._speaking_until_s = 0.0
        self._turn = self._next_id("t")
        self._emit(CallerBegan(self._turn))

    async def _recognise(self, turn: str, ended: SpeechEnded) -> None:
        async with self._recognise_lock:
            text = (await self._speech.recogniser.recognise(ended.sound)).strip()
        if text:
            self._unanswered.append(text)
            self._emit(CallerSaid(turn, text))
        elif not ended.goes_on and not self._unanswered:
            self._emit(CallerUnclear(turn))
        if not ended.goes_on and turn == self._turn:
            self._answer(self._reply())

    async def _reply(self) -> None:
        if not self._unanswered:
            interrupted, self._saying = self._saying, None
            await self._speak(interrupted or AgentReply(PARDON))
            return
        said = " ".join(self._unanswered)
        self._unanswered.clear()
        self._saying = None
        reply = await self._session.answer(said)
        if reply.taken_request is not None and not await self._record_request(
            reply.taken_request
        ):
            reply = NOT_TAKEN
        await self._speak(reply)

    async def _record_request(self, request: Mapping[str, str]) -> bool:
        """Whether the request is on disk."""
        if TAKE_REQUEST not in self._tools:
            return False
        tool_call = ToolCall(
            self._next_id("r"), TAKE_REQUEST, json.dumps(dict(request))
        )
        self._tool_answers[tool_call.id] = asyncio.get_running_loop().create_future()
        self._emit(tool_call)
        try:
            return (await self._tool_answers[tool_call.id]).startswith(TAKEN_DOWN)
        finally:
            del self._tool_answers[tool_call.id]

    async def _speak(self, reply: AgentReply) -> None:
        """Emits the whole answer at once; the carrier plays it in its own time."""
        speech = self._next_id("s")
        audio = await self._speech.synthesiser.speak(reply.text)
        self._saying = reply
        starts_s = max(self._speaking_until_s, self._clock.monotonic())
        self._speaking_until_s = starts_s + len(audio) / SAMPLE_RATE_HZ
        self._emit(AgentText(speech, reply.text))
        for start in range(0, len(audio), CHUNK_BYTES):
            self._emit(AgentAudio(speech, audio[start : start + CHUNK_BYTES]))
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
        """Every failure in the background ends the session."""
        try:
            await work
        except EngineLost as error:
            self._lose(error)
        except AftercallError as error:
            self._lose(EngineLost(f"the engine broke ({error.code})"))
        except Exception as error:  # noqa: BLE001 - the edge of an engine
            self._lose(EngineLost(f"the engine broke ({type(error).__name__})"))

    def _lose(self, error: EngineLost) -> None:
        self._lost = self._lost or error
        self._changed.set()

    def _emit(self, event: VoiceEvent) -> None:
        self._events.append(event)
        self._changed.set()

    def _next_id(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}{self._numbers[kind]}"


def _to_briefing(opening: EngineOpening) -> Briefing:
    """The briefing of the session. A session that replaces a lost one gets the turns so far."""
    briefing = opening.briefing or Briefing(opening.greeting)
    if not opening.history:
        return briefing
    earlier = briefing.pick_up.turns if briefing.pick_up else ()
    resumed = ResumedCall("", opening.history[-1].at, (*earlier, *opening.history))
    return replace(briefing, pick_up=resumed)
