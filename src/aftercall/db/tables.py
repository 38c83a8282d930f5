"""The tables; some modules beside this one have their own.

The migration builds exactly these, and their indexes, which nothing here needs to know.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Text,
    false,
)

from aftercall.db.statements import InstantColumn, Number

metadata = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

calls = Table(
    "calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("sid", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("caller", Text),
    Column("callee", Text),
    Column("verified", Boolean, nullable=False),
    Column("started_at", InstantColumn, nullable=False),
    Column("ended_at", InstantColumn),
    Column("end_reason", Text),
    Column("conversation", Text, nullable=False),
    Column("resumes", Text),
    Column("metadata", JSON, nullable=False),
    Column("state", Text, nullable=False),  # live, sealing, sealed
    Column("owner", Text, nullable=False),  # the process that records or seals it
    Column("turn_count", Integer, nullable=False, server_default="0"),
    Column("addenda", Integer, nullable=False, server_default="0"),
    Column("archive_name", Text),
    Column("archive_sha256", Text),
    Column("sealed_at", InstantColumn),
    Column("postcall", Text),  # due when sealed, then started; see the table steps
    # the party, `+15550100#anna`; empty: no party, null: undecided
    Column("whose", Text),
    Column("is_silent", Boolean, nullable=False, server_default=false()),
    Column("is_handed_in", Boolean, nullable=False, server_default=false()),
)

# Entries of live calls only, in order of writing; sealing deletes them, so scans are short.
# No index by call: each live call would dirty a page of its own, six times slower at 200 calls.
journal = Table(
    "journal",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("call_id", Text, ForeignKey("calls.id"), nullable=False),
    Column("kind", Text, nullable=False),  # turn, event
    Column("seq", Integer, nullable=False),
    Column("body", Text, nullable=False),
)

handovers = Table(
    "handovers",  # calls that any process may take over (journal/handover.py)
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("until", InstantColumn, nullable=False),
    Column("notice", Text, nullable=False),
    Column("briefing", Text),
)

resume_states = Table(
    "resume_states",
    metadata,
    Column("agent_id", Text, primary_key=True),
    Column("caller_hash", Text, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("conversation", Text, nullable=False),
    Column("ended_at", InstantColumn, nullable=False),
)

steps = Table(
    "steps",
    metadata,
    Column("call_id", Text, ForeignKey("calls.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("state", Text, nullable=False),  # waiting, running, done, failed, skipped
    Column("reason", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("result", Text),
    Column("changed_at", InstantColumn, nullable=False),
    Column("trace", JSON),  # who answered, to which prompt, at what cost
    Column("reader", Text),  # of the trace
    Column("cost", Float),  # of the trace
)

# Erased calls must not come back. A tombstone holds no number, no name and no speech.
# The chain of an archive in object storage, line by line; the file of a line is here until it
# has been uploaded, so that any process can upload it.
archive_chain = Table(
    "archive_chain",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("line", Text, nullable=False),
    Column("is_erased", Boolean, nullable=False),  # a tombstone
    Column("stored", LargeBinary),  # the file while it waits
    Column("is_uploaded", Boolean, nullable=False),
    Column("etag", Text),  # of the object when its hash was checked
    Column("is_published", Boolean, nullable=False),  # the line is in the bucket
    Column("sealed_at", InstantColumn, nullable=False),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("key", Text, primary_key=True),  # hash of source and sid
    Column("call_id", Text, nullable=False),
    Column("erased_at", InstantColumn, nullable=False),
)

# Answers of the model, encrypted because they may hold secrets: see postcall/answer_store.py.
answers = Table(
    "answers",
    metadata,
    Column("key", Text, primary_key=True),  # hash of question, transcript and model
    Column("call_id", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost", Float),
    Column("kept_at", InstantColumn, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("id", Text, primary_key=True),  # a UUID: clients expect one
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),  # for a document made from a call
    Column("call_id", Text),
    Column("namespace", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("made_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
)

recordings = Table(
    "recordings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("call_id", Text, ForeignKey("calls.id"), nullable=False),
    Column("carrier", Text, nullable=False),
    Column("sid", Text, nullable=False),
    Column("url", Text),
    Column("state", Text, nullable=False),  # waiting, downloading, here, absent, failed
    Column("sha256", Text),
    Column("bytes", Number),
    Column("path", Text),  # relative to the home
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("reason", Text, nullable=False),
    # or waiting, here, failed
    Column("transcript", Text, nullable=False, server_default="none"),
    Column("changed_at", InstantColumn, nullable=False),
    Column("etag", Text),  # of the object in the bucket, as it was last found right
)

processes = Table(
    "processes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("started_at", InstantColumn, nullable=False),
    Column("beat_at", InstantColumn, nullable=False),
    Column("failures", JSON),  # failing upkeep jobs: name, since, why
)

# At most one row: the home whose archive holds the calls of this database (db/upgrade.py).
home_claim = Table(
    "home_claim",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("home_id", Text, nullable=False),
    Column("claimed_at", InstantColumn, nullable=False),
)

# The unit of search: a turn, a summary or a fact. `terms`, `around` and `shelf` hold terms of
# memory/words.py, which neither database's tokeniser changes. `n` is a page (a batch written
# together) and a place on it. The turns of a call are neighbours on an odd page.
passages = Table(
    "passages",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),  # turn, summary, fact
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("scope", Text, nullable=False),  # agent and caller; empty: withheld
    # search tokens of agent and caller; others once retired
    Column("shelf", Text, nullable=False),
    Column("call_id", Text),
    Column("ref", Text),  # a fact's id
    Column("seq", Integer, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("at", InstantColumn, nullable=False),  # said at; for a fact, valid from
    Column("until", InstantColumn),  # valid until
    Column("day", Integer, nullable=False),  # of the last mention, from year 1
    Column("mentions", Integer, nullable=False, server_default="1"),
    Column("marks", Integer, nullable=False),  # asks, names a time; length
    Column("category", Text, nullable=False),
    Column("visibility", Text, nullable=False),  # shared, private; never secret
    Column("active", Boolean, nullable=False),
    Column("text", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Column("around", Text, nullable=False),
)
# Postgres only: SQLite has one writer, which counts.
passage_pages = Sequence("passage_pages", metadata=metadata)

passage_vectors = Table(
    "passage_vectors",
    metadata,
    Column(
        "n",
        Number,
        ForeignKey("passages.n", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("model", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # 32-bit floats of length one
)

# A secret's content and summary are encrypted, `identity` and `matching` hashed (encryption.py).
facts = Table(
    "facts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text, nullable=False),  # a caller, or * for shared memory
    Column("category", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("visibility", Text, nullable=False),  # shared, private, secret
    Column("confidence", Float, nullable=False),
    Column("needs_confirmation", Boolean, nullable=False),  # heard badly
    Column("first_seen_at", InstantColumn, nullable=False),
    Column("last_seen_at", InstantColumn, nullable=False),
    Column("valid_from", InstantColumn, nullable=False),
    Column("valid_until", InstantColumn),
    Column("occurrence_count", Integer, nullable=False),  # rows in fact_occurrences
    Column("supersedes", Text),  # no foreign key: either end may be written first
    Column("superseded_by", Text),
    Column("is_active", Boolean, nullable=False),
    Column("dispute", Text),  # the first fact of a dispute, on every fact of it
    Column("doubt", Text),  # a retired fact that this one hangs on
    Column("never_true", Boolean, nullable=False),  # retired as wrong, not as past
    Column("identity", Text, nullable=False),  # keyed hash, whatever the wording
    Column("matching", Text),  # subject and attribute; a keyed hash for a secret
    Column("reader", Text, nullable=False),
    Column("prompt_hash", Text),
    Column("metadata", JSON, nullable=False),
)

fact_occurrences = Table(
    "fact_occurrences",
    metadata,
    Column("id", Text, primary_key=True),
    Column("fact_id", Text, ForeignKey("facts.id"), nullable=False),
    Column("call_id", Text, ForeignKey("calls.id"), nullable=False),
    Column("at", InstantColumn, nullable=False),
    Column("first_turn", Integer, nullable=False),
    Column("last_turn", Integer, nullable=False),
    Column("words", Text, nullable=False),
    Column("context", Text, nullable=False),  # what was said around the words
    Column("sentiment", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("reader", Text, nullable=False),
    Column("prompt_hash", Text),
)

extraction_log = Table(
    "extraction_log",
    metadata,
    Column("call_id", Text, ForeignKey("calls.id"), primary_key=True),
    Column("extracted_at", InstantColumn, nullable=False),
    Column("reader", Text, nullable=False),
    Column("prompt_hash", Text),
    Column("facts_extracted", Integer, nullable=False),  # new facts
    Column("facts_updated", Integer, nullable=False),  # new facts that replaced one
    Column("facts_deduplicated", Integer, nullable=False),  # known facts said again
    Column("facts_refused", Integer, nullable=False),
    Column("facts_dropped", Integer, nullable=False),
    Column("reason", Text, nullable=False),  # why extraction was skipped; else empty
    Column("error", Text),
)

upkeep = Table(
    "upkeep",
    metadata,
    Column("name", Text, primary_key=True),
    Column("at", InstantColumn, nullable=False),
    Column("found", JSON),
)

# The briefing of a caller's next call, composed ahead. A transaction that changes what it rests on
# empties `body` and increments `version` (db/briefing_cache.py); an empty row is composed again.
briefings = Table(
    "briefings",
    metadata,
    Column("agent_id", Text, primary_key=True),
    Column("caller", Text, primary_key=True),
    Column("version", Number, nullable=False, server_default="0"),
    Column("rests_on_all", Boolean, nullable=False),  # shared: stale by any caller
    Column("form", Text),  # hash of the settings it was composed with
    Column("body", Text),  # JSON; null when stale
    Column("prepared_at", InstantColumn),
)

# The topics of one call. Recurring topics are found here without reading the archive.
call_topics = Table(
    "call_topics",
    metadata,
    Column("call_id", Text, ForeignKey("calls.id"), primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text, nullable=False),  # a caller, or * for shared memory
    Column("conversation", Text, nullable=False),
    Column("at", InstantColumn, nullable=False),
    Column("terms", Text, nullable=False),  # things the caller named
    Column("central", Text, nullable=False),  # the terms that the call was about
    Column("settled", Text, nullable=False),  # the terms that the caller called settled
    Column("said", JSON, nullable=False),
)

pins = Table(
    "pins",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text, nullable=False),  # a caller, or * for shared memory
    Column("anchor", Text, nullable=False),  # its main term; one pin for each
    Column("terms", JSON, nullable=False),  # all its terms, the anchor first
    Column("title", Text, nullable=False),
    Column("is_titled_by_hand", Boolean, nullable=False),
    Column("state", Text, nullable=False),  # pinned, unpinned
    Column("reason", Text, nullable=False),  # why it is in this state
    Column("is_decided_by_hand", Boolean, nullable=False),  # by a person: stays so
    Column("note", Text),  # a person's text, unchanged
    # calls, oldest first: call_id, conversation, at, words
    Column("history", JSON, nullable=False),
    Column("since", InstantColumn, nullable=False),
    Column("last_at", InstantColumn, nullable=False),  # last mention
    Column("changed_at", InstantColumn, nullable=False),
)

# Outbox and timer of follow-up work: sealing writes a row, which is run after the reconnect window.
followup_runs = Table(
    "followup_runs",
    metadata,
    Column("conversation", Text, primary_key=True),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("ended_at", InstantColumn, nullable=False),
    Column("state", Text, nullable=False),  # due, running, done, failed
    Column("reason", Text, nullable=False),
    Column("run", Integer, nullable=False, server_default="0"),  # number of starts
    Column("finished_run", Integer, nullable=False, server_default="0"),
    Column("wrong_passcodes", Integer, nullable=False, server_default="0"),
    Column("legs", JSON),  # call id to number of caller turns
    Column("changed_at", InstantColumn, nullable=False),
)

followups = Table(
    "followups",
    metadata,
    Column("id", Text, primary_key=True),
    # hash of conversation, kind and title: one row a request
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),  # request, promise
    Column("request_kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("person", Text),
    Column("due", Text),  # a day, or an instant
    Column("conversation", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("turns", JSON, nullable=False),  # pairs of call id and turn number
    Column("words", Text, nullable=False),
    # open, held, doing, done, failed, refused, withdrawn, expired, unknown, broken
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("link", Text),
    Column("trust", Text, nullable=False),  # verified, known, unknown
    Column("sink", Text, nullable=False),  # names of the sinks, joined by +
    Column("fulfilled_by", Text),  # the follow-up that keeps this promise
    Column("round", Integer, nullable=False, server_default="0"),
    # soon while an approval can be undone, due, then started: delivered outside a run
    Column("queued", Text),
    Column("remind_at", InstantColumn),
    Column("reminder", Text),  # due, then started
    Column("asked_at", InstantColumn),  # when its call began
    Column("created_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
)

followup_history = Table(
    "followup_history",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("followup_id", Text, ForeignKey("followups.id"), nullable=False),
    Column("at", InstantColumn, nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("note", Text, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("key", Text, primary_key=True),  # the idempotency key sent to the sink
    Column("followup_id", Text, ForeignKey("followups.id")),
    Column("conversation", Text, nullable=False),  # or the id of an event
    Column("sink", Text, nullable=False),
    # request, reminder, notice, journal, event
    Column("purpose", Text, nullable=False),
    Column("state", Text, nullable=False),  # due, sending, waiting, done, dead
    # the process that claimed it; the only one to act while it is alive
    Column("owner", Text),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("reason", Text, nullable=False),
    Column("link", Text),
    Column("response", Text),  # the sink's answer
    Column("created_at", InstantColumn, nullable=False),
    Column("changed_at", InstantColumn, nullable=False),
)

browser_sessions = Table(
    "browser_sessions",
    metadata,
    Column("key", Text, primary_key=True),  # hash of a cookie, or of a link's code
    Column("kind", Text, nullable=False),  # session, link, invitation
    Column("credentials", Text, nullable=False),  # hash of token and password
    Column("ends_at", InstantColumn, nullable=False),
    Column("user_id", Text),  # none: the owner
)

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("login", Text, nullable=False),  # the name in lower case
    Column("role", Text, nullable=False),  # viewer, operator, admin
    Column("password_hash", Text),  # none until the invitation is used
    Column("invited_at", InstantColumn, nullable=False),
)

# The pages of the workspace on Postgres (workspace/pages.py). The newest revision of a page is
# the page; the key is a hash of its path, which an erased page does not keep.
page_revisions = Table(
    "page_revisions",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False),
    Column("revision", Number, nullable=False),
    Column("path", Text),
    Column("body", LargeBinary),  # null: removed
    Column("author", Text, nullable=False),  # a machine, a hand edit on it, or a person
    Column("changed_at", InstantColumn, nullable=False),
)
