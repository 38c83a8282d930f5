"""Imports existing notes as calls: one call for a file, several for a long one.

The same file of the same owner is imported once.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from pathlib import Path

from aftercall.clock import EARLIEST
from aftercall.db.statements import chunked
from aftercall.errors import ConfigError, NotFound, RefusedInput
from aftercall.memory.words import tokens
from aftercall.model.calls import IMPORTED, Call, parse_call
from aftercall.model.facts import MemoryKey
from aftercall.settings import Settings

MAX_NOTE_CHARS = 2_000
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$")
_TABLE = re.compile(r"^\s*\|.*\|\s*$")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_FRONT = re.compile(r"\A---\n(?:[\w-]+:.*\n|\s+.*\n)*---\n")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_FIELD = re.compile(
    "^(name|what to call them|pronouns|time ?zone|e-?mail|phone|address|birthday|job"
    r"|employer)\s*:\s*(\S.*)$",
    re.I,
)
_FIELD_SENTENCES = {
    "what to call them": "Please call me {}.",
    "pronouns": "My pronouns are {}.",
}
_PLACEHOLDER = re.compile(r"^[*_]*\(.*\)[*_]*$")
_OF_THEM = re.compile(
    r"^(?:the )?(?:user|caller|owner|customer|client|human)(?P<own>['’]s)?\s+", re.I
)
_VERB = re.compile(
    "^(?P<verb>prefers|likes|loves|hates|dislikes|enjoys|lives|works|has|is|wants|needs|uses"
    "|drives|drinks|eats|owns|plays|runs|speaks|"
    "takes|goes|does|wakes|sleeps|starts|finishes|always|never|usually|can|cannot|can't"
    r"|doesn't|does not)\b",
    re.I,
)
_ANY_VERB = re.compile(r"^(?P<verb>[a-z'’]+)\b", re.I)
_ENDS_IN_S = re.compile(r"(?<!s)(?<!way)s$")
_PLAIN_VERB = {"has": "have", "is": "am", "does": "do", "goes": "go"}
_PLAIN_VERB |= {"doesn't": "don't", "does not": "do not"}
_THEIR = re.compile(r"\b(?:their|his or her)\b", re.I)


def read_notes(markdown: str) -> Iterator[str]:
    """Each note as one line, in the first person if it is about the user."""
    body = _FRONT.sub("", _COMMENT.sub("", markdown.replace("\r\n", "\n")))
    for note in _split_blocks(body):
        text = " ".join(_MARKS.sub("", _LINK.sub(r"\1", note)).split())
        if len(tokens(text)) > 1 and not _PLACEHOLDER.match(text):
            yield to_first_person(text)[:MAX_NOTE_CHARS]


def to_first_person(note: str) -> str:
    if field := _FIELD.match(note):
        name = field[1].lower()
        value = field[2]
        if _PLACEHOLDER.match(value):
            return ""
        return _FIELD_SENTENCES.get(name, f"My {name} is {{}}.").format(value)
    subject = _OF_THEM.match(note)
    rest = note[subject.end() :] if subject else note
    if subject and subject["own"]:
        return f"My {rest}"
    verb = _VERB.match(rest) or (_ANY_VERB.match(rest) if subject else None)
    if verb is None:
        return note
    plain = verb["verb"].lower()
    plain = _PLAIN_VERB.get(plain) or (
        plain[:-1] if _ENDS_IN_S.search(plain) else plain
    )
    return f"I {plain}{_THEIR.sub('my', rest[verb.end() :])}"


def _split_blocks(markdown: str) -> Iterator[str]:
    lines: list[str] = []
    in_code = False
    for line in [*markdown.split("\n"), ""]:
        if _FENCE.match(line):
            in_code = not in_code
        starts = bool(_BULLET.match(line))
        is_no_text = any(kind.match(line) for kind in (_FENCE, _HEADING, _RULE, _TABLE))
        ends = starts or in_code or not line.strip() or is_no_text
        if ends and lines:
            yield " ".join(lines)
            lines = []
        if starts and not in_code:
            lines = [_BULLET.sub("", line, count=1).strip()]
        elif not ends:
            lines.append(line.strip())


NOTES_PER_CALL = 200
MAX_FILE_BYTES = 5_000_000
_SHARED_MEMORY_CALLER = "client:import"  # the caller of notes in a shared memory
_DAY = re.compile(r"(20\d\d)-(\d\d)-(\d\d)")
# Files of an agent's workspace that instruct the agent and say nothing about its user.
_INSTRUCTIONS = frozenset(
    {
        "AGENTS.md",
        "SOUL.md",
        "TOOLS.md",
        "HEARTBEAT.md",
        "BOOTSTRAP.md",
        "IDENTITY.md",
        "CALLS.md",
    }
)
_WORKSPACE_SIGNS = ("AGENTS.md", "SOUL.md", "MEMORY.md")


def resolve_note_owner(settings: Settings, caller: str | None) -> MemoryKey:
    """The named caller, else the owner, else all callers of a shared memory."""
    if settings.memory.scope == "none":
        raise ConfigError(
            "memory.scope: is `none`, so nothing can be remembered; set per_caller or shared"
        )
    known = caller or settings.owner
    if not known and settings.memory.scope == "shared":
        known = _SHARED_MEMORY_CALLER
    if not known:
        raise ConfigError(
            "--caller: whose notes are these? Name a number, or set `owner`"
        )
    return MemoryKey(settings.agent_id, known)


def find_note_files(path: Path) -> list[Path]:
    """Markdown under `path`; of an agent's workspace only files about its user."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFound(f"{path}: there is no such file or folder")
    files = []
    for file in sorted(path.rglob("*.md")):
        parts = file.relative_to(path).parts
        if file.is_file() and not any(part.startswith(".") for part in parts):
            files.append(file)
    has_signs = any((path / sign).is_file() for sign in _WORKSPACE_SIGNS)
    if has_signs or (path / "memory").is_dir():
        kept = ("MEMORY.md", "USER.md", "memory", "people")
        return [file for file in files if file.relative_to(path).parts[0] in kept]
    return [file for file in files if file.name not in _INSTRUCTIONS]


def to_calls(
    file: Path, who: MemoryKey, settings: Settings, now: datetime
) -> Iterator[Call]:
    """The calls of a file. Their ids are hashes of its content and owner: importing it again gives
    the same calls.
    """
    raw = _read(file)
    notes = [note for note in read_notes(raw.decode("utf-8", "replace")) if note]
    owner = "\0".join(who).encode()
    name = sha256(owner + b"\0" + raw).hexdigest()[:40]
    started = min(_find_date(file, settings), now)
    for part, chunk in enumerate(chunked(notes, NOTES_PER_CALL)):
        yield _to_call(chunk, f"{name}.{part}", who, started, file.name)


def _to_call(
    notes: Sequence[str], sid: str, who: MemoryKey, started: datetime, title: str
) -> Call:
    said = [
        ("agent", f"What do the notes {title} say?"),
        *(("caller", note) for note in notes),
        ("agent", "Noted."),
    ]
    turns = [
        {
            "speaker": speaker,
            "text": text,
            "at": (started + timedelta(seconds=second)).isoformat(),
        }
        for second, (speaker, text) in enumerate(said)
    ]
    return parse_call(
        {
            "source": IMPORTED,
            "sid": sid,
            "agent_id": who.agent_id,
            "caller": who.caller,
            "started_at": started.isoformat(),
            "ended_at": (started + timedelta(seconds=len(said))).isoformat(),
            "end_reason": "imported",
            "turns": turns,
            "metadata": {"file": title},
        }
    )


def _read(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise RefusedInput(
                str(file), f"is larger than {MAX_FILE_BYTES:,} bytes; split it"
            )
        return file.read_bytes()
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None


def _find_date(file: Path, settings: Settings) -> datetime:
    """Noon of the day in the file's name; else when the file was last changed."""
    if found := _DAY.search(file.name):
        with suppress(ValueError):
            day = date(*map(int, found.groups()))
            return datetime.combine(day, time(12), settings.zone).astimezone(UTC)
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).replace(microsecond=0)
    return max(changed, EARLIEST)
