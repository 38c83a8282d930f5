"""USER.md: what is known of a person.

Fields are filled where they are empty, context grows line by line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from aftercall.model.people import spoken_name
from aftercall.workspace.forms import FieldForm
from aftercall.workspace.lines import LineKind, MarkdownPage
from aftercall.workspace.values import (
    USER_PLACEHOLDERS,
    is_placeholder,
    plain_lines,
    replace_undecodable,
    to_text,
)

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

_(What do they care about? What projects are they working on? What annoys them? What \
makes them laugh? Build this over time.)_
"""

FORM = FieldForm(LABELS, USER_PLACEHOLDERS, multiline=frozenset({"notes"}), prose_section="Context")

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
        """What a reader found.

        Raises RefusedInput for a value that is neither text nor a list of texts.
        """
        found = {
            field.name: answer.get(field.name, answer.get(_ANSWER_NAMES.get(field.name, "")))
            for field in fields(cls)
        }
        return cls(
            **{
                name: to_text(name, value, "\n" if name == "context" else ", ")
                for name, value in found.items()
            }
        )

    @property
    def spoken_name(self) -> str | None:
        return spoken_name(self.name, self.call_name)

    @property
    def is_complete(self) -> bool:
        """Nothing is left to find out; pronouns are optional."""
        return all((self.name, self.call_name, self.timezone, self.notes, self.context))


def parse(text: str | None) -> UserProfile:
    page = MarkdownPage.parse(text or "")
    return UserProfile(**FORM.read(page), context="\n".join(_read_context(page)) or None)


def fill(text: str | None, found: UserProfile) -> str | None:
    """The page with what was found where nothing stands yet; the same text if that adds nothing."""
    values = FORM.filter_usable({name: getattr(found, name) for name in LABELS})
    context = [
        line
        for line in plain_lines(found.context or "")
        if not is_placeholder(line, USER_PLACEHOLDERS)
    ]
    if not values and not context:
        return text
    page = FORM.fill(MarkdownPage.parse(text or TEMPLATE), values)
    return _add_context(page, context).text


def _context_lines(page: MarkdownPage) -> range:
    return page.find_section("Context") or range(0)


def _read_context(page: MarkdownPage) -> list[str]:
    body = [
        page.lines[at]
        for at in _context_lines(page)[1:]
        if page.lines[at].kind is not LineKind.COMMENT
    ]
    if is_placeholder(" ".join(line.text for line in body), USER_PLACEHOLDERS):
        return []
    said = [
        line
        for line in body
        if line.kind is not LineKind.TEXT or not is_placeholder(line.text, USER_PLACEHOLDERS)
    ]
    return (
        replace_undecodable("\n".join(line.text.rstrip() for line in said)).strip("\n").split("\n")
    )


def _add_context(page: MarkdownPage, lines: list[str]) -> MarkdownPage:
    """New lines go where the placeholder stood, else below the last line; a list goes on as a
    list.
    """
    known = {_fold(line) for line in _read_context(page)}
    fresh = [line for line in dict.fromkeys(lines) if _fold(line) not in known]
    if not fresh:
        return page
    section = page.find_section("Context")
    if section is None:
        return _add_section(page, fresh)
    spent = [at for at in section[1:] if page.lines[at].kind is LineKind.TEXT]
    if (
        spent
        and is_placeholder(" ".join(page.lines[at].text for at in spent), USER_PLACEHOLDERS)
        and len(spent) == spent[-1] - spent[0] + 1
    ):
        return page.splice(spent[0], spent[-1] + 1, fresh)
    end = page.find_text_end(section.start, section.stop)
    if end == section.start + 1:
        return page.splice(end, end, ["", *fresh, *([] if page.is_blank(end) else [""])])
    bullet = (
        _BULLET.match(page.lines[end - 1].text)
        if page.lines[end - 1].kind is LineKind.TEXT
        else None
    )
    return page.splice(
        end, end, [f"{bullet[0].lstrip()}{line}" if bullet else line for line in fresh]
    )


def _add_section(page: MarkdownPage, lines: list[str]) -> MarkdownPage:
    """Before the next section of its rank, so that it takes in nobody else's lines."""
    known = [field.stop for field in FORM.find(page) if field.label in FORM.known_labels]
    start = known[-1] if known else page.find_title_end()
    end = page.find_text_end(start, page.find_next_boundary(start))
    above = [] if end == 0 or page.is_blank(end - 1) else [""]
    below = [] if page.is_blank(end) else [""]
    return page.splice(end, end, [*above, "## Context", "", *lines, *below])


def _fold(line: str) -> str:
    return " ".join(_BULLET.sub("", line, count=1).split()).casefold()
