"""What the agent may do during a call: search the memory, take a request down, hang up.

Its arguments are input from outside: they are checked, and every answer is a sentence that the
agent can use. A request is on disk before the agent is told so.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from aftercall.clock import Clock, attempt
from aftercall.engine.voice import END_CALL, TAKE_REQUEST, TAKEN_DOWN, Tool
from aftercall.errors import AftercallError
from aftercall.faults import fault_point
from aftercall.log import get_logger
from aftercall.model.calls import REQUEST_EVENT, LiveCall, to_refused_input
from aftercall.model.json_fields import Json
from aftercall.model.reading import RequestKind

TOOL_TIMEOUT_S = 3.0
MAX_ARGUMENTS_CHARS = 20_000
MAX_RESULTS = 5
MAX_RESULT_CHARS = 500
NOT_WRITTEN = "It could not be written down. Ask the caller to call again later."
NOT_NOW = "That did not work just now. Say so; you may offer to take it down instead."
NO_SUCH_TOOL = "There is no such tool."
NOTHING_FOUND = "Nothing was found. Say so politely; do not guess."

log = get_logger("tools")

Recall = Callable[[LiveCall, str], Awaitable[Sequence[str]]]
"""Searches the memory for the agent: short texts that this caller may hear."""
RecordEvent = Callable[[str, Json], Awaitable[None]]
"""Returns when the event is on disk, and the words before it."""


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchMemory(_Arguments):
    query: str = Field(
        min_length=1, max_length=500, description="what to look for, in a few words"
    )


class TakeRequest(_Arguments):
    kind: RequestKind = Field(default="other", description="what sort of request it is")
    title: str = Field(
        min_length=1,
        max_length=200,
        description="what the caller wants done, in one line",
    )
    details: str = Field(
        default="",
        max_length=4_000,
        description="everything else that matters for doing it",
    )
    person: str = Field(
        default="",
        max_length=200,
        description="whom it concerns, if the caller named somebody",
    )
    due: Annotated[
        date | None, WithJsonSchema({"type": "string", "format": "date"})
    ] = Field(default=None, description="by which day")


class EndCall(_Arguments):
    pass


_FORMS: dict[str, tuple[type[_Arguments], str]] = {
    "search_memory": (
        SearchMemory,
        "Look up what is known from earlier calls of this caller.",
    ),
    TAKE_REQUEST: (
        TakeRequest,
        "Take down something the caller wants done. The work itself is done after the call.",
    ),
    END_CALL: (
        EndCall,
        "Hang up. Say goodbye first; use it only when the caller is done.",
    ),
}


@dataclass(frozen=True)
class ToolResult:
    """The answer to the agent, and whether the call ends."""

    text: str = field(repr=False)
    ends_call: bool = False


def list_tools() -> list[Tool]:
    return [
        Tool(name, description, _schema(form))
        for name, (form, description) in _FORMS.items()
    ]


class Toolbox:
    """The tools an agent may use during a call."""

    def __init__(
        self,
        call: LiveCall,
        record_event: RecordEvent,
        recall: Recall,
        clock: Clock,
    ) -> None:
        self._call = call
        self._record_event = record_event
        self._recall = recall
        self._clock = clock

    async def run(self, name: str, arguments: str) -> ToolResult:
        """Never raises: a failure is an answer, too."""
        if name not in _FORMS:
            return ToolResult(NO_SUCH_TOOL)
        try:
            given = _FORMS[name][0].model_validate(_parse(arguments))
        except ValidationError as error:
            return ToolResult(f"That cannot be used: {to_refused_input(error)}.")
        except ValueError:
            return ToolResult(
                "That cannot be used: the arguments are not a JSON object."
            )
        try:
            return await attempt(self._clock, TOOL_TIMEOUT_S, self._do(given))
        except AftercallError as error:
            log.warning(
                "a tool failed", call=self._call.id, tool=name, error=error.code
            )
            return ToolResult(NOT_WRITTEN if name == TAKE_REQUEST else NOT_NOW)

    async def _do(self, given: _Arguments) -> ToolResult:
        if isinstance(given, SearchMemory):
            return await self._search(given)
        if isinstance(given, TakeRequest):
            return await self._record_request(given)
        return ToolResult(
            "The call ends when you have finished speaking.", ends_call=True
        )

    async def _search(self, given: SearchMemory) -> ToolResult:
        found = await self._recall(self._call, given.query)
        if not found:
            return ToolResult(NOTHING_FOUND)
        texts = [text[:MAX_RESULT_CHARS] for text in found[:MAX_RESULTS]]
        return ToolResult(json.dumps(texts, ensure_ascii=False))

    async def _record_request(self, given: TakeRequest) -> ToolResult:
        given_fields = given.model_dump(mode="json", exclude_none=True).items()
        data = {name: value for name, value in given_fields if value != ""}
        try:
            await self._record_event(REQUEST_EVENT, data)
        except asyncio.CancelledError:
            return ToolResult(NOT_WRITTEN)
        fault_point("bridge.after_request")
        return ToolResult(
            f"{TAKEN_DOWN} It will be worked on after the call; do not say that it is done."
        )


def _parse(arguments: str) -> Any:
    if len(arguments) > MAX_ARGUMENTS_CHARS:
        raise ValueError("too long")
    try:
        return json.loads(arguments or "{}")
    except RecursionError:
        raise ValueError("too deep") from None


def _schema(form: type[_Arguments]) -> Json:
    """Only the plainest fields: engines differ in what else they understand."""
    schema = form.model_json_schema()
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema["properties"].items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
    }
