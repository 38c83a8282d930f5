"""Verifies the archive: every file, every line of the chain, every sealed call."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from aftercall.encryption import CHAIN_FILE
from aftercall.errors import FileUnreadable, NotFound
from aftercall.journal.archive import (
    ArchiveFolder,
    ChainLink,
    check_chain,
    hash_bytes,
)
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
    kind: str
    name: str
    reason: str


@dataclass(frozen=True)
class ArchiveProof:
    files: int
    links: int
    calls: int
    faults: tuple[ArchiveFault, ...]


def verify_archive(place: ArchiveFolder, store: CallStore) -> ArchiveProof:
    """Reads everything and lists the faults; changes nothing.

    Calls may be sealed meanwhile, so that only what is wrong twice is a fault.
    """
    proof = _check_archive(place, store)
    if not proof.faults:
        return proof
    again = _check_archive(place, store)
    return replace(
        again, faults=tuple(fault for fault in again.faults if fault in proof.faults)
    )


def _check_archive(place: ArchiveFolder, store: CallStore) -> ArchiveProof:
    being_sealed = {row.live.id for row in store.list_unsealed()}
    sealed = store.list_sealed_files()
    names = place.list_names()
    links: dict[str, ChainLink] = {}
    faults: list[ArchiveFault] = []
    lines = place.read_chain()
    for number, link, wrong in check_chain(lines):
        if wrong:
            faults.append(ArchiveFault("chain", f"{CHAIN_FILE} line {number}", wrong))
        if link:
            links[link.name] = link  # a tombstone replaces the line of its file
    erased = {name for name, link in links.items() if link.erased}
    kept = {name: link for name, link in links.items() if name not in erased}
    faults += _check_links(place, kept)
    for name in names:
        if name in erased:
            faults.append(ArchiveFault("unerased", name, NOT_ERASED))
        elif name not in kept and not _is_being_sealed(place, name, being_sealed):
            faults.append(ArchiveFault("unchained", name, NOT_IN_CHAIN))
    faults += _check_calls(sealed, kept)
    for link in kept.values():
        if link.call not in sealed and link.call not in being_sealed:
            reason = f"the database does not know its call {link.call}"
            faults.append(ArchiveFault("unknown", link.name, reason))
    return ArchiveProof(len(names), len(lines), len(sealed), tuple(faults))


def _check_links(
    place: ArchiveFolder, links: dict[str, ChainLink]
) -> Iterator[ArchiveFault]:
    for link in links.values():
        try:
            data = place.read(link.name)
        except NotFound:
            reason = "the chain says it was sealed, but the file is gone"
            yield ArchiveFault("missing", link.name, reason)
            continue
        if hash_bytes(data) != link.sha256:
            yield ArchiveFault(
                "edited", link.name, "its contents are not those that were sealed"
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


def _is_being_sealed(place: ArchiveFolder, name: str, being_sealed: set[str]) -> bool:
    """Whether the file belongs to a call that is being sealed, or that recovery will seal."""
    try:
        data = place.read_clear(name)
    except FileUnreadable:
        return False
    return any(f'"{call_id}"'.encode() in data for call_id in being_sealed)
