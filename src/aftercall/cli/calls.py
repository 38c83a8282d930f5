"""`aftercall calls`, `ingest`, `reconcile`, `read` and `talk`."""

import sys
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aftercall.cli.context import (
    ID_ARGUMENT,
    JSON_OPTION,
    Styled,
    format_time,
    get_cli_context,
    get_operator_name,
    print_json,
    print_line,
    print_rows,
    print_steps,
    wait_for_steps,
)
from aftercall.errors import NotFound, NotWaiting, RefusedInput
from aftercall.ids import new_id
from aftercall.model.json_fields import Json
from aftercall.model.people import read_caller

if TYPE_CHECKING:
    from rich.console import Console

    from aftercall.app import App
    from aftercall.journal.store import CallRow
    from aftercall.model.reading import Reading, Step
    from aftercall.reconcile import ReconcileRun

RECORDING = "recording"
FOLLOWUP = "followup"
_FILE = typer.Argument(
    metavar="FILE", help="A finished call as JSON; `-` reads standard input."
)

_FILES = typer.Argument(
    metavar="FILE…",
    help=(
        "Finished calls as JSON; a `.jsonl` file has one call a line; `-` reads standard input."
    ),
)

group = typer.Typer(no_args_is_help=True, help="List, show and rerun calls.")


@group.command("list")
def list_calls(
    context: typer.Context,
    limit: int = typer.Option(20, min=1, max=10_000, help="How many, newest first."),
    caller: str = typer.Option("", help="Only this caller's."),
    json: bool = JSON_OPTION,
) -> None:
    """Calls, newest first."""
    cli = get_cli_context(context)
    with cli.open_stores(reads_rows_only=True) as stores:
        rows = stores.store.list_page(
            limit=limit, caller=read_caller(caller, "--caller")
        )
        ids = [row.live.id for row in rows]
        summaries = {} if json else stores.store.list_summaries(ids)
    if json:
        from aftercall.journal.view import row_json

        print_json([row_json(row) for row in rows])
    elif rows:
        zone = cli.config.settings.zone
        lines = [_list_cells(row, summaries, zone) for row in rows]
        print_rows(("id", "when", "who", "long", "what"), lines)
    else:
        print_line("No calls yet. `aftercall ingest FILE` adds a finished one.")


def _list_cells(
    row: "CallRow", summaries: dict[str, str], zone: tzinfo
) -> tuple[str, ...]:
    live = row.live
    who = live.caller if live.direction == "inbound" else f"to {live.callee}"
    seconds = (
        int((row.ended_at - live.started_at).total_seconds()) if row.ended_at else 0
    )
    long = f"{seconds // 60}:{seconds % 60:02}" if row.ended_at else "now"
    what = summaries.get(live.id) or (
        "not summed up yet" if row.state == "sealed" else "going on"
    )
    when = format_time(live.started_at, zone)
    return live.id, when, who or "withheld", long, what


@group.command("show")
def show_call(
    context: typer.Context,
    call_id: str = ID_ARGUMENT,
    reveal: bool = typer.Option(
        False, "--reveal", help="Also show secrets; this is logged."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """One call, turn by turn, with secrets masked."""
    from aftercall.journal.recording_files import recordings_json
    from aftercall.journal.view import call_json
    from aftercall.memory.fact_store import extraction_json
    from aftercall.memory.visibility import redact_call
    from aftercall.postcall.store import steps_json

    cli = get_cli_context(context)
    with cli.open_stores() as stores:
        call_id = stores.find_id("call", call_id)
        steps = stores.steps.of_call(call_id)
        row = stores.store.get(call_id)
        call = call_json(stores.store, stores.archive, row)
        if not reveal:
            call = redact_call(call, stores.facts.list_confided_words(call_id))
        call |= {
            "steps": steps_json(steps),
            "recordings": recordings_json(stores.recordings.list_for_call(call_id)),
            "extraction": extraction_json(stores.facts, call_id),
        }
        is_sealed = call["state"] == "sealed"
        run = stores.runs.get(row.live.conversation) if is_sealed else None
        if reveal:
            stores.audit.record(get_operator_name(), "revealed", call_id)
    if json:
        print_json(call)
        return
    for line in _call_lines(call):
        print_line(*line)
    print_steps(steps)
    if run and run.state == "failed":
        again = f"`aftercall calls rerun {call['id']} followup` tries it again"
        print_line(f"follow-up work failed: {run.reason}; {again}")
    if call["extraction"] and call["extraction"]["facts"]:
        print_line(f"facts: {', '.join(call['extraction']['facts'])}")


@group.command("rerun")
def rerun_steps(
    context: typer.Context,
    call_id: str = ID_ARGUMENT,
    step: str = typer.Argument(
        "",
        metavar="STEP",
        help="One step, `recording` or `followup`; without it, all that failed.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Run steps of a call again; exit 1 if one fails again."""
    from aftercall.journal.recording_files import recordings_json
    from aftercall.postcall.recordings import fetch_again
    from aftercall.postcall.runner import rerun
    from aftercall.postcall.store import steps_json
    from aftercall.stores import find_id
    from aftercall.work import deliver

    cli = get_cli_context(context)
    runs_steps = step not in (RECORDING, FOLLOWUP)
    with cli.open_app() as app:
        call_id = find_id(app.database, "call", call_id)
        steps = (
            rerun(app.step_runner, call_id, step)
            if runs_steps
            else app.steps.of_call(call_id)
        )
        is_due_again = False
        if step in ("", FOLLOWUP):
            is_due_again = deliver.retry_run(
                app.work, app.store.get(call_id).live.conversation
            )
        if step == FOLLOWUP and not is_due_again:
            raise NotWaiting(
                "the follow-up work of this call has not failed; `aftercall followups list` "
                "shows its state"
            )
        fetched = (
            fetch_again(app.recording_fetcher, call_id)
            if step in ("", RECORDING)
            else []
        )
        recordings = recordings_json(fetched)
    if json:
        print_json(steps_json(steps))
    else:
        for recording in recordings:
            print_line(_recording_line(recording))
        print_steps(steps)
        if is_due_again:
            cli.console.print(
                "follow-up work: due again; a running server or worker does it"
            )
    has_failed_step = runs_steps and any(item.state == "failed" for item in steps)
    if has_failed_step or any(
        "failed" in (item["state"], item["transcript"]) for item in recordings
    ):
        raise typer.Exit(1)


def ingest(
    context: typer.Context,
    file: str = _FILE,
    wait: bool = typer.Option(
        False,
        "--wait",
        help="Also wait for the steps after the call; run them here if no server or worker does.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Seal a call that finished elsewhere. The same source and sid twice is the same call."""
    import asyncio

    from aftercall.journal.journal import ingest_call
    from aftercall.model.calls import parse_call_json
    from aftercall.postcall.store import steps_json

    cli = get_cli_context(context)
    raw = _read_file(file)
    steps: list[Step] = []
    with cli.open_app() as app:
        try:
            row, is_new = ingest_call(app.journal, parse_call_json(raw))
        except RefusedInput as error:
            raise RefusedInput(f"{file}: {error.field}", error.reason) from None
        if wait:
            steps = asyncio.run(_run_and_wait(app, row.live.id))
    if json:
        answer = {"id": row.live.id, "new": is_new, "archive": row.archive_name}
        print_json(answer | ({"steps": steps_json(steps)} if wait else {}))
    else:
        outcome = (
            f"sealed as {row.archive_name}"
            if is_new
            else "known already; nothing changed"
        )
        typer.echo(f"{row.live.id}  {outcome}")
        print_steps(steps)
    if any(step.state == "failed" for step in steps):
        raise typer.Exit(1)


def read(
    context: typer.Context, files: list[str] = _FILES, json: bool = JSON_OPTION
) -> None:
    """Show what the reader (AFTERCALL_MODEL) finds in calls. Nothing is stored.

    With `--json` one call is one JSON object; several calls are one reading a line, in order.
    """
    from aftercall.compose import choose_reader, make_model_client
    from aftercall.llm.rules.reader import RulesReader
    from aftercall.model.calls import parse_call_json

    cli = get_cli_context(context)
    settings = cli.config.settings
    client = make_model_client(settings)
    is_single = len(files) == 1 and not files[0].endswith(".jsonl")
    try:
        reader = choose_reader(client, RulesReader(), settings.zone)
        for raw in _read_calls(files):
            reading = reader.read(parse_call_json(raw))
            if not json:
                _print_reading(cli.console, reading)
            elif is_single:
                print_json(reading.model_dump(mode="json"))
            else:
                typer.echo(reading.model_dump_json())
    finally:
        if client:
            client.close()


def _read_calls(files: list[str]) -> Iterator[bytes]:
    """The calls of all files in order; a `.jsonl` file is read line by line."""
    for file in files:
        raw = _read_file(file)
        if file.endswith(".jsonl"):
            yield from (line for line in raw.splitlines() if line.strip())
        else:
            yield raw


def _print_reading(console: "Console", reading: "Reading") -> None:
    from rich.text import Text

    console.print(reading.summary)
    for label, text, detail in _reading_rows(reading):
        console.print(
            Text.assemble((f"{label:9}", "bold"), f" {text}  ", (detail, "dim"))
        )


def talk(
    context: typer.Context,
    caller: str = typer.Option(
        "+15550100", help="The number you call from; empty is withheld."
    ),
) -> None:
    """Call your agent from this terminal: type what the caller says; an empty line hangs up."""
    import asyncio

    from aftercall.running import running

    cli = get_cli_context(context)
    number = read_caller(caller, "--caller")

    async def hold_call() -> None:
        with cli.open_app() as app:
            async with running(app):
                await _converse(app, cli.console, number)

    asyncio.run(hold_call())


async def _run_and_wait(app: "App", call_id: str) -> "list[Step]":
    from aftercall.running import running

    async with running(app):
        return await wait_for_steps(app, call_id)


def _read_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None


async def _converse(app: "App", console: "Console", number: str | None) -> None:
    import asyncio

    from rich.text import Text

    from aftercall.bridge.turn_call import TurnCall
    from aftercall.model.calls import LiveCall

    live = LiveCall(
        source="terminal",
        sid=new_id(),
        agent_id=app.settings.agent_id,
        caller=number,
        started_at=app.clock.now(),
    )
    call = TurnCall(app.phone.turn_parts, live)
    agent = ("agent", "bold")
    console.print(Text.assemble(agent, f"   {(await call.start()).text}"))
    while call.end_reason is None:
        said = await asyncio.to_thread(_read_line)
        if not said:
            await call.end("caller_hung_up")
            break
        console.print(Text.assemble(agent, f"   {(await call.answer(said)).text}"))
    console.print(f"call {call.call.id} ended: {call.end_reason}", style="dim")
    print_steps(await wait_for_steps(app, call.call.id))


_ONLY = typer.Option(
    [], "--only", metavar="NAME", help="Only this carrier or platform; may be repeated."
)


def reconcile(
    context: typer.Context,
    days: int = typer.Option(
        0, min=0, max=60, help="How many days back; `reconcile.days` if unset."
    ),
    only: list[str] = _ONLY,
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Only count what is missing; bring nothing."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Compare the lists of calls at carriers and platforms with ours, and bring what is missing.

    A running server does it every hour. A run that was stopped goes on where it stood. Exit 1
    if a list could not be read.
    """
    import asyncio

    from rich.progress import BarColumn, Progress, TextColumn

    from aftercall.reconcile import ReconcileRun, SourceResult

    cli = get_cli_context(context)
    columns = (TextColumn("{task.description}"), BarColumn())
    bar = Progress(*columns, console=cli.console, disable=json, transient=True)
    tasks: Json = {}

    def show(name: str, result: SourceResult) -> None:
        said = f"{name}: {result.listed:,} listed, {result.brought:,} brought"
        total = result.listed if result.cursor is None else None
        if name not in tasks:
            tasks[name] = bar.add_task(said, total=None)
        bar.update(tasks[name], description=said, completed=result.listed, total=total)

    async def run(app: "App") -> ReconcileRun:
        try:
            return await app.reconciler.run(
                days=days or None, only=only, dry_run=dry_run, progress=show
            )
        finally:
            await app.journal.close()

    with cli.open_app() as app, bar:
        made = asyncio.run(run(app))
    if json:
        print_json(made.to_json() | {"dry_run": dry_run})
    else:
        _print_reconciled(cli.console, made, dry_run)
    if made.errors:
        raise typer.Exit(1)


def _print_reconciled(
    console: "Console", made: "ReconcileRun", dry_run: bool = False
) -> None:
    from rich.text import Text

    for name, result in made.sources.items():
        line = f"{name}: {result.listed:,} listed, {result.missing:,} missing"
        if not dry_run:
            line += f", {result.brought:,} brought"
        console.print(line, highlight=False)
        if result.error:
            console.print(Text(f"  {result.error}", style="red"))
        for lost in result.lost:
            console.print(Text(f"  {lost.sid}: {lost.reason}", style="yellow"))
        if (unnamed := result.lost_count - len(result.lost)) > 0:
            console.print(f"  and {unnamed:,} more")


def _read_line() -> str:
    try:
        return input("you     ").strip()
    except EOFError:
        return ""


def _reading_rows(reading: "Reading") -> list[tuple[str, str, str]]:
    """What a reader found in a call, one row each: kind, words, turns."""
    rows: list[tuple[str, str, str]] = []
    for request in reading.requests:
        due = f" (due {request.due})" if request.due else ""
        rows.append((request.kind, request.title + due, f"turns {request.turns}"))
    for unclear in reading.unclear:
        said = f"may be a request: {unclear.words}"
        rows.append(("unclear", said, f"turns {unclear.turns}"))
    for withdrawn in reading.withdrawn:
        rows.append(("withdrawn", withdrawn.title, f"turns {withdrawn.turns}"))
    for promise in reading.promises:
        rows.append(("promise", promise.title, f"turns {promise.turns}"))
    for fact in reading.facts:
        text = "(secret)" if fact.visibility == "secret" else fact.summary
        rows.append(
            ("fact", text, f"{fact.category}, {fact.visibility}, turns {fact.turns}")
        )
    for decision in reading.decisions:
        told = decision.answer or "no answer of the model"
        rows.append(("decided", f"{decision.title}: {told}", f"by {decision.by}"))
    return rows


def _call_lines(call: Json) -> list[tuple[Styled, ...]]:
    """The head of a call: parties, times, state, where it is archived."""
    caller, callee = call["caller"] or "withheld", call["callee"] or "?"
    parties = f"  {caller} → {callee}  ({call['direction']})"
    times = f"{call['started_at']} to {call['ended_at'] or 'now'}"
    lines: list[tuple[Styled, ...]] = [
        ((call["id"], "bold"), parties),
        (f"{call['state']}, {times}, {call['end_reason'] or 'going on'}",),
    ]
    if call["archive"]:
        lines.append((f"archive: {call['archive']}",))
    lines += [(_recording_line(recording),) for recording in call["recordings"]]
    lines += [_turn_line(turn, call["started_at"]) for turn in call["turns"]]
    return lines


def _recording_line(recording: Json) -> str:
    line = f"recording: {recording['state']}"
    if recording["path"]:
        line += f" {recording['path']} ({recording['bytes']:,} bytes)"
    if recording["transcript"] != "none":
        line += f", transcript {recording['transcript']}"
    return line + (f": {recording['reason']}" if recording["reason"] else "")


def _turn_line(turn: Json, started_at: str) -> tuple[Styled, ...]:
    from aftercall.clock import parse_instant

    elapsed = parse_instant(turn["at"]) - parse_instant(started_at)
    seconds = max(0.0, elapsed.total_seconds())
    at = (f"{int(seconds) // 60:3}:{seconds % 60:04.1f}", "dim")
    speaker = (f"{turn['speaker']:6}", "bold")
    late = (" (late)" if turn.get("late") else "", "dim")
    return (at, "  ", speaker, f"  {turn['text']}", late)
