"""The platforms' own SDKs list the lab's calls, and read what Aftercall answers them."""

from collections.abc import Iterator
from datetime import timedelta
from queue import Queue
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from aftercall.clock import SystemClock
from aftercall.hosted.adapters import Retell, Vapi
from aftercall.hosted.platform import PlatformToolCall
from aftercall.lab.hosted import (
    LAB_AGENT,
    LAB_ASSISTANT,
    EmulatedPlatform,
    LabHostedCall,
)
from aftercall.lab.server import Lab
from aftercall.lab.telnyx import TelnyxCall
from loopback_server import lab_box

CALLS = 3
VARIABLES: dict[str, str | bool] = {
    "first_words": "Hello, Ann.",
    "is_known_caller": True,
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_box() as lab:
        for platform in lab.platforms.values():
            add_calls(platform)
        yield lab


def add_calls(platform: EmulatedPlatform) -> None:
    for number in range(CALLS):
        at = SystemClock().now() - timedelta(minutes=10 + number)
        call = LabHostedCall(f"call-{number}", "", "+15550100", "+15550101", at)
        call.turns.append(("user", "Hello", at))
        call.ended_at = at + timedelta(seconds=5)
        platform.calls[call.id] = call


def test_elevenlabs_client_lists_and_reads_conversations(lab: Lab) -> None:
    from elevenlabs.client import ElevenLabs

    with httpx.Client() as http:
        client = ElevenLabs(
            api_key=lab.elevenlabs.key, base_url=lab.address, httpx_client=http
        )
        read_conversations(client.conversational_ai.conversations)


def read_conversations(conversations: Any) -> None:
    first = conversations.list(page_size=2)
    assert (len(first.conversations), first.has_more) == (2, True)
    rest = conversations.list(page_size=2, cursor=first.next_cursor)
    assert [item.conversation_id for item in rest.conversations] == ["call-2"]
    whole = conversations.get("call-0")
    assert (whole.status, whole.transcript[0].message) == ("done", "Hello")


def test_retells_client_lists_and_reads_calls(lab: Lab) -> None:
    retell = pytest.importorskip("retell")
    with retell.Retell(api_key=lab.retell.key, base_url=lab.address) as client:
        read_retell_calls(client)
    with (
        retell.Retell(api_key="wrong", base_url=lab.address) as stranger,
        pytest.raises(retell.AuthenticationError),
    ):
        stranger.call.retrieve("call-0")


def read_retell_calls(client: Any) -> None:
    since = {"type": "number", "op": "ge", "value": 0}
    criteria = {"start_timestamp": since}
    first = client.call.list(filter_criteria=criteria, limit=2)
    assert (len(first.items), first.has_more) == (2, True)
    key = first.pagination_key
    rest = client.call.list(filter_criteria=criteria, limit=2, pagination_key=key)
    assert [item.call_id for item in rest.items] == ["call-0"]
    whole = client.call.retrieve("call-0")
    assert whole.transcript_object[0].content == "Hello"


def test_retells_own_check_and_ours_take_the_same_signature(lab: Lab) -> None:
    verify = pytest.importorskip("retell.lib.webhook_auth").verify
    raw = b'{"event":"call_inbound","call_inbound":{"from_number":"+15550100"}}'
    header = lab.retell.sign(raw)
    signature = header["x-retell-signature"]
    ours = Retell(SecretStr(lab.retell.webhook_secret))
    now = SystemClock().now()
    for body in (raw, raw + b" "):
        theirs = verify(body.decode(), lab.retell.webhook_secret, signature)
        assert ours.is_genuine(header, body, now) == theirs == (body == raw)


def test_vapis_client_lists_and_reads_calls(lab: Lab) -> None:
    vapi = pytest.importorskip("vapi")
    with httpx.Client() as http:
        client = vapi.Vapi(token=lab.vapi.key, base_url=lab.address, httpx_client=http)
        read_vapi_calls(client)


def read_vapi_calls(client: Any) -> None:
    found = client.calls.list(limit=2)
    assert [call.id for call in found] == ["call-0", "call-1"]
    older = client.calls.list(created_at_le=found[-1].created_at)
    assert [call.id for call in older] == ["call-1", "call-2"]
    whole = client.calls.get("call-0")
    assert (whole.status, whole.ended_reason) == ("ended", "customer-ended-call")
    assert whole.artifact.messages[0].message == "Hello"


def test_vapis_client_chats_with_the_labs_assistant(lab: Lab) -> None:
    vapi = pytest.importorskip("vapi")
    with httpx.Client() as http:
        client = vapi.Vapi(token=lab.vapi.key, base_url=lab.address, httpx_client=http)
        assert client.assistants.get(LAB_ASSISTANT).id == LAB_ASSISTANT
        first = client.chats.create(assistant_id=LAB_ASSISTANT, input="Please call.")
        assert first.output[0].tool_calls[0].function.name == "take_request"
        second = client.chats.create(
            assistant_id=LAB_ASSISTANT, input="Hello.", previous_chat_id=first.id
        )
        assert second.output[0].content == "How can I help?"


def test_retells_client_chats_with_the_labs_agent(lab: Lab) -> None:
    retell = pytest.importorskip("retell")
    with retell.Retell(api_key=lab.retell.key, base_url=lab.address) as client:
        chat = client.chat.create(agent_id=LAB_AGENT)
        assert chat.message_with_tool_calls[0].content == "Hello, this is the lab."
        said = "Please call. Goodbye."
        answer = client.chat.create_chat_completion(chat_id=chat.chat_id, content=said)
        roles = [message.role for message in answer.messages]
        assert roles == ["agent", "tool_call_invocation"]
        assert answer.messages[1].type == "end_call"
        client.chat.end(chat.chat_id)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the client
def test_elevenlabs_client_converses_with_the_labs_agent_by_text(lab: Lab) -> None:
    from elevenlabs.client import ElevenLabs
    from elevenlabs.conversational_ai.conversation import Conversation

    heard: Queue[str] = Queue()
    with httpx.Client() as http:
        client = ElevenLabs(
            api_key=lab.elevenlabs.key, base_url=lab.address, httpx_client=http
        )
        conversation = Conversation(
            client, LAB_AGENT, requires_auth=True, callback_agent_response=heard.put
        )
        conversation.start_session()
        assert heard.get(timeout=30) == "Hello, this is the lab."
        conversation.send_user_message("Goodbye.")
        assert heard.get(timeout=30) == "Goodbye."
        conversation.wait_for_session_end()


def test_vapis_types_hold_what_we_answer() -> None:
    pytest.importorskip("vapi")
    from vapi.types.server_message_response_assistant_request import (  # type: ignore[import-not-found]
        ServerMessageResponseAssistantRequest,
    )
    from vapi.types.server_message_response_tool_calls import (  # type: ignore[import-not-found]
        ServerMessageResponseToolCalls,
    )

    ours = Vapi(None, "assistant-1")
    start: Any = ServerMessageResponseAssistantRequest.model_validate(
        ours.answer_start(VARIABLES)
    )
    assert start.assistant_id == "assistant-1"
    overrides = start.assistant_overrides
    assert overrides.first_message == "Hello, Ann."
    assert overrides.variable_values == VARIABLES
    used = PlatformToolCall("call_1", "search_memory", "{}")
    told: Any = ServerMessageResponseToolCalls.model_validate(
        ours.answer_tools([(used, "two\nlines")])
    )
    result = told.results[0]
    assert (result.tool_call_id, result.name) == ("call_1", "search_memory")
    assert result.result == "two lines"


def test_twilios_and_telnyx_clients_list_what_rang(lab: Lab) -> None:
    from telnyx import Telnyx
    from twilio.rest import Client

    twilio = Client(lab.exchange.account_sid, lab.exchange.auth_token)
    twilio.api.base_url = lab.address
    for _ in range(3):
        twilio.calls.create(to="+15550109", from_="+15550100", twiml="<Response/>")
    assert len(twilio.calls.list(page_size=2)) == 3
    call = TelnyxCall("v3:1", "leg-1", "session-1", "+15550100", "+15550101", "")
    for kind in ("call.initiated", "call.hangup"):
        lab.telnyx.make_event(call, kind, {"direction": "incoming"})
    there = f"{lab.address}/v2"
    with Telnyx(api_key=lab.telnyx.api_key, base_url=there) as telnyx:
        found = list(telnyx.call_events.list(page_size=1))
    assert [event.name for event in found] == ["call.initiated", "call.hangup"]
    assert found[0].call_leg_id == "leg-1"
