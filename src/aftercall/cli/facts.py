"""`aftercall facts`."""

import json as jsonlib

import typer
from rich.text import Text

from aftercall.cli.context import (
    CliContext,
    get_cli_context,
    get_operator_name,
    make_table,
    print_json,
)
from aftercall.errors import RefusedInput
from aftercall.memory.fact_store import FactFilter
from aftercall.memory.search import find_facts, make_key_scope
from aftercall.memory.view import HIDDEN, fact_json, iter_whole_facts, parse_as_of, whole_fact_json
from aftercall.memory.visibility import memory_key
from aftercall.model.facts import Fact, MemoryKey
from aftercall.model.reading import CATEGORIES, Category
from aftercall.who.caller import read_party

group = typer.Typer(no_args_is_help=True, help="What is remembered, with the words it rests on.")

_CALLER = typer.Option("", help="Only this caller's.")
_CATEGORY = typer.Option("", help="Only this category's.")
_JSON = typer.Option(False, "--json", help="Answer as JSON.")
_LIMIT = typer.Option(100, min=1, max=10_000, help="How many at most.")


@group.command("list")
def list_facts(
    context: typer.Context,
    caller: str = _CALLER,
    category: str = _CATEGORY,
    retired: bool = typer.Option(
        False, "--retired", help="Those that are believed no longer, too."
    ),
    limit: int = _LIMIT,
    json: bool = _JSON,
) -> None:
    """What is believed now."""
    stage = get_cli_context(context)
    wanted = FactFilter(
        key=_key(stage, caller),
        category=_category(category),
        include_retired=retired,
        limit=limit,
        include_group=True,
    )
    _list(stage, wanted, json)


@group.command("search")
def search_facts(
    context: typer.Context,
    query: str = typer.Argument(
        metavar="QUERY", help='Any words; "quoted words" must stand side by side.'
    ),
    caller: str = _CALLER,
    limit: int = typer.Option(10, min=1, max=40, help="How many, best first."),
    json: bool = _JSON,
) -> None:
    """Facts that fit the words, best first; `aftercall search` looks through everything that
    was said, too.
    """
    stage = get_cli_context(context)
    key = _key(stage, caller)
    settings = stage.config.settings
    where = make_key_scope(settings, settings.agent_id, key)
    with stage.open_app() as app:
        found = find_facts(app.search, app.facts, query, where, limit)
    if json:
        print_json([fact_json(fact) for fact in found])
    else:
        _print(stage, found)


@group.command("at")
def facts_at(
    context: typer.Context,
    date: str = typer.Argument(metavar="DATE", help="A day, or a time with its zone."),
    caller: str = _CALLER,
    category: str = _CATEGORY,
    limit: int = _LIMIT,
    json: bool = _JSON,
) -> None:
    """What was believed then, as far as it is known today."""
    stage = get_cli_context(context)
    as_of = parse_as_of("DATE", date, stage.config.settings.zone)
    _list(
        stage,
        FactFilter(
            key=_key(stage, caller),
            category=_category(category),
            as_of=as_of,
            limit=limit,
            include_group=True,
        ),
        json,
    )


@group.command("show")
def show_fact(
    context: typer.Context,
    fact_id: str = typer.Argument(metavar="ID"),
    reveal: bool = typer.Option(
        False, "--reveal", help="Show a secret; that it was shown is logged."
    ),
    json: bool = _JSON,
) -> None:
    """One fact, and each time it was said."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        fact = whole_fact_json(app.facts, fact_id, reveal=reveal)
        if reveal and fact["visibility"] == "secret":
            app.audit.record(get_operator_name(), "revealed", fact_id)
    if json:
        print_json(fact)
        return
    state = "believed" if fact["is_active"] else f"retired by {fact['superseded_by']}"
    stage.console.print(Text.assemble((fact["id"], "bold"), f"  {fact['content']}"))
    stage.console.print(
        f"{fact['category']}, {fact['visibility']}, {state}, of {fact['caller']}; said "
        f"{_times(fact['occurrence_count'])}"
    )
    stage.console.print(
        f"valid from {fact['valid_from']}"
        + (f" until {fact['valid_until']}" if fact["valid_until"] else "")
    )
    if fact["needs_confirmation"]:
        stage.console.print("badly heard: confirm by reading back", style="yellow")
    for item in fact["occurrences"]:
        turns = f"turns {item['first_turn']}–{item['last_turn']}"
        stage.console.print(
            f"{item['at']}  call {item['call_id']}, {turns}, {item['sentiment']}, {item['reader']}",
            style="dim",
        )
        stage.console.print(f"  “{item['words']}”")


@group.command("history")
def show_history(
    context: typer.Context, fact_id: str = typer.Argument(metavar="ID"), json: bool = _JSON
) -> None:
    """The chain a fact belongs to: what it replaced, and what replaced it; oldest first."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        chain = app.facts.get_history(fact_id)
    if json:
        print_json([fact_json(fact) for fact in chain])
    else:
        _print(stage, chain)


@group.command("restore")
def restore_fact(
    context: typer.Context, fact_id: str = typer.Argument(metavar="ID"), json: bool = _JSON
) -> None:
    """Believe a retired fact again; the one that replaced it stays, too."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        fact = app.facts.restore(
            fact_id, app.audit.make_writer(get_operator_name(), "restored", fact_id)
        )
    if json:
        print_json(fact_json(fact))
    else:
        typer.echo(f"{fact.id} is believed again")


@group.command("export")
def export_facts(
    context: typer.Context,
    caller: str = _CALLER,
    reveal: bool = typer.Option(
        False, "--reveal", help="Secrets, too; that they were shown is logged."
    ),
) -> None:
    """Every fact, retired ones too, with its occurrences: one JSON object a line."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        for fact in iter_whole_facts(
            app.facts, FactFilter(key=_key(stage, caller), include_retired=True), reveal=reveal
        ):
            if reveal and fact["visibility"] == "secret":
                app.audit.record(get_operator_name(), "revealed", fact["id"])
            typer.echo(jsonlib.dumps(fact, ensure_ascii=False))


def _key(cli: CliContext, caller: str) -> MemoryKey | None:
    if not caller:
        return None
    settings = cli.config.settings
    key = memory_key(settings, settings.agent_id, read_party(caller, "--caller"))
    if key is None:
        raise RefusedInput(
            "--caller",
            "nobody is remembered under this number (memory.scope, or a withheld number)",
        )
    return key


def _category(name: str) -> Category | None:
    if name and name not in CATEGORIES:
        raise RefusedInput("--category", f"is not one of {', '.join(CATEGORIES)}")
    return name or None


def _list(cli: CliContext, wanted: FactFilter, json: bool) -> None:
    with cli.open_app() as app:
        facts = app.facts.page(wanted)
    if json:
        print_json([fact_json(fact) for fact in facts])
    elif facts:
        _print(cli, facts)
    else:
        cli.console.print(
            "No facts. They are found after calls; `aftercall memory import` brings some along."
        )


def _print(cli: CliContext, facts: list[Fact]) -> None:
    has_others = any(fact.key.agent_id != cli.config.settings.agent_id for fact in facts)
    table = make_table(
        "id",
        *(["heard by"] if has_others else []),
        "caller",
        "category",
        "since",
        "until",
        "said",
        "fact",
    )
    zone = cli.config.settings.zone
    for fact in facts:
        until = f"{fact.valid_until.astimezone(zone):%Y-%m-%d}" if fact.valid_until else ""
        said = (
            HIDDEN
            if fact.is_secret
            else fact.summary + (" [confirm by reading back]" if fact.needs_confirmation else "")
        )
        since = f"{fact.valid_from.astimezone(zone):%Y-%m-%d}"
        heard_by = [fact.key.agent_id] if has_others else []
        table.add_row(
            fact.id,
            *heard_by,
            fact.key.caller,
            fact.category,
            since,
            until,
            _times(fact.occurrence_count),
            said,
        )
    cli.console.print(table)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
