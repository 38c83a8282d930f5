"""USER.md: what is known of a person. Fields are filled where they are empty, context grows line by line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from aftercall.model.salutation import spoken_name
from aftercall.workspace.forms import Form
from aftercall.workspace.lines import Kind, Page
from aftercall.workspace.placeholders import USER, is_placeholder
from aftercall.workspace.values import plain_lines, readable, text_of

LABELS = {
    "name": "Name",
    "call_name": "What to call them",
    "pronouns": "Pronouns",
    "timezone": "Timezone",
    "notes": "Notes",
}
TEMPLATE = """\
# USER.md: the person on the line

- **Name:**
- **What to call them:**
- **Pronouns:** _(optional)_
- **Timezone:**
- **Notes:**

## Context

_(What do they care about? What projects are they working on? What annoys them? What makes them laugh? Build this over time.)_
"""

FORM = Form(LABELS, USER, long=frozenset({"notes"}), apart="Context")

_ANSWER_NAMES = {"call_name": "callName"}
_BULLET = re.compile(r"\s*[-*+]\s+")


@dataclass(frozen=True)
class UserProfile:
    name: str | None = None
    call_name: str | None = None
    pronouns: str | None = None
    timezone: str | None = None
    notes: str | None = None
    context: str | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, object]) -> Self:
        """What a reader found. Raises RefusedInput for a value that is neither text nor a list of texts."""
        found = {field.name: answer.get(field.name, answer.get(_ANSWER_NAMES.get(field.name, ""))) for field in fields(cls)}
        return cls(**{name: text_of(name, value, "\n" if name == "context" else ", ") for name, value in found.items()})

    @property
    def spoken_name(self) -> str | None:
        return spoken_name(self.name, self.call_name)

    @property
    def is_complete(self) -> bool:
        """Nothing is left to find out; pronouns are optional."""
        return all((self.name, self.call_name, self.timezone, self.notes, self.context))


def parse(text: str | None) -> UserProfile:
    page = Page.read(text or "")
    return UserProfile(**FORM.read(page), context="\n".join(_read_context(page)) or None)


def fill(text: str | None, found: UserProfile) -> str | None:
    """The page with what was found where nothing stands yet; the same text if that adds nothing."""
    values = FORM.usable({name: getattr(found, name) for name in LABELS})
    context = [line for line in plain_lines(found.context or "") if not is_placeholder(line, USER)]
    if not values and not context:
        return text
    page = FORM.fill(Page.read(text or TEMPLATE), values)
    return _add_context(page, context).text


def _context_lines(page: Page) -> range:
    return page.find_section("Context") or range(0)


def _read_context(page: Page) -> list[str]:
    body = [page.lines[at] for at in _context_lines(page)[1:] if page.lines[at].kind is not Kind.COMMENT]
    if is_placeholder(" ".join(line.text for line in body), USER):
        return []
    said = [line for line in body if line.kind is not Kind.TEXT or not is_placeholder(line.text, USER)]
    return readable("\n".join(line.text.rstrip() for line in said)).strip("\n").split("\n")


def _add_context(page: Page, lines: list[str]) -> Page:
    """New lines go where the placeholder stood, else below the last line; a list goes on as a list."""
    known = {_fold(line) for line in _read_context(page)}
    fresh = [line for line in dict.fromkeys(lines) if _fold(line) not in known]
    if not fresh:
        return page
    section = page.find_section("Context")
    if section is None:
        return _add_section(page, fresh)
    spent = [at for at in section[1:] if page.lines[at].kind is Kind.TEXT]
    if spent and is_placeholder(" ".join(page.lines[at].text for at in spent), USER) and len(spent) == spent[-1] - spent[0] + 1:
        return page.splice(spent[0], spent[-1] + 1, fresh)
    end = page.last_written(section.start, section.stop)
    if end == section.start + 1:
        return page.splice(end, end, ["", *fresh, *([] if page.is_blank(end) else [""])])
    bullet = _BULLET.match(page.lines[end - 1].text) if page.lines[end - 1].kind is Kind.TEXT else None
    return page.splice(end, end, [f"{bullet[0].lstrip()}{line}" if bullet else line for line in fresh])


def _add_section(page: Page, lines: list[str]) -> Page:
    """Before the next section of its rank, so that it takes in nobody else's lines."""
    known = [field.stop for field in FORM.find(page) if field.label in FORM.known]
    start = known[-1] if known else page.after_title()
    end = page.last_written(start, page.next_boundary(start))
    above = [] if end == 0 or page.is_blank(end - 1) else [""]
    below = [] if page.is_blank(end) else [""]
    return page.splice(end, end, [*above, "## Context", "", *lines, *below])


def _fold(line: str) -> str:
    return " ".join(_BULLET.sub("", line, count=1).split()).casefold()
