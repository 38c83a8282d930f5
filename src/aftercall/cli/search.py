"""`aftercall search`."""

from dataclasses import replace
from datetime import datetime, time
from enum import StrEnum

import typer
from rich.console import Console
from rich.text import Text

from aftercall.app import App
from aftercall.cli.context import get_cli_context, print_json
from aftercall.errors import RefusedInput
from aftercall.memory.search import make_key_scope, make_party_scope
from aftercall.memory.view import hit_json
from aftercall.model.passages import SearchHit, SearchScope
from aftercall.who.caller import read_party
from aftercall.workspace import files, identity_md, user_md
from aftercall.workspace.paths import Workspace


class PassageKind(StrEnum):
    turn = "turn"
    summary = "summary"
    fact = "fact"


def search(
    context: typer.Context,
    query: str = typer.Argument(
        metavar="QUERY", help='Any words; "quoted words" must stand side by side.'
    ),
    caller: str = typer.Option("", help="Only this caller's memory; without it, everybody's."),
    kind: list[PassageKind] = typer.Option(
        [], help="Only turns, summaries or facts; may be repeated."
    ),
    as_of: datetime | None = typer.Option(
        None, formats=["%Y-%m-%d"], help="What was known at the end of that day."
    ),
    limit: int = typer.Option(10, min=1, max=40, help="How many, best first."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Search what was said, summaries and facts, best first."""
    stage = get_cli_context(context)
    zone = stage.config.settings.zone
    number = read_party(caller, "--caller")
    if caller and number is None:
        raise RefusedInput("--caller", "is withheld; such calls belong to nobody")
    until = datetime.combine(as_of.date(), time.max, zone) if as_of else None
    with stage.open_app(reads_rows_only=True) as app:
        agent_id = app.settings.agent_id
        memory = (
            make_party_scope(app.settings, agent_id, number)
            if number
            else make_key_scope(app.settings, agent_id, None)
        )
        where = memory or SearchScope(
            agent_id, number
        )  # nobody is remembered (memory.scope): what was said is there all the same
        where = replace(where, kinds=tuple(one.value for one in kind), as_of=until)
        hits = app.search.find(
            query, where, limit=limit, speaker_names=_speakers_by_name(app, number)
        )
    if json:
        print_json([hit_json(hit) for hit in hits])
        return
    if not hits:
        stage.console.print("Nothing found.")
    for hit in hits:
        _print_hit(stage.console, hit, f"{hit.passage.at.astimezone(zone):%Y-%m-%d %H:%M}")


def _speakers_by_name(app: App, caller: str | None) -> dict[str, str]:
    """Whose name is whose: "what did Bill say" prefers the words of the caller who is called
    Bill.
    """
    workspace = Workspace.from_settings(app.settings, app.settings.agent_id)
    person = workspace.find_person(caller)
    known = user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
    names = {
        known.name: "caller",
        known.call_name: "caller",
        identity_md.parse(files.read(workspace.identity)).name: "agent",
    }
    return {name: speaker for name, speaker in names.items() if name}


def _print_hit(console: Console, hit: SearchHit, at: str) -> None:
    found = hit.passage
    what = (
        f"{found.speaker}, turn {found.seq}"
        if found.kind == "turn"
        else " ".join(filter(None, (found.category, found.kind)))
    )
    where = found.ref or found.call_id or ""
    console.print(
        f"{at}  {found.agent_id}  {found.caller or 'withheld'}  {what}  {where}", style="dim"
    )
    for turn in hit.before:
        console.print(Text.assemble("  ", (turn.text, "dim")))
    console.print(f"  {found.text}")
    for turn in hit.after:
        console.print(Text.assemble("  ", (turn.text, "dim")))
