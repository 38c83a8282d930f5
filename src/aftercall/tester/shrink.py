"""The shortest list of a caller's steps that still shows a bug: steps are left out one after
the other, as long as it shows.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aftercall.tester.scenario import PlannedCall, Scenario

MAX_TRIES = 24
NONE_NEEDED = "none: it shows whatever the caller says"

Shows = Callable[[Scenario], Awaitable[bool]]


@dataclass(frozen=True)
class ShrinkStep:
    """One thing the caller may say: a turn of the list, a stage, or the opening of a call."""

    call: int
    kind: str
    place: int
    name: str


def steps_of(scenario: Scenario) -> list[ShrinkStep]:
    found = []
    for number, call in enumerate(scenario.calls):
        if call.caller_context.opening:
            found.append(ShrinkStep(number, "opening", 0, _named(number, scenario, "opening")))
        for place, turn in enumerate(call.turns):
            found.append(
                ShrinkStep(
                    number,
                    "turn",
                    place,
                    _named(
                        number, scenario, f"turn {place + 1}: {turn.say or turn.dtmf or 'silence'}"
                    ),
                )
            )
        for place, stage in enumerate(call.caller_context.response_stages):
            found.append(
                ShrinkStep(
                    number,
                    "stage",
                    place,
                    _named(number, scenario, f"stage {stage.name or place + 1}"),
                )
            )
    return found


def _named(number: int, scenario: Scenario, name: str) -> str:
    return f"call {number + 1}, {name}" if len(scenario.calls) > 1 else name


def keep_only(scenario: Scenario, steps: list[ShrinkStep]) -> Scenario:
    return scenario.model_copy(
        update={
            "calls": tuple(_cut(call, number, steps) for number, call in enumerate(scenario.calls))
        }
    )


def _cut(call: PlannedCall, number: int, steps: list[ShrinkStep]) -> PlannedCall:
    kept = {(step.kind, step.place) for step in steps if step.call == number}
    context = call.caller_context
    stages = tuple(
        stage for place, stage in enumerate(context.response_stages) if ("stage", place) in kept
    )
    opening = context.opening if ("opening", 0) in kept else ()
    turns = tuple(turn for place, turn in enumerate(call.turns) if ("turn", place) in kept)
    return call.model_copy(
        update={
            "turns": turns,
            "caller_context": context.model_copy(
                update={"response_stages": stages, "opening": opening}
            ),
        }
    )


async def shrink(scenario: Scenario, shows: Shows, tries: int = MAX_TRIES) -> tuple[str, ...]:
    """Halves first, then single steps; every try is a run, so there is a limit to them."""
    steps = steps_of(scenario)
    size = max(1, len(steps) // 2)
    while steps and tries > 0:
        at = 0
        while at < len(steps) and tries > 0:
            fewer = steps[:at] + steps[at + size :]
            tries -= 1
            if await shows(keep_only(scenario, fewer)):
                steps = fewer
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return tuple(step.name for step in steps) or (NONE_NEEDED,)
