"""Sealed calls: one JSON file each, created exclusively, never changed again; late words go
into addenda beside it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

from aftercall.clock import format_instant
from aftercall.errors import ArchiveError, NotFound
from aftercall.faults import fault_point
from aftercall.journal.chain import hash_bytes, make_next_line, parse_link
from aftercall.journal.folder import ArchivePlace
from aftercall.model.calls import Call
from aftercall.model.turns import Event, Turn

_LEADING_FIELDS = (
    "schema",
    "id",
    "source",
    "sid",
    "agent_id",
    "direction",
    "caller",
    "callee",
    "verified",
)
_MAX_SID_CHARS = 100
_MAX_FILES_PER_NAME = 1_000


@dataclass(frozen=True)
class SealedFile:
    """A file of the archive."""

    name: str
    sha256: str


class Archive:
    def __init__(self, place: ArchivePlace) -> None:
        self.place = place

    def seal(self, call: Call) -> SealedFile:
        """Put the call into the archive, once. Sealing it again gives the first seal back."""
        fault_point("archive.before_file")
        sealed = self._create(make_base_name(call), encode_call(call), owner=call.id)
        fault_point("archive.after_chain")
        return sealed

    def add_addendum(
        self, call_id: str, archive_name: str, late: Sequence[Turn | Event], added_at: datetime
    ) -> int:
        """Keep what came after the seal in a file beside it; returns how many addenda the call
        has.
        """
        turns = [item for item in late if isinstance(item, Turn)]
        events = [item for item in late if isinstance(item, Event)]
        new = {"turns": _dump(turns), "events": _dump(events)}
        addendum = {
            "schema": 1,
            "addendum_to": call_id,
            "added_at": format_instant(added_at),
            **new,
        }
        for number in range(1, _MAX_FILES_PER_NAME):
            name = _addendum_name(archive_name, number)
            if (
                self.place.create(name, _to_json(addendum))
                or new.items() <= json.loads(self.place.read(name)).items()
            ):
                self._link_once(SealedFile(name, hash_bytes(self.place.read(name))), call_id)
                return number
        raise ArchiveError(f"{archive_name} has too many addenda")

    def read(self, name: str) -> tuple[Call, tuple[Turn, ...]]:
        """A sealed call, and the late words of its addenda."""
        call = Call.model_validate(json.loads(self.place.read(name)), context={"sealed": True})
        return call, tuple(turn for addendum in self._addenda(name) for turn in addendum)

    def list_files(self, name: str) -> list[str]:
        """A sealed call's file and its addenda, as far as they are still there."""
        beginning = f"{name.removesuffix('.json')}.addendum-"
        return [
            other
            for other in self.place.list_names()
            if other == name or other.startswith(beginning)
        ]

    def erase(self, call_id: str) -> list[str]:
        return self.erase_all([call_id])

    def erase_all(self, call_ids: Sequence[str]) -> list[str]:
        """Take these calls' files away for good and put a tombstone into the chain for each;
        may be run again after a crash.

        The tombstone comes first: a file that is gone without one is a fault, one that is still
        there is merely not done yet.
        """
        links = [parse_link(line) for line in self.place.read_chain()]
        done = {link.name for link in links if link.erased}
        theirs = set(call_ids)
        names = [link.name for link in links if link.call in theirs and not link.erased]
        for link in links:
            if link.call in theirs and link.name not in done:
                self.place.append_link(
                    partial(
                        make_next_line,
                        name=link.name,
                        file_hash=link.sha256,
                        call=link.call,
                        erased=True,
                    )
                )
                fault_point("erase.after_tombstone")
        for name in names:
            self.place.remove(name)
        return names

    def _addenda(self, name: str) -> Iterator[list[Turn]]:
        for number in range(1, _MAX_FILES_PER_NAME):
            try:
                late = self.place.read(_addendum_name(name, number))
            except NotFound:
                return
            yield [Turn.model_validate(turn) for turn in json.loads(late)["turns"]]

    def _create(self, base: str, data: bytes, *, owner: str) -> SealedFile:
        for twin in range(1, _MAX_FILES_PER_NAME):
            name = f"{base}.json" if twin == 1 else f"{base}-{twin}.json"
            if self.place.create(name, data):
                fault_point("archive.after_file")
                sealed = SealedFile(name, hash_bytes(data))
                self._append_link(sealed, owner)
                return sealed
            there = self.place.read(name)
            if (
                json.loads(there).get("id") == owner
            ):  # sealed before, by a process that could not finish
                sealed = SealedFile(name, hash_bytes(there))
                self._link_once(sealed, owner)
                return sealed
        raise ArchiveError(f"too many files are called {base}")

    def _link_once(self, sealed: SealedFile, call_id: str) -> None:
        if not any(parse_link(line).name == sealed.name for line in self.place.read_chain()):
            self._append_link(sealed, call_id)

    def _append_link(self, sealed: SealedFile, call_id: str) -> None:
        self.place.append_link(
            partial(make_next_line, name=sealed.name, file_hash=sealed.sha256, call=call_id)
        )


def _addendum_name(archive_name: str, number: int) -> str:
    return f"{archive_name.removesuffix('.json')}.addendum-{number}.json"


def make_base_name(call: Call) -> str:
    """`20260213T154112Z-120-twilio-CA…`: sorts by start, tells the source, safe on every file
    system.
    """
    start = call.started_at.astimezone(UTC)
    sid = "".join(
        char if char.isalnum() or char in "-_." else f"%{ord(char):02x}" for char in call.sid
    )
    if len(sid) > _MAX_SID_CHARS:
        sid = f"{sid[: _MAX_SID_CHARS - 17]}~{sha256(call.sid.encode()).hexdigest()[:16]}"
    return f"{start:%Y%m%dT%H%M%SZ}-{start.microsecond // 1000:03}-{call.source}-{sid}"


def encode_call(call: Call) -> bytes:
    """The contract's order of fields: what the call is, then what was said, then what came with
    it.
    """
    data = call.model_dump(mode="json", by_alias=True, exclude={"turns", "events", "metadata"})
    ordered = {
        key: data[key]
        for key in (*_LEADING_FIELDS, *(key for key in data if key not in _LEADING_FIELDS))
    }
    happened = {"turns": _dump(call.turns)} | (
        {"events": _dump(call.events)} if call.events else {}
    )
    return _to_json(ordered | happened | {"metadata": call.metadata})


def _dump(items: Iterable[Turn | Event]) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json", exclude_none=True) for item in items]


def _to_json(data: dict[str, Any]) -> bytes:
    """A field on each line, and each turn on a line of its own: for people, and for tools that
    read lines.
    """
    fields = ",\n".join(f" {_quote(name)}: {_format_value(value)}" for name, value in data.items())
    return f"{{\n{fields}\n}}\n".encode()


def _format_value(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(_quote(item) for item in value) + "\n ]"
    return _quote(value)


def _quote(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
