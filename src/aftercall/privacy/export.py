"""Everything we have about one caller, as one folder that they can be given."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftercall.clock import Clock, format_instant
from aftercall.db.audit_log import AuditLog
from aftercall.db.connect import Database
from aftercall.errors import RefusedInput
from aftercall.journal.archive import Archive
from aftercall.journal.store import CallRow
from aftercall.memory.key import memory_key
from aftercall.memory.pins.board import PinBoard
from aftercall.memory.pins.page import pin_json
from aftercall.memory.store import FactFilter, FactStore
from aftercall.memory.view import export as export_facts
from aftercall.memory.visibility import redact_call
from aftercall.model.people import join_party, split_party
from aftercall.privacy.store import list_calls, list_documents, list_parties
from aftercall.privacy.subject import ErasureSubject
from aftercall.settings import Settings
from aftercall.work.store import FollowUpStore
from aftercall.work.view import followup_json
from aftercall.workspace.paths import Workspace

MAX_FOLLOWUPS = 100_000
_README = """# What is kept about one caller

Made {at}.

- `calls/`: each call, word for word, with what came later; {calls}
- `facts.jsonl`: what was remembered, with the words it rests on; {secrets}
- `followups.json`: what was asked for and promised, and what became of it
- `documents/`: the page of each call
- `pins.json`: topics they keep coming back to
- `pages/`: the markdown about the caller, and a folder for each other person who speaks \
from the same phone

`person` says whose a fact is: nothing for the number's owner, else the name of whoever \
else speaks from it.
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
    settings: Settings
    database: Database
    archive: Archive
    facts: FactStore
    followups: FollowUpStore
    audit: AuditLog
    clock: Clock
    board: PinBoard | None = None

    def export(self, number: str, folder: Path, *, reveal: bool = False) -> ExportResult:
        """Write the folder, which must be new or empty. `reveal` opens what was confided."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise RefusedInput("folder", f"{folder} is there already, and not empty")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RefusedInput("folder", f"{folder} cannot be made: {error.strerror}") from None
        subject = ErasureSubject(number, tuple(list_calls(self.database, number)))
        secrets = "secrets are opened" if reveal else "secrets only show that they are there"
        sealed = "as it was sealed" if reveal else "what was confided is blotted out"
        _write(
            folder / "README.md",
            _README.format(at=format_instant(self.clock.now()), calls=sealed, secrets=secrets),
        )
        copy = self._copy_call if reveal else self._copy_redacted_call
        calls = sum(copy(row, folder / "calls") for row in subject.rows if row.archive_name)
        facts = self._write_facts(number, folder / "facts.jsonl", reveal)
        followups = [
            followup_json(row) for row in self.followups.page(limit=MAX_FOLLOWUPS, caller=number)
        ]
        _write(
            folder / "followups.json", json.dumps(followups, ensure_ascii=False, indent=1) + "\n"
        )
        documents = list_documents(self.database, subject)
        for document_id, content in documents:
            _write(folder / "documents" / f"{document_id}.md", content)
        self._write_pins(number, folder / "pins.json")
        self._copy_pages(number, folder / "pages")
        self.audit.record(
            "export", "exported", "a caller, secrets opened" if reveal else "a caller"
        )
        return ExportResult(folder, calls, facts, len(followups), len(documents))

    def _copy_redacted_call(self, row: CallRow, folder: Path) -> int:
        """As pages show it: what was confided is blotted out, so it is no longer the sealed
        file.
        """
        call, late = self.archive.read(str(row.archive_name))
        whole = call.model_dump(mode="json")
        whole["turns"] += [turn.model_dump(mode="json") for turn in late]
        _write(
            folder / str(row.archive_name),
            json.dumps(
                redact_call(whole, self.facts.list_confided_words(call.id)),
                ensure_ascii=False,
                indent=1,
            )
            + "\n",
        )
        return 1

    def _copy_call(self, row: CallRow, folder: Path) -> int:
        name = str(row.archive_name)
        names = [
            name,
            *(
                other
                for other in self.archive.place.list_names()
                if other.startswith(f"{name.removesuffix('.json')}.addendum-")
            ),
        ]
        for each in names:
            _write(folder / each, self.archive.place.read(each))
        return 1

    def _write_facts(self, number: str, file: Path, reveal: bool) -> int:
        """Everybody's at the number; each line says whose it is."""
        written = []
        for agent_id, party in self._parties(number):
            key = memory_key(self.settings, agent_id, party)
            lines: Iterable[dict[str, Any]] = (
                export_facts(self.facts, FactFilter(key=key, include_retired=True), reveal=reveal)
                if key
                else ()
            )
            written += [
                json.dumps(line | {"person": split_party(party)[1] or None}, ensure_ascii=False)
                for line in lines
            ]
        _write(file, "".join(f"{line}\n" for line in written))
        return len(written)

    def _parties(self, number: str) -> list[tuple[str, str]]:
        """Who is remembered at the number, by each agent of the group."""
        agents = (
            self.settings.agent_id,
            *self.settings.memory.list_others_in_group(self.settings.agent_id),
        )
        return [
            (agent_id, party)
            for agent_id in agents
            for party in list_parties(self.database, agent_id, number)
        ]

    def _write_pins(self, number: str, file: Path) -> None:
        keys = [
            (party, memory_key(self.settings, agent_id, party))
            for agent_id, party in self._parties(number)
        ]
        pins = [
            pin_json(shown) | {"person": split_party(party)[1] or None}
            for party, key in keys
            for shown in (self.board.list_pages(key) if key and self.board else ())
        ]
        _write(file, json.dumps(pins, ensure_ascii=False, indent=1) + "\n")

    def _copy_pages(self, number: str, folder: Path) -> None:
        workspace = Workspace.from_settings(self.settings)
        if workspace.scope == "none":
            return
        for who in ("", *workspace.list_other_persons(number)):
            person = workspace.find_person(join_party(number, who))
            for page in sorted(person.folder.glob("*")) if person else ():
                if page.is_file() and page.suffix in (".md", ".txt"):
                    (folder / who).mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(page, folder / who / page.name)


def _write(file: Path, content: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
