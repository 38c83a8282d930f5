"""The lab's own routes: a caller played from a terminal or a script in any language."""

from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from aftercall.errors import RefusedInput
from aftercall.lab.faults import order
from aftercall.lab.handset import Handset, ring_agent
from aftercall.lab.server import Lab
from aftercall.lab.voices import VoiceName, make_voice


class Ringing(BaseModel):
    agent: str = Field(pattern=r"^https?://\S+$")
    caller: str = "+15550100"
    callee: str = "+15550101"
    carrier: Literal["twilio", "telnyx"] = "twilio"
    voice: VoiceName = "words"


class Words(BaseModel):
    text: str


class Wrong(BaseModel):
    fault: str = Field(description="SERVER=KIND, as in `anthropic=rate_limit`")


def make_router(lab: Lab) -> APIRouter:
    router = APIRouter(prefix="/lab", tags=["lab"])
    handsets: list[Handset] = []

    @router.post("/faults", summary="Something goes wrong with the next request", status_code=204)
    async def order_fault(wrong: Wrong) -> None:
        _or_422(lambda: order(lab, wrong.fault))

    @router.post("/calls", summary="Ring an agent's webhook", status_code=201)
    async def ring(wanted: Ringing) -> dict[str, Any]:
        _or_422(lambda: make_voice(wanted.voice))
        handsets.append(await ring_agent(lab, wanted.carrier, wanted.agent.rstrip("/"), wanted.caller, wanted.callee, wanted.voice))
        return _tell(len(handsets) - 1, handsets[-1])

    @router.post("/calls/{number}/say", summary="The caller says something; answers with what they hear then")
    async def say(number: int, words: Words) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.say(words.text)
        return _tell(number, handset)

    @router.post("/calls/{number}/hang-up", summary="The caller hangs up")
    async def hang_up(number: int) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.hang_up()
        return _tell(number, handset)

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


def _tell(number: int, handset: Handset) -> dict[str, Any]:
    """What was heard is told once."""
    return {"call": number, "heard": handset.hear(), "is_over": handset.is_over(), "trouble": handset.trouble()}
