"""Taking one caller out of the markdown that people own: whole files where they are the caller's, single entries elsewhere."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from aftercall.custody.subject import Subject
from aftercall.settings import Settings
from aftercall.workspace import calls_md, files
from aftercall.workspace.paths import Workspace

TEXTS = (".md", ".ics", ".txt")


def erase_pages(settings: Settings, subject: Subject) -> int:
    """How many files were removed or changed."""
    workspace = Workspace.of(settings)
    changed = sum(_remove(path) for path in _own_files(workspace, subject))
    changed += files.edit(workspace.calls, lambda text: calls_md.remove(text, set(subject.calls), subject.number))
    for path in _texts(workspace.root):
        changed += files.edit(path, lambda text: _without_notes(text, subject))
    return changed


def _own_files(workspace: Workspace, subject: Subject) -> Iterator[Path]:
    person = workspace.person(subject.number)
    if person is not None and person.folder != workspace.root:
        yield person.folder
    elif person is not None:
        yield from (person.user, person.greeting, person.folder / "NOTES.md")
        yield workspace.guests(subject.number)
    for path in _texts(workspace.root / "journal"):
        if any(conversation in path.name for conversation in subject.conversations):
            yield path
    for path in _texts(workspace.root / "tasks"):
        if path.suffix == ".md" and _is_theirs(files.read(path) or "", subject):
            yield from (path, path.with_suffix(".ics"))


def _is_theirs(task: str, subject: Subject) -> bool:
    """By its front matter: which call it came from, and whose."""
    front = task.split("\n---", 1)[0]
    return any(f'"{mark}"' in front or f": {mark}\n" in f"{front}\n" for mark in (*subject.calls, subject.number))


def _without_notes(text: str | None, subject: Subject) -> str | None:
    """Notes of theirs on the pages of other people: each stands on a line of its own and names its call."""
    if text is None or not any(call in text for call in subject.calls):
        return text
    marks = re.compile("|".join(rf"\(call {re.escape(call)}\)" for call in subject.calls))
    return "".join(line for line in text.splitlines(keepends=True) if not marks.search(line))


def _texts(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.suffix in TEXTS and path.is_file())


def _remove(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path)
        return True
    is_there = path.exists()
    path.unlink(missing_ok=True)
    return is_there
