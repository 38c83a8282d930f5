"""Who an agent is comes from calls that it answered itself; on both databases."""

from dataclasses import replace

import pytest

from aftercall.app import App
from aftercall.journal.journal import ingest_call
from aftercall.model.calls import Turn
from aftercall.model.reading import Identity, Reading
from aftercall.workspace import files
from aftercall.workspace.paths import Workspace
from fakes import FakeReader, make_call, make_live_call
from followup_work import later

SAID = (("agent", "Hi, this is Wren."), ("caller", "Hello Wren."))


def run_identity_step(app: App, call_id: str) -> tuple[str, str]:
    reading = Reading(
        language="en", summary="They spoke.", identity=Identity(name="Wren")
    )
    replace(app, reader=FakeReader(reading)).step_runner.run(call_id, "identity")
    (step,) = app.steps.of_call(call_id)
    return step.state, step.reason


@pytest.mark.parametrize("agent_id", ["main", "other"])
def test_a_call_that_was_handed_in_names_no_agent(app: App, agent_id: str) -> None:
    row, _ = ingest_call(
        app.journal, make_call(SAID, source="twilio", agent_id=agent_id)
    )
    assert run_identity_step(app, row.live.id) == (
        "skipped",
        "another agent answered this call",
    )
    assert files.read(Workspace.from_settings(app.settings, agent_id).identity) is None


async def test_a_call_that_the_agent_answered_names_that_agent_alone(app: App) -> None:
    record = await app.journal.open(make_live_call(agent_id="other"))
    for seq, (speaker, text) in enumerate(SAID, 1):
        await record.append(
            Turn.model_validate(
                {"seq": seq, "speaker": speaker, "text": text, "at": later(seq)}
            )
        )
    await app.journal.seal(record, end_reason="caller_hung_up")
    assert run_identity_step(app, record.call.id)[0] == "done"
    assert "Wren" in (
        files.read(Workspace.from_settings(app.settings, "other").identity) or ""
    )
    assert files.read(Workspace.from_settings(app.settings).identity) is None


async def test_a_caller_whose_name_is_said_back_does_not_name_the_agent(
    app: App,
) -> None:
    record = await app.journal.open(make_live_call())
    said = (
        ("agent", "Hello!"),
        ("caller", "Hi, this is Wren."),
        ("agent", "Hi, this is Wren."),
    )
    for seq, (speaker, text) in enumerate(said, 1):
        await record.append(
            Turn.model_validate(
                {"seq": seq, "speaker": speaker, "text": text, "at": later(seq)}
            )
        )
    await app.journal.seal(record, end_reason="caller_hung_up")
    assert run_identity_step(app, record.call.id)[0] == "skipped"
