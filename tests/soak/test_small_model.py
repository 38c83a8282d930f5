"""A real model, small and on this machine, through the whole way after a call: `make soak`."""

import asyncio
import os
from pathlib import Path

import pytest

from aftercall.app import App, build
from aftercall.cli.context import wait_for_steps
from aftercall.config import load_config
from aftercall.journal.verify import verify_archive
from aftercall.model.calls import Call
from aftercall.model.reading import Step
from aftercall.postcall.steps import list_steps
from aftercall.running import running
from fakes import make_call

MODEL = "smollm2"
pytestmark = pytest.mark.skipif(
    not os.environ.get("AFTERCALL_SOAK"), reason="slow: `make soak` brings the model"
)


@pytest.mark.timeout(1200)
def test_a_real_model_reads_a_call_and_every_step_comes_to_its_end(
    model_url: str, tmp_path: Path
) -> None:
    """What so small a model says may be poor; then its step fails, visibly and with a reason,
    and nothing is lost.
    """
    environment = {
        "AFTERCALL_HOME": str(tmp_path),
        "AFTERCALL_MODEL": f"openai-compatible:{MODEL}",
        "AFTERCALL_READING_TIMEOUT_S": "600",
        "AFTERCALL_READING_MAX_TOKENS": "160",
        "AFTERCALL_WORK_ENABLED": "false",
        "OPENAI_BASE_URL": model_url,
    }
    call = make_call(
        [
            ("agent", "Hello!"),
            ("caller", "This is Bill Harker. Please call the plumber."),
            ("agent", "I will."),
        ]
    )
    app = build(load_config(environ=environment).settings)
    steps = asyncio.run(work(app, call))
    for step in steps:
        print(f"{step.name}: {step.state}; {step.result or step.reason}; {step.trace}")
    assert {step.name for step in steps} == set(list_steps(app.step_runner.context))
    assert {step.state for step in steps} <= {"done", "skipped", "failed"}
    assert all(step.reason for step in steps if step.state != "done")
    assert all(
        step.reason.startswith(f"openai-compatible:{MODEL}: its answer about")
        for step in steps
        if step.state == "failed"
    )
    asked = [step.trace for step in steps if step.trace is not None]
    assert sum(trace.output_tokens for trace in asked) > 0, "the model was never heard"
    assert {trace.reader for trace in asked} == {f"openai-compatible:{MODEL}"}
    assert verify_archive(app.archive.place, app.store).faults == ()
    app.close()


async def work(app: App, call: Call) -> list[Step]:
    async with running(app):
        app.journal.ingest(call)
        return await wait_for_steps(app, call.id)
