"""USER.md: what is known of a person. Empty fields are filled; context grows line by line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from aftercall.model.people import spoken_name
from aftercall.workspace.forms import FieldForm
from aftercall.workspace.markdown import (
    USER_PLACEHOLDERS,
    LineKind,
    MarkdownPage,
    is_placeholder,
    plain_lines,
    replace_undecodable,
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

FORM = FieldForm(
    LABELS, USER_PLACEHOLDERS, multiline=frozenset({"notes"}), prose_section="Context"
)

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
    def from_answer(cls, answer: Mapping[str, str | None]) -> Self:
        """The fields of a reader's `Profile`."""
        return cls(**{field.name: answer.get(field.name) for field in fields(cls)})

    @property
    def spoken_name(self) -> str | None:
        return spoken_name(self.name, self.call_name)

    @property
    def is_complete(self) -> bool:
        """Whether all fields are filled; pronouns are optional."""
        return all((self.name, self.call_name, self.timezone, self.notes, self.context))


def parse(text: str | None) -> UserProfile:
    page = MarkdownPage.parse(text or "")
    return UserProfile(
        **FORM.read(page), context="\n".join(_read_context(page)) or None
    )


def fill(text: str | None, found: UserProfile) -> str | None:
    """The page with its empty fields filled; the same text if nothing is added."""
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


def set_field(text: str | None, name: str, value: str | None) -> str:
    """The page with one field set as a person wants it; None empties it.

    Raises ValueError for a value that a page cannot hold.
    """
    usable = FORM.filter_usable({name: value}).get(name)
    if value is not None and usable is None:
        raise ValueError("is empty, or a placeholder")
    return FORM.replace(MarkdownPage.parse(text or TEMPLATE), name, usable).text


def _read_context(page: MarkdownPage) -> list[str]:
    """The prose under "Context", without comments and placeholders."""
    section = page.find_section("Context") or range(0)
    lines = [page.lines[at] for at in section[1:]]
    body = [line for line in lines if line.kind is not LineKind.COMMENT]
    if is_placeholder(" ".join(line.text for line in body), USER_PLACEHOLDERS):
        return []
    kept = [
        line.text.rstrip()
        for line in body
        if line.kind is not LineKind.TEXT
        or not is_placeholder(line.text, USER_PLACEHOLDERS)
    ]
    return replace_undecodable("\n".join(kept)).strip("\n").split("\n")


def _add_context(page: MarkdownPage, lines: list[str]) -> MarkdownPage:
    """Puts new lines in place of the placeholder, else below the last line in its list style."""
    known = {_fold(line) for line in _read_context(page)}
    fresh = [line for line in dict.fromkeys(lines) if _fold(line) not in known]
    if not fresh:
        return page
    section = page.find_section("Context")
    if section is None:
        return _add_section(page, fresh)
    texts = [at for at in section[1:] if page.lines[at].kind is LineKind.TEXT]
    is_block = bool(texts) and len(texts) == texts[-1] - texts[0] + 1
    joined = " ".join(page.lines[at].text for at in texts)
    if is_block and is_placeholder(joined, USER_PLACEHOLDERS):
        return page.splice(texts[0], texts[-1] + 1, fresh)
    end = page.find_text_end(section.start, section.stop)
    if end == section.start + 1:
        return page.splice(
            end, end, ["", *fresh, *([] if page.is_blank(end) else [""])]
        )
    last = page.lines[end - 1]
    bullet = _BULLET.match(last.text) if last.kind is LineKind.TEXT else None
    prefix = bullet[0].lstrip() if bullet else ""
    return page.splice(end, end, [f"{prefix}{line}" for line in fresh])


def _add_section(page: MarkdownPage, lines: list[str]) -> MarkdownPage:
    """Adds the section before the next one, so that it takes in no other lines."""
    known = [
        field.stop for field in FORM.find(page) if field.label in FORM.known_labels
    ]
    start = known[-1] if known else page.find_title_end()
    end = page.find_text_end(start, page.find_next_boundary(start))
    above = [] if end == 0 or page.is_blank(end - 1) else [""]
    below = [] if page.is_blank(end) else [""]
    return page.splice(end, end, [*above, "## Context", "", *lines, *below])


def _fold(line: str) -> str:
    return " ".join(_BULLET.sub("", line, count=1).split()).casefold()
