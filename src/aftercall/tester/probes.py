"""Looking at the agent's own system after the call: what was really done counts, not what was
said.
"""

import asyncio
from collections.abc import Sequence

import httpx2

from aftercall.clock import Clock
from aftercall.tester.scenario import Scenario, ScenarioProbe
from aftercall.tester.score import JudgedExpectation

RETRY_INTERVAL_S = 0.25
MAX_ANSWER = 1_000_000


async def probe(scenario: Scenario, clock: Clock) -> list[JudgedExpectation]:
    return [await _probe_one(item, clock) for item in scenario.probes]


async def _probe_one(item: ScenarioProbe, clock: Clock) -> JudgedExpectation:
    """Asked again until it passes or its time is over: systems take a moment to write down what
    was agreed.
    """
    until_s = clock.monotonic() + item.within_s
    while True:
        reason = await (_ask_http(item) if item.http else _ask_command(item.command, item))
        if not reason or clock.monotonic() >= until_s:
            return JudgedExpectation(
                item.name, "missed" if reason else "met", reason or "the probe passed"
            )
        await clock.sleep(RETRY_INTERVAL_S)


async def _ask_http(item: ScenarioProbe) -> str:
    try:
        async with httpx2.AsyncClient(timeout=item.within_s, trust_env=False) as http:
            answer = await http.get(str(item.http))
    except httpx2.HTTPError as error:
        return f"no answer ({type(error).__name__})"
    return _check(item, answer.status_code, answer.text[:MAX_ANSWER])


async def _ask_command(command: Sequence[str], item: ScenarioProbe) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError as error:
        return f"{command[0]} cannot be started ({error.strerror})"
    try:
        async with asyncio.timeout(item.within_s):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{command[0]} did not end within {item.within_s:g} s"
    return _check(item, process.returncode or 0, output[:MAX_ANSWER].decode("utf-8", "replace"))


def _check(item: ScenarioProbe, status: int, text: str) -> str:
    if status != item.status:
        return f"answered {status}, not {item.status}"
    missing = [words for words in item.contains if words not in text]
    if missing:
        return f"does not hold {missing[0]!r}"
    surplus = [words for words in item.lacks if words in text]
    return f"holds {surplus[0]!r}" if surplus else ""
