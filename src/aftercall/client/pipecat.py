"""Reports the call of a Pipecat bot: `pip install 'aftercall[pipecat]'`, Pipecat 1.14 to 1.x.

    call = Client().call(caller="+15551234567", source="pipecat", sid=room)
    async with PipelineRecorder(call, aggregators, llm, transport):
        await runner.run(worker)

Only events are listened to: no processor joins the pipeline, and no audio frame is looked at.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from aftercall.client import CallBriefing, CallWriter, ClientCall, check_framework

check_framework("pipecat-ai", (1, 14), 2)

from pipecat.adapters.llm.schemas.function_schema import FunctionSchema  # noqa: E402
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema  # noqa: E402
from pipecat.frames.frames import (  # noqa: E402
    Frame,
    FunctionCallCancelFrame,
    FunctionCallFromLLM,
    FunctionCallResultFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext  # noqa: E402
from pipecat.processors.aggregators.llm_response_universal import (  # noqa: E402
    AssistantTurnStoppedMessage,
    LLMContextAggregatorPair,
    UserTurnMessageAddedMessage,
)
from pipecat.services.llm_service import FunctionCallParams, LLMService  # noqa: E402
from pipecat.transports.base_transport import BaseTransport  # noqa: E402


class PipelineRecorder:
    """A block in which a pipeline runs as a call; it gives the call.

    On entry the briefing and our tools are put into the context. Turns are stored as the
    aggregators finish them: the assistant's comes after `transport.output()`, so its text is
    what was played. Leaving the block ends the call. With `transport`, a caller who
    disconnects is told from an agent that hangs up.
    """

    def __init__(
        self,
        call: ClientCall,
        aggregators: LLMContextAggregatorPair,
        llm: LLMService[Any],
        transport: BaseTransport | None = None,
    ) -> None:
        self.call = call
        self._aggregators = aggregators
        self._context: LLMContext = aggregators.user().context
        self._llm = llm
        self._transport = transport
        self._writer = CallWriter(call)
        self._briefing = {"role": "developer", "content": ""}
        self._tools_running: dict[str, tuple[float, FunctionCallFromLLM]] = {}
        self._end_reason = "completed"

    async def __aenter__(self) -> ClientCall:
        await self.call.__aenter__()
        self._brief(self.call.briefing)
        self.call.briefing_listeners.append(self._brief)
        user, assistant = self._aggregators
        user.add_event_handler("on_user_turn_message_added", self._add_user_turn)
        assistant.add_event_handler("on_assistant_turn_stopped", self._add_agent_turn)
        self._llm.add_event_handler("on_function_calls_started", self._start_tools)
        if self._transport is not None:
            self._transport.add_event_handler(
                "on_client_disconnected", self._note_hang_up
            )
        return self.call

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._writer.end("agent_failed" if kind else self._end_reason)

    def _brief(self, briefing: CallBriefing) -> None:
        """Puts the briefing into the context, or another person's in its place."""
        if briefing.text and not self._briefing["content"]:
            self._context.add_message(self._briefing)
            self._add_tools()
        self._briefing["content"] = briefing.text

    def _add_tools(self) -> None:
        """Beside the bot's own, whose functions stay registered."""
        given = self._context.tools
        tools: list[Any] = []
        custom = None
        if isinstance(given, ToolsSchema):
            functions = {tool.name: tool.function for tool in given.direct_functions}
            tools = [functions.get(tool.name, tool) for tool in given.standard_tools]
            custom = given.custom_tools
        for tool in self.call.tools:
            form = tool["parameters"]
            tools.append(
                FunctionSchema(
                    tool["name"],
                    tool["description"],
                    form["properties"],
                    form["required"],
                    handler=self._run_tool,
                )
            )
        self._context.set_tools(ToolsSchema(tools, custom))

    async def _run_tool(self, params: FunctionCallParams) -> None:
        answer = await self.call.run_tool(params.function_name, params.arguments)
        await params.result_callback(answer)

    def _add_user_turn(
        self, source: object, message: UserTurnMessageAddedMessage
    ) -> None:
        self._writer.add_turn("caller", message.content, _read_time(message.timestamp))

    def _add_agent_turn(
        self, source: object, message: AssistantTurnStoppedMessage
    ) -> None:
        self._writer.add_turn(
            "agent",
            message.content,
            _read_time(message.timestamp),
            is_interrupted=message.interrupted,
        )

    def _start_tools(
        self, source: object, calls: Sequence[FunctionCallFromLLM]
    ) -> None:
        """Frames are looked at while a tool runs, and at no other time."""
        if not self._tools_running:
            self._llm.add_event_handler("on_after_push_frame", self._end_tool)
        for call in calls:
            self._tools_running[call.tool_call_id] = (time.monotonic(), call)

    def _end_tool(self, source: object, frame: Frame) -> None:
        """Each of these frames is pushed twice, up and down."""
        if not isinstance(frame, FunctionCallResultFrame | FunctionCallCancelFrame):
            return
        properties = getattr(frame, "properties", None)
        is_final = properties is None or properties.is_final
        if is_final and frame.tool_call_id in self._tools_running:
            started, call = self._tools_running.pop(frame.tool_call_id)
            ms = 1e3 * (time.monotonic() - started)
            self._writer.add_tool_use(call.function_name, ms, call.arguments)
        if not self._tools_running:
            self._llm.remove_event_handler("on_after_push_frame", self._end_tool)

    def _note_hang_up(self, source: object, *client: object) -> None:
        self._end_reason = "caller_hung_up"


def _read_time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
