"""A markdown page as a list of lines, and plain values to write into it.

Each line keeps its ending, so an edit leaves every other byte as it was. Front matter, fenced
code and comments are recognised and are never taken for text.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, auto
from functools import cached_property
from typing import Self

from aftercall.model.reading import strip_markdown

BOM = "\ufeff"

_LINE = re.compile(r"([^\n]*?)(\r?\n|\Z)")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s|$)")
_RULE = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*$")
_UNDERLINE = re.compile(r" {0,3}=+\s*$")
_YAML_KEY = re.compile(r"""["']?[A-Za-z_][\w ./-]*["']?:(\s|$)""")
_YAML_BODY = re.compile(r"\s|#|$|- (?![*&])")


class LineKind(Enum):
    """What a line of a page is, so that nothing is written into code or a comment."""

    FRONT_MATTER = auto()
    CODE = auto()
    UNCLOSED_CODE = auto()
    COMMENT = auto()
    HEADING = auto()
    RULE = auto()
    BLANK = auto()
    TEXT = auto()


@dataclass(frozen=True)
class MarkdownLine:
    """A line without its end, and the end as the file has it."""

    text: str
    end: str
    kind: LineKind

    @property
    def level(self) -> int:
        """The level of a heading; a rule divides the page like level 2; 0 for other lines."""
        if self.kind is LineKind.RULE:
            return 2
        heading = _HEADING.match(self.text) if self.kind is LineKind.HEADING else None
        return len(heading[1]) if heading else 0

    @property
    def indent(self) -> int:
        expanded = self.text.expandtabs(4)
        return len(expanded) - len(expanded.lstrip())


@dataclass(frozen=True)
class MarkdownPage:
    """A page as lines; an edit leaves every other byte as it was."""

    bom: str
    lines: tuple[MarkdownLine, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The lines of a page; a byte order mark is kept apart."""
        bom = BOM if text.startswith(BOM) else ""
        pairs = split_lines(text[len(bom) :])
        kinds = _classify([line for line, _ in pairs])
        triples = zip(pairs, kinds, strict=True)
        return cls(
            bom, tuple(MarkdownLine(line, end, kind) for (line, end), kind in triples)
        )

    @cached_property
    def text(self) -> str:
        return self.bom + "".join(line.text + line.end for line in self.lines)

    @property
    def ending(self) -> str:
        return next((line.end for line in self.lines if line.end), "\n")

    def splice(self, start: int, stop: int, texts: Sequence[str]) -> Self:
        """The page with other lines at `start` to `stop`; a new line inherits the old ending."""
        ends = [line.end for line in self.lines[start:stop]]
        fresh = [
            (text, ends[at] if at < len(ends) else self.ending)
            for at, text in enumerate(texts)
        ]
        kept = [(line.text, line.end) for line in self.lines]
        pairs = [*kept[:start], *fresh, *kept[stop:]]
        closed = [(text, end or self.ending) for text, end in pairs[:-1]] + pairs[-1:]
        return type(self).parse(self.bom + "".join(text + end for text, end in closed))

    def find_section(self, title: str) -> range | None:
        """The first `## title` section, heading included, up to the next heading or rule."""
        for at, line in enumerate(self.lines):
            is_heading = line.kind is LineKind.HEADING and line.level == 2
            if is_heading and _heading_text(line) == title.casefold():
                return range(at, self.find_next_boundary(at + 1))
        return None

    def find_next_boundary(self, start: int) -> int:
        """The line of the next heading that ends a section, or the end of the page."""
        return next(
            (
                at
                for at in range(start, len(self.lines))
                if self.lines[at].level in (1, 2)
            ),
            len(self.lines),
        )

    def find_text_end(self, start: int, stop: int) -> int:
        """One past the last line in the range that text may follow: not blank, no open code."""
        for at in range(stop, start, -1):
            if self.lines[at - 1].kind not in (LineKind.BLANK, LineKind.UNCLOSED_CODE):
                return at
        return start

    def find_title_end(self) -> int:
        """One past the title; one past the front matter if there is no title."""
        top = sum(line.kind is LineKind.FRONT_MATTER for line in self.lines)
        first = top
        while first < len(self.lines) and self.lines[first].kind is LineKind.BLANK:
            first += 1
        below = self.lines[first + 1].text if first + 1 < len(self.lines) else ""
        if (
            below
            and self.lines[first].kind is LineKind.TEXT
            and _UNDERLINE.match(below)
        ):
            return first + 2
        for at, line in enumerate(self.lines):
            if line.kind is LineKind.HEADING and line.level == 1:
                return at + 1
        return top

    def is_blank(self, at: int) -> bool:
        """A blank line, or beyond the page."""
        return not 0 <= at < len(self.lines) or self.lines[at].kind is LineKind.BLANK


def split_lines(text: str) -> list[tuple[str, str]]:
    """Lines and their endings: LF or CRLF. str.splitlines cuts at more characters."""
    return [(match[1], match[2]) for match in _LINE.finditer(text) if match[0]]


def _heading_text(line: MarkdownLine) -> str:
    return " ".join(line.text.strip(" \t\r#*_:").split()).casefold()


def _classify(texts: list[str]) -> Iterator[LineKind]:
    """The kind of each line, in order."""
    at = _front_matter_end(texts)
    last_close = max(
        (line for line, text in enumerate(texts) if "-->" in text), default=-1
    )
    yield from [LineKind.FRONT_MATTER] * at
    while at < len(texts):
        stop, kind = _next_block(texts, at, last_close)
        yield from [kind] * (stop - at)
        at = stop


def _front_matter_end(texts: list[str]) -> int:
    """Front matter must close and hold YAML; otherwise `---` is a rule."""
    if not texts or texts[0].rstrip() != "---":
        return 0
    close = next(
        (at for at, text in enumerate(texts[1:], 1) if text.rstrip() in ("---", "...")),
        0,
    )
    body = [
        text for text in texts[1:close] if text.strip() and not text.startswith("#")
    ]
    if not body or not _YAML_KEY.match(body[0]):
        return 0
    is_yaml = all(_YAML_KEY.match(text) or _YAML_BODY.match(text) for text in body)
    return close + 1 if is_yaml else 0


def _next_block(texts: list[str], at: int, last_close: int) -> tuple[int, LineKind]:
    """One past the block at `at`, and its kind.

    `last_close` keeps a page full of unclosed comments from taking quadratic time.
    """
    text = texts[at]
    if fence := _FENCE.match(text):
        return _fenced(texts, at, fence[1])
    if (
        at <= last_close
        and text.lstrip().startswith("<!--")
        and (stop := _comment_end(texts, at))
    ):
        return stop, LineKind.COMMENT
    if not text.strip():
        return at + 1, LineKind.BLANK
    if _HEADING.match(text):
        return at + 1, LineKind.HEADING
    return at + 1, LineKind.RULE if _RULE.match(text) else LineKind.TEXT


def _fenced(texts: list[str], at: int, fence: str) -> tuple[int, LineKind]:
    for stop in range(at + 1, len(texts)):
        closing = texts[stop].strip()
        if len(closing) >= len(fence) and not closing.strip(fence[0]):
            return stop + 1, LineKind.CODE
    return len(texts), LineKind.UNCLOSED_CODE


def _comment_end(texts: list[str], at: int) -> int | None:
    """One past the line that closes the comment; None if it never closes and is text."""
    if "-->" in texts[at].partition("<!--")[2]:
        return at + 1
    return next(
        (stop + 1 for stop in range(at + 1, len(texts)) if "-->" in texts[stop]), None
    )


NOT_SET = "not set yet"
USER_PLACEHOLDERS = frozenset(
    {
        NOT_SET,
        "optional",
        (
            "what do they care about? what projects are they working on? what annoys them? what "
            "makes them laugh? build this over time."
        ),
    }
)
IDENTITY_PLACEHOLDERS = frozenset(
    {
        NOT_SET,
        "pick something you like",
        "ai? robot? familiar? ghost in the machine? something weirder?",
        "how do you come across? sharp? warm? chaotic? calm?",
        "your signature - pick one that feels right",
        "workspace-relative path, http(s) url, or data uri",
    }
)
_DASHES = re.compile("[–—]")


def is_placeholder(value: str, known: AbstractSet[str]) -> bool:
    """Whether `value` is blank or one of `known`, with or without emphasis and brackets."""
    bare = _fold(value)
    return not bare or bare in known


def _fold(value: str) -> str:
    bare = value.strip().strip("*_`").strip()
    if bare.startswith("(") and bare.endswith(")"):
        bare = bare[1:-1]
    return " ".join(_DASHES.sub("-", bare).split()).lower()


# Direction marks can make a line read as what it is not.
_TURNING = frozenset("\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_STRUCTURE = re.compile(r"\A(?:#+|>+|`{3,}|~{3,}|[-*+](?=\s)|\s+)+")
_DECORATION = re.compile(r"[-=*_#`~+>\s]*")
_PAIRS = ("***", "**", "*", "___", "__", "_", "`")


def one_line(text: str) -> str:
    """One line without control characters that cannot open a comment."""
    words = (
        "".join(mark for mark in word if _is_writable(mark)) for word in text.split()
    )
    return " ".join(word for word in words if word).replace("<!--", "<! --")


def plain_lines(text: str) -> list[str]:
    """The non-empty lines as plain text: no emphasis, heading, list, quote, code or rule."""
    lines = (
        _STRUCTURE.sub("", strip_markdown(one_line(line))) for line in text.splitlines()
    )
    return [line for line in lines if not _DECORATION.fullmatch(line)]


def escape(text: str) -> str:
    """One line without HTML, links, comments and mentions."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`\[\]|])", r"\\\1", text).replace("@", "@\u200b")


def unescape(text: str) -> str:
    """The words before `escape`."""
    text = re.sub(r"\\([\\`\[\]|])", r"\1", text.replace("@\u200b", "@"))
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def bare_value(text: str) -> str:
    """One line without emphasis or a hard break at its ends, so it reads back unchanged."""
    return one_line(text).lstrip("*_` ").rstrip("*_`\\ ")


def strip_emphasis(value: str) -> str:
    """`*Bill*` becomes Bill; `**a** and **b**` stays."""
    for mark in _PAIRS:
        inner = value[len(mark) : -len(mark)]
        if inner.strip() and value == f"{mark}{inner}{mark}" and mark not in inner:
            return strip_emphasis(inner.strip())
    return value


def replace_undecodable(text: str) -> str:
    """Marks bytes that were not UTF-8, before text leaves its file."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_writable(mark: str) -> bool:
    return mark not in _TURNING and unicodedata.category(mark) not in ("Cc", "Cs")


@dataclass(frozen=True)
class MergedText:
    """A text that two sides have changed, and lines of the other side that found no place."""

    text: str
    left_over: tuple[str, ...] = ()


@dataclass(frozen=True)
class _LineChange:
    """Lines `start` to `stop` of the base became `lines`."""

    start: int
    stop: int
    lines: list[str]

    def overlaps(self, start: int, stop: int) -> bool:
        """Lines put in at the border of a range do not change the range."""
        return self.start < stop and start < self.stop


def merge_texts(base: str | None, own: str, other: str) -> MergedText:
    """Merges line by line what two sides made of `base`.

    Where both changed the same lines, ours stay in place and theirs are left over. Without a
    base, what both have counts as the base, so each side has only added lines.
    """
    ours = own.split("\n")
    theirs = other.split("\n")
    if base is None:
        return MergedText("\n".join(_unite(ours, theirs)))
    return _merge(base.split("\n"), ours, theirs)


def _merge(base: list[str], ours: list[str], theirs: list[str]) -> MergedText:
    """Both changes of a text; what clashes with ours is left over, for the page of conflicts."""
    own = _list_changes(base, ours)
    other = _list_changes(base, theirs)
    merged: list[str] = []
    left_over: list[str] = []
    at = 0
    while own or other:
        start, stop = _find_range(own, other)
        merged += base[at:start]
        one = _apply(base, start, stop, _take(own, start, stop))
        two = _apply(base, start, stop, _take(other, start, stop))
        if start == stop:
            merged += _unite(one, two)
        elif one == base[start:stop]:
            merged += two
        else:
            merged += one
            if two not in (one, base[start:stop]):
                left_over += two
        at = stop
    merged += base[at:]
    return MergedText("\n".join(merged), tuple(left_over))


def _list_changes(base: list[str], side: list[str]) -> list[_LineChange]:
    """The common beginning and end are left out first: comparing takes quadratic time."""
    shorter = min(len(base), len(side))
    head = 0
    while head < shorter and base[head] == side[head]:
        head += 1
    tail = 0
    while tail < shorter - head and base[-1 - tail] == side[-1 - tail]:
        tail += 1
    old = base[head : len(base) - tail]
    new = side[head : len(side) - tail]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        _LineChange(head + i1, head + i2, new[j1:j2])
        for kind, i1, i2, j1, j2 in matcher.get_opcodes()
        if kind != "equal"
    ]


def _find_range(own: list[_LineChange], other: list[_LineChange]) -> tuple[int, int]:
    """The first lines of the base that changed, with all changes that overlap them."""
    first = min([*own[:1], *other[:1]], key=lambda change: (change.start, change.stop))
    start = first.start
    stop = first.stop
    is_growing = True
    while is_growing:
        touched = [one for one in (*own, *other) if one.overlaps(start, stop)]
        reach = max((one.stop for one in touched), default=stop)
        is_growing = reach > stop
        stop = max(stop, reach)
    return start, stop


def _take(changes: list[_LineChange], start: int, stop: int) -> list[_LineChange]:
    """Takes the changes of this range out of the list."""
    taken = []
    while changes and (
        changes[0].overlaps(start, stop)
        or (changes[0].start, changes[0].stop) == (start, stop)
    ):
        taken.append(changes.pop(0))
    return taken


def _apply(
    base: list[str], start: int, stop: int, changes: list[_LineChange]
) -> list[str]:
    """A range of the base with the changes of one side."""
    lines: list[str] = []
    for change in changes:
        lines += base[start : change.start] + change.lines
        start = change.stop
    return lines + base[start:stop]


def _unite(ours: list[str], theirs: list[str]) -> list[str]:
    """All lines of both, in order; lines that both have at the same place once."""
    united: list[str] = []
    at = 0
    for change in _list_changes(ours, theirs):
        united += ours[at : change.stop] + change.lines
        at = change.stop
    return united + ours[at:]
