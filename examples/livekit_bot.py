"""A LiveKit agent that remembers its callers. Two calls, no key, no telephone, no LiveKit server:

    make livekit

The agent is an ordinary one. Its model is a stand-in at the end of this file, and the caller's
words are typed into the session. In a job with a room, `answer_call` is the entrypoint:

    async def entrypoint(ctx: JobContext) -> None:
        await ctx.connect()
        caller = await ctx.wait_for_participant()
        call = Client().call(**describe_caller(caller))  # with the numbers of a SIP call
        ...
        await SessionRecorder(call, session, agent).start()  # the job waits for the end
        await session.start(agent, room=ctx.room)
"""

import asyncio
import json
import uuid
from collections.abc import Sequence
from typing import Any

from livekit.agents import Agent, AgentSession, ConversationItemAddedEvent, llm
from stand_ins import answer_from, choose_request, find_server

from aftercall.client import Client
from aftercall.client.livekit import SessionRecorder

CALLER = "+15550100"
CALLS = (
    ["This is Maya. Please call the plumber about the leak."],
    ["Do you remember what I asked you about the plumber?"],
)


async def answer_call(client: Client, said: Sequence[str]) -> None:
    """Everything of Aftercall is in the two lines with `call`."""
    session: AgentSession[None] = AgentSession(llm=RuleModel())
    agent = Agent(instructions="You answer the telephone of a small office.")
    session.on("conversation_item_added", show)
    call = client.call(caller=CALLER, source="livekit", sid=uuid.uuid4().hex)
    async with SessionRecorder(call, session, agent):
        print(f"The agent's instructions now:\n{agent.instructions}\n")
        await session.start(agent)
        await session.say(call.briefing.greeting)
        for text in said:
            await session.run(user_input=text)
        await session.aclose()


def show(event: ConversationItemAddedEvent) -> None:
    if isinstance(event.item, llm.ChatMessage):
        who = "Caller" if event.item.role == "user" else "Agent"
        print(f"{who}: {event.item.text_content}")


async def main() -> None:
    async with Client() as client:
        for said in CALLS:
            print("\n--- the telephone rings ---")
            await answer_call(client, said)


class RuleModel(llm.LLM):
    """A stand-in: takes down what the caller asks for with "please", or answers from memory."""

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: Any = None,
        **options: Any,
    ) -> llm.LLMStream:
        return RuleStream(
            self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options
        )


class RuleStream(llm.LLMStream):
    async def _run(self) -> None:
        items = self._chat_ctx.items
        delta = llm.ChoiceDelta(role="assistant")
        said = getattr(items[-1], "text_content", None) or ""
        if isinstance(items[-1], llm.FunctionCallOutput):
            delta.content = "I have written that down."
        elif request := choose_request(said):
            use = {"name": "take_request", "arguments": json.dumps(request)}
            delta.tool_calls = [llm.FunctionToolCall(call_id=uuid.uuid4().hex, **use)]
        else:
            told = [getattr(item, "text_content", None) or "" for item in items[:-1]]
            delta.content = answer_from("\n".join(told), said)
        self._event_ch.send_nowait(llm.ChatChunk(id="1", delta=delta))


if __name__ == "__main__":
    with find_server():
        asyncio.run(main())
