"""Waiting for what happens after a call, and showing it."""

import asyncio

from rich.console import Console
from rich.text import Text

from aftercall.app import App
from aftercall.model.steps import Step
from aftercall.postcall.view import are_finished

LOOK_EVERY_S = 0.1
_COLOURS = {"done": "green", "failed": "red", "skipped": "dim", "running": "yellow", "waiting": "yellow"}


async def wait_for_steps(app: App, call_id: str) -> list[Step]:
    """Every step's end. Whoever runs them, here or in another process, writes them down; we look."""
    steps = await asyncio.to_thread(app.steps.of_call, call_id)
    while not are_finished(steps):
        await app.clock.sleep(LOOK_EVERY_S)
        steps = await asyncio.to_thread(app.steps.of_call, call_id)
    return steps


def print_steps(console: Console, steps: list[Step]) -> None:
    for step in steps:
        said = step.result if step.state == "done" else step.reason
        console.print(Text.assemble((f"{step.state:8}", _COLOURS[step.state]), f"{step.name:9} {said or ''}"))
