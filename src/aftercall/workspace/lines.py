"""A markdown page as a list of lines, each with its own ending, so that an edit leaves every
other byte as it was.

Knows what must not be taken for text: front matter, fenced code and comments. Knows nothing of
fields.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Self

BOM = "\ufeff"

_LINE = re.compile(r"([^\n]*?)(\r?\n|\Z)")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s|$)")
_RULE = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*$")
_UNDERLINE = re.compile(r" {0,3}=+\s*$")
_YAML_KEY = re.compile(r"""["']?[A-Za-z_][\w ./-]*["']?:(\s|$)""")
_YAML_BODY = re.compile(r"\s|#|$|- (?![*&])")


class LineKind(Enum):
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
    text: str
    end: str
    kind: LineKind

    @property
    def level(self) -> int:
        """The level of a heading; a rule parts the page like a heading of the second level; 0
        for everything else.
        """
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
    bom: str
    lines: tuple[MarkdownLine, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        bom = BOM if text.startswith(BOM) else ""
        pairs = split_lines(text[len(bom) :])
        kinds = _classify([line for line, _ in pairs])
        return cls(
            bom,
            tuple(
                MarkdownLine(line, end, kind)
                for (line, end), kind in zip(pairs, kinds, strict=True)
            ),
        )

    @cached_property
    def text(self) -> str:
        return self.bom + "".join(line.text + line.end for line in self.lines)

    @property
    def ending(self) -> str:
        return next((line.end for line in self.lines if line.end), "\n")

    def splice(self, start: int, stop: int, texts: Sequence[str]) -> Self:
        """The page with other lines at `start` to `stop`; a line that is replaced passes its
        ending on.
        """
        ends = [line.end for line in self.lines[start:stop]]
        fresh = [
            (text, ends[at] if at < len(ends) else self.ending) for at, text in enumerate(texts)
        ]
        kept = [(line.text, line.end) for line in self.lines]
        pairs = [*kept[:start], *fresh, *kept[stop:]]
        closed = [(text, end or self.ending) for text, end in pairs[:-1]] + pairs[-1:]
        return type(self).parse(self.bom + "".join(text + end for text, end in closed))

    def find_section(self, title: str) -> range | None:
        """The lines of the first `## title` section, heading included, up to the next heading
        of level 1 or 2, or a rule.
        """
        for at, line in enumerate(self.lines):
            if (
                line.kind is LineKind.HEADING
                and line.level == 2
                and _heading_text(line) == title.casefold()
            ):
                return range(at, self.find_next_boundary(at + 1))
        return None

    def find_next_boundary(self, start: int) -> int:
        return next(
            (at for at in range(start, len(self.lines)) if self.lines[at].level in (1, 2)),
            len(self.lines),
        )

    def find_text_end(self, start: int, stop: int) -> int:
        """One past the last line from `start` to `stop` after which text may stand: no blank,
        nothing in unclosed code.
        """
        for at in range(stop, start, -1):
            if self.lines[at - 1].kind not in (LineKind.BLANK, LineKind.UNCLOSED_CODE):
                return at
        return start

    def find_title_end(self) -> int:
        """One past the title; one past the front matter where there is no title."""
        top = next(
            (at for at, line in enumerate(self.lines) if line.kind is not LineKind.FRONT_MATTER),
            len(self.lines),
        )
        first = next(
            (at for at in range(top, len(self.lines)) if self.lines[at].kind is not LineKind.BLANK),
            top,
        )
        if (
            first + 1 < len(self.lines)
            and self.lines[first].kind is LineKind.TEXT
            and _UNDERLINE.match(self.lines[first + 1].text)
        ):
            return first + 2
        titles = (
            at
            for at, line in enumerate(self.lines)
            if line.kind is LineKind.HEADING and line.level == 1
        )
        return next((at + 1 for at in titles), top)

    def is_blank(self, at: int) -> bool:
        """Whether nothing stands at `at`: a blank line, or an end of the page."""
        return not 0 <= at < len(self.lines) or self.lines[at].kind is LineKind.BLANK


def split_lines(text: str) -> list[tuple[str, str]]:
    """Lines and their endings.

    Only LF and CRLF end a line: str.splitlines would also cut at characters that people paste.
    """
    return [(match[1], match[2]) for match in _LINE.finditer(text) if match[0]]


def _heading_text(line: MarkdownLine) -> str:
    return " ".join(line.text.strip(" \t\r#*_:").split()).casefold()


def _classify(texts: list[str]) -> Iterator[LineKind]:
    at = _front_matter_end(texts)
    last_close = max((line for line, text in enumerate(texts) if "-->" in text), default=-1)
    yield from [LineKind.FRONT_MATTER] * at
    while at < len(texts):
        stop, kind = _next_block(texts, at, last_close)
        yield from [kind] * (stop - at)
        at = stop


def _front_matter_end(texts: list[str]) -> int:
    """Front matter only if it closes and holds YAML; a page may as well begin with a rule."""
    if not texts or texts[0].rstrip() != "---":
        return 0
    close = next((at for at, text in enumerate(texts[1:], 1) if text.rstrip() in ("---", "...")), 0)
    body = [text for text in texts[1:close] if text.strip() and not text.startswith("#")]
    holds_yaml = (
        bool(body)
        and bool(_YAML_KEY.match(body[0]))
        and all(_YAML_KEY.match(text) or _YAML_BODY.match(text) for text in body)
    )
    return close + 1 if holds_yaml else 0


def _next_block(texts: list[str], at: int, last_close: int) -> tuple[int, LineKind]:
    """One past the block at `at`, and its kind; `last_close` spares a page full of unclosed
    comments the search.
    """
    text = texts[at]
    if fence := _FENCE.match(text):
        return _fenced(texts, at, fence[1])
    if at <= last_close and text.lstrip().startswith("<!--") and (stop := _comment_end(texts, at)):
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
    """One past the line that closes the comment; a comment that never closes is taken for text."""
    if "-->" in texts[at].partition("<!--")[2]:
        return at + 1
    return next((stop + 1 for stop in range(at + 1, len(texts)) if "-->" in texts[stop]), None)
