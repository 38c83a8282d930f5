"""LoCoMo and BEAM conversations as calls of our own: a conversation is a caller, a session is a
call, a turn is a turn.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aftercall.model.calls import Call

MAX_TURN_CHARS = 100_000
ASKED = (1, 2, 3, 4)  # the fifth category asks for what was never said
# BEAM asks for what was never said, and for summaries of whole chats: no ten turns are the answer.
NOT_ASKED = ("abstention", "summarization")
ROLES = {"user": "caller", "assistant": "agent"}
_EVIDENCE = re.compile(r"D(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True)
class Question:
    text: str
    category: int | str
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
    """A LoCoMo file."""
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
    said = [(voices[turn["speaker"]], turn["text"]) for turn in turns]
    return _make_call(call_id, caller, said, at)


def _make_call(
    call_id: str, caller: str, said: Sequence[tuple[str, str]], at: datetime
) -> Call:
    turns = [
        {"speaker": speaker, "text": text, "at": at + timedelta(seconds=5 * seq)}
        for seq, (speaker, text) in enumerate(said, 1)
    ]
    fields = {
        "id": call_id,
        "source": "bench",
        "sid": call_id,
        "caller": caller,
        "started_at": at,
    }
    ended_at = at + timedelta(seconds=5 * len(said) + 5)
    return Call.model_validate({**fields, "ended_at": ended_at, "turns": turns})


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


def read_beam(folder: Path, chats: range, roles: Sequence[str]) -> list[Conversation]:
    """BEAM chats, each in a folder named by its number, with the messages of some roles only."""
    return [_chat(folder / str(number), number, roles) for number in chats]


def _chat(folder: Path, number: int, roles: Sequence[str]) -> Conversation:
    caller = f"+1555{number:07}"
    calls: list[Call] = []
    places: dict[int, tuple[str, int]] = {}
    at = datetime(2024, 1, 1, tzinfo=UTC)
    for batch in json.loads((folder / "chat.json").read_text()):
        messages = [
            message
            for turn in batch["turns"]
            for message in turn
            if message["role"] in roles
        ]
        with suppress(TypeError, ValueError):  # some batches name no day
            at = datetime.strptime(batch["time_anchor"], "%B-%d-%Y").replace(tzinfo=UTC)
        said = [
            (ROLES[message["role"]], message["content"].strip()[:MAX_TURN_CHARS])
            for message in messages
        ]
        call = _make_call(f"beam-{number}-{batch['batch_number']}", caller, said, at)
        calls.append(call)
        places |= {
            int(message["id"]): (call.id, seq)
            for seq, message in enumerate(messages, 1)
        }
        at += timedelta(days=1)
    path = folder / "probing_questions" / "probing_questions.json"
    asked = json.loads(path.read_text())
    questions = []
    for category in asked.keys() - set(NOT_ASKED):
        for entry in asked[category]:
            named = _list_ids(entry.get("source_chat_ids"))
            if evidence := frozenset(places[id_] for id_ in named if id_ in places):
                questions.append(Question(entry["question"], category, evidence))
    return Conversation(f"beam-{number}", caller, {}, tuple(calls), tuple(questions))


def _list_ids(named: Any) -> list[int]:
    if isinstance(named, dict):
        named = list(named.values())
    if isinstance(named, list):
        return [id_ for one in named for id_ in _list_ids(one)]
    return [named] if isinstance(named, int) else []
