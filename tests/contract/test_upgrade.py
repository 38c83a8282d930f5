"""The schema: built twice and compared; never downgraded by accident."""

import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

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
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DatabaseError

import aftercall.db.upgrade
from aftercall.db.connect import Database
from aftercall.db.corrections import corrections
from aftercall.db.statements import InstantColumn
from aftercall.db.tables import calls, followups, users
from aftercall.db.upgrade import (
    KNOWN_REVISIONS,
    NEWEST_REVISION,
    SURVIVED_BY,
    can_use,
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
from fakes import START
from opened_apps import OpenDatabase

NEXT_REVISION = "next"
EXPANSIONS = (
    r"CREATE TABLE (\w+)",
    r"(CREATE|DROP) INDEX",
    r"ALTER TABLE \w+ ADD (?!CONSTRAINT)((?!.*NOT NULL)|.* DEFAULT )",
    r"(INSERT INTO|UPDATE) alembic_version",
    r"SELECT|PRAGMA|BEGIN",
)


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


def test_a_newer_database_that_we_survive_is_used_and_left_as_it_is(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survived = f"0099{SURVIVED_BY}{NEWEST_REVISION[:4]}"
    with monkeypatch.context() as newer:
        add_next_revision(tmp_path, newer, survived)
        upgrade(empty)
    before = describe(empty)
    prepare_database(empty)
    assert upgrade(empty) == survived
    assert describe(empty) == before


def test_a_database_is_used_from_the_revision_on_that_it_names() -> None:
    unknown = f"0100{SURVIVED_BY}0099"
    usable = (NEWEST_REVISION, f"0100{SURVIVED_BY}{KNOWN_REVISIONS[0]}")
    refused = (None, KNOWN_REVISIONS[0], "0100", unknown)
    assert [can_use(name) for name in usable] == [True, True]
    assert [can_use(name) for name in refused] == [False] * 4


def test_a_migration_only_adds_or_names_the_version_that_it_contracts_for(
    empty: Database,
) -> None:
    """Old processes go on while the first of the new version migrates their database."""
    floor = ""
    for revision in KNOWN_REVISIONS:
        statements = collect_statements(empty, revision)
        number, _, survived_by = revision.partition(SURVIVED_BY)
        if number > "0002":
            assert re.fullmatch(r"\d{4}", survived_by), f"{revision} names no version"
            assert floor <= survived_by < number
        contracts = number != "0001" and bool(find_contractions(statements))
        assert not contracts or survived_by > floor, find_contractions(statements)
        floor = survived_by or floor


@pytest.mark.parametrize(
    ("statement", "is_expansion"),
    [
        ("ALTER TABLE calls ADD COLUMN mood TEXT", True),
        ("ALTER TABLE calls ADD mood TEXT DEFAULT 'x' NOT NULL", True),
        ("ALTER TABLE calls ADD COLUMN mood TEXT NOT NULL", False),
        ("ALTER TABLE calls ALTER COLUMN sid DROP NOT NULL", False),
        ("ALTER TABLE calls ADD CONSTRAINT one UNIQUE (sid)", False),
        ("ALTER TABLE calls RENAME COLUMN sid TO id", False),
        ("CREATE INDEX ix ON calls (sid)", True),
        ("CREATE UNIQUE INDEX ix ON calls (sid)", False),
        ("CREATE UNIQUE INDEX ix ON moods (sid)", True),
        ("DROP INDEX ix", True),
        ("DROP TABLE calls", False),
        ("UPDATE calls SET sid = ''", False),
    ],
)
def test_what_an_old_process_may_trip_over_is_no_expansion(
    statement: str, is_expansion: bool
) -> None:
    found = find_contractions(["CREATE TABLE moods (sid TEXT)", statement])
    assert found == ([] if is_expansion else [statement])


def collect_statements(database: Database, revision: str) -> list[str]:
    """What one migration sends to the database."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        statements.append(" ".join(statement.split()))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        with database.write() as connection:
            command.upgrade(make_alembic_config(connection), revision)
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    return statements


def find_contractions(statements: Sequence[str]) -> list[str]:
    """What does more than add. A new table or column may have whatever it wants."""
    made = [re.match(r"CREATE TABLE (\w+)", statement) for statement in statements]
    tables = [found[1] for found in made if found]
    allowed = [*EXPANSIONS]
    for table in tables:
        allowed.append(rf"CREATE UNIQUE INDEX \w+ ON {table} ")
    for statement in statements:
        if added := re.match(r"ALTER TABLE (\w+) ADD(?: COLUMN)? (\w+)", statement):
            allowed.append(" ".join(("UPDATE", added[1], "SET", added[2], "=")))
    return [
        statement
        for statement in statements
        if not any(re.match(pattern, statement) for pattern in allowed)
    ]


def add_next_revision(
    folder: Path, patched: pytest.MonkeyPatch, revision: str = NEXT_REVISION
) -> None:
    """The version to come: our migrations and one more."""
    migrations = folder / "migrations"
    shutil.copytree(
        Path(aftercall.db.upgrade.__file__).parent / "migrations", migrations
    )
    (migrations / "versions" / "next.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        f"revision, down_revision = '{revision}', '{NEWEST_REVISION}'\n"
        "def upgrade():\n"
        "    op.add_column('upkeep', sa.Column('added', sa.Text, server_default='new'))\n"
    )

    def make_config(connection: Connection | None = None) -> Config:
        config = make_alembic_config(connection)
        config.set_main_option("script_location", str(migrations))
        return config

    patched.setattr("aftercall.db.upgrade.make_alembic_config", make_config)
    patched.setattr(
        "aftercall.db.upgrade.KNOWN_REVISIONS", (*KNOWN_REVISIONS, revision)
    )
    patched.setattr("aftercall.db.upgrade.NEWEST_REVISION", revision)
