"""Who may speak to the carrier routes: only a carrier that signed what it sent.

Each carrier's check has a file of its own; here is what they are asked and what they may answer.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from aftercall.clock import Clock


class SignatureFlaw(StrEnum):
    """Why a request is not believed."""

    NO_KEY = (
        "there is nothing to check it with: a key or the public address is not set, or cannot "
        "be used"
    )
    MISSING = "it is not signed"
    MALFORMED = "its signature, or what was signed, cannot be read"
    STALE = "it was signed too long ago, or by a clock that is wrong"
    WRONG = "the signature is not the carrier's, or the request was changed on its way"


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it arrived: `target` is the raw path and query below the public address,
    `body` the raw bytes.
    """

    target: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    is_upgrade: bool = False

    def header(self, name: str) -> str | None:
        """The one header of this name; two of them contradict each other and count as
        unreadable.
        """
        found = [value for key, value in self.headers.items() if key.lower() == name]
        if not found:
            return None
        return found[0] if len(found) == 1 else ""


class Signature(Protocol):
    def find_flaw(self, request: SignedRequest) -> SignatureFlaw | None:
        """None: this is from the carrier, unchanged. Never raises, whatever the request holds."""
        ...


SIGNATURE_HEADER = "telnyx-signature-ed25519"
TIMESTAMP_HEADER = "telnyx-timestamp"
MAX_AGE_S = 300
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class TelnyxSignature:
    def __init__(self, public_key: str | None, clock: Clock) -> None:
        self._key = _read_key(public_key or "")
        self._clock = clock

    def find_flaw(self, request: SignedRequest) -> SignatureFlaw | None:
        if self._key is None:
            return SignatureFlaw.NO_KEY
        signature, timestamp = request.header(SIGNATURE_HEADER), request.header(TIMESTAMP_HEADER)
        if signature is None or timestamp is None:
            return SignatureFlaw.MISSING
        raw = _decode(signature)
        if len(raw) != 64 or not _TIMESTAMP.fullmatch(timestamp):
            return SignatureFlaw.MALFORMED
        if abs(self._clock.now().timestamp() - int(timestamp)) > MAX_AGE_S:
            return SignatureFlaw.STALE
        try:
            self._key.verify(raw, timestamp.encode() + b"|" + request.body)
        except InvalidSignature:
            return SignatureFlaw.WRONG
        return None


def _read_key(public_key: str) -> Ed25519PublicKey | None:
    raw = _decode(public_key.strip())
    if len(raw) != 32:
        return None
    try:
        return Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        return None


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        return b""
