"""Exports everything about one caller into a folder that can be handed to them."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftercall.clock import Clock, format_instant
from aftercall.db.audit_log import AuditLog
from aftercall.db.connect import Database
from aftercall.db.corrections import CorrectionStore
from aftercall.errors import ConfigError, RefusedInput
from aftercall.journal.archive import Archive, read_clear
from aftercall.memory.fact_store import (
    FactFilter,
    FactStore,
    correction_json,
    iter_whole_facts,
)
from aftercall.memory.pins.board import PinBoard
from aftercall.memory.pins.store import pin_json
from aftercall.memory.visibility import redact_call
from aftercall.model.facts import MemoryKey, memory_key
from aftercall.model.followups import followup_json
from aftercall.model.people import join_party, split_party
from aftercall.privacy.store import (
    list_agents,
    list_documents,
    list_parties,
    load_subject,
)
from aftercall.settings import Settings
from aftercall.work.store import FollowUpStore
from aftercall.workspace import files
from aftercall.workspace.paths import Workspace

MAX_FOLLOWUPS = 100_000
PAGE_SUFFIXES = (".md", ".txt")
_README = """# What is kept about one caller

Made {at}.

- `calls/`: each call, word for word, with turns that came later; {calls}
- `facts.jsonl`: what was remembered, with the words it rests on; {secrets}
- `followups.json`: what was asked for and promised, and what became of it
- `documents/`: the page of each call
- `corrections.json`: what a person put right in facts, requests and names
- `pins.json`: topics the caller keeps coming back to
- `pages/`: the markdown about the caller, and a folder for each other person who speaks \
from the same phone, and for each other agent (`agent-NAME`)

`person` says who a fact belongs to: empty for the number's owner, else the name of another \
person who speaks from it.
"""


@dataclass(frozen=True)
class ExportResult:
    folder: Path
    calls: int
    facts: int
    followups: int
    documents: int


@dataclass(frozen=True)
class Exporter:
    """Everything stored about one person, as files."""

    settings: Settings
    database: Database
    archive: Archive
    facts: FactStore
    followups: FollowUpStore
    audit: AuditLog
    clock: Clock
    board: PinBoard

    def export(
        self,
        number: str,
        folder: Path,
        *,
        reveal: bool = False,
        who: str = "export",
    ) -> ExportResult:
        """Write the folder, which must be new or empty. `reveal` opens secrets."""
        _make_folder(folder)
        subject = load_subject(self.database, number)
        self._write_readme(folder, reveal)
        names = [row.archive_name for row in subject.rows if row.archive_name]
        copy = self._copy_call if reveal else self._copy_redacted_call
        for name in names:
            copy(name, folder / "calls")
        facts = self._write_facts(number, folder / "facts.jsonl", reveal)
        rows = self.followups.page(limit=MAX_FOLLOWUPS, caller=number)
        _write_json(folder / "followups.json", [followup_json(row) for row in rows])
        documents = list_documents(self.database, subject)
        for document_id, content in documents:
            _write(folder / "documents" / f"{document_id}.md", content)
        self._write_pins(number, folder / "pins.json")
        made = CorrectionStore(self.database).page(limit=MAX_FOLLOWUPS, caller=number)
        shown = map(self.facts.reveal, made) if reveal else made
        put_right = [correction_json(one) for one in shown]
        _write_json(folder / "corrections.json", put_right)
        self._copy_pages(number, folder / "pages")
        what = "a caller, secrets opened" if reveal else "a caller"
        self.audit.record(who, "exported", what)
        return ExportResult(folder, len(names), facts, len(rows), len(documents))

    def pack(self, number: str, *, reveal: bool = False, who: str = "export") -> bytes:
        """The same as a zip file."""
        with tempfile.TemporaryDirectory() as folder:
            made = self.export(number, Path(folder) / "caller", reveal=reveal, who=who)
            packed = shutil.make_archive(f"{folder}/packed", "zip", made.folder)
            return Path(packed).read_bytes()

    def _write_readme(self, folder: Path, reveal: bool) -> None:
        readme = _README.format(
            at=format_instant(self.clock.now()),
            calls="as it was sealed" if reveal else "secrets are masked",
            secrets="secrets are opened"
            if reveal
            else "secrets only show that they exist",
        )
        _write(folder / "README.md", readme)

    def _copy_redacted_call(self, name: str, folder: Path) -> None:
        """With secrets masked, so it differs from the sealed file."""
        call, late = self.archive.read(name)
        whole = call.model_dump(mode="json", by_alias=True)
        whole["turns"] += [turn.model_dump(mode="json") for turn in late]
        _write_json(
            folder / name, redact_call(whole, self.facts.list_confided_words(call.id))
        )

    def _copy_call(self, name: str, folder: Path) -> None:
        for each in self.archive.list_files(name):
            _write(folder / each, read_clear(self.archive.place, each))

    def _write_facts(self, number: str, file: Path, reveal: bool) -> int:
        """Facts of every person at the number; each line names its person."""
        lines = []
        for key, person in self._list_memories(number):
            for fact in iter_whole_facts(
                self.facts, FactFilter(key=key, include_retired=True), reveal=reveal
            ):
                lines.append(json.dumps(fact | {"person": person}, ensure_ascii=False))
        _write(file, "".join(f"{line}\n" for line in lines))
        return len(lines)

    def _write_pins(self, number: str, file: Path) -> None:
        memories = self._list_memories(number)
        pins = [
            pin_json(page) | {"person": person}
            for key, person in memories
            for page in self.board.list_pages(key)
        ]
        _write_json(file, pins)

    def _list_memories(self, number: str) -> Iterator[tuple[MemoryKey, str | None]]:
        """Memories of the number with every agent; each with its person."""
        for agent in self._list_agents():
            for party in list_parties(self.database, agent, number):
                if key := memory_key(self.settings, agent, party):
                    yield key, split_party(party)[1] or None

    def _list_agents(self) -> list[str]:
        """Our own agent first. A memory that all callers share is exported within its group."""
        own = self.settings.agent_id
        memory = self.settings.memory
        if memory.scope == "shared":
            return [own, *memory.list_others_in_group(own)]
        return [own, *(other for other in list_agents(self.database) if other != own)]

    def _copy_pages(self, number: str, folder: Path) -> None:
        own, *others = self._list_agents()
        self._copy_agent_pages(own, number, folder)
        for agent_id in others:
            with suppress(ConfigError):  # an agent whose name is no folder has no pages
                self._copy_agent_pages(agent_id, number, folder / f"agent-{agent_id}")

    def _copy_agent_pages(self, agent_id: str, number: str, folder: Path) -> None:
        workspace = Workspace.from_settings(self.settings, agent_id)
        if workspace.scope == "none":
            return
        files.sync(workspace.root)
        for who in ("", *workspace.list_other_persons(number)):
            person = workspace.find_person(join_party(number, who))
            for page in sorted(person.folder.glob("*")) if person else ():
                if page.is_file() and page.suffix in PAGE_SUFFIXES:
                    (folder / who).mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(page, folder / who / page.name)


def _make_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RefusedInput("folder", f"{folder} exists already and is not empty")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedInput(
            "folder", f"{folder} cannot be made: {error.strerror}"
        ) from None


def _write_json(file: Path, data: Any) -> None:
    _write(file, json.dumps(data, ensure_ascii=False, indent=1) + "\n")


def _write(file: Path, content: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
