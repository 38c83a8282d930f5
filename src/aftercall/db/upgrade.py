"""Bringing a database to the form this version needs, whole or not at all."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from aftercall.db.connect import Database
from aftercall.db.revision import NEWEST, current_revision, refuse_newer

_UPGRADE_LOCK = 4_772_035_511  # any fixed number: two processes that upgrade one Postgres wait for each other


def upgrade(database: Database) -> str:
    """Run the migrations that are missing, in one transaction; returns the revision."""
    with database.write() as connection:
        if database.dialect == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
        refuse_newer(current_revision(connection))
        command.upgrade(make_config(connection), NEWEST)
    return NEWEST


def make_config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
