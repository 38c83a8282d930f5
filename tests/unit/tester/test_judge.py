"""Models that judge and play: believed only as far as their quotes go."""

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from aftercall.clock import SystemClock
from aftercall.errors import LineFailed
from aftercall.speech.transcription import TranscribedAudio
from aftercall.tester.judge import judge, probe
from aftercall.tester.models import ChatMessage, ChatModel
from aftercall.tester.score import score
from unit.tester.calls import LineAgent, end_of, hold, scenario_of
from unit.tester.test_caller import FakeModel

POLITE = scenario_of("""
caller_context: {opening: Hi there.}
success: [{judged: The agent is polite.}]
""")


async def judged(
    answer: str, confidence: float | None = None, whisper: str | None = None
) -> Any:
    record = await hold(end_of(LineAgent("You are most welcome here.")), POLITE)
    spans = tuple(replace(span, confidence=confidence) for span in record.spans)
    record = replace(
        record, spans=spans, whisper=TranscribedAudio(whisper) if whisper else None
    )
    found = await judge(POLITE, [record], FakeModel(answer).complete)
    return score(POLITE, 1, [record], found)


def verdict(met: bool, quote: str = "most welcome", turn: int = 3) -> str:
    return "Sure: " + json.dumps(
        {"met": met, "turn": turn, "quote": quote, "reason": "because"}
    )


async def test_a_verdict_with_a_true_quote_counts() -> None:
    assert (await judged(verdict(True))).verdict == "passed"
    failed = await judged(verdict(False))
    assert failed.verdict == "failed"
    assert failed.bugs[0].kind == "judged_missed"
    assert failed.bugs[0].turns == (3,)


@pytest.mark.parametrize(
    "answer",
    [
        verdict(False, "go away"),
        verdict(False, ""),
        verdict(False, turn=99),
        verdict(True, "Hi there", 3),
    ],
)
async def test_a_quote_that_is_not_there_proves_nothing(answer: str) -> None:
    scored = await judged(answer)
    assert scored.verdict == "re-listen"
    assert scored.bugs == []


async def test_a_verdict_on_words_that_were_hard_to_hear_asks_for_another_listen() -> (
    None
):
    assert (await judged(verdict(False), confidence=0.3)).verdict == "re-listen"
    assert (await judged(verdict(False), confidence=0.9)).verdict == "failed"


async def test_two_transcripts_that_disagree_ask_for_another_listen() -> None:
    assert (
        await judged(verdict(False), whisper="you owe us twelve euros sir")
    ).verdict == "re-listen"
    assert (
        await judged(verdict(False), whisper="hello you are most welcome here")
    ).verdict == "failed"


async def test_a_single_turn_can_be_judged() -> None:
    scenario = scenario_of("turns: [{say: Hi there., expect: {judged: It is polite.}}]")
    record = await hold(end_of(LineAgent("You are most welcome here.")), scenario)
    missed = await judge(scenario, [record], FakeModel(verdict(False)).complete)
    assert score(scenario, 1, [record], missed).verdict == "failed"
    assert score(scenario, 1, [record]).verdict == "inconclusive"


@pytest.mark.parametrize("answer", ["", "yes", "{", '{"met": "yes"}', "[1]"])
async def test_an_answer_that_cannot_be_read_decides_nothing(answer: str) -> None:
    assert (await judged(answer)).verdict == "inconclusive"


def chat(status: int, body: Any) -> ChatModel:
    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["authorization"] == "Bearer key"
        assert request.url.path == "/v1/chat/completions"
        return httpx2.Response(status, json=body)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return ChatModel(http, "http://model/v1/", "small", SecretStr("key"))


async def test_a_chat_server_is_asked_in_its_form() -> None:
    body = {"choices": [{"message": {"content": " Hi. "}, "finish_reason": "stop"}]}
    assert await chat(200, body).complete([ChatMessage("user", "Hello")], 100) == "Hi."


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, {}),
        (200, {}),
        (200, {"choices": []}),
        (200, {"choices": [{"message": {"content": None}}]}),
        (
            200,
            {
                "choices": [
                    {"message": {"content": "I was cut"}, "finish_reason": "length"}
                ]
            },
        ),
    ],
)
async def test_a_model_that_gives_no_words_is_told_as_such(
    status: int, body: Any
) -> None:
    with pytest.raises(LineFailed):
        await chat(status, body).complete([ChatMessage("user", "Hello")], 100)


async def test_probes_look_at_what_was_done() -> None:
    scenario = scenario_of("""
caller_context: {opening: Hi.}
probes:
  - {name: there, command: [echo, a table for Lee], contains: Lee, lacks: Smith}
  - {name: missing, command: [echo, nothing], contains: Lee, within_s: 0.1}
  - {name: wrong_code, command: ["false"], within_s: 0.1}
  - {name: no_program, command: [/nowhere/at/all], within_s: 0.1}
  - {name: no_server, http: "http://127.0.0.1:9/", within_s: 0.1}
success: [{probe: there}, {probe: missing}]
""")
    found = await probe(scenario, SystemClock(), {})
    assert [item.state for item in found] == [
        "met",
        "missed",
        "missed",
        "unknown",
        "unknown",
    ]
    record = await hold(end_of(LineAgent("Hello.")), scenario)
    scored = score(scenario, 1, [record], found)
    states = {checked.name: checked.state for checked in scored.criteria}
    assert states == {
        "probe there": "met",
        "probe missing": "missed",
        "probe wrong_code": "missed",
        "probe no_program": "unknown",
        "probe no_server": "unknown",
    }
    assert [bug.kind for bug in scored.bugs] == ["probe_failed"] * 2
