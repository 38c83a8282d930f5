"""Notes that exist already, taken in as calls: one file, one call (or several, if it is long), the same file once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from hashlib import sha256
from pathlib import Path

from aftercall.errors import ConfigError, NotFound, RefusedInput
from aftercall.memory.notes import read_notes
from aftercall.model.calls import IMPORTED, Call, parse_call
from aftercall.model.instants import EARLIEST
from aftercall.settings import Settings

NOTES_A_CALL = 200
LARGEST = 5_000_000
_ANYBODY = "client:import"  # who speaks in a memory that is everybody's
_DAY = re.compile(r"(20\d\d)-(\d\d)-(\d\d)")
# In an agent's workspace these instruct the agent, and say nothing of its user.
_INSTRUCTIONS = frozenset({"AGENTS.md", "SOUL.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md", "IDENTITY.md", "CALLS.md"})
_WORKSPACE_SIGNS = ("AGENTS.md", "SOUL.md", "MEMORY.md")


@dataclass(frozen=True)
class Whose:
    agent_id: str
    caller: str


def whose(settings: Settings, caller: str | None) -> Whose:
    """Notes belong to somebody: the caller that is named, the owner, or everybody where memory is shared."""
    if settings.memory.scope == "none":
        raise ConfigError("memory.scope: is `none`, so nothing can be remembered; set per_caller or shared")
    known = caller or settings.owner or (_ANYBODY if settings.memory.scope == "shared" else None)
    if known is None:
        raise ConfigError("--caller: whose notes are these? Name a number, or set `owner`")
    return Whose(settings.agent_id, known)


def find_files(path: Path) -> list[Path]:
    """Markdown under `path`; of an agent's workspace only what tells of its user."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFound(f"{path}: there is no such file or folder")
    files = sorted(
        file for file in path.rglob("*.md") if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if any((path / sign).is_file() for sign in _WORKSPACE_SIGNS) or (path / "memory").is_dir():
        kept = (path / "MEMORY.md", path / "USER.md")
        return [file for file in files if file in kept or file.relative_to(path).parts[0] in ("memory", "people")]
    return [file for file in files if file.name not in _INSTRUCTIONS]


def to_calls(file: Path, who: Whose, settings: Settings, now: datetime) -> Iterator[Call]:
    """The calls that a file becomes; their names come from what it says and whose it is, so the same again is known."""
    raw = _read(file)
    notes = [note for note in read_notes(raw.decode("utf-8", "replace")) if note]
    name = sha256("\0".join((who.agent_id, who.caller)).encode() + b"\0" + raw).hexdigest()[:40]
    started = min(_date(file, settings), now)
    for part, first in enumerate(range(0, len(notes), NOTES_A_CALL)):
        yield _to_call(notes[first : first + NOTES_A_CALL], f"{name}.{part}", who, started, file.name)


def _to_call(notes: list[str], sid: str, who: Whose, started: datetime, title: str) -> Call:
    said = [("agent", f"What do the notes {title} say?"), *(("caller", note) for note in notes), ("agent", "Noted.")]
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
        if file.stat().st_size > LARGEST:
            raise RefusedInput(str(file), f"is larger than {LARGEST:,} bytes; split it")
        return file.read_bytes()
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None


def _date(file: Path, settings: Settings) -> datetime:
    """The day in the file's name, at noon; else when the file was last changed."""
    if day := _DAY.search(file.name):
        try:
            noon = datetime.combine(datetime(int(day[1]), int(day[2]), int(day[3]), tzinfo=UTC).date(), time(12), settings.zone)
            return noon.astimezone(UTC)
        except ValueError:
            pass
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).replace(microsecond=0)
    return max(changed, EARLIEST)
