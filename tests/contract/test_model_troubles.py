"""What a model in trouble costs a call, on both databases: one question a try, and no word that
was said.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.lab.models.answers import answer_question
from aftercall.lab.models.openai import make_openai
from aftercall.lab.models.script import ModelScript, ScriptedQuestion
from aftercall.lab.rest import serve_on_loopback
from aftercall.llm.model.client import ModelChoice, ModelClient
from aftercall.llm.model.reader import ModelReader
from aftercall.model.calls import Call
from aftercall.postcall.rerun import rerun
from aftercall.postcall.shift import Shift
from aftercall.settings.sections import ReadingSettings
from aftercall.testing import make_call

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

    def at_work(self) -> tuple[Shift, ModelClient]:
        line = ModelClient(
            ModelChoice(
                "openai", "gpt-5.4-mini", SecretStr("sk-lab"), f"{self.url}/v1", ReadingSettings()
            )
        )
        return Shift.of(replace(self.app, reader=ModelReader(line)).office), line


def _lies_sealed(app: App) -> bool:
    return any(
        "larkspur" in path.read_text() for path in (app.settings.home / "archive").rglob("*.json")
    )


@pytest.fixture
def model(app: App) -> Iterator[Watched]:
    watched = Watched(app)
    with serve_on_loopback(make_openai(watched.script, "sk-lab", ("gpt-5.4-mini",))) as url:
        watched.url = url
        yield watched


@pytest.fixture
def call(app: App) -> Call:
    call = make_call(SAID, started_at=app.clock.now())
    app.journal.ingest(call)
    return call


async def test_a_model_in_trouble_is_asked_once_a_try(app: App, model: Watched, call: Call) -> None:
    model.script.permanent_fault = "overloaded"
    shift, line = model.at_work()
    pauses = []
    for number in (1, 2, 3):
        pauses.append((await shift.take(call.id, ["summary"], number))["summary"])
        assert len(model.script.questions) == number
    assert pauses == sorted(set(pauses)), "each pause should be longer than the one before"
    (step,) = app.steps.of_call(call.id)
    assert (step.state, step.attempts) == ("waiting", 3)
    shift.end()
    line.close()


async def test_a_call_is_sealed_before_a_model_hears_of_it_and_a_failed_summary_is_made_of_the_seal(
    app: App, model: Watched, call: Call
) -> None:
    model.script.permanent_fault = "quota"
    shift, line = model.at_work()
    assert await shift.take(call.id, ["summary", "greeting"], 1) == {}
    assert {step.state for step in app.steps.of_call(call.id)} == {"failed"}
    assert _lies_sealed(app)
    model.script.permanent_fault = None
    ended = {step.name: step for step in rerun(shift.office, call.id, "summary")}
    assert (ended["summary"].state, ended["summary"].reason) == ("done", "")
    assert "larkspur" in (app.settings.home / "workspace" / "CALLS.md").read_text()
    assert model.sealed, "the model was never asked"
    assert all(model.sealed)
    shift.end()
    line.close()
