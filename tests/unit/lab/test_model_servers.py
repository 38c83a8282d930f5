"""The emulated model servers, judged by the providers' own SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from aftercall.lab.models import make_anthropic, make_openai
from aftercall.lab.rest import ModelScript, serve_on_loopback

if TYPE_CHECKING:  # seconds, which only the process that runs these tests spends
    import anthropic
    import openai

KEY = "lab-key"
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def script() -> ModelScript:
    return ModelScript(lambda asked: f"You said {asked.data}.")


@pytest.fixture(scope="module")
def claude(script: ModelScript) -> Iterator[anthropic.Anthropic]:
    import anthropic

    with (
        serve_on_loopback(make_anthropic(script, KEY, ("claude-sonnet-5-5",))) as url,
        anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def gpt(script: ModelScript) -> Iterator[openai.OpenAI]:
    import openai

    with (
        serve_on_loopback(
            make_openai(script, KEY, ("gpt-4o-mini", "gpt-5.4-mini"))
        ) as url,
        openai.OpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client,
    ):
        yield client


def test_claude_answers_its_own_sdk(claude: anthropic.Anthropic) -> None:
    message = claude.messages.create(
        model="claude-sonnet-5-5",
        max_tokens=10,
        messages=[{"role": "user", "content": "Hi"}],
    )
    assert (message.content[0].type, message.stop_reason) == ("text", "end_turn")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"messages": HI, "max_tokens": 5}, {}, 400),
        ({"model": "claude-sonnet-5-5", "messages": HI}, {}, 400),
        ({"model": "claude-0", "messages": HI, "max_tokens": 5}, {}, 404),
        ({"model": "claude-sonnet-5-5", "messages": HI, "max_tokens": 0}, {}, 400),
        ({"model": "claude-sonnet-5-5", "messages": [], "max_tokens": 5}, {}, 400),
        (
            {
                "model": "claude-sonnet-5-5",
                "messages": HI,
                "max_tokens": 5,
                "temperature": 0,
            },
            {},
            400,
        ),
        (
            {
                "model": "claude-sonnet-5-5",
                "messages": HI,
                "max_tokens": 5,
                "colour": "red",
            },
            {},
            400,
        ),
        (
            {"model": "claude-sonnet-5-5", "messages": HI, "max_tokens": 5},
            {"Authorization": "Bearer no", "x-api-key": "no"},
            401,
        ),
        (
            {"model": "claude-sonnet-5-5", "messages": HI, "max_tokens": 5},
            {"anthropic-version": "1999-01-01"},
            400,
        ),
    ],
)
def test_claude_refuses_what_the_real_one_refuses(
    claude: anthropic.Anthropic,
    body: dict[str, object],
    headers: dict[str, str],
    status: int,
) -> None:
    import anthropic

    with pytest.raises(anthropic.APIStatusError) as refused:
        claude.post(
            "/v1/messages", body=body, options={"headers": headers}, cast_to=object
        )
    assert refused.value.status_code == status


def test_the_older_version_takes_a_temperature_and_the_older_header(
    claude: anthropic.Anthropic,
) -> None:
    body = {
        "model": "claude-sonnet-5-5",
        "messages": HI,
        "max_tokens": 5,
        "temperature": 0,
    }
    claude.post(
        "/v1/messages",
        body=body,
        options={"headers": {"anthropic-version": "2023-06-01", "x-api-key": KEY}},
        cast_to=object,
    )


def test_claudes_limits_and_troubles_are_its_sdks_errors(
    claude: anthropic.Anthropic, script: ModelScript
) -> None:
    import anthropic

    script.faults.extend(["rate_limit", "server_error"])
    with pytest.raises(anthropic.RateLimitError) as limited:
        claude.messages.create(
            model="claude-sonnet-5-5",
            max_tokens=10,
            messages=[{"role": "user", "content": "Hi"}],
        )
    assert limited.value.response.headers["retry-after"] == "1"
    with pytest.raises(anthropic.InternalServerError):
        claude.messages.create(
            model="claude-sonnet-5-5",
            max_tokens=10,
            messages=[{"role": "user", "content": "Hi"}],
        )


def test_gpt_answers_its_own_sdk_in_chat_and_responses(gpt: openai.OpenAI) -> None:
    chat = gpt.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "Hi"}], temperature=0
    )
    assert (chat.choices[0].message.content, chat.choices[0].finish_reason) == (
        "You said Hi.",
        "stop",
    )
    response = gpt.responses.create(
        model="gpt-4o-mini", input="Hi", instructions="Be brief."
    )
    assert response.output_text == "You said Hi."


def test_gpt_refuses_what_the_real_one_refuses(gpt: openai.OpenAI) -> None:
    import openai

    with pytest.raises(openai.NotFoundError):
        gpt.responses.create(model="gpt-0", input="Hi")
    with pytest.raises(openai.BadRequestError):
        gpt.responses.create(model="gpt-5.4-mini", input="Hi", temperature=0)
    with pytest.raises(openai.AuthenticationError):
        gpt.with_options(api_key="wrong").responses.create(
            model="gpt-4o-mini", input="Hi"
        )


def test_gpts_cut_off_and_refusal_are_told_as_its_sdk_expects(
    gpt: openai.OpenAI, script: ModelScript
) -> None:
    script.faults.extend(["cut_off", "refusal"])
    cut = gpt.responses.create(model="gpt-4o-mini", input="Hi")
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"
    declined = gpt.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "Hi"}]
    )
    assert declined.choices[0].message.refusal
