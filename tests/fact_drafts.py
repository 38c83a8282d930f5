"""Calls and drafts for tests of memory: a caller says sentences, and a reader takes each for a
fact.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from aftercall.model.calls import Call
from aftercall.model.reading import FactDraft, Reading
from fakes import START, FakeReader, make_call


def draft(text: str, **fields: Any) -> FactDraft:
    defaults: dict[str, Any] = {
        "category": "preference",
        "text": text,
        "summary": text[:100],
        "visibility": "shared",
        "confidence": 0.9,
        "turns": (2,),
        "words": text,
    }
    return FactDraft.model_validate(defaults | fields)


def say(*sentences: str, day: float = 0, **fields: Any) -> Call:
    """A call in which the caller says each sentence in a turn of its own; `day` after the start
    of all tests.
    """
    said = [
        ("agent", "Hello!"),
        *(("caller", sentence) for sentence in sentences),
        ("agent", "Noted."),
    ]
    return make_call(said, started_at=START + timedelta(days=day), **fields)


def reader_of(*drafts: FactDraft) -> FakeReader:
    return FakeReader(
        Reading(language="en", summary="The caller called.", facts=drafts)
    )


def each(call: Call, **fields: Any) -> FakeReader:
    """A reader that takes every sentence of the caller for a fact."""
    turns = [turn for turn in call.turns if turn.speaker == "caller"]
    return reader_of(*(draft(turn.text, turns=(turn.seq,), **fields) for turn in turns))


def on(day: float) -> datetime:
    return START + timedelta(days=day)


class ReplacingJudge:
    """Lets every new fact replace every known one."""

    name = "replacing"

    def judge(self, new: str, known: Mapping[str, str]) -> Mapping[str, str]:
        return dict.fromkeys(known, "replaces")
