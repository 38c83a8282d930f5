"""A call for whoever may read it but not its secrets: what was confided is blotted out. The archive keeps every word."""

from collections.abc import Sequence
from typing import Any

from aftercall.llm.rules.secrets import Secret, find_secrets
from aftercall.memory.visibility import blot_out, confide
from aftercall.model.turns import Turn


def veil(call: dict[str, Any], confided: Sequence[str] = ()) -> dict[str, Any]:
    """`call` as journal/view.py gives it; `confided` are words of it that memory holds as secrets."""
    turns = tuple(Turn.model_construct(seq=seq, speaker=turn["speaker"], text=turn["text"]) for seq, turn in enumerate(call["turns"], 1))
    confidences = [*find_secrets(turns), *confide(confided)]
    return call | {
        "turns": [turn | {"text": blot_out(turn["text"], confidences)} for turn in call["turns"]],
        "events": _veil_all(call["events"], confidences),
    }


def veil_turns(turns: tuple[Turn, ...], confided: Sequence[str] = ()) -> tuple[Turn, ...]:
    confidences = [*find_secrets(turns), *confide(confided)]
    return tuple(turn.model_copy(update={"text": blot_out(turn.text, confidences)}) for turn in turns)


def _veil_all(value: Any, confidences: list[Secret]) -> Any:
    if isinstance(value, str):
        return blot_out(value, confidences)
    if isinstance(value, dict):
        return {name: _veil_all(inner, confidences) for name, inner in value.items()}
    return [_veil_all(inner, confidences) for inner in value] if isinstance(value, list) else value
