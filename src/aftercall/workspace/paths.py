"""Where everything in the workspace is."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, Self
from urllib.parse import unquote

from aftercall.errors import ConfigError, RefusedInput
from aftercall.model.people import (
    is_person,
    normalise_caller,
    normalise_party,
    split_party,
)
from aftercall.settings import Settings

Scope = Literal["per_caller", "shared", "none"]

MAIN_AGENT = "main"
CONFLICT_SUFFIX = ".conflict.md"
MAX_FOLDER_NAME_CHARS = (
    200  # file systems allow 255; lock and temporary names are longer
)
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# folders of the main agent
_RESERVED_FOLDERS = frozenset({"people", "tasks", "journal"})
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789+-_.@")


@dataclass(frozen=True)
class WorkspacePerson:
    """The files about one person; those at the root are the owner's."""

    folder: Path

    @property
    def user(self) -> Path:
        return self.folder / "USER.md"

    @property
    def greeting(self) -> Path:
        return self.folder / "NEXT_GREETING.txt"


@dataclass(frozen=True)
class Workspace:
    """The folder of one agent."""

    root: Path
    owner: str | None = None
    scope: Scope = "per_caller"

    @classmethod
    def from_settings(cls, settings: Settings, agent_id: str | None = None) -> Self:
        folder = _agent_folder(find_root(settings), agent_id or settings.agent_id)
        return cls(folder, _owner(settings.owner), settings.memory.scope)

    @property
    def calls(self) -> Path:
        return self.root / "CALLS.md"

    @property
    def identity(self) -> Path:
        return self.root / "IDENTITY.md"

    def find_person(self, party: str | None) -> WorkspacePerson | None:
        """The files for a call of this party; None if no memory is kept for it."""
        if self.scope == "none":
            return None
        if self.scope == "shared":
            return WorkspacePerson(self.root)
        with _refused_input():
            known = normalise_party(party)
        if known is None:
            return None
        number, person = split_party(known)
        if person:
            return WorkspacePerson(self.person_folder(number) / person)
        return WorkspacePerson(
            self.root if number == self.owner else self.person_folder(number)
        )

    def person_folder(self, number: str) -> Path:
        """The folder of a number: of its owner, unless they own the workspace, and of others."""
        return self.root / "people" / make_folder_name(number)

    def list_user_pages(self) -> Iterator[tuple[str, Path]]:
        """The USER.md of everybody, with their number. Numbers too long for a folder are left
        out.
        """
        if self.owner and (self.root / "USER.md").is_file():
            yield self.owner, self.root / "USER.md"
        for page in (self.root / "people").glob("**/USER.md"):
            folder = page.relative_to(self.root / "people").parts[0]
            if "~" not in folder:
                yield unquote(folder), page

    def list_other_persons(self, number: str) -> tuple[str, ...]:
        """The other people known to call from this number."""
        folder = self.person_folder(number)
        if not folder.is_dir():
            return ()
        names = [path.name for path in folder.iterdir() if path.is_dir()]
        return tuple(sorted(name for name in names if is_person(name)))


def find_root(settings: Settings) -> Path:
    """The folder of all agents."""
    return settings.workspace or settings.home / "workspace"


def make_conflict_path(page: Path) -> Path:
    """The page beside it that keeps what could not be merged."""
    return page.with_name(page.stem + CONFLICT_SUFFIX)


def make_folder_name(caller: str) -> str:
    """A unique folder name on every file system, including those that ignore case.

    Lower-case letters, digits and `+-_.@` stay; every other byte becomes `%` and two hex digits.
    The name starts with `+` or the kind of an address, so it is never `..`.
    """
    with _refused_input():
        known = normalise_caller(caller)
    if known is None:
        raise RefusedInput("caller", "is withheld and has no folder")
    raw = known.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in raw)
    if name.endswith("."):  # some file systems drop a dot at the end
        name = name[:-1] + "%2e"
    if len(name) > MAX_FOLDER_NAME_CHARS:
        digest = sha256(raw).hexdigest()
        name = f"{name[: MAX_FOLDER_NAME_CHARS - len(digest) - 1]}~{digest}"
    return name


def _agent_folder(root: Path, agent_id: str) -> Path:
    if agent_id == MAIN_AGENT:
        return root
    if not _AGENT.fullmatch(agent_id) or agent_id.lower() in _RESERVED_FOLDERS:
        raise ConfigError(
            f"agent_id: {agent_id!r} cannot be the name of an agent's folder; use letters, "
            "digits, - and _"
        )
    return root / agent_id


def _owner(owner: str | None) -> str | None:
    try:
        return normalise_caller(owner)
    except ValueError as error:
        raise ConfigError(f"owner: {error}") from None


@contextmanager
def _refused_input() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
