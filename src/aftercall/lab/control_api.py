"""The lab's own routes: a caller played from a terminal or a script in any language."""

from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from aftercall.errors import RefusedInput
from aftercall.lab.faults import queue_fault
from aftercall.lab.handset import Handset, ring_agent
from aftercall.lab.server import (
    ANTHROPIC_KEY,
    DEEPGRAM_KEY,
    GITHUB_TOKEN,
    OPENAI_KEY,
    REMEM_KEY,
    Lab,
)
from aftercall.lab.voices import VoiceName, make_voice


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

    @router.post("/faults", summary="Something goes wrong with the next request", status_code=204)
    async def order_fault(wrong: FaultOrder) -> None:
        _or_422(lambda: queue_fault(lab, wrong.fault))

    @router.post("/calls", summary="Ring an agent's webhook", status_code=201)
    async def ring(wanted: RingOrder) -> dict[str, Any]:
        _or_422(lambda: make_voice(wanted.voice))
        handsets.append(
            await ring_agent(
                lab,
                wanted.carrier,
                wanted.agent.rstrip("/"),
                wanted.caller,
                wanted.callee,
                wanted.voice,
            )
        )
        return _describe_call(len(handsets) - 1, handsets[-1])

    @router.post(
        "/calls/{number}/say", summary="The caller says something; answers with what they hear then"
    )
    async def say(number: int, words: WordsOrder) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.say(words.text)
        return _describe_call(number, handset)

    @router.post("/calls/{number}/hang-up", summary="The caller hangs up")
    async def hang_up(number: int) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.hang_up()
        return _describe_call(number, handset)

    return router


def _or_422(work: Callable[[], object]) -> None:
    try:
        work()
    except RefusedInput as error:
        raise HTTPException(422, str(error)) from None


def _find(handsets: list[Handset], number: int) -> Handset:
    if not 0 <= number < len(handsets):
        raise HTTPException(404, "there is no such call")
    return handsets[number]


def _describe_call(number: int, handset: Handset) -> dict[str, Any]:
    """What was heard is told once."""
    return {
        "call": number,
        "heard": handset.pop_heard(),
        "is_over": handset.is_over(),
        "trouble": handset.trouble(),
    }


def make_exports(lab: Lab, number: str) -> dict[str, dict[str, str]]:
    """`number` is the agent's own."""
    address = lab.address
    return {
        "Twilio": {
            "TWILIO_ACCOUNT_SID": lab.exchange.carrier.account_sid,
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
        "Anthropic": {"ANTHROPIC_API_KEY": ANTHROPIC_KEY, "ANTHROPIC_BASE_URL": address},
        "Remem": {"REMEM_API_KEY": REMEM_KEY, "REMEM_API_URL": address},
        "GitHub": {
            "GITHUB_TOKEN": GITHUB_TOKEN,
            "AFTERCALL_GITHUB_REPOSITORY": lab.github.repository,
            "AFTERCALL_GITHUB_API_URL": address,
        },
    }
