"""IDENTITY.md: who the agent is, filled once from the agent's words. Never writes the avatar."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Self

from aftercall.model.people import is_generic_name
from aftercall.workspace.forms import FieldForm
from aftercall.workspace.markdown import IDENTITY_PLACEHOLDERS, MarkdownPage

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
