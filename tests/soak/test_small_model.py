"""A real model, small and on this machine, through the whole way after a call: `make soak`."""

import asyncio
import os
from pathlib import Path

import pytest

from aftercall.app import build
from aftercall.cli.progress import wait_for_steps
from aftercall.config import load
from aftercall.model.calls import Call
from aftercall.model.steps import Step
from aftercall.running import running
from aftercall.testing import make_call

pytestmark = pytest.mark.skipif(not os.environ.get("AFTERCALL_SOAK"), reason="slow: `make soak` brings the model")


def test_a_real_model_reads_a_call_and_every_step_comes_to_its_end(model_url: str, tmp_path: Path) -> None:
    environment = {
        "AFTERCALL_HOME": str(tmp_path),
        "AFTERCALL_MODEL": "openai-compatible:smollm2",
        "AFTERCALL_READING_TIMEOUT_S": "600",
        "AFTERCALL_READING_MAX_TOKENS": "400",
        "OPENAI_BASE_URL": model_url,
    }
    said = [
        ("agent", "Hello!"),
        ("caller", "Hi, this is Bill Harker. Please call the plumber about the kitchen sink."),
        ("agent", "I will."),
    ]
    steps = asyncio.run(work(environment, make_call(said)))
    print({name: (step.state, step.result or step.reason, step.trace) for name, step in steps.items()})
    assert steps["summary"].state == "done"
    assert steps["summary"].trace is not None
    assert steps["summary"].trace.reader == "openai-compatible:smollm2"
    assert steps["summary"].trace.output_tokens > 0 or steps["document"].state == "done"
    reasons = {step.reason for step in steps.values() if step.state == "failed"}
    assert all(reason.startswith("openai-compatible:smollm2: its answer about") for reason in reasons)


async def work(environment: dict[str, str], call: Call) -> dict[str, Step]:
    app = build(load(environ=environment).settings)
    async with running(app):
        app.journal.take_in(call)
        steps = await wait_for_steps(app, call.id)
    app.close()
    return {step.name: step for step in steps}
