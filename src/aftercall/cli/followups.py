"""`aftercall followups`."""

import typer
from rich.text import Text

from aftercall.cli.context import get_cli_context, get_operator_name, make_table, print_json
from aftercall.errors import RefusedInput
from aftercall.model.followups import FollowUp
from aftercall.who.caller import read_caller
from aftercall.work import deliver
from aftercall.work.view import change_json, delivery_json, followup_json

group = typer.Typer(
    no_args_is_help=True,
    help="What callers asked for, what the agent promised, and what became of it.",
)

STATES = (
    "open",
    "held",
    "doing",
    "done",
    "failed",
    "refused",
    "withdrawn",
    "expired",
    "unknown",
    "broken",
)
ID = typer.Argument(metavar="ID")
JSON = typer.Option(False, "--json", help="Answer as JSON.")


@group.command("list")
def list_followups(
    context: typer.Context,
    limit: int = typer.Option(50, min=1, max=10_000, help="How many, newest first."),
    state: str = typer.Option("", help=f"Only those in this state: {', '.join(STATES)}."),
    caller: str = typer.Option("", help="Only this caller's."),
    json: bool = JSON,
) -> None:
    """Requests and promises, newest first."""
    stage = get_cli_context(context)
    if state and state not in STATES:
        raise RefusedInput("--state", f"is not one of {', '.join(STATES)}")
    with stage.open_app(reads_rows_only=True) as app:
        rows = app.work.followups.page(
            limit=limit, state=state or None, caller=read_caller(caller, "--caller")
        )
    if json:
        print_json([followup_json(row) for row in rows])
        return
    if not rows:
        stage.console.print(
            "Nothing has been asked for yet." if not state else f"Nothing is {state}."
        )
        return
    table = make_table("id", "state", "kind", "due", "caller", "title", "where, or why")
    for row in rows:
        kind = "promise" if row.kind == "promise" else row.request_kind
        caller = row.caller or "withheld"
        table.add_row(
            row.id, row.standing, kind, row.due or "", caller, row.title, row.link or row.reason
        )
    stage.console.print(table)


@group.command("show")
def show_followup(context: typer.Context, followup_id: str = ID, json: bool = JSON) -> None:
    """One request or promise: what it rests on, what happened to it, and what each sink did."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        row = app.work.followups.get(followup_id)
        history = app.work.followups.history(followup_id)
        sent = app.work.deliveries.of_followup(followup_id)
    if json:
        extra = {
            "history": [change_json(change) for change in history],
            "deliveries": [delivery_json(item) for item in sent],
        }
        print_json(followup_json(row) | extra)
        return
    stage.console.print(
        Text.assemble((row.id, "bold"), f"  {row.kind}, {row.request_kind}: {row.title}")
    )
    stage.console.print(
        f"{row.standing}{': ' + row.reason if row.reason else ''}"
        f"{'  ' + row.link if row.link else ''}"
    )
    stage.console.print(f"caller {row.caller or 'withheld'} ({row.trust}), call {row.call_id}")
    if row.words:
        stage.console.print(f"said: {row.words}")
    for change in history:
        stage.console.print(
            Text.assemble(
                (f"{change.at:%Y-%m-%d %H:%M:%S}", "dim"),
                f"  {change.what:9} {change.who}  {change.note}",
            )
        )
    for item in sent:
        stage.console.print(
            f"{item.sink}: {item.state}, {item.attempts} attempts  "
            f"{item.reason or item.response or ''}  ({item.key})"
        )


@group.command("approve")
def approve_followup(context: typer.Context, followup_id: str = ID, json: bool = JSON) -> None:
    """Let a held request be done; a running server or worker does it within a second."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        _print_followup(deliver.approve(app.work, followup_id, get_operator_name()), json)


@group.command("reject")
def reject_followup(context: typer.Context, followup_id: str = ID, json: bool = JSON) -> None:
    """Decide that something is not to be done; also settles what failed, and a promise that is
    unknown or broken.
    """
    stage = get_cli_context(context)
    with stage.open_app() as app:
        _print_followup(deliver.reject(app.work, followup_id, get_operator_name()), json)


@group.command("retry")
def retry_followup(context: typer.Context, followup_id: str = ID, json: bool = JSON) -> None:
    """Try a failed request again. Look first whether it was done after all."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        _print_followup(deliver.retry(app.work, followup_id, get_operator_name()), json)


@group.command("resend")
def resend_delivery(
    context: typer.Context, key: str = typer.Argument(metavar="KEY"), json: bool = JSON
) -> None:
    """Send one delivery again now, under its old key, by which its receiver knows it."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        sent = deliver.resend(app.work, key)
        app.audit.record(get_operator_name(), "resent", key)
    if json:
        print_json(delivery_json(sent))
    else:
        typer.echo(f"{sent.key}  {sent.state}")


def _print_followup(row: FollowUp, json: bool) -> None:
    if json:
        print_json(followup_json(row))
    else:
        typer.echo(f"{row.id}  {row.state}")
