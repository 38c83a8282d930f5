"""An emulated Anthropic Messages server.

Both ways of carrying the key are taken; the newer version refuses sampling parameters.
"""

import hmac
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aftercall.ids import new_id
from aftercall.lab.models.requests import (
    ModelRefusal,
    inject_fault,
    read_json,
    refuse_unknown,
    require_fields,
)
from aftercall.lab.models.script import ModelScript, ScriptedQuestion

VERSIONS = ("2023-06-01", "2026-10-21")
NO_SAMPLING_VERSION = "2026-10-21"
SAMPLING_FIELDS = ("temperature", "top_p", "top_k")
KNOWN_FIELDS = frozenset(
    {
        *(
            "model",
            "max_tokens",
            "messages",
            "system",
            "metadata",
            "stop_sequences",
            "stream",
            "tools",
            "tool_choice",
        ),
        *("output_config", "thinking", "service_tier", "cache_control", *SAMPLING_FIELDS),
    }
)
_FAULTS = {
    "rate_limit": (429, "rate_limit_error"),
    "quota": (402, "billing_error"),
    "overloaded": (529, "overloaded_error"),
    "server_error": (500, "api_error"),
}


def make_anthropic(script: ModelScript, key: str, models: tuple[str, ...]) -> Starlette:
    async def post_messages(request: Request) -> Response:
        try:
            asked = _read(request, await read_json(request), key, models)
        except ModelRefusal as refusal:
            return _refuse(refusal)
        script.questions.append(asked)
        return await _answer(script, asked)

    return Starlette(routes=[Route("/v1/messages", post_messages, methods=["POST"])])


def _read(
    request: Request, body: dict[str, Any], key: str, models: tuple[str, ...]
) -> ScriptedQuestion:
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    given = request.headers.get("x-api-key") or (bearer if scheme.lower() == "bearer" else "")
    if not hmac.compare_digest(given.encode(), key.encode()):
        raise ModelRefusal(401, "authentication_error", "invalid x-api-key")
    version = request.headers.get("anthropic-version")
    if version not in VERSIONS:
        raise ModelRefusal(400, "invalid_request_error", "anthropic-version: header is required")
    require_fields(body, "model", "max_tokens", "messages")
    refuse_unknown(
        body,
        KNOWN_FIELDS - set(SAMPLING_FIELDS) if version == NO_SAMPLING_VERSION else KNOWN_FIELDS,
    )
    if body["model"] not in models:
        raise ModelRefusal(404, "not_found_error", f"model: {body['model']}")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise ModelRefusal(
            400, "invalid_request_error", "max_tokens: Input should be greater than or equal to 1"
        )
    messages = tuple((message["role"], _text(message["content"])) for message in body["messages"])
    if not messages or messages[0][0] != "user":
        raise ModelRefusal(
            400, "invalid_request_error", "messages: first message must use the user role"
        )
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    return ScriptedQuestion(body["model"], _text(body.get("system", "")), messages, schema, body)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block.get("type") == "text")


async def _answer(script: ModelScript, asked: ScriptedQuestion) -> Response:
    fault = script.next_fault()
    if (instead := await inject_fault(script, fault, _FAULTS, _refuse)) is not None:
        return instead
    said = script.make_text(asked, fault)
    stop = {"cut_off": "max_tokens", "refusal": "refusal"}.get(fault or "", "end_turn")
    return JSONResponse(
        {
            "id": f"msg_{new_id()}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": [{"type": "text", "text": said}] if said else [],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": sum(len(text) for _, text in asked.messages) // 4,
                "output_tokens": len(said) // 4,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        },
        headers={"request-id": f"req_{new_id()}"},
    )


def _refuse(refusal: ModelRefusal) -> JSONResponse:
    body = {
        "type": "error",
        "error": {"type": refusal.kind, "message": str(refusal)},
        "request_id": f"req_{new_id()}",
    }
    return JSONResponse(body, refusal.status, refusal.headers)
