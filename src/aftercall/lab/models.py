"""Emulated model servers: they refuse what the real ones refuse, and fail on request.

OpenAI has chat completions, responses and embeddings; the newer models refuse a temperature.
Anthropic takes the key in either header; the newer version refuses sampling parameters. Both
answer Aftercall's own questions by reading the transcript in the request by rules: the fields of
the requested form tell which question it is. Other requests get a sentence.
"""

import json
import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aftercall.ids import new_id
from aftercall.lab.rest import (
    REFUSALS,
    Fault,
    ModelApi,
    ModelScript,
    Refusal,
    ScriptedQuestion,
)
from aftercall.llm.reader import compose_greeting, to_summary
from aftercall.model.calls import Call, Turn
from aftercall.model.json_fields import Json
from aftercall.model.reading import Reading

AGENT_NAME = "Wren"
_TURN = re.compile(r"^\[(\d+)\] (Agent|Caller): (.*)$", re.MULTILINE)
_KNOWN_NAME = re.compile(r"^=== name [0-9a-f]{16}\n(.+)\n===", re.MULTILINE)
_DAY = re.compile(r"\b(\d{4}-\d\d-\d\d) (\d\d:\d\d) [A-Z+-]")


def answer_question(asked: ScriptedQuestion) -> str:
    """The form is a schema beside the request, or part of the system prompt."""
    from aftercall.llm.rules.reader import RulesReader  # noqa: PLC0415 - slow to load

    fields = set((asked.schema or {}).get("properties", {}))
    fields = fields or set(re.findall(r'"(\w+)": ', asked.system))
    reading = RulesReader().read(parse_call(asked.data))
    for field, respond in _BY_FIELD.items():
        if field in fields:
            return json.dumps(respond(reading, asked), ensure_ascii=False)
    return "The caller called."


def parse_call(data: str) -> Call:
    """The call that a transcript shows."""
    at = datetime(2026, 2, 13, tzinfo=UTC)
    if day := _DAY.search(data):
        at = datetime.strptime(f"{day[1]} {day[2]}", "%Y-%m-%d %H:%M").replace(
            tzinfo=UTC
        )
    said = [
        Turn.model_validate(
            {"seq": seq, "speaker": speaker.lower(), "text": text, "at": at}
        )
        for seq, (_, speaker, text) in enumerate(_TURN.findall(data), 1)
    ]
    return Call(source="lab", sid="lab", started_at=at, ended_at=at, turns=tuple(said))


def _summary(reading: Reading, _: ScriptedQuestion) -> Json:
    return to_summary(reading).model_dump()


def _profile(reading: Reading, _: ScriptedQuestion) -> Json:
    topics = "; ".join(request.title for request in reading.requests)
    return reading.profile.model_dump() | {
        "context": f"Asked for: {topics}" if topics else None
    }


def _identity(reading: Reading, _: ScriptedQuestion) -> Json:
    name = reading.identity.name or AGENT_NAME
    return reading.identity.model_dump() | {"name": name, "vibe": "brisk and kind"}


def _greeting(reading: Reading, asked: ScriptedQuestion) -> Json:
    known = _KNOWN_NAME.search(asked.data)
    name = (known[1] if known else None) or reading.profile.spoken_name
    return {
        "sentence": compose_greeting(
            name, [request.title for request in reading.requests]
        )
    }


def _requests(reading: Reading, _: ScriptedQuestion) -> Json:
    return reading.model_dump(
        mode="json", include={"requests", "withdrawn", "promises"}
    )


def _facts(reading: Reading, _: ScriptedQuestion) -> Json:
    return reading.model_dump(mode="json", include={"facts"})


def _reply(reading: Reading, asked: ScriptedQuestion) -> Json:
    last = _TURN.findall(asked.data)[-1:]
    heard = last[0][2] if last else ""
    return {"say": f"Certainly: {heard}", "ends_call": "bye" in heard.lower()}


def _answer(reading: Reading, asked: ScriptedQuestion) -> Json:
    """What some words are, or what became of a request: as the rules see it."""
    about = asked.data.rpartition("\n")[2]
    if about.startswith("What became of"):
        gone = any(item.title in about for item in reading.withdrawn)
        return {"answer": "called off" if gone else "still wanted"}
    words = [item.words for item in reading.requests]
    words += [item.words for item in reading.unclear]
    is_asked = any(said in about for said in words)
    return {"answer": "request" if is_asked else "information"}


_BY_FIELD: dict[str, Callable[[Reading, ScriptedQuestion], Json]] = {
    "topics": _summary,
    "call_name": _profile,
    "creature": _identity,
    "sentence": _greeting,
    "requests": _requests,
    "say": _reply,
    "facts": _facts,
    "answer": _answer,
    "kind": lambda reading, asked: {"kind": "task"},
}

EMBEDDING_SIZE = 64
FIXED_TEMPERATURE_PREFIXES = ("gpt-5", "o1", "o3", "o4")
REFUSAL_TEXT = "I'm sorry, I can't help with that."
CREATED_AT = 1739537297
_WORD = re.compile(r"\w+")
_FAULTS = {
    "rate_limit": (429, "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota"),
    "overloaded": (503, "server_overloaded"),
    "server_error": (500, "server_error"),
    "no_schema": (400, "unsupported_parameter"),
}


def make_openai(script: ModelScript, key: str, models: tuple[str, ...]) -> Starlette:
    """The two APIs of OpenAI for text: chat completions and responses."""
    api = ModelApi(script, key, models, _refuse, _FAULTS)

    async def post_chat(request: Request) -> Response:
        body = await _read(api, request, "messages")
        system = "\n".join(
            text for _, text in _pick(body["messages"], "system", "developer")
        )
        messages = _pick(body["messages"], "user", "assistant")
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        asked = ScriptedQuestion(body["model"], system, messages, schema, body)
        return await api.answer(asked, _respond_to_chat)

    async def post_responses(request: Request) -> Response:
        body = await _read(api, request, "input")
        items = body["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        messages = _pick(items, "user", "assistant")
        schema = body.get("text", {}).get("format", {}).get("schema")
        system = body.get("instructions") or ""
        asked = ScriptedQuestion(body["model"], system, messages, schema, body)
        return await api.answer(asked, _respond_to_responses)

    async def post_embeddings(request: Request) -> Response:
        body = await _read(api, request, "input")
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        messages = tuple(("user", text) for text in texts)
        asked = ScriptedQuestion(body["model"], "", messages, None, body)
        return await api.answer(asked, _respond_to_embeddings)

    routes = [
        Route("/v1/chat/completions", post_chat, methods=["POST"]),
        Route("/v1/responses", post_responses, methods=["POST"]),
        Route("/v1/embeddings", post_embeddings, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers=REFUSALS)


def _pick(items: list[Json], *roles: str) -> tuple[tuple[str, str], ...]:
    """The words of these roles, in order."""
    return tuple(
        (item["role"], _text(item["content"]))
        for item in items
        if item.get("role") in roles
    )


async def _read(api: ModelApi, request: Request, required: str) -> Json:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not api.is_key(given):
        raise _refuse(401, "invalid_api_key", "Incorrect API key provided")
    body = await api.read_json(request, "model")
    model = body["model"]
    if model not in api.models:
        reason = f"The model `{model}` does not exist or you do not have access to it."
        raise _refuse(404, "model_not_found", reason)
    if model.startswith(FIXED_TEMPERATURE_PREFIXES):
        if "max_tokens" in body:
            raise _refuse(
                400, "unsupported_parameter", "Use 'max_completion_tokens' instead."
            )
        if body.get("temperature", 1) != 1:
            reason = "'temperature' does not support 0.0 with this model."
            raise _refuse(400, "unsupported_value", reason)
    if required not in body:
        raise api.refuse_invalid(f"{required}: Field required")
    return body


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text", "") for part in content)


def _respond_to_chat(
    asked: ScriptedQuestion, said: str, fault: Fault | None
) -> Response:
    message = {
        "role": "assistant",
        "content": said or None,
        "refusal": REFUSAL_TEXT if fault == "refusal" else None,
    }
    finish_reason = "length" if fault == "cut_off" else "stop"
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": finish_reason,
        "logprobs": None,
    }
    prompt = asked.token_count
    completion = len(said) // 4
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    body = {
        "id": f"chatcmpl-{new_id()}",
        "object": "chat.completion",
        "created": CREATED_AT,
        "model": asked.model,
        "choices": [choice],
        "usage": usage | {"total_tokens": prompt + completion},
    }
    return _respond(body)


def _respond_to_responses(
    asked: ScriptedQuestion, said: str, fault: Fault | None
) -> Response:
    content: Json = {"type": "output_text", "text": said, "annotations": []}
    if fault == "refusal":
        content = {"type": "refusal", "refusal": REFUSAL_TEXT}
    message = {
        "id": f"msg_{new_id()}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    prompt = asked.token_count
    completion = len(said) // 4
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }
    is_cut = fault == "cut_off"
    body = {
        "id": f"resp_{new_id()}",
        "object": "response",
        "created_at": CREATED_AT,
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "model": asked.model,
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }
    return _respond(body)


def _respond_to_embeddings(
    asked: ScriptedQuestion, said: str, fault: Fault | None
) -> Response:
    vectors = [
        {"object": "embedding", "index": index, "embedding": embed(text)}
        for index, (_, text) in enumerate(asked.messages)
    ]
    usage = {"prompt_tokens": asked.token_count, "total_tokens": asked.token_count}
    return _respond(
        {"object": "list", "data": vectors, "model": asked.model, "usage": usage}
    )


def embed(text: str) -> list[float]:
    vector = [0.0] * EMBEDDING_SIZE
    for word in _WORD.findall(text.lower()):
        vector[zlib.crc32(word.encode()) % EMBEDDING_SIZE] += 1.0
    return vector


def _respond(body: Json) -> Response:
    return JSONResponse(body, headers={"x-request-id": f"req_{new_id()}"})


def _refuse(status: int, kind: str, message: str) -> Refusal:
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": None,
        "code": kind,
    }
    return Refusal(JSONResponse({"error": error}, status))


VERSIONS = ("2023-06-01", "2026-10-21")
NO_SAMPLING_VERSION = "2026-10-21"
SAMPLING_FIELDS = {"temperature", "top_p", "top_k"}
_PROMPT_FIELDS = {"model", "max_tokens", "messages", "system", "tools", "tool_choice"}
_OPTION_FIELDS = {"metadata", "stop_sequences", "stream", "output_config", "thinking"}
KNOWN_FIELDS = (
    SAMPLING_FIELDS
    | _PROMPT_FIELDS
    | _OPTION_FIELDS
    | {"service_tier", "cache_control"}
)
_ANTHROPIC_FAULTS = {
    "rate_limit": (429, "rate_limit_error"),
    "quota": (402, "billing_error"),
    "overloaded": (529, "overloaded_error"),
    "server_error": (500, "api_error"),
}
_STOP_REASONS = {"cut_off": "max_tokens", "refusal": "refusal"}


def make_anthropic(script: ModelScript, key: str, models: tuple[str, ...]) -> Starlette:
    api = ModelApi(script, key, models, _refuse_anthropic, _ANTHROPIC_FAULTS)

    async def post_messages(request: Request) -> Response:
        return await api.answer(await _read_anthropic(api, request), _respond_anthropic)

    routes = [Route("/v1/messages", post_messages, methods=["POST"])]
    return Starlette(routes=routes, exception_handlers=REFUSALS)


async def _read_anthropic(api: ModelApi, request: Request) -> ScriptedQuestion:
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    given = request.headers.get("x-api-key") or (
        bearer if scheme.lower() == "bearer" else ""
    )
    if not api.is_key(given):
        raise _refuse_anthropic(401, "authentication_error", "invalid x-api-key")
    version = request.headers.get("anthropic-version")
    if version not in VERSIONS:
        raise api.refuse_invalid("anthropic-version: header is required")
    body = await api.read_json(request, "model", "max_tokens", "messages")
    known = (
        KNOWN_FIELDS - SAMPLING_FIELDS
        if version == NO_SAMPLING_VERSION
        else KNOWN_FIELDS
    )
    for name in body:
        if name not in known:
            raise api.refuse_invalid(f"{name}: Extra inputs are not permitted")
    if body["model"] not in api.models:
        raise _refuse_anthropic(404, "not_found_error", f"model: {body['model']}")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise api.refuse_invalid(
            "max_tokens: Input should be greater than or equal to 1"
        )
    messages = tuple(
        (message["role"], _text_anthropic(message["content"]))
        for message in body["messages"]
    )
    if not messages or messages[0][0] != "user":
        raise api.refuse_invalid("messages: first message must use the user role")
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    return ScriptedQuestion(
        body["model"], _text_anthropic(body.get("system", "")), messages, schema, body
    )


def _text_anthropic(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(
        block.get("text", "") for block in content if block.get("type") == "text"
    )


def _respond_anthropic(
    asked: ScriptedQuestion, said: str, fault: Fault | None
) -> Response:
    usage = {
        "input_tokens": asked.token_count,
        "output_tokens": len(said) // 4,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    message = {
        "id": f"msg_{new_id()}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [{"type": "text", "text": said}] if said else [],
        "stop_reason": _STOP_REASONS.get(fault or "", "end_turn"),
        "stop_sequence": None,
        "usage": usage,
    }
    return JSONResponse(message, headers={"request-id": f"req_{new_id()}"})


def _refuse_anthropic(status: int, kind: str, message: str) -> Refusal:
    error = {"type": kind, "message": message}
    body = {"type": "error", "error": error, "request_id": f"req_{new_id()}"}
    return Refusal(JSONResponse(body, status))


def make_model_list(keys: tuple[str, ...], models: tuple[str, ...]) -> list[Route]:
    """`GET /v1/models`, where OpenAI and Anthropic have one address: either header, one form."""

    def get_models(request: Request) -> Response:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.headers.get("x-api-key", bearer) not in keys:
            raise _refuse(401, "invalid_api_key", "Incorrect API key provided")
        shown = [{"id": name, "object": "model", "type": "model"} for name in models]
        wanted = request.path_params.get("name")
        if wanted is None:
            return JSONResponse({"object": "list", "data": shown})
        if wanted not in models:
            reason = f"The model `{wanted}` does not exist."
            raise _refuse(404, "model_not_found", reason)
        return JSONResponse(shown[models.index(wanted)])

    return [
        Route("/v1/models", get_models),
        Route("/v1/models/{name:path}", get_models),
    ]
