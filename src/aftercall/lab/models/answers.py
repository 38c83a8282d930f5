"""Answers Aftercall's own questions to a model: reads the transcript in the request by rules.

The fields of the requested form tell which question it is. Other requests get a sentence.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aftercall.lab.models.script import ScriptedQuestion
from aftercall.llm.cached_reader import compose_greeting, to_summary
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import Call
from aftercall.model.reading import Reading
from aftercall.model.turns import Turn

AGENT_NAME = "Wren"
_TURN = re.compile(r"^\[(\d+)\] (Agent|Caller): (.*)$", re.MULTILINE)
_KNOWN_NAME = re.compile(r"^=== name [0-9a-f]{16}\n(.+)\n===", re.MULTILINE)
_DAY = re.compile(r"\b(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC")


def answer_question(asked: ScriptedQuestion) -> str:
    """The form is a schema beside the request, or part of the system prompt."""
    fields = set((asked.schema or {}).get("properties", {}))
    fields = fields or set(re.findall(r'"(\w+)": \{', asked.system))
    reading = RulesReader().read(parse_call(asked.data))
    for field, respond in _BY_FIELD.items():
        if field in fields:
            return json.dumps(respond(reading, asked), ensure_ascii=False)
    return "The caller called."


def parse_call(data: str) -> Call:
    """The call that a transcript shows."""
    at = datetime(2026, 2, 13, tzinfo=UTC)
    if day := _DAY.search(data):
        at = datetime.strptime(f"{day[1]} {day[2]}", "%Y-%m-%d %H:%M").replace(
            tzinfo=UTC
        )
    said = [
        Turn.model_validate(
            {"seq": seq, "speaker": speaker.lower(), "text": text, "at": at}
        )
        for seq, (_, speaker, text) in enumerate(_TURN.findall(data), 1)
    ]
    return Call(source="lab", sid="lab", started_at=at, ended_at=at, turns=tuple(said))


def _summary(reading: Reading, _: ScriptedQuestion) -> dict[str, Any]:
    return to_summary(reading).model_dump()


def _profile(reading: Reading, _: ScriptedQuestion) -> dict[str, Any]:
    topics = "; ".join(request.title for request in reading.requests)
    return reading.profile.model_dump() | {
        "context": f"Asked for: {topics}" if topics else None
    }


def _identity(reading: Reading, _: ScriptedQuestion) -> dict[str, Any]:
    name = reading.identity.name or AGENT_NAME
    return reading.identity.model_dump() | {"name": name, "vibe": "brisk and kind"}


def _greeting(reading: Reading, asked: ScriptedQuestion) -> dict[str, Any]:
    known = _KNOWN_NAME.search(asked.data)
    name = (known[1] if known else None) or reading.profile.spoken_name
    return {
        "sentence": compose_greeting(
            name, [request.title for request in reading.requests]
        )
    }


def _requests(reading: Reading, _: ScriptedQuestion) -> dict[str, Any]:
    return reading.model_dump(
        mode="json", include={"requests", "withdrawn", "promises"}
    )


def _facts(reading: Reading, _: ScriptedQuestion) -> dict[str, Any]:
    return reading.model_dump(mode="json", include={"facts"})


def _reply(reading: Reading, asked: ScriptedQuestion) -> dict[str, Any]:
    last = _TURN.findall(asked.data)[-1:]
    heard = last[0][2] if last else ""
    return {"say": f"Certainly: {heard}", "ends_call": "bye" in heard.lower()}


_BY_FIELD: dict[str, Callable[[Reading, ScriptedQuestion], dict[str, Any]]] = {
    "topics": _summary,
    "call_name": _profile,
    "creature": _identity,
    "sentence": _greeting,
    "requests": _requests,
    "say": _reply,
    "facts": _facts,
}
