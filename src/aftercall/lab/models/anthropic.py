"""An emulated Anthropic Messages server.

It takes the key in either header. The newer version refuses sampling parameters.
"""

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aftercall.ids import new_id
from aftercall.lab.models.script import Fault, ModelApi, ModelScript, ScriptedQuestion
from aftercall.lab.rest import REFUSALS, Refusal

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
_FAULTS = {
    "rate_limit": (429, "rate_limit_error"),
    "quota": (402, "billing_error"),
    "overloaded": (529, "overloaded_error"),
    "server_error": (500, "api_error"),
}
_STOP_REASONS = {"cut_off": "max_tokens", "refusal": "refusal"}


def make_anthropic(script: ModelScript, key: str, models: tuple[str, ...]) -> Starlette:
    api = ModelApi(script, key, models, _refuse, _FAULTS)

    async def post_messages(request: Request) -> Response:
        return await api.answer(await _read(api, request), _respond)

    routes = [Route("/v1/messages", post_messages, methods=["POST"])]
    return Starlette(routes=routes, exception_handlers=REFUSALS)


async def _read(api: ModelApi, request: Request) -> ScriptedQuestion:
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    given = request.headers.get("x-api-key") or (
        bearer if scheme.lower() == "bearer" else ""
    )
    if not api.is_key(given):
        raise _refuse(401, "authentication_error", "invalid x-api-key")
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
        raise _refuse(404, "not_found_error", f"model: {body['model']}")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise api.refuse_invalid(
            "max_tokens: Input should be greater than or equal to 1"
        )
    messages = tuple(
        (message["role"], _text(message["content"])) for message in body["messages"]
    )
    if not messages or messages[0][0] != "user":
        raise api.refuse_invalid("messages: first message must use the user role")
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    return ScriptedQuestion(
        body["model"], _text(body.get("system", "")), messages, schema, body
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(
        block.get("text", "") for block in content if block.get("type") == "text"
    )


def _respond(asked: ScriptedQuestion, said: str, fault: Fault | None) -> Response:
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


def _refuse(status: int, kind: str, message: str) -> Refusal:
    error = {"type": kind, "message": message}
    body = {"type": "error", "error": error, "request_id": f"req_{new_id()}"}
    return Refusal(JSONResponse(body, status))
