"""The engine's side of one call: a session from its first word to its loss, and what each of its events sets in motion."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aftercall.bridge.minutes import Minutes
from aftercall.bridge.mouth import Mouth
from aftercall.bridge.state import Signal
from aftercall.bridge.tools import Toolbox, offered
from aftercall.bridge.watch import Watch
from aftercall.clock import Clock
from aftercall.engine.voice import (
    AgentAudio,
    AgentDone,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    Opening,
    ToolCall,
    ToolCancelled,
    VoiceEngine,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import AftercallError, EngineLost, EngineRefused
from aftercall.log import get_logger
from aftercall.model.turns import Speaker

MOST_TOOLS = 8

log = get_logger("bridge")

Ready = Callable[[], Awaitable[None]]
Tell = Callable[[Signal], Awaitable[None]]
Overhear = Callable[[Speaker, str], None]


class Conversation:
    def __init__(
        self,
        engine: VoiceEngine,
        mouth: Mouth,
        minutes: Minutes,
        watch: Watch,
        tools: Toolbox,
        signal: Tell,
        clock: Clock,
        overhear: Overhear = lambda speaker, text: None,
    ) -> None:
        self._engine = engine
        self._mouth = mouth
        self._minutes = minutes
        self._watch = watch
        self._tools = tools
        self._signal = signal
        self._clock = clock
        self._overhear = overhear
        self._is_changing = False
        self._session: VoiceSession | None = None
        self._running: asyncio.Task[Signal] | None = None
        self._ready: Ready | None = None
        self._number = 0
        self._prefix = ""
        self._open_turn = self._overtaken = ""
        self._is_muted = False
        self._using: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_on(self) -> bool:
        return self._session is not None

    async def run(self, opening: Opening, ready: Ready) -> None:
        """One session to its end, which is told as a signal. `ready` is called when its first audio comes."""
        self._number += 1
        self._prefix, self._ready = f"{self._number}.", ready
        running = self._running = asyncio.create_task(self._talk(opening))
        await asyncio.wait({running})
        is_changing, self._is_changing = self._is_changing, False
        lost = Signal.ENGINE_CHANGED if is_changing else Signal.ENGINE_LOST
        await self._signal(lost if running.cancelled() else running.result())

    def hear(self, payload: bytes) -> None:
        if self._session is not None and not self._is_muted:
            try:
                self._session.send_audio(payload)
            except EngineLost:  # the loss is told where events are awaited
                return

    async def say(self, text: str) -> None:
        if self._session is not None:
            with suppress(EngineLost):
                await self._session.say(text)

    async def keep_alive(self) -> None:
        if self._session is not None:
            with suppress(EngineLost):
                await self._session.keep_alive()

    def drop(self) -> None:
        """Give the session up."""
        if self._running is not None:
            self._running.cancel()

    def change(self) -> None:
        """Let the session go for another one."""
        self._is_changing = True
        self.drop()

    def mute(self) -> None:
        """The line is free: only words that are still under way count from here on."""
        self._is_muted = True

    async def close(self) -> None:
        self.drop()
        tasks = [task for task in (self._running, *self._using.values()) if task is not None]
        for task in self._using.values():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _talk(self, opening: Opening) -> Signal:
        try:
            self._session = await self._engine.connect(opening, offered())
            self._session.divert(self._offer)
            while True:
                for event in await self._session.receive():
                    await self._take(self._session, event)
        except EngineRefused as error:
            log.error("the engine refused", error=error.code, reason=str(error))  # noqa: TRY400 - the reason says it
            return Signal.ENGINE_REFUSED
        except AftercallError as error:
            if not self._is_muted:
                log.warning("the engine is lost", error=error.code, reason=str(error))
        except Exception as error:  # noqa: BLE001 - the edge of an engine: whatever breaks there, the caller hears something
            log.error("the engine broke", error=type(error).__name__)  # noqa: TRY400 - a trace may hold speech
        finally:
            self._leave()
        return Signal.ENGINE_LOST

    def _leave(self) -> None:
        """Close the session without waiting for it: the caller waits for what comes next."""
        session, self._session = self._session, None
        if session is not None:
            closing = asyncio.create_task(session.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _take(self, session: VoiceSession, event: VoiceEvent) -> None:
        if isinstance(event, AgentAudio):
            await self._play(event)
        elif isinstance(event, CallerSaid):
            self._hear_words(event)
        elif isinstance(event, CallerUnclear):
            self._minutes.know("caller", self._prefix + event.turn, "")
        elif self._is_muted:
            return
        elif isinstance(event, CallerBegan):
            await self._be_interrupted(session, event)
        elif isinstance(event, AgentText):
            self._mouth.tell(self._prefix + event.speech, event.text)
            self._overhear("agent", event.text)
        elif isinstance(event, AgentDone):
            await self._mouth.finish(self._prefix + event.speech)
        elif isinstance(event, ToolCall):
            self._use(session, event)
        elif isinstance(event, ToolCancelled) and (task := self._using.get(event.id)):
            task.cancel()

    async def _play(self, event: AgentAudio) -> None:
        if self._is_muted:
            return
        if self._ready is not None:
            ready, self._ready = self._ready, None
            await ready()
        self._note_speech()
        await self._mouth.play(self._prefix + event.speech, event.payload)

    def _offer(self, event: AgentAudio) -> bool:
        """Most of the agent's audio: played the moment it comes."""
        if self._is_muted or self._ready is not None or not self._mouth.offer(self._prefix + event.speech, event.payload):
            return False
        self._note_speech()
        return True

    def _note_speech(self) -> None:
        if self._open_turn:
            self._overtaken, self._open_turn = self._open_turn, ""
        self._watch.agent_speaks()

    async def _be_interrupted(self, session: VoiceSession, event: CallerBegan) -> None:
        self._watch.caller_began(self._clock.monotonic())
        await self._signal(Signal.CALLER_TALKS)
        self._open_turn = event.turn
        cut = await self._mouth.interrupt()
        self._minutes.begin("caller", self._prefix + event.turn)
        for heard in cut:
            if heard.was_cut and heard.speech.key.startswith(self._prefix):
                await session.cut(heard.speech.key.removeprefix(self._prefix), heard.heard_ms)

    def _hear_words(self, event: CallerSaid) -> None:
        """Words that come after the answer to them has begun are owed no answer."""
        if event.turn != self._overtaken:
            self._watch.caller_said(self._clock.monotonic())
        self._minutes.know("caller", self._prefix + event.turn, event.text, event.confidence)
        self._overhear("caller", event.text)

    def _use(self, session: VoiceSession, call: ToolCall) -> None:
        if len(self._using) < MOST_TOOLS and call.id not in self._using:
            task = self._using[call.id] = asyncio.create_task(self._use_tool(session, call))
            task.add_done_callback(lambda _: self._using.pop(call.id, None))

    async def _use_tool(self, session: VoiceSession, call: ToolCall) -> None:
        answer = await self._tools.use(call.name, call.arguments)
        with suppress(EngineLost):
            await session.answer_tool(call, answer.text)
        if answer.ends_call:
            await self._signal(Signal.AGENT_ENDS)
