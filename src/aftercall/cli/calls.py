"""`aftercall calls`."""

import asyncio
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from aftercall.app import App
from aftercall.cli.context import get_cli_context, get_operator_name, make_table, print_json
from aftercall.clock import parse_instant
from aftercall.errors import NotWaiting
from aftercall.journal.recording_files import recordings_json
from aftercall.journal.view import call_json, row_json
from aftercall.memory.view import extraction_json
from aftercall.memory.visibility import redact_call
from aftercall.model.steps import Step
from aftercall.postcall.recording_desk import fetch_again
from aftercall.postcall.rerun import rerun
from aftercall.postcall.view import are_finished, steps_json
from aftercall.who.caller import read_caller
from aftercall.work import deliver

RECORDING = "recording"
FOLLOWUP = "followup"
group = typer.Typer(no_args_is_help=True, help="The calls there were, and those going on.")


@group.command("list")
def list_calls(
    context: typer.Context,
    limit: int = typer.Option(20, min=1, max=10_000, help="How many, newest first."),
    caller: str = typer.Option("", help="Only this caller's."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Calls, newest first."""
    stage = get_cli_context(context)
    with stage.open_app(reads_rows_only=True) as app:
        rows = app.store.list_page(limit=limit, caller=read_caller(caller, "--caller"))
    if json:
        print_json([row_json(row) for row in rows])
        return
    if not rows:
        stage.console.print("No calls yet. `aftercall ingest FILE` takes in a finished one.")
        return
    table = make_table("id", "started", "caller", "direction", "turns", "state", "ended because")
    for row in rows:
        started = row.live.started_at.astimezone(stage.config.settings.zone).strftime(
            "%Y-%m-%d %H:%M"
        )
        who = row.live.caller or "withheld"
        turns = str(row.turn_count) if row.state == "sealed" else ""
        table.add_row(
            row.live.id, started, who, row.live.direction, turns, row.state, row.end_reason or ""
        )
    stage.console.print(table)


@group.command("show")
def show_call(
    context: typer.Context,
    call_id: str = typer.Argument(metavar="ID"),
    reveal: bool = typer.Option(
        False, "--reveal", help="Show what was confided, too; that it was shown is logged."
    ),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """One call, turn by turn; what was confided is blotted out."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        steps = app.steps.of_call(call_id)
        recordings = recordings_json(app.recordings.list_for_call(call_id))
        whole = call_json(app.store, app.archive, app.store.get(call_id))
        beside = {
            "steps": steps_json(steps),
            "recordings": recordings,
            "extraction": extraction_json(app.facts, call_id),
        }
        call = (
            whole if reveal else redact_call(whole, app.facts.list_confided_words(call_id))
        ) | beside
        run = (
            app.work.runs.get(app.store.get(call_id).live.conversation)
            if call["state"] == "sealed"
            else None
        )
        if reveal:
            app.audit.record(get_operator_name(), "revealed", call_id)
    if json:
        print_json(call)
        return
    caller, callee = call["caller"] or "withheld", call["callee"] or "?"
    stage.console.print(
        Text.assemble((call["id"], "bold"), f"  {caller} → {callee}  ({call['direction']})")
    )
    stage.console.print(
        f"{call['state']}, {call['started_at']} to {call['ended_at'] or 'now'}, "
        f"{call['end_reason'] or 'going on'}"
    )
    if call["archive"]:
        stage.console.print(f"archive: {call['archive']}")
    for recording in call["recordings"]:
        stage.console.print(_recording_line(recording))
    for turn in call["turns"]:
        stage.console.print(_turn_line(turn, call["started_at"]))
    print_steps(stage.console, steps)
    if run and run.state == "failed":
        stage.console.print(
            f"follow-up work failed: {run.reason}; `aftercall calls rerun {call['id']} "
            "followup` tries it again"
        )
    if call["extraction"] and call["extraction"]["facts"]:
        stage.console.print(f"facts: {', '.join(call['extraction']['facts'])}")


@group.command("rerun")
def rerun_steps(
    context: typer.Context,
    call_id: str = typer.Argument(metavar="ID"),
    step: str = typer.Argument(
        "", metavar="STEP", help="One step, `recording` or `followup`; without it, all that failed."
    ),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Do steps of a call again; exit 1 if one fails again."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        steps = (
            rerun(app.office, call_id, step)
            if step not in (RECORDING, FOLLOWUP)
            else app.steps.of_call(call_id)
        )
        is_due_again = step in ("", FOLLOWUP) and deliver.retry_run(
            app.work, app.store.get(call_id).live.conversation
        )
        if step == FOLLOWUP and not is_due_again:
            raise NotWaiting(
                "the follow-up work of this call has not failed; `aftercall followups list` "
                "shows what became of it"
            )
        recordings = recordings_json(
            fetch_again(app.recording_desk, call_id) if step in ("", RECORDING) else []
        )
    if json:
        print_json(steps_json(steps))
    else:
        for recording in recordings:
            stage.console.print(_recording_line(recording))
        print_steps(stage.console, steps)
        if is_due_again:
            stage.console.print("follow-up work: due again; a running server or worker does it")
    shown = steps if step not in (RECORDING, FOLLOWUP) else []
    if any(item.state == "failed" for item in shown) or any(
        "failed" in (item["state"], item["transcript"]) for item in recordings
    ):
        raise typer.Exit(1)


def _recording_line(recording: dict[str, Any]) -> str:
    where = f" {recording['path']} ({recording['bytes']:,} bytes)" if recording["path"] else ""
    transcript = (
        f", transcript {recording['transcript']}" if recording["transcript"] != "none" else ""
    )
    reason = f": {recording['reason']}" if recording["reason"] else ""
    return f"recording: {recording['state']}{where}{transcript}{reason}"


def _turn_line(turn: dict[str, Any], started_at: str) -> Text:
    offset = max(0.0, (parse_instant(turn["at"]) - parse_instant(started_at)).total_seconds())
    late = (" (late)" if turn.get("late") else "", "dim")
    return Text.assemble(
        (f"{int(offset) // 60:3}:{offset % 60:04.1f}", "dim"),
        "  ",
        (f"{turn['speaker']:6}", "bold"),
        f"  {turn['text']}",
        late,
    )


POLL_INTERVAL_S = 0.1
_COLOURS = {
    "done": "green",
    "failed": "red",
    "skipped": "dim",
    "running": "yellow",
    "waiting": "yellow",
}


async def wait_for_steps(app: App, call_id: str) -> list[Step]:
    """Every step's end.

    Whoever runs them, here or in another process, writes them down; we look.
    """
    steps = await asyncio.to_thread(app.steps.of_call, call_id)
    while not are_finished(steps):
        await app.clock.sleep(POLL_INTERVAL_S)
        steps = await asyncio.to_thread(app.steps.of_call, call_id)
    return steps


def print_steps(console: Console, steps: list[Step]) -> None:
    for step in steps:
        said = step.result if step.state == "done" else step.reason
        console.print(
            Text.assemble((f"{step.state:8}", _COLOURS[step.state]), f"{step.name:9} {said or ''}")
        )
