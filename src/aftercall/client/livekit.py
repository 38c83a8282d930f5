"""Reports the call of a LiveKit agent: `pip install 'aftercall[livekit]'`, Agents 1.8 to 1.x.

    caller = await ctx.wait_for_participant()
    call = Client().call(**describe_caller(caller))
    await SessionRecorder(call, session, agent).start()
    await session.start(agent, room=ctx.room)

Only events of the session are listened to.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from aftercall.client import CallBriefing, CallWriter, ClientCall, check_framework

check_framework("livekit-agents", (1, 8), 2)

from livekit import rtc  # noqa: E402
from livekit.agents import (  # noqa: E402
    Agent,
    AgentSession,
    CloseEvent,
    CloseReason,
    ConversationItemAddedEvent,
    FunctionToolsExecutedEvent,
    get_job_context,
)
from livekit.agents.llm import ChatMessage, function_tool  # noqa: E402

SOURCE = "livekit"
_NUMBER = re.compile(r"\+?\d{3,15}")
_END_REASONS = {
    CloseReason.PARTICIPANT_DISCONNECTED: "caller_hung_up",
    CloseReason.ERROR: "agent_failed",
}


def describe_caller(participant: rtc.RemoteParticipant) -> dict[str, Any]:
    """What `Client.call` takes of a participant. Of a telephone caller: the numbers, too.

    A number that is withheld is left out. A call that the agent placed has no dispatch rule.
    """
    attributes: Mapping[str, str] = participant.attributes
    sid = attributes.get("sip.callID") or participant.sid
    described = {"source": SOURCE, "sid": sid, "direction": "inbound"}
    if participant.kind != rtc.ParticipantKind.PARTICIPANT_KIND_SIP:
        return described
    numbers = {
        "caller": attributes.get("sip.phoneNumber", ""),
        "callee": attributes.get("sip.trunkPhoneNumber", ""),
    }
    if not attributes.get("sip.ruleID"):
        described["direction"] = "outbound"
        numbers = dict(zip(numbers, reversed(numbers.values()), strict=True))
    known = {name: text for name, text in numbers.items() if _NUMBER.fullmatch(text)}
    return described | known


class SessionRecorder:
    """Stores what is said in a session, and ends the call when the session closes.

    `start` puts the briefing into the agent's instructions and gives it our tools. Turns are
    stored as the session adds them to its history: of an agent that was interrupted, what
    was heard. In a LiveKit job, the job waits until the end of the call is stored; elsewhere
    use `async with`, or await `close`.
    """

    def __init__(self, call: ClientCall, session: AgentSession[Any], agent: Agent):
        self.call = call
        self._session = session
        self._agent = agent
        self._writer = CallWriter(call)
        self._instructions: dict[Agent, str] = {}  # of the agents that are briefed
        self._briefing: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def start(self) -> ClientCall:
        await self.call.__aenter__()
        await self.brief(self._agent)
        self.call.briefing_listeners.append(self._start_briefing)
        self._session.on("conversation_item_added", self._add_turn)
        self._session.on("function_tools_executed", self._add_tool_uses)
        self._session.on("close", self._on_close)
        job = get_job_context(required=False)
        if job is not None:
            job.add_shutdown_callback(self.close)
        return self.call

    async def close(self) -> None:
        """Returns when the end of the call is on disk. The session should be closed by then."""
        self._end("completed")
        if self._ending is not None:
            await self._ending

    async def __aenter__(self) -> ClientCall:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._end("agent_failed")
        await self.close()

    async def brief(self, agent: Agent) -> None:
        """Also for an agent that the session is handed to: gives it the briefing and our tools."""
        given = agent.instructions
        own = given if isinstance(given, str) else given.render(modality="audio")
        self._instructions[agent] = own
        await self._update(agent)

    async def _update(self, agent: Agent) -> None:
        """Puts the briefing behind the own instructions of the agent, and adds our tools once."""
        if not self.call.briefing.text:
            return  # the server is away; it may come back
        text = f"{self._instructions[agent]}\n\n{self.call.briefing.text}"
        await agent.update_instructions(text)
        known = {tool.id for tool in agent.tools}
        new = [tool for tool in self.call.tools if tool["name"] not in known]
        if new:
            ours = [self._make_tool(tool) for tool in new]
            await agent.update_tools([*agent.tools, *ours])

    def _start_briefing(self, briefing: CallBriefing) -> None:
        self._briefing = asyncio.create_task(self._brief_again())

    async def _brief_again(self) -> None:
        for agent in list(self._instructions):
            await self._update(agent)

    def _make_tool(self, tool: Mapping[str, Any]) -> Any:
        async def run(raw_arguments: dict[str, object]) -> str:
            return await self.call.run_tool(tool["name"], raw_arguments)

        return function_tool(run, raw_schema=dict(tool))

    def _add_turn(self, event: ConversationItemAddedEvent) -> None:
        item = event.item
        if isinstance(item, ChatMessage) and item.role in ("user", "assistant"):
            self._writer.add_turn(
                "caller" if item.role == "user" else "agent",
                item.text_content or "",
                item.created_at,
                confidence=item.transcript_confidence,
                is_interrupted=item.interrupted,
            )

    def _add_tool_uses(self, event: FunctionToolsExecutedEvent) -> None:
        for call, output in event.zipped():
            ms = 1e3 * max(output.created_at - call.created_at, 0)
            self._writer.add_tool_use(call.name, ms, _read_json(call.arguments))

    def _on_close(self, event: CloseEvent) -> None:
        self._end(_END_REASONS.get(event.reason, "completed"))

    def _end(self, reason: str) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._writer.end(reason))


def _read_json(arguments: str) -> object:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments
