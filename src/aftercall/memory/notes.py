"""Markdown that somebody kept as memory, as sentences a caller could have said: bullets and paragraphs, in order."""

import re
from collections.abc import Iterator

from aftercall.memory.wording import tokens

LONGEST = 2_000
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$")
_TABLE = re.compile(r"^\s*\|.*\|\s*$")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_FRONT = re.compile(r"\A---\n(?:[\w-]+:.*\n|\s+.*\n)*---\n")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_FIELD = re.compile(r"^(name|what to call them|pronouns|time ?zone|e-?mail|phone|address|birthday|job|employer)\s*:\s*(\S.*)$", re.I)
_SAID_OF_FIELD = {"what to call them": "Please call me {}.", "pronouns": "My pronouns are {}."}
_PLACEHOLDER = re.compile(r"^[*_]*\(.*\)[*_]*$")
_OF_THEM = re.compile(r"^(?:the )?(?:user|caller|owner|customer|client|human)(?P<own>['’]s)?\s+", re.I)
_VERB = re.compile(
    r"^(?P<verb>prefers|likes|loves|hates|dislikes|enjoys|lives|works|has|is|wants|needs|uses|drives|drinks|eats|owns|plays|runs|speaks|"
    r"takes|goes|does|wakes|sleeps|starts|finishes|always|never|usually|can|cannot|can't|doesn't|does not)\b",
    re.I,
)
_ANY_VERB = re.compile(r"^(?P<verb>[a-z'’]+)\b", re.I)
_ENDS_IN_S = re.compile(r"(?<!s)(?<!way)s$")
_PLAIN_VERB = {"has": "have", "is": "am", "does": "do", "goes": "go", "doesn't": "don't", "does not": "do not"}
_THEIR = re.compile(r"\b(?:their|his or her)\b", re.I)


def read_notes(markdown: str) -> Iterator[str]:
    """Each note once, as one line in the first person where it speaks of the user."""
    for note in _blocks(_FRONT.sub("", _COMMENT.sub("", markdown.replace("\r\n", "\n")))):
        text = " ".join(_MARKS.sub("", _LINK.sub(r"\1", note)).split())
        if len(tokens(text)) > 1 and not _PLACEHOLDER.match(text):
            yield in_first_person(text)[:LONGEST]


def in_first_person(note: str) -> str:
    if field := _FIELD.match(note):
        name, value = field[1].lower(), field[2]
        return "" if _PLACEHOLDER.match(value) else _SAID_OF_FIELD.get(name, f"My {name} is {{}}.").format(value)
    told = _OF_THEM.match(note)
    rest = note[told.end() :] if told else note
    if told and told["own"]:
        return f"My {rest}"
    verb = _VERB.match(rest) or (_ANY_VERB.match(rest) if told else None)
    if verb is None:
        return note
    plain = verb["verb"].lower()
    plain = _PLAIN_VERB.get(plain) or (plain[:-1] if _ENDS_IN_S.search(plain) else plain)
    return f"I {plain}{_THEIR.sub('my', rest[verb.end() :])}"


def _blocks(markdown: str) -> Iterator[str]:
    lines: list[str] = []
    in_code = False
    for line in [*markdown.split("\n"), ""]:
        if _FENCE.match(line):
            in_code = not in_code
        starts = bool(_BULLET.match(line))
        ends = starts or in_code or not line.strip() or any(kind.match(line) for kind in (_FENCE, _HEADING, _RULE, _TABLE))
        if ends and lines:
            yield " ".join(lines)
            lines = []
        if starts and not in_code:
            lines = [_BULLET.sub("", line, count=1).strip()]
        elif not ends:
            lines.append(line.strip())
