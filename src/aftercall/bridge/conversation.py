"""The engine's side of one call: a session from its first word to its loss, and what each of
its events sets in motion.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aftercall.bridge.agent_voice import AgentVoice
from aftercall.bridge.state import CallSignal
from aftercall.bridge.timers import CallTimers
from aftercall.bridge.tools import Toolbox, list_tools
from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock
from aftercall.engine.voice import (
    AgentAudio,
    AgentDone,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    EngineOpening,
    ToolCall,
    ToolCancelled,
    VoiceEngine,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import AftercallError, EngineLost, EngineRefused
from aftercall.log import get_logger
from aftercall.model.turns import Speaker

MAX_RUNNING_TOOLS = 8

log = get_logger("bridge")

OnReady = Callable[[], Awaitable[None]]
SendSignal = Callable[[CallSignal], Awaitable[None]]
OnSpeech = Callable[[Speaker, str], None]


class EngineConversation:
    def __init__(
        self,
        engine: VoiceEngine,
        voice: AgentVoice,
        turn_log: TurnLog,
        timers: CallTimers,
        tools: Toolbox,
        signal: SendSignal,
        clock: Clock,
        on_speech: OnSpeech = lambda speaker, text: None,
    ) -> None:
        self._engine = engine
        self._voice = voice
        self._turn_log = turn_log
        self._timers = timers
        self._tools = tools
        self._signal = signal
        self._clock = clock
        self._on_speech = on_speech
        self._is_changing = False
        self._session: VoiceSession | None = None
        self._running: asyncio.Task[CallSignal] | None = None
        self._ready: OnReady | None = None
        self._number = 0
        self._prefix = ""
        self._open_turn = self._overtaken = ""
        self._is_muted = False
        self._running_tools: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    async def run(self, opening: EngineOpening, ready: OnReady) -> None:
        """One session to its end, which is told as a signal.

        `ready` is called when its first audio comes.
        """
        self._number += 1
        self._prefix, self._ready = f"{self._number}.", ready
        running = self._running = asyncio.create_task(self._run_session(opening))
        await asyncio.wait({running})
        is_changing, self._is_changing = self._is_changing, False
        lost = CallSignal.ENGINE_CHANGED if is_changing else CallSignal.ENGINE_LOST
        await self._signal(lost if running.cancelled() else running.result())

    def send_audio(self, payload: bytes) -> None:
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

    def drop_session(self) -> None:
        """Give the session up."""
        if self._running is not None:
            self._running.cancel()

    def change_session(self) -> None:
        """Let the session go for another one."""
        self._is_changing = True
        self.drop_session()

    def mute(self) -> None:
        """The line is free: only words that are still under way count from here on."""
        self._is_muted = True

    async def close(self) -> None:
        self.drop_session()
        tasks = [
            task for task in (self._running, *self._running_tools.values()) if task is not None
        ]
        for task in self._running_tools.values():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _run_session(self, opening: EngineOpening) -> CallSignal:
        try:
            self._session = await self._engine.connect(opening, list_tools())
            self._session.set_fast_path(self._try_play)
            while True:
                for event in await self._session.receive():
                    await self._handle_event(self._session, event)
        except EngineRefused as error:
            log.error("the engine refused", error=error.code, reason=str(error))
            return CallSignal.ENGINE_REFUSED
        except AftercallError as error:
            if not self._is_muted:
                log.warning("the engine is lost", error=error.code, reason=str(error))
        except Exception as error:  # noqa: BLE001 - the edge of an engine: whatever breaks there, the caller hears something
            log.error("the engine broke", error=type(error).__name__)
        finally:
            self._close_session()
        return CallSignal.ENGINE_LOST

    def _close_session(self) -> None:
        """Close the session without waiting for it: the caller waits for what comes next."""
        session, self._session = self._session, None
        if session is not None:
            closing = asyncio.create_task(session.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _handle_event(self, session: VoiceSession, event: VoiceEvent) -> None:
        if isinstance(event, AgentAudio):
            await self._play(event)
        elif isinstance(event, CallerSaid):
            self._on_caller_text(event)
        elif isinstance(event, CallerUnclear):
            self._turn_log.set_text("caller", self._prefix + event.turn, "")
        elif self._is_muted:
            return
        elif isinstance(event, CallerBegan):
            await self._on_caller_began(session, event)
        elif isinstance(event, AgentText):
            self._voice.append_text(self._prefix + event.speech, event.text)
            self._on_speech("agent", event.text)
        elif isinstance(event, AgentDone):
            await self._voice.finish(self._prefix + event.speech)
        elif isinstance(event, ToolCall):
            self._start_tool(session, event)
        elif isinstance(event, ToolCancelled) and (task := self._running_tools.get(event.id)):
            task.cancel()

    async def _play(self, event: AgentAudio) -> None:
        if self._is_muted:
            return
        if self._ready is not None:
            ready, self._ready = self._ready, None
            await ready()
        self._note_speech()
        await self._voice.play(self._prefix + event.speech, event.payload)

    def _try_play(self, event: AgentAudio) -> bool:
        """Most of the agent's audio: played the moment it comes."""
        if (
            self._is_muted
            or self._ready is not None
            or not self._voice.try_play(self._prefix + event.speech, event.payload)
        ):
            return False
        self._note_speech()
        return True

    def _note_speech(self) -> None:
        if self._open_turn:
            self._overtaken, self._open_turn = self._open_turn, ""
        self._timers.on_agent_speaks()

    async def _on_caller_began(self, session: VoiceSession, event: CallerBegan) -> None:
        self._timers.on_caller_began(self._clock.monotonic())
        await self._signal(CallSignal.CALLER_TALKS)
        self._open_turn = event.turn
        cut = await self._voice.interrupt()
        self._turn_log.start_turn("caller", self._prefix + event.turn)
        for heard in cut:
            if heard.was_cut and heard.speech.key.startswith(self._prefix):
                await session.truncate_speech(
                    heard.speech.key.removeprefix(self._prefix), heard.heard_ms
                )

    def _on_caller_text(self, event: CallerSaid) -> None:
        """Words that come after the answer to them has begun are owed no answer."""
        if event.turn != self._overtaken:
            self._timers.on_caller_said(self._clock.monotonic())
        self._turn_log.set_text("caller", self._prefix + event.turn, event.text, event.confidence)
        self._on_speech("caller", event.text)

    def _start_tool(self, session: VoiceSession, call: ToolCall) -> None:
        if len(self._running_tools) < MAX_RUNNING_TOOLS and call.id not in self._running_tools:
            task = self._running_tools[call.id] = asyncio.create_task(self._use_tool(session, call))
            task.add_done_callback(lambda _: self._running_tools.pop(call.id, None))

    async def _use_tool(self, session: VoiceSession, call: ToolCall) -> None:
        answer = await self._tools.run(call.name, call.arguments)
        with suppress(EngineLost):
            await session.answer_tool(call, answer.text)
        if answer.ends_call:
            await self._signal(CallSignal.AGENT_ENDS)
