"""Who may use the carrier routes: a request needs the carrier's signature, a stream a token.

Twilio signs (HMAC-SHA1) the address and the form. The address is the configured public one, never
the Host header: behind a proxy that is another, and anybody can set it. Telnyx signs (Ed25519)
the timestamp and the body.
"""

import hmac
import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha1, sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, urlsplit

from pydantic import SecretStr

from aftercall.clock import Clock
from aftercall.errors import RefusedInput
from aftercall.phone.twilio import FORM_TYPE, Fields, read_form

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TWILIO_HEADER = "x-twilio-signature"
TELNYX_HEADER = "telnyx-signature-ed25519"
TIMESTAMP_HEADER = "telnyx-timestamp"
MAX_AGE_S = 300
TOKEN_PARAMETER = "token"  # noqa: S105 - the name of a parameter
TOKEN_LIFETIME_S = 120
_ANY_CALL = ""  # no call has this sid
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SOCKET_SCHEMES = {"https": "wss", "http": "ws"}
_DEFAULT_PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80}


class SignatureFlaw(StrEnum):
    """Why a request is refused."""

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
    """A request as it arrived. `target` is the raw path and query below the public address."""

    target: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    is_upgrade: bool = False

    def header(self, name: str) -> str | None:
        """The header of this name. Two of them contradict each other: an empty text."""
        found = [value for key, value in self.headers.items() if key.lower() == name]
        if not found:
            return None
        return found[0] if len(found) == 1 else ""


class Signature(Protocol):
    def find_flaw(self, request: SignedRequest) -> SignatureFlaw | None:
        """None: the request is the carrier's, unchanged. Never raises."""
        ...


class TelnyxSignature:
    """Needs the `telnyx` extra; raises ModuleNotFoundError without it."""

    def __init__(self, public_key: str | None, clock: Clock) -> None:
        self._key = _read_key(public_key or "")
        self._clock = clock

    def find_flaw(self, request: SignedRequest) -> SignatureFlaw | None:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra

        if self._key is None:
            return SignatureFlaw.NO_KEY
        signature, timestamp = (
            request.header(TELNYX_HEADER),
            request.header(TIMESTAMP_HEADER),
        )
        if signature is None or timestamp is None:
            return SignatureFlaw.MISSING
        raw = _decode(signature)
        if len(raw) != 64 or not _TIMESTAMP.fullmatch(timestamp):
            return SignatureFlaw.MALFORMED
        try:
            self._key.verify(raw, timestamp.encode() + b"|" + request.body)
        except InvalidSignature:
            return SignatureFlaw.WRONG
        is_old = abs(self._clock.now().timestamp() - int(timestamp)) > MAX_AGE_S
        return SignatureFlaw.STALE if is_old else None


def _read_key(public_key: str) -> "Ed25519PublicKey | None":
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - an extra

    raw = _decode(public_key.strip())
    if len(raw) != 32:
        return None
    try:
        return ed25519.Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        return None


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        return b""


class TwilioSignature:
    def __init__(self, auth_token: SecretStr | None, public_url: str | None) -> None:
        self._key = auth_token.get_secret_value().encode() if auth_token else b""
        self._pages = _spellings(public_url or "", is_socket=False)
        self._sockets = _spellings(public_url or "", is_socket=True)

    def find_flaw(self, request: SignedRequest) -> SignatureFlaw | None:
        if not self._key or not self._pages:
            return SignatureFlaw.NO_KEY
        signature = request.header(TWILIO_HEADER)
        if not signature:
            return (
                SignatureFlaw.MISSING if signature is None else SignatureFlaw.MALFORMED
            )
        try:
            fields = _signed_fields(request)
            addresses = self._sockets if request.is_upgrade else self._pages
            joined = _join(fields)
            signed = [
                f"{address}{request.target}".encode() + joined for address in addresses
            ]
        except (RefusedInput, UnicodeEncodeError):
            return SignatureFlaw.MALFORMED
        if fields is None:
            return SignatureFlaw.WRONG
        given = signature.encode("utf-8", "backslashreplace")
        matches = [hmac.compare_digest(self._sign(text), given) for text in signed]
        return None if any(matches) else SignatureFlaw.WRONG

    def _sign(self, text: bytes) -> bytes:
        return b64encode(hmac.digest(self._key, text, sha1))


def _signed_fields(request: SignedRequest) -> Fields | None:
    """The form fields under the signature. None if the signature does not cover the body."""
    if (request.header("content-type") or "").partition(";")[
        0
    ].strip().lower() == FORM_TYPE:
        return read_form(request.body)
    hashes = parse_qs(urlsplit(request.target).query).get("bodySHA256", [])
    if not hashes:
        return None if request.body else ()
    given = hashes[0].encode("utf-8", "backslashreplace")
    is_same = hmac.compare_digest(sha256(request.body).hexdigest().encode(), given)
    return () if is_same and len(hashes) == 1 else None


def _join(fields: Fields | None) -> bytes:
    """Names and values without separators, sorted; the same pair twice counts once."""
    joined = "".join(name + value for name, value in sorted(set(fields or ())))
    return joined.encode("utf-8", "surrogateescape")


def _spellings(public_url: str, *, is_socket: bool) -> Sequence[str]:
    """The public address with and without its port: Twilio signs either. Empty if it is none."""
    try:
        parts = urlsplit(public_url.rstrip("/"))
        port = parts.port
    except ValueError:
        return ()
    if parts.scheme not in _SOCKET_SCHEMES or not parts.hostname:
        return ()
    scheme = _SOCKET_SCHEMES[parts.scheme] if is_socket else parts.scheme
    bare = parts.netloc.removesuffix(f":{port}")
    hosts = (bare, f"{bare}:{port or _DEFAULT_PORTS[scheme]}")
    return tuple(f"{scheme}://{host}{parts.path}" for host in hosts)


class StreamTokens:
    """Tells which media socket belongs to which call, on carriers that sign sockets and others.

    The answer to a webhook brings a token that the stream's start must return. It names its
    call, expires after minutes, and opens one stream in each process. Issued tokens are not
    stored, so any process with the key can check them.
    """

    def __init__(self, key: SecretStr, clock: Clock) -> None:
        self._key = key.get_secret_value().encode()
        self._clock = clock
        self._used: dict[str, int] = {}

    @property
    def remembered_count(self) -> int:
        """How many used tokens are remembered, so that they open nothing again."""
        return len(self._used)

    def issue(self, call_sid: str, carried: str = "") -> str:
        """`carried` is given to the process that the stream reaches."""
        claim = f"{self._now() + TOKEN_LIFETIME_S}.{token_urlsafe(9)}"
        if carried:
            claim += f".{urlsafe_b64encode(carried.encode()).decode()}"
        return f"{claim}.{self._sign(call_sid, claim)}"

    def read_carried(self, call_sid: str, token: str | None) -> str:
        """What the token carries; empty if that is nothing, or we did not issue it."""
        claim, _ = self._read(call_sid, token)
        carried = claim.split(".")[2:]
        return urlsafe_b64decode(carried[0]).decode() if carried else ""

    def redeem(self, call_sid: str, token: str | None) -> bool:
        """Whether this token opens a stream of this call. It does so once."""
        claim, until = self._read(call_sid, token)
        now = self._now()
        if until < now or claim in self._used:
            return False
        self._used = {used: end for used, end in self._used.items() if end >= now} | {
            claim: until
        }
        return True

    def issue_address(self) -> str:
        """A part of a socket's address, for carriers that do not sign sockets."""
        return self.issue(_ANY_CALL)

    def is_address(self, token: str) -> bool:
        """Whether a socket with this part may be opened. The stream's own token opens a call."""
        return self._read(_ANY_CALL, token)[1] >= self._now()

    def _read(self, call_sid: str, token: str | None) -> tuple[str, int]:
        """The claim, and when it expires; long ago if we did not issue it."""
        claim, _, signature = (token or "").rpartition(".")
        expected = self._sign(call_sid, claim).encode()
        given = signature.encode("utf-8", "replace")
        if not self._key or not hmac.compare_digest(expected, given):
            return "", 0
        return claim, int(claim.partition(".")[0])

    def _sign(self, call_sid: str, claim: str) -> str:
        text = f"stream token|{call_sid}|{claim}".encode("utf-8", "replace")
        return hmac.digest(self._key, text, sha256).hex()

    def _now(self) -> int:
        return int(self._clock.now().timestamp())
