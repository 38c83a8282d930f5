"""Pages with known fields: read by name, filled only where they are empty."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import dedent

from aftercall.workspace.markdown import (
    LineKind,
    MarkdownLine,
    MarkdownPage,
    bare_value,
    is_placeholder,
    replace_undecodable,
    strip_emphasis,
)

_LEAD = re.compile(r"(\s*)((?:[-*+]|\d{1,9}[.)])\s+)?([*_]{0,3})")
_LABEL = re.compile(r"\w[\w '’/&().?-]{0,40}")
_HARD_BREAK = re.compile(r" {2,}$|\\$")
_MAX_INDENT = 3  # four spaces make code, not a list


@dataclass(frozen=True)
class Field:
    """A line "label: value" of a form, with everything around the value as people wrote it."""

    label: str
    at: int
    stop: int  # one past the last line that belongs to it
    section: int
    indent: str
    bullet: str
    mark: str  # the emphasis around the label
    head: str  # the line up to the value
    value: str
    tail: str  # the end of the line: a hard break, or emphasis around label and value

    def lines_below(self, page: MarkdownPage) -> tuple[MarkdownLine, ...]:
        """The lines that belong to it and stand under its own."""
        return page.lines[self.at + 1 : self.stop]

    def format_like(self, label: str, value: str) -> str:
        """A line for another field in the same style."""
        return f"{self.indent}{self.bullet}{self.mark}{label}:{self.mark[::-1]} {value}"


def find_fields(
    page: MarkdownPage, known: AbstractSet[str], skip: range = range(0)
) -> list[Field]:
    """All field lines in order, with unknown labels too, except the lines of `skip`.

    `known` labels are folded.
    """
    fields: list[Field] = []
    section = 0
    owner = -1
    is_open = False
    for at, line in enumerate(page.lines):
        if line.level:
            section, owner, is_open = section + 1, -1, False
        elif line.kind in (LineKind.BLANK, LineKind.FRONT_MATTER):
            continue
        elif 0 <= owner < line.indent:
            if is_open:
                fields[-1] = replace(fields[-1], stop=at + 1)
        else:
            owner = line.indent
            field = None
            if at not in skip and owner <= _MAX_INDENT:
                field = _parse_line(line, known, at, section)
            is_open = field is not None
            fields += [field] if field else []
    return fields


def read_field(
    page: MarkdownPage,
    field: Field,
    known: AbstractSet[str],
    placeholders: AbstractSet[str],
) -> str | None:
    """The value on the line of the field, else on an indented line before the next field."""
    if not is_placeholder(field.value, placeholders):
        return replace_undecodable(strip_emphasis(field.value))
    for line in field.lines_below(page):
        if line.kind is not LineKind.TEXT:
            continue
        if _parse_line(line, known, 0, 0):
            return None
        value = _without_bullet(line.text)
        if not is_placeholder(value, placeholders):
            return replace_undecodable(strip_emphasis(value))
    return None


def read_multiline_field(
    page: MarkdownPage, field: Field, placeholders: AbstractSet[str]
) -> str | None:
    """The value with all its lines."""
    silent = (LineKind.BLANK, LineKind.COMMENT)
    own = [
        line
        for line in field.lines_below(page)
        if line.kind not in silent and not _is_placeholder_line(line, placeholders)
    ]
    below = dedent("\n".join(line.text.rstrip() for line in own))
    first = "" if is_placeholder(field.value, placeholders) else field.value
    value = "\n".join(text for text in (first, below) if text)
    return replace_undecodable(strip_emphasis(value)) or None


def fill_field(
    page: MarkdownPage, field: Field, value: str, placeholders: AbstractSet[str]
) -> MarkdownPage:
    """Puts `value` on the line of the field and removes its placeholder."""
    below = [
        line.text
        for line in field.lines_below(page)
        if not _is_placeholder_line(line, placeholders)
    ]
    return page.splice(
        field.at, field.stop, [f"{field.head} {value}{field.tail}", *below]
    )


def insert_field(
    page: MarkdownPage,
    fields: list[Field],
    known: AbstractSet[str],
    label: str,
    value: str,
) -> MarkdownPage:
    """Adds a missing field after the last field line, else after the title."""
    home = next(
        (field.section for field in reversed(fields) if field.label in known),
        fields[0].section if fields else None,
    )
    last = next((field for field in reversed(fields) if field.section == home), None)
    if last:
        return page.splice(last.stop, last.stop, [last.format_like(label, value)])
    at = page.find_title_end()
    above = [] if at == 0 or page.is_blank(at - 1) else [""]
    below = [] if page.is_blank(at) else [""]
    return page.splice(at, at, [*above, f"- **{label}:** {value}", *below])


def fold_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def _parse_line(
    line: MarkdownLine, known: AbstractSet[str], at: int, section: int
) -> Field | None:
    """The field of a line, if it is one: a known label, or one that is dressed like the others."""
    lead = _LEAD.match(line.text)
    name, colon, rest = line.text[lead.end() :].partition(":") if lead else ("", "", "")
    label = fold_label(name.strip("*_ \t"))
    if line.kind is not LineKind.TEXT or lead is None or not colon or not label:
        return None
    indent = lead[1]
    bullet = lead[2] or ""
    mark = lead[3]
    head, value, tail = _split_value(
        line.text, rest, "" if name.rstrip().endswith(mark) else mark
    )
    is_dressed = bool(
        (bullet or mark)
        and _LABEL.fullmatch(label)
        and (not rest.strip("*_") or rest.lstrip("*_")[:1].isspace())
    )
    if label not in known and not is_dressed:
        return None
    return Field(label, at, at + 1, section, indent, bullet, mark, head, value, tail)


def _split_value(text: str, rest: str, mark: str) -> tuple[str, str, str]:
    """Head, value and tail of a line; `rest` follows the colon, `mark` is emphasis still open."""
    close = mark[::-1]
    begin = len(text) - len(rest)
    end = len(text)
    if hard_break := _HARD_BREAK.search(rest):
        end -= len(hard_break[0])
    if close and text[begin:end].lstrip().startswith(close):
        begin = text.index(close, begin) + len(close)
    elif close and text[begin:end].endswith(close):
        end -= len(close)
    return text[:begin], text[begin:end].strip(), text[end:]


def _without_bullet(text: str) -> str:
    return re.sub(r"^\s*(?:[-*+]\s+)?", "", text).strip()


def _is_placeholder_line(line: MarkdownLine, placeholders: AbstractSet[str]) -> bool:
    return (
        line.kind is LineKind.TEXT
        and any(map(str.isalnum, line.text))
        and is_placeholder(line.text, placeholders)
    )


@dataclass(frozen=True)
class FieldForm:
    """The known fields of a page, filled only where they are empty."""

    labels: Mapping[str, str]
    placeholders: frozenset[str]
    multiline: frozenset[str] = frozenset()  # fields that may go on over several lines
    prose_section: str | None = None  # a section of prose: nothing in it is a field

    def read(self, page: MarkdownPage) -> dict[str, str | None]:
        fields = self.find(page)
        picked = {name: self._pick(page, fields, name) for name in self.labels}
        return {name: self._value(page, field, name) for name, field in picked.items()}

    def find(self, page: MarkdownPage) -> list[Field]:
        prose = page.find_section(self.prose_section) if self.prose_section else None
        return find_fields(page, self.known_labels, prose or range(0))

    def filter_usable(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """The values on one line each, without blanks and placeholders."""
        bare = {name: bare_value(value or "") for name, value in values.items()}
        known = self.placeholders
        return {
            name: value
            for name, value in bare.items()
            if not is_placeholder(value, known)
        }

    def fill(self, page: MarkdownPage, values: Mapping[str, str]) -> MarkdownPage:
        for name, value in values.items():
            page = self._fill_one(page, name, value)
        return page

    def replace(self, page: MarkdownPage, name: str, value: str | None) -> MarkdownPage:
        """Sets one field, whatever it holds; None empties it."""
        fields = self.find(page)
        field = self._pick(page, fields, name)
        if field is None:
            if value is None:
                return page
            label = self.labels[name]
            return insert_field(page, fields, self.known_labels, label, value)
        is_below = is_placeholder(field.value, self.placeholders)
        below = field.lines_below(page)
        kept = [line.text for line in below if not is_below]
        line = f"{field.head} {value or ''}".rstrip() + field.tail
        return page.splice(field.at, field.stop, [line, *kept])

    @cached_property
    def known_labels(self) -> frozenset[str]:
        return frozenset(fold_label(label) for label in self.labels.values())

    def _fill_one(self, page: MarkdownPage, name: str, value: str) -> MarkdownPage:
        """Writes a value where there is none; what people wrote stays."""
        fields = self.find(page)
        field = self._pick(page, fields, name)
        if field is None:
            return insert_field(
                page, fields, self.known_labels, self.labels[name], value
            )
        if self._value(page, field, name):
            return page
        return fill_field(page, field, value, self.placeholders)

    def _value(self, page: MarkdownPage, field: Field | None, name: str) -> str | None:
        if field is None:
            return None
        if name in self.multiline:
            return read_multiline_field(page, field, self.placeholders)
        return read_field(page, field, self.known_labels, self.placeholders)

    def _pick(self, page: MarkdownPage, fields: list[Field], name: str) -> Field | None:
        """The last line that is set, else the last line, in the first section that has one.

        `- Name: Rex` under `## Pets` is not the user's name.
        """
        named = [
            field for field in fields if field.label == fold_label(self.labels[name])
        ]
        named = [field for field in named if field.section == named[0].section]
        filled = [field for field in named if self._value(page, field, name)]
        return next(reversed(filled or named), None)
