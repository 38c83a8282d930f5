"""What a model in trouble costs a call, on both databases: one question a try, and no word that
was said.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.lab.models import answer_question, make_openai
from aftercall.lab.rest import ModelScript, ScriptedQuestion, serve_on_loopback
from aftercall.llm.model.client import ModelChoice, ModelClient
from aftercall.llm.model.reader import ModelReader
from aftercall.model.calls import Call
from aftercall.postcall.runner import StepRunner, rerun
from aftercall.settings.sections import ReadingSettings
from fakes import make_call
from step_stages import run_steps

SAID = (
    ("agent", "Hello!"),
    ("caller", "Please open a bug about the larkspur page."),
    ("agent", "Noted."),
)


@dataclass
class Watched:
    """A model at a real address that looks, each time it is asked, whether the call lies in the
    archive.
    """

    app: App
    url: str = ""
    script: ModelScript = field(init=False)
    sealed: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.script = ModelScript(self.answer)

    def answer(self, asked: ScriptedQuestion) -> str:
        self.sealed.append(_lies_sealed(self.app))
        return answer_question(asked)

    def at_work(self) -> tuple[StepRunner, ModelClient]:
        line = ModelClient(
            ModelChoice(
                "openai",
                "gpt-5.4-mini",
                SecretStr("sk-lab"),
                f"{self.url}/v1",
                ReadingSettings(),
            )
        )
        return replace(self.app, reader=ModelReader(line)).step_runner, line


def _lies_sealed(app: App) -> bool:
    return any(
        "larkspur" in path.read_text()
        for path in (app.settings.home / "archive").rglob("*.json")
    )


@pytest.fixture
def model(app: App) -> Iterator[Watched]:
    watched = Watched(app)
    with serve_on_loopback(
        make_openai(watched.script, "sk-lab", ("gpt-5.4-mini",))
    ) as url:
        watched.url = url
        yield watched


@pytest.fixture
def call(app: App) -> Call:
    call = make_call(SAID, started_at=app.clock.now())
    app.journal.ingest(call)
    return call


def test_a_model_in_trouble_is_asked_once_a_try(
    app: App, model: Watched, call: Call
) -> None:
    model.script.permanent_fault = "overloaded"
    runner, line = model.at_work()
    pauses = []
    for number in (1, 2, 3):
        pauses.append(run_steps(runner, call.id, ["summary"], number)["summary"])
        assert len(model.script.questions) == number
    assert pauses == sorted(set(pauses)), (
        "each pause should be longer than the one before"
    )
    (step,) = app.steps.of_call(call.id)
    assert (step.state, step.attempts) == ("waiting", 3)
    line.close()


def test_a_model_reads_sealed_calls_and_a_failed_summary_is_made_of_the_seal(
    app: App, model: Watched, call: Call
) -> None:
    model.script.permanent_fault = "quota"
    runner, line = model.at_work()
    assert run_steps(runner, call.id, ["summary", "greeting"]) == {}
    assert {step.state for step in app.steps.of_call(call.id)} == {"failed"}
    assert _lies_sealed(app)
    model.script.permanent_fault = None
    ended = {step.name: step for step in rerun(runner, call.id, "summary")}
    assert (ended["summary"].state, ended["summary"].reason) == ("done", "")
    assert "larkspur" in (app.settings.home / "workspace" / "CALLS.md").read_text()
    assert model.sealed, "the model was never asked"
    assert all(model.sealed)
    line.close()
