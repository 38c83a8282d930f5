"""The reader by model over real sockets: four kinds of provider, each with everything that goes
wrong there.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner, Result

from aftercall.cli.main import program
from aftercall.compose import choose_reader
from aftercall.errors import (
    AftercallError,
    ConfigError,
    ModelCutOff,
    ModelDeclined,
    ModelOffForm,
    ModelRefused,
    ModelUnavailable,
)
from aftercall.lab.models import answer_question, make_anthropic, make_openai
from aftercall.lab.rest import Fault, ModelScript, serve_on_loopback
from aftercall.llm.model.client import (
    DEFAULT_MODELS,
    ModelChoice,
    ModelClient,
    Provider,
    choose_model,
)
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.rules.reader import RulesReader
from aftercall.settings import Settings
from aftercall.settings.sections import ReadingSettings
from fakes import make_call

KEY = "lab-key"
CALL = make_call(
    [
        ("agent", "Hello, this is Sable speaking."),
        (
            "caller",
            "Hi, this is Bill Harker. Please open a bug about the broken thumbnails.",
        ),
        ("agent", "I'll open that bug today."),
    ]
)
MODELS: dict[Provider, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5.4-mini",
    "xai": "grok-4",
    "openai-compatible": "smollm2",
}
NOT_OURS = ("anthropic", "openai", "openai-compatible")


@dataclass(frozen=True)
class Lab:
    script: ModelScript
    anthropic: str
    openai: str

    def choice(
        self, provider: Provider, model: str = "", key: str = KEY, **limits: float
    ) -> ModelChoice:
        url = self.anthropic if provider == "anthropic" else f"{self.openai}/v1"
        return ModelChoice(
            provider,
            model or MODELS[provider],
            SecretStr(key),
            url,
            ReadingSettings.model_validate(limits),
        )


@pytest.fixture(scope="module")
def servers() -> Iterator[Lab]:
    script = ModelScript(answer_question)
    models = tuple(MODELS.values())
    with (
        serve_on_loopback(make_anthropic(script, KEY, models)) as one,
        serve_on_loopback(make_openai(script, KEY, models)) as other,
    ):
        yield Lab(script, one, other)


@pytest.fixture
def lab(servers: Lab) -> Lab:
    servers.script.faults.clear()
    servers.script.questions.clear()
    return servers


def ask_for_greeting(choice: ModelChoice) -> str | None:
    line = ModelClient(choice)
    try:
        return ModelReader(line).find_greeting(CALL, "Bill").value
    finally:
        line.close()


def ask_for_summary(choice: ModelChoice) -> str:
    line = ModelClient(choice)
    try:
        return ModelReader(line).summarise(CALL).value.text
    finally:
        line.close()


@pytest.mark.parametrize("provider", list(MODELS))
def test_every_provider_reads_a_call_whole(lab: Lab, provider: Provider) -> None:
    line = ModelClient(lab.choice(provider))
    reader = ModelReader(line)
    reading = reader.read(CALL)
    trace = reader.find_profile(CALL).trace
    line.close()
    assert (reading.profile.name, reading.identity.name) == ("Bill Harker", "Sable")
    assert [(item.kind, item.turns) for item in reading.requests] == [("issue", (2,))]
    assert [item.turns for item in reading.promises] == [(3,)]
    assert (trace.reader, trace.input_tokens > 0, trace.output_tokens > 0) == (
        f"{provider}:{MODELS[provider]}",
        True,
        True,
    )
    assert all(asked.schema for asked in lab.script.questions)
    assert all(
        ("temperature" in asked.body) is (provider == "openai-compatible")
        for asked in lab.script.questions
    )


def test_a_model_with_a_price_list_tells_its_cost(lab: Lab) -> None:
    line = ModelClient(lab.choice("anthropic"))
    cost = ModelReader(line).find_greeting(CALL, None).trace.cost
    line.close()
    assert cost is not None
    assert cost > 0


@pytest.mark.parametrize("provider", NOT_OURS)
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rate_limit", ModelUnavailable),
        ("overloaded", ModelUnavailable),
        ("server_error", ModelUnavailable),
        ("reset", ModelUnavailable),
        ("slow", ModelUnavailable),
        ("quota", ModelRefused),
        ("cut_off", ModelCutOff),
        ("refusal", ModelDeclined),
    ],
)
def test_each_fault_is_the_error_it_should_be(
    lab: Lab, provider: Provider, fault: Fault, error: type[AftercallError]
) -> None:
    lab.script.faults.append(fault)
    lab.script.slow_s = 0.6
    with pytest.raises(error) as raised:
        ask_for_greeting(lab.choice(provider, timeout_s=0.3 if fault == "slow" else 20))
    assert raised.value.retryable is (error is ModelUnavailable)
    assert "\n" not in str(raised.value)
    assert "Harker" not in str(raised.value)
    assert len(lab.script.questions) == 1  # the step tries again, nobody below it
    if fault == "rate_limit":
        assert raised.value.retry_after_s == 1


@pytest.mark.parametrize("provider", NOT_OURS)
def test_fences_are_taken_off_and_prose_is_put_right_once(
    lab: Lab, provider: Provider
) -> None:
    lab.script.faults.extend(["fenced"])
    assert ask_for_greeting(lab.choice(provider)) is not None
    lab.script.faults.extend(["prose"])
    assert ask_for_greeting(lab.choice(provider)) is not None
    assert [asked.is_repair for asked in lab.script.questions] == [False, False, True]
    lab.script.faults.extend(["wrong_shape", "empty"])
    with pytest.raises(ModelOffForm):
        ask_for_summary(lab.choice(provider))


@pytest.mark.parametrize("provider", NOT_OURS)
def test_a_wrong_key_or_name_is_said_and_not_tried_again(
    lab: Lab, provider: Provider
) -> None:
    with pytest.raises(ModelRefused, match="refuses the key"):
        ask_for_greeting(lab.choice(provider, key="wrong"))
    with pytest.raises(ModelRefused, match="no such model"):
        ask_for_greeting(
            lab.choice(
                provider,
                model="claude-sonnet-0" if provider == "anthropic" else "gpt-4o-nope",
            )
        )


def test_a_server_that_takes_no_schema_is_asked_in_words(lab: Lab) -> None:
    lab.script.faults.append("no_schema")
    assert ask_for_greeting(lab.choice("openai-compatible")) is not None
    assert [asked.schema is None for asked in lab.script.questions] == [False, True]


def test_a_model_that_checks_the_rules_is_asked_about_each_request(lab: Lab) -> None:
    choice = replace(lab.choice("openai-compatible"), checks_rules=True)
    client = ModelClient(choice)
    try:
        reading = choose_reader(client, RulesReader(), UTC).read(CALL)
    finally:
        client.close()
    assert [item.kind for item in reading.requests] == ["issue"]
    assert [(one.answer, one.by) for one in reading.decisions] == [
        ("request", "openai-compatible:smollm2")
    ]
    (asked,) = lab.script.questions
    assert asked.schema is not None
    assert asked.token_count < 200


def test_rules_are_checked_by_the_model_behind_a_plus() -> None:
    given = {"base_url": "http://127.0.0.1:9"}
    choice = choose_model(settings(model="rules+openai-compatible:x", openai=given))
    assert choice is not None
    assert (choice.name, choice.checks_rules) == ("openai-compatible:x", True)
    alone = choose_model(settings(model="openai-compatible:x", openai=given))
    assert alone is not None
    assert not alone.checks_rules


def test_a_server_that_is_not_there_may_come_back(lab: Lab) -> None:
    choice = ModelChoice(
        "anthropic",
        "claude-sonnet-5-5",
        SecretStr(KEY),
        "http://127.0.0.1:9",
        ReadingSettings(),
    )
    with pytest.raises(ModelUnavailable, match="cannot be reached at http://127"):
        ask_for_greeting(choice)


def test_a_key_of_another_provider_never_leaves_for_this_one(lab: Lab) -> None:
    ask_for_greeting(lab.choice("openai-compatible"))
    assert KEY not in json.dumps([asked.body for asked in lab.script.questions])


def settings(**given: object) -> Settings:
    return Settings.model_validate(given)


def test_without_a_model_and_without_keys_rules_read() -> None:
    assert choose_model(settings()) is None
    assert choose_model(settings(model="rules", anthropic={"api_key": "x"})) is None


def test_the_first_key_present_chooses() -> None:
    both = choose_model(settings(openai={"api_key": "x"}, anthropic={"api_key": "y"}))
    assert both is not None
    assert both.name == f"anthropic:{DEFAULT_MODELS['anthropic']}"
    grok = choose_model(settings(xai={"api_key": "x"}))
    assert grok is not None
    assert grok.base_url == "https://api.x.ai/v1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "anthropic:claude"}, "needs a key; set ANTHROPIC_API_KEY"),
        ({"model": "openai-compatible:x"}, "needs an address; set OPENAI_BASE_URL"),
    ],
)
def test_a_named_model_that_cannot_be_used_is_refused_at_once(
    given: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        choose_model(settings(**given))


def test_without_the_packages_a_key_alone_means_rules_and_a_named_model_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aftercall.llm.model.client.find_spec", lambda _: None)
    assert choose_model(settings(anthropic={"api_key": "x"})) is None
    with pytest.raises(ConfigError, match=r"install aftercall\[models\]"):
        choose_model(settings(model="anthropic:claude", anthropic={"api_key": "x"}))


def try_model(
    lab: Lab, model: str, monkeypatch: pytest.MonkeyPatch, url: str = ""
) -> Result:
    monkeypatch.setenv("AFTERCALL_MODEL", model)
    monkeypatch.setenv("OPENAI_BASE_URL", url or f"{lab.openai}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return CliRunner().invoke(program, ["models", "try"])


def test_trying_a_model_tells_how_well_and_how_fast_it_reads(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The emulated model reads by rules: it reads the sample as well as they do."""
    for model in ("openai-compatible:smollm2", "rules+openai-compatible:smollm2"):
        told = try_model(lab, model, monkeypatch)
        assert told.exit_code == 0, told.output
        assert f"{model}: 19 of 19 right in a call of 12 turns" in told.output
        assert "tokens in" in told.output
        assert "a second" in told.output


@pytest.mark.parametrize("prefix", ["", "rules+"])
def test_trying_a_model_whose_server_is_away_is_an_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """Also where the rules could decide alone: nothing would have been tried."""
    away = "http://127.0.0.1:9/v1"
    told = try_model(lab, f"{prefix}openai-compatible:x", monkeypatch, away)
    assert isinstance(told.exception, ModelUnavailable)
    assert f"cannot be reached at {away}" in str(told.exception)
