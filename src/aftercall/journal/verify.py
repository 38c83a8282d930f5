"""Verifies the archive and the recordings: every file, every line of the chain, every call."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from aftercall.encryption import CHAIN_FILE
from aftercall.errors import FileUnreadable, NotFound
from aftercall.journal.archive import (
    ArchivePlace,
    ChainLink,
    check_chain,
    read_clear,
)
from aftercall.journal.recording_files import RecordingFolder, RecordingStore
from aftercall.journal.store import CallStore

NOT_ERASED = (
    "the chain says that it was erased, but the file still exists: "
    "run `aftercall erase` again"
)
NOT_IN_CHAIN = (
    "the chain does not list this file: it was put there by hand, "
    "or its line was removed"
)


@dataclass(frozen=True)
class ArchiveFault:
    """What is wrong: `edited`, `missing`, `unchained`, `unerased`, `unknown`, or the `chain`.

    `name` is that of a file, of a line of the chain, or of one of its segments in a bucket.
    """

    kind: str
    name: str
    reason: str


@dataclass(frozen=True)
class RecordingsProof:
    """How many recordings were looked at, and which are not as they were fetched."""

    recordings: int
    faults: tuple[ArchiveFault, ...]
    waiting: int
    """Those that another machine has not moved into the bucket yet."""


@dataclass(frozen=True)
class ArchiveProof:
    """How much was looked at, and what was wrong. No faults: every sealed call is as it was."""

    files: int
    links: int
    calls: int
    faults: tuple[ArchiveFault, ...]
    waiting: int = 0
    """Files that are not in the object store yet."""


def verify_archive(place: ArchivePlace, store: CallStore) -> ArchiveProof:
    """Reads everything and lists the faults; changes nothing.

    Of a bucket, only objects are fetched that have changed since they were last found right.
    """
    return _check_twice(lambda: _check_archive(place, store))


def verify_recordings(
    folder: RecordingFolder, store: RecordingStore
) -> RecordingsProof:
    """The same for recordings."""
    return _check_twice(lambda: _check_recordings(folder, store))


Proof = TypeVar("Proof", ArchiveProof, RecordingsProof)


def _check_twice(check: Callable[[], Proof]) -> Proof:
    """Files are sealed, moved and erased meanwhile: only what is wrong twice is a fault."""
    proof = check()
    if not proof.faults:
        return proof
    again = check()
    both = tuple(fault for fault in again.faults if fault in proof.faults)
    return replace(again, faults=both)


def _compare_file(
    name: str, found: str | None, expected: str, *, owner: str, made: str
) -> Iterator[ArchiveFault]:
    """Compares the hash of a file with the stored one; None if there is no file."""
    if found is None:
        yield ArchiveFault("missing", name, f"{owner}, but the file is gone")
    elif found != expected:
        reason = f"its contents are not those that were {made}"
        yield ArchiveFault("edited", name, reason)


def _check_recordings(
    folder: RecordingFolder, store: RecordingStore
) -> RecordingsProof:
    tags = folder.list_tags()
    found = store.list_here()
    faults: list[ArchiveFault] = []
    waiting = 0
    for recording in found:
        path = folder.locate(recording)
        tag = (tags or {}).get(path.name)
        if tag and tag == recording.etag:
            continue
        digest = folder.hash_stored(path)
        if digest is None and tags is not None and recording.etag is None:
            waiting += 1
            continue
        owner = f"call {recording.call_id} has it"
        faults += _compare_file(
            path.name, digest, recording.sha256 or "", owner=owner, made="fetched"
        )
        if tag and digest == recording.sha256:
            store.set_tag(recording.id, tag)
    return RecordingsProof(len(found), tuple(faults), waiting)


def _check_archive(place: ArchivePlace, store: CallStore) -> ArchiveProof:
    """Compares files, chain and database; a call that is being sealed right now is no fault."""
    being_sealed = {row.live.id for row in store.list_unsealed()}
    sealed = store.list_sealed_files()
    hashes = place.hash_files()
    links: dict[str, ChainLink] = {}
    faults = [ArchiveFault("chain", *fault) for fault in place.find_copy_faults()]
    lines = place.read_chain()
    for number, link, wrong in check_chain(lines):
        if wrong:
            faults.append(ArchiveFault("chain", f"{CHAIN_FILE} line {number}", wrong))
        if link:
            links[link.name] = link  # a tombstone replaces the line of its file
    erased = {name for name, link in links.items() if link.erased}
    kept = {name: link for name, link in links.items() if name not in erased}
    faults += _check_links(hashes, kept)
    for name in sorted(hashes):
        if name in erased:
            faults.append(ArchiveFault("unerased", name, NOT_ERASED))
        elif name not in kept and not _is_being_sealed(place, name, being_sealed):
            faults.append(ArchiveFault("unchained", name, NOT_IN_CHAIN))
    faults += _check_calls(sealed, kept)
    for link in kept.values():
        if link.call not in sealed and link.call not in being_sealed:
            reason = f"the database does not know its call {link.call}"
            faults.append(ArchiveFault("unknown", link.name, reason))
    waiting = place.count_waiting()
    return ArchiveProof(len(hashes), len(lines), len(sealed), tuple(faults), waiting)


def _check_links(
    hashes: dict[str, str], links: dict[str, ChainLink]
) -> Iterator[ArchiveFault]:
    owner = "the chain says it was sealed"
    for link in links.values():
        found = hashes.get(link.name)
        yield from _compare_file(
            link.name, found, link.sha256, owner=owner, made="sealed"
        )


def _check_calls(
    sealed: dict[str, tuple[str, str, int]], links: dict[str, ChainLink]
) -> Iterator[ArchiveFault]:
    files = Counter(link.call for link in links.values())
    for call_id, (name, sha256, addenda) in sealed.items():
        link = links.get(name)
        if link is None:
            reason = (
                f"call {call_id} was sealed into it, but the chain does not list it"
            )
            yield ArchiveFault("unchained", name, reason)
        elif link.sha256 != sha256:
            reason = f"the chain's hash is not the one call {call_id} was sealed with"
            yield ArchiveFault("edited", name, reason)
        elif files[call_id] < 1 + addenda:
            listed = max(files[call_id] - 1, 0)
            reason = f"call {call_id} has {addenda} addenda, the chain lists {listed}"
            yield ArchiveFault("missing", name, reason)


def _is_being_sealed(place: ArchivePlace, name: str, being_sealed: set[str]) -> bool:
    """Whether the file belongs to a call that is being sealed, or that recovery will seal."""
    try:
        data = read_clear(place, name)
    except (FileUnreadable, NotFound):
        return False
    return any(f'"{call_id}"'.encode() in data for call_id in being_sealed)
