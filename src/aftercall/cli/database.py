"""`aftercall db`."""

import typer

from aftercall.cli.context import get_cli_context
from aftercall.db.connect import Database

group = typer.Typer(no_args_is_help=True, help="The database.")


@group.callback()
def main() -> None:
    """The database."""


@group.command("upgrade")
def upgrade_database(context: typer.Context) -> None:
    """Bring the database to the form this version needs. Whole or not at all; safe to run twice."""
    from aftercall.db.upgrade import upgrade

    database = Database(get_cli_context(context).config.settings.database_url)
    try:
        typer.echo(f"The database is at revision {upgrade(database)}.")
    finally:
        database.close()
