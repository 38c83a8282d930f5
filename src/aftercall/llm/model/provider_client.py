"""The client on top of pydantic-ai. Imported on first use: it takes seconds to load."""

import json
from typing import Any

import httpx2
from pydantic_ai import exceptions as theirs
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from aftercall.errors import (
    ModelDeclined,
    ModelError,
    ModelOffForm,
    ModelRefused,
    ModelUnavailable,
)
from aftercall.llm.model.client import Completion, Finish, ModelChoice, Prompt, Usage
from aftercall.model.json_fields import Json

_FINISHES: dict[str | None, Finish] = {
    "length": "cut_off",
    "content_filter": "declined",
}


class ProviderClient:
    """One model and one pool of connections. Lives in one event loop."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._http = httpx2.AsyncClient(timeout=choice.limits.timeout_s)
        self._model = _connect(choice, self._http)
        self._is_openai_compatible = choice.provider == "openai-compatible"
        self._takes_schema = self._is_openai_compatible or bool(
            self._model.profile.get("supports_json_schema_output")
        )

    async def ask(self, prompt: Prompt, timeout_s: float) -> Completion:
        """Sends one request without retries: the step retries. Raises a ModelError."""
        settings = ModelSettings(
            max_tokens=self._choice.limits.max_tokens,
            timeout=timeout_s,
            request_timeout=timeout_s,
            max_retries=0,
        )
        if self._choice.takes_temperature:
            settings["temperature"] = 0.0
        try:
            response = await model_request(
                self._model,
                self._messages(prompt),
                model_settings=settings,
                model_request_parameters=self._parameters(prompt),
            )
        except theirs.AgentRunError as error:
            if (
                self._is_openai_compatible
                and self._takes_schema
                and _is_plain_rejection(error)
            ):
                self._takes_schema = False  # not every compatible server takes a schema
                return await self.ask(prompt, timeout_s)
            # Their text may hold the prompt, and so speech.
            raise to_model_error(error, self._choice) from None
        finish = _FINISHES.get(response.finish_reason, "whole")
        return Completion(_text(response), finish, _usage(response))

    async def close(self) -> None:
        await self._http.aclose()

    def _messages(self, prompt: Prompt) -> list[ModelMessage]:
        instructions = prompt.instructions
        if self._is_openai_compatible or not self._takes_schema:
            shape = outline_schema(prompt.schema, prompt.schema.get("$defs", {}))
            instructions += f"\n\nThe answer is JSON like this:\n{json.dumps(shape)}"
        messages: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart(prompt.data)], instructions=instructions)
        ]
        if prompt.repair:
            wrong, why = prompt.repair
            messages.append(ModelResponse(parts=[TextPart(wrong)]))
            again = (
                f"That answer does not fit: {why}. "
                "Answer again, with nothing but the JSON object."
            )
            messages.append(
                ModelRequest(parts=[UserPromptPart(again)], instructions=instructions)
            )
        return messages

    def _parameters(self, prompt: Prompt) -> ModelRequestParameters:
        if not self._takes_schema:
            return ModelRequestParameters()
        form = OutputObjectDefinition(json_schema=prompt.schema, name=prompt.name)
        return ModelRequestParameters(
            output_mode="native", output_object=form, allow_text_output=True
        )


def outline_schema(schema: Json, defs: Json) -> Any:
    """The form as an example with descriptions for values: a third of a schema's tokens."""
    told = schema.get("description")
    if ref := schema.get("$ref"):
        schema = defs[ref.rpartition("/")[2]]
    if options := schema.get("anyOf"):
        first = outline_schema(options[0], defs)
        return f"{told or first}, or null" if isinstance(first, str) else first
    if values := schema.get("enum"):
        return " | ".join(values)
    if schema.get("type") == "object":
        fields = schema.get("properties", {}).items()
        return {name: outline_schema(field, defs) for name, field in fields}
    if schema.get("type") == "array":
        return [outline_schema(schema["items"], defs)]
    return told or schema.get("type", "text")


def _connect(choice: ModelChoice, http: httpx2.AsyncClient) -> Model:
    if choice.provider == "anthropic":
        return _connect_anthropic(choice, http)
    return _connect_openai(choice, http)


def _connect_anthropic(choice: ModelChoice, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - slow to load
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - the same

    key = choice.api_key.get_secret_value()
    provider = AnthropicProvider(
        api_key=key, base_url=choice.base_url, http_client=http
    )
    return AnthropicModel(choice.model, provider=provider)


def _connect_openai(choice: ModelChoice, http: httpx2.AsyncClient) -> Model:
    """The Responses API for OpenAI, the chat API for compatible servers."""
    from pydantic_ai.models import openai  # noqa: PLC0415 - slow to load
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - the same

    key = choice.api_key.get_secret_value()
    provider = OpenAIProvider(api_key=key, base_url=choice.base_url, http_client=http)
    if choice.provider == "openai":
        return openai.OpenAIResponsesModel(choice.model, provider=provider)
    return openai.OpenAIChatModel(choice.model, provider=provider)


def _is_plain_rejection(error: theirs.AgentRunError) -> bool:
    return isinstance(error, theirs.ModelHTTPError) and error.status_code in (400, 422)


def _text(response: ModelResponse) -> str:
    return "".join(
        part.content for part in response.parts if isinstance(part, TextPart)
    )


def _usage(response: ModelResponse) -> Usage:
    try:
        cost = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # a model without a known price
        cost = None
    return Usage(response.usage.input_tokens, response.usage.output_tokens, cost)


def to_model_error(error: theirs.AgentRunError, choice: ModelChoice) -> ModelError:
    """Our error for theirs: retryable, to be fixed by the operator, or caused by the call."""
    name = choice.name
    match error:
        case theirs.ModelQuotaExceededError():
            return ModelRefused(
                f"{name}: the account's quota is used up; fix that with the provider, then "
                "run the step again"
            )
        case theirs.ModelRateLimitError():
            return ModelUnavailable(f"{name}: is rate-limited", error.retry_after)
        case theirs.ModelTimeoutError() | theirs.ModelRequestTimeout():
            return ModelUnavailable(
                f"{name}: gave no answer in time (reading.timeout_s)"
            )
        case theirs.ModelConnectionError():
            return ModelUnavailable(
                f"{name}: cannot be reached{_at(choice)}; check network and address"
            )
        case theirs.ModelAuthenticationError():
            return ModelRefused(
                f"{name}: refuses the key; check it and its permissions"
            )
        case theirs.ModelNotFoundError():
            return ModelRefused(
                f"{name}: there is no such model at this address; check AFTERCALL_MODEL"
            )
        case theirs.ModelContextWindowExceededError():
            return ModelRefused(
                f"{name}: the call is too long for it in one piece; lower reading.part_chars"
            )
        case theirs.ModelRequestRejectedError():
            return ModelRefused(
                f"{name}: refuses the request{_status(error)}; it may be too old or too new "
                "for this version"
            )
        case theirs.ModelAPIError():
            return ModelUnavailable(
                f"{name}: has a problem{_status(error)}", error.retry_after
            )
        case theirs.ContentFilterError():
            return ModelDeclined(
                f"{name}: declines to answer for this call; use another model, or rules"
            )
    return ModelOffForm(f"{name}: its answer cannot be read")


def _at(choice: ModelChoice) -> str:
    return f" at {choice.base_url}" if choice.base_url else ""


def _status(error: theirs.ModelAPIError) -> str:
    return (
        f" (HTTP {error.status_code})"
        if isinstance(error, theirs.ModelHTTPError)
        else ""
    )
