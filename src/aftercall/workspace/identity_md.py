"""IDENTITY.md: who the agent is, filled once from the agent's words, never the avatar. Also the
names that people and the agent go by.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Self

from aftercall.model.people import is_generic_name
from aftercall.settings import Settings
from aftercall.workspace import files, user_md
from aftercall.workspace.forms import FieldForm
from aftercall.workspace.markdown import IDENTITY_PLACEHOLDERS, MarkdownPage
from aftercall.workspace.paths import Workspace

LABELS = {
    "name": "Name",
    "creature": "Creature",
    "vibe": "Vibe",
    "emoji": "Emoji",
    "avatar": "Avatar",
}
WRITTEN_FIELDS = ("name", "creature", "vibe", "emoji")
TEMPLATE = """\
# IDENTITY.md: the agent who answers

- **Name:**
  _(pick something you like)_
- **Creature:**
  _(AI? robot? familiar? ghost in the machine? something weirder?)_
- **Vibe:**
  _(how do you come across? sharp? warm? chaotic? calm?)_
- **Emoji:**
  _(your signature — pick one that feels right)_
- **Avatar:**
  _(workspace-relative path, http(s) URL, or data URI)_
"""
FORM = FieldForm(LABELS, IDENTITY_PLACEHOLDERS)


@dataclass(frozen=True)
class AgentIdentity:
    name: str | None = None
    creature: str | None = None
    vibe: str | None = None
    emoji: str | None = None
    avatar: str | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, str | None]) -> Self:
        """The fields of a reader's `Identity`."""
        return cls(**{name: answer.get(name) for name in WRITTEN_FIELDS})

    @property
    def is_set(self) -> bool:
        """Whether any field is filled; then calls are no longer searched for an identity."""
        return any(astuple(self))


def parse(text: str | None) -> AgentIdentity:
    return AgentIdentity(**FORM.read(MarkdownPage.parse(text or "")))


def fill(text: str | None, found: AgentIdentity) -> str | None:
    """The page with its empty fields filled; the same text if nothing is added."""
    values = FORM.filter_usable({name: getattr(found, name) for name in WRITTEN_FIELDS})
    if is_generic_name(values.get("name", "")):
        del values["name"]
    return (
        FORM.fill(MarkdownPage.parse(text or TEMPLATE), values).text if values else text
    )


def fill_if_unset(text: str | None, found: AgentIdentity) -> str | None:
    """Fills only an empty page: of two calls that end together, one decides the identity."""
    return text if parse(text).is_set else fill(text, found)


def find_call_name(settings: Settings, party: str | None) -> str | None:
    """What the party likes to be called."""
    profile = _read_profile(Workspace.from_settings(settings), party)
    return profile.call_name or profile.name


def map_speaker_names(settings: Settings, party: str | None) -> dict[str, str]:
    """Maps names to speakers: "what did Bill say" prefers the turns of the caller named Bill."""
    workspace = Workspace.from_settings(settings, settings.agent_id)
    profile = _read_profile(workspace, party)
    agent = parse(files.read(workspace.identity))
    names = {profile.name: "caller", profile.call_name: "caller", agent.name: "agent"}
    return {name: speaker for name, speaker in names.items() if name}


def _read_profile(workspace: Workspace, party: str | None) -> user_md.UserProfile:
    person = workspace.find_person(party) if party else None
    text = files.read_copy(person.user) if person else None
    return user_md.parse(text)
