"""`aftercall init`, `doctor`, `config`, `health`, `backup`, `restore`, `password` and `db`."""

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from pydantic import SecretStr

from aftercall.cli.context import (
    JSON_OPTION,
    count_nouns,
    get_cli_context,
    get_operator_name,
    print_json,
    print_line,
    print_rows,
)
from aftercall.clock import SystemClock
from aftercall.config import list_settings, load_config, parse_config
from aftercall.disk import create_once, replace_synced
from aftercall.errors import ConfigError, DatabaseError, RefusedInput, StorageFull
from aftercall.model.json_fields import Json

if TYPE_CHECKING:
    from rich.console import Console

    from aftercall.doctor import Check

MIN_PASSWORD_CHARS = 10
BACKUP_NICENESS = 10  # the audio of live calls goes first
DEFAULT = "default"
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "failing": "red"}
_HEALTHY_STATES = ("ok", "nothing_said", "superseded", "recovered")

group = typer.Typer(no_args_is_help=True)


@group.callback()
def database() -> None:
    """The database."""


@group.command("upgrade")
def upgrade_database(context: typer.Context) -> None:
    """Bring the database to the schema of this version. All or nothing; safe to run twice."""
    from aftercall.db.connect import Database
    from aftercall.db.upgrade import upgrade

    database = Database(get_cli_context(context).config.settings.database_url)
    try:
        typer.echo(f"The database is at revision {upgrade(database)}.")
    finally:
        database.close()


# Where calls come from, and the settings that it needs.
PHONES: dict[str, tuple[str, ...]] = {
    "lab": (),
    "twilio": ("twilio.account_sid", "twilio.auth_token", "twilio.phone_number"),
    "telnyx": ("telnyx.api_key", "telnyx.public_key"),
    "elevenlabs": ("elevenlabs.webhook_secret",),
    "vapi": ("vapi.webhook_secret",),
    "retell": ("retell.api_key",),
    "bland": ("bland.webhook_secret",),
    "none": (),
}
CARRIERS = ("twilio", "telnyx")
ENGINES: dict[str, tuple[str, ...]] = {
    "receptionist": (),
    "deepgram": ("deepgram.api_key",),
    "openai": ("openai.api_key",),
}
MODELS: dict[str, tuple[str, ...]] = {
    "rules": (),
    "anthropic": ("anthropic.api_key",),
    "openai": ("openai.api_key",),
    "xai": ("xai.api_key",),
    "openai-compatible": ("openai.base_url",),
}
_QUESTIONS = {
    "phone": (
        "Where do calls come from: a carrier (twilio, telnyx), a platform (elevenlabs, vapi,\n"
        "retell, bland), the emulated network on this machine (lab), or your own agent (none)?"
    ),
    "engine": "Who speaks on the phone? The receptionist is built in and needs no key.",
    "model": "Who reads the calls? The rules are built in, free and offline.",
}


def init(
    context: typer.Context,
    phone: str = typer.Option(
        "", metavar="NAME", help=f"Where calls come from: {', '.join(PHONES)}."
    ),
    engine: str = typer.Option(
        "", metavar="NAME", help=f"Who speaks: {', '.join(ENGINES)}."
    ),
    model: str = typer.Option(
        "", metavar="NAME[:MODEL]", help=f"Who reads calls: {', '.join(MODELS)}."
    ),
    public_url: str = typer.Option(
        "", metavar="URL", help="The address carriers and platforms reach."
    ),
    given: list[str] = typer.Option(
        [], "--set", metavar="SETTING=VALUE", help="Any other setting; may be repeated."
    ),
    file: Path = typer.Option(
        Path("aftercall.toml"), metavar="FILE", help="Settings file to write."
    ),
    force: bool = typer.Option(False, "--force", help="Replace a file that exists."),
    offline: bool = typer.Option(False, "--offline", help="Do not try the keys."),
) -> None:
    """Write the settings file: asks for carrier or platform, engine and model, tries each key,
    and prints the addresses for webhooks.

    In a script, give the answers as options. Keys are taken from the environment, under the names
    that `aftercall config` lists; that keeps them out of the list of processes.
    """
    form = SetupForm(is_asking=sys.stdin.isatty())
    form.confirm_file(file, is_forced=force)
    chosen = form.choose("phone", phone, PHONES, default="lab")
    form.require(*PHONES[chosen])
    if chosen == "lab":
        form.answers |= _list_lab_settings()
    if public_url or chosen not in ("lab", "none"):
        form.require_public_url(public_url)
    if engine or chosen in CARRIERS:
        name = form.choose("engine", engine, ENGINES, default="receptionist")
        form.answers["engine"] = name
        form.require(*ENGINES[name])
    form.choose_model(model)
    form.set_all(given)
    form.save(file)
    console = get_cli_context(context).console
    console.print(f"\nWrote {file}; only you can read it.")
    _show_setup(console, file, chosen, is_offline=offline)


@dataclass
class SetupForm:
    """The answers so far, by setting; asks for what is missing if someone is there to answer."""

    is_asking: bool
    answers: dict[str, str] = field(default_factory=dict)

    def confirm_file(self, file: Path, *, is_forced: bool) -> None:
        """A file that exists is replaced only if somebody says so."""
        if not file.exists() or is_forced:
            return
        if not self.is_asking:
            raise ConfigError(f"{file}: exists already; give --force to replace it")
        if not typer.confirm(f"{file} exists already. Replace it?"):
            raise typer.Exit(1)

    def choose(self, what: str, given: str, known: Json, *, default: str) -> str:
        """Takes what was given if it is known; else asks."""
        name = given
        while name not in known:
            if name or not self.is_asking:
                message = f"--{what}: is one of {', '.join(known)}"
                if not self.is_asking:
                    raise ConfigError(message)
                typer.echo(message)
            else:
                typer.echo(f"\n{_QUESTIONS[what]}")
            name = typer.prompt(what.title(), default=default).strip().lower()
        return name

    def require(self, *keys: str) -> None:
        """Takes each from the environment, or asks; a secret is not shown while it is typed."""
        fields = {key: (env, info) for key, env, info in list_settings()}
        for key in keys:
            env, info = fields[key]
            value = os.environ.get(env, "") or self.answers.get(key, "")
            if not value and not self.is_asking:
                raise ConfigError(f"{key}: is missing; set {env} in the environment")
            if not value:
                is_secret = SecretStr.__name__ in str(info.annotation)
                label = f"{env} ({info.description})"
                value = typer.prompt(label, hide_input=is_secret)
            self.answers[key] = value.strip()

    def require_public_url(self, given: str) -> None:
        url = given or os.environ.get("AFTERCALL_PUBLIC_URL", "")
        if not url and self.is_asking:
            typer.echo(
                "\nThe address of this server from outside: a tunnel's or a proxy's."
            )
            url = typer.prompt("Public address (empty: later)", default="")
        if url:
            self.answers["public_url"] = url.strip().rstrip("/")

    def choose_model(self, given: str) -> None:
        from aftercall.llm.model.client import DEFAULT_MODELS

        provider, _, name = given.partition(":")
        provider = self.choose("model", provider, MODELS, default="rules")
        self.require(*MODELS[provider])
        name = name or str(dict(DEFAULT_MODELS).get(provider, ""))  # type: ignore[call-overload]
        if provider != "rules" and not name:
            if not self.is_asking:
                raise ConfigError(
                    "--model: openai-compatible needs a name after a colon"
                )
            name = typer.prompt("Name of the model").strip()
        self.answers["model"] = f"{provider}:{name}" if name else provider

    def set_all(self, given: list[str]) -> None:
        """Settings given as `key=value`."""
        for pair in given:
            key, equals, value = pair.partition("=")
            if not equals:
                raise ConfigError(f"--set {pair}: is SETTING=VALUE")
            self.answers[key.strip()] = value.strip()

    def save(self, file: Path) -> None:
        """Writes the file if its settings are valid; else it changes nothing."""
        text = "\n".join(_to_toml(self.answers)) + "\n"
        parse_config(text, file, {})
        if file.exists():
            replace_synced(file, text.encode())
        elif not create_once(file, text.encode()):
            raise ConfigError(f"{file}: appeared meanwhile; nothing was written")


def _list_lab_settings() -> dict[str, str]:
    """What `aftercall lab` expects of an agent, at its usual address."""
    from aftercall.cli.lab import ACCOUNT, OUR_NUMBER, TOKEN
    from aftercall.lab.server import GITHUB_TOKEN
    from aftercall.lab.services import EmulatedGitHub

    address = "http://127.0.0.1:8090"
    return {
        "public_url": "http://127.0.0.1:8080",
        "reconnect_window_s": "10",  # work begins soon after the call
        "twilio.account_sid": ACCOUNT,
        "twilio.auth_token": TOKEN,
        "twilio.phone_number": OUR_NUMBER,
        "twilio.api_url": address,
        "github.token": GITHUB_TOKEN,
        "github.repository": EmulatedGitHub.repository,
        "github.api_url": address,
    }


def _to_toml(answers: dict[str, str]) -> Iterator[str]:
    yield "# Aftercall's settings; `aftercall config --all` lists all there are."
    section = ""
    for key in sorted(answers, key=lambda key: ("." in key, key)):
        head, dot, name = key.rpartition(".")
        if dot and head != section:
            yield f"\n[{head}]"
            section = head
        yield f"{name} = {dumps(answers[key], ensure_ascii=False)}"


def _show_setup(
    console: "Console", file: Path, phone: str, *, is_offline: bool
) -> None:
    """What to paste where, what the services said, and what to do next."""
    from aftercall.service_checks import check_services, list_webhooks

    settings = load_config(file).settings
    webhooks = list_webhooks(settings, phone)
    if webhooks:
        console.print("\nAddresses to paste at your carrier or platform:")
    for purpose, address in webhooks:
        console.print(f"  {purpose:36} {address}")
    if settings.public_url is None and phone != "none":
        console.print(
            "\nNo public address yet: set public_url, then run `aftercall doctor`."
        )
    checks = [] if is_offline or phone == "lab" else check_services(settings)
    if checks:
        console.print("\nWhat the services said:")
        _print_checks(console, checks)
    config = "" if file.name == "aftercall.toml" else f" --config {file}"
    console.print(f"\nNext: aftercall{config} serve")
    if phone == "lab":
        console.print("In a second terminal: aftercall lab")
        console.print("In a third one: aftercall lab --ring +15550100")
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(1)


def config(
    context: typer.Context,
    every: bool = typer.Option(False, "--all", help="Also what is not set."),
    json: bool = JSON_OPTION,
) -> None:
    """List the settings that are set, with their values and where they came from.

    Secrets are hidden.
    """

    cli = get_cli_context(context)
    if json:
        print_json(
            [
                {
                    "key": value.key,
                    "env": value.env,
                    "value": value.shown,
                    "origin": value.origin,
                    "description": value.description,
                }
                for value in cli.config.values
            ]
        )
        return
    lines = [
        (value.key, value.origin, value.shown)
        if value.origin != DEFAULT
        else (value.key, DEFAULT, f"{value.shown}  {value.env}")
        for value in cli.config.values
        if every or value.origin != DEFAULT
    ]
    if lines:
        print_rows(("setting", "from", "value"), lines)
    else:
        print_line("Nothing is set: every setting has its default.")
    if not every:
        cli.console.print(
            "`aftercall config --all` lists the others, with their environment variables.",
            style="dim",
        )
    for warning in cli.config.warnings:
        print_line(("warning", "yellow"), f"  {warning}")


def doctor(
    context: typer.Context,
    offline: bool = typer.Option(
        False, "--offline", help="Check this machine only; ask no service."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Check this machine, the settings, and each service whose key is set: carriers, engines,
    models, sinks, webhooks, TLS. Says what to do; exit 1 if a check fails.

    Services are only asked. No call, message or issue comes of it.
    """
    from aftercall.doctor import run_checks
    from aftercall.service_checks import check_services

    cli = get_cli_context(context)
    checks = list(run_checks(cli.config))
    if not offline:
        checks += check_services(cli.config.settings)
    if json:
        print_json([asdict(check) for check in checks])
    else:
        _print_checks(cli.console, checks)
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(1)


def _print_checks(console: "Console", checks: list["Check"]) -> None:
    from rich.text import Text

    from aftercall.cli.console import make_table

    table = make_table("", "check", "what was seen", "what to do", texts=2)
    for check in checks:
        row = (check.name, check.detail, check.advice)
        table.add_row(Text(check.state, _COLOURS[check.state]), *row)
    console.print(table)


def health(
    context: typer.Context,
    every: bool = typer.Option(
        False, "--all", help="Also list calls without problems."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Check that every call of the last three days was processed.

    Exit 0 all is well, 1 worth a look, 2 failing.
    """

    from aftercall.upkeep import list_reported_failures
    from aftercall.work import health as work_health

    cli = get_cli_context(context)
    try:
        with cli.open_stores(reads_rows_only=True) as stores:
            now = stores.clock.now()
            failures = list_reported_failures(stores.presence, now)
            window_s = stores.settings.reconnect_window_s
            report = work_health.report(stores.health, now, window_s, failures)
    except (DatabaseError, StorageFull) as error:
        # Without the database the state of the calls is unknown: failing, not worth a look.
        print_line(("failing", _COLOURS["failing"]), f"  {error}")
        raise typer.Exit(2) from None
    if json:
        print_json(work_health.report_json(report))
        raise typer.Exit(report.exit_code)
    states = [
        f"{count} {state.replace('_', ' ')}"
        for state, count in report.by_state.items()
        if count
    ]
    status = (report.status, _COLOURS[report.status])
    print_line(status, f"  calls: {', '.join(states) or 'none'}")
    for reason in report.reasons:
        print_line(f"- {reason}")
    lines = [
        (call.id, call.state, call.reason)
        for call in report.calls
        if every or call.state not in _HEALTHY_STATES
    ]
    if lines:
        print_rows(("call", "state", "reason"), lines)
    counts = report.counts
    line = f"waiting in queues: {counts.queued}; held: {counts.held}; last sweep: "
    line += f"{counts.swept_at:%Y-%m-%d %H:%M}" if counts.swept_at else "never"
    if last := counts.reconciled:
        listed, brought = count_nouns(call=last["listed"]), last["brought"]
        ended = str(last["finished_at"] or "going on").replace("T", " ")[:16]
        line += f"\nlast reconcile: {ended}; {listed} listed, {brought} brought"
    print_line((line, "dim"))
    raise typer.Exit(report.exit_code)


def backup(
    context: typer.Context,
    to: Path = typer.Argument(
        metavar="FOLDER", help="Where to; the file is named after the time."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Back up database, archive, recordings, pages and key into one file, and read it again.

    Servers and workers may run meanwhile. Exit 1 if files of the home were damaged before; the
    backup then holds everything else.
    """
    from aftercall.backup import make_backup

    os.nice(BACKUP_NICENESS)
    with get_cli_context(context).open_app() as app:
        report = make_backup(app.settings, app.database, to, app.clock.now())
        app.audit.record(get_operator_name(), "backed up", Path(report.path).name)
    if json:
        print_json(asdict(report))
    else:
        counts = count_nouns(sealed_call=report.calls, file=report.files)
        typer.echo(f"{report.path}: {counts}, {report.bytes:,} bytes, verified")
        typer.echo(
            "It holds the secret key: keep it as safe as the home."
            if report.has_key
            else "It does not hold the secret key, which the environment sets: keep that, too."
        )
        for fault in report.faults:
            typer.echo(f"  {fault}")
    if report.faults:
        raise typer.Exit(1)


def restore(
    context: typer.Context,
    file: Path = typer.Argument(metavar="FILE", help="A backup."),
    json: bool = JSON_OPTION,
) -> None:
    """Restore a backup into the home and the database of the settings; both must be empty.

    Every byte is checked first. A restore that was cut off can be started again.
    """
    from aftercall.backup import restore_backup

    settings = get_cli_context(context).config.settings
    header = restore_backup(settings, file, SystemClock().now())
    if json:
        print_json(asdict(header) | {"home": str(settings.home)})
        return
    typer.echo(f"{settings.home} is as it was on {header.made_at}.")
    typer.echo(
        "`aftercall verify` proves the archive; `aftercall serve` goes on from there."
    )
    typer.echo(
        "Stop the Aftercall that was backed up first: two would do its work twice."
    )


def password() -> None:
    """Hash a password for the pages; set the hash as AFTERCALL_PAGES_PASSWORD_HASH."""
    from argon2 import PasswordHasher

    typed = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(typed) < MIN_PASSWORD_CHARS:
        raise RefusedInput(
            "password", f"is shorter than {MIN_PASSWORD_CHARS} characters"
        )
    typer.echo(PasswordHasher().hash(typed))
