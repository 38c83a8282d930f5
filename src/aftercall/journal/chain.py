"""The chain from sealed file to sealed file: a line each, and each line holds the hash of the
line before.

A file that was edited no longer has the hash its line says; one that was removed leaves its
line behind; a line that was edited or removed breaks the line after it. A file that was erased
on purpose has a second line, its tombstone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from aftercall.errors import ChainBroken

GENESIS_HASH = "0" * 64


@dataclass(frozen=True)
class ChainLink:
    n: int
    name: str
    sha256: str
    call: str
    previous: str
    erased: bool = False


def hash_bytes(data: bytes) -> str:
    return sha256(data).hexdigest()


def make_next_line(
    last: bytes, *, name: str, file_hash: str, call: str, erased: bool = False
) -> bytes:
    n = parse_link(last).n + 1 if last else 1
    previous = hash_bytes(last) if last else GENESIS_HASH
    link = {"n": n, "name": name, "sha256": file_hash, "call": call, "previous": previous} | (
        {"erased": True} if erased else {}
    )
    return json.dumps(link, separators=(",", ":"), ensure_ascii=False).encode()


def parse_link(line: bytes) -> ChainLink:
    try:
        data: dict[str, Any] = json.loads(line)
        return ChainLink(**data)
    except (ValueError, TypeError):
        raise ChainBroken(
            "a line of the archive's chain cannot be read; run `aftercall verify`"
        ) from None


def check_chain(lines: list[bytes]) -> Iterator[tuple[int, ChainLink | None, str | None]]:
    """Each line's number, its link if it can be read, and what is wrong with it, if anything."""
    previous = GENESIS_HASH
    for number, line in enumerate(lines, 1):
        try:
            link = parse_link(line)
        except ChainBroken:
            yield number, None, "cannot be read"
        else:
            fault = None
            if link.previous != previous:
                fault = "does not follow the line before it: a line was changed or removed"
            elif link.n != number:
                fault = f"calls itself number {link.n}"
            yield number, link, fault
        previous = hash_bytes(line)
