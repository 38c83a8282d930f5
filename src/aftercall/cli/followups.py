"""`aftercall followups`."""

from datetime import datetime
from typing import TYPE_CHECKING, get_args

import typer
from rich.text import Text

from aftercall.cli.context import (
    ID_ARGUMENT,
    JSON_OPTION,
    get_cli_context,
    get_operator_name,
    print_json,
    print_rows,
)
from aftercall.errors import RefusedInput
from aftercall.model.followups import FollowUpState
from aftercall.model.people import read_caller

if TYPE_CHECKING:
    from aftercall.model.followups import FollowUp
    from aftercall.stores import Stores
    from aftercall.work.store import FollowUpStore

EFFECT_STATES = ("noted", "passed on")  # `done`, as the list shows it
STATES = (*get_args(FollowUpState), *EFFECT_STATES)
MAX_LISTED = 10_000

group = typer.Typer(
    no_args_is_help=True,
    help="What callers asked for, what the agent promised, and what became of it.",
)


@group.command("list")
def list_followups(
    context: typer.Context,
    limit: int = typer.Option(
        50, min=1, max=MAX_LISTED, help="How many, newest first."
    ),
    state: str = typer.Option(
        "", help=f"Only those in this state: {', '.join(STATES)}."
    ),
    caller: str = typer.Option("", help="Only this caller's."),
    json: bool = JSON_OPTION,
) -> None:
    """Requests and promises, newest first."""
    from aftercall.work.view import followup_json

    cli = get_cli_context(context)
    if state and state not in STATES:
        raise RefusedInput("--state", f"is not one of {', '.join(STATES)}")
    number = read_caller(caller, "--caller")
    with cli.open_stores(reads_rows_only=True) as stores:
        rows = _find(stores.followups, state, number, limit)
        waiting = [] if json or state else _list_waiting(stores, number)
    if json:
        print_json([followup_json(row) for row in rows])
        return
    lines = waiting + [_list_cells(row) for row in rows]
    if lines:
        print_rows(cli.console, ("id", "state", "due", "caller", "what"), lines[:limit])
    else:
        cli.console.print(
            f"Nothing is {state}." if state else "Nothing has been asked for yet."
        )


def _list_waiting(stores: "Stores", caller: str | None) -> list[tuple[str, ...]]:
    """Calls whose requests wait for the reconnect window to close."""
    settings = stores.settings
    found = [
        (run, call_id, until)
        for run, call_id, until in stores.runs.list_waiting(settings.reconnect_window_s)
        if caller in (None, run.caller)
    ]
    summaries = stores.store.list_summaries([call_id for _, call_id, _ in found])
    now = stores.clock.now()
    return [
        (
            call_id,
            _describe_window(until.astimezone(settings.zone), until > now),
            "",
            run.caller or "withheld",
            summaries.get(call_id, "the call is not summed up yet"),
        )
        for run, call_id, until in found
    ]


def _describe_window(until: datetime, is_open: bool) -> str:
    return f"{'waiting until' if is_open else 'due since'} {until:%H:%M}"


def _list_cells(row: "FollowUp") -> tuple[str, ...]:
    kind = "promise" if row.kind == "promise" else row.request_kind
    where = row.link or row.reason
    what = f"{kind}: {row.title}" + (f" ({where})" if where else "")
    return row.id, row.standing, row.due or "", row.caller or "withheld", what


def _find(
    store: "FollowUpStore", state: str, caller: str | None, limit: int
) -> "list[FollowUp]":
    if state not in EFFECT_STATES:
        return store.page(limit=limit, state=state or None, caller=caller)
    done = store.page(limit=MAX_LISTED, state="done", caller=caller)
    return [row for row in done if row.standing == state][:limit]


@group.command("show")
def show_followup(
    context: typer.Context, followup_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """One request or promise: the words it rests on, its history, and what each sink did."""
    from aftercall.work.view import change_json, delivery_json, followup_json

    cli = get_cli_context(context)
    with cli.open_stores() as stores:
        followup_id = stores.find_id("follow-up", followup_id)
        row = stores.followups.get(followup_id)
        history = stores.followups.history(followup_id)
        sent = stores.deliveries.of_followup(followup_id)
    if json:
        changes = [change_json(change) for change in history]
        deliveries = [delivery_json(item) for item in sent]
        print_json(followup_json(row) | {"history": changes, "deliveries": deliveries})
        return
    show = cli.console.print
    show(
        Text.assemble(
            (row.id, "bold"), f"  {row.kind}, {row.request_kind}: {row.title}"
        )
    )
    reason = f": {row.reason}" if row.reason else ""
    show(row.standing + reason + (f"  {row.link}" if row.link else ""))
    show(f"caller {row.caller or 'withheld'} ({row.trust}), call {row.call_id}")
    if row.words:
        show(f"said: {row.words}")
    for change in history:
        at = (f"{change.at:%Y-%m-%d %H:%M:%S}", "dim")
        show(Text.assemble(at, f"  {change.what:9} {change.who}  {change.note}"))
    for item in sent:
        outcome = item.reason or item.response or ""
        show(
            f"{item.sink}: {item.state}, {item.attempts} attempts  {outcome}  ({item.key})"
        )


@group.command("approve")
def approve_followup(
    context: typer.Context, followup_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """Approve a held request; a running server or worker starts it within a second."""
    _change_followup(context, "approve", followup_id, json)


@group.command("reject")
def reject_followup(
    context: typer.Context, followup_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """Reject a request, or settle one that failed and a promise that is unknown or broken."""
    _change_followup(context, "reject", followup_id, json)


@group.command("retry")
def retry_followup(
    context: typer.Context, followup_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """Try a failed request again. Check first that it was not done after all."""
    _change_followup(context, "retry", followup_id, json)


@group.command("resend")
def resend_delivery(
    context: typer.Context,
    key: str = typer.Argument(metavar="KEY"),
    json: bool = JSON_OPTION,
) -> None:
    """Send one delivery again now, under the same key, so that the receiver can recognise it."""
    from aftercall.work import deliver
    from aftercall.work.view import delivery_json

    with get_cli_context(context).open_app() as app:
        sent = deliver.resend(app.work, key)
        app.audit.record(get_operator_name(), "resent", key)
    if json:
        print_json(delivery_json(sent))
    else:
        typer.echo(f"{sent.key}  {sent.state}")


def _change_followup(
    context: typer.Context, change: str, followup_id: str, json: bool
) -> None:
    from aftercall.stores import find_id
    from aftercall.work import deliver
    from aftercall.work.view import followup_json

    changes = {
        "approve": deliver.approve,
        "reject": deliver.reject,
        "retry": deliver.retry,
    }
    with get_cli_context(context).open_app() as app:
        whole_id = find_id(app.database, "follow-up", followup_id)
        row = changes[change](app.work, whole_id, get_operator_name())
    if json:
        print_json(followup_json(row))
    else:
        typer.echo(f"{row.id}  {row.state}")
