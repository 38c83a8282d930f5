"""Who may speak to the carrier routes: only a carrier that signed what it sent.

Each carrier's check has a file of its own; here is what they are asked and what they may answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Flaw(StrEnum):
    """Why a request is not believed."""

    NO_KEY = "there is nothing to check it with: a key or the public address is not set, or cannot be used"
    MISSING = "it is not signed"
    MALFORMED = "its signature, or what was signed, cannot be read"
    STALE = "it was signed too long ago, or by a clock that is wrong"
    WRONG = "the signature is not the carrier's, or the request was changed on its way"


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it arrived: `target` is the raw path and query below the public address, `body` the raw bytes."""

    target: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    is_upgrade: bool = False

    def header(self, name: str) -> str | None:
        """The one header of this name; two of them contradict each other and count as unreadable."""
        found = [value for key, value in self.headers.items() if key.lower() == name]
        if not found:
            return None
        return found[0] if len(found) == 1 else ""


class Signature(Protocol):
    def find_flaw(self, request: SignedRequest) -> Flaw | None:
        """None: this is from the carrier, unchanged. Never raises, whatever the request holds."""
        ...
