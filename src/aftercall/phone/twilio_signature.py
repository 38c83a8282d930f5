"""Twilio's signature: HMAC-SHA1 over the address that was asked for, and the form that came
with it.

The address is the configured public one, never the Host header: behind a proxy that is another,
and anybody can set it. Twilio is not consistent about ports, so an address counts with and
without its own.
"""

import hmac
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha1, sha256
from urllib.parse import parse_qs, urlsplit

from pydantic import SecretStr

from aftercall.errors import RefusedInput
from aftercall.phone.signature import SignatureFlaw, SignedRequest
from aftercall.phone.twilio_webhooks import FORM_TYPE, Fields, read_form

HEADER = "x-twilio-signature"
_SOCKET_SCHEMES = {"https": "wss", "http": "ws"}
_DEFAULT_PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80}


class TwilioSignature:
    def __init__(self, auth_token: SecretStr | None, public_url: str | None) -> None:
        self._key = auth_token.get_secret_value().encode() if auth_token else b""
        self._pages = _spellings(public_url or "", is_socket=False)
        self._sockets = _spellings(public_url or "", is_socket=True)

    def find_flaw(self, request: SignedRequest) -> SignatureFlaw | None:
        if not self._key or not self._pages:
            return SignatureFlaw.NO_KEY
        signature = request.header(HEADER)
        if not signature:
            return SignatureFlaw.MISSING if signature is None else SignatureFlaw.MALFORMED
        try:
            fields = _signed_fields(request)
            addresses = self._sockets if request.is_upgrade else self._pages
            signed = [f"{address}{request.target}{_join(fields)}".encode() for address in addresses]
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
    """The form fields under the signature; None if there is a body that no signature covers, or
    not this one.
    """
    if (request.header("content-type") or "").partition(";")[0].strip().lower() == FORM_TYPE:
        return read_form(request.body)
    hashes = parse_qs(urlsplit(request.target).query).get("bodySHA256", [])
    if not hashes:
        return None if request.body else ()
    hashed = sha256(request.body).hexdigest()
    return (
        ()
        if len(hashes) == 1
        and hmac.compare_digest(hashed.encode(), hashes[0].encode("utf-8", "backslashreplace"))
        else None
    )


def _join(fields: Fields | None) -> str:
    """Names and values without anything between them, sorted; the same pair twice counts once."""
    return "".join(name + value for name, value in sorted(set(fields or ())))


def _spellings(public_url: str, *, is_socket: bool) -> Sequence[str]:
    """The public address with and without its port; empty if it is no address."""
    try:
        parts = urlsplit(public_url.rstrip("/"))
        port = parts.port
    except ValueError:
        return ()
    if parts.scheme not in _SOCKET_SCHEMES or not parts.hostname:
        return ()
    scheme = _SOCKET_SCHEMES[parts.scheme] if is_socket else parts.scheme
    bare = parts.netloc.removesuffix(f":{port}")
    return tuple(
        f"{scheme}://{host}{parts.path}"
        for host in (bare, f"{bare}:{port or _DEFAULT_PORTS[scheme]}")
    )
