"""`aftercall lab --ring`: a call through a lab, told line by line as it is heard, or whole as JSON."""

import asyncio
import sys
from typing import Any

import httpx2
from rich.console import Console
from rich.text import Text

from aftercall.errors import AftercallError

SLOWEST_ANSWER_S = 90.0


async def play(console: Console, address: str, wanted: dict[str, str], lines: list[str], *, as_json: bool) -> None:
    """Ring through the lab at `address`, ours or one that was running already."""
    spoken: list[dict[str, str]] = []
    async with httpx2.AsyncClient(base_url=address, timeout=SLOWEST_ANSWER_S, trust_env=False) as http:

        def show(speaker: str, text: str, *, is_known: bool = False) -> None:
            spoken.append({"speaker": speaker, "text": text})
            if not as_json and not is_known:
                console.print(Text.assemble((f"{speaker:6}", "bold"), f"  {text}"))

        async def do(path: str, body: dict[str, str]) -> dict[str, Any]:
            told = await _ask(http, address, path, body)
            for text in told["heard"]:
                show("agent", text)
            return told

        told = await do("", wanted)
        call, script = told["call"], iter(lines)
        while not told["is_over"]:
            line = next(script, "") if lines else await asyncio.to_thread(_read_line)
            if not line:
                break
            show("caller", line, is_known=not lines)
            told = await do(f"/{call}/say", {"text": line})
        told = await do(f"/{call}/hang-up", {})
    if as_json:
        console.print_json(data={"carrier": wanted["carrier"], "caller": wanted["caller"], "turns": spoken, "trouble": told["trouble"]})
    if told["trouble"]:
        raise AftercallError(f"lab: the call failed: {told['trouble']}")


async def _ask(http: httpx2.AsyncClient, address: str, path: str, body: dict[str, str]) -> dict[str, Any]:
    try:
        answer = await http.post(f"/lab/calls{path}", json=body)
    except httpx2.HTTPError as error:
        raise AftercallError(f"lab: no answer from {address} ({type(error).__name__}); choose another --port") from None
    if answer.status_code not in (200, 201):
        raise AftercallError(f"lab: what listens at {address} is no lab, or refused ({answer.status_code}); choose another --port")
    told: dict[str, Any] = answer.json()
    return told


def _read_line() -> str:
    """What the person at the terminal says; an empty line hangs up."""
    sys.stdout.write("caller  ")
    sys.stdout.flush()
    return sys.stdin.readline().strip()
