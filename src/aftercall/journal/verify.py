"""Proof that the archive is whole: every file, every line of the chain, every sealed call of
the database.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from aftercall.errors import NotFound
from aftercall.journal.chain import ChainLink, check_chain, hash_bytes
from aftercall.journal.folder import CHAIN_FILE, ArchivePlace
from aftercall.journal.store import CallStore


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


def verify_archive(place: ArchivePlace, store: CallStore) -> ArchiveProof:
    """Read everything and name each fault; changes nothing.

    Calls may be sealed while we read: what looks wrong is looked at once more, and only what is
    still wrong is a fault.
    """
    proof = _check_archive(place, store)
    if not proof.faults:
        return proof
    again = _check_archive(place, store)
    return replace(again, faults=tuple(fault for fault in again.faults if fault in proof.faults))


def _check_archive(place: ArchivePlace, store: CallStore) -> ArchiveProof:
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
            links[link.name] = link  # a tombstone stands after the line it ends
    erased = {
        name: links.pop(name) for name in [link.name for link in links.values() if link.erased]
    }
    faults += _check_links(place, links)
    faults += [_unerased_fault(name) for name in names if name in erased]
    faults += [
        _unchained_fault(name)
        for name in names
        if name not in links
        and name not in erased
        and not _is_being_sealed(place, name, being_sealed)
    ]
    faults += _check_calls(sealed, links)
    faults += [
        _unknown_call_fault(link)
        for link in links.values()
        if link.call not in sealed and link.call not in being_sealed
    ]
    return ArchiveProof(len(names), len(lines), len(sealed), tuple(faults))


def _check_links(place: ArchivePlace, links: dict[str, ChainLink]) -> Iterator[ArchiveFault]:
    for link in links.values():
        try:
            data = place.read(link.name)
        except NotFound:
            yield ArchiveFault(
                "missing", link.name, "the chain says it was sealed, but the file is gone"
            )
        else:
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
            yield ArchiveFault(
                "unchained",
                name,
                f"call {call_id} was sealed into it, but the chain does not know it",
            )
        elif link.sha256 != sha256:
            yield ArchiveFault(
                "edited", name, f"the chain's hash is not the one call {call_id} was sealed with"
            )
        elif files[call_id] < 1 + addenda:
            yield ArchiveFault(
                "missing",
                name,
                f"call {call_id} has {addenda} addenda, the chain knows "
                f"{max(files[call_id] - 1, 0)}",
            )


def _unknown_call_fault(link: ChainLink) -> ArchiveFault:
    return ArchiveFault("unknown", link.name, f"the database does not know its call {link.call}")


def _unerased_fault(name: str) -> ArchiveFault:
    return ArchiveFault(
        "unerased",
        name,
        "the chain says that it was erased, but the file is still there: run `aftercall "
        "erase` again",
    )


def _unchained_fault(name: str) -> ArchiveFault:
    return ArchiveFault(
        "unchained",
        name,
        "the chain does not know this file: it was put there by hand, or its line was removed",
    )


def _is_being_sealed(place: ArchivePlace, name: str, being_sealed: set[str]) -> bool:
    """A file whose sealing is under way, or will be finished by recovery, is no fault."""
    data = place.read(name)
    return any(f'"{call_id}"'.encode() in data for call_id in being_sealed)
