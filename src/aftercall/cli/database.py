"""`aftercall db`."""

import typer

from aftercall.cli.stage import stage_of
from aftercall.db.connect import Database

group = typer.Typer(no_args_is_help=True, help="The database.")


@group.callback()
def main() -> None:
    """The database."""


@group.command("upgrade")
def upgrade_database(context: typer.Context) -> None:
    """Bring the database to the form this version needs. Whole or not at all; safe to run twice."""
    from aftercall.db.upgrade import upgrade  # noqa: PLC0415 - other commands need no Alembic to load

    database = Database(stage_of(context).loaded.settings.database_url)
    try:
        typer.echo(f"The database is at revision {upgrade(database)}.")
    finally:
        database.close()
