"""Agents behind addresses: over HTTP and over a websocket, in the forms they speak."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.server import ServerConnection, serve

from aftercall.clock import SystemClock
from aftercall.encryption import load_api_token
from aftercall.errors import LineFailed
from aftercall.model.calls import Call
from aftercall.settings import Settings
from aftercall.tester.agents import open_target
from aftercall.tester.calibrate import measure_line
from aftercall.tester.drivers.remote import HttpAgent, WebSocketAgent, read_answer
from aftercall.tester.drivers.text_agent import CallableAgent
from aftercall.tester.library import scenario_yaml
from aftercall.tester.line import DialedCall
from aftercall.tester.redact import Redactor
from aftercall.tester.scenario_file import parse_scenarios
from aftercall.tester.score import score
from aftercall.tester.suite import SuiteParts, run_load, run_once
from aftercall.tester.target import AgentTarget, CallSetup
from fakes import make_call
from unit.tester.calls import end_of, hold, kinds, said_by_agent, scenario_of

HELLO = scenario_of("caller_context: {opening: Good day.}\nsuccess: [{said: pleasure}]")


def agent_at(answer: Any) -> HttpAgent:
    def handle(request: httpx2.Request) -> httpx2.Response:
        reply = answer(json.loads(request.content))
        return (
            reply
            if isinstance(reply, httpx2.Response)
            else httpx2.Response(200, json=reply)
        )

    return HttpAgent(
        "http://agent/turn", httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
    )


async def test_an_http_agent_is_called() -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        match body["event"]:
            case "start":
                return {"text": "Hello."}
            case "say":
                return {"reply": "A pleasure. Goodbye!", "end_call": True}
        return {}

    record = await hold(end_of(agent_at(answer)), HELLO)
    assert (record.ended_by, said_by_agent(record)) == (
        "agent",
        "Hello. A pleasure. Goodbye!",
    )


@pytest.mark.parametrize(
    "reply",
    [
        httpx2.Response(500),
        httpx2.Response(
            200, content=b"{", headers={"content-type": "application/json"}
        ),
    ],
)
async def test_an_http_error_or_broken_json_is_the_agents_failure(
    reply: httpx2.Response,
) -> None:
    record = await hold(end_of(agent_at(lambda body: reply)), HELLO)
    assert kinds(score(HELLO, 1, [record])) == {("agent_error", "agent")}


async def test_an_address_that_is_no_agents_is_the_testers_mistake() -> None:
    agent = agent_at(lambda body: httpx2.Response(404))
    scored = score(HELLO, 1, [await hold(end_of(agent), HELLO)])
    assert kinds(scored) == {("not_reached", "tester")}
    assert scored.verdict == "inconclusive"
    assert "answered 404" in scored.reason


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        ("Hi", ["Hi"]),
        ({"message": ["a", "b"]}, ["a", "b"]),
        ([{"text": "a"}, "b"], ["a", "b"]),
        ({}, []),
        (3, []),
        ({"end": True}, [""]),
    ],
)
def test_answers_are_read_in_the_usual_forms(data: Any, texts: list[str]) -> None:
    assert [reply.text for reply in read_answer(data)] == texts


@asynccontextmanager
async def socket_agent(hold_call: Any) -> AsyncIterator[str]:
    async with serve(hold_call, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/browser/call"


async def test_a_socket_agent_in_our_own_form_is_called() -> None:
    seen: list[Any] = []

    async def agent(socket: ServerConnection) -> None:
        assert socket.request
        seen.append(socket.request.path)
        await socket.send(json.dumps({"type": "agent", "text": "Hello.", "id": "1"}))
        await socket.send(json.dumps({"type": "agent", "text": "Hello.", "id": "1"}))
        seen.append(json.loads(await socket.recv()))
        await socket.send(json.dumps({"type": "agent", "text": "A pleasure."}))
        await socket.send(json.dumps({"type": "ended", "reason": "agent_hung_up"}))

    scenario = scenario_of(
        "caller_context: {opening: Good day., number: '+15550100'}\nsuccess: [{said: pleasure}]"
    )
    async with socket_agent(agent) as url:
        record = await hold(end_of(WebSocketAgent(url)), scenario)
    assert seen == [
        "/browser/call?caller=%2B15550100",
        {"type": "say", "text": "Good day."},
    ]
    assert record.ended_by == "agent"
    assert kinds(score(scenario, 1, [record])) == {("duplicate_event", "line")}


@pytest.mark.parametrize(("path", "sends"), [("/browser/call", True), ("/x", False)])
async def test_our_own_server_gets_the_token_and_no_other_agent_does(
    tmp_path: Path, path: str, sends: bool
) -> None:
    seen: list[str | None] = []

    async def agent(socket: ServerConnection) -> None:
        assert socket.request
        seen.append(socket.request.headers.get("Authorization"))
        await socket.send(json.dumps({"type": "ended", "reason": "agent_hung_up"}))

    settings = Settings(home=tmp_path)
    token = load_api_token(settings).get_secret_value()
    async with socket_agent(agent) as url:
        address = url.replace("/browser/call", path)
        async with open_target(settings, address, CallSetup(SystemClock())) as target:
            await run_once(HELLO, target, SuiteParts(SystemClock()))
    assert seen == [f"Bearer {token}" if sends else None]


async def test_a_socket_agent_that_speaks_plainly_is_answered_plainly() -> None:
    seen: list[Any] = []

    async def agent(socket: ServerConnection) -> None:
        await socket.send("Hello.")
        seen.append(await socket.recv())
        await socket.send("A pleasure. Goodbye!")
        await socket.close()

    async with socket_agent(agent) as url:
        record = await hold(end_of(WebSocketAgent(url)), HELLO)
    assert seen == ["Good day."]
    assert said_by_agent(record) == "Hello. A pleasure. Goodbye!"


async def test_sentences_that_are_streamed_are_one_turn() -> None:
    async def agent(socket: ServerConnection) -> None:
        await socket.send("Hello.")
        await socket.recv()
        for sentence in ("A pleasure, let me see", "what I can do.", "Goodbye!"):
            await socket.send(sentence)
            await asyncio.sleep(0.3)
        await socket.close()

    async with socket_agent(agent) as url:
        record = await hold(end_of(WebSocketAgent(url)), HELLO)
    said = [span.text for span in record.agent_spans]
    assert said == ["Hello.", "A pleasure, let me see what I can do. Goodbye!"]


async def test_an_error_in_a_socket_agent_is_the_agents() -> None:
    async def agent(socket: ServerConnection) -> None:
        await socket.send("Hello.")
        await socket.recv()
        await socket.close(1011, "internal error")

    async with socket_agent(agent) as url:
        record = await hold(end_of(WebSocketAgent(url)), HELLO)
    assert kinds(score(HELLO, 1, [record])) == {("agent_error", "agent")}


async def test_a_socket_that_is_not_there_or_refuses_is_a_failed_call() -> None:
    with pytest.raises(LineFailed, match="no connection"):
        await WebSocketAgent("ws://127.0.0.1:9/").start(DialedCall(None, "test"))

    async def refuse(socket: ServerConnection) -> None:
        await socket.send(json.dumps({"type": "refused", "reason": "closed today"}))

    async with socket_agent(refuse) as url:
        record = await hold(end_of(WebSocketAgent(url)), HELLO)
    assert (record.outcome, "closed today" in record.end_why) == ("failed", True)


REAL: Call = make_call(
    [
        ("agent", "Hello, how can I help?"),
        ("caller", 'Hi, this is Ann Lee: book "the blue room"'),
        ("caller", "for # Tuesday."),
        ("agent", "What is your date of birth?"),
        ("caller", "May 1st, 1990"),
    ]
)


def test_a_real_call_becomes_a_scenario_that_can_be_run() -> None:
    (scenario,) = parse_scenarios(
        scenario_yaml(REAL, name="blue_room", redactor=Redactor(is_on=False))
    )
    assert [turn.say for turn in scenario.calls[0].turns] == [
        'Hi, this is Ann Lee: book "the blue room" for # Tuesday.',
        "May 1st, 1990",
    ]


def test_a_real_callers_name_and_birthday_stay_out_of_the_scenario() -> None:
    text = scenario_yaml(REAL)
    assert "Ann" not in text
    assert "1990" not in text
    assert parse_scenarios(text)[0].name.startswith("from_call_")


def test_a_call_without_words_becomes_a_scenario_of_silence() -> None:
    (scenario,) = parse_scenarios(scenario_yaml(make_call([])))
    assert scenario.calls[0].turns[0].silence_s == 5


async def test_a_pause_that_was_not_waited_for_is_the_testers_doing() -> None:
    scenario = parse_scenarios(
        "name: two\ncalls:\n- caller_context: {opening: Hello there.}\n- {pause_s: 600, "
        "caller_context: {opening: Me again.}}\n"
        "success: [{said: remember, call: 2}]\n"
    )[0]
    clock = SystemClock()
    target = AgentTarget.of_agent(
        "far",
        CallSetup(clock),
        lambda: CallableAgent(lambda text: "Hello, I do not know you. Goodbye!"),
    )
    scored = await run_once(scenario, target, SuiteParts(clock, max_pause_s=30))
    assert kinds(scored) >= {("pause_skipped", "tester"), ("goal_missed", "tester")}
    assert scored.verdict == "inconclusive"


async def test_under_load_an_agent_with_one_hand_answers_later() -> None:
    hand, clock = asyncio.Lock(), SystemClock()

    async def answer(text: str) -> str:
        async with hand:
            await asyncio.sleep(0.05)
        return "A pleasure. Goodbye!" if text else "Hello."

    target = AgentTarget.of_agent(
        "python", CallSetup(clock), lambda: CallableAgent(answer)
    )
    steps = [
        (await run_load([HELLO], target, SuiteParts(clock), at_once, 8)).as_json()
        for at_once in (1, 8)
    ]
    alone, together = (step["latency_p95_s"] for step in steps)
    assert [step["runs"] for step in steps] == [8, 8]
    assert 0.05 <= alone < 0.2 < together


@pytest.mark.parametrize("address", ["ws://known", "http://known"])
async def test_waiting_for_more_words_is_not_the_agents_time(
    tmp_path: Path, address: str
) -> None:
    """In real time too, where the tester waits 150 ms for another sentence."""
    setup = CallSetup(SystemClock(), is_live=True)
    found = await measure_line(
        Settings(home=tmp_path), address, setup, parallel=2, turns=2
    )
    assert found is not None
    assert found.turns == 4
    assert found.latency_max_ms < 100


async def test_a_twilio_stream_is_called_directly(tmp_path: Path) -> None:
    found = await measure_line(
        Settings(home=tmp_path),
        "twilio:wss://known",
        CallSetup(SystemClock()),
        parallel=2,
        turns=2,
    )
    assert found is not None
    assert found.turns == 4
    assert found.latency_max_ms < 100


async def test_a_stream_that_is_not_there_is_a_failed_call(tmp_path: Path) -> None:
    setup = CallSetup(SystemClock())
    address = "twilio:ws://127.0.0.1:9/stream"
    async with open_target(Settings(home=tmp_path), address, setup) as target:
        scored = await run_once(HELLO, target, SuiteParts(SystemClock()))
    assert scored.verdict == "inconclusive"
    assert {finding.who for finding in scored.findings} <= {"line", "tester"}
