"""All tables, indexes and the full-text index.

The SQL is frozen here, apart from tables.py: later migrations start from exactly this schema.
"""

from alembic import op

revision = "0001"
down_revision = None

TYPES = {
    "sqlite": {
        "instant": "TEXT",
        "number": "INTEGER",
        "serial": "INTEGER",
        "bytes": "BLOB",
        "false": "0",
    },
    "postgresql": {
        "instant": "TIMESTAMP WITH TIME ZONE",
        "number": "BIGINT",
        "serial": "BIGSERIAL",
        "bytes": "BYTEA",
        "false": "false",
    },
}
TABLES = """
CREATE TABLE answers (
    key TEXT NOT NULL, call_id TEXT NOT NULL, answer TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost FLOAT,
    kept_at {instant} NOT NULL,
    CONSTRAINT pk_answers PRIMARY KEY (key)
);
CREATE INDEX ix_answers_call ON answers (call_id);
CREATE TABLE archive_chain (
    n {number} NOT NULL, name TEXT NOT NULL, line TEXT NOT NULL, is_erased BOOLEAN NOT NULL,
    stored {bytes}, is_uploaded BOOLEAN NOT NULL, etag TEXT, is_published BOOLEAN NOT NULL,
    sealed_at {instant} NOT NULL,
    CONSTRAINT pk_archive_chain PRIMARY KEY (n)
);
CREATE UNIQUE INDEX ix_archive_chain_name ON archive_chain (name, is_erased);
CREATE INDEX ix_archive_chain_waiting ON archive_chain (n) WHERE stored IS NOT NULL;
CREATE INDEX ix_archive_chain_unpublished ON archive_chain (n) WHERE NOT is_published;
CREATE TABLE audit (
    n {serial} NOT NULL, at {instant} NOT NULL, who TEXT NOT NULL, deed TEXT NOT NULL,
    subject TEXT NOT NULL,
    CONSTRAINT pk_audit PRIMARY KEY (n)
);
CREATE TABLE briefings (
    agent_id TEXT NOT NULL, caller TEXT NOT NULL, version {number} DEFAULT '0' NOT NULL,
    rests_on_all BOOLEAN NOT NULL, form TEXT, body TEXT, prepared_at {instant},
    CONSTRAINT pk_briefings PRIMARY KEY (agent_id, caller)
);
CREATE INDEX ix_briefings_due ON briefings (agent_id) WHERE body IS NULL;
CREATE INDEX ix_briefings_shared ON briefings (agent_id, rests_on_all);
CREATE TABLE browser_sessions (
    key TEXT NOT NULL, kind TEXT NOT NULL, credentials TEXT NOT NULL,
    ends_at {instant} NOT NULL, user_id TEXT,
    CONSTRAINT pk_browser_sessions PRIMARY KEY (key)
);
CREATE TABLE calls (
    id TEXT NOT NULL, source TEXT NOT NULL, sid TEXT NOT NULL, agent_id TEXT NOT NULL,
    direction TEXT NOT NULL, caller TEXT, callee TEXT, verified BOOLEAN NOT NULL,
    started_at {instant} NOT NULL, ended_at {instant}, end_reason TEXT,
    conversation TEXT NOT NULL, resumes TEXT, metadata JSON NOT NULL, state TEXT NOT NULL,
    owner TEXT NOT NULL, turn_count INTEGER DEFAULT '0' NOT NULL,
    addenda INTEGER DEFAULT '0' NOT NULL, archive_name TEXT, archive_sha256 TEXT,
    sealed_at {instant}, postcall TEXT, whose TEXT,
    is_silent BOOLEAN DEFAULT {false} NOT NULL,
    is_handed_in BOOLEAN DEFAULT {false} NOT NULL,
    CONSTRAINT pk_calls PRIMARY KEY (id)
);
CREATE INDEX ix_calls_caller ON calls (caller, started_at);
CREATE INDEX ix_calls_conversation ON calls (conversation);
CREATE INDEX ix_calls_due ON calls (postcall) WHERE postcall = 'due';
CREATE UNIQUE INDEX ix_calls_source_sid ON calls (source, sid);
CREATE INDEX ix_calls_started ON calls (started_at, id, ended_at, agent_id);
CREATE INDEX ix_calls_unsealed ON calls (state) WHERE state <> 'sealed';
CREATE INDEX ix_calls_whose ON calls (whose, started_at);
CREATE TABLE corrections (
    id TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT, call_id TEXT, what TEXT NOT NULL,
    key TEXT NOT NULL, old TEXT, new TEXT, details JSON, who TEXT NOT NULL,
    at {instant} NOT NULL, state TEXT NOT NULL,
    CONSTRAINT pk_corrections PRIMARY KEY (id)
);
CREATE INDEX ix_corrections_call ON corrections (call_id);
CREATE INDEX ix_corrections_caller ON corrections (caller);
CREATE INDEX ix_corrections_due ON corrections (id) WHERE state <> 'applied';
CREATE INDEX ix_corrections_thing ON corrections (agent_id, what, key, id);
CREATE TABLE documents (
    id TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT, call_id TEXT,
    namespace TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL,
    source TEXT NOT NULL, tags JSON NOT NULL, metadata JSON NOT NULL,
    made_at {instant} NOT NULL, changed_at {instant} NOT NULL,
    CONSTRAINT pk_documents PRIMARY KEY (id)
);
CREATE INDEX ix_documents_call ON documents (call_id);
CREATE INDEX ix_documents_caller ON documents (caller, made_at);
CREATE INDEX ix_documents_made ON documents (made_at, id);
CREATE TABLE facts (
    id TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT NOT NULL, category TEXT NOT NULL,
    content TEXT NOT NULL, summary TEXT NOT NULL, visibility TEXT NOT NULL,
    confidence FLOAT NOT NULL, needs_confirmation BOOLEAN NOT NULL,
    first_seen_at {instant} NOT NULL, last_seen_at {instant} NOT NULL,
    valid_from {instant} NOT NULL, valid_until {instant}, occurrence_count INTEGER NOT NULL,
    supersedes TEXT, superseded_by TEXT, is_active BOOLEAN NOT NULL, dispute TEXT, doubt TEXT,
    never_true BOOLEAN NOT NULL, identity TEXT NOT NULL, matching TEXT, reader TEXT NOT NULL,
    prompt_hash TEXT, metadata JSON NOT NULL,
    CONSTRAINT pk_facts PRIMARY KEY (id)
);
CREATE INDEX ix_facts_caller ON facts (caller);
CREATE INDEX ix_facts_category ON facts (category, id);
CREATE INDEX ix_facts_is_active ON facts (is_active, id);
CREATE INDEX ix_facts_memory ON facts (agent_id, caller, is_active, last_seen_at);
CREATE UNIQUE INDEX ix_facts_twins ON facts (agent_id, caller, identity) WHERE is_active;
CREATE INDEX ix_facts_visibility ON facts (visibility, id);
CREATE TABLE followup_runs (
    conversation TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT,
    ended_at {instant} NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
    run INTEGER DEFAULT '0' NOT NULL, finished_run INTEGER DEFAULT '0' NOT NULL,
    wrong_passcodes INTEGER DEFAULT '0' NOT NULL, legs JSON, changed_at {instant} NOT NULL,
    CONSTRAINT pk_followup_runs PRIMARY KEY (conversation)
);
CREATE INDEX ix_followup_runs_caller ON followup_runs (caller, ended_at);
CREATE INDEX ix_followup_runs_open ON followup_runs (state) WHERE state <> 'done';
CREATE TABLE followups (
    id TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, request_kind TEXT NOT NULL,
    title TEXT NOT NULL, details TEXT NOT NULL, person TEXT, due TEXT,
    conversation TEXT NOT NULL, call_id TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT,
    turns JSON NOT NULL, words TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
    link TEXT, trust TEXT NOT NULL, sink TEXT NOT NULL, fulfilled_by TEXT,
    round INTEGER DEFAULT '0' NOT NULL, queued TEXT, remind_at {instant}, reminder TEXT,
    created_at {instant} NOT NULL, changed_at {instant} NOT NULL,
    CONSTRAINT pk_followups PRIMARY KEY (id)
);
CREATE INDEX ix_followups_caller ON followups (caller, created_at);
CREATE INDEX ix_followups_conversation ON followups (conversation);
CREATE INDEX ix_followups_created ON followups (created_at, kind, state, agent_id);
CREATE UNIQUE INDEX ix_followups_key ON followups (key);
CREATE INDEX ix_followups_queued ON followups (queued) WHERE queued = 'due';
CREATE INDEX ix_followups_reminder ON followups (remind_at) WHERE reminder = 'due';
CREATE INDEX ix_followups_state ON followups (state, id);
CREATE TABLE handovers (
    call_id TEXT NOT NULL, until {instant} NOT NULL, notice TEXT NOT NULL, briefing TEXT,
    CONSTRAINT pk_handovers PRIMARY KEY (call_id)
);
CREATE TABLE home_claim (
    "only" INTEGER NOT NULL, home_id TEXT NOT NULL, claimed_at {instant} NOT NULL,
    CONSTRAINT pk_home_claim PRIMARY KEY ("only")
);
CREATE TABLE passages (
    n {number} NOT NULL, kind TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT,
    scope TEXT NOT NULL, shelf TEXT NOT NULL, call_id TEXT, ref TEXT, seq INTEGER NOT NULL,
    speaker TEXT NOT NULL, at {instant} NOT NULL, until {instant}, day INTEGER NOT NULL,
    mentions INTEGER DEFAULT '1' NOT NULL, marks INTEGER NOT NULL, category TEXT NOT NULL,
    visibility TEXT NOT NULL, active BOOLEAN NOT NULL, text TEXT NOT NULL,
    terms TEXT NOT NULL, around TEXT NOT NULL,
    CONSTRAINT pk_passages PRIMARY KEY (n)
);
CREATE UNIQUE INDEX ix_passages_place ON passages (call_id, kind, seq) WHERE ref IS NULL;
CREATE UNIQUE INDEX ix_passages_ref ON passages (ref) WHERE ref IS NOT NULL;
CREATE INDEX ix_passages_scope ON passages (scope);
CREATE TABLE pins (
    id TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT NOT NULL, anchor TEXT NOT NULL,
    terms JSON NOT NULL, title TEXT NOT NULL, is_titled_by_hand BOOLEAN NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL, is_decided_by_hand BOOLEAN NOT NULL,
    note TEXT, history JSON NOT NULL, since {instant} NOT NULL, last_at {instant} NOT NULL,
    changed_at {instant} NOT NULL,
    CONSTRAINT pk_pins PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_pins_anchor ON pins (agent_id, caller, anchor);
CREATE INDEX ix_pins_caller ON pins (caller);
CREATE INDEX ix_pins_state ON pins (state, last_at);
CREATE TABLE processes (
    id TEXT NOT NULL, started_at {instant} NOT NULL, beat_at {instant} NOT NULL,
    failures JSON,
    CONSTRAINT pk_processes PRIMARY KEY (id)
);
CREATE TABLE resume_states (
    agent_id TEXT NOT NULL, caller_hash TEXT NOT NULL, call_id TEXT NOT NULL,
    conversation TEXT NOT NULL, ended_at {instant} NOT NULL,
    CONSTRAINT pk_resume_states PRIMARY KEY (agent_id, caller_hash)
);
CREATE TABLE tombstones (
    key TEXT NOT NULL, call_id TEXT NOT NULL, erased_at {instant} NOT NULL,
    CONSTRAINT pk_tombstones PRIMARY KEY (key)
);
CREATE TABLE upkeep (
    name TEXT NOT NULL, at {instant} NOT NULL, found JSON,
    CONSTRAINT pk_upkeep PRIMARY KEY (name)
);
CREATE TABLE users (
    id TEXT NOT NULL, name TEXT NOT NULL, login TEXT NOT NULL, role TEXT NOT NULL,
    password_hash TEXT, invited_at {instant} NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (id)
);
CREATE UNIQUE INDEX ix_users_login ON users (login);
CREATE TABLE call_topics (
    call_id TEXT NOT NULL, agent_id TEXT NOT NULL, caller TEXT NOT NULL,
    conversation TEXT NOT NULL, at {instant} NOT NULL, terms TEXT NOT NULL,
    central TEXT NOT NULL, settled TEXT NOT NULL, said JSON NOT NULL,
    CONSTRAINT pk_call_topics PRIMARY KEY (call_id),
    CONSTRAINT fk_call_topics_call_id_calls FOREIGN KEY (call_id) REFERENCES calls (id)
);
CREATE INDEX ix_call_topics_memory ON call_topics (agent_id, caller, at);
CREATE INDEX ix_call_topics_newest ON call_topics (agent_id, at);
CREATE TABLE deliveries (
    key TEXT NOT NULL, followup_id TEXT, conversation TEXT NOT NULL, sink TEXT NOT NULL,
    purpose TEXT NOT NULL, state TEXT NOT NULL, owner TEXT,
    attempts INTEGER DEFAULT '0' NOT NULL, reason TEXT NOT NULL, link TEXT, response TEXT,
    created_at {instant} NOT NULL, changed_at {instant} NOT NULL,
    CONSTRAINT pk_deliveries PRIMARY KEY (key),
    CONSTRAINT fk_deliveries_followup_id_followups
        FOREIGN KEY (followup_id) REFERENCES followups (id)
);
CREATE INDEX ix_deliveries_conversation ON deliveries (conversation);
CREATE INDEX ix_deliveries_followup ON deliveries (followup_id);
CREATE INDEX ix_deliveries_state ON deliveries (state);
CREATE TABLE events (
    n {serial} NOT NULL, id {number}, type TEXT NOT NULL, subject TEXT NOT NULL,
    call_id TEXT, agent_id TEXT NOT NULL, caller TEXT, at {instant} NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (n)
);
CREATE INDEX ix_events_at ON events (at);
CREATE INDEX ix_events_call ON events (call_id);
CREATE INDEX ix_events_caller ON events (caller);
CREATE UNIQUE INDEX ix_events_id ON events (id);
CREATE INDEX ix_events_unpublished ON events (n) WHERE id IS NULL;
CREATE TABLE extraction_log (
    call_id TEXT NOT NULL, extracted_at {instant} NOT NULL, reader TEXT NOT NULL,
    prompt_hash TEXT, facts_extracted INTEGER NOT NULL, facts_updated INTEGER NOT NULL,
    facts_deduplicated INTEGER NOT NULL, facts_refused INTEGER NOT NULL,
    facts_dropped INTEGER NOT NULL, reason TEXT NOT NULL, error TEXT,
    CONSTRAINT pk_extraction_log PRIMARY KEY (call_id),
    CONSTRAINT fk_extraction_log_call_id_calls FOREIGN KEY (call_id) REFERENCES calls (id)
);
CREATE TABLE fact_occurrences (
    id TEXT NOT NULL, fact_id TEXT NOT NULL, call_id TEXT NOT NULL, at {instant} NOT NULL,
    first_turn INTEGER NOT NULL, last_turn INTEGER NOT NULL, words TEXT NOT NULL,
    context TEXT NOT NULL, sentiment TEXT NOT NULL, confidence FLOAT NOT NULL,
    reader TEXT NOT NULL, prompt_hash TEXT,
    CONSTRAINT pk_fact_occurrences PRIMARY KEY (id),
    CONSTRAINT fk_fact_occurrences_call_id_calls FOREIGN KEY (call_id) REFERENCES calls (id),
    CONSTRAINT fk_fact_occurrences_fact_id_facts FOREIGN KEY (fact_id) REFERENCES facts (id)
);
CREATE INDEX ix_fact_occurrences_call ON fact_occurrences (call_id);
CREATE UNIQUE INDEX ix_fact_occurrences_once ON fact_occurrences (fact_id, call_id, first_turn);
CREATE TABLE followup_history (
    n {serial} NOT NULL, followup_id TEXT NOT NULL, at {instant} NOT NULL,
    who TEXT NOT NULL, what TEXT NOT NULL, note TEXT NOT NULL,
    CONSTRAINT pk_followup_history PRIMARY KEY (n),
    CONSTRAINT fk_followup_history_followup_id_followups
        FOREIGN KEY (followup_id) REFERENCES followups (id)
);
CREATE INDEX ix_followup_history_followup ON followup_history (followup_id, n);
CREATE TABLE journal (
    n {serial} NOT NULL, call_id TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_journal PRIMARY KEY (n),
    CONSTRAINT fk_journal_call_id_calls FOREIGN KEY (call_id) REFERENCES calls (id)
);
CREATE TABLE passage_vectors (
    n {number} NOT NULL, model TEXT NOT NULL, vector {bytes} NOT NULL,
    CONSTRAINT pk_passage_vectors PRIMARY KEY (n),
    CONSTRAINT fk_passage_vectors_n_passages
        FOREIGN KEY (n) REFERENCES passages (n) ON DELETE CASCADE
);
CREATE TABLE recordings (
    id TEXT NOT NULL, call_id TEXT NOT NULL, carrier TEXT NOT NULL, sid TEXT NOT NULL,
    url TEXT, state TEXT NOT NULL, sha256 TEXT, bytes {number}, path TEXT,
    attempts INTEGER DEFAULT '0' NOT NULL, reason TEXT NOT NULL,
    transcript TEXT DEFAULT 'none' NOT NULL, changed_at {instant} NOT NULL, etag TEXT,
    CONSTRAINT pk_recordings PRIMARY KEY (id),
    CONSTRAINT fk_recordings_call_id_calls FOREIGN KEY (call_id) REFERENCES calls (id)
);
CREATE INDEX ix_recordings_call ON recordings (call_id);
CREATE UNIQUE INDEX ix_recordings_carrier_sid ON recordings (carrier, sid);
CREATE INDEX ix_recordings_due ON recordings (state) WHERE state = 'waiting';
CREATE TABLE steps (
    call_id TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
    attempts INTEGER DEFAULT '0' NOT NULL, result TEXT, changed_at {instant} NOT NULL,
    trace JSON, reader TEXT, cost FLOAT,
    CONSTRAINT pk_steps PRIMARY KEY (call_id, name),
    CONSTRAINT fk_steps_call_id_calls FOREIGN KEY (call_id) REFERENCES calls (id)
);
CREATE INDEX ix_steps_failed ON steps (changed_at) WHERE state = 'failed';
CREATE INDEX ix_steps_open ON steps (call_id) WHERE state IN ('waiting', 'running');
CREATE INDEX ix_steps_paid ON steps (changed_at, reader, cost) WHERE cost IS NOT NULL;
CREATE TABLE answer_delays (
    call_id TEXT NOT NULL, ms INTEGER NOT NULL, answers INTEGER NOT NULL, at {instant} NOT NULL,
    agent_id TEXT NOT NULL,
    CONSTRAINT pk_answer_delays PRIMARY KEY (call_id, ms),
    CONSTRAINT fk_answer_delays_call_id_calls FOREIGN KEY (call_id) REFERENCES calls (id)
);
CREATE INDEX ix_answer_delays_at ON answer_delays (at, agent_id, ms, answers);
"""
FTS_INSERT = """
INSERT INTO passages_fts (rowid, shelf, terms, around)
VALUES (new.n, new.shelf, new.terms, new.around);
"""
FTS_DELETE = """
INSERT INTO passages_fts (passages_fts, rowid, shelf, terms, around)
VALUES ('delete', old.n, old.shelf, old.terms, old.around);
"""
FULL_TEXT = {
    "sqlite": (
        """
CREATE VIRTUAL TABLE passages_fts USING fts5(
    shelf, terms, around, content='passages', content_rowid='n', tokenize='ascii',
    detail=column, columnsize=0
)
""",
        f"CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN {FTS_INSERT} END",
        f"CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN {FTS_DELETE} END",
        f"""
CREATE TRIGGER passages_changed AFTER UPDATE OF shelf, terms, around ON passages
BEGIN {FTS_DELETE} {FTS_INSERT} END
""",
    ),
    "postgresql": (
        "CREATE SEQUENCE passage_pages",
        """
CREATE INDEX ix_passages_lexemes ON passages USING gin ((
    array_to_tsvector(array_remove(
        string_to_array(shelf || ' ' || terms || ' ' || around, ' '), ''))
)) WITH (fastupdate = off)
""",
    ),
}


def upgrade() -> None:
    connection = op.get_bind()
    dialect = connection.dialect.name
    tables = TABLES.format(**TYPES[dialect]).strip().removesuffix(";").split(";\n")
    for statement in (*tables, *FULL_TEXT[dialect]):
        connection.exec_driver_sql(statement)
