"""A turn that is passed over because none of its words can tell a secret tells none."""

import json
import re
from pathlib import Path

import pytest

from aftercall.llm.rules import secrets
from aftercall.llm.rules.secrets import Secret, find_secrets
from aftercall.model.calls import parse_call
from aftercall.model.turns import Turn

CALLS = sorted((Path(__file__).parents[3] / "bench" / "calls").glob("*.json"))
WITHOUT_MARKS = re.compile(r"[.,;:!?]")


def spoken() -> list[tuple[Turn, ...]]:
    """Whole calls, and each of the caller's turns alone as a recogniser without punctuation
    writes it.
    """
    calls = [parse_call(json.loads(file.read_text())["call"]).turns for file in CALLS]
    bare = [
        turn.model_copy(update={"text": WITHOUT_MARKS.sub("", turn.text).lower()})
        for turns in calls
        for turn in turns
    ]
    return [
        *calls,
        *((turn,) for turn in bare if turn.speaker == "caller" and turn.text),
    ]


def find_all(told: list[tuple[Turn, ...]]) -> list[list[Secret]]:
    return [find_secrets(turns) for turns in told]


def test_secrets_are_the_same_whether_turns_are_passed_over_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = spoken()
    quickly = find_all(told)
    monkeypatch.setattr(secrets, "may_tell", lambda _text: True)
    assert quickly == find_all(told)
    assert sum(map(bool, quickly)) > 50
