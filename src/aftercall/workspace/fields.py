"""Field lines of a markdown page, `- **Label:** value`: found, read and filled in place.

A field line stands at the top level; lines indented below it are its own, nested bullets included. The label ends at
the first colon, its emphasis does not count. Which labels and placeholders there are is for the page's owner to say.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from textwrap import dedent

from aftercall.workspace.lines import Kind, Line, Page
from aftercall.workspace.placeholders import is_placeholder
from aftercall.workspace.values import readable, strip_emphasis

_LEAD = re.compile(r"(\s*)((?:[-*+]|\d{1,9}[.)])\s+)?([*_]{0,3})")
_LABEL = re.compile(r"\w[\w '’/&().?-]{0,40}")
_HARD_BREAK = re.compile(r" {2,}$|\\$")
_DEEPEST = 3  # four spaces make code, not a list


@dataclass(frozen=True)
class Field:
    label: str
    at: int
    stop: int  # one past the last line that belongs to it
    section: int
    indent: str
    bullet: str
    mark: str  # the emphasis around the label
    head: str  # the line up to the value
    value: str
    tail: str  # what closes the line: a hard break, or the emphasis around label and value together

    def like(self, label: str, value: str) -> str:
        """A line for another field in this one's dress."""
        return f"{self.indent}{self.bullet}{self.mark}{label}:{self.mark[::-1]} {value}"


def find_fields(page: Page, known: AbstractSet[str], skip: range = range(0)) -> list[Field]:
    """Every field line in order, those of unknown labels too; none from the lines of `skip`. `known` labels are folded."""
    fields: list[Field] = []
    section, owner, is_open = 0, -1, False
    for at, line in enumerate(page.lines):
        if line.level:
            section, owner, is_open = section + 1, -1, False
        elif line.kind in (Kind.BLANK, Kind.FRONT_MATTER):
            continue
        elif 0 <= owner < line.indent:
            if is_open:
                fields[-1] = replace(fields[-1], stop=at + 1)
        else:
            owner = line.indent
            field = _parse_line(line, known, at, section) if at not in skip and owner <= _DEEPEST else None
            is_open = field is not None
            fields += [field] if field else []
    return fields


def read_field(page: Page, field: Field, known: AbstractSet[str], placeholders: AbstractSet[str]) -> str | None:
    """The value on the field's own line, else on an indented line below it; never across another field line."""
    if not is_placeholder(field.value, placeholders):
        return readable(strip_emphasis(field.value))
    for line in page.lines[field.at + 1 : field.stop]:
        if line.kind is not Kind.TEXT:
            continue
        if _parse_line(line, known, 0, 0):
            return None
        value = _without_bullet(line.text)
        if not is_placeholder(value, placeholders):
            return readable(strip_emphasis(value))
    return None


def read_whole(page: Page, field: Field, placeholders: AbstractSet[str]) -> str | None:
    """The value with every line that belongs to it."""
    silent = (Kind.BLANK, Kind.COMMENT)
    own = [line for line in page.lines[field.at + 1 : field.stop] if line.kind not in silent and not _is_spent(line, placeholders)]
    below = dedent("\n".join(line.text.rstrip() for line in own))
    first = "" if is_placeholder(field.value, placeholders) else field.value
    return readable(strip_emphasis("\n".join(text for text in (first, below) if text))) or None


def fill_field(page: Page, field: Field, value: str, placeholders: AbstractSet[str]) -> Page:
    """`value` on the field's own line; a placeholder there or below it goes, every other line stays."""
    below = [line.text for line in page.lines[field.at + 1 : field.stop] if not _is_spent(line, placeholders)]
    return page.splice(field.at, field.stop, [f"{field.head} {value}{field.tail}", *below])


def insert_field(page: Page, fields: list[Field], known: AbstractSet[str], label: str, value: str) -> Page:
    """A line for a field that the page lacks: after the last field line, else after the title."""
    home = next((field.section for field in reversed(fields) if field.label in known), fields[0].section if fields else None)
    last = next((field for field in reversed(fields) if field.section == home), None)
    if last:
        return page.splice(last.stop, last.stop, [last.like(label, value)])
    at = page.after_title()
    above = [] if at == 0 or page.is_blank(at - 1) else [""]
    below = [] if page.is_blank(at) else [""]
    return page.splice(at, at, [*above, f"- **{label}:** {value}", *below])


def fold_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def _parse_line(line: Line, known: AbstractSet[str], at: int, section: int) -> Field | None:
    lead = _LEAD.match(line.text)
    name, colon, rest = line.text[lead.end() :].partition(":") if lead else ("", "", "")
    label = fold_label(name.strip("*_ \t"))
    if line.kind is not Kind.TEXT or lead is None or not colon or not label:
        return None
    indent, bullet, mark = lead[1], lead[2] or "", lead[3]
    head, value, tail = _split_value(line.text, rest, "" if name.rstrip().endswith(mark) else mark)
    is_dressed = bool((bullet or mark) and _LABEL.fullmatch(label) and (not rest.strip("*_") or rest.lstrip("*_")[:1].isspace()))
    if label not in known and not is_dressed:
        return None
    return Field(label, at, at + 1, section, indent, bullet, mark, head, value, tail)


def _split_value(text: str, rest: str, mark: str) -> tuple[str, str, str]:
    """Head, value and tail of a line whose label leaves the emphasis `mark` open and whose `rest` follows the colon."""
    close, begin, end = mark[::-1], len(text) - len(rest), len(text)
    if hard_break := _HARD_BREAK.search(rest):
        end -= len(hard_break[0])
    if close and text[begin:end].lstrip().startswith(close):
        begin = text.index(close, begin) + len(close)
    elif close and text[begin:end].endswith(close):
        end -= len(close)
    return text[:begin], text[begin:end].strip(), text[end:]


def _without_bullet(text: str) -> str:
    return re.sub(r"^\s*(?:[-*+]\s+)?", "", text).strip()


def _is_spent(line: Line, placeholders: AbstractSet[str]) -> bool:
    return line.kind is Kind.TEXT and any(map(str.isalnum, line.text)) and is_placeholder(line.text, placeholders)
