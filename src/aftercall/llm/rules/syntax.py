"""A regular expression as far as its words can be told: letters, borders between words, and
what may be left out or repeated.

Reads what our patterns are written in and refuses the rest. Python's own parser is not a public
module, and changes with it.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

FEW = 4  # letters of a class that are followed one by one
_COUNTS = re.compile(r"\{(\d*)(,?)(\d*)\}")
_OPENS = re.compile(r"\((?:\?(?:P<\w+>|[aiLmsu-]*:|>|(?P<look><?[=!])))?")
_SKIPPED = re.compile(r"\(\?(?:#[^)]*|[aiLmsu]+)\)")
_REPEATED = re.compile(r"\(\?P=\w+\)|\\[1-9]\d?")
_CODED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_RUN = re.compile(r"[A-Za-z0-9_ ,'’]+(?![*+?{])")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


class Unreadable(Exception):
    """A pattern that is written otherwise: nothing is known of its words."""


@dataclass(frozen=True)
class Letter:
    """One letter or figure that must be there."""

    letter: str


@dataclass(frozen=True)
class Border:
    """A place where a word has ended or not yet begun."""


@dataclass(frozen=True)
class Anything:
    """Something that nothing is known of."""


@dataclass(frozen=True)
class Either:
    branches: "tuple[Sequence, ...]"


@dataclass(frozen=True)
class Repeated:
    body: "Sequence"
    may_be_missing: bool
    may_be_many: bool


Node = Letter | Border | Anything | Either | Repeated
Sequence = tuple[Node, ...]


def read_pattern(pattern: str) -> Sequence:
    """Raises Unreadable."""
    reader = _Reader(pattern)
    whole = reader.read_branches()
    return whole if reader.is_at_end else reader.refuse()


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._pattern)

    def refuse(self) -> NoReturn:
        raise Unreadable(f"at {self._at}")

    def read_branches(self) -> Sequence:
        branches = [self._read_sequence()]
        while self._takes("|"):
            branches.append(self._read_sequence())
        return branches[0] if len(branches) == 1 else (Either(tuple(branches)),)

    def _read_sequence(self) -> Sequence:
        nodes: list[Node] = []
        while not self.is_at_end and self._pattern[self._at] not in "|)":
            if run := _RUN.match(self._pattern, self._at):
                self._at = run.end()
                nodes += map(_spell, run[0])
            elif not (self._pattern[self._at] == "(" and self._takes_whole(_SKIPPED)):
                nodes += self._read_count(self._read_one())
        return tuple(nodes)

    def _read_one(self) -> Sequence:
        if self._pattern[self._at] in "(\\" and self._takes_whole(_REPEATED):
            return (Anything(),)
        match letter := self._next():
            case "(":
                self._at -= 1
                return self._read_group()
            case "[":
                return (self._read_class(),)
            case ".":
                return (Anything(),)
            case "^" | "$":
                return (Border(),)
            case "\\":
                self._at -= 1
                return self._read_escape()
            case "*" | "+" | "?":
                self.refuse()
        return (_spell(letter),)

    def _read_group(self) -> Sequence:
        opens = _OPENS.match(self._pattern, self._at) or self.refuse()
        self._at = opens.end()
        if self._pattern[self._at : self._at + 1] == "?":
            self.refuse()
        body = self.read_branches()
        if not self._takes(")"):
            self.refuse()
        if opens["look"] is None:
            return (Either((body,)),)
        return (Border(),) if opens["look"] == "=" and _begins_at_border(body) else ()

    def _read_escape(self) -> Sequence:
        if coded := _CODED.match(self._pattern, self._at):
            self._at = coded.end()
            return (_spell(chr(int(coded[1] or coded[2] or coded[3], 16))),)
        self._at += 1
        match letter := self._next():
            case "b" | "A" | "Z" | "s" | "W":
                return (Border(),)
            case "B":
                return ()
            case "d" | "D" | "w" | "S":
                return (Anything(),)
        if letter in _PLAIN:
            return (Border(),)
        return self.refuse() if letter.isalnum() else (_spell(letter),)

    def _read_class(self) -> Node:
        is_open = self._takes("^")
        members: list[Node] = []
        while not members or self._pattern[self._at : self._at + 1] != "]":
            is_open |= self._read_member(members)
        self._at += 1
        if is_open or Anything() in members:
            return Anything()
        letters = list(dict.fromkeys(members))
        if letters == [Border()]:
            return Border()
        return (
            Either(tuple((letter,) for letter in letters))
            if len(letters) <= FEW
            else Anything()
        )

    def _read_member(self, members: list[Node]) -> bool:
        """Whether it is a range, whose letters are not followed.

        A backspace is written as a border is elsewhere; it is none here.
        """
        if self._pattern[self._at : self._at + 1] == "\\":
            members += self._read_escape() or (Anything(),)
        else:
            members.append(_spell(self._next()))
        is_range = self._pattern[self._at : self._at + 1] == "-" and self._pattern[
            self._at + 1 : self._at + 2
        ] not in ("]", "")
        self._at += is_range
        return is_range

    def _read_count(self, nodes: Sequence) -> Sequence:
        counted = _COUNTS.match(self._pattern, self._at)
        if counted and (counted[1] or counted[2]):
            self._at = counted.end()
            most = counted[3] if counted[2] else counted[1]
            repeated = Repeated(
                nodes, not int(counted[1] or 0), not most or int(most) > 1
            )
        elif not self.is_at_end and self._pattern[self._at] in "*+?":
            sign = self._next()
            repeated = Repeated(nodes, sign != "+", sign != "?")
        else:
            return nodes
        if not self.is_at_end and self._pattern[self._at] in "?+":
            self._at += 1
        return (repeated,)

    def _takes(self, letter: str) -> bool:
        is_next = self._pattern[self._at : self._at + 1] == letter
        self._at += is_next
        return is_next

    def _takes_whole(self, wanted: re.Pattern[str]) -> bool:
        found = wanted.match(self._pattern, self._at)
        self._at = found.end() if found else self._at
        return found is not None

    def _next(self) -> str:
        if self.is_at_end:
            self.refuse()
        self._at += 1
        return self._pattern[self._at - 1]


@cache
def _spell(letter: str) -> Node:
    """Letters beyond the plain ones have forms that match each other in ways of their own: they
    are not followed.
    """
    if not (letter.isalnum() or letter == "_"):
        return Border()
    return Letter(letter.lower()) if letter.isascii() else Anything()


def _begins_at_border(body: Sequence) -> bool:
    match body[:1]:
        case (Border(),):
            return True
        case (Either(branches),):
            return all(_begins_at_border(branch) for branch in branches)
    return False
