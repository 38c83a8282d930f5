"""An emulated OpenAI: chat completions, responses and embeddings.

The newer models refuse a temperature, as the real ones do.
"""

import hmac
import re
import zlib
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aftercall.ids import new_id
from aftercall.lab.models.requests import ModelRefusal, inject_fault, read_json, require_fields
from aftercall.lab.models.script import Fault, ModelScript, ScriptedQuestion

EMBEDDING_SIZE = 64
_WORD = re.compile(r"\w+")


def embed(text: str) -> list[float]:
    vector = [0.0] * EMBEDDING_SIZE
    for word in _WORD.findall(text.lower()):
        vector[zlib.crc32(word.encode()) % EMBEDDING_SIZE] += 1.0
    return vector


def embeddings_body(asked: ScriptedQuestion) -> dict[str, Any]:
    vectors = [
        {"object": "embedding", "index": at, "embedding": embed(text)}
        for at, (_, text) in enumerate(asked.messages)
    ]
    used = sum(len(text) for _, text in asked.messages) // 4
    return {
        "object": "list",
        "data": vectors,
        "model": asked.model,
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


_FAULTS = {
    "rate_limit": (429, "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota"),
    "overloaded": (503, "server_overloaded"),
    "server_error": (500, "server_error"),
    "no_schema": (400, "unsupported_parameter"),
}
FIXED_TEMPERATURE_PREFIXES = ("gpt-5", "o1", "o3", "o4")
REFUSAL_TEXT = "I'm sorry, I can't help with that."


def make_openai(script: ModelScript, key: str, models: tuple[str, ...]) -> Starlette:
    async def post_chat(request: Request) -> Response:
        try:
            body = await _read_request(request, key, models)
            require_fields(body, "messages")
        except ModelRefusal as refusal:
            return _refuse(refusal)
        system = "\n".join(
            _text(item["content"])
            for item in body["messages"]
            if item["role"] in ("system", "developer")
        )
        messages = tuple(
            (item["role"], _text(item["content"]))
            for item in body["messages"]
            if item["role"] in ("user", "assistant")
        )
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        return await _answer(
            script, ScriptedQuestion(body["model"], system, messages, schema, body), _chat_body
        )

    async def post_responses(request: Request) -> Response:
        try:
            body = await _read_request(request, key, models)
            require_fields(body, "input")
        except ModelRefusal as refusal:
            return _refuse(refusal)
        items = (
            [{"role": "user", "content": body["input"]}]
            if isinstance(body["input"], str)
            else body["input"]
        )
        messages = tuple(
            (item["role"], _text(item["content"]))
            for item in items
            if item.get("role") in ("user", "assistant")
        )
        schema = body.get("text", {}).get("format", {}).get("schema")
        return await _answer(
            script,
            ScriptedQuestion(body["model"], body.get("instructions") or "", messages, schema, body),
            _responses_body,
        )

    async def post_embeddings(request: Request) -> Response:
        try:
            body = await _read_request(request, key, models)
            require_fields(body, "input")
        except ModelRefusal as refusal:
            return _refuse(refusal)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        asked = ScriptedQuestion(
            body["model"], "", tuple(("user", text) for text in texts), None, body
        )
        return await _answer(script, asked, lambda asked, _said, _fault: embeddings_body(asked))

    doors = {
        "/v1/chat/completions": post_chat,
        "/v1/responses": post_responses,
        "/v1/embeddings": post_embeddings,
    }
    return Starlette(routes=[Route(path, door, methods=["POST"]) for path, door in doors.items()])


async def _read_request(request: Request, key: str, models: tuple[str, ...]) -> dict[str, Any]:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not hmac.compare_digest(given.encode(), key.encode()):
        raise ModelRefusal(401, "invalid_api_key", "Incorrect API key provided")
    body = await read_json(request)
    require_fields(body, "model")
    if body["model"] not in models:
        raise ModelRefusal(
            404,
            "model_not_found",
            f"The model `{body['model']}` does not exist or you do not have access to it.",
        )
    if "max_tokens" in body and body["model"].startswith(FIXED_TEMPERATURE_PREFIXES):
        raise ModelRefusal(400, "unsupported_parameter", "Use 'max_completion_tokens' instead.")
    if body.get("temperature", 1) != 1 and body["model"].startswith(FIXED_TEMPERATURE_PREFIXES):
        raise ModelRefusal(
            400, "unsupported_value", "'temperature' does not support 0.0 with this model."
        )
    return body


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text", "") for part in content)


async def _answer(script: ModelScript, asked: ScriptedQuestion, shape: Any) -> Response:
    script.questions.append(asked)
    fault = script.next_fault()
    if (instead := await inject_fault(script, fault, _FAULTS, _refuse)) is not None:
        return instead
    body = shape(asked, script.make_text(asked, fault), fault)
    return JSONResponse(body, headers={"x-request-id": f"req_{new_id()}"})


def _chat_body(asked: ScriptedQuestion, said: str, fault: Fault | None) -> dict[str, Any]:
    used = _usage(asked, said)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": said or None,
        "refusal": REFUSAL_TEXT if fault == "refusal" else None,
    }
    return {
        "id": f"chatcmpl-{new_id()}",
        "object": "chat.completion",
        "created": 1739537297,
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "length" if fault == "cut_off" else "stop",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": used[0],
            "completion_tokens": used[1],
            "total_tokens": sum(used),
        },
    }


def _responses_body(asked: ScriptedQuestion, said: str, fault: Fault | None) -> dict[str, Any]:
    used = _usage(asked, said)
    spoken = (
        {"type": "refusal", "refusal": REFUSAL_TEXT}
        if fault == "refusal"
        else {"type": "output_text", "text": said, "annotations": []}
    )
    is_cut = fault == "cut_off"
    return {
        "id": f"resp_{new_id()}",
        "object": "response",
        "created_at": 1739537297,
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "model": asked.model,
        "output": [
            {
                "id": f"msg_{new_id()}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [spoken],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": used[0],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": used[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(used),
        },
    }


def _usage(asked: ScriptedQuestion, said: str) -> tuple[int, int]:
    return sum(len(text) for _, text in asked.messages) // 4, len(said) // 4


def _refuse(refusal: ModelRefusal) -> JSONResponse:
    error = {
        "message": str(refusal),
        "type": "invalid_request_error",
        "param": None,
        "code": refusal.kind,
    }
    return JSONResponse({"error": error}, refusal.status, refusal.headers)
