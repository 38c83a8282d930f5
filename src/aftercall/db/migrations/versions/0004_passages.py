"""Passages: what can be searched, with full text in both databases, and optional vectors."""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LEXEMES = (
    "array_to_tsvector(array_remove(string_to_array(shelf || ' ' || terms || ' ' || around, ' "
    "'), ''))"
)
_ADD = (
    "INSERT INTO passages_fts (rowid, shelf, terms, around) VALUES (new.n, new.shelf, "
    "new.terms, new.around);"
)
_TAKE = (
    "INSERT INTO passages_fts (passages_fts, rowid, shelf, terms, around) VALUES ('delete', "
    "old.n, old.shelf, old.terms, old.around);"
)


def upgrade() -> None:
    op.create_table(
        "passages",
        sa.Column("n", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False, comment="turn, summary, fact"),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("caller", sa.Text),
        sa.Column(
            "scope",
            sa.Text,
            nullable=False,
            comment="agent and caller as one token; empty for a withheld number",
        ),
        sa.Column(
            "shelf",
            sa.Text,
            nullable=False,
            comment="the tokens it is found under: caller and agent, apart when retired",
        ),
        sa.Column("call_id", sa.Text),
        sa.Column("ref", sa.Text, comment="the fact it is"),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("speaker", sa.Text, nullable=False),
        sa.Column(
            "at", InstantColumn, nullable=False, comment="when it was said; since when it holds"
        ),
        sa.Column("until", InstantColumn, comment="when it ceased to hold"),
        sa.Column(
            "day",
            sa.Integer,
            nullable=False,
            comment="day of the last mention, counted from year 1",
        ),
        sa.Column("mentions", sa.Integer, nullable=False, server_default="1"),
        sa.Column("marks", sa.Integer, nullable=False, comment="bits: a question, tells of time"),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column(
            "visibility", sa.Text, nullable=False, comment="shared, private; secrets are never here"
        ),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("around", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_passages")),
    )
    _create_indexes()
    op.create_table(
        "passage_vectors",
        sa.Column(
            "n",
            _NUMBER,
            sa.ForeignKey("passages.n", ondelete="CASCADE", name="fk_passage_vectors_n_passages"),
            autoincrement=False,
        ),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False, comment="32-bit floats of length one"),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_passage_vectors")),
    )


def _create_indexes() -> None:
    turns, facts = sa.text("ref IS NULL"), sa.text("ref IS NOT NULL")
    op.create_index(
        "ix_passages_place",
        "passages",
        ["call_id", "kind", "seq"],
        unique=True,
        sqlite_where=turns,
        postgresql_where=turns,
    )
    op.create_index(
        "ix_passages_ref",
        "passages",
        ["ref"],
        unique=True,
        sqlite_where=facts,
        postgresql_where=facts,
    )
    op.create_index("ix_passages_scope", "passages", ["scope"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE passage_pages")
        op.execute(
            f"CREATE INDEX ix_passages_lexemes ON passages USING gin (({_LEXEMES})) WITH "
            "(fastupdate = off)"
        )
        return
    op.execute(
        "CREATE VIRTUAL TABLE passages_fts USING fts5"
        "(shelf, terms, around, content='passages', content_rowid='n', tokenize='ascii', "
        "detail=column, columnsize=0)"
    )
    op.execute(f"CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN {_ADD} END")
    op.execute(f"CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN {_TAKE} END")
    op.execute(
        "CREATE TRIGGER passages_changed AFTER UPDATE OF shelf, terms, around ON passages "
        f"BEGIN {_TAKE} {_ADD} END"
    )
