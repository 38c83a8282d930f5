"""`aftercall facts`."""

import json as json_text
from datetime import tzinfo
from typing import TYPE_CHECKING, Literal

import typer

from aftercall.cli.context import (
    ID_ARGUMENT,
    JSON_OPTION,
    CliContext,
    find_memory_key,
    get_cli_context,
    get_operator_name,
    print_json,
    print_line,
    print_outcome,
    print_rows,
)
from aftercall.errors import RefusedInput
from aftercall.model.json_fields import Json

if TYPE_CHECKING:
    from aftercall.memory.fact_store import FactFilter
    from aftercall.model.facts import Fact, MemoryKey
    from aftercall.model.reading import Category

_CALLER = typer.Option("", help="Only this caller's.")
_CATEGORY = typer.Option("", help="Only this category's.")
_LIMIT = typer.Option(100, min=1, max=10_000, help="How many at most.")

group = typer.Typer(no_args_is_help=True, help="Facts, with the words they rest on.")


@group.command("list")
def list_facts(
    context: typer.Context,
    caller: str = _CALLER,
    category: str = _CATEGORY,
    retired: bool = typer.Option(
        False, "--retired", help="Those that no longer hold, instead."
    ),
    limit: int = _LIMIT,
    json: bool = JSON_OPTION,
) -> None:
    """Facts that hold now."""
    from aftercall.memory.fact_store import FactFilter

    cli = get_cli_context(context)
    wanted = FactFilter(
        key=_key(cli, caller),
        category=_category(category),
        only_retired=retired,
        limit=limit,
        include_group=True,
    )
    _list(cli, wanted, json)


@group.command("search")
def search_facts(
    context: typer.Context,
    query: str = typer.Argument(
        metavar="QUERY", help='Any words; "quoted words" must stand side by side.'
    ),
    caller: str = _CALLER,
    limit: int = typer.Option(10, min=1, max=40, help="How many, best first."),
    json: bool = JSON_OPTION,
) -> None:
    """Facts that match the words, best first; `aftercall search` also searches turns and
    summaries.
    """
    from aftercall.memory.search import find_facts, make_key_scope

    cli = get_cli_context(context)
    settings = cli.config.settings
    where = make_key_scope(settings, settings.agent_id, _key(cli, caller))
    with cli.open_stores() as stores:
        found = find_facts(stores.search, stores.facts, query, where, limit)
    _print_facts(cli, found, json)


@group.command("at")
def facts_at(
    context: typer.Context,
    date: str = typer.Argument(metavar="DATE", help="A day, or a time with its zone."),
    caller: str = _CALLER,
    category: str = _CATEGORY,
    limit: int = _LIMIT,
    json: bool = JSON_OPTION,
) -> None:
    """Facts that held then, as far as is known today."""
    from aftercall.memory.fact_store import FactFilter, parse_as_of

    cli = get_cli_context(context)
    as_of = parse_as_of("DATE", date, cli.config.settings.zone)
    wanted = FactFilter(
        key=_key(cli, caller),
        category=_category(category),
        as_of=as_of,
        limit=limit,
        include_group=True,
    )
    _list(cli, wanted, json)


@group.command("show")
def show_fact(
    context: typer.Context,
    fact_id: str = ID_ARGUMENT,
    reveal: bool = typer.Option(
        False, "--reveal", help="Show a secret; this is logged."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """One fact, and each time it was said."""
    from rich.text import Text

    from aftercall.memory.fact_store import whole_fact_json

    cli = get_cli_context(context)
    with cli.open_stores() as stores:
        fact_id = stores.find_id("fact", fact_id)
        fact = whole_fact_json(stores.facts, fact_id, reveal=reveal)
        if reveal and fact["visibility"] == "secret":
            stores.audit.record(get_operator_name(), "revealed", fact_id)
    if json:
        print_json(fact)
        return
    show = cli.console.print
    show(Text.assemble((fact["id"], "bold"), f"  {fact['content']}"))
    state = _describe_state(fact)
    kind = f"{fact['category']}, {fact['visibility']}, {state}, of {fact['caller']}"
    show(f"{kind}; said {_times(fact['occurrence_count'])}")
    until = f" until {fact['valid_until']}" if fact["valid_until"] else ""
    show(f"valid from {fact['valid_from']}{until}")
    if fact["disputed_with"]:
        others = ", ".join(fact["disputed_with"])
        show(f"disputed with {others}: settle with `facts settle`", style="yellow")
    if fact["needs_confirmation"]:
        show("badly heard: confirm by reading back", style="yellow")
    for item in fact["occurrences"]:
        turns = f"turns {item['first_turn']}–{item['last_turn']}"
        source = (
            f"call {item['call_id']}, {turns}, {item['sentiment']}, {item['reader']}"
        )
        show(f"{item['at']}  {source}", style="dim")
        show(f"  “{item['words']}”")


@group.command("history")
def show_history(
    context: typer.Context, fact_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """The chain a fact belongs to: what it replaced and what replaced it, oldest first."""
    cli = get_cli_context(context)
    with cli.open_stores() as stores:
        chain = stores.facts.get_history(stores.find_id("fact", fact_id))
    _print_facts(cli, chain, json)


@group.command("restore")
def restore_fact(
    context: typer.Context, fact_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """Restore a retired fact; the one that replaced it stays, too."""
    _change_fact(context, "restore", fact_id, {}, "is believed again", json)


@group.command("retire")
def retire_fact(
    context: typer.Context,
    fact_id: str = ID_ARGUMENT,
    since: str = typer.Option("", help="Since this day, like 2026-02-17; else now."),
    json: bool = JSON_OPTION,
) -> None:
    """A fact is no longer true; `corrections fact --remove` is for one that never was."""
    given = {"since": since}
    _change_fact(context, "retire", fact_id, given, "is no longer believed", json)


@group.command("settle")
def settle_fact(
    context: typer.Context,
    fact_id: str = ID_ARGUMENT,
    both: bool = typer.Option(
        False, "--both", help="All facts of the dispute hold; none is retired."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Settle a dispute: this fact holds, the others of the dispute do not."""
    told = "is believed" + (" and so are the others" if both else "")
    _change_fact(context, "settle", fact_id, {"both": both}, told, json)


def _change_fact(
    context: typer.Context,
    change: Literal["restore", "retire", "settle"],
    fact_id: str,
    given: Json,
    told: str,
    json: bool,
) -> None:
    from aftercall.memory.fact_store import fact_json
    from aftercall.stores import find_id

    with get_cli_context(context).open_app() as app:
        fact_id = find_id(app.database, "fact", fact_id)
        getattr(app.corrections, change)(fact_id, get_operator_name(), **given)
        fact = app.facts.get(fact_id)
    print_outcome(fact_json(fact), f"{fact.id} {told}", json)


@group.command("export")
def export_facts(
    context: typer.Context,
    caller: str = _CALLER,
    reveal: bool = typer.Option(
        False, "--reveal", help="Also secrets; this is logged."
    ),
) -> None:
    """Every fact, retired ones too, with its occurrences: one JSON object per line."""
    from aftercall.memory.fact_store import FactFilter, iter_whole_facts

    cli = get_cli_context(context)
    wanted = FactFilter(key=_key(cli, caller), include_retired=True)
    with cli.open_stores() as stores:
        for fact in iter_whole_facts(stores.facts, wanted, reveal=reveal):
            if reveal and fact["visibility"] == "secret":
                stores.audit.record(get_operator_name(), "revealed", fact["id"])
            typer.echo(json_text.dumps(fact, ensure_ascii=False))


def _key(cli: CliContext, caller: str) -> "MemoryKey | None":
    return find_memory_key(cli, caller, "--caller") if caller else None


def _category(name: str) -> "Category | None":
    from aftercall.model.reading import CATEGORIES

    if name and name not in CATEGORIES:
        raise RefusedInput("--category", f"is not one of {', '.join(CATEGORIES)}")
    return name or None


def _list(cli: CliContext, wanted: "FactFilter", json: bool) -> None:
    with cli.open_stores() as stores:
        facts = stores.facts.page(wanted)
    if facts or json:
        _print_facts(cli, facts, json)
    else:
        print_line(
            "No facts. They are found after calls; `aftercall memory import` adds some from notes."
        )


def _print_facts(cli: CliContext, facts: "list[Fact]", json: bool) -> None:
    from aftercall.memory.fact_store import fact_json

    if json:
        print_json([fact_json(fact) for fact in facts])
        return
    agent_id = cli.config.settings.agent_id
    has_others = any(fact.key.agent_id != agent_id for fact in facts)
    heads = ["id", "caller", "category", "since", "until", "fact"]
    if has_others:
        heads.insert(1, "heard by")
    if not any(fact.valid_until for fact in facts):
        heads.remove("until")
    lines = []
    for fact in facts:
        cells = _list_cells(fact, cli.config.settings.zone)
        lines.append([cells[head] for head in heads])
    print_rows(heads, lines)


def _list_cells(fact: "Fact", zone: tzinfo) -> dict[str, str]:
    from aftercall.memory.fact_store import HIDDEN

    until = fact.valid_until
    marks: list[str] = (
        [fact.state] if fact.state in ("disputed", "doubtful", "wrong") else []
    )
    marks += ["confirm by reading back"] if fact.needs_confirmation else []
    text = HIDDEN if fact.is_secret else fact.summary
    shown = "".join(f" [{mark}]" for mark in marks)
    return {
        "id": fact.id,
        "heard by": fact.key.agent_id,
        "caller": fact.key.caller,
        "category": fact.category,
        "since": f"{fact.valid_from.astimezone(zone):%Y-%m-%d}",
        "until": f"{until.astimezone(zone):%Y-%m-%d}" if until else "",
        "fact": f"{text}{shown} (said {_times(fact.occurrence_count)})",
    }


def _describe_state(fact: Json) -> str:
    by = fact["superseded_by"]
    return {
        "active": "believed",
        "disputed": "believed, but disputed",
        "doubtful": f"doubtful since {fact['doubt']} was retired",
        "superseded": f"retired by {by or 'a person'}",
        "wrong": f"never true, corrected by {by}",
    }[fact["state"]]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
