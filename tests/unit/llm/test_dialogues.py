"""Every invented call is read as its author meant it."""

import re

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading, Request
from unit.llm.calls import call_of
from unit.llm.dialogues import DIALOGUES, Dialogue

ALL = pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda dialogue: dialogue.name)


def _read(dialogue: Dialogue) -> Reading:
    return RulesReader().read(call_of(dialogue.script))


def _text(request: Request) -> str:
    return f"{request.title} {request.details} {request.words}".lower()


@ALL
def test_requests_are_those_the_caller_made(dialogue: Dialogue) -> None:
    left = list(_read(dialogue).requests)
    for asked in dialogue.asked:
        found = next(
            (
                request
                for request in left
                if all(word in _text(request) for word in asked.words)
            ),
            None,
        )
        assert found, f"{asked} not among {left}"
        left.remove(found)
        assert (found.kind, str(found.due) if found.due else None) == (
            asked.kind,
            asked.due,
        )
    assert not left


@ALL
def test_what_was_called_off_is_withdrawn(dialogue: Dialogue) -> None:
    titles = [item.title.lower() for item in _read(dialogue).withdrawn]
    assert len(titles) == len(dialogue.withdrawn)
    assert all(any(word in title for title in titles) for word in dialogue.withdrawn)


@ALL
def test_promises_and_facts_are_found(dialogue: Dialogue) -> None:
    reading = _read(dialogue)
    promises = [promise.title.lower() for promise in reading.promises]
    facts = [
        (fact.category, f"{fact.text} {fact.words}".lower()) for fact in reading.facts
    ]
    assert all(
        any(word in promise for promise in promises) for word in dialogue.promised
    ), promises
    for category, word in dialogue.facts:
        assert any(category == found and word in text for found, text in facts), facts


@ALL
def test_what_was_taken_back_or_others_wished_is_left_out(dialogue: Dialogue) -> None:
    reading = _read(dialogue)
    told = " ".join(
        item.model_dump_json() for item in (*reading.requests, *reading.facts)
    ).lower()
    assert not [word for word in dialogue.absent if word in told]


@ALL
def test_the_profile_holds_what_the_caller_said_of_themself(dialogue: Dialogue) -> None:
    profile = _read(dialogue).profile
    told = profile.model_dump(exclude={"notes", "context"})
    assert {key: value for key, value in told.items() if value} == dialogue.profile


@ALL
def test_notes_and_context_are_sentences_of_the_caller(dialogue: Dialogue) -> None:
    profile = _read(dialogue).profile
    said = _plain(
        " ".join(
            turn.text
            for turn in call_of(dialogue.script).turns
            if turn.speaker == "caller"
        )
    )
    for sentence in f"{profile.notes or ''} {profile.context or ''}".split("."):
        assert _plain(sentence) in said


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.lower().replace("’", "'")))
