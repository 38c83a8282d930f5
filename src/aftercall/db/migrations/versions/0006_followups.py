"""Follow-up work: its outbox and timer, requests and promises with their history, deliveries,
and when upkeep last ran.
"""

import sqlalchemy as sa
from alembic import op

from aftercall.db.columns import InstantColumn

revision = "0006"
down_revision = "0005"

_OPEN_RUN = sa.text("state <> 'done'")
_QUEUED = sa.text("queued = 'due'")
_REMINDER = sa.text("reminder = 'due'")
# Conversations that ended before follow-ups were kept are over: nobody expects their work now.
_BEFORE = """
    INSERT INTO followup_runs (conversation, agent_id, caller, ended_at, state, reason, changed_at)
    SELECT conversation, min(agent_id), min(caller), max(ended_at), 'done',
        'ended before follow-ups were kept', max(ended_at)
    FROM calls WHERE state = 'sealed' GROUP BY conversation
"""


def upgrade() -> None:
    _create_runs()
    _create_followups()
    _create_deliveries()
    op.execute(_BEFORE)


def _create_runs() -> None:
    op.create_table(
        "followup_runs",
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("caller", sa.Text),
        sa.Column(
            "ended_at",
            InstantColumn,
            nullable=False,
            comment="the end of the last leg; the reconnect window counts from here",
        ),
        sa.Column("state", sa.Text, nullable=False, comment="due, running, done, failed"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column(
            "run",
            sa.Integer,
            nullable=False,
            server_default="0",
            comment="how often it was started",
        ),
        sa.Column("finished_run", sa.Integer, nullable=False, server_default="0"),
        sa.Column("wrong_passcodes", sa.Integer, nullable=False, server_default="0"),
        sa.Column("legs", sa.JSON, comment="call id: how many turns its caller had"),
        sa.Column("changed_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("conversation", name="pk_followup_runs"),
    )
    op.create_index(
        "ix_followup_runs_open",
        "followup_runs",
        ["state"],
        sqlite_where=_OPEN_RUN,
        postgresql_where=_OPEN_RUN,
    )
    op.create_index("ix_followup_runs_caller", "followup_runs", ["caller", "ended_at"])
    op.create_table(
        "upkeep",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("at", InstantColumn, nullable=False),
        sa.Column("found", sa.JSON),
        sa.PrimaryKeyConstraint("name", name="pk_upkeep"),
    )


def _create_followups() -> None:
    op.create_table(
        "followups",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column(
            "key",
            sa.Text,
            nullable=False,
            comment="of conversation, kind and title: the same request is the same row",
        ),
        sa.Column("kind", sa.Text, nullable=False, comment="request, promise"),
        sa.Column(
            "request_kind",
            sa.Text,
            nullable=False,
            comment="issue, task, reminder, note, message, booking, other",
        ),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("person", sa.Text),
        sa.Column("due", sa.Text, comment="a day, or an instant"),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("caller", sa.Text),
        sa.Column("turns", sa.JSON, nullable=False, comment="pairs of call id and turn number"),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column(
            "state",
            sa.Text,
            nullable=False,
            comment="open, held, doing, done, failed, refused, withdrawn, expired, broken",
        ),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("link", sa.Text),
        sa.Column("trust", sa.Text, nullable=False, comment="verified, known, unknown"),
        sa.Column("sink", sa.Text, nullable=False, comment="names of the sinks, joined by +"),
        sa.Column("fulfilled_by", sa.Text, comment="the follow-up that keeps this promise"),
        sa.Column(
            "round",
            sa.Integer,
            nullable=False,
            server_default="0",
            comment="how often it was approved or tried again by hand",
        ),
        sa.Column(
            "queued",
            sa.Text,
            comment="due when it waits to be done outside its conversation's run, then started",
        ),
        sa.Column("remind_at", InstantColumn),
        sa.Column("reminder", sa.Text, comment="due, then started"),
        sa.Column("created_at", InstantColumn, nullable=False),
        sa.Column("changed_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_followups"),
    )
    op.create_index("ix_followups_key", "followups", ["key"], unique=True)
    op.create_index("ix_followups_conversation", "followups", ["conversation"])
    op.create_index("ix_followups_caller", "followups", ["caller", "created_at"])
    op.create_index("ix_followups_state", "followups", ["state"])
    op.create_index(
        "ix_followups_queued",
        "followups",
        ["queued"],
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    )
    op.create_index(
        "ix_followups_reminder",
        "followups",
        ["remind_at"],
        sqlite_where=_REMINDER,
        postgresql_where=_REMINDER,
    )
    op.create_table(
        "followup_history",
        sa.Column(
            "n",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("followup_id", sa.Text, nullable=False),
        sa.Column("at", InstantColumn, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("n", name="pk_followup_history"),
        sa.ForeignKeyConstraint(
            ["followup_id"], ["followups.id"], name="fk_followup_history_followup_id_followups"
        ),
    )
    op.create_index("ix_followup_history_followup", "followup_history", ["followup_id", "n"])


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("key", sa.Text, nullable=False, comment="the idempotency key a sink is given"),
        sa.Column("followup_id", sa.Text),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("sink", sa.Text, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False, comment="request, reminder, notice, journal"),
        sa.Column(
            "state", sa.Text, nullable=False, comment="sending, waiting, done, rehearsed, dead"
        ),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("link", sa.Text),
        sa.Column("response", sa.Text, comment="what the sink answered"),
        sa.Column("created_at", InstantColumn, nullable=False),
        sa.Column("changed_at", InstantColumn, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_deliveries"),
        sa.ForeignKeyConstraint(
            ["followup_id"], ["followups.id"], name="fk_deliveries_followup_id_followups"
        ),
    )
    op.create_index("ix_deliveries_followup", "deliveries", ["followup_id"])
    op.create_index("ix_deliveries_conversation", "deliveries", ["conversation"])
    op.create_index("ix_deliveries_state", "deliveries", ["state"])


def downgrade() -> None:
    for table in ("deliveries", "followup_history", "followups", "upkeep", "followup_runs"):
        op.drop_table(table)
