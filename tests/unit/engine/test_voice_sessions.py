"""What the engines' messages mean, message by message: the odd ones, the late ones and the
broken ones.
"""

import json
from base64 import b64encode
from typing import Any, cast

import pytest
from websockets.asyncio.server import ServerConnection, serve

from aftercall.engine.deepgram_agent import DeepgramSession
from aftercall.engine.openai_realtime import RealtimeSession
from aftercall.engine.voice import (
    AgentAudio,
    AgentDone,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    ToolCall,
    ToolCancelled,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import EngineLost, EngineRefused
from aftercall.sockets.client import MAX_UNSENT_BYTES, EngineSocket
from aftercall.sockets.mailbox import Handler


class FakeSocket:
    """An EngineSocket that says what it was given and remembers what it was sent."""

    has_room = True

    def __init__(self, *messages: dict[str, Any] | str | bytes) -> None:
        self.sent: list[Any] = []
        self._messages = [
            json.dumps(message) if isinstance(message, dict) else message
            for message in messages
        ]

    async def deliver(self, handle: Handler[str | bytes]) -> None:
        for message in self._messages:
            assert handle(message) is None

    def send(self, message: str | bytes) -> None:
        self.sent.append(json.loads(message) if isinstance(message, str) else message)

    def send_json(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


async def read(session: VoiceSession) -> list[VoiceEvent]:
    events: list[VoiceEvent] = []
    await session.run(events.append)
    return events


async def deepgram(*messages: dict[str, Any] | str | bytes) -> list[VoiceEvent]:
    return await read(DeepgramSession(cast(EngineSocket, FakeSocket(*messages))))


async def openai(
    *messages: dict[str, Any] | str | bytes,
) -> tuple[list[VoiceEvent], RealtimeSession, FakeSocket]:
    socket = FakeSocket(*messages)
    session = RealtimeSession(cast(EngineSocket, socket))
    return await read(session), session, socket


def text(role: str, content: str) -> dict[str, Any]:
    return {"type": "ConversationText", "role": role, "content": content}


BEGAN = {"type": "UserStartedSpeaking"}
DONE = {"type": "AgentAudioDone"}


async def test_late_audio_of_an_interrupted_deepgram_speech_is_dropped() -> None:
    """It is dropped until something new begins."""
    events = await deepgram(
        text("assistant", "Hello."),
        b"a",
        BEGAN,
        b"late",
        b"later",
        text("user", "Hi."),
        b"b",
        DONE,
    )
    assert events == [
        AgentText("s1", "Hello."),
        AgentAudio("s1", b"a"),
        CallerBegan("t1"),
        CallerSaid("t1", "Hi."),
        AgentAudio("s2", b"b"),
        AgentDone("s2"),
    ]


async def test_a_deepgram_speech_has_several_sentences_and_a_turn_several_pieces() -> (
    None
):
    events = await deepgram(
        text("assistant", "One."),
        b"a",
        text("assistant", "Two."),
        b"b",
        DONE,
        BEGAN,
        text("user", "A"),
        text("user", "B"),
    )
    assert (
        "".join(event.text for event in events if isinstance(event, AgentText))
        == "One. Two."
    )
    assert [event for event in events if isinstance(event, CallerSaid)] == [
        CallerSaid("t1", "A"),
        CallerSaid("t2", "B"),
    ]


async def test_a_cough_opens_one_turn_only() -> None:
    assert await deepgram(BEGAN, BEGAN, text("user", "Hi.")) == [
        CallerBegan("t1"),
        CallerBegan("t1"),
        CallerSaid("t1", "Hi."),
    ]


async def test_what_deepgram_says_beyond_what_we_know_is_harmless() -> None:
    odd: list[dict[str, Any] | str | bytes] = [
        {"type": "LatencyReport", "tts_latency": 0.2},
        {"type": "Warning", "code": "SLOW_THINK_REQUEST", "description": "x"},
        {"type": "InjectionRefused", "message": "x"},
        {"type": 7},
        {"type": "ConversationText"},
        {"type": "FunctionCallRequest", "functions": "none"},
        "not json",
        "[1]",
        b"",
    ]
    assert await deepgram(*odd) == []


async def test_deepgram_tools_on_our_side_are_called_and_may_be_cancelled() -> None:
    ours = {"id": "1", "name": "end_call", "arguments": "{}", "client_side": True}
    theirs = {"id": "2", "name": "lookup", "arguments": "{}", "client_side": False}
    asked = {"type": "FunctionCallRequest", "functions": [ours, theirs]}
    cancelled = {
        "type": "FunctionCallCancelled",
        "functions": [{"id": "1", "name": "end_call"}],
    }
    assert await deepgram(asked, cancelled) == [
        ToolCall("1", "end_call", "{}"),
        ToolCancelled("1"),
    ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("CLIENT_MESSAGE_TIMEOUT", EngineLost),
        ("INVALID_SETTINGS", EngineRefused),
        ("what the caller said!", EngineLost),
    ],
)
async def test_every_deepgram_error_ends_the_session_and_its_description_is_not_repeated(
    code: str, kind: type[EngineLost]
) -> None:
    with pytest.raises(EngineLost) as lost:
        await deepgram({"type": "Error", "code": code, "description": "canary"})
    assert type(lost.value) is kind
    assert "canary" not in str(lost.value)
    assert "caller said" not in str(lost.value)


def delta(item: str, payload: bytes) -> dict[str, Any]:
    return {
        "type": "response.output_audio.delta",
        "item_id": item,
        "delta": b64encode(payload).decode(),
    }


async def test_audio_of_an_interrupted_openai_item_is_dropped_and_only_of_that() -> (
    None
):
    began = {"type": "input_audio_buffer.speech_started", "item_id": "c1"}
    late = {
        "type": "response.output_audio_transcript.delta",
        "item_id": "a1",
        "delta": " late",
    }
    done = {"type": "response.output_audio.done", "item_id": "a1"}
    events, _, _ = await openai(
        delta("a1", b"x"), began, delta("a1", b"y"), late, done, delta("a2", b"z")
    )
    assert events == [AgentAudio("a1", b"x"), CallerBegan("c1"), AgentAudio("a2", b"z")]


async def test_a_cancelled_openai_answer_keeps_only_the_words_that_came_before() -> (
    None
):
    said = {
        "type": "response.output_audio_transcript.delta",
        "item_id": "a1",
        "delta": "Your order",
    }
    began = {"type": "input_audio_buffer.speech_started", "item_id": "c1"}
    told = {
        "type": "response.output_audio_transcript.done",
        "item_id": "a1",
        "transcript": "Your order ships tomorrow.",
    }
    part = {
        "type": "message",
        "status": "incomplete",
        "content": [{"type": "output_audio", "transcript": told["transcript"]}],
    }
    item = {"type": "response.output_item.done", "item": {"id": "a1", **part}}
    ended = {
        "type": "response.done",
        "response": {
            "status": "cancelled",
            "status_details": {"reason": "turn_detected"},
        },
    }
    events, session, socket = await openai(
        delta("a1", b"x" * 800), said, began, told, item, ended
    )
    assert events == [
        AgentAudio("a1", b"x" * 800),
        AgentText("a1", "Your order"),
        CallerBegan("c1"),
    ]
    await session.truncate_speech("a1", 40)
    assert socket.sent == [
        {
            "type": "conversation.item.truncate",
            "item_id": "a1",
            "content_index": 0,
            "audio_end_ms": 40,
        }
    ]


async def test_audio_goes_out_as_bytes_and_words_as_text() -> None:
    socket = FakeSocket()
    session = DeepgramSession(cast(EngineSocket, socket))
    session.send_audio(b"[object Blob]")
    await session.keep_alive()
    await session.say("One moment.")
    assert socket.sent == [
        b"[object Blob]",
        {"type": "KeepAlive"},
        {"type": "InjectAgentMessage", "message": "One moment."},
    ]


async def test_an_item_is_never_cut_beyond_its_length() -> None:
    _, session, socket = await openai(delta("a1", b"x" * 800))
    await session.truncate_speech("a1", 100)
    await session.truncate_speech("a1", 500)
    assert socket.sent == []
    await session.truncate_speech("a1", 60)
    assert socket.sent == [
        {
            "type": "conversation.item.truncate",
            "item_id": "a1",
            "content_index": 0,
            "audio_end_ms": 60,
        }
    ]


async def test_unclear_words_and_broken_frames_of_openai_are_told_or_skipped() -> None:
    kind = "conversation.item.input_audio_transcription"
    events, _, _ = await openai(
        {"type": f"{kind}.failed", "item_id": "c1"},
        {"type": f"{kind}.completed", "item_id": "c2", "transcript": " "},
        {"type": f"{kind}.completed", "item_id": "c3", "transcript": "Hi."},
        {"type": "response.output_audio.delta", "item_id": "a1", "delta": "*"},
        {"type": "response.output_audio.delta"},
        {"type": "error", "error": {"code": "x", "message": "canary"}},
        {"type": "rate_limits.updated"},
        "not json",
    )
    assert events == [CallerUnclear("c1"), CallerUnclear("c2"), CallerSaid("c3", "Hi.")]


def wanted(call_id: str, status: str = "completed") -> dict[str, Any]:
    item = {
        "type": "function_call",
        "status": status,
        "call_id": call_id,
        "name": "end_call",
        "arguments": "{}",
    }
    return {"type": "response.output_item.done", "item": item}


async def test_openai_goes_on_once_when_all_its_tools_have_answered() -> None:
    events, session, socket = await openai(
        wanted("1"), wanted("2"), wanted("3", "incomplete")
    )
    assert [event.id for event in events if isinstance(event, ToolCall)] == ["1", "2"]
    for event in events:
        assert isinstance(event, ToolCall)
        await session.answer_tool(event, "ok")
    assert [message["type"] for message in socket.sent] == [
        "conversation.item.create",
        "conversation.item.create",
        "response.create",
    ]


async def test_an_answer_that_failed_counts_as_lost() -> None:
    with pytest.raises(EngineLost):
        await openai({"type": "response.done", "response": {"status": "failed"}})
    events, _, _ = await openai(
        {"type": "response.done", "response": {"status": "cancelled"}},
        {"type": "response.done"},
    )
    assert events == []


async def test_an_engine_that_does_not_read_costs_no_memory_and_holds_nothing_up() -> (
    None
):
    async def ignore(connection: ServerConnection) -> None:
        connection.transport.pause_reading()
        await connection.wait_closed()

    async with serve(ignore, "127.0.0.1", 0, close_timeout=0.1) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        socket = await EngineSocket.open(f"ws://127.0.0.1:{port}/", {}, "deaf")
        session = DeepgramSession(socket)
        for _ in range(150_000):
            session.send_audio(b"\xff" * 160)
        assert not socket.has_room
        assert socket.unsent_bytes <= MAX_UNSENT_BYTES + 200
        socket.abort()
        for connection in server.connections:
            connection.transport.abort()
