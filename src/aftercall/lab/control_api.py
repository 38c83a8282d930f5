"""The lab's own routes: a terminal, or a script in any language, plays the caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from aftercall.errors import RefusedInput
from aftercall.lab.handset import Handset, ring_by_telnyx, ring_by_twilio
from aftercall.lab.server import (
    ANTHROPIC_KEY,
    DEEPGRAM_KEY,
    GITHUB_TOKEN,
    OPENAI_KEY,
    REMEM_KEY,
    Lab,
)
from aftercall.lab.speech import VoiceName, make_voice


class RingOrder(BaseModel):
    agent: str = Field(pattern=r"^https?://\S+$")
    caller: str = "+15550100"
    callee: str = "+15550101"
    carrier: Literal["twilio", "telnyx"] = "twilio"
    voice: VoiceName = "words"


class WordsOrder(BaseModel):
    text: str


class FaultOrder(BaseModel):
    fault: str = Field(description="SERVER=KIND, as in `anthropic=rate_limit`")


def make_router(lab: Lab) -> APIRouter:
    router = APIRouter(prefix="/lab", tags=["lab"])
    handsets: list[Handset] = []

    @router.post(
        "/faults", summary="Spoil the next request to a server", status_code=204
    )
    async def order_fault(order: FaultOrder) -> None:
        with _refused_as_422():
            lab.queue_fault(order.fault)

    @router.post("/calls", summary="Ring an agent's webhook", status_code=201)
    async def ring(order: RingOrder) -> dict[str, Any]:
        handsets.append(await _ring(lab, order))
        return _describe_call(len(handsets) - 1, handsets[-1])

    @router.post(
        "/calls/{number}/say", summary="Speak as the caller; returns the agent's answer"
    )
    async def say(number: int, words: WordsOrder) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.say(words.text)
        return _describe_call(number, handset)

    @router.post("/calls/{number}/hang-up", summary="Hang up as the caller")
    async def hang_up(number: int) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.hang_up()
        return _describe_call(number, handset)

    return router


async def _ring(lab: Lab, order: RingOrder) -> Handset:
    with _refused_as_422():
        speak = make_voice(order.voice)
    party = (
        order.agent.rstrip("/"),
        order.caller,
        order.callee,
        speak,
        lab.transcriber.transcribe,
    )
    if order.carrier == "twilio":
        return await ring_by_twilio(lab.exchange, *party)
    return await ring_by_telnyx(lab.telnyx, *party)


@contextmanager
def _refused_as_422() -> Iterator[None]:
    try:
        yield
    except RefusedInput as error:
        raise HTTPException(422, str(error)) from None


def _find(handsets: list[Handset], number: int) -> Handset:
    if not 0 <= number < len(handsets):
        raise HTTPException(404, "there is no such call")
    return handsets[number]


def _describe_call(number: int, handset: Handset) -> dict[str, Any]:
    """`heard` is what the agent has said since the last request."""
    return {
        "call": number,
        "heard": handset.pop_heard(),
        "is_over": handset.is_over,
        "trouble": handset.trouble,
    }


def make_exports(lab: Lab, number: str) -> dict[str, dict[str, str]]:
    """The settings that point an agent at the lab; `number` is the agent's."""
    address = lab.address
    return {
        "Twilio": {
            "TWILIO_ACCOUNT_SID": lab.exchange.account_sid,
            "TWILIO_AUTH_TOKEN": lab.exchange.auth_token,
            "TWILIO_PHONE_NUMBER": number,
            "AFTERCALL_TWILIO_API_URL": address,
        },
        "Telnyx": {
            "TELNYX_API_KEY": lab.telnyx.api_key,
            "TELNYX_PUBLIC_KEY": lab.telnyx.public_key,
            "TELNYX_PHONE_NUMBER": number,
            "AFTERCALL_TELNYX_API_URL": address,
        },
        "Deepgram": {
            "DEEPGRAM_API_KEY": DEEPGRAM_KEY,
            "AFTERCALL_DEEPGRAM_URL": f"ws{address.removeprefix('http')}{lab.deepgram.path}",
        },
        "OpenAI": {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": f"{address}/v1"},
        "Anthropic": {
            "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
            "ANTHROPIC_BASE_URL": address,
        },
        "Remem": {"REMEM_API_KEY": REMEM_KEY, "REMEM_API_URL": address},
        "GitHub": {
            "GITHUB_TOKEN": GITHUB_TOKEN,
            "AFTERCALL_GITHUB_REPOSITORY": lab.github.repository,
            "AFTERCALL_GITHUB_API_URL": address,
        },
    }
