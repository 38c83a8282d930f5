"""The engine's side of one call: runs a session and does what each of its events asks for."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from aftercall import telemetry
from aftercall.bridge.agent_voice import AgentVoice, MediaPump
from aftercall.bridge.state import CallSignal, CallTimers
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
from aftercall.model.calls import Speaker
from aftercall.sockets.mailbox import Work

MAX_RUNNING_TOOLS = 8

log = get_logger("bridge")

OnReady = Callable[[], Awaitable[None]]
SendSignal = Callable[[CallSignal], Awaitable[None]]
OnSpeech = Callable[[Speaker, str], None]


@dataclass(frozen=True)
class ConversationParts:
    """What the events of a session act on."""

    engine: VoiceEngine
    pump: MediaPump
    voice: AgentVoice
    turn_log: TurnLog
    timers: CallTimers
    tools: Toolbox
    clock: Clock


class EngineConversation:
    """Turns, tools and interruptions of one engine session, in the order they happened."""

    def __init__(
        self, parts: ConversationParts, signal: SendSignal, on_speech: OnSpeech
    ) -> None:
        self._parts = parts
        self._voice = parts.voice
        self._turn_log = parts.turn_log
        self._timers = parts.timers
        self._clock = parts.clock
        self._signal = signal
        self._on_speech = on_speech
        self._is_changing = False
        self._session: VoiceSession | None = None
        self._running: asyncio.Task[CallSignal] | None = None
        self._on_ready: OnReady | None = None
        self._number = 0
        self._prefix = ""
        self._open_turn = self._overtaken = ""
        self._asked_at_s: float | None = None
        self._is_muted = False
        self._running_tools: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    async def run(self, opening: EngineOpening, on_ready: OnReady) -> None:
        """Run one session to its end and send the signal for it.

        Calls `on_ready` at its first audio.
        """
        self._number += 1
        self._prefix = f"{self._number}."
        self._on_ready = on_ready
        running = self._running = asyncio.create_task(self._run_session(opening))
        await asyncio.wait({running})
        is_changing, self._is_changing = self._is_changing, False
        dropped = CallSignal.ENGINE_CHANGED if is_changing else CallSignal.ENGINE_LOST
        await self._signal(dropped if running.cancelled() else running.result())

    def send_audio(self, payload: bytes) -> None:
        self._timers.audio_at_s = self._clock.monotonic()
        if self._session is not None and not self._is_muted:
            try:
                self._session.send_audio(payload)
            except EngineLost:  # `run` reports the loss
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
        if self._running is not None:
            self._running.cancel()

    def change_session(self) -> None:
        """Drop the session for another one."""
        self._is_changing = True
        self.drop_session()

    def mute(self) -> None:
        """The line is free: only the caller's late words count from here on."""
        self._is_muted = True

    async def close(self) -> None:
        self.drop_session()
        tools = list(self._running_tools.values())
        for task in tools:
            task.cancel()
        running = [self._running] if self._running is not None else []
        await asyncio.gather(*running, *tools, return_exceptions=True)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _run_session(self, opening: EngineOpening) -> CallSignal:
        try:
            engine = type(self._parts.engine).__name__
            with telemetry.timed("engine", self._turn_log.call_id, engine=engine):
                self._session = await self._parts.engine.connect(opening, list_tools())
            await self._session.run(self._on_event)
        except EngineRefused as error:
            log.error("the engine refused", error=error.code, reason=str(error))
            return CallSignal.ENGINE_REFUSED
        except AftercallError as error:
            if not self._is_muted:
                log.warning("the engine is lost", error=error.code, reason=str(error))
        except Exception as error:  # noqa: BLE001 - the edge of an engine
            log.error("the engine broke", error=type(error).__name__)
        finally:
            self._close_session()
        return CallSignal.ENGINE_LOST

    def _close_session(self) -> None:
        """Close the session in the background: the caller waits for the next one."""
        session, self._session = self._session, None
        if session is not None:
            closing = asyncio.create_task(session.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _on_event(self, event: VoiceEvent) -> Work | None:
        if isinstance(event, CallerSaid):
            self._on_caller_text(event)
        elif isinstance(event, CallerUnclear):
            self._turn_log.set_text("caller", self._prefix + event.turn, "")
        elif self._is_muted:
            return None
        elif isinstance(event, AgentAudio):
            return (
                self._start(event) if self._on_ready is not None else self._play(event)
            )
        elif isinstance(event, CallerBegan):
            return self._on_caller_began(event)
        elif isinstance(event, AgentText):
            self._voice.append_text(self._prefix + event.speech, event.text)
            self._on_speech("agent", event.text)
        elif isinstance(event, AgentDone):
            self._voice.finish(self._prefix + event.speech)
        elif isinstance(event, ToolCall):
            self._start_tool(event)
        elif isinstance(event, ToolCancelled) and (
            task := self._running_tools.get(event.id)
        ):
            task.cancel()
        return None

    async def _start(self, event: AgentAudio) -> None:
        on_ready, self._on_ready = self._on_ready, None
        if on_ready is not None:
            await on_ready()
        work = self._play(event)
        if work is not None:
            await work

    def _play(self, event: AgentAudio) -> Work | None:
        """The first sound of an answer ends the caller's wait, which is measured."""
        if self._open_turn:
            self._overtaken, self._open_turn = self._open_turn, ""
        key = self._prefix + event.speech
        if self._asked_at_s is not None:
            seconds = self._clock.monotonic() - self._asked_at_s
            telemetry.record("answer", seconds, self._turn_log.call_id)
            self._turn_log.start_turn("agent", key, round(seconds * 1_000))
            self._asked_at_s = None
        self._timers.on_agent_speaks()
        self._voice.play(key, event.payload)
        return self._parts.pump.wait_if_slow()

    async def _on_caller_began(self, event: CallerBegan) -> None:
        self._timers.on_caller_began(self._clock.monotonic())
        await self._signal(CallSignal.CALLER_TALKS)
        self._open_turn = event.turn
        cut = self._voice.interrupt()
        self._turn_log.start_turn("caller", self._prefix + event.turn)
        for heard in cut:
            key = heard.speech.key
            if (
                heard.was_cut
                and key.startswith(self._prefix)
                and self._session is not None
            ):
                await self._session.truncate_speech(
                    key.removeprefix(self._prefix), heard.heard_ms
                )

    def _on_caller_text(self, event: CallerSaid) -> None:
        """Words that arrive after the answer to them began start no wait for an answer."""
        if event.turn != self._overtaken:
            self._asked_at_s = self._clock.monotonic()
            self._timers.on_caller_said(self._asked_at_s)
        self._turn_log.set_text(
            "caller", self._prefix + event.turn, event.text, event.confidence
        )
        self._on_speech("caller", event.text)

    def _start_tool(self, call: ToolCall) -> None:
        session = self._session
        if session is None or call.id in self._running_tools:
            return
        if len(self._running_tools) < MAX_RUNNING_TOOLS:
            task = self._running_tools[call.id] = asyncio.create_task(
                self._use_tool(session, call)
            )
            task.add_done_callback(lambda _: self._running_tools.pop(call.id, None))

    async def _use_tool(self, session: VoiceSession, call: ToolCall) -> None:
        answer = await self._parts.tools.run(call.name, call.arguments)
        with suppress(EngineLost):
            await session.answer_tool(call, answer.text)
        if answer.ends_call:
            await self._signal(CallSignal.AGENT_ENDS)
