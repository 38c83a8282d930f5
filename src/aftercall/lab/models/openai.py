"""An emulated OpenAI: chat completions, responses and embeddings.

The newer models refuse a temperature, like the real ones.
"""

import re
import zlib
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aftercall.ids import new_id
from aftercall.lab.models.script import Fault, ModelApi, ModelScript, ScriptedQuestion
from aftercall.lab.rest import REFUSALS, Refusal

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
    api = ModelApi(script, key, models, _refuse, _FAULTS)

    async def post_chat(request: Request) -> Response:
        body = await _read(api, request, "messages")
        by_role = [(item["role"], _text(item["content"])) for item in body["messages"]]
        system = "\n".join(
            text for role, text in by_role if role in ("system", "developer")
        )
        messages = tuple(item for item in by_role if item[0] in ("user", "assistant"))
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        asked = ScriptedQuestion(body["model"], system, messages, schema, body)
        return await api.answer(asked, _respond_to_chat)

    async def post_responses(request: Request) -> Response:
        body = await _read(api, request, "input")
        items = body["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        spoken = [item for item in items if item.get("role") in ("user", "assistant")]
        messages = tuple((item["role"], _text(item["content"])) for item in spoken)
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


async def _read(api: ModelApi, request: Request, required: str) -> dict[str, Any]:
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
    prompt, completion = asked.token_count, len(said) // 4
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
    content: dict[str, Any] = {"type": "output_text", "text": said, "annotations": []}
    if fault == "refusal":
        content = {"type": "refusal", "refusal": REFUSAL_TEXT}
    message = {
        "id": f"msg_{new_id()}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    prompt, completion = asked.token_count, len(said) // 4
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


def _respond(body: dict[str, Any]) -> Response:
    return JSONResponse(body, headers={"x-request-id": f"req_{new_id()}"})


def _refuse(status: int, kind: str, message: str) -> Refusal:
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": None,
        "code": kind,
    }
    return Refusal(JSONResponse({"error": error}, status))
