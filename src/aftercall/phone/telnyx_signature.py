"""Telnyx's signature: Ed25519 over the time and the raw body, good for five minutes."""

import re
from base64 import b64decode
from binascii import Error as NotBase64

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from aftercall.clock import Clock
from aftercall.phone.signature import Flaw, SignedRequest

SIGNATURE_HEADER = "telnyx-signature-ed25519"
TIMESTAMP_HEADER = "telnyx-timestamp"
WINDOW_S = 300
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class TelnyxSignature:
    def __init__(self, public_key: str | None, clock: Clock) -> None:
        self._key = _read_key(public_key or "")
        self._clock = clock

    def find_flaw(self, request: SignedRequest) -> Flaw | None:
        if self._key is None:
            return Flaw.NO_KEY
        signature, timestamp = request.header(SIGNATURE_HEADER), request.header(TIMESTAMP_HEADER)
        if signature is None or timestamp is None:
            return Flaw.MISSING
        raw = _decode(signature)
        if len(raw) != 64 or not _TIMESTAMP.fullmatch(timestamp):
            return Flaw.MALFORMED
        if abs(self._clock.now().timestamp() - int(timestamp)) > WINDOW_S:
            return Flaw.STALE
        try:
            self._key.verify(raw, timestamp.encode() + b"|" + request.body)
        except InvalidSignature:
            return Flaw.WRONG
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
