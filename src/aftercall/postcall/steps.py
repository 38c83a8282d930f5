"""The steps after a call, each by itself: given a call, make one thing, say what became of it.

Each may run again after a crash, and leaves the same thing behind when it does.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.llm.phrases import name_errand
from aftercall.llm.reader import Reader
from aftercall.memory.embedding import Embedder, embed_new
from aftercall.memory.indexing import index_call
from aftercall.model.calls import Call
from aftercall.model.steps import Outcome, done, skipped
from aftercall.settings import Settings
from aftercall.workspace import calls_md, files, greeting, identity_md, user_md
from aftercall.workspace.paths import Workspace

OUTBOUND = "an outbound call: the callee is not the user"
NOTHING_SAID = "nothing was said"
SWITCHED_OFF = "post_call_extraction is off"
NOTHING_FOUND = "nothing sure was found"
REMEMBERS_NOBODY = "nobody is remembered for this caller"


@dataclass(frozen=True)
class Desk:
    """What the steps work with."""

    settings: Settings
    reader: Reader
    clock: Clock
    database: Database
    embedder: Embedder | None = None

    def workspace(self, call: Call) -> Workspace:
        return Workspace.of(self.settings, call.agent_id)


def summarise(desk: Desk, call: Call) -> Outcome:
    """CALLS.md: what the call was about, in plain words."""
    summary = calls_md.plain_summary(desk.reader.read(call).summary)
    if not summary:
        return skipped(NOTHING_FOUND)
    entry = calls_md.Entry.of(call, summary, desk.settings.zone)
    files.edit(desk.workspace(call).calls, lambda text: calls_md.append(text, entry, desk.settings.calls.max_entries))
    return done(summary)


def fill_profile(desk: Desk, call: Call) -> Outcome:
    """USER.md: who the caller is, where nothing stands yet."""
    person = desk.workspace(call).person(call.caller)
    if person is None:
        return skipped(REMEMBERS_NOBODY)
    if user_md.parse(files.read(person.user)).is_complete:
        return skipped("the profile is complete")
    found = user_md.UserProfile.from_answer(desk.reader.read(call).profile.model_dump())
    if found == user_md.UserProfile():
        return skipped(NOTHING_FOUND)
    written = files.edit(person.user, lambda text: user_md.fill(text, found))
    return done(_named(found)) if written else skipped("nothing new was found")


def fill_identity(desk: Desk, call: Call) -> Outcome:
    """IDENTITY.md: who the agent is, once."""
    path = desk.workspace(call).identity
    if identity_md.parse(files.read(path)).is_begun:
        return skipped("the agent has an identity")
    found = identity_md.AgentIdentity.from_answer(desk.reader.read(call).identity.model_dump())
    if identity_md.is_generic(found.creature or ""):  # every agent is an assistant; that is no identity
        found = replace(found, creature=None)
    written = files.edit(path, lambda text: identity_md.begin(text, found))
    return done(_named(found)) if written else skipped(NOTHING_FOUND)


def leave_greeting(desk: Desk, call: Call) -> Outcome:
    """NEXT_GREETING.txt: how the caller's next call begins."""
    person = desk.workspace(call).person(call.caller)
    if person is None:
        return skipped(REMEMBERS_NOBODY)
    reading = desk.reader.read(call)
    known = user_md.parse(files.read(person.user))
    name = known.call_name or known.name or reading.profile.call_name or reading.profile.name
    sentence = compose_greeting(name, [request.title for request in reading.requests])
    if sentence is None:
        return skipped(NOTHING_FOUND)
    return done(greeting.leave(person, sentence, desk.clock.now()))


def index(desk: Desk, call: Call) -> Outcome:
    """The passages of the call: its turns and its summary can be searched. For a memory of nobody there is nothing to search."""
    if desk.workspace(call).person(call.caller) is None:
        return skipped(REMEMBERS_NOBODY)
    reading = desk.reader.read(call)
    secrets = [fact.words for fact in reading.facts if fact.visibility == "secret"]
    count = index_call(desk.database, call, calls_md.plain_summary(reading.summary), secrets)
    if desk.embedder:
        embed_new(desk.database, desk.embedder)
    return done(f"{count} passages")


def _named(found: user_md.UserProfile | identity_md.AgentIdentity) -> str:
    """Which fields were found; their values are in the file, which is the owner's."""
    return ", ".join(name for name, value in asdict(found).items() if value)


def compose_greeting(name: str | None, requests: list[str]) -> str | None:
    """A sentence that shows the caller is remembered; nothing that was not asked for aloud goes into it."""
    if not requests:
        return f"Hey {name}, good to hear from you again!" if name else None
    hello = f"Hey {name}" if name else "Welcome back"
    return f"{hello}, last time you asked me {name_errand(requests[0])}; what can I do for you today?"


STEPS: dict[str, Callable[[Desk, Call], Outcome]] = {
    "summary": summarise,
    "profile": fill_profile,
    "identity": fill_identity,
    "greeting": leave_greeting,
    "index": index,
}


def take(desk: Desk, name: str, call: Call) -> Outcome:
    """Do one step, if the call is one for it."""
    if not desk.settings.post_call_extraction:
        return skipped(SWITCHED_OFF)
    if not call.turns:
        return skipped(NOTHING_SAID)
    if call.direction == "outbound" and name != "summary":
        return skipped(OUTBOUND)
    return STEPS[name](desk, call)
