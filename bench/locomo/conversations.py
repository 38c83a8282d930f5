"""LoCoMo conversations as calls of our own: a conversation is a caller, a session is a call, a
turn is a turn.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aftercall.model.calls import Call

ASKED = (1, 2, 3, 4)  # the fifth category asks for what was never said
_EVIDENCE = re.compile(r"D(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True)
class Question:
    text: str
    category: int
    evidence: frozenset[tuple[str, int]]
    """Call id and turn number."""


@dataclass(frozen=True)
class Conversation:
    name: str
    caller: str
    voices: dict[str, str]
    calls: tuple[Call, ...]
    questions: tuple[Question, ...]


def read_conversations(path: Path) -> list[Conversation]:
    return [
        _conversation(number, entry)
        for number, entry in enumerate(json.loads(path.read_text()))
    ]


def _conversation(number: int, entry: dict[str, Any]) -> Conversation:
    told = entry["conversation"]
    voices = {told["speaker_a"]: "caller", told["speaker_b"]: "agent"}
    caller = f"+1555{number:07}"
    name = str(entry.get("sample_id", number))
    calls: list[Call] = []
    places: dict[str, tuple[str, int]] = {}
    for key in sorted(
        (key for key in told if _SESSION.fullmatch(key)), key=lambda key: int(key[8:])
    ):
        call = _call(
            f"{name}-{key}", caller, told[key], told[f"{key}_date_time"], voices
        )
        calls.append(call)
        places |= {
            turn["dia_id"]: (call.id, seq) for seq, turn in enumerate(told[key], 1)
        }
    return Conversation(
        name, caller, voices, tuple(calls), tuple(_questions(entry["qa"], places))
    )


def _call(
    call_id: str,
    caller: str,
    turns: list[dict[str, str]],
    begun: str,
    voices: dict[str, str],
) -> Call:
    at = datetime.strptime(begun.upper(), "%I:%M %p ON %d %B, %Y").replace(tzinfo=UTC)
    said = [
        {
            "speaker": voices[turn["speaker"]],
            "text": turn["text"],
            "at": at + timedelta(seconds=5 * seq),
        }
        for seq, turn in enumerate(turns, 1)
    ]
    fields = {
        "id": call_id,
        "source": "bench",
        "sid": call_id,
        "caller": caller,
        "started_at": at,
    }
    return Call.model_validate(
        {**fields, "ended_at": at + timedelta(seconds=5 * len(said) + 5), "turns": said}
    )


def _questions(
    asked: list[dict[str, Any]], places: dict[str, tuple[str, int]]
) -> Iterator[Question]:
    for entry in asked:
        named = {
            f"D{int(call)}:{int(turn)}"
            for evidence in entry["evidence"]
            for call, turn in _EVIDENCE.findall(evidence)
        }
        evidence = frozenset(places[name] for name in named if name in places)
        if entry["category"] in ASKED and evidence:
            yield Question(entry["question"], entry["category"], evidence)
