"""The lab's own routes: a caller played from a terminal or a script in any language."""

from typing import Any, Literal

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from aftercall.lab.handset import Handset, ring_agent
from aftercall.lab.server import Lab


class Ringing(BaseModel):
    agent: str = Field(pattern=r"^https?://\S+$")
    caller: str = "+15550100"
    callee: str = "+15550101"
    carrier: Literal["twilio", "telnyx"] = "twilio"


class Words(BaseModel):
    text: str


def make_router(lab: Lab) -> APIRouter:
    router = APIRouter(prefix="/lab/calls", tags=["lab"])
    handsets: list[Handset] = []

    @router.post("", summary="Ring an agent's webhook", status_code=201)
    async def ring(wanted: Ringing) -> dict[str, Any]:
        handsets.append(await ring_agent(lab, wanted.carrier, wanted.agent.rstrip("/"), wanted.caller, wanted.callee))
        return _tell(len(handsets) - 1, handsets[-1])

    @router.post("/{number}/say", summary="The caller says something; answers with what they hear then")
    async def say(number: int, words: Words) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.say(words.text)
        return _tell(number, handset)

    @router.post("/{number}/hang-up", summary="The caller hangs up")
    async def hang_up(number: int) -> dict[str, Any]:
        handset = _find(handsets, number)
        await handset.hang_up()
        return _tell(number, handset)

    return router


def _find(handsets: list[Handset], number: int) -> Handset:
    if not 0 <= number < len(handsets):
        raise HTTPException(404, "there is no such call")
    return handsets[number]


def _tell(number: int, handset: Handset) -> dict[str, Any]:
    """What was heard is told once."""
    return {"call": number, "heard": handset.hear(), "is_over": handset.is_over(), "trouble": handset.trouble()}
