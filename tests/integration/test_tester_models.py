"""A model plays the caller and judges, at an emulated model server: its words are used, its
mistakes are never the agent's.
"""

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aftercall.cli.main import program
from aftercall.lab.models import make_openai
from aftercall.lab.rest import ModelScript, ScriptedQuestion
from loopback_server import listening, serve

SCENARIO = """
name: refill
goal: Get a refill of the pills.
caller_context:
  opening: I'd like a refill, please.
  verification: {name: Ann Lee, dob: "May 4th, 1980"}
success:
  - said: refill
  - judged: The agent is polite.
"""
POLITE = {"met": True, "turn": 1, "quote": "Harbor Clinic", "reason": "it greets"}


class Model:
    """Plays by a list, judges by one answer."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque()
        self.verdict: dict[str, Any] = POLITE
        self.script = ModelScript(self.answer)

    def answer(self, asked: ScriptedQuestion) -> str:
        if "You judge one criterion" in asked.system:
            return json.dumps(self.verdict)
        return self.lines.popleft() if self.lines else "No, thank you, goodbye. [END]"


@pytest.fixture
def model(tmp_path: Path) -> Iterator[tuple[Model, dict[str, str]]]:
    (tmp_path / "refill.yaml").write_text(SCENARIO)
    model = Model()
    with listening() as (listener, address):
        for _ in serve(
            make_openai(model.script, "sk-lab", ("gpt-lab",)), listener, address
        ):
            yield (
                model,
                {
                    "AFTERCALL_HOME": str(tmp_path),
                    "AFTERCALL_TESTER_MODEL": "gpt-lab",
                    "OPENAI_API_KEY": "sk-lab",
                    "OPENAI_BASE_URL": f"{address}/v1",
                },
            )


def run(environment: dict[str, str], code: int) -> dict[str, Any]:
    file = str(Path(environment["AFTERCALL_HOME"]) / "refill.yaml")
    done = CliRunner().invoke(
        program,
        ["test", "run", "-s", file, "--agent", "practice", "--no-shrink", "--json"],
        env=environment,
    )
    assert done.exit_code == code, (done.output, done.exception)
    (result,) = json.loads(done.output)["results"]
    return dict(result)


def said(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (turn["why"], turn["text"])
        for turn in result["calls"][0]["turns"]
        if turn["who"] == "caller"
    ]


def test_the_model_plays_and_judges_and_the_script_answers_who_is_calling(
    model: tuple[Model, dict[str, str]],
) -> None:
    played, environment = model
    played.lines.append("Caller: Hello there, could I get my pills refilled?")
    result = run(environment, 0)
    turns = said(result)
    assert turns[0] == ("model", "Hello there, could I get my pills refilled?")
    assert [why for why, _ in turns[1:3]] == ["answer:name", "answer:dob"]
    assert [(item["state"]) for item in result["criteria"]] == ["met", "met"]
    assert any(
        "You want: Get a refill" in asked.system for asked in played.script.questions
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "How can I help you today?",
        "As an AI, I cannot place calls.",
        " ".join(["and"] * 80) + ".",
        "I need",
    ],
    ids=["nothing", "the other side", "out of its part", "a speech", "cut off"],
)
def test_words_that_no_caller_would_say_are_replaced_by_the_scripts(
    model: tuple[Model, dict[str, str]], line: str
) -> None:
    played, environment = model
    played.lines.append(line)
    assert said(run(environment, 0))[0] == ("opening", "I'd like a refill, please.")


def test_a_number_the_model_made_up_is_the_testers_fault(
    model: tuple[Model, dict[str, str]],
) -> None:
    played, environment = model
    played.lines.append("Please refill prescription 884213.")
    result = run(environment, 1)
    assert result["verdict"] == "inconclusive"
    assert ("caller_off_script", "tester") in {
        (finding["kind"], finding["who"]) for finding in result["findings"]
    }


def test_a_quote_that_nobody_said_decides_nothing(
    model: tuple[Model, dict[str, str]],
) -> None:
    played, environment = model
    played.lines.append("Could I get my pills refilled?")
    played.verdict = POLITE | {"met": False, "quote": "go away"}
    assert run(environment, 1)["verdict"] == "re-listen"


def test_a_model_that_is_down_leaves_the_script_to_play(
    model: tuple[Model, dict[str, str]],
) -> None:
    played, environment = model
    played.script.permanent_fault = "server_error"
    result = run(environment, 1)
    assert said(result)[0][0] == "opening"
    assert result["verdict"] == "inconclusive", "nobody judged"
