"""The schema: built twice and compared; never downgraded by accident."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    Boolean,
    Connection,
    Integer,
    Table,
    Text,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DatabaseError

import aftercall.db.upgrade
from aftercall.db.columns import InstantColumn
from aftercall.db.connect import Database
from aftercall.db.corrections import corrections
from aftercall.db.tables import calls, followups, users
from aftercall.db.upgrade import (
    KNOWN_REVISIONS,
    NEWEST_REVISION,
    current_revision,
    make_alembic_config,
    prepare_database,
    upgrade,
)
from aftercall.errors import (
    ConfigError,
    DatabaseDamaged,
    DatabaseNewer,
    DatabaseOutdated,
    DatabaseUnreachable,
)
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from aftercall.testing import START
from opened_apps import OpenDatabase

NEXT_REVISION = "next"


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    database = Database(
        f"sqlite:///{tmp_path / 'new.db'}"
        if request.param == "sqlite"
        else request.getfixturevalue("empty_postgres")
    )
    yield database
    database.close()


def describe(database: Database) -> dict[str, object]:
    """Every table as the database itself tells it."""
    with database.read() as connection:
        found = inspect(connection)
        return {
            table: (
                sorted(
                    (c["name"], str(c["type"]), c["nullable"], c["default"])
                    for c in found.get_columns(table)
                ),
                found.get_pk_constraint(table)["constrained_columns"],
                sorted(
                    (f["name"] or "", f["referred_table"])
                    for f in found.get_foreign_keys(table)
                ),
            )
            for table in sorted(found.get_table_names())
            if table != "alembic_version" and not table.startswith("passages_fts")
        }


def is_ours(_thing: object, name: str | None, kind: str, *_rest: object) -> bool:
    """Indexes, and what full-text search adds, stand in the migration alone."""
    return kind != "index" and not str(name).startswith("passages_fts")


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
def test_migrations_lead_to_exactly_the_tables(empty: Database) -> None:
    metadata = corrections.metadata  # of every table
    assert users.metadata is metadata
    metadata.create_all(empty.engine)
    from_tables = describe(empty)
    metadata.drop_all(empty.engine)
    upgrade(empty)
    assert describe(empty) == from_tables
    with empty.read() as connection:
        options = {"compare_server_default": True, "include_object": is_ours}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_every_migration_is_known() -> None:
    scripts = ScriptDirectory.from_config(make_alembic_config()).walk_revisions()
    assert tuple(script.revision for script in scripts)[::-1] == KNOWN_REVISIONS


def make_columns(table: Table, **columns: object) -> dict[str, object]:
    """A row with something in each column that must have a value."""
    values = {Text: "x", Boolean: False, JSON: [], InstantColumn: START, Integer: 0}
    needed = [c for c in table.columns if not c.nullable and c.server_default is None]
    return {c.name: values[type(c.type)] for c in needed} | columns


def test_followups_of_before_get_the_day_of_their_call(empty: Database) -> None:
    began = START - timedelta(days=9)
    with empty.write() as connection:
        command.upgrade(make_alembic_config(connection), "0002")
        row = make_columns(calls, id="C1", started_at=began)
        connection.execute(insert(calls), row)
        row = make_columns(followups, id="F1", call_id="C1")
        connection.execute(insert(followups), row)
    upgrade(empty)
    with empty.read() as connection:
        assert connection.execute(select(followups.c.asked_at)).scalar() == began


def test_preparing_builds_a_new_database_and_does_it_once(empty: Database) -> None:
    prepare_database(empty)
    prepare_database(empty)
    with empty.read() as connection:
        assert current_revision(connection) == NEWEST_REVISION


def test_an_upgrade_that_fails_leaves_nothing_behind(empty: Database) -> None:
    with empty.write() as connection:
        connection.execute(text("CREATE TABLE steps (id INTEGER)"))  # is in the way
    with pytest.raises(DatabaseError):
        upgrade(empty)
    assert list(describe(empty)) == ["steps"]
    with empty.write() as connection:
        assert current_revision(connection) is None
        connection.execute(text("DROP TABLE steps"))
    upgrade(empty)
    assert "calls" in describe(empty)


def test_a_database_newer_than_us_is_refused(empty: Database) -> None:
    upgrade(empty)
    with empty.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for attempt in (prepare_database, upgrade):
        with pytest.raises(DatabaseNewer, match="9999"):
            attempt(empty)


def test_an_outdated_postgres_waits_for_db_upgrade(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch, open_database: OpenDatabase
) -> None:
    database = open_database(empty_postgres)
    upgrade(database)
    monkeypatch.setattr("aftercall.db.upgrade.NEWEST_REVISION", NEXT_REVISION)
    with pytest.raises(DatabaseOutdated, match="aftercall db upgrade"):
        prepare_database(database)


def test_sqlite_writes_ahead_syncs_fully_and_keeps_foreign_keys(
    tmp_path: Path, open_database: OpenDatabase
) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'a.db'}")
    with database.read() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    assert found == ["wal", 2, 1, 30_000]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "not a database address"),
        ("mysql://x/y", "not"),
        ("sqlite://", "forgets every call"),
        ("oracle+x://a", "not"),
    ],
)
def test_a_database_address_we_cannot_use_is_a_clear_error(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Database(url)


def test_a_database_that_is_not_there_says_so(
    tmp_path: Path, open_database: OpenDatabase
) -> None:
    url = f"postgresql+psycopg://nobody@localhost/none?host={tmp_path}"
    database = open_database(Settings(database=DatabaseSettings(url=url)).database_url)
    with pytest.raises(DatabaseUnreachable, match="no connection to the database"):
        prepare_database(database)


def test_a_table_that_is_gone_is_told_as_damage(empty: Database) -> None:
    with pytest.raises(DatabaseDamaged, match="calls"), empty.read() as connection:
        connection.execute(text("SELECT id FROM calls"))


def test_serve_upgrades_the_database_of_the_version_before_and_keeps_its_calls(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new revision that adds a column: SQLite by itself, Postgres by `db upgrade`."""
    upgrade(empty)
    with empty.write() as connection:
        connection.execute(
            text("INSERT INTO upkeep (name, at) VALUES ('x', '2026-01-01')")
        )
    add_next_revision(tmp_path, monkeypatch)
    if empty.dialect == "postgresql":
        with pytest.raises(DatabaseOutdated):
            prepare_database(empty)
        upgrade(empty)
    else:
        prepare_database(empty)
    with empty.read() as connection:
        assert current_revision(connection) == NEXT_REVISION
        found = connection.execute(text("SELECT name, added FROM upkeep")).all()
    assert [tuple(row) for row in found] == [("x", "new")]


def test_a_rollback_refuses_the_newer_database_and_changes_nothing(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        add_next_revision(tmp_path, newer)
        upgrade(empty)
    before = describe(empty)
    with pytest.raises(DatabaseNewer, match="install the Aftercall that made it"):
        prepare_database(empty)
    assert describe(empty) == before


def add_next_revision(folder: Path, patched: pytest.MonkeyPatch) -> None:
    """The version to come: our migrations and one more."""
    migrations = folder / "migrations"
    shutil.copytree(
        Path(aftercall.db.upgrade.__file__).parent / "migrations", migrations
    )
    (migrations / "versions" / "next.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        f"revision, down_revision = '{NEXT_REVISION}', '{NEWEST_REVISION}'\n"
        "def upgrade():\n"
        "    op.add_column('upkeep', sa.Column('added', sa.Text, server_default='new'))\n"
    )

    def make_config(connection: Connection | None = None) -> Config:
        config = make_alembic_config(connection)
        config.set_main_option("script_location", str(migrations))
        return config

    patched.setattr("aftercall.db.upgrade.make_alembic_config", make_config)
    patched.setattr(
        "aftercall.db.upgrade.KNOWN_REVISIONS", (*KNOWN_REVISIONS, NEXT_REVISION)
    )
    patched.setattr("aftercall.db.upgrade.NEWEST_REVISION", NEXT_REVISION)
