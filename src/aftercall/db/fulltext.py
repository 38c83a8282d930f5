"""Full text beside the table of passages: FTS5 with triggers on SQLite, a GIN index on Postgres.

Both index the terms as they stand; stemming and folding were done before (memory/words.py), so both find the same.
"""

from sqlalchemy import Connection, Table, event

LEXEMES = "array_to_tsvector(array_remove(string_to_array(shelf || ' ' || terms || ' ' || around, ' '), ''))"

_ADD = "INSERT INTO passages_fts (rowid, shelf, terms, around) VALUES (new.n, new.shelf, new.terms, new.around);"
_TAKE = "INSERT INTO passages_fts (passages_fts, rowid, shelf, terms, around) VALUES ('delete', old.n, old.shelf, old.terms, old.around);"
_COLUMNS = "shelf, terms, around, content='passages', content_rowid='n', tokenize='ascii', detail=column, columnsize=0"

STATEMENTS = {
    "sqlite": (
        f"CREATE VIRTUAL TABLE passages_fts USING fts5({_COLUMNS})",
        f"CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN {_ADD} END",
        f"CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN {_TAKE} END",
        f"CREATE TRIGGER passages_changed AFTER UPDATE OF shelf, terms, around ON passages BEGIN {_TAKE} {_ADD} END",
    ),
    "postgresql": (f"CREATE INDEX ix_passages_lexemes ON passages USING gin (({LEXEMES})) WITH (fastupdate = off)",),
}


def attach(passages: Table) -> None:
    """Whoever creates or drops the table from tables.py does the same with its full text."""

    def create(_table: Table, connection: Connection, **_rest: object) -> None:
        for statement in STATEMENTS[connection.dialect.name]:
            connection.exec_driver_sql(statement)

    def drop(_table: Table, connection: Connection, **_rest: object) -> None:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("DROP TABLE passages_fts")

    event.listen(passages, "after_create", create)
    event.listen(passages, "before_drop", drop)
