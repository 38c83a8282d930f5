"""The steps after a call. Each takes a call, makes one thing and returns its outcome.

A step may run again after a crash. It then leaves the same thing behind.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.corrections import NAMES, CorrectionStore
from aftercall.english.words import count_noun
from aftercall.faults import fault_point
from aftercall.journal.store import CallStore
from aftercall.llm.reader import Reader
from aftercall.memory.documents import DocumentStore, RememClient, make_call_document
from aftercall.memory.embedding import Embedder, embed_missing
from aftercall.memory.extraction import Extractor
from aftercall.memory.judge import CallJudge
from aftercall.memory.passage_store import (
    make_passages,
    make_summary_passage,
    replace_call,
)
from aftercall.memory.pins.board import PinBoard, ReaderTopics
from aftercall.memory.visibility import mask_secrets, to_secrets
from aftercall.model.calls import IMPORTED, Call
from aftercall.model.facts import Extraction, memory_key
from aftercall.model.passages import Document
from aftercall.model.people import is_generic_name
from aftercall.model.reading import (
    OUTBOUND_REASON,
    ReadingTrace,
    StepOutcome,
    awaiting,
    done,
    failed,
    skipped,
)
from aftercall.postcall.store import SUMMARY, StepStore
from aftercall.settings import Settings
from aftercall.who.register import CallerRegister, find_stated_name
from aftercall.workspace import calls_md, files, greeting, identity_md, user_md
from aftercall.workspace.paths import Workspace, WorkspacePerson

NOT_A_CALL = "imported notes: there was no call"
OF_NOTES = ("facts", "index")
NOTHING_SAID = "nothing was said"
ANSWERED_ELSEWHERE = "another agent answered this call"
SWITCHED_OFF = "post_call_extraction is off"
NOTHING_FOUND = "nothing sure was found"
NOT_THE_LAST = "the caller has called since"
NO_MEMORY = "nobody is remembered for this caller"
NO_REMEM = "remem is not configured"
NO_JUDGE = "memory.judge is not configured"
NO_FACTS_YET = "waits for the facts"
NO_FACTS = "waits for the facts, which failed"
NO_SUMMARY_YET = "waits for the summary"
NO_SUMMARY = "waits for the summary, which failed"
FACTS = "facts"
RULES = "rules"  # the reader whose topics are whole requests


@dataclass(frozen=True)
class StepContext:
    """What the steps work with."""

    settings: Settings
    reader: Reader
    clock: Clock
    database: Database
    calls: CallStore
    steps: StepStore
    register: CallerRegister
    documents: DocumentStore
    extractor: Extractor
    pins: PinBoard
    remem: RememClient | None = None
    embedder: Embedder | None = None
    judging: CallJudge | None = None

    def confided_words(self, call_id: str) -> list[str]:
        """The words of this call that secret facts rest on, as far as they are found yet."""
        return self.extractor.store.list_confided_words(call_id)

    def workspace(self, call: Call) -> Workspace:
        return Workspace.from_settings(self.settings, call.agent_id)


def summarise(context: StepContext, call: Call) -> StepOutcome:
    """CALLS.md: what the call was about."""
    answer = context.reader.summarise(call)
    summary = calls_md.plain_summary(answer.value.text)
    if not summary:
        return skipped(NOTHING_FOUND, answer.trace)
    workspace, settings = context.workspace(call), context.settings
    files.edit(
        workspace.calls,
        lambda text: calls_md.add_call(
            text, call, summary, settings.zone, settings.calls.max_entries
        ),
    )
    if call.direction == "outbound" or workspace.find_person(call.caller) is None:
        return done(summary, answer.trace)
    confided = context.confided_words(call.id)
    passage = make_summary_passage(
        call, summary, settings.memory.secret_words, confided
    )

    def write(connection: Connection) -> None:
        replace_call(connection, call.id, [passage], ["summary"])

    return done(summary, answer.trace, write)


def fill_profile(context: StepContext, call: Call) -> StepOutcome:
    """USER.md: who the caller is. Fills empty fields only."""
    person = context.workspace(call).find_person(call.caller)
    if person is None:
        return skipped(NO_MEMORY)
    known = _read_profile(person)
    if known.is_complete:
        return skipped("the profile is complete")
    answer = context.reader.find_profile(call)
    found = user_md.UserProfile.from_answer(answer.value.model_dump())
    if not (found.name or found.call_name):
        # The name that tells this caller from others at the same number.
        found = replace(found, name=find_stated_name(call))
    found = _put_names_right(context, call, found)
    if found == user_md.UserProfile():
        return skipped(NOTHING_FOUND, answer.trace)
    if not files.edit(person.user, lambda text: user_md.fill(text, found)):
        return skipped("nothing new was found", answer.trace)
    filled = _read_profile(person)
    return done(_list_changes(known, filled), answer.trace)


def _put_names_right(
    context: StepContext, call: Call, found: user_md.UserProfile
) -> user_md.UserProfile:
    """With the names that a person gave the caller since; None for a name that is not theirs."""
    store = CorrectionStore(context.database)
    chains = store.list_chains(call.agent_id, NAMES, [str(call.caller)])
    newest = [chain[-1] for chain in chains if chain[-1].at > call.started_at]
    return replace(found, **{one.what: one.new for one in newest})


def fill_identity(context: StepContext, call: Call) -> StepOutcome:
    """IDENTITY.md: who the agent is. Written once, from a call that our agent answered."""
    if context.calls.is_handed_in(call.id):
        return skipped(ANSWERED_ELSEWHERE)
    path = context.workspace(call).identity
    known = identity_md.parse(files.read(path))
    if known.is_set:
        return skipped("the agent has an identity")
    answer = context.reader.find_identity(call)
    found = identity_md.AgentIdentity.from_answer(answer.value.model_dump())
    if found.name and found.name.lower() in (find_stated_name(call) or "").lower():
        found = replace(found, name=None)  # the agent repeated the caller's name
    if is_generic_name(found.creature or ""):  # every agent is an assistant
        found = replace(found, creature=None)
    if not files.edit(path, lambda text: identity_md.fill_if_unset(text, found)):
        return skipped(NOTHING_FOUND, answer.trace)
    filled = identity_md.parse(files.read(path))
    return done(_list_changes(known, filled), answer.trace)


def leave_greeting(context: StepContext, call: Call) -> StepOutcome:
    """NEXT_GREETING.txt: how the caller's next call begins."""
    person = context.workspace(call).find_person(call.caller)
    if person is None:
        return skipped(NO_MEMORY)
    if call.is_silent:
        return _put_back_greeting(context, call, person)
    if context.steps.has_later_call(call):
        return skipped(NOT_THE_LAST)
    known = _read_profile(person)
    answer = context.reader.find_greeting(call, known.spoken_name)
    if answer.value is None:
        _remove_spoken_greeting(call, person)
        return skipped(NOTHING_FOUND, answer.trace)
    return done(
        greeting.save_greeting(person, answer.value, call.ended_at), answer.trace
    )


def _remove_spoken_greeting(call: Call, person: WorkspacePerson) -> None:
    """A call that began with the greeting has used it up, also when it is read again."""
    left = (files.read(person.greeting) or "").strip()
    said = "\n".join(turn.text for turn in call.turns if turn.speaker == "agent")
    if left and left in said:
        files.claim(person.greeting)


def _put_back_greeting(
    context: StepContext, call: Call, person: WorkspacePerson
) -> StepOutcome:
    """A silent call used up the greeting of the last real call. Writes it again, with its date."""
    last = context.steps.last_greeting(call)
    if last is not None and files.read(person.greeting) is None:
        greeting.save_greeting(person, *last)
    return skipped(NOTHING_SAID)


def index_turns(context: StepContext, call: Call) -> StepOutcome:
    """Makes the turns searchable. The summary step adds the summary's passage."""
    if context.workspace(call).find_person(call.caller) is None:
        return skipped(NO_MEMORY)
    confided = context.confided_words(call.id)
    fresh = make_passages(call, context.settings.memory.secret_words, confided)
    result = count_noun(len(fresh), "passage")

    def write(connection: Connection) -> None:
        replace_call(connection, call.id, fresh, ["turn"])

    if context.embedder is None:
        return done(result, write=write)
    with context.database.write() as connection:
        write(connection)
    embed_missing(context.database, context.embedder)
    return done(result)


def find_facts(context: StepContext, call: Call) -> StepOutcome:
    """Facts worth remembering, matched with the known ones."""
    entry, trace = context.extractor.extract(call, context.reader)
    return (
        skipped(entry.reason, trace)
        if entry.reason
        else done(_format_counts(entry), trace)
    )


def judge_facts(context: StepContext, call: Call) -> StepOutcome:
    """Which known facts the new ones replace, where the rules could not tell."""
    if context.judging is None:
        return skipped(NO_JUDGE)
    match context.steps.state_of(call.id, FACTS):
        case "failed":
            return failed(NO_FACTS)
        case "waiting" | "running":
            return awaiting(NO_FACTS_YET)
    return done(str(context.judging.judge_call(call)))


def _format_counts(entry: Extraction) -> str:
    counts = {
        "new": entry.facts_extracted,
        "updated": entry.facts_updated,
        "said again": entry.facts_deduplicated,
        "refused": entry.facts_refused,
        "dropped": entry.facts_dropped,
    }
    found = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return found or "nothing worth remembering"


def keep_document(context: StepContext, call: Call) -> StepOutcome:
    """Stores the page of the call."""
    made = _make_page(context, call)
    if isinstance(made, StepOutcome):
        return made
    page, trace = made

    def write(connection: Connection) -> None:
        context.documents.add_page(connection, page)
        fault_point("documents.after_put")

    return done(page.id, trace, write)


def send_document(context: StepContext, call: Call) -> StepOutcome:
    """Sends the page to remote document memory.

    The page has a key, so a repeated send changes the same page.
    """
    if context.remem is None:
        return skipped(NO_REMEM)
    made = _make_page(context, call)
    if isinstance(made, StepOutcome):
        return made
    page, trace = made
    # the first of both steps stores it; both use that page
    context.documents.save_page(page)
    sent_id = context.steps.result_of(call.id, "remem")
    remote_id = context.remem.send(context.documents.get(page.id), sent_id)
    fault_point("remem.after_send")
    return done(remote_id, trace)


def _make_page(
    context: StepContext, call: Call
) -> tuple[Document, ReadingTrace] | StepOutcome:
    """The page, or why there is none. Without a summary there is no page."""
    person = context.workspace(call).find_person(call.caller)
    if person is None:
        return skipped(NO_MEMORY)
    match context.steps.state_of(call.id, SUMMARY):
        case "failed":
            return failed(NO_SUMMARY)
        case "waiting" | "running":
            return awaiting(NO_SUMMARY_YET)
    answer = context.reader.summarise(call)
    profile = _read_profile(person)
    name = profile.call_name or profile.name
    page = make_call_document(
        call, answer.value, name, context.settings.zone, context.clock.now()
    )
    clean = mask_secrets(page.content, to_secrets(context.confided_words(call.id)))
    return page.model_copy(update={"content": clean}), answer.trace


def keep_pins(context: StepContext, call: Call) -> StepOutcome:
    """Pins topics that come back. The caller's words are counted; the summary names the topics."""
    key = memory_key(context.settings, call.agent_id, call.caller)
    workspace = context.workspace(call)
    person = workspace.find_person(call.caller)
    if key is None or person is None:
        return skipped(NO_MEMORY)
    is_summarised = context.steps.state_of(call.id, SUMMARY) in (
        None,
        "done",
        "skipped",
    )
    answer = context.reader.summarise(call) if is_summarised else None
    profile = _read_profile(person)
    identity = identity_md.parse(files.read(workspace.identity))
    own = (
        profile.name,
        profile.call_name,
        identity.name,
        context.settings.receptionist.greeting,
    )
    topics = ReaderTopics(
        answer.value.topics if answer else (),
        not context.reader.name.startswith(RULES),
        tuple(name for name in own if name),
    )
    changed = context.pins.record_call(key, call, topics)
    return done(changed or "nothing changed", answer.trace if answer else None)


def _list_changes(
    before: user_md.UserProfile | identity_md.AgentIdentity,
    after: user_md.UserProfile | identity_md.AgentIdentity,
) -> str:
    """The names of the fields. Their values stay in the file, which belongs to the owner."""
    old = asdict(before)
    return ", ".join(
        name for name, value in asdict(after).items() if value != old[name]
    )


STEPS: dict[str, Callable[[StepContext, Call], StepOutcome]] = {
    "summary": summarise,
    "profile": fill_profile,
    "identity": fill_identity,
    "greeting": leave_greeting,
    "index": index_turns,
    "facts": find_facts,
    "judge": judge_facts,
    "document": keep_document,
    "remem": send_document,
    "pins": keep_pins,
}
PAGES = ("document", "remem")  # made of the summary
PINS = "pins"
JUDGE = "judge"
WAITING_STEPS = {SUMMARY: (PAGES, NO_SUMMARY), FACTS: ((JUDGE,), NO_FACTS)}
"""The steps that wait for another one, and the reason if that one fails."""
STAGES = (
    (SUMMARY,),  # first: the next call needs it
    ("profile", "identity", "index", "facts"),
    ("greeting", JUDGE, *PAGES, PINS),  # last: they use what the others found
)
PUT_BACK = "greeting"  # runs for silent calls too: they used up the old greeting
RATIONED = (FACTS, JUDGE)  # the step with a limit per minute, and what waits for it


def list_steps(context: StepContext) -> list[str]:
    """The steps of a call under these settings."""
    missing = {
        "remem" if context.remem is None else "",
        JUDGE if context.judging is None else "",
    }
    return [name for name in STEPS if name not in missing]


def skip_reason(context: StepContext, name: str, call: Call) -> str:
    """Why the call does not get this step; empty if it does."""
    if not context.settings.post_call_extraction:
        return SWITCHED_OFF
    if call.is_silent and name != PUT_BACK:
        return NOTHING_SAID
    if call.source == IMPORTED and name not in OF_NOTES:
        return NOT_A_CALL
    return OUTBOUND_REASON if call.direction == "outbound" and name != SUMMARY else ""


def _read_profile(person: WorkspacePerson) -> user_md.UserProfile:
    """What USER.md says of them right now; people edit it, too."""
    return user_md.parse(files.read(person.user))
