"""Notes that exist already, taken in as calls: one file, one call (or several, if it is long),
the same file once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from hashlib import sha256
from pathlib import Path

from aftercall.clock import EARLIEST
from aftercall.errors import ConfigError, NotFound, RefusedInput
from aftercall.memory.wording import tokens
from aftercall.model.calls import IMPORTED, Call, parse_call
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
_SAID_OF_FIELD = {"what to call them": "Please call me {}.", "pronouns": "My pronouns are {}."}
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
_PLAIN_VERB = {
    "has": "have",
    "is": "am",
    "does": "do",
    "goes": "go",
    "doesn't": "don't",
    "does not": "do not",
}
_THEIR = re.compile(r"\b(?:their|his or her)\b", re.I)


def read_notes(markdown: str) -> Iterator[str]:
    """Each note once, as one line in the first person where it speaks of the user."""
    for note in _blocks(_FRONT.sub("", _COMMENT.sub("", markdown.replace("\r\n", "\n")))):
        text = " ".join(_MARKS.sub("", _LINK.sub(r"\1", note)).split())
        if len(tokens(text)) > 1 and not _PLACEHOLDER.match(text):
            yield to_first_person(text)[:MAX_NOTE_CHARS]


def to_first_person(note: str) -> str:
    if field := _FIELD.match(note):
        name, value = field[1].lower(), field[2]
        return (
            ""
            if _PLACEHOLDER.match(value)
            else _SAID_OF_FIELD.get(name, f"My {name} is {{}}.").format(value)
        )
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
        ends = (
            starts
            or in_code
            or not line.strip()
            or any(kind.match(line) for kind in (_FENCE, _HEADING, _RULE, _TABLE))
        )
        if ends and lines:
            yield " ".join(lines)
            lines = []
        if starts and not in_code:
            lines = [_BULLET.sub("", line, count=1).strip()]
        elif not ends:
            lines.append(line.strip())


NOTES_PER_CALL = 200
MAX_FILE_BYTES = 5_000_000
_SHARED_MEMORY_CALLER = "client:import"  # who speaks in a memory that is everybody's
_DAY = re.compile(r"(20\d\d)-(\d\d)-(\d\d)")
# In an agent's workspace these instruct the agent, and say nothing of its user.
_INSTRUCTIONS = frozenset(
    {"AGENTS.md", "SOUL.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md", "IDENTITY.md", "CALLS.md"}
)
_WORKSPACE_SIGNS = ("AGENTS.md", "SOUL.md", "MEMORY.md")


@dataclass(frozen=True)
class NoteOwner:
    agent_id: str
    caller: str


def resolve_note_owner(settings: Settings, caller: str | None) -> NoteOwner:
    """Notes belong to somebody: the caller that is named, the owner, or everybody where memory
    is shared.
    """
    if settings.memory.scope == "none":
        raise ConfigError(
            "memory.scope: is `none`, so nothing can be remembered; set per_caller or shared"
        )
    known = (
        caller
        or settings.owner
        or (_SHARED_MEMORY_CALLER if settings.memory.scope == "shared" else None)
    )
    if known is None:
        raise ConfigError("--caller: whose notes are these? Name a number, or set `owner`")
    return NoteOwner(settings.agent_id, known)


def find_note_files(path: Path) -> list[Path]:
    """Markdown under `path`; of an agent's workspace only what tells of its user."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFound(f"{path}: there is no such file or folder")
    files = sorted(
        file
        for file in path.rglob("*.md")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if any((path / sign).is_file() for sign in _WORKSPACE_SIGNS) or (path / "memory").is_dir():
        kept = (path / "MEMORY.md", path / "USER.md")
        return [
            file
            for file in files
            if file in kept or file.relative_to(path).parts[0] in ("memory", "people")
        ]
    return [file for file in files if file.name not in _INSTRUCTIONS]


def to_calls(file: Path, who: NoteOwner, settings: Settings, now: datetime) -> Iterator[Call]:
    """The calls that a file becomes; their names come from what it says and whose it is, so the
    same again is known.
    """
    raw = _read(file)
    notes = [note for note in read_notes(raw.decode("utf-8", "replace")) if note]
    name = sha256("\0".join((who.agent_id, who.caller)).encode() + b"\0" + raw).hexdigest()[:40]
    started = min(_date(file, settings), now)
    for part, first in enumerate(range(0, len(notes), NOTES_PER_CALL)):
        yield _to_call(
            notes[first : first + NOTES_PER_CALL], f"{name}.{part}", who, started, file.name
        )


def _to_call(notes: list[str], sid: str, who: NoteOwner, started: datetime, title: str) -> Call:
    said = [
        ("agent", f"What do the notes {title} say?"),
        *(("caller", note) for note in notes),
        ("agent", "Noted."),
    ]
    turns = [
        {"speaker": speaker, "text": text, "at": (started + timedelta(seconds=second)).isoformat()}
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
            raise RefusedInput(str(file), f"is larger than {MAX_FILE_BYTES:,} bytes; split it")
        return file.read_bytes()
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None


def _date(file: Path, settings: Settings) -> datetime:
    """The day in the file's name, at noon; else when the file was last changed."""
    if day := _DAY.search(file.name):
        try:
            noon = datetime.combine(
                datetime(int(day[1]), int(day[2]), int(day[3]), tzinfo=UTC).date(),
                time(12),
                settings.zone,
            )
            return noon.astimezone(UTC)
        except ValueError:
            pass
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).replace(microsecond=0)
    return max(changed, EARLIEST)
