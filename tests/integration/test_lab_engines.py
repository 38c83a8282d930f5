"""The emulated engines, judged by the vendors' own clients; and what they refuse."""

import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from aftercall.bridge.tools import list_tools
from aftercall.engine.deepgram_agent import make_settings
from aftercall.engine.openai_realtime import make_update
from aftercall.engine.voice import EngineOpening
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.engine import (
    EngineBehaviour,
    ScriptSay,
    ScriptToolCall,
    reply_in_order,
)
from aftercall.lab.openai_realtime import EmulatedRealtime
from aftercall.lab.speech import ToneDetector, utter
from aftercall.model.calls import Turn
from aftercall.settings.providers import DeepgramSettings, OpenAISettings
from fakes import START
from vendor_clients import PAUSE, converse_with_realtime
from voice_server import KEY

HISTORY = [
    Turn(seq=1, speaker="agent", text="Hello!", at=START),
    Turn(seq=2, speaker="caller", text="Hi.", at=START),
]
OPENING = EngineOpening("Be brief.", "Hello there!", HISTORY)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_deepgrams_own_client_holds_a_conversation_with_the_emulated_agent() -> (
    None
):
    from deepgram import AsyncDeepgramClient, DeepgramClientEnvironment
    from deepgram.agent.v1.types import AgentV1SendFunctionCallResponse, AgentV1Settings

    script = reply_in_order(
        [ScriptToolCall("search_memory", {"query": "pipes"}), ScriptSay("Nothing.")]
    )
    async with EmulatedDeepgram(KEY, script) as server:
        there = DeepgramClientEnvironment(
            base=f"http://{server.address}",
            production=f"ws://{server.address}",
            agent=f"ws://{server.address}",
            agent_rest=f"http://{server.address}",
        )
        client = AsyncDeepgramClient(api_key=KEY, environment=there)
        async with client.agent.v1.connect() as agent:
            settings = make_settings(DeepgramSettings(), OPENING, list_tools())
            await agent.send_settings(AgentV1Settings.model_validate(settings))
            kinds: list[str] = []
            ear = ToneDetector()
            async for event in agent:
                if isinstance(event, bytes):
                    list(ear.detect(event))
                    continue
                kinds.append(event.type)
                if (
                    event.type == "AgentAudioDone"
                    and kinds.count("AgentAudioDone") == 1
                ):
                    await agent.send_media(utter("Look it up.") + PAUSE)
                elif event.type == "FunctionCallRequest":
                    wanted = event.functions[0]
                    answer = AgentV1SendFunctionCallResponse(
                        type="FunctionCallResponse",
                        id=wanted.id,
                        name=wanted.name,
                        content="none",
                    )
                    await agent.send_function_call_response(answer)
                elif event.type == "AgentAudioDone":
                    break
    assert ear.finish() == "Hello there! Nothing."
    once = ["ConversationText", "AgentAudioDone"]
    assert kinds == [
        "Welcome",
        "SettingsApplied",
        *once,
        "UserStartedSpeaking",
        "ConversationText",
        "FunctionCallRequest",
        *once,
    ]


async def test_openais_own_client_holds_a_conversation_with_the_emulated_model() -> (
    None
):
    from openai import AsyncOpenAI

    async with EmulatedRealtime(KEY, reply_in_order("Which one?")) as server:
        client = AsyncOpenAI(api_key=KEY, base_url=server.base_url)
        async with client.realtime.connect(model="gpt-realtime") as connection:
            update: Any = make_update(OpenAISettings(), OPENING, list_tools())
            await connection.session.update(session=update["session"])
            kinds, transcripts = await converse_with_realtime(connection, "Open a bug.")
        await client.close()
    assert transcripts == ["Hello there!", "Open a bug.", "Which one?"]
    assert kinds[:2] == ["session.created", "session.updated"]
    assert "error" not in kinds


def test_our_first_messages_fit_the_vendors_own_types() -> None:
    from deepgram.agent.v1.types import AgentV1Settings
    from openai.types.realtime import SessionUpdateEvent

    settings = make_settings(DeepgramSettings(), OPENING, list_tools())
    parsed = AgentV1Settings.model_validate(settings)
    assert json.loads(parsed.model_dump_json(exclude_none=True)) == settings
    update = make_update(OpenAISettings(), OPENING, list_tools())
    assert (
        SessionUpdateEvent.model_validate(update).model_dump(
            mode="json", exclude_none=True, exclude_unset=True
        )
        == update
    )


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (b"\xff" * 160, "NON_SETTINGS_MESSAGE_BEFORE_SETTINGS"),
        ('{"type":"KeepAlive"}', "NON_SETTINGS_MESSAGE_BEFORE_SETTINGS"),
        ("{", "UNPARSABLE_CLIENT_MESSAGE"),
        (
            '{"type":"Settings","audio":{},"agent":{},"settings":{}}',
            "UNPARSABLE_CLIENT_MESSAGE",
        ),
        ('{"type":"Settings","audio":{}}', "INVALID_SETTINGS"),
        ('{"type":"SettingsConfiguration"}', "NON_SETTINGS_MESSAGE_BEFORE_SETTINGS"),
    ],
)
async def test_the_emulated_agent_refuses_a_wrong_first_message(
    first: str | bytes, code: str
) -> None:
    async with (
        EmulatedDeepgram(KEY, reply_in_order()) as server,
        knock(server) as socket,
    ):
        assert json.loads(await socket.recv())["type"] == "Welcome"
        await socket.send(first)
        assert json.loads(await socket.recv())["code"] == code
        await socket.wait_closed()


@pytest.mark.parametrize(
    "message",
    [
        '{"type":"Settings","audio":{},"agent":{}}',
        '{"type":"ForceEndTurn"}',
        '{"type":"KeepAlive","x":1}',
        "[object Blob]",
        "\ufffd" * 80,
    ],
)
async def test_the_emulated_agent_ends_a_session_over_what_it_does_not_know(
    message: str,
) -> None:
    async with (
        EmulatedDeepgram(KEY, reply_in_order()) as server,
        knock(server) as socket,
    ):
        await socket.recv()
        await socket.send('{"type":"Settings","audio":{},"agent":{}}')
        assert json.loads(await socket.recv())["type"] == "SettingsApplied"
        await socket.send(message)
        assert json.loads(await socket.recv())["type"] == "Error"
        await socket.wait_closed()


@pytest.mark.parametrize(
    "event",
    [
        "{",
        '{"type":"response.audio.delta"}',
        '{"type":"session.update","session":{"input_audio_format":"g711_ulaw"}}',
        '{"type":"session.update","session":{"type":"realtime","temperature":0.8}}',
        (
            '{"type":"session.update","session":{"type":"realtime","output_modalities":["audio",'
            '"text"]}}'
        ),
        '{"type":"input_audio_buffer.append","audio":"*"}',
        '{"type":"conversation.item.truncate","item_id":"x","content_index":0,"audio_end_ms":5}',
        '{"type":"response.cancel"}',
    ],
)
async def test_the_emulated_model_answers_with_an_error_and_stays(event: str) -> None:
    async with EmulatedRealtime(KEY, reply_in_order()) as server:
        url = f"ws://{server.address}/v1/realtime?model=gpt-realtime"
        async with connect(
            url, additional_headers={"Authorization": f"Bearer {KEY}"}, proxy=None
        ) as socket:
            await socket.recv()
            for _ in range(2):
                await socket.send(event)
                assert json.loads(await socket.recv())["type"] == "error"


@pytest.mark.parametrize(
    ("mood", "answer"),
    [(EngineBehaviour.FINE, "ConversationText"), (EngineBehaviour.STRICT, "Error")],
)
async def test_typed_words_of_the_caller_are_taken_unless_the_emulated_agent_is_strict(
    mood: EngineBehaviour, answer: str
) -> None:
    async with (
        EmulatedDeepgram(KEY, reply_in_order("Yes?"), behaviours=(mood,)) as server,
        knock(server) as socket,
    ):
        await socket.recv()
        await socket.send('{"type":"Settings","audio":{},"agent":{}}')
        await socket.recv()
        await socket.send('{"type":"InjectUserMessage","content":"Hello"}')
        assert json.loads(await socket.recv())["type"] == answer
        assert server.calls[0].error_codes == (
            ["UNPARSABLE_CLIENT_MESSAGE"] if mood is EngineBehaviour.STRICT else []
        )


def knock(server: EmulatedDeepgram) -> connect:
    return connect(
        server.url, additional_headers={"Authorization": f"Token {KEY}"}, proxy=None
    )


async def test_wrong_keys_and_paths_are_turned_away_at_the_door() -> None:
    async with (
        EmulatedDeepgram(KEY, reply_in_order()) as deepgram,
        EmulatedRealtime(KEY, reply_in_order()) as openai,
    ):
        for url, headers in (
            (deepgram.url, {}),
            (deepgram.url, {"Authorization": f"Bearer {KEY}"}),
            (f"ws://{deepgram.address}/agent", {"Authorization": f"Token {KEY}"}),
            (f"ws://{openai.address}/v1/realtime", {"Authorization": f"Token {KEY}"}),
        ):
            with pytest.raises(InvalidStatus, match=r"40[14]"):
                await connect(url, additional_headers=headers, proxy=None)
