"""CALLS.md: a heading with time and caller, and a summary, for each of the last calls.

The newest call is last. What came over the phone is escaped, so it cannot pass for markdown. An
entry ends with an invisible comment that names its call, so writing a call twice adds one entry,
and two calls of the same minute and words stay two.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Self

from aftercall.model.calls import Call, Direction
from aftercall.model.people import split_party
from aftercall.workspace.markdown import (
    BOM,
    escape,
    plain_lines,
    replace_undecodable,
    split_lines,
    unescape,
)

HEADER = "# Call History\n"
WITHHELD = "withheld"
MAX_SUMMARY_CHARS = 4_000
MAX_HEADING_CHARS = 500

# Older files have an em dash where ours have two hyphens.
_HEADING = re.compile(
    r"### (?P<when>\S.*?)(?: -- | ?[—–] ?)(?P<who>\S.*?) \((?P<direction>inbound|outbound)\)\s*"
)
_OTHER_SECTION = re.compile(r"##?(\s|$)")
_MARK = re.compile(r"<!-- call: ([A-Za-z0-9_-]+) -->\s*")
_CLOCK = "%m/%d/%Y, %I:%M %p"


@dataclass(frozen=True)
class CallsMdEntry:
    when: str
    who: str
    direction: Direction
    summary: str
    call_id: str | None = None

    @classmethod
    def from_call(cls, call: Call, summary: str, zone: tzinfo) -> Self:
        other = call.callee if call.direction == "outbound" else call.caller
        who = split_party(other)[0] if other else WITHHELD
        when = format_time(call.ended_at, zone)
        return cls(when, who, call.direction, plain_summary(summary), call.id)

    @property
    def text(self) -> str:
        mark = f"<!-- call: {self.call_id} -->\n" if self.call_id else ""
        heading = f"### {self.when} -- {escape(self.who)} ({self.direction})"
        return f"{heading}\n\n{escape(self.summary)}\n{mark}"

    def is_later_than(self, other: "CallsMdEntry") -> bool:
        """By the minute in the heading; an unreadable one is never later."""
        mine = _read_time(self.when)
        theirs = _read_time(other.when)
        return mine is not None and theirs is not None and mine > theirs


@dataclass(frozen=True)
class _Block:
    """Lines of the file, none yet for a new entry; `entry` if they belong to a call."""

    text: str
    entry: CallsMdEntry | None


def add_call(
    text: str | None, call: Call, summary: str, zone: tzinfo, max_entries: int
) -> str | None:
    """The file with the call at its place in time."""
    return append(text, CallsMdEntry.from_call(call, summary, zone), max_entries)


def append(text: str | None, entry: CallsMdEntry, max_entries: int) -> str | None:
    """The file with `entry` at its place in time, trimmed to the last `max_entries`.

    An entry of the same call stays as it is: a person may have edited it. An empty summary adds
    nothing.
    """
    blocks = list(_split(text or HEADER))
    known = {block.entry.call_id for block in blocks if block.entry}
    if entry.summary and (entry.call_id is None or entry.call_id not in known):
        blocks = _insert(blocks, entry)
    joined = _join(_trim(blocks, max_entries))
    return text if joined == (text or HEADER) else joined


def remove(text: str | None, call_ids: set[str], who: str) -> str | None:
    """The file without the entries of these calls and of this caller."""
    kept = [
        block
        for block in _split(text or "")
        if not (
            block.entry and (block.entry.call_id in call_ids or block.entry.who == who)
        )
    ]
    return "".join(block.text for block in kept) if text else text


def rewrite_summary(
    text: str | None, call_id: str, clean: Callable[[str], str]
) -> str | None:
    """The file with each line of one call's summary passed through `clean`, as it was said."""
    blocks = [
        _reword(block, clean)
        if block.entry and block.entry.call_id == call_id
        else block.text
        for block in _split(text or "")
    ]
    return "".join(blocks) if text else text


def _reword(block: _Block, clean: Callable[[str], str]) -> str:
    heading, *body = split_lines(block.text)
    text = "".join(heading)
    for line, end in body:
        said = unescape(line)
        is_kept = _MARK.fullmatch(line.rstrip()) or clean(said) == said
        text += (line if is_kept else escape(clean(said))) + end
    return text


def parse(text: str | None) -> list[CallsMdEntry]:
    return [block.entry for block in _split(text or "") if block.entry]


def plain_summary(summary: str) -> str:
    lines = "\n".join(plain_lines(summary))
    if len(lines) <= MAX_SUMMARY_CHARS:
        return lines
    return lines[:MAX_SUMMARY_CHARS].rsplit(maxsplit=1)[0] + " …"


def format_time(instant: datetime, zone: tzinfo) -> str:
    local = instant.astimezone(zone)
    half = "AM" if local.hour < 12 else "PM"
    return f"{local:%m/%d/%Y}, {local.hour % 12 or 12}:{local:%M} {half}"


def _insert(blocks: list[_Block], entry: CallsMdEntry) -> list[_Block]:
    """After the last entry that is not later: a late summary must not look like the newest."""
    entries = [(at, block.entry) for at, block in enumerate(blocks) if block.entry]
    place = entries[0][0] if entries else len(blocks)
    for at, known in reversed(entries):
        if not known.is_later_than(entry):
            place = at + 1
            break
    return [*blocks[:place], _Block("", entry), *blocks[place:]]


def _trim(blocks: list[_Block], keep: int) -> list[_Block]:
    entries = [at for at, block in enumerate(blocks) if block.entry]
    dropped = set(entries[: max(len(entries) - keep, 0)])
    return [block for at, block in enumerate(blocks) if at not in dropped]


def _join(blocks: list[_Block]) -> str:
    """The text; a new entry gets a blank line before it and, if something follows, after it."""
    text = ""
    for at, block in enumerate(blocks):
        text += block.text or _separate(
            text, block.entry, is_last=at + 1 == len(blocks)
        )
    return text


def _separate(above: str, entry: CallsMdEntry | None, *, is_last: bool) -> str:
    end = "\r\n" if "\r\n" in above else "\n"
    tail = above[-4:].replace("\r\n", "\n")
    gap = max(0, 2 - (len(tail) - len(tail.rstrip("\n"))))
    fresh = entry.text.replace("\n", end) if entry else ""
    return (end * gap if above.strip(BOM) else "") + fresh + ("" if is_last else end)


def _split(text: str) -> Iterator[_Block]:
    """The header, the entries, and sections that a person put among them."""
    lines: list[str] = []
    is_entry = False
    for line, end in split_lines(text):
        begins = _read_heading(line) is not None
        if lines and (begins or (is_entry and _OTHER_SECTION.match(line))):
            yield _block(lines)
            lines = []
            is_entry = False
        is_entry = is_entry or begins
        lines.append(line + end)
    if lines:
        yield _block(lines)


def _block(lines: list[str]) -> _Block:
    heading = _read_heading(lines[0])
    if heading is None:
        return _Block("".join(lines), None)
    body = [line.rstrip() for line in lines[1:]]
    marks = [mark[1] for line in body if (mark := _MARK.fullmatch(line))]
    summary = "\n".join(line for line in body if not _MARK.fullmatch(line)).strip()
    direction: Direction = (
        "inbound" if heading["direction"] == "inbound" else "outbound"
    )
    call_id = marks[-1] if marks else None
    entry = CallsMdEntry(
        heading["when"],
        unescape(heading["who"]),
        direction,
        unescape(replace_undecodable(summary)),
        call_id,
    )
    return _Block("".join(lines), entry)


def _read_heading(line: str) -> re.Match[str] | None:
    """Skips long lines: the pattern takes quadratic time on a line full of dashes."""
    return (
        _HEADING.fullmatch(line.removeprefix(BOM))
        if len(line) <= MAX_HEADING_CHARS
        else None
    )


def _read_time(when: str) -> datetime | None:
    try:
        return datetime.strptime(when, _CLOCK)  # noqa: DTZ007 (local time, as the file shows it)
    except ValueError:
        return None
