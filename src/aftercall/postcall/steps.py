"""The steps after a call, each by itself: given a call, make one thing, say what became of it.

Each may run again after a crash, and leaves the same thing behind when it does.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import reduce

from sqlalchemy import Connection

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.faults import fault_point
from aftercall.llm.reader import Reader
from aftercall.memory.document_store import DocumentStore, make_call_document
from aftercall.memory.embedding import Embedder, embed_missing
from aftercall.memory.extraction import Extractor
from aftercall.memory.passage_store import make_passages, make_summary_passage, replace_call
from aftercall.memory.pins.board import PinBoard, ReaderTopics
from aftercall.memory.remem import RememClient
from aftercall.memory.visibility import mask_secrets, memory_key, to_secrets
from aftercall.model.calls import IMPORTED, Call
from aftercall.model.facts import Extraction
from aftercall.model.passages import Document, Passage
from aftercall.model.people import is_generic_name
from aftercall.model.reading import ReadingTrace
from aftercall.model.steps import StepOutcome, StepState, awaiting, done, failed, skipped
from aftercall.settings import Settings
from aftercall.workspace import calls_md, files, greeting, identity_md, user_md
from aftercall.workspace.paths import Workspace, WorkspacePerson

NOT_A_CALL = "imported notes: nobody rang"
OF_NOTES = ("facts", "index")
OUTBOUND = "an outbound call: the callee is not the user"
NOTHING_SAID = "nothing was said"
ANSWERED_ELSEWHERE = "handed in: another agent answered it"
SWITCHED_OFF = "post_call_extraction is off"
NOTHING_FOUND = "nothing sure was found"
NOT_THE_LAST = "the caller has called since"
NO_MEMORY = "no memory is kept here"
REMEMBERS_NOBODY = "nobody is remembered for this caller"
NO_REMEM = "remem is not configured"
NO_SUMMARY_YET = "waits for the summary"
NO_SUMMARY = "waits for the summary, which failed"
RULES = "rules"  # the reader whose topics are whole requests


@dataclass(frozen=True)
class Desk:
    """What the steps work with."""

    settings: Settings
    reader: Reader
    clock: Clock
    database: Database
    documents: DocumentStore
    extractor: Extractor | None = None
    remem: RememClient | None = None
    embedder: Embedder | None = None
    board: PinBoard | None = None
    as_party: Callable[[Call], Call] = lambda call: call
    """The call with whoever it belongs to as its caller."""
    as_parties: Callable[[Sequence[Call]], Sequence[Call]] = lambda calls: calls
    """The same for several: where whose a call is has to be decided, the decision is kept."""
    stated_name: Callable[[Call], str | None] = lambda call: None
    summary_state: Callable[[str], StepState | None] = lambda call_id: None
    """How far the summary of a call is; None where no such step is known of."""
    is_handed_in: Callable[[str], bool] = lambda call_id: False
    """Whether a call was answered elsewhere."""
    has_later_call: Callable[[Call], bool] = lambda call: False
    last_greeting: Callable[[Call], tuple[str, datetime] | None] = lambda call: None
    """What the greeting step left after the party's last call in which something was said, and
    when.
    """
    remote_id: Callable[[str], str] = lambda call_id: ""
    """The id that the page of a call has in remote document memory; empty if it was not sent
    there.
    """

    def confided(self, call_id: str) -> list[str]:
        """The words of this call that facts told in confidence rest on, as far as they have
        been found.
        """
        return self.extractor.store.list_confided_words(call_id) if self.extractor else []

    def workspace(self, call: Call) -> Workspace:
        return Workspace.from_settings(self.settings, call.agent_id)


def summarise(desk: Desk, call: Call) -> StepOutcome:
    """CALLS.md: what the call was about, in plain words."""
    made = sum_up(desk, call, desk.confided(call.id))
    if made.entry:
        enter(desk, desk.workspace(call), [made.entry])
    if made.passage is None:
        return made.outcome
    fresh = [made.passage]
    return replace(
        made.outcome, write=lambda connection: replace_call(connection, call.id, fresh, ["summary"])
    )


def enter(desk: Desk, workspace: Workspace, entries: Sequence[calls_md.CallsMdEntry]) -> None:
    """However many there are, the file is written once."""
    keep = desk.settings.calls.max_entries
    files.edit(
        workspace.calls,
        lambda text: reduce(lambda page, entry: calls_md.append(page, entry, keep), entries, text),
    )


@dataclass(frozen=True)
class SummedUp:
    """How the summary of a call ends, what it enters into CALLS.md, and by what it is found."""

    outcome: StepOutcome
    entry: calls_md.CallsMdEntry | None = None
    passage: Passage | None = None


def sum_up(desk: Desk, call: Call, confided: Sequence[str] = ()) -> SummedUp:
    answer = desk.reader.summarise(call)
    summary = calls_md.plain_summary(answer.value.text)
    if not summary:
        return SummedUp(skipped(NOTHING_FOUND, answer.trace))
    entry = calls_md.CallsMdEntry.from_call(call, summary, desk.settings.zone)
    if call.direction == "outbound" or desk.workspace(call).find_person(call.caller) is None:
        return SummedUp(done(summary, answer.trace), entry)
    passage = make_summary_passage(call, summary, desk.settings.memory.secret_words, confided)
    return SummedUp(done(summary, answer.trace), entry, passage)


def fill_profile(desk: Desk, call: Call) -> StepOutcome:
    """USER.md: who the caller is, where nothing stands yet."""
    person = desk.workspace(call).find_person(call.caller)
    if person is None:
        return skipped(REMEMBERS_NOBODY)
    if user_md.parse(files.read(person.user)).is_complete:
        return skipped("the profile is complete")
    answer = desk.reader.find_profile(call)
    found = user_md.UserProfile.from_answer(answer.value.model_dump())
    if not (
        found.name or found.call_name
    ):  # who is told apart from others by a name is known by it
        found = replace(found, name=desk.stated_name(call))
    if found == user_md.UserProfile():
        return skipped(NOTHING_FOUND, answer.trace)
    written = files.edit(person.user, lambda text: user_md.fill(text, found))
    return (
        done(_named(found), answer.trace)
        if written
        else skipped("nothing new was found", answer.trace)
    )


def fill_identity(desk: Desk, call: Call) -> StepOutcome:
    """IDENTITY.md: who the agent is, once, and only from calls that it answered itself."""
    if desk.is_handed_in(call.id):
        return skipped(ANSWERED_ELSEWHERE)
    path = desk.workspace(call).identity
    if identity_md.parse(files.read(path)).is_set:
        return skipped("the agent has an identity")
    answer = desk.reader.find_identity(call)
    found = identity_md.AgentIdentity.from_answer(answer.value.model_dump())
    if (
        found.name and found.name.lower() in (desk.stated_name(call) or "").lower()
    ):  # the caller's own name, said back
        found = replace(found, name=None)
    if is_generic_name(found.creature or ""):  # every agent is an assistant; that is no identity
        found = replace(found, creature=None)
    written = files.edit(path, lambda text: identity_md.fill_if_unset(text, found))
    return done(_named(found), answer.trace) if written else skipped(NOTHING_FOUND, answer.trace)


def leave_greeting(desk: Desk, call: Call) -> StepOutcome:
    """NEXT_GREETING.txt: how the caller's next call begins."""
    person = desk.workspace(call).find_person(call.caller)
    if person is None:
        return skipped(REMEMBERS_NOBODY)
    if call.is_silent:
        return _put_back_greeting(desk, call, person)
    if desk.has_later_call(call):
        return skipped(NOT_THE_LAST)
    known = user_md.parse(files.read(person.user))
    answer = desk.reader.find_greeting(call, known.spoken_name)
    if answer.value is None:
        return skipped(NOTHING_FOUND, answer.trace)
    return done(greeting.save_greeting(person, answer.value, desk.clock.now()), answer.trace)


def _put_back_greeting(desk: Desk, call: Call, person: WorkspacePerson) -> StepOutcome:
    """A silent call has used up the greeting that was left after the last real one: it is left
    again, with its old date.
    """
    last = desk.last_greeting(call)
    if last is not None and files.read(person.greeting) is None:
        greeting.save_greeting(person, *last)
    return skipped(NOTHING_SAID)


def index(desk: Desk, call: Call) -> StepOutcome:
    """The turns of the call can be searched, whatever becomes of its summary, which brings its
    own passage.

    For a memory of nobody there is nothing to search.
    """
    if desk.workspace(call).find_person(call.caller) is None:
        return skipped(REMEMBERS_NOBODY)
    fresh = make_passages(call, "", desk.settings.memory.secret_words, desk.confided(call.id))
    told = f"{len(fresh)} passages"

    def write(connection: Connection) -> None:
        replace_call(connection, call.id, fresh, ["turn"])

    if desk.embedder is None:
        return done(told, write=write)
    with desk.database.write() as connection:
        write(connection)
    embed_missing(desk.database, desk.embedder)
    return done(told)


def find_facts(desk: Desk, call: Call) -> StepOutcome:
    """What is worth remembering, beside what is known already."""
    if desk.extractor is None:
        return skipped(NO_MEMORY)
    entry, trace = desk.extractor.extract(call, desk.reader)
    return skipped(entry.reason, trace) if entry.reason else done(_counted(entry), trace)


def _counted(entry: Extraction) -> str:
    counts = {
        "new": entry.facts_extracted,
        "updated": entry.facts_updated,
        "said again": entry.facts_deduplicated,
        "refused": entry.facts_refused,
        "dropped": entry.facts_dropped,
    }
    return (
        ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        or "nothing worth remembering"
    )


def keep_document(desk: Desk, call: Call) -> StepOutcome:
    """The page of the call in our own store."""
    made = _page(desk, call)
    if isinstance(made, StepOutcome):
        return made
    page, trace = made

    def write(connection: Connection) -> None:
        desk.documents.add_page(connection, page)
        fault_point("documents.after_put")

    return done(page.id, trace, write)


def send_document(desk: Desk, call: Call) -> StepOutcome:
    """The same page in remote document memory.

    It bears a key: sent again after a crash it is one page still.

    Made anew, it takes the place of the one that is there.
    """
    if desk.remem is None:
        return skipped(NO_REMEM)
    made = _page(desk, call)
    if isinstance(made, StepOutcome):
        return made
    page, trace = made
    desk.documents.save_page(
        page
    )  # whichever step comes first keeps it, and both tell the same page
    told = desk.remem.send(desk.documents.get(page.id), desk.remote_id(call.id))
    fault_point("remem.after_send")
    return done(told, trace)


def _page(desk: Desk, call: Call) -> tuple[Document, ReadingTrace] | StepOutcome:
    """Or why there is none.

    A page is its summary: a reader that just failed at it is not asked again for the page's
    sake.
    """
    person = desk.workspace(call).find_person(call.caller)
    if person is None:
        return skipped(REMEMBERS_NOBODY)
    match desk.summary_state(call.id):
        case "failed":
            return failed(NO_SUMMARY)
        case "waiting" | "running":
            return awaiting(NO_SUMMARY_YET)
    answer = desk.reader.summarise(call)
    profile = user_md.parse(files.read(person.user))
    page = make_call_document(
        call, answer.value, profile.call_name or profile.name, desk.settings.zone, desk.clock.now()
    )
    clean = mask_secrets(page.content, to_secrets(desk.confided(call.id)))
    return page.model_copy(update={"content": clean}), answer.trace


def keep_pins(desk: Desk, call: Call) -> StepOutcome:
    """Topics that come back over several conversations: counted by the caller's words, and
    named by the summary if there is one.
    """
    key = memory_key(desk.settings, call.agent_id, call.caller)
    person = desk.workspace(call).find_person(call.caller)
    if key is None or person is None or desk.board is None:
        return skipped(REMEMBERS_NOBODY if desk.board else NO_MEMORY)
    is_summarised = desk.summary_state(call.id) in (None, "done", "skipped")
    answer = desk.reader.summarise(call) if is_summarised else None
    profile, identity = (
        user_md.parse(files.read(person.user)),
        identity_md.parse(files.read(desk.workspace(call).identity)),
    )
    own = (profile.name, profile.call_name, identity.name, desk.settings.receptionist.greeting)
    topics = ReaderTopics(
        answer.value.topics if answer else (),
        desk.reader.name != RULES,
        tuple(name for name in own if name),
    )
    changed = desk.board.record_call(key, call, topics)
    return done(changed or "nothing changed", answer.trace if answer else None)


def _named(found: user_md.UserProfile | identity_md.AgentIdentity) -> str:
    """Which fields were found; their values are in the file, which is the owner's."""
    return ", ".join(name for name, value in asdict(found).items() if value)


STEPS: dict[str, Callable[[Desk, Call], StepOutcome]] = {
    "summary": summarise,
    "profile": fill_profile,
    "identity": fill_identity,
    "greeting": leave_greeting,
    "index": index,
    "facts": find_facts,
    "document": keep_document,
    "remem": send_document,
    "pins": keep_pins,
}
LAST = ("pins",)  # begun when the others have ended: they rest on what those found
FIRST = "summary"  # of every call before the other steps of any: what the next call is told
PAGES = (
    "document",
    "remem",
)  # made of the summary: begun when it has ended, and again when it comes late
PUT_BACK = "greeting"  # of silent calls, too: they have used up what was left
RATIONED = "facts"  # the one step with a limit a minute


def names_for(desk: Desk) -> list[str]:
    """The steps that calls get under these settings."""
    return [name for name in STEPS if name != "remem" or desk.remem is not None]


def take(desk: Desk, name: str, call: Call) -> StepOutcome:
    """Do one step, and write what it leaves in the database; nobody records it."""
    outcome = make(desk, name, desk.as_party(call))
    if outcome.write:
        with desk.database.write() as connection:
            outcome.write(connection)
    return outcome


def make(desk: Desk, name: str, call: Call) -> StepOutcome:
    """Do one step, if the call is one for it.

    What it leaves in the database is still to be written. The call is as its party has it.
    """
    reason = skip_reason(desk, name, call)
    return skipped(reason) if reason else STEPS[name](desk, call)


def skip_reason(desk: Desk, name: str, call: Call) -> str:
    """Why a call does not get a step, if it does not."""
    if not desk.settings.post_call_extraction:
        return SWITCHED_OFF
    if call.is_silent and name != PUT_BACK:
        return NOTHING_SAID
    if call.source == IMPORTED and name not in OF_NOTES:
        return NOT_A_CALL
    return OUTBOUND if call.direction == "outbound" and name != FIRST else ""
